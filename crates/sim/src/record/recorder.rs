//! Records that each part of the network makes during a run.

use apus_transport::{Completion, Handled};
use apus_units::{Span, Time};

use super::{FlowTracer, OpRecord, OpenOpRecord, RttSum};

/// Hooks for the packet path.
#[derive(Debug)]
pub(crate) struct Recorder {
    limit: u64,
    pub(super) ops: Vec<OpRecord>,
    pub(super) ops_seen: u64,
    pub(super) open: Vec<OpenOpRecord>,
    pub(super) open_seen: u64,
    /// End of the measured phase: ops submitted later are not recorded.
    measured_end: Time,
    /// Time at which the last of `ops` completed.
    latest: Time,
    /// By connection.
    pub(super) rtts: Vec<RttSum>,
    /// Keeps the events of flows, if any are traced.
    pub(crate) tracer: Option<Box<FlowTracer>>,
}

impl Recorder {
    pub(crate) fn new(connections: usize, limit: u64) -> Self {
        let (latest, rtts) = (Time::ZERO, vec![RttSum::default(); connections]);
        Self {
            limit,
            ops: Vec::new(),
            ops_seen: 0,
            open: Vec::new(),
            open_seen: 0,
            measured_end: Time::MAX,
            latest,
            rtts,
            tracer: None,
        }
    }

    /// Ends the warm-up.
    pub(crate) fn end_warmup(&mut self) {
        self.rtts.fill(RttSum::default());
    }

    /// Ends the measured phase: ops submitted from now on are not recorded.
    pub(crate) fn end_measured(&mut self, now: Time) {
        self.measured_end = now;
    }

    /// Records an op that was submitted at the true time `now - age` and has not ended at the end of the run.
    pub(crate) fn on_unfinished(&mut self, now: Time, flow: u32, size: u64, age: Span) {
        let submitted = now.saturating_sub(age);
        if submitted >= self.measured_end {
            return;
        }
        self.open_seen += 1;
        self.open.push(OpenOpRecord { flow, size, submitted, age });
        // The oldest ops are kept; the selection among all parts follows later.
        if self.open.len() as u64 >= self.limit.saturating_mul(2).max(1) {
            self.open.sort_unstable_by_key(|op| (op.submitted, op.flow, op.size));
            self.open.truncate(self.limit as usize);
        }
    }

    /// Records the RTT of an acknowledgement, if it has one.
    pub(crate) fn on_handled(&mut self, connection: u32, handled: &Handled) {
        if let Handled::Ack(Some(sample)) = handled {
            let Some(sum) = self.rtts.get_mut(connection as usize) else { return };
            sum.count += 1;
            sum.sum_ps += sample.fabric_rtt.as_ps();
            sum.max = sum.max.max(sample.fabric_rtt);
        }
    }

    /// Records an op that completed at the true time `now`. The times in the completion are those of its host's clock.
    pub(crate) fn on_completion(&mut self, now: Time, connection: u32, completion: &Completion) {
        let latency = completion.completed_at.since(completion.submitted_at);
        let submitted = now.saturating_sub(latency);
        if submitted >= self.measured_end {
            return;
        }
        self.ops_seen += 1;
        // Hosts run in turn, so ops do not arrive here in order of time. The first ones are selected when all
        // parts are merged.
        if self.ops.len() as u64 >= self.limit && self.latest < now || self.limit == 0 {
            return;
        }
        self.latest = self.latest.max(now);
        self.ops.push(OpRecord {
            flow: connection,
            op: completion.op.get(),
            kind: completion.submitted.kind,
            size: completion.submitted.length,
            submitted,
            completed: now,
            outcome: completion.outcome,
        });
    }
}
