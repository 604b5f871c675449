//! `stream = true` of a trace: its messages are read during the run, so that memory does not grow with their
//! number.
//!
//! The text is read three times: by this module, to check each line and to count the messages of each pair of
//! hosts; for the offered load; and by the run, which holds the messages of one of its steps. If the text has
//! changed, the last two reads fail.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::mem::replace;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use apus_algorithms::AlgorithmConfig;
use apus_sim::plan::{FurtherOps, Load, NextOps, OpArrival};
use apus_units::{Bytes, HostId, Span, Time};
use sha2::{Digest, Sha256};

use crate::import::csv::{check_header, no_messages, parse_row};
use crate::import::{ImportError, Message, is_blank};
use crate::set::ConnectionPlan;

/// Maximum length of a line. Rationale: bounds the memory for a file without line breaks.
const MAX_LINE: u64 = 64 << 10;

/// Place of the text of a trace.
#[derive(Clone, Debug)]
pub(super) enum Text {
    /// A file.
    File(PathBuf),
    /// The text itself.
    Kept(Arc<str>),
}

impl Text {
    /// Returns the text of a file, with the absolute path, so that results can name it.
    pub(super) fn of_file(folder: &Path, name: &str) -> io::Result<Self> {
        absolute(folder.join(name)).map(Self::File)
    }

    fn open(&self) -> io::Result<Box<dyn BufRead + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(BufReader::with_capacity(256 << 10, File::open(path)?)),
            Self::Kept(text) => Box::new(Cursor::new(Arc::<[u8]>::from(Arc::clone(text)))),
        })
    }
}

/// Reads messages line by line.
pub(super) struct Reader {
    input: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: usize,
    has_header: bool,
    hash: Sha256,
}

impl Reader {
    pub(super) fn open(text: &Text) -> io::Result<Self> {
        let (line, hash) = (Vec::new(), Sha256::new());
        Ok(Self { input: text.open()?, line, number: 0, has_header: false, hash })
    }

    /// Returns the next message; `None` at the end.
    fn next(&mut self) -> Result<Option<Message>, ImportError> {
        loop {
            self.line.clear();
            self.number += 1;
            let read = (&mut self.input).take(MAX_LINE + 1).read_until(b'\n', &mut self.line);
            match read {
                Err(error) => return self.fail(format!("cannot be read: {error}")),
                Ok(0) if self.has_header => return Ok(None),
                Ok(0) => return check_header(None).map(|()| None),
                Ok(length) if length as u64 > MAX_LINE => {
                    return self.fail(format!("the line is longer than {MAX_LINE} bytes"));
                }
                Ok(_) => self.hash.update(&self.line),
            }
            let Ok(line) = std::str::from_utf8(&self.line).map(str::trim) else {
                return self.fail("is not text (UTF-8)".to_owned());
            };
            if is_blank(line) {
                continue;
            }
            if self.has_header {
                return parse_row(self.number, line).map(Some);
            }
            check_header(Some((self.number, line)))?;
            self.has_header = true;
        }
    }

    fn fail<T>(&self, message: String) -> Result<T, ImportError> {
        Err(ImportError { line: self.number, message })
    }

    /// Returns the SHA-256 of the text read, in hexadecimal digits.
    fn digest(self) -> String {
        self.hash.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Statistics of the messages from one host to another.
#[derive(Clone, Debug, Default)]
struct Pair {
    messages: u64,
    /// Start of the first message of each flow.
    starts: Vec<Span>,
    /// Number of messages at the latest start time, and the largest number at any start time.
    at_once: u64,
    most_at_once: u64,
    last: Span,
}

/// A trace that is not kept in memory.
#[derive(Clone, Debug)]
pub(super) struct Streamed {
    text: Text,
    /// Name of the text for messages; the line number is appended.
    name: String,
    pairs: Arc<BTreeMap<(u32, u32), Pair>>,
    /// Number of messages within the run.
    pub(super) messages: u64,
    pub(super) first: Span,
    pub(super) last: Span,
    /// SHA-256 of the text.
    pub(super) digest: String,
    /// Largest number of messages in memory: those of the densest step of the run, and those that their flows
    /// cannot accept yet.
    pub(super) held: u64,
}

impl Streamed {
    /// Checks the messages of a text with its name. Counts the messages that start before `duration`, the end
    /// of the run, which proceeds by `step`.
    ///
    /// # Errors
    /// An error with line and remedy.
    pub(super) fn read(
        (text, name, mut reader): (Text, String, Reader),
        (hosts, duration, step): (u32, Span, Span),
        flows_per_pair: u32,
    ) -> Result<Self, ImportError> {
        let mut pairs: BTreeMap<(u32, u32), Pair> = BTreeMap::new();
        let (mut first, mut before, mut last) = (None, Span::ZERO, Span::ZERO);
        let (mut messages, mut held, mut in_step) = (0, 0, (0, 0));
        while let Some(message) = reader.next()? {
            let Message { start, from, to, .. } = message;
            if let Some(host) = [from, to].into_iter().find(|host| *host >= hosts) {
                return reader.fail(format!(
                    "unknown host {host}: the topology has {hosts}, numbered from 0"
                ));
            }
            if start < before {
                return reader.fail(format!(
                    "the message starts at {start}, but an earlier line at {before}; sort the lines by \
                     start_us, or remove `stream`"
                ));
            }
            before = start;
            first.get_or_insert(start);
            if start >= duration {
                continue;
            }
            (messages, last) = (messages + 1, start);
            let number = start.as_ps() / step.as_ps();
            in_step = (number, if number == in_step.0 { in_step.1 + 1 } else { 1 });
            held = held.max(in_step.1);
            let pair = pairs.entry((from, to)).or_default();
            if pair.messages < u64::from(flows_per_pair) {
                pair.starts.push(start);
            }
            pair.messages += 1;
            pair.at_once = if pair.last == start { pair.at_once + 1 } else { 1 };
            pair.most_at_once = pair.most_at_once.max(pair.at_once);
            pair.last = start;
        }
        let first = first.ok_or_else(no_messages)?;
        if messages == 0 {
            let message =
                format!("the first message starts at {first}, but the run ends at {duration}");
            return Err(ImportError { line: 1, message });
        }
        let (pairs, digest) = (Arc::new(pairs), reader.digest());
        Ok(Self { text, name, pairs, messages, first, last, digest, held })
    }

    /// Returns the number of connections, and the number of ops that they have outstanding together if every
    /// message ends before the next one of its pair starts at a later time.
    pub(super) fn count(&self, max_ops: u32) -> (u64, u64) {
        let of_pair = |pair: &Pair| {
            let flows = pair.starts.len() as u64;
            (flows, pair.most_at_once.clamp(flows, flows * u64::from(max_ops)))
        };
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        self.pairs.values().map(of_pair).fold((0, 0), sum)
    }

    /// Returns the connections of the messages, in the same order as for a trace in memory.
    pub(super) fn connections<'a>(
        &'a self,
        template: &'a ConnectionPlan,
    ) -> impl Iterator<Item = ConnectionPlan> + 'a {
        let of_pair = |(&(from, to), pair): (&(u32, u32), &'a Pair)| {
            pair.starts.iter().map(move |start| (from, to, *start))
        };
        self.pairs.iter().flat_map(of_pair).map(|(from, to, start)| ConnectionPlan {
            from: HostId::new(from),
            to: HostId::new(to),
            start: Time::ZERO + start,
            load: Load::Open(Arc::default()),
            ..template.clone()
        })
    }

    /// Begins to read, for connections from number `first` upwards.
    fn begin(&self, first: u32) -> NextOps {
        let mut next = first;
        let mut turns: BTreeMap<(u32, u32), (u32, u32, u32)> = BTreeMap::new();
        for (pair, Pair { starts, .. }) in &*self.pairs {
            // At most as many as connections.
            let flows = starts.len() as u32;
            turns.insert(*pair, (next, flows, 0));
            next += flows;
        }
        let (name, digest) = (self.name.clone(), self.digest.clone());
        let changed = format!("{name} the text has changed since it was checked; run again");
        let mut reader = Reader::open(&self.text).map(Some);
        let (mut due, mut left) = (None, self.messages);
        Box::new(move |until| {
            let mut ops = Vec::new();
            let input = match &mut reader {
                Ok(Some(input)) => input,
                Ok(None) => return Ok(ops),
                Err(error) => return Err(format!("{name} cannot be read: {error}")),
            };
            let until = until.since(Time::ZERO);
            loop {
                if due.is_none() && left > 0 {
                    due = input.next().map_err(|error| format!("{name}{error}"))?;
                    left -= 1;
                }
                let Some(Message { start, from, to, bytes, .. }) = due else {
                    if let Ok(Some(mut input)) = replace(&mut reader, Ok(None)) {
                        // Messages after the end of the run.
                        while input.next().map_err(|error| format!("{name}{error}"))?.is_some() {}
                        if input.digest() != digest {
                            return Err(changed.clone());
                        }
                    }
                    return Ok(ops);
                };
                if start >= until {
                    return Ok(ops);
                }
                let Some((own, flows, turn)) = turns.get_mut(&(from, to)) else {
                    return Err(changed.clone());
                };
                let arrival = OpArrival { at: Time::ZERO + start, size: Bytes::new(bytes) };
                ops.push((*own + *turn, arrival));
                *turn = if *turn + 1 == *flows { 0 } else { *turn + 1 };
                due = None;
            }
        })
    }
}

/// The streamed traces of a run, each with the number of its first connection.
#[derive(Debug)]
pub(super) struct AllStreamed(pub(super) Vec<(u32, Streamed)>);

impl FurtherOps<AlgorithmConfig> for AllStreamed {
    fn begin(&self, _: &[ConnectionPlan]) -> NextOps {
        let mut all: Vec<NextOps> =
            self.0.iter().map(|(first, streamed)| streamed.begin(*first)).collect();
        Box::new(move |until| {
            let mut ops = Vec::new();
            for next in &mut all {
                ops.append(&mut next(until)?);
            }
            Ok(ops)
        })
    }
}
