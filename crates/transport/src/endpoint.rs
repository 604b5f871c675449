//! One host's end of the transport: its flows, their packets to send, and their timers.
//!
//! The caller owns sockets, clocks and threads and drives the endpoint:
//!
//! 1. `submit` ops; `handle_packet` for each packet that arrives; `handle_timeout` at
//!    `next_timeout`.
//! 2. After any of these, call `poll_transmit` (or `poll_ack` and `poll_data` separately) until it
//!    returns `None`, as far as the NIC accepts packets; then `poll_completion` until `None`.
//! 3. `next_timeout` then returns when to call again without another event.
//!
//! Several packets handled before the next poll yield one acknowledgement per flow (Swift §3.6); an
//! acknowledgement is never queued behind data.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use apus_cc::{AlgorithmFactory, CongestionHeader, Ev, FlowInfo, Sender, Snapshot, Telemetry};
use apus_units::{FlowId, OpId, PacketNumber, Ring, Time};
use apus_wire::{Body, Header};

use crate::config::EndpointConfig;
use crate::control::Listed;
use crate::flow::{Flow, FlowCounters, Life, Readiness, RttSample, Silence, Waiting};
use crate::op::{Completion, Op, OpKind, Outcome, SubmitError};
use crate::spread::{EvCounters, Path, Spread, SpreadConfig};
use crate::wheel::TimingWheel;
use control::Way;
use grants::Grants;
use waiting::WaitingFlows;

mod arrivals;
mod control;
mod grants;
mod polls;
mod trimmed;
mod waiting;

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// The flow it belongs to.
    pub flow: FlowId,
    /// The header; a data segment states the op and the range of the payload.
    pub header: Header,
    /// The congestion fields.
    pub congestion: CongestionHeader,
    /// The path it should take.
    pub path: Path,
}

/// The kind of an arrived packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// Data with `bytes` new payload bytes; `finished` if they were the last of the op.
    Data {
        /// New payload bytes (the payload is to be stored if this is not 0).
        bytes: u64,
        /// Whether the op is complete at this side.
        finished: bool,
    },
    /// An atomic op of the peer, for the first and only time: execute it now, then call
    /// [`Endpoint::answer_atomic`], or [`Endpoint::refuse_answer`] if it could not be executed.
    Atomic,
    /// Data that had arrived before: acknowledged, not stored.
    Duplicate,
    /// Data behind a gap, dropped under go-back-N; `told` if the sender must be informed of the
    /// gap, which happens once.
    OutOfOrder {
        /// Whether an acknowledgement reports the gap now.
        told: bool,
    },
    /// The peer cancelled an op that is not complete: its stored bytes can be dropped.
    Cancelled,
    /// The peer refused an op, which ends here with [`Outcome::Rejected`].
    Rejected,
    /// The header of a data packet that a switch trimmed. The payload is missing here, and the sender
    /// is informed. (If it is here already, the packet is a [`Handled::Duplicate`].)
    Trimmed,
    /// An acknowledgement; the delays of the packet it echoes, if they are known.
    Ack(Option<RttSample>),
    /// A negative acknowledgement; `outstanding` if the trimmed packet was in flight and will be
    /// retransmitted, now or at its timeout ([`EndpointConfig::backs_off_after`]).
    Nack {
        /// Whether the trimmed packet was in flight.
        outstanding: bool,
    },
    /// A congestion signal from a switch.
    Signal,
    /// A credit.
    Credit {
        /// Whether there is a packet to send for the credit; otherwise it is wasted.
        used: bool,
    },
    /// A control packet other than a credit.
    Control,
    /// A packet for a flow that is not open, or beyond the limits of a peer: no effect, not even an
    /// acknowledgement.
    Refused,
}

/// Levels of the timer wheel: 64^6 slots of 131 ns are 2.5 hours.
const WHEEL_LEVELS: u32 = 6;
/// 64 slots per level: an endpoint's wheel stays within a few kilobytes.
const WHEEL_LOG2_SLOTS: u32 = 6;
/// Maximum number of timers that [`Endpoint::settle_timers`] examines. deviation: no source; waking
/// a thread takes longer than examining them, and an endpoint with more busy flows has a timer that
/// is due soon.
const MAX_SETTLED_TIMERS: usize = 8;

/// A host's end of the transport.
#[derive(Debug)]
pub struct Endpoint<F: AlgorithmFactory> {
    config: EndpointConfig,
    flows: Vec<Flow<F>>,
    /// Indices of flows that were released.
    free: Vec<FlowId>,
    /// Refusals of ops, and negative acknowledgements of trimmed packets, that are due.
    refusals: VecDeque<(FlowId, Body, Way)>,
    /// Flows with an acknowledgement due, with control packets, with read or atomic requests, and
    /// with data that may be sent; each queue is served round-robin.
    acks: Ring<FlowId>,
    controls: Ring<FlowId>,
    requests: Ring<FlowId>,
    ready: Ring<FlowId>,
    /// Flows that were in `ready` and wait for a port of the host; they are served before those in
    /// `ready`.
    waiting: WaitingFlows,
    completions: VecDeque<Completion>,
    wheel: TimingWheel<WHEEL_LOG2_SLOTS>,
    expired: Vec<(Time, u32)>,
    /// Turns of receiver halves, if the algorithm of any flow needs turns.
    grants: Option<Box<Grants>>,
    /// A lower bound of the wheel's next deadline.
    next_timeout: Time,
    /// The latest time at which any flow was evaluated.
    looked_at: Time,
}

impl<F: AlgorithmFactory> Endpoint<F> {
    /// Returns an endpoint without flows.
    #[must_use]
    pub fn new(config: EndpointConfig) -> Self {
        Self {
            config,
            flows: Vec::new(),
            free: Vec::new(),
            refusals: VecDeque::new(),
            acks: Ring::default(),
            controls: Ring::default(),
            requests: Ring::default(),
            ready: Ring::default(),
            waiting: WaitingFlows::default(),
            completions: VecDeque::new(),
            wheel: TimingWheel::new(config.timer_granularity_log2_ps, WHEEL_LEVELS),
            expired: Vec::new(),
            grants: None,
            next_timeout: Time::MAX,
            looked_at: Time::ZERO,
        }
    }

    /// Reserves memory for exactly this total number of flows, which take most of an endpoint's
    /// memory.
    pub fn reserve(&mut self, flows: usize) {
        self.flows.reserve_exact(flows.saturating_sub(self.flows.len()));
        // 2^32 flows would need terabytes of memory first.
        self.wheel.reserve(flows as u32);
    }

    /// Opens a flow whose index at the peer is `peer`, with both halves of `algorithm`, at a host with one port.
    pub fn open(&mut self, peer: FlowId, algorithm: &F, info: &FlowInfo) -> FlowId {
        self.open_at(peer, algorithm, info, 1)
    }

    /// Opens a flow like [`Endpoint::open`], at a host with several ports. Bit n of `ports` is set
    /// if data of the flow may arrive at port n; receiver halves take turns at the pace of these
    /// ports. [`FlowInfo::line_rate`] is the rate of these ports together.
    pub fn open_at(&mut self, peer: FlowId, algorithm: &F, info: &FlowInfo, ports: u64) -> FlowId {
        let (sender, receiver) = (algorithm.sender(info), algorithm.receiver(info));
        let mut flow = Flow::new(peer, sender, receiver, self.config.max_payload);
        if let Some(pace) = algorithm.grant_pace(info)
            && let Some(listed) = flow.listed()
        {
            let grants = self.grants.get_or_insert_with(|| Box::new(Grants::new()));
            listed.group = grants.group(ports, pace);
        }
        if let Some(id) = self.free.pop() {
            let place = &mut self.flows[id.index()];
            let listed = place.listed().copied();
            // The released flow may still be in the queues.
            let queued = (place.in_ready, place.in_requests, place.in_acks, place.in_controls);
            *place = flow;
            (place.in_ready, place.in_requests, place.in_acks, place.in_controls) = queued;
            if let (Some(now), Some(before)) = (place.listed(), listed) {
                *now = Listed { group: now.group, ..before };
            }
            return id;
        }
        // 2^32 flows would need terabytes of memory first.
        let id = FlowId::new(self.flows.len() as u32);
        self.flows.push(flow);
        id
    }

    /// Lets a flow spread its packets over several paths, which a path policy chooses. Call it
    /// before anything is sent or received on the flow, at both ends. Not for flows that are
    /// credit-based or recover by go-back-N.
    pub fn spread(&mut self, id: FlowId, policy: F::Path, config: SpreadConfig, seed: u64) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.set_spread(Spread::new(policy, config, seed));
        }
    }

    /// Sets the number of ports by which packets of a flow that [spreads](Self::spread) them leave
    /// a host with several ports: [`EndpointConfig::flow_rate`] is the rate of one port. An entropy
    /// value modulo the number of pairs of ports names the pair of a packet
    /// ([`Endpoint::poll_data_of`]); if `pairs` is 0, it names none.
    pub fn set_ports(&mut self, id: FlowId, ports: u32, pairs: usize) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.set_ports(ports, pairs);
        }
    }

    /// Counts the packets of a flow that [spreads](Self::spread) them by their entropy value modulo `values`
    /// ([`Endpoint::ev_counters`]).
    pub fn count_evs(&mut self, id: FlowId, values: usize) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.count_evs(values);
        }
    }

    /// Reports packets whose fabric delay was above the target delay of the flow's algorithm to the
    /// path policy as if they had been marked, for networks that do not mark. Has no effect with
    /// algorithms that have no target delay.
    pub fn mark_late(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.mark_late();
        }
    }

    /// Sets [`EvCounters::failures`] of an entropy value to 0.
    pub fn forgive(&mut self, id: FlowId, ev: Ev) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.forgive(ev);
        }
    }

    /// Returns the counters of a flow's packets by entropy value; none unless [`Endpoint::count_evs`] was called.
    #[must_use]
    pub fn ev_counters(&self, id: FlowId) -> &[EvCounters] {
        self.flows.get(id.index()).map_or(&[], Flow::ev_counters)
    }

    /// Replaces the entropy value of the data packet that was polled last, because it leaves by
    /// another path than the policy chose. The policy then learns the fate of the packet on the
    /// path that it really takes.
    pub fn replace_ev(&mut self, id: FlowId, seq: PacketNumber, ev: Ev) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.replace_ev(seq, ev);
        }
    }

    /// Returns the entropy value of a packet of a flow with a policy, and the time at which it
    /// left, while the packet is recorded.
    pub fn sent_by(&mut self, id: FlowId, seq: PacketNumber) -> Option<(Ev, Time)> {
        self.flows.get_mut(id.index())?.sent_by(seq)
    }

    /// Returns the entropy value of the packet of a flow that was polled last; `None` if the flow has no policy.
    #[must_use]
    pub fn latest_ev(&self, id: FlowId) -> Option<Ev> {
        match self.flows.get(id.index())?.path() {
            Path::Spread(ev) => Some(ev),
            Path::Label(_) | Path::Back(_) => None,
        }
    }

    /// Returns `true` if the acknowledgements that are due must be polled before this data packet,
    /// which arrived by `path`, is handled. Otherwise one acknowledgement would have to report
    /// packets of several paths, or more packet numbers than it has room for. An acknowledgement
    /// informs the peer's policy about one path only.
    #[inline]
    #[must_use]
    pub fn must_ack_before(&self, header: &Header, path: u32) -> bool {
        matches!(header.body, Body::Data(_))
            && self
                .flows
                .get(header.flow.index())
                .is_some_and(|flow| flow.must_ack_before(header.seq, path))
    }

    /// Submits an op. Poll for transmission afterwards.
    ///
    /// # Errors
    /// If the flow is not open or has too many outstanding ops, or no packet can express the op;
    /// then nothing has changed.
    pub fn submit(&mut self, now: Time, id: FlowId, op: Op) -> Result<OpId, SubmitError> {
        let flow =
            self.flows.get_mut(id.index()).filter(|f| f.is_open()).ok_or(SubmitError::NoFlow)?;
        op.check()?;
        if flow.send.ops_under_way() >= self.config.max_ops as usize {
            return Err(SubmitError::TooManyOps);
        }
        let op = flow.send.submit(now, op);
        self.update(now, id);
        Ok(op)
    }

    /// Submits the exchange that sets up a connection, as TCP does with SYN and SYN-ACK: an empty
    /// message marked `user`, which ends when its acknowledgement arrives. Until then no
    /// acknowledgement is reported to the algorithm, because the first window is that of the first
    /// data packets (RFC 5681 §3.1). Call it before the first op is submitted, and submit the next
    /// op only after its completion.
    ///
    /// # Errors
    /// As [`Endpoint::submit`].
    pub fn connect(&mut self, now: Time, id: FlowId, user: u64) -> Result<OpId, SubmitError> {
        let op = self.submit(now, id, Op { kind: OpKind::Message, length: 0, user })?;
        self.flows[id.index()].connecting = true;
        Ok(op)
    }

    /// Runs all timers due at `now`: pacing and retransmission timeouts.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.next_timeout {
            return;
        }
        let mut expired = core::mem::take(&mut self.expired);
        while self.wheel.pop_slot(now, &mut expired) {
            // The order within a slot is an implementation detail of the wheel, and results must
            // not depend on it. Credits leave in the order in which they are due: where ports drop
            // most credits, the first one of a slot would otherwise always belong to the same flow.
            let flows = &self.flows;
            expired.sort_unstable_by_key(|&(_, key)| {
                let due = flows.get(key as usize).map(|flow| flow.next_control());
                (due, key)
            });
            for (_, key) in expired.drain(..) {
                self.on_timer(now, FlowId::new(key));
            }
        }
        self.expired = expired;
        self.run_turns(now);
        self.next_timeout = self.wheel.next_at().unwrap_or(Time::MAX).min(self.next_turn());
        // The next flow to expire is known long before its deadline, so its memory can be loaded
        // now.
        if let Some(next) = self.wheel.next_key().and_then(|key| self.flows.get(key as usize)) {
            next.prefetch(false);
        }
    }

    fn on_timer(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id.index()) else { return };
        flow.send.prefetch_next();
        flow.timer = Time::MAX;
        if flow.give_up_at(&self.config).is_some_and(|at| at <= now) {
            self.abort(now, id);
            return;
        }
        if flow.algorithm.next_timer().is_some_and(|at| at <= now) {
            flow.algorithm.on_timer(now);
        }
        match flow.timeout_at() {
            Some(at) if at <= now => flow.on_timeout(now, &self.config),
            Some(_) => {}
            // Acknowledgements do not move the timer, so its expiry shows that a flow has become
            // idle.
            None => flow.send.free_empty_queues(),
        }
        self.update(now, id);
    }

    /// Returns the latest time for the next call of [`Endpoint::handle_timeout`]; `None` without
    /// timers. The time may be too early, but never too late, and changes with every call that
    /// takes `&mut self`.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        (self.next_timeout != Time::MAX).then_some(self.next_timeout)
    }

    /// Determines the exact time of the next timer, so that a caller that sleeps until
    /// [`Endpoint::next_timeout`] does not wake up too early: acknowledgements do not move timers,
    /// and of a distant timer only the slot is known. Examines a few timers only, and changes
    /// nothing else.
    pub fn settle_timers(&mut self) {
        for _ in 0..MAX_SETTLED_TIMERS {
            let Some(key) = self.wheel.next_key() else {
                self.next_timeout = self.next_turn();
                return;
            };
            let Some(flow) = self.flows.get_mut(key as usize) else { return };
            // A flow with data may be paced.
            let due = match flow.send.has_data() {
                true => flow.timer,
                false => {
                    flow.next_timer(Readiness::Waiting, &flow.algorithm.outlook(), &self.config)
                }
            };
            if due <= flow.timer {
                break;
            }
            if due == Time::MAX {
                flow.timer = Time::MAX;
                // As at the expiry of its timer.
                flow.send.free_empty_queues();
                self.wheel.cancel(key);
            } else {
                self.arm(FlowId::new(key), due);
            }
        }
        let timer = self.wheel.next_deadline(MAX_SETTLED_TIMERS).unwrap_or(Time::MAX);
        self.next_timeout = timer.min(self.next_turn());
    }

    /// Ends a flow whose peer is gone: unsent ops fail, the outcome of all other ops is unknown.
    pub fn abort(&mut self, now: Time, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id.index()) else { return };
        if flow.is_open() {
            flow.life = Life::Ended;
        }
        flow.can_send = false;
        let completions = &mut self.completions;
        flow.send.abort(|f, sent| {
            let outcome = if sent { Outcome::Unknown } else { Outcome::Failed };
            completions.push_back(Completion { outcome, ..f.completion(id, now) });
        });
        self.wheel.cancel(id.get());
    }

    /// Returns the telemetry that an acknowledgement of a flow returns to its peer. Called for each
    /// acknowledgement whose congestion fields say that it returns telemetry.
    #[must_use]
    pub fn telemetry(&self, id: FlowId) -> Option<&Telemetry> {
        self.flows.get(id.index()).and_then(|flow| flow.receive.telemetry())
    }

    /// Returns the state of a flow's algorithm, for samples.
    #[must_use]
    pub fn snapshot(&self, id: FlowId) -> Option<Snapshot> {
        self.flows.get(id.index()).map(|f| f.algorithm.snapshot())
    }

    /// Returns the counters of a flow's sent and lost packets.
    #[must_use]
    pub fn counters(&self, id: FlowId) -> Option<FlowCounters> {
        self.flows.get(id.index()).map(|f| f.send.counters())
    }

    /// Returns the number of a flow's data packets in flight.
    #[must_use]
    pub fn in_flight(&self, id: FlowId) -> Option<u32> {
        self.flows.get(id.index()).map(|f| f.send.in_flight)
    }

    /// Returns the state of a flow with outstanding ops, for reports of runs without progress;
    /// `None` without outstanding ops.
    #[must_use]
    pub fn waiting(&self, now: Time, id: FlowId) -> Option<Waiting> {
        self.flows.get(id.index()).and_then(|flow| flow.waiting(now))
    }

    /// Returns how long a flow with outstanding ops has received nothing from its peer; `None`
    /// without outstanding ops.
    #[must_use]
    pub fn silence(&self, id: FlowId) -> Option<Silence> {
        self.flows.get(id.index()).and_then(|flow| flow.silence())
    }

    /// Returns the ops of a flow that were submitted here and have not ended, the oldest first, each with the
    /// time of its submission.
    pub fn open_ops(&self, id: FlowId) -> impl Iterator<Item = (&Op, Time)> {
        self.flows.get(id.index()).into_iter().flat_map(|flow| flow.send.open_ops())
    }

    /// Returns the number of ops of a flow that were submitted here and have not ended.
    #[must_use]
    pub fn ops_under_way(&self, id: FlowId) -> Option<usize> {
        self.flows.get(id.index()).map(|f| f.send.ops_under_way())
    }

    /// Moves the flow to the right queue after a change: the flows that can send, or the wheel.
    fn update(&mut self, now: Time, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        if !flow.is_open() {
            return;
        }
        flow.free_settled();
        if flow.may_request() {
            enqueue(&mut self.requests, &mut flow.in_requests, id);
        }
        if flow.prepare_control(now) {
            enqueue(&mut self.controls, &mut flow.in_controls, id);
        }
        let (readiness, outlook) = flow.outlook(now, &self.config);
        flow.path_label = outlook.path_label;
        flow.can_send = readiness == Readiness::Ready;
        if flow.can_send {
            enqueue(&mut self.ready, &mut flow.in_ready, id);
        }
        self.looked_at = self.looked_at.max(now);
        let (due, armed) = (flow.next_timer(readiness, &outlook, &self.config), flow.timer);
        // A timer that is due earlier than armed must move. A timer that is due later expires as
        // armed and is armed again then, so that an acknowledgement costs no work in the wheel.
        if due < armed {
            self.arm(id, due);
        }
    }

    /// Updates an open flow without control packets after a data packet has left that was not the
    /// only one in flight: its timeouts are unchanged, and it has no more to send than before.
    #[inline]
    fn update_after_data(&mut self, now: Time, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        let readiness = flow.readiness(now, &self.config);
        flow.can_send = readiness == Readiness::Ready;
        if flow.can_send {
            enqueue(&mut self.ready, &mut flow.in_ready, id);
        }
        self.looked_at = self.looked_at.max(now);
        let (due, armed) = (flow.next_timer_of_pace(readiness), flow.timer);
        if due < armed {
            self.arm(id, due);
        }
    }

    /// Arms the wheel to update the flow at `due`.
    #[inline(never)] // rare compared with the updates
    fn arm(&mut self, id: FlowId, due: Time) {
        self.flows[id.index()].timer = due;
        let at = self.round_up(due);
        self.wheel.insert(id.get(), at);
        self.next_timeout = self.next_timeout.min(at);
    }

    /// Returns the start of the wheel's slot at or after `at`, so that no timer fires early.
    fn round_up(&self, at: Time) -> Time {
        let mask = (1u64 << self.config.timer_granularity_log2_ps) - 1;
        Time::from_ps(at.as_ps().saturating_add(mask) & !mask)
    }
}

/// Adds a flow to a queue unless it is in the queue already.
#[inline]
fn enqueue(queue: &mut Ring<FlowId>, is_in: &mut bool, id: FlowId) {
    if !core::mem::replace(is_in, true) {
        queue.push_back(id);
    }
}
