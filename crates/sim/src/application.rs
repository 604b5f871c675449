//! The applications of a host: closed loops of ops over its flows.

use apus_transport::{Completion, Endpoint, Op, OpKind};
use apus_units::{Bytes, FlowId, Time};

/// A closed loop: `outstanding` ops are under way over one flow from `start` on, each followed by
/// the next when it completes, until `stop`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClosedLoop {
    pub(crate) flow: FlowId,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    pub(crate) kind: OpKind,
    pub(crate) size: Bytes,
    pub(crate) outstanding: u32,
}

impl ClosedLoop {
    fn op(&self, index: usize) -> Op {
        Op { kind: self.kind, length: self.size.get(), user: index as u64 }
    }
}

/// All loops of a host.
#[derive(Debug, Default)]
pub(crate) struct Application {
    loops: Vec<ClosedLoop>,
    /// Per loop: ops that the flow had no room for. It bounds the span of op numbers under way, so
    /// ops that complete out of order can make one wait that the loop's own count would allow.
    owed: Vec<u32>,
    /// Loops that have not started, the next one last.
    pending: Vec<(Time, usize)>,
}

impl Application {
    pub(crate) fn add(&mut self, closed_loop: ClosedLoop) {
        let index = self.loops.len();
        self.loops.push(closed_loop);
        self.owed.push(0);
        let entry = (closed_loop.start, index);
        let place = self.pending.partition_point(|&other| other > entry);
        self.pending.insert(place, entry);
    }

    /// When the next loop starts; [`Time::MAX`] if all have.
    #[inline]
    pub(crate) fn next_start(&self) -> Time {
        self.pending.last().map_or(Time::MAX, |&(start, _)| start)
    }

    /// Starts the loops that are due at the true time `now`, `local` on the host's clock.
    pub(crate) fn start_due(&mut self, now: Time, local: Time, endpoint: &mut Endpoint) {
        while self.next_start() <= now {
            let Some((_, index)) = self.pending.pop() else { break };
            self.owed[index] = self.loops[index].outstanding;
            self.submit(index, local, endpoint);
        }
    }

    /// An op completed: the loop submits the next, unless its time is over.
    #[inline]
    pub(crate) fn on_completion(
        &mut self,
        now: Time,
        local: Time,
        completion: &Completion,
        endpoint: &mut Endpoint,
    ) {
        let index = completion.submitted.user as usize;
        if now < self.loops[index].stop {
            self.owed[index] += 1;
            self.submit(index, local, endpoint);
        }
    }

    /// Submits what the loop owes, as far as its flow takes it.
    fn submit(&mut self, index: usize, local: Time, endpoint: &mut Endpoint) {
        let (closed_loop, owed) = (&self.loops[index], &mut self.owed[index]);
        let op = closed_loop.op(index);
        while *owed > 0 && endpoint.submit(local, closed_loop.flow, op).is_ok() {
            *owed -= 1;
        }
    }
}
