//! Applications of a host: the sources of ops of its flows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::mem::size_of;
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_transport::{Completion, Endpoint, Op, Outcome};
use apus_units::{Bytes, FlowId, OpId, Span, Time};

use crate::plan::{ConnectionPlan, Load, OpArrival, OpType};

/// Submits ops to one flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) flow: FlowId,
    pub(crate) start: Time,
    pub(crate) stop: Time,
    pub(crate) kind: OpType,
    pub(crate) feed: Feed,
    /// Whether the flow sets up a connection before the first op of an open loop.
    pub(crate) handshake: bool,
}

/// Rule by which a source submits ops.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Feed {
    /// A constant number of outstanding ops, from the start. A completion submits the next op.
    Closed { size: Bytes, outstanding: u32 },
    /// Each op at its own time.
    Open(Arrivals),
    /// One op per round of the group, which the peer answers.
    Ask { request: Bytes, answer: Bytes, group: u32 },
    /// One op per op that arrives from the peer.
    Answer { size: Bytes },
}

/// The ops of an open loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arrivals {
    /// Ops of the plan.
    Planned(Arc<[OpArrival]>),
    /// Ops that were read during the run and are not submitted yet.
    #[expect(clippy::box_collection, reason = "no more than the others in a million sources")]
    Read(Box<VecDeque<OpArrival>>),
}

impl Arrivals {
    fn len(&self) -> usize {
        match self {
            Self::Planned(arrivals) => arrivals.len(),
            Self::Read(arrivals) => arrivals.len(),
        }
    }

    fn get(&self, place: usize) -> Option<OpArrival> {
        match self {
            Self::Planned(arrivals) => arrivals.get(place).copied(),
            Self::Read(arrivals) => arrivals.get(place).copied(),
        }
    }
}

impl Source {
    /// Returns the source at the first host of the connection; `None` if a job submits its ops.
    pub(crate) fn of<F: AlgorithmFactory>(
        connection: &ConnectionPlan<F>,
        flow: FlowId,
    ) -> Option<Self> {
        let feed = match &connection.load {
            Load::Closed { size, outstanding } => {
                Feed::Closed { size: *size, outstanding: *outstanding }
            }
            Load::Open(arrivals) => Feed::Open(Arrivals::Planned(Arc::clone(arrivals))),
            Load::Round { request, answer, group } => {
                Feed::Ask { request: *request, answer: *answer, group: *group }
            }
            Load::Job { .. } => return None,
        };
        let ConnectionPlan { start, stop, kind, .. } = *connection;
        let handshake = connection.handshake && matches!(feed, Feed::Open(_));
        Some(Self { flow, start, stop, kind, feed, handshake })
    }

    /// Returns the source at the peer, if the peer also submits ops.
    pub(crate) fn of_peer<F: AlgorithmFactory>(
        connection: &ConnectionPlan<F>,
        flow: FlowId,
    ) -> Option<Self> {
        let Load::Round { answer, .. } = connection.load else { return None };
        let feed = Feed::Answer { size: answer };
        let (start, stop, kind) = (Time::MAX, Time::MAX, connection.kind);
        Some(Self { flow, start, stop, kind, feed, handshake: false })
    }
}

/// Progress of the exchange that sets up a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// Due before the first op.
    Due,
    /// The packet is sent.
    UnderWay,
    /// Over, or not required.
    Over,
}

/// Op number of the exchange within its source. A run has fewer ops than this number.
const HANDSHAKE: u32 = u32::MAX;

/// A source and its progress.
#[derive(Debug)]
struct State {
    flow: FlowId,
    handshake: Handshake,
    /// End of submission.
    stop: Time,
    kind: OpType,
    feed: Feed,
    /// Number of due ops that the flow could not accept. The flow limits the span of outstanding op numbers.
    /// If ops complete out of order, it can therefore refuse an op that the count of the loop would allow.
    owed: u32,
    /// Number of ops that an open loop or the rounds have submitted so far.
    submitted: u32,
    /// Number of the first op that an open loop holds.
    first: u32,
    /// By op number: time that an outstanding op of an open loop waited until the flow accepted it. Ops that
    /// did not wait have no entry.
    #[expect(clippy::box_collection, reason = "a word in each of a million sources, not three")]
    waits: Option<Box<BTreeMap<u32, Span>>>,
    /// Time at which the last op of a round was submitted, on the host's clock; [`Time::MAX`] if no answer is awaited.
    submitted_at: Time,
}

/// Bytes of memory of a source and of its entry in the list of pending sources.
pub(crate) const BYTES_PER_SOURCE: usize = size_of::<State>() + size_of::<Reverse<(Time, usize)>>();

impl State {
    fn next_size(&self) -> Bytes {
        match &self.feed {
            Feed::Closed { size, .. } | Feed::Answer { size } => *size,
            Feed::Ask { request, .. } => *request,
            Feed::Open(arrivals) => {
                arrivals.get(self.place(self.submitted)).map_or(Bytes::ZERO, |a| a.size)
            }
        }
    }

    /// Returns the index of an op among the ops that the open loop holds.
    fn place(&self, op: u32) -> usize {
        op.wrapping_sub(self.first) as usize
    }
}

/// Connections of one master that form rounds.
#[derive(Debug, Default)]
struct Group {
    members: Vec<usize>,
    unanswered: usize,
}

/// The capacity for this number of pending sources is never released.
const SMALL: usize = 64;

/// All sources of a host.
#[derive(Debug, Default)]
pub(crate) struct Application {
    states: Vec<State>,
    /// Sources with a time of action that is known in advance, the earliest first.
    pending: BinaryHeap<Reverse<(Time, usize)>>,
    groups: BTreeMap<u32, Group>,
    /// By flow: source to which an arriving op belongs.
    listeners: BTreeMap<FlowId, usize>,
}

impl Application {
    /// Reserves capacity for this number of sources.
    pub(crate) fn reserve(&mut self, sources: usize) {
        self.states.reserve_exact(sources);
        self.pending.reserve_exact(sources);
    }

    pub(crate) fn add(&mut self, source: Source) {
        let index = self.states.len();
        match &source.feed {
            Feed::Ask { group, .. } => {
                let group = self.groups.entry(*group).or_default();
                group.members.push(index);
                group.unanswered += 1;
                self.listeners.insert(source.flow, index);
            }
            Feed::Answer { .. } => {
                self.listeners.insert(source.flow, index);
            }
            Feed::Closed { .. } | Feed::Open(_) => {}
        }
        let first = match &source.feed {
            Feed::Open(arrivals) => arrivals.get(0).map(|a| a.at).filter(|at| *at < source.stop),
            Feed::Answer { .. } => None,
            Feed::Closed { .. } | Feed::Ask { .. } => Some(source.start),
        };
        if let Some(at) = first {
            self.pending.push(Reverse((at, index)));
        }
        let Source { flow, stop, kind, feed, handshake, .. } = source;
        let (waits, submitted_at) = (None, Time::MAX);
        self.states.push(State {
            flow,
            handshake: if handshake { Handshake::Due } else { Handshake::Over },
            stop,
            kind,
            feed,
            owed: 0,
            submitted: 0,
            first: 0,
            waits,
            submitted_at,
        });
    }

    /// Returns the earliest time of action of any source, as far as it is known in advance; [`Time::MAX`] if
    /// there is none.
    #[inline]
    pub(crate) fn next_start(&self) -> Time {
        self.pending.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Runs the sources that are due at the true time `now`, which is `local` on the host's clock.
    pub(crate) fn start_due<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        while self.next_start() <= now {
            let Some(Reverse((_, index))) = self.pending.pop() else { break };
            let state = &mut self.states[index];
            match &state.feed {
                Feed::Closed { outstanding, .. } => state.owed = *outstanding,
                Feed::Ask { .. } | Feed::Answer { .. } => state.owed = 1,
                Feed::Open(arrivals) => {
                    let came = state.place(state.submitted + state.owed + 1);
                    let next = arrivals.get(came);
                    state.owed += 1;
                    if let Some(next) = next
                        && next.at < state.stop
                    {
                        self.pending.push(Reverse((next.at, index)));
                    }
                }
            }
            self.submit(index, now, local, endpoint);
            // The heap shrinks, because sources that have started need no entry: there may be a million of them.
            let room = self.pending.capacity();
            if room > SMALL && self.pending.len() < room / 4 {
                self.pending.shrink_to(room / 2);
            }
        }
    }

    /// Handles the completion of an op: its source may submit the next one. Returns the record of the op. If
    /// an op was queued, its latency counts from its arrival. Requests and answers are not recorded
    /// individually.
    #[inline]
    pub(crate) fn on_completion<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        completion: &Completion,
        endpoint: &mut Endpoint<F>,
    ) -> Option<Completion> {
        // `submit` stored the number of the op and the index of the source in the two halves.
        let index = (completion.submitted.user & u64::from(u32::MAX)) as usize;
        let number = (completion.submitted.user >> 32) as u32;
        let state = &mut self.states[index];
        let mut noted = *completion;
        match state.feed {
            Feed::Closed { .. } => {
                if now < state.stop {
                    state.owed += 1;
                }
            }
            Feed::Open(_) if number == HANDSHAKE => {
                state.handshake = Handshake::Over;
                self.submit(index, now, local, endpoint);
                return None;
            }
            Feed::Open(_) => {
                if let Some(wait) = state.waits.as_mut().and_then(|waits| waits.remove(&number)) {
                    noted.submitted_at = noted.submitted_at.saturating_sub(wait);
                }
            }
            Feed::Ask { .. } | Feed::Answer { .. } => {
                self.submit(index, now, local, endpoint);
                return None;
            }
        }
        self.submit(index, now, local, endpoint);
        Some(noted)
    }

    /// Handles an op of the peer that has arrived in full on `flow`: a request to answer, or an answer. An
    /// answer is recorded as an op, from the submission of the request to the last byte of the answer.
    #[inline]
    pub(crate) fn on_received<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        local: Time,
        flow: FlowId,
        endpoint: &mut Endpoint<F>,
    ) -> Option<Completion> {
        if self.listeners.is_empty() {
            return None;
        }
        let index = *self.listeners.get(&flow)?;
        let state = &mut self.states[index];
        let Feed::Ask { answer, group, .. } = state.feed else {
            state.owed += 1;
            self.submit(index, now, local, endpoint);
            return None;
        };
        let completion = Completion {
            flow,
            op: OpId::new(u64::from(state.submitted.saturating_sub(1))),
            submitted: Op { kind: state.kind.op(), length: answer.get(), user: index as u64 },
            submitted_at: state.submitted_at,
            completed_at: local,
            outcome: Outcome::Done,
        };
        state.submitted_at = Time::MAX;
        if let Some(group) = self.groups.get_mut(&group) {
            group.unanswered = group.unanswered.saturating_sub(1);
            if group.unanswered == 0 {
                group.unanswered = group.members.len();
                for index in group.members.clone() {
                    if now < self.states[index].stop {
                        self.states[index].owed += 1;
                        self.submit(index, now, local, endpoint);
                    }
                }
            }
        }
        Some(completion)
    }

    /// Appends later ops to an open loop, and removes the ops that it has submitted.
    pub(crate) fn extend(&mut self, source: usize, more: Vec<OpArrival>) {
        let state = &mut self.states[source];
        let (Feed::Open(arrivals), Some(first)) = (&mut state.feed, more.first()) else { return };
        let submitted = state.submitted.wrapping_sub(state.first) as usize;
        if arrivals.len() - submitted == state.owed as usize && first.at < state.stop {
            self.pending.push(Reverse((first.at, source)));
        }
        match arrivals {
            Arrivals::Planned(planned) => {
                let held = planned[submitted..].iter().copied().chain(more).collect();
                *arrivals = Arrivals::Read(Box::new(held));
                state.first = state.submitted;
            }
            // Not longer than what it holds.
            Arrivals::Read(held) if held.is_empty() => **held = more.into(),
            Arrivals::Read(held) => held.extend(more),
        }
    }

    /// Returns the flow of a source.
    pub(crate) fn flow_of(&self, source: usize) -> FlowId {
        self.states[source].flow
    }

    /// Returns the number of sources.
    pub(crate) fn sources(&self) -> usize {
        self.states.len()
    }

    /// Calls `visit` with the flow, the size and the age of each unfinished op of a source at the true time
    /// `now`, which is `local` on the host's clock. Queued ops of an open loop are included.
    pub(crate) fn open_ops<F: AlgorithmFactory>(
        &self,
        source: usize,
        (now, local): (Time, Time),
        endpoint: &Endpoint<F>,
        mut visit: impl FnMut(FlowId, u64, Span),
    ) {
        let state = &self.states[source];
        let mut submitted = |wait: &dyn Fn(&Op) -> Span| {
            let ops = endpoint.open_ops(state.flow);
            for (op, at) in ops.filter(|(op, _)| op.user >> 32 != u64::from(HANDSHAKE)) {
                visit(state.flow, op.length, local.since(at).saturating_add(wait(op)));
            }
        };
        match &state.feed {
            Feed::Closed { .. } => submitted(&|_| Span::ZERO),
            Feed::Open(arrivals) => {
                let waits = state.waits.as_deref();
                let waited = |op: &Op| waits?.get(&((op.user >> 32) as u32)).copied();
                submitted(&|op| waited(op).unwrap_or(Span::ZERO));
                let first = state.place(state.submitted);
                let owed = first..first + state.owed as usize;
                for arrival in owed.filter_map(|place| arrivals.get(place)) {
                    visit(state.flow, arrival.size.get(), now.since(arrival.at));
                }
            }
            Feed::Ask { answer, .. } if state.submitted_at < Time::MAX => {
                visit(state.flow, answer.get(), local.since(state.submitted_at));
            }
            Feed::Ask { .. } | Feed::Answer { .. } => {}
        }
    }

    /// Submits the due ops of a source, as far as its flow accepts them.
    fn submit<F: AlgorithmFactory>(
        &mut self,
        index: usize,
        now: Time,
        local: Time,
        endpoint: &mut Endpoint<F>,
    ) {
        let state = &mut self.states[index];
        if state.handshake == Handshake::Due {
            let user = index as u64 | u64::from(HANDSHAKE) << 32;
            if endpoint.connect(local, state.flow, user).is_ok() {
                state.handshake = Handshake::UnderWay;
            }
        }
        if state.handshake != Handshake::Over {
            return;
        }
        while state.owed > 0 {
            let (length, number) = (state.next_size().get(), state.submitted);
            let user = index as u64 | u64::from(number) << 32;
            let op = Op { kind: state.kind.op(), length, user };
            if endpoint.submit(local, state.flow, op).is_err() {
                return;
            }
            state.owed -= 1;
            let place = state.place(number);
            match &mut state.feed {
                Feed::Closed { .. } => {}
                Feed::Open(arrivals) => {
                    let wait = arrivals.get(place).map_or(Span::ZERO, |a| now.since(a.at));
                    state.submitted += 1;
                    if let Arrivals::Read(held) = arrivals {
                        held.pop_front();
                        state.first = state.submitted;
                    }
                    if !wait.is_zero() {
                        state.waits.get_or_insert_default().insert(number, wait);
                    }
                }
                Feed::Ask { .. } | Feed::Answer { .. } => {
                    state.submitted = state.submitted.wrapping_add(1);
                    state.submitted_at = local;
                }
            }
        }
    }
}
