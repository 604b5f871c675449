//! The log of a world, and its statistics.

use apus_udp::{OpError, OpResult};
use apus_units::Time;

/// Log lines; `None` if no log was requested.
#[derive(Debug, Default)]
pub(crate) struct Log(pub(crate) Option<Vec<String>>);

impl Log {
    pub(crate) fn note(&mut self, at: Time, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(format!("{:>14.9} {}", at.as_secs_f64(), text()));
        }
    }
}

/// Statistics of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ops submitted.
    pub ops: u64,
    /// Ops that ended with the outcome done.
    pub done: u64,
    /// Ops that ended with the outcome not sent.
    pub not_sent: u64,
    /// Ops that ended with the outcome refused.
    pub refused: u64,
    /// Ops that ended with the outcome unknown.
    pub unknown: u64,
    /// Messages received.
    pub messages: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Datagrams that left through a source port other than the first one of their host.
    pub by_ports: u64,
    /// Faults that began and had an effect.
    pub faults: u64,
    /// Regions that an insider may change and has changed.
    pub by_insiders: u64,
    /// Packets of every kind and commands of sessions that insiders sent for their connections.
    pub informed: u64,
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
        self.by_insiders += other.by_insiders;
        self.informed += other.informed;
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
