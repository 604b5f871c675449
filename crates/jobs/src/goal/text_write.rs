//! Writer of GOAL text.

use core::fmt::{self, Write};

use crate::graph::{ANY, Action, Graph, Op, Program};

use super::error::UnwritableError;

/// Writes a job as GOAL text, one rank after the other. If not all operations of a rank have labels, the rank
/// gets the labels `l1`, `l2` and so on.
///
/// # Errors
/// The inner error if a computation does not take whole nanoseconds, the outer error if `out` fails.
pub fn write_text(
    graph: &Graph,
    out: &mut impl Write,
) -> Result<Result<(), UnwritableError>, fmt::Error> {
    if let Err(error) = super::binary_write::check_times(graph) {
        return Ok(Err(error));
    }
    writeln!(out, "num_ranks {}", graph.ranks())?;
    for (rank, program) in graph.programs().enumerate() {
        writeln!(out, "\nrank {rank} {{")?;
        write_program(program, out)?;
        writeln!(out, "}}")?;
    }
    Ok(Ok(()))
}

/// The label of an operation.
struct Label<'a>(&'a Program, u32, bool);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(program, op, is_labelled) = *self;
        match program.label(op).filter(|_| is_labelled) {
            Some(label) => f.write_str(label),
            None => write!(f, "l{}", u64::from(op) + 1),
        }
    }
}

/// A number, or -1.
struct OrAny(u32);

impl fmt::Display for OrAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ANY { f.write_str("-1") } else { write!(f, "{}", self.0) }
    }
}

fn write_program(program: &Program, out: &mut impl Write) -> fmt::Result {
    let is_labelled = program.is_labelled();
    let label = |op| Label(program, op, is_labelled);
    for (number, op) in program.ops().enumerate() {
        let Op { action, cpu, nic } = op;
        write!(out, "{}: ", label(number as u32))?;
        match action {
            Action::Send { to, bytes, tag } => {
                write!(out, "send {bytes}b to {to} tag {}", OrAny(tag))?;
            }
            Action::Receive { from, bytes, tag } => {
                write!(out, "recv {bytes}b from {} tag {}", OrAny(from), OrAny(tag))?;
            }
            Action::Compute { time } => write!(out, "calc {}", time.as_ps() / 1000)?,
        }
        if cpu > 0 {
            write!(out, " cpu {cpu}")?;
        }
        if nic > 0 && !matches!(action, Action::Compute { .. }) {
            write!(out, " nic {nic}")?;
        }
        writeln!(out)?;
    }
    for awaited in 0..program.len() as u32 {
        for op in program.after_end(awaited) {
            writeln!(out, "{} requires {}", label(*op), label(awaited))?;
        }
        for op in program.after_start(awaited) {
            writeln!(out, "{} irequires {}", label(*op), label(awaited))?;
        }
    }
    Ok(())
}
