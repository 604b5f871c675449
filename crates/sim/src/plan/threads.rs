//! Number of threads from which a run benefits.

use std::collections::HashSet;

use apus_cc::AlgorithmFactory;
use apus_fabric::Node;
use apus_units::{Bytes, Span};

use super::Plan;

/// Events per data packet and its acknowledgement: links, wake-ups and services. Measured: 13 in a fat tree of
/// three tiers. deviation: no source; networks with shorter paths have fewer.
const EVENTS_PER_PACKET: u64 = 10;
/// Minimum number of events per window and thread for which a thread pays off. deviation: no source; about a
/// hundred microseconds of work between two synchronisations of the threads.
const WORTH_A_THREAD: u64 = 1000;
/// Minimum number of events of a run for several threads, about one second of work. In shorter runs a second
/// thread takes longer to build its part of the network than it saves.
const WORTH_DIVIDING: u64 = 10_000_000;

impl<F: AlgorithmFactory> Plan<F> {
    /// Returns `true` if the network cannot be divided among threads, because something in it acts elsewhere
    /// without delay: switches that pause ports or signal sources, or receivers of the LogGOPS model on which
    /// senders wait.
    #[must_use]
    pub fn has_one_part(&self) -> bool {
        self.pfc.is_some() || self.instant_signals || self.host.loggops.is_some()
    }

    /// Returns the number of threads that shorten the run, at most `most`. It is an estimate from the number
    /// of events if all hosts that send or receive are busy. Parts of a run synchronise once per smallest
    /// link delay, so each part needs many events within that time.
    #[must_use]
    pub fn threads_worth(&self, most: u32) -> u32 {
        if most <= 1 || self.has_one_part() {
            return 1;
        }
        let window = self.topology.links.iter().map(|link| link.delay).min();
        let Some(window) = window.filter(|delay| !delay.is_zero()) else { return 1 };
        let windows = self.duration.as_ps() / window.as_ps();
        let per_window = self.events_within(window);
        if per_window.saturating_mul(windows) < WORTH_DIVIDING {
            return 1;
        }
        let worth = u32::try_from(per_window / WORTH_A_THREAD).unwrap_or(u32::MAX);
        worth.clamp(1, most)
    }

    /// Returns the number of events within `time` while all pairs of hosts are busy.
    fn events_within(&self, time: Span) -> u64 {
        let senders: HashSet<_> = self.connections.iter().map(|c| c.from).collect();
        let receivers: HashSet<_> = self.connections.iter().map(|c| c.to).collect();
        let busy = senders.len().min(receivers.len()) as u64;
        let of_host = |node: Node| matches!(node, Node::Host(_));
        let links = self.topology.links.iter().filter(|link| of_host(link.a) || of_host(link.b));
        let Some(rate) = links.map(|link| link.ab.rate.min(link.ba.rate)).min() else { return 0 };
        let packet = Bytes::new(u64::from(self.sizes.payload + self.sizes.header));
        let gap = rate.serialization_time(packet).as_ps().max(1);
        (busy * EVENTS_PER_PACKET).saturating_mul(time.as_ps()) / gap
    }
}
