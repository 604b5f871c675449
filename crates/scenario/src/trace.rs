//! `kind = "trace"`: messages from a file.

use std::sync::Arc;

use apus_sim::plan::step_length;
use apus_units::Span;

use super::frame::Frame;
use super::section::Section;
use super::stream::{Reader, Streamed, Text};
use super::tree::Value;
use crate::import::{Message, Traffic};

/// The workload: each message is one op. Nodes are hosts of the topology.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) messages: Messages,
    /// Number of connections that the messages need.
    pub(super) connections: u64,
    /// Ops that all connections have outstanding together, estimated.
    pub(super) outstanding: u64,
}

/// The messages of a trace.
#[derive(Clone, Debug)]
pub(super) enum Messages {
    /// In memory.
    Kept {
        messages: Arc<[Message]>,
        /// Maximum number of flows from one host to another; `None`: a flow per message.
        flows_per_pair: Option<u32>,
    },
    /// Read during the run.
    Streamed(Streamed),
}

impl Messages {
    /// Returns the number of messages.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Kept { messages, .. } => messages.len() as u64,
            Self::Streamed(streamed) => streamed.messages,
        }
    }

    /// Returns the start of the first and of the last message.
    pub(super) fn interval(&self) -> Option<(Span, Span)> {
        match self {
            Self::Kept { messages, .. } => {
                let starts = || messages.iter().map(|message| message.start);
                Some((starts().min()?, starts().max()?))
            }
            Self::Streamed(streamed) => Some((streamed.first, streamed.last)),
        }
    }

    /// Returns the largest number of messages that are in memory at a time.
    pub(super) fn held(&self) -> u64 {
        match self {
            Self::Kept { .. } => self.count(),
            Self::Streamed(streamed) => streamed.held,
        }
    }
}

impl Trace {
    pub(super) fn read(section: &Section<'_>, frame: &Frame<'_>) -> Option<Self> {
        // The default, a flow per message, cannot be written as a value.
        let flows_per_pair: Option<u32> = section.get("flows_per_pair");
        if section.get_or_default("stream") {
            return Self::stream(section, frame, flows_per_pair);
        }
        section.no_effect("digest", "without `stream`");
        let (key, name, text) = section.text_or_file("flows", "start_us,from,to,bytes per line")?;
        let messages = Traffic::parse(&text)
            .map_err(|e| e.to_string())
            .and_then(|traffic| Self::fit(traffic, frame));
        match messages {
            Ok(messages) => {
                let rows = crate::import::csv::render(messages.iter());
                section.record("flows", Value::Text(rows));
                let messages: Arc<[Message]> = messages.into();
                let (connections, outstanding) = count(&messages, flows_per_pair, frame.max_ops);
                let messages = Messages::Kept { messages, flows_per_pair };
                Some(Self { messages, connections, outstanding })
            }
            Err(why) => {
                section.problem(key, format_args!("{name}{why}"));
                None
            }
        }
    }

    /// Reads a trace whose messages are not kept in memory.
    fn stream(
        section: &Section<'_>,
        frame: &Frame<'_>,
        flows_per_pair: Option<u32>,
    ) -> Option<Self> {
        let Some(flows_per_pair) = flows_per_pair else {
            let why =
                "needs `flows_per_pair`: a flow per message takes more memory than the message";
            section.problem("stream", why);
            return None;
        };
        let wanted: Option<String> = section.peek("digest");
        let (key, name, text) = match (frame.folder, section.node("file")) {
            (Some(folder), Some(_)) => {
                section.no_effect("flows", "with a `file`");
                let file: String = section.peek("file")?;
                match Text::of_file(folder, &file) {
                    Ok(text) => ("file", format!("{file}:"), text),
                    Err(error) => {
                        section.problem("file", format_args!("cannot be used: {error}"));
                        return None;
                    }
                }
            }
            _ => {
                let kind = "start_us,from,to,bytes per line";
                let (key, name, text) = section.text_or_file("flows", kind)?;
                (key, name, Text::Kept(text.into()))
            }
        };
        let recorded = match &text {
            Text::Kept(text) => Some(("flows", text.to_string())),
            Text::File(path) => path.to_str().map(|path| ("file", path.to_owned())),
        };
        let Some((recorded, value)) = recorded else {
            section.problem(key, format_args!("{name} the path is not text (UTF-8)"));
            return None;
        };
        let reader = match Reader::open(&text) {
            Ok(reader) => reader,
            Err(error) => {
                section.problem(key, format_args!("{name} cannot be read: {error}"));
                return None;
            }
        };
        // A topology that cannot be built has already been reported.
        let delay = frame.topology.build().map_or(Span::ZERO, |built| built.smallest_delay());
        let step = step_length(frame.duration, delay);
        let limits = (frame.hosts, frame.duration, step);
        let text = (text, name.clone(), reader);
        let streamed = match Streamed::read(text, limits, flows_per_pair) {
            Ok(streamed) => streamed,
            Err(why) => {
                section.problem(key, format_args!("{name}{why}"));
                return None;
            }
        };
        if let Some(wanted) = wanted.filter(|wanted| !wanted.eq_ignore_ascii_case(&streamed.digest))
        {
            let found = &streamed.digest;
            let message = format_args!(
                "is {wanted}, but that of the text is {found}: it has changed; remove `digest` to use it as it is"
            );
            section.problem("digest", message);
            return None;
        }
        section.record(recorded, Value::Text(value));
        section.record("digest", Value::Text(streamed.digest.clone()));
        let (connections, outstanding) = streamed.count(frame.max_ops);
        let messages = Messages::Streamed(streamed);
        Some(Self { messages, connections, outstanding })
    }

    /// Returns the messages that start within the run, with hosts of the topology.
    fn fit(traffic: Traffic, frame: &Frame<'_>) -> Result<Vec<Message>, String> {
        let hosts = frame.hosts;
        let numbers = frame.topology.host_numbers().filter(|_| traffic.hpcc);
        if let Some(nodes) = traffic.nodes
            && nodes > hosts
        {
            return Err(format!("1: it has {nodes} nodes, but the topology has {hosts} hosts"));
        }
        let host = |line: usize, node: u32| match numbers {
            Some(numbers) => numbers
                .binary_search(&node)
                .map(|place| place as u32)
                .map_err(|_| format!("{line}: node {node} is not a host of the topology")),
            None if node < hosts => Ok(node),
            None => Err(format!(
                "{line}: unknown host {node}: the topology has {hosts}, numbered from 0"
            )),
        };
        let mut messages = Vec::new();
        for message in &traffic.messages {
            let (from, to) = (host(message.line, message.from)?, host(message.line, message.to)?);
            if message.start < frame.duration {
                messages.push(Message { line: 0, from, to, ..*message });
            }
        }
        if messages.is_empty() {
            let first = traffic.messages.iter().map(|m| m.start).min().unwrap_or_default();
            return Err(format!(
                "1: the first message starts at {first}, but the run ends at {}",
                frame.duration
            ));
        }
        Ok(messages)
    }
}

/// Returns the number of connections that the messages need, and the number of ops that they have
/// outstanding together if every message ends before the next one of its pair starts at a later time.
fn count(messages: &[Message], flows_per_pair: Option<u32>, max_ops: u32) -> (u64, u64) {
    let Some(limit) = flows_per_pair else {
        return (messages.len() as u64, messages.len() as u64);
    };
    let mut starts: Vec<_> = messages.iter().map(|m| (m.from, m.to, m.start)).collect();
    starts.sort_unstable();
    let (mut connections, mut outstanding) = (0, 0);
    for pair in starts.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let flows = (pair.len() as u64).min(u64::from(limit));
        let at_once = pair.chunk_by(|a, b| a == b).map(|chunk| chunk.len() as u64);
        connections += flows;
        outstanding += at_once.max().unwrap_or(0).clamp(flows, flows * u64::from(max_ops));
    }
    (connections, outstanding)
}
