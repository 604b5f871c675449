//! A rank on a host: it passes messages to flows and accounts for the rank's time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_jobs::{Action, Done, Message, Progress, Rank};
use apus_transport::{Endpoint, Op, OpKind};
use apus_units::{FlowId, Span, Time};
use apus_wire::RegionKey;

use super::JOB_OP;
use super::external::{Outside, Step};
use super::local::LocalPort;
use crate::plan::{JobPlan, SendOrder};

/// Region that messages write. The addresses in it encode the operation and the tag, so that the receiving
/// rank knows both.
const REGION: RegionKey = RegionKey::new(1);

fn address(op: u32, tag: u32) -> u64 {
    u64::from(op) << 32 | u64::from(tag)
}

/// Returns the operation and the tag of a message from the address that it writes.
pub(super) fn operation(address: u64) -> (u32, u32) {
    ((address >> 32) as u32, address as u32)
}

/// Submits a message to a flow. Returns `false` if the flow has too many outstanding ops. There is no other
/// reason, because plans have no message that is too long ([`JobPlan::check_messages`]).
fn pass_on<F: AlgorithmFactory>(
    flow: FlowId,
    message: &Message,
    local: Time,
    endpoint: &mut Endpoint<F>,
) -> bool {
    let kind = OpKind::Write { region: REGION, address: address(message.op, message.tag) };
    let user = u64::from(message.op) << 32 | u64::from(JOB_OP);
    endpoint.submit(local, flow, Op { kind, length: message.bytes, user }).is_ok()
}

/// The flows to a peer, which messages use in turn. Their numbers are consecutive.
#[derive(Clone, Copy, Debug)]
struct Peer {
    first: FlowId,
    flows: u32,
    next: u32,
}

/// Messages that are queued for a flow, or behind another message of the NIC.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<(FlowId, Message)>,
    /// Operation whose message is leaving, if other messages wait for it.
    leaving: Option<u32>,
}

/// A rank of a job on a host.
#[derive(Debug)]
pub(crate) struct HostRank {
    pub(super) job: u32,
    pub(super) number: u32,
    pub(super) plan: Arc<JobPlan>,
    pub(super) state: Rank,
    peers: BTreeMap<u32, Peer>,
    /// By flow, or by NIC if messages leave one at a time. A lane of a flow exists only once a message had to wait.
    lanes: BTreeMap<u32, Lane>,
    /// Number of messages that wait in lanes.
    waiting: usize,
    local: LocalPort,
    /// Time of the scheduled timeout.
    timeout: Time,
    /// Number of messages that have not been acknowledged or, within the host, have not arrived.
    outstanding: u32,
    since: Time,
    pub(super) computing: Span,
    pub(super) sending: Span,
    /// In the LogGOPS model: the times until which the rank computes, and until which a stream handles a message.
    computes_until: Time,
    handles_until: Time,
    /// Messages of an external program or a model, if the job's operations come from there.
    pub(super) outside: Option<Box<Outside>>,
    /// Time at which the rank knew that all of its operations were done, including the ends of sends.
    pub(super) ended_at: Option<Time>,
}

impl HostRank {
    pub(super) fn new(job: u32, number: u32, plan: &Arc<JobPlan>) -> Self {
        Self {
            job,
            number,
            state: match plan.graph.ops() <= super::MAX_TIMED {
                true => Rank::new(Arc::clone(plan.graph.program(number)), plan.done).with_times(),
                false => Rank::new(Arc::clone(plan.graph.program(number)), plan.done),
            },
            plan: Arc::clone(plan),
            peers: BTreeMap::new(),
            lanes: BTreeMap::new(),
            waiting: 0,
            local: LocalPort::default(),
            timeout: Time::MAX,
            outstanding: 0,
            since: plan.start,
            computing: Span::ZERO,
            sending: Span::ZERO,
            computes_until: Time::ZERO,
            handles_until: Time::ZERO,
            outside: (plan.is_external || plan.done == Done::LogGops).then(Box::default),
            ended_at: None,
        }
    }

    pub(super) fn add_flow(&mut self, to: u32, flow: FlowId) {
        let none = Peer { first: flow, flows: 0, next: 0 };
        self.peers.entry(to).or_insert(none).flows += 1;
    }

    /// Returns `true` if a message has not been acknowledged or, within the host, has not arrived.
    pub(super) fn has_outstanding(&self) -> bool {
        self.outstanding > 0
    }

    /// Returns the message of a send.
    pub(super) fn message(&self, op: u32) -> Message {
        let none = Message { op, to: self.number, bytes: 0, tag: 0, nic: 0 };
        if let Some(outside) = &self.outside {
            return outside.message(op).unwrap_or(none);
        }
        let of = self.state.program().op(op);
        let (to, bytes, tag) = match of.action {
            Action::Send { to, bytes, tag } => (to, bytes, tag),
            Action::Receive { .. } | Action::Compute { .. } => (self.number, 0, 0),
        };
        Message { op, to, bytes, tag, nic: of.nic }
    }

    /// Attributes the time since the last change to the rank's activity in that time.
    fn account(&mut self, now: Time) {
        let passed = now.since(self.since);
        self.since = self.since.max(now);
        if self.ended_at.is_some() {
            return;
        }
        if self.state.is_computing() {
            self.computing += passed;
            return;
        }
        let began = now.saturating_sub(passed);
        let computing = self.computes_until.min(now).since(began);
        self.computing += computing;
        self.sending += match self.outstanding {
            0 => self.handles_until.min(now).since(began.max(self.computes_until)),
            _ => passed - computing,
        };
    }

    /// Records that a computation runs until `until`.
    pub(super) fn compute_until(&mut self, now: Time, until: Time) {
        self.account(now);
        self.computes_until = self.computes_until.max(until);
    }

    /// Records that a stream handles a message until `until`.
    pub(super) fn handle_until(&mut self, now: Time, until: Time) {
        self.account(now);
        self.handles_until = self.handles_until.max(until);
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.account(now);
        self.timeout = Time::MAX;
        self.state.handle_timeout(now);
    }

    /// Handles the arrival of message `source.1` of rank `source.0`.
    pub(super) fn on_arrival(&mut self, now: Time, source: (u32, u32), tag: u32, bytes: u64) {
        self.account(now);
        match &mut self.outside {
            Some(outside) => outside.note(now, self.job, source, Step::Arrived),
            None => self.state.on_arrival(now, source, tag, bytes),
        }
    }

    /// Handles the arrival of the first byte of message `source.1` of rank `source.0`.
    pub(super) fn on_first_byte(&mut self, now: Time, source: (u32, u32)) {
        if let Some(outside) = &mut self.outside {
            outside.note(now, self.job, source, Step::Began);
        }
    }

    pub(super) fn on_delivered(&mut self, now: Time, op: u32) {
        self.account(now);
        match &mut self.outside {
            Some(outside) if self.plan.done == Done::Delivered => {
                outside.note(now, self.job, (self.number, op), Step::Sent);
            }
            Some(_) => {}
            None => self.state.on_delivered(now, op),
        }
    }

    fn on_known_end(&mut self, now: Time, op: u32) {
        let Some(outside) = &mut self.outside else { return self.state.on_acknowledged(now, op) };
        let message = (self.number, op);
        if self.plan.done == Done::Acknowledged {
            outside.note(now, self.job, message, Step::Sent);
        }
        outside.note(now, self.job, message, Step::Acknowledged);
    }

    /// Handles the arrival of a message within the host: it is delivered and acknowledged.
    pub(super) fn on_local_arrival(&mut self, now: Time, op: u32) {
        self.account(now);
        self.outstanding -= 1;
        self.on_delivered(now, op);
        self.on_known_end(now, op);
    }

    pub(super) fn on_left<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        op: u32,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        self.account(now);
        match &mut self.outside {
            Some(outside) if self.plan.done == Done::Local => {
                outside.note(now, self.job, (self.number, op), Step::Sent);
            }
            Some(_) => {}
            None => self.state.on_sent(now, op),
        }
        let lane = u32::from(self.message(op).nic);
        if self.plan.order == SendOrder::Sequential
            && let Some(leaving) = self.lanes.get_mut(&lane)
            && leaving.leaving == Some(op)
        {
            leaving.leaving = None;
            self.pump(lane, local, endpoint);
        }
    }

    pub(super) fn on_acknowledged<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        op: u32,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        self.account(now);
        self.outstanding -= 1;
        self.on_known_end(now, op);
        if self.waiting == 0 {
            return;
        }
        // The flow that can accept ops again may be that of any lane.
        let waiting = self.lanes.iter().filter(|(_, lane)| !lane.waiting.is_empty());
        let lanes: Vec<u32> = waiting.map(|(lane, _)| *lane).collect();
        for lane in lanes {
            self.pump(lane, local, endpoint);
        }
    }

    /// Records that a message is about to be sent.
    pub(super) fn begin_message(&mut self, now: Time) {
        self.account(now);
        self.outstanding += 1;
    }

    /// Sends a message within the host. Returns when it has left, and when it begins to arrive.
    pub(super) fn send_local(&mut self, now: Time, bytes: u64) -> (Time, Time) {
        // The plan was checked: if ranks of one host exchange messages, the host has a network.
        self.plan.local.map_or((now, now), |network| self.local.send(now, bytes, &network))
    }

    /// Returns the time at which a message within the host has arrived that begins to arrive now.
    pub(super) fn begin_local(&mut self, now: Time, bytes: u64) -> Time {
        self.plan.local.map_or(now, |network| self.local.receive(now, bytes, &network))
    }

    /// Passes a message to the next flow to its receiver, as soon as the send order and the flow allow it.
    pub(super) fn submit<F: AlgorithmFactory>(
        &mut self,
        message: Message,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        let Some(peer) = self.peers.get_mut(&message.to) else { return };
        let flow = FlowId::new(peer.first.get() + peer.next);
        peer.next = (peer.next + 1) % peer.flows;
        let lane = match self.plan.order {
            SendOrder::Interleaved => flow.get(),
            SendOrder::Sequential => u32::from(message.nic),
        };
        let is_free = |of: &Lane| of.leaving.is_none() && of.waiting.is_empty();
        if !self.lanes.get(&lane).is_none_or(is_free) || !pass_on(flow, &message, local, endpoint) {
            self.lanes.entry(lane).or_default().waiting.push_back((flow, message));
            self.waiting += 1;
        } else if self.plan.order == SendOrder::Sequential {
            self.lanes.entry(lane).or_default().leaving = Some(message.op);
        }
    }

    /// Submits the waiting messages of a lane, as far as the send order and the flows allow it.
    fn pump<F: AlgorithmFactory>(&mut self, lane: u32, local: Time, endpoint: &mut Endpoint<F>) {
        let Some(waiting) = self.lanes.get_mut(&lane) else { return };
        while waiting.leaving.is_none()
            && let Some((flow, message)) = waiting.waiting.front()
        {
            if !pass_on(*flow, message, local, endpoint) {
                return;
            }
            if self.plan.order == SendOrder::Sequential {
                waiting.leaving = Some(message.op);
            }
            waiting.waiting.pop_front();
            self.waiting -= 1;
        }
    }

    /// Returns the time at which the next computation ends, if it is earlier than the scheduled timeout.
    pub(super) fn new_timeout(&mut self) -> Option<Time> {
        let next = self.state.next_timeout();
        if next >= self.timeout {
            return None;
        }
        self.timeout = next;
        Some(next)
    }

    /// Returns the operations that have not ended by `until`. The LogGOPS model knows ends in advance.
    pub(super) fn unfinished(&self, until: Time) -> impl Iterator<Item = u32> + '_ {
        let times = self.state.times();
        let later = move |op: &u32| times.is_some_and(|times| times[*op as usize].end > until);
        let is_done = |op: &u32| self.state.progress(*op) == Progress::Done;
        (0..self.state.program().len() as u32).filter(move |op| !is_done(op) || later(op))
    }

    /// Returns `true` once, when all operations are done.
    pub(super) fn ends(&mut self, now: Time) -> bool {
        let ends = self.ended_at.is_none() && self.state.is_done();
        if ends {
            self.account(now);
            self.ended_at = Some(now);
        }
        ends
    }
}
