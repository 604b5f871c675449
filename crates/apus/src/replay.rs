//! `apus replay`: the reaction of an algorithm to a recorded log.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::registry;
use apus_algorithms::BuiltInSender;
use apus_cc::AlgorithmFactory;
use apus_cc::FlowInfo;
use apus_scenario::replay::{HEADER, ReplayError, Row, replay};
use clap::Args;

use crate::failure::Failure;

/// Feed a log of events to an algorithm, and print its state after each event as CSV.
///
/// The log is CSV with the columns time_ps, event (ack, loss or timeout), rtt_ps, fabric_delay_ps, endpoint_delay_ps, hops and
/// acked, in any order. For a loss or timeout, the cells of an acknowledgement may be empty. Optional columns are marked,
/// receiver_level, set_fabric_cwnd, set_endpoint_cwnd, set_last_decrease_ps (of both windows), set_smoothed_rtt_ps and
/// set_timeouts. A cell of a set_ column overwrites the state of the algorithm before the event; an empty cell changes nothing.
///
/// In the output, target_delay_ps of an ack is the target of the window before the ack, with which the delay was compared. After
/// a loss or timeout, it is the target of the new window. pacing_delay_ps is 0 if the flow is not paced. A cell is empty if the
/// algorithm has no such value.
#[derive(Args)]
pub struct Replay {
    /// Algorithm (see `apus list algorithms`).
    algorithm: String,
    /// Profile of the algorithm [default: its first profile].
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Set the parameter KEY to VALUE, as in `--set base_target=30us`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Log of events; `-` is standard input.
    #[arg(long, value_name = "FILE.CSV")]
    trace: PathBuf,
}

impl Replay {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let sender =
            sender(&self.algorithm, self.profile.as_deref(), &self.set).map_err(Failure::Input)?;
        if self.trace == Path::new("-") {
            return print("standard input", io::stdin().lock(), sender);
        }
        let name = self.trace.display().to_string();
        let open = || {
            let unreadable = |error| Failure::Input(format!("{name}: cannot be read: {error}"));
            let file = File::open(&self.trace).map_err(unreadable)?;
            let regular = file.metadata().map_err(unreadable)?.is_file();
            Ok((BufReader::new(file), regular))
        };
        let (input, regular) = open()?;
        if !regular {
            return print(&name, input, sender);
        }
        // The first pass has no output, so an invalid log is refused before anything is printed.
        let nowhere = |_: &Row| Ok::<(), io::Error>(());
        replay(&name, input, sender.clone(), nowhere).map_err(failure)?;
        print(&name, open()?.0, sender)
    }
}

/// Returns the sender of an algorithm with the settings of `--set`.
fn sender(algorithm: &str, profile: Option<&str>, set: &[String]) -> Result<BuiltInSender, String> {
    let pairs = set.iter().map(|text| {
        text.split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .ok_or_else(|| format!("--set {text}: lacks `=`; write --set base_target=30us"))
    });
    let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
    let config = registry().build(algorithm, profile, &pairs).map_err(|error| error.to_string())?;
    Ok(config.sender(&FlowInfo::default()))
}

/// Returns the state of an algorithm after each event of the log `input`, which errors call `name`.
///
/// # Errors
/// An unknown algorithm or setting, or an error in the log.
pub fn states(
    (algorithm, profile, set): (&str, Option<&str>, &[String]),
    name: &str,
    input: impl BufRead,
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let keep = |row: &Row| {
        rows.push(*row);
        Ok::<(), Infallible>(())
    };
    match replay(name, input, sender(algorithm, profile, set)?, keep) {
        Ok(()) => Ok(rows),
        Err(ReplayError::Trace(error)) => Err(error.to_string()),
        Err(ReplayError::Output(never)) => match never {},
    }
}

fn print(name: &str, input: impl BufRead, sender: BuiltInSender) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let header = writeln!(out, "{HEADER}").map_err(ReplayError::Output);
    let replayed = header.and_then(|()| replay(name, input, sender, |row| writeln!(out, "{row}")));
    let result = replayed.and_then(|()| out.flush().map_err(ReplayError::Output));
    result.or_else(|error| match error {
        // A reader that closes the pipe is not an error.
        ReplayError::Output(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        error => Err(failure(error)),
    })
}

fn failure(error: ReplayError<io::Error>) -> Failure {
    match error {
        ReplayError::Trace(error) => Failure::Input(error.to_string()),
        ReplayError::Output(error) => {
            Failure::Run(format!("standard output cannot be written: {error}"))
        }
    }
}
