//! `kind = "trace"`: messages from a file.

use std::sync::Arc;

use super::frame::Frame;
use super::section::Section;
use crate::import::{Message, Traffic};

/// The workload: each message is one op of a flow of its own. Nodes are hosts of the topology.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) messages: Arc<[Message]>,
}

impl Trace {
    pub(super) fn read(section: &Section<'_>, frame: &Frame<'_>) -> Option<Self> {
        let (key, name, text) = section.text_or_file("flows", "start_us,from,to,bytes per line")?;
        let messages = Traffic::parse(&text)
            .map_err(|e| e.to_string())
            .and_then(|traffic| Self::fit(traffic, frame));
        match messages {
            Ok(messages) => Some(Self { messages: messages.into() }),
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
                .map_err(|_| format!("{line}: node {node} is no host of the topology")),
            None if node < hosts => Ok(node),
            None => Err(format!(
                "{line}: there is no host {node}: the topology has {hosts}, numbered from 0"
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
