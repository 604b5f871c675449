//! Messages as a file describes them.

use apus_units::Span;

use super::text::{ImportError, wrong};

/// Messages from host to host at given times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of nodes stated by the file.
    pub nodes: Option<u32>,
    /// The messages, in the order of the file.
    pub messages: Vec<Message>,
    /// Whether nodes are numbered as in the HPCC simulator, switches included.
    pub hpcc: bool,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Line of the file.
    pub line: usize,
    /// Time since the start of the run.
    pub start: Span,
    /// Number of the node that sends it.
    pub from: u32,
    /// Number of the node that receives it.
    pub to: u32,
    /// Payload bytes, at least 1.
    pub bytes: u64,
}

/// Maximum number of messages of a file that is read as a whole.
const MAX_MESSAGES: usize = 10_000_000;
/// Largest message: far above the size that a run can transfer.
const MAX_BYTES: u64 = 1 << 40;

impl Traffic {
    /// Adds a message if it can be sent.
    pub(super) fn push(&mut self, message: Message) -> Result<(), ImportError> {
        message.check()?;
        if self.messages.len() >= MAX_MESSAGES {
            let right = "as CSV in the order of start times a scenario reads more, with `stream`";
            return wrong(message.line, format!("more than {MAX_MESSAGES} messages; {right}"));
        }
        self.messages.push(message);
        Ok(())
    }
}

impl Message {
    /// Returns an error if the message cannot be sent.
    pub(super) fn check(&self) -> Result<(), ImportError> {
        let Self { line, from, to, bytes, .. } = *self;
        if from == to {
            return wrong(line, format!("node {from} sends to itself; the two must differ"));
        }
        if !(1..=MAX_BYTES).contains(&bytes) {
            return wrong(line, format!("the size is {bytes}; it must be from 1 to 2^40 bytes"));
        }
        Ok(())
    }
}
