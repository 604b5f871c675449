//! `kind = "trace"`: messages from a file.

use std::sync::Arc;

use super::frame::Frame;
use super::section::Section;
use super::tree::Value;
use crate::import::{Message, Traffic};

/// The workload: each message is one op. Nodes are hosts of the topology.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) messages: Arc<[Message]>,
    /// Maximum number of flows from one host to another; `None`: a flow per message.
    pub(super) flows_per_pair: Option<u32>,
    /// Number of connections that the messages need.
    pub(super) connections: u64,
    /// Ops that all connections have outstanding together, estimated.
    pub(super) outstanding: u64,
}

impl Trace {
    pub(super) fn read(section: &Section<'_>, frame: &Frame<'_>) -> Option<Self> {
        let (key, name, text) = section.text_or_file("flows", "start_us,from,to,bytes per line")?;
        let messages = Traffic::parse(&text)
            .map_err(|e| e.to_string())
            .and_then(|traffic| Self::fit(traffic, frame));
        // The default, a flow per message, has no word.
        let flows_per_pair: Option<u32> = section.get("flows_per_pair");
        match messages {
            Ok(messages) => {
                let rows = crate::import::csv::render(messages.iter());
                section.record("flows", Value::Text(rows));
                let messages: Arc<[Message]> = messages.into();
                let (connections, outstanding) = count(&messages, flows_per_pair, frame.max_ops);
                Some(Self { messages, flows_per_pair, connections, outstanding })
            }
            Err(why) => {
                section.problem(key, format_args!("{name}{why}"));
                None
            }
        }
    }

    /// The messages that start within the run, with hosts of the topology.
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
