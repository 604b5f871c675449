//! Reader of GOAL text, line by line.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use apus_units::{Span, shorten};

use crate::graph::{ANY, Action, Graph, Op, Program, ProgramBuilder};

use super::error::{GoalError, Place, Wrong};
use super::line::{Line, Word};

/// Maximum number of bytes of a line.
const MAX_LINE: usize = 1 << 16;

/// Names that cannot be labels.
const KEYWORDS: [&str; 5] = ["send", "recv", "calc", "rank", "num_ranks"];

/// The rank that is being read.
#[derive(Debug)]
struct Current {
    builder: ProgramBuilder,
    labels: BTreeMap<String, u32>,
    opened: u64,
}

/// Reads GOAL text that arrives in pieces. The reader needs memory only for the graph and for the labels of one rank.
#[derive(Debug, Default)]
pub struct TextReader {
    line: u64,
    /// Start of a line whose end has not arrived yet.
    partial: Vec<u8>,
    within_comment: bool,
    ranks: Option<u32>,
    programs: Vec<Program>,
    current: Option<Current>,
}

impl TextReader {
    /// Begins a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next piece of the text.
    ///
    /// # Errors
    /// An error with line, rank and operation.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), GoalError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.partial.is_empty() {
                self.read_line(line)?;
            } else {
                let mut partial = core::mem::take(&mut self.partial);
                partial.extend_from_slice(line);
                self.read_line(&partial)?;
                partial.clear();
                self.partial = partial;
            }
            bytes = rest;
        }
        if self.partial.len() + bytes.len() > MAX_LINE {
            self.line += 1;
            return Err(self.error(format!("the line is longer than {MAX_LINE} bytes")));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// An error with line, rank and operation.
    pub fn finish(mut self) -> Result<Graph, GoalError> {
        let last = core::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.read_line(&last)?;
        }
        if self.within_comment {
            return Err(self.error("the file ends within a comment; `*/` is missing"));
        }
        if let Some(current) = &self.current {
            let what = format!(
                "the file ends within the rank of line {}; `}}` is missing",
                current.opened
            );
            return Err(self.error(what));
        }
        let Some(ranks) = self.ranks else {
            return Err(self.error("`num_ranks N` is missing"));
        };
        let found = self.programs.len();
        if found < ranks as usize {
            return Err(self.error(format!("the file ends after {found} of {ranks} ranks")));
        }
        let programs = core::mem::take(&mut self.programs);
        Graph::new(programs).map_err(|error| self.error(error))
    }

    fn error(&self, wrong: impl Into<Wrong>) -> GoalError {
        let rank = self.current.as_ref().map(|_| self.programs.len() as u32);
        wrong.into().at(Place::Line(self.line), rank)
    }

    fn read_line(&mut self, bytes: &[u8]) -> Result<(), GoalError> {
        self.line += 1;
        // The bytes of a comment may have any encoding.
        let text = match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let (legal, _) = bytes.split_at(error.valid_up_to());
                let start = core::str::from_utf8(legal).unwrap_or_default().trim_start();
                if start.starts_with("//") {
                    return Ok(());
                }
                return Err(self.error("the line is not UTF-8"));
            }
        };
        self.read_words(Line(text)).map_err(|wrong| self.error(wrong))
    }

    fn read_words(&mut self, mut line: Line<'_>) -> Result<(), Wrong> {
        loop {
            if self.within_comment {
                let Some(end) = line.0.find("*/") else { return Ok(()) };
                line.0 = &line.0[end + 2..];
                self.within_comment = false;
            }
            match line.next()? {
                Word::End | Word::Comment => return Ok(()),
                Word::LongComment => self.within_comment = true,
                Word::Close => self.close()?,
                Word::Name("num_ranks") => self.number_of_ranks(&mut line)?,
                Word::Name("rank") => self.open(&mut line)?,
                Word::Name(name) => return self.statement(name, &mut line),
                _ => return Err("expected a statement, `rank R {` or `}`".into()),
            }
        }
    }

    fn number_of_ranks(&mut self, line: &mut Line<'_>) -> Result<(), Wrong> {
        let ranks = line.number("the number of ranks", u64::from(ANY - 1))? as u32;
        if self.ranks.is_some() {
            return Err("`num_ranks` stands here a second time".into());
        }
        if ranks == 0 {
            return Err("the number of ranks is 0; it must be at least 1".into());
        }
        self.ranks = Some(ranks);
        Ok(())
    }

    fn open(&mut self, line: &mut Line<'_>) -> Result<(), Wrong> {
        let Some(ranks) = self.ranks else {
            return Err("`num_ranks N` must precede the first rank".into());
        };
        if self.current.is_some() {
            return Err("a rank begins within another one; `}` is missing".into());
        }
        let (rank, next) = (line.number("the rank", u64::from(ANY))?, self.programs.len() as u32);
        if rank != u64::from(next) {
            return Err(
                format!("rank {rank} stands here; ranks must be in order, next is {next}").into()
            );
        }
        if next >= ranks {
            return Err(format!("the file has more than {ranks} ranks").into());
        }
        line.expect(Word::Open)?;
        let builder = ProgramBuilder::new(next, ranks);
        self.current = Some(Current { builder, labels: BTreeMap::new(), opened: self.line });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Wrong> {
        let Some(current) = self.current.take() else {
            return Err("`}` closes no rank".into());
        };
        self.programs.push(current.builder.finish()?);
        Ok(())
    }

    fn statement(&mut self, first: &str, line: &mut Line<'_>) -> Result<(), Wrong> {
        let Some(current) = &mut self.current else {
            return Err(format!("`{}` stands outside of a rank", shorten(first)).into());
        };
        if let "send" | "recv" | "calc" = first {
            let op = operation(first, line)?;
            current.builder.push(op)?;
            return Ok(());
        }
        let mut rest = *line;
        match rest.next()? {
            Word::Colon => {
                let name = rest.label()?;
                if KEYWORDS.contains(&first) {
                    return Err(format!("`{first}` cannot be a label").into());
                }
                let op = operation(name, &mut rest)?;
                let number = current.builder.push(op)?;
                if let Some(earlier) = current.labels.insert(first.to_string(), number) {
                    let label = shorten(first);
                    return Err(format!("label `{label}` is that of op {earlier} already").into());
                }
                Ok(current.builder.label(first)?)
            }
            Word::Name(relation @ ("requires" | "irequires")) => {
                let awaited = rest.label()?;
                rest.end()?;
                let find = |label: &str| {
                    let label_of =
                        || format!("no operation before has the label `{}`", shorten(label));
                    current.labels.get(label).copied().ok_or_else(label_of)
                };
                let (op, awaited) = (find(first)?, find(awaited)?);
                if relation == "requires" {
                    current.builder.requires(op, awaited);
                } else {
                    current.builder.irequires(op, awaited);
                }
                Ok(())
            }
            _ => {
                let first = shorten(first);
                Err(format!("after `{first}` must follow `:`, `requires` or `irequires`").into())
            }
        }
    }
}

/// Reads an operation after its first word.
fn operation(kind: &str, line: &mut Line<'_>) -> Result<Op, Wrong> {
    let any = |number: Option<u64>| number.map_or(ANY, |number| number as u32);
    let (rank, limit) = ("the rank", u64::from(u32::MAX));
    let action = match kind {
        "calc" => {
            // The time in whole picoseconds must fit into 64 bits.
            let ns = line.number("the time in nanoseconds", u64::MAX / 1000)?;
            Action::Compute { time: Span::from_ns(ns) }
        }
        "send" | "recv" => {
            let bytes = line.number("the size", u64::MAX)?;
            line.name("b")?;
            if kind == "send" {
                line.name("to")?;
                let to = line.number(rank, limit)? as u32;
                Action::Send { to, bytes, tag: 0 }
            } else {
                line.name("from")?;
                let from = any(line.number_or_any(rank, limit)?);
                Action::Receive { from, bytes, tag: 0 }
            }
        }
        other => {
            return Err(
                format!("expected `send`, `recv` or `calc`, found `{}`", shorten(other)).into()
            );
        }
    };
    let mut op = Op { action, cpu: 0, nic: 0 };
    let mut reached = 0;
    loop {
        let name = match line.next()? {
            Word::End => return Ok(op),
            Word::Name(name) => name,
            _ => "",
        };
        let place = match (name, &mut op.action) {
            ("tag", Action::Send { tag, .. } | Action::Receive { tag, .. }) if reached < 1 => {
                *tag = any(line.number_or_any("the tag", limit)?);
                1
            }
            ("cpu", _) if reached < 2 => {
                op.cpu = line.number("the cpu", 255)? as u8;
                2
            }
            ("nic", Action::Send { .. } | Action::Receive { .. }) if reached < 3 => {
                op.nic = line.number("the nic", 255)? as u8;
                3
            }
            (_, Action::Compute { .. }) => {
                return Err("after the time may follow only `cpu C`".into());
            }
            _ => {
                let what = "after the rank may follow `tag T`, `cpu C` and `nic I`, in this order";
                return Err(what.into());
            }
        };
        reached = place;
    }
}
