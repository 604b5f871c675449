//! Ranks of jobs on a host: their messages are ops of flows, or cross the network within the host.
//!
//! [`apus_jobs::Rank`] decides when each operation starts. This module passes its messages to flows, and
//! reports arrivals, acknowledgements and times to it. A host handles events of the same time in a fixed
//! order, so that results do not depend on threads.

mod critical;
mod external;
mod ideal;
mod local;
mod loggops;
mod part;
mod rank;
mod record;
mod summary;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_jobs::{Done, Message};
use apus_transport::{Completion, Endpoint};
use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, HostId, Span, Time};
use apus_wire::{Segment, SegmentKind};

use crate::plan::{JobPlan, SendOrder};
pub use critical::CriticalMessage;
pub(crate) use external::{Happened, Step};
pub(crate) use loggops::ModelledJobs;
pub use part::JobPart;
use rank::HostRank;
pub(crate) use record::records;
pub(crate) use summary::summarize;
pub use summary::{JobRank, JobSummary};

/// Maximum number of operations of a job whose times are all kept, for its critical path and for `job_ops`.
/// deviation: no source; rationale: 24 B each, so 200 MB.
pub(crate) const MAX_TIMED: u64 = 8_000_000;

/// Lower half of [`apus_transport::Op::user`] for messages of jobs; the upper half is the operation. A host
/// has fewer sources of ops than this number.
pub(crate) const JOB_OP: u32 = u32::MAX;

/// Notice to a sender that its message has arrived, for [`Done::Delivered`]. It takes the propagation delay
/// of the path back, without queueing, so that it never reaches another part of the network in that part's
/// past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    /// Host of the sender.
    pub(crate) host: HostId,
    pub(crate) at: Time,
    job: u32,
    rank: u32,
    op: u32,
}

/// Events of a rank at a time that is known in advance, in the order in which events of the same time are
/// handled. Ranks are indices of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The job starts.
    Start { rank: u32 },
    /// A computation ends.
    Timeout { rank: u32 },
    /// The last byte of a message has left.
    Left { rank: u32, op: u32 },
    /// A message within the host begins to arrive.
    Begins { to: u32, from: u32, op: u32 },
    /// A message within the host has arrived.
    Arrived { to: u32, from: u32, op: u32 },
    /// The sender is notified that its message has arrived.
    Delivered { rank: u32, op: u32 },
    /// A message to another host begins to arrive at the rank of this host that owns the egress NIC of the message.
    Crosses { rank: u32, op: u32 },
    /// A message to another host has reached its egress NIC.
    Crossed { rank: u32, op: u32 },
    /// An external program, or a model of all hosts, sends a message.
    Begun { rank: u32, op: u32 },
}

type DueHeap = BinaryHeap<Reverse<(Time, Due)>>;

/// A flow of a job at one of its ends.
#[derive(Clone, Copy, Debug)]
struct FlowUse {
    /// Index of the rank at this end.
    rank: u32,
    /// Number of the rank at the other end.
    peer: u32,
    /// At the receiving end: host of the sender, and propagation delay of the path back.
    back: Option<(HostId, Span)>,
}

/// All ranks of a host.
#[derive(Debug, Default)]
pub(crate) struct HostJobs {
    /// In the order of (job, rank).
    ranks: Vec<HostRank>,
    /// By flow of the host; `None` for flows of other workloads.
    flows: Vec<Option<FlowUse>>,
    due: DueHeap,
    /// Time of the last action. Engines handle completions at the end of a batch, so completions may come
    /// with earlier times.
    clock: Time,
    unfinished: usize,
    /// Whether the model of the jobs needs the arrivals of first bytes.
    hears_first_bytes: bool,
}

impl HostJobs {
    /// Adds a rank; ranks are added in the order of (job, rank), before their flows.
    pub(crate) fn add_rank(&mut self, job: u32, number: u32, plan: &Arc<JobPlan>) {
        let rank = self.ranks.len() as u32;
        self.ranks.push(HostRank::new(job, number, plan));
        if plan.done != Done::LogGops {
            self.due.push(Reverse((plan.start, Due::Start { rank })));
        }
        self.hears_first_bytes |= plan.done == Done::LogGops;
        self.unfinished += 1;
    }

    fn index_of(&self, job: u32, number: u32) -> Option<u32> {
        let key = |rank: &HostRank| (rank.job, rank.number);
        self.ranks.binary_search_by_key(&(job, number), key).ok().map(|index| index as u32)
    }

    /// Adds the sending end of a flow from rank `from` of this host to rank `to`.
    pub(crate) fn add_sending_flow(&mut self, job: u32, (from, to): (u32, u32), flow: FlowId) {
        let Some(rank) = self.index_of(job, from) else { return };
        self.add_flow(flow, FlowUse { rank, peer: to, back: None });
        self.ranks[rank as usize].add_flow(to, flow);
    }

    /// Adds the receiving end of a flow from rank `from` to rank `to` of this host. `back` is the host of the
    /// sender and the propagation delay of the path to it.
    pub(crate) fn add_receiving_flow(
        &mut self,
        job: u32,
        (from, to): (u32, u32),
        flow: FlowId,
        back: (HostId, Span),
    ) {
        let Some(rank) = self.index_of(job, to) else { return };
        self.add_flow(flow, FlowUse { rank, peer: from, back: Some(back) });
    }

    fn add_flow(&mut self, flow: FlowId, of: FlowUse) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, None);
        }
        self.flows[flow.index()] = Some(of);
    }

    #[inline]
    fn flow(&self, flow: FlowId) -> Option<FlowUse> {
        self.flows.get(flow.index()).copied().flatten()
    }

    /// Returns the next time at which a rank acts; [`Time::MAX`] if none is known.
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Returns the number of ranks whose operations are not all done.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns `true` if all operations of all ranks are done, and no message waits for its acknowledgement.
    pub(crate) fn is_over(&self) -> bool {
        self.unfinished == 0 && self.ranks.iter().all(|rank| !rank.has_outstanding())
    }

    /// Returns the end of the rank that ended last, of the ranks whose operations are all done;
    /// [`Time::ZERO`] if there is none.
    pub(crate) fn last_end(&self) -> Time {
        self.ranks.iter().filter_map(|rank| rank.ended_at).max().unwrap_or(Time::ZERO)
    }

    /// Returns the number of operations that are not done.
    pub(crate) fn operations_left(&self) -> u64 {
        self.ranks.iter().map(|rank| u64::from(rank.state.unfinished())).sum()
    }

    /// Returns the ranks.
    pub(crate) fn ranks(&self) -> &[HostRank] {
        &self.ranks
    }

    /// Returns the flows on which ranks of this host send.
    pub(crate) fn sending_flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        let numbered = (0..).map(FlowId::new).zip(&self.flows);
        numbered.filter(|(_, of)| of.is_some_and(|of| of.back.is_none())).map(|(id, _)| id)
    }

    /// Handles all events that are due at `now`, which is `local` on the host's clock.
    pub(crate) fn run_due<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        while self.next_at() <= now {
            let Some(Reverse((_, due))) = self.due.pop() else { break };
            let now = self.advance(now);
            let touched = match due {
                Due::Start { rank } => {
                    self.ranks[rank as usize].state.start(now);
                    rank
                }
                Due::Timeout { rank } => {
                    self.ranks[rank as usize].on_timeout(now);
                    rank
                }
                Due::Left { rank, op } => {
                    let from = &mut self.ranks[rank as usize];
                    from.on_left(now, op, local, endpoint);
                    rank
                }
                Due::Begins { to, from, op } => {
                    let sender = &self.ranks[from as usize];
                    let (number, bytes) = (sender.number, sender.message(op).bytes);
                    if self.hears_first_bytes {
                        self.ranks[to as usize].on_first_byte(now, (number, op));
                    }
                    let at = self.ranks[to as usize].begin_local(now, bytes);
                    self.due.push(Reverse((at, Due::Arrived { to, from, op })));
                    continue;
                }
                Due::Arrived { to, from, op } => {
                    let sender = &mut self.ranks[from as usize];
                    let (message, number) = (sender.message(op), sender.number);
                    sender.on_local_arrival(now, op);
                    if !is_planted(Bug::LocalSendUnnoticed) {
                        self.touch(from, now, local, endpoint);
                    }
                    let receiver = &mut self.ranks[to as usize];
                    receiver.on_arrival(now, (number, op), message.tag, message.bytes);
                    to
                }
                Due::Delivered { rank, op } => {
                    self.ranks[rank as usize].on_delivered(now, op);
                    rank
                }
                Due::Begun { rank, op } => {
                    let message = self.ranks[rank as usize].message(op);
                    self.begin(rank, message, now, local, endpoint);
                    continue;
                }
                Due::Crosses { rank, op } => {
                    let at = self.cross(rank, op, now);
                    self.due.push(Reverse((at, Due::Crossed { rank, op })));
                    continue;
                }
                Due::Crossed { rank, op } => {
                    let sender = &mut self.ranks[rank as usize];
                    sender.submit(sender.message(op), local, endpoint);
                    continue;
                }
            };
            self.touch(touched, now, local, endpoint);
        }
    }

    /// Handles a message that has arrived in full on `flow`. Returns the notice for the sender, if the job
    /// requires one.
    pub(crate) fn on_received<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        flow: FlowId,
        segment: &Segment,
        endpoint: &mut Endpoint<F>,
    ) -> Option<Notice> {
        let FlowUse { rank, peer, back } = self.flow(flow)?;
        let SegmentKind::Write { address, .. } = segment.kind else { return None };
        let (op, tag) = rank::operation(address);
        let now = self.advance(now);
        let receiver = &mut self.ranks[rank as usize];
        receiver.on_arrival(now, (peer, op), tag, segment.op_length);
        let (job, done) = (receiver.job, receiver.plan.done);
        self.touch(rank, now, local, endpoint);
        let (host, delay) = back.filter(|_| done == Done::Delivered)?;
        Some(Notice { host, at: now.saturating_add(delay), job, rank: peer, op })
    }

    /// Returns `true` if the model needs the arrivals of first bytes.
    #[inline]
    pub(crate) fn hears_first_bytes(&self) -> bool {
        self.hears_first_bytes
    }

    /// Handles the arrival of the first bytes of a message on `flow`.
    pub(crate) fn on_first_bytes(&mut self, now: Time, flow: FlowId, segment: &Segment) {
        let Some(FlowUse { rank, peer, .. }) = self.flow(flow) else { return };
        let SegmentKind::Write { address, .. } = segment.kind else { return };
        let now = self.advance(now);
        self.ranks[rank as usize].on_first_byte(now, (peer, rank::operation(address).0));
    }

    /// Records that a model of all hosts has ended the operations of a rank.
    pub(crate) fn end_rank(&mut self, place: usize, at: Time) {
        self.unfinished -= usize::from(self.ranks[place].ends(at));
    }

    /// Stores a notice for a rank of this host until its time.
    pub(crate) fn on_notice(&mut self, notice: &Notice) {
        if let Some(rank) = self.index_of(notice.job, notice.rank) {
            self.due.push(Reverse((notice.at, Due::Delivered { rank, op: notice.op })));
        }
    }

    /// Handles the acknowledgement of a whole message.
    pub(crate) fn on_completion<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        completion: &Completion,
        endpoint: &mut Endpoint<F>,
    ) {
        let Some(FlowUse { rank, .. }) = self.flow(completion.flow) else { return };
        let now = self.advance(now);
        let op = (completion.submitted.user >> 32) as u32;
        self.ranks[rank as usize].on_acknowledged(now, op, local, endpoint);
        self.touch(rank, now, local, endpoint);
    }

    /// Records that the stack has passed the last bytes of a message to the NIC, which sends them until `left_at`.
    pub(crate) fn on_last_bytes(&mut self, flow: FlowId, segment: &Segment, left_at: Time) {
        let Some(FlowUse { rank, back: None, .. }) = self.flow(flow) else { return };
        let SegmentKind::Write { address, .. } = segment.kind else { return };
        let JobPlan { done, order, .. } = *self.ranks[rank as usize].plan;
        if done == Done::Local || order == SendOrder::Sequential {
            let op = rank::operation(address).0;
            self.due.push(Reverse((left_at, Due::Left { rank, op })));
        }
    }

    /// Starts the arrival of a message at the rank that owns the message's egress NIC, and returns when it
    /// has arrived. If no rank of the job has that NIC, the message goes directly to the NIC.
    fn cross(&mut self, rank: u32, op: u32, now: Time) -> Time {
        let sender = &self.ranks[rank as usize];
        let message = sender.message(op);
        let (job, plan) = (sender.job, Arc::clone(&sender.plan));
        let nic = plan.other_nic(sender.number, message.to);
        let of_nic = |other: &&mut HostRank| {
            other.job == job && Some(plan.nic_of[other.number as usize]) == nic
        };
        match self.ranks.iter_mut().find(of_nic) {
            Some(relay) => relay.begin_local(now, message.bytes),
            None => {
                plan.local.map_or(now, |local| now.saturating_add(local.occupies(message.bytes)))
            }
        }
    }

    /// Returns `now`, or the time of the last action if that is later.
    fn advance(&mut self, now: Time) -> Time {
        self.clock = self.clock.max(now);
        self.clock
    }

    /// Sends the new messages of a rank and schedules the end of its next computation.
    fn touch<F: AlgorithmFactory>(
        &mut self,
        index: u32,
        now: Time,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        while let Some(message) = self.ranks[index as usize].state.poll_message() {
            self.begin(index, message, now, local, endpoint);
        }
        let rank = &mut self.ranks[index as usize];
        if rank.plan.done == Done::LogGops {
            return;
        }
        if let Some(at) = rank.new_timeout() {
            self.due.push(Reverse((at, Due::Timeout { rank: index })));
        }
        self.unfinished -= usize::from(rank.ends(now));
    }

    /// Sends a message of a rank: to the rank itself, within the host, through another NIC of the host, or over a flow.
    fn begin<F: AlgorithmFactory>(
        &mut self,
        index: u32,
        message: Message,
        now: Time,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        let (job, number) = {
            let rank = &self.ranks[index as usize];
            (rank.job, rank.number)
        };
        self.ranks[index as usize].begin_message(now);
        let op = message.op;
        if message.to == number {
            self.due.push(Reverse((now, Due::Arrived { to: index, from: index, op })));
            self.due.push(Reverse((now, Due::Left { rank: index, op })));
        } else if let Some(to) = self.index_of(job, message.to) {
            let rank = &mut self.ranks[index as usize];
            let (left, begins) = rank.send_local(now, message.bytes);
            self.due.push(Reverse((left, Due::Left { rank: index, op })));
            self.due.push(Reverse((begins, Due::Begins { to, from: index, op })));
        } else if self.ranks[index as usize].plan.other_nic(number, message.to).is_some() {
            let (_, begins) = self.ranks[index as usize].send_local(now, message.bytes);
            self.due.push(Reverse((begins, Due::Crosses { rank: index, op })));
        } else {
            self.ranks[index as usize].submit(message, local, endpoint);
        }
    }

    /// Sends a message of a rank of this host at `now`, on behalf of an external program or a model of all
    /// hosts. The host sends it when it wakes up.
    pub(crate) fn send_from_outside(
        &mut self,
        now: Time,
        (job, from): (u32, u32),
        message: Message,
    ) {
        let Some(rank) = self.index_of(job, from) else { return };
        let op = message.op;
        if let Some(outside) = &mut self.ranks[rank as usize].outside {
            outside.add(message);
            self.due.push(Reverse((now, Due::Begun { rank, op })));
        }
    }

    /// Moves the steps of messages of an external program or a model into a list.
    pub(crate) fn take_happened(&mut self, into: &mut Vec<Happened>) {
        for outside in self.ranks.iter_mut().filter_map(|rank| rank.outside.as_mut()) {
            outside.take(into);
        }
    }
}
