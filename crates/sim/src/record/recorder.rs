//! What each part of the network notes as it happens.

use apus_transport::{Completion, Handled};
use apus_units::Time;

use super::{OpRecord, RttSum};

/// The hooks of the packet path.
#[derive(Debug)]
pub(crate) struct Recorder {
    limit: u64,
    pub(super) ops: Vec<OpRecord>,
    pub(super) ops_seen: u64,
    /// When the last of `ops` completed.
    latest: Time,
    /// By connection.
    pub(super) rtts: Vec<RttSum>,
}

impl Recorder {
    pub(crate) fn new(connections: usize, limit: u64) -> Self {
        let (latest, rtts) = (Time::ZERO, vec![RttSum::default(); connections]);
        Self { limit, ops: Vec::new(), ops_seen: 0, latest, rtts }
    }

    /// The warm-up is over.
    pub(crate) fn end_warmup(&mut self) {
        self.rtts.fill(RttSum::default());
    }

    /// An acknowledgement may have brought an RTT.
    pub(crate) fn on_handled(&mut self, connection: u32, handled: &Handled) {
        if let Handled::Ack(Some(sample)) = handled {
            let sum = &mut self.rtts[connection as usize];
            sum.count += 1;
            sum.sum_ps += sample.fabric_rtt.as_ps();
            sum.max = sum.max.max(sample.fabric_rtt);
        }
    }

    /// An op completed at the true time `now`; its own times are of its host's clock.
    pub(crate) fn on_completion(&mut self, now: Time, connection: u32, completion: &Completion) {
        self.ops_seen += 1;
        // Hosts take turns, so ops do not come in order of time; which of them are the first is
        // decided when all parts are put together.
        if self.ops.len() as u64 >= self.limit && self.latest < now || self.limit == 0 {
            return;
        }
        self.latest = self.latest.max(now);
        let latency = completion.completed_at.since(completion.submitted_at);
        self.ops.push(OpRecord {
            flow: connection,
            op: completion.op.get(),
            kind: completion.submitted.kind,
            size: completion.submitted.length,
            submitted: now.saturating_sub(latency),
            completed: now,
            outcome: completion.outcome,
        });
    }
}
