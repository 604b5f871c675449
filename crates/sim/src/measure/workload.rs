//! Metrics of named workloads.

use std::sync::Arc;

use apus_cc::{AlgorithmFactory, Snapshot};
use apus_transport::{Completion, Handled, Outcome};
use apus_units::Time;
use apus_wire::Body;

use super::plan::Which;
use crate::metrics::Distribution;
use crate::plan::Plan;
use crate::slowdown::Ideal;

/// Workload of a connection, by the number of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Index of its workload, if that workload has a name.
    pub(crate) workload: Option<u32>,
    pub(crate) ideal: Ideal,
}

/// Accumulators of all named workloads, over the measured phase.
#[derive(Debug)]
pub(crate) struct WorkloadMetrics {
    pub(super) members: Arc<[Member]>,
    pub(super) tallies: Vec<Tally>,
    in_warmup: bool,
}

/// Measurements of one workload.
#[derive(Debug)]
pub(super) struct Tally {
    /// Wire bytes of data packets that reached a stack.
    pub(super) wire_bytes: u64,
    pub(super) acks_sent: u64,
    pub(super) data_packets_sent: u64,
    pub(super) ops: u64,
    pub(super) ops_failed: u64,
    /// Times at which the first and the last op of the whole run ended.
    done: Option<(Time, Time)>,
    /// Number of acknowledgements with both congestion windows, and of those with a smaller endpoint window.
    pub(super) both_windows: u64,
    pub(super) endpoint_limited: u64,
    pub(super) fabric_rtt: Distribution,
    pub(super) end_to_end_rtt: Distribution,
    pub(super) endpoint_delay: Distribution,
    pub(super) target_delay: Distribution,
    pub(super) cwnd: Distribution,
    pub(super) fabric_cwnd: Distribution,
    pub(super) endpoint_cwnd: Distribution,
}

impl WorkloadMetrics {
    pub(super) fn new<F: AlgorithmFactory>(plan: &Plan<F>, members: Arc<[Member]>) -> Self {
        let tallies = plan.measures.workloads.iter().map(|_| Tally::new());
        Self { members, tallies: tallies.collect(), in_warmup: !plan.warmup.is_zero() }
    }

    #[inline]
    fn tally(&mut self, connection: u32) -> Option<&mut Tally> {
        if self.in_warmup {
            return None;
        }
        let workload = self.members[connection as usize].workload?;
        Some(&mut self.tallies[workload as usize])
    }

    /// Ends the warm-up, during which nothing was counted.
    pub(crate) fn end_warmup(&mut self) {
        self.in_warmup = false;
    }

    /// Counts a packet that a host sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, connection: u32, body: &Body) {
        let Some(tally) = self.tally(connection) else { return };
        tally.data_packets_sent += u64::from(matches!(body, Body::Data(_)));
        tally.acks_sent += u64::from(matches!(body, Body::Ack(_)));
    }

    /// Counts a packet that a stack processed; `state` is the state of the flow's algorithm after it.
    #[inline]
    pub(crate) fn on_handled(
        &mut self,
        connection: u32,
        handled: &Handled,
        wire_bytes: u32,
        state: impl FnOnce() -> Option<Snapshot>,
    ) {
        let Some(tally) = self.tally(connection) else { return };
        match handled {
            Handled::Data { .. } | Handled::Duplicate | Handled::OutOfOrder { .. } => {
                tally.wire_bytes += u64::from(wire_bytes);
            }
            Handled::Ack(Some(sample)) => {
                tally.fabric_rtt.record(sample.fabric_rtt);
                tally.end_to_end_rtt.record(sample.end_to_end_rtt);
                tally.endpoint_delay.record(sample.endpoint_delay);
                if let Some(state) = state() {
                    tally.on_state(&state);
                }
            }
            _ => {}
        }
    }

    /// Counts an op that completed at the true time `now`.
    pub(crate) fn on_completion(&mut self, now: Time, connection: u32, completion: &Completion) {
        let Some(own) = self.members[connection as usize].workload else { return };
        let done = completion.outcome == Outcome::Done;
        if done {
            self.tallies[own as usize].on_done(now, now);
        }
        let Some(tally) = self.tally(connection) else { return };
        tally.ops += 1;
        tally.ops_failed += u64::from(!done);
    }

    /// Returns the time at which the first or last op of a workload ended, in the warm-up or later; `None` if
    /// no op ended.
    pub(crate) fn end_of(&self, workload: u32, op: Which) -> Option<Time> {
        let (first, last) = self.tallies[workload as usize].done?;
        Some(if op == Which::First { first } else { last })
    }

    /// Adds the measurements of another part of the network, in any order.
    pub(crate) fn add(&mut self, other: &Self) {
        for (tally, more) in self.tallies.iter_mut().zip(&other.tallies) {
            tally.add(more);
        }
    }
}

impl Tally {
    fn new() -> Self {
        let (time, window) = (Distribution::of_times, Distribution::of_windows);
        Self {
            wire_bytes: 0,
            acks_sent: 0,
            data_packets_sent: 0,
            ops: 0,
            ops_failed: 0,
            done: None,
            both_windows: 0,
            endpoint_limited: 0,
            fabric_rtt: time(),
            end_to_end_rtt: time(),
            endpoint_delay: time(),
            target_delay: time(),
            cwnd: window(),
            fabric_cwnd: window(),
            endpoint_cwnd: window(),
        }
    }

    /// Records ops that ended; `first` and `last` are the ends of the first and the last of them.
    fn on_done(&mut self, first: Time, last: Time) {
        let (earlier, later) = self.done.unwrap_or((first, last));
        self.done = Some((earlier.min(first), later.max(last)));
    }

    /// Records the state of the algorithm after an acknowledgement.
    fn on_state(&mut self, state: &Snapshot) {
        // Flows with only a rate or only credits have no window.
        if state.cwnd.is_finite() {
            self.cwnd.record_number(state.cwnd);
        }
        if let Some(target) = state.target_delay {
            self.target_delay.record(target);
        }
        if let Some(fabric) = state.fabric_cwnd {
            self.fabric_cwnd.record_number(fabric);
        }
        if let Some(endpoint) = state.endpoint_cwnd {
            self.endpoint_cwnd.record_number(endpoint);
        }
        if let (Some(fabric), Some(endpoint)) = (state.fabric_cwnd, state.endpoint_cwnd) {
            self.both_windows += 1;
            self.endpoint_limited += u64::from(endpoint < fabric);
        }
    }

    fn add(&mut self, other: &Self) {
        self.wire_bytes += other.wire_bytes;
        self.acks_sent += other.acks_sent;
        self.data_packets_sent += other.data_packets_sent;
        self.ops += other.ops;
        self.ops_failed += other.ops_failed;
        if let Some((first, last)) = other.done {
            self.on_done(first, last);
        }
        self.both_windows += other.both_windows;
        self.endpoint_limited += other.endpoint_limited;
        self.fabric_rtt.add(&other.fabric_rtt);
        self.end_to_end_rtt.add(&other.end_to_end_rtt);
        self.endpoint_delay.add(&other.endpoint_delay);
        self.target_delay.add(&other.target_delay);
        self.cwnd.add(&other.cwnd);
        self.fabric_cwnd.add(&other.fabric_cwnd);
        self.endpoint_cwnd.add(&other.endpoint_cwnd);
    }
}
