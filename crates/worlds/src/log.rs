//! The log of a world, and what it counts.

use apus_udp::{OpError, OpResult};
use apus_units::Time;

/// What happened, line by line, if anyone wants to know.
#[derive(Debug, Default)]
pub(crate) struct Log(pub(crate) Option<Vec<String>>);

impl Log {
    pub(crate) fn note(&mut self, at: Time, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(format!("{:>14.9} {}", at.as_secs_f64(), text()));
        }
    }
}

/// Numbers of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ops submitted.
    pub ops: u64,
    /// Ops that ended as done.
    pub done: u64,
    /// Ops that ended as not sent.
    pub not_sent: u64,
    /// Ops that ended as refused.
    pub refused: u64,
    /// Ops that ended as unknown.
    pub unknown: u64,
    /// Messages received.
    pub messages: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Those that left by a source port besides the first of their host.
    pub by_ports: u64,
    /// Faults that began.
    pub faults: u64,
    /// Steps of engines.
    pub steps: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.done += other.done;
        self.not_sent += other.not_sent;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.messages += other.messages;
        self.datagrams += other.datagrams;
        self.by_ports += other.by_ports;
        self.faults += other.faults;
        self.steps += other.steps;
    }

    pub(crate) fn end(&mut self, result: &OpResult) {
        *match result {
            Ok(_) => &mut self.done,
            Err(OpError::NotSent(_)) => &mut self.not_sent,
            Err(OpError::Refused(_)) => &mut self.refused,
            Err(OpError::Unknown(_)) => &mut self.unknown,
        } += 1;
    }
}
