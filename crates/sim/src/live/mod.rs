//! A simulation driven by another program, which sends messages between ranks during the run and learns of their ends.
//!
//! [`Live`] uses no callbacks. [`Live::next`] advances the simulated time to the next event for the program
//! and returns the event. Therefore a program may send while it handles an event, and no call is nested in
//! another one. Events of the same time come in the order in which they were caused. Results depend only on
//! the plan and the calls.

mod matching;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use apus_cc::{AlgorithmFactory, PathPolicy};
use apus_jobs::Message;
use apus_transport::MAX_OP_BYTES;
use apus_units::{Span, Time};

use crate::build::{PlanError, open_further};
use crate::detours::Detours;
use crate::faults::Faults;
use crate::jobs::{Happened, Step};
use crate::part::Part;
use crate::partition::Partition;
use crate::plan::{ConnectionPlan, JobPlan, Load, Plan};
use crate::reroutes::Reroutes;
pub use matching::Key;
use matching::{Matching, Receive};

/// Maximum number of messages and receives that a report lists.
const NAMED: usize = 8;

/// A rejected call; it has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveError(String);

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LiveError {}

/// Result of [`Live::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event of the program is due: the token that the program gave for it.
    Event(u64),
    /// The time that the program asked for, or the end of the scenario, has been reached.
    Reached,
    /// No event for the program is left. Without a time limit, other traffic does not continue.
    Idle,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    key: Key,
    bytes: u64,
    /// Token of the program for the end of the send.
    token: Option<u64>,
    /// Receive that takes the message.
    receive: Option<u64>,
    has_arrived: bool,
    /// Whether the send is done.
    is_sent: bool,
    is_acknowledged: bool,
}

impl Sent {
    /// Returns `true` if no further step of the message can occur.
    const fn is_over(&self) -> bool {
        self.has_arrived && self.is_sent && self.is_acknowledged
    }
}

/// A simulation that is driven by a program.
pub struct Live<F: AlgorithmFactory> {
    plan: Plan<F>,
    job: u32,
    /// Template for the connections of the program.
    like: ConnectionPlan<F>,
    /// The only part.
    parts: Vec<Part<F>>,
    faults: Faults,
    detours: Detours,
    reroutes: Reroutes,
    now: Time,
    end: Time,
    matching: Matching,
    /// By number of the message; free entries are `None`.
    messages: Vec<Option<Sent>>,
    free: Vec<u32>,
    /// Number of messages with further steps to come.
    under_way: usize,
    /// Events for the program: time, order, token.
    agenda: BinaryHeap<Reverse<(Time, u64, u64)>>,
    order: u64,
    /// By pair of ranks: whether its flows are open.
    pairs: BTreeSet<(u32, u32)>,
    happened: Vec<Happened>,
}

impl<F: AlgorithmFactory> Live<F> {
    /// Builds the simulation of a plan with exactly one external job, whose connections are like `like`.
    ///
    /// # Errors
    /// If the plan has no such job or several, or if its network cannot be built.
    pub fn new(plan: Plan<F>, like: ConnectionPlan<F>) -> Result<Self, PlanError> {
        let mut external = (0..).zip(&plan.jobs).filter(|(_, job)| job.is_external);
        let (Some((job, _)), None) = (external.next(), external.next()) else {
            return Err(PlanError::NotExternal);
        };
        for job in &plan.jobs {
            job.check_model(plan.host.loggops.as_ref()).map_err(PlanError::Job)?;
        }
        if plan.streamed.is_some() {
            return Err(PlanError::Ops(
                "a trace with `stream` cannot be read while a program drives the simulation; remove `stream`"
                    .to_owned(),
            ));
        }
        let mut network = crate::build::build_network(&plan)?;
        if let Some(rule) = like.spread.as_ref().and_then(|spread| spread.policy.at_switches()) {
            network.let_switches_choose(rule, plan.seed);
        }
        let partition = Partition::new(&network, 1);
        let mut part = Part::new(&plan, &partition, 0, network)?;
        part.use_queue();
        // No measurements are needed, because the program measures.
        part.world.op_times.end_measured(Time::ZERO);
        Ok(Self {
            job,
            like,
            faults: Faults::new(&plan.faults, plan.seed),
            detours: Detours::new(&plan),
            reroutes: Reroutes::new(&plan),
            now: Time::ZERO,
            end: Time::ZERO + plan.duration,
            parts: vec![part],
            plan,
            matching: Matching::default(),
            messages: Vec::new(),
            free: Vec::new(),
            under_way: 0,
            agenda: BinaryHeap::new(),
            order: 0,
            pairs: BTreeSet::new(),
            happened: Vec::new(),
        })
    }

    fn job(&self) -> &Arc<JobPlan> {
        &self.plan.jobs[self.job as usize]
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.job().graph.ranks()
    }

    /// Returns the simulated time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the end of the scenario. The simulated time never passes it.
    #[must_use]
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the number of events of the network so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.handled.events).sum()
    }

    /// Sends a message now. `token` is returned when the send is done by the rule of the job.
    ///
    /// # Errors
    /// If a rank does not exist; if the message is empty, longer than [`MAX_OP_BYTES`] or to its sender; or
    /// if the receive that takes it has another size.
    pub fn send(&mut self, key: Key, bytes: u64, token: Option<u64>) -> Result<(), LiveError> {
        self.check(key, bytes)?;
        let receive = self.matching.next_receive(key);
        if let Some(receive) = receive.filter(|receive| receive.bytes != bytes) {
            return Err(mismatch(key, bytes, receive.bytes));
        }
        self.open(key.from, key.to)?;
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.messages.push(None);
                // 2^32 messages would first need hundreds of gigabytes.
                (self.messages.len() - 1) as u32
            }
        };
        let receive = self.matching.send(key, number).map(|receive| receive.token);
        let sent = Sent {
            key,
            bytes,
            token,
            receive,
            has_arrived: false,
            is_sent: false,
            is_acknowledged: false,
        };
        self.messages[number as usize] = Some(sent);
        self.under_way += 1;
        let host = self.job().hosts[key.from as usize];
        let Part { hosts, world, .. } = &mut self.parts[0];
        let message = Message { op: number, to: key.to, bytes, tag: 0, nic: 0 };
        hosts[host.index()].send_from_outside(self.now, (self.job, key.from), message, world);
        Ok(())
    }

    /// Posts a receive now. `token` is returned when its message has arrived. The n-th receive of a key takes
    /// the n-th message of the key, whether it was sent before or is sent later.
    ///
    /// # Errors
    /// If a rank does not exist; if the receive is empty, longer than [`MAX_OP_BYTES`] or from its own rank;
    /// or if the message that it takes has another size.
    pub fn receive(&mut self, key: Key, bytes: u64, token: u64) -> Result<(), LiveError> {
        self.check(key, bytes)?;
        let message = self.matching.next_message(key);
        if let Some(sent) = message.and_then(|number| self.messages[number as usize])
            && sent.bytes != bytes
        {
            return Err(mismatch(key, sent.bytes, bytes));
        }
        if let Some(number) = self.matching.receive(key, Receive { bytes, token })
            && let Some(sent) = &mut self.messages[number as usize]
        {
            sent.receive = Some(token);
            if sent.has_arrived {
                self.plan_event(self.now, token);
            }
            self.release(number);
        }
        Ok(())
    }

    /// Makes [`Live::next`] return `token` after `delay`, which may be zero.
    pub fn schedule(&mut self, delay: Span, token: u64) {
        self.plan_event(self.now.saturating_add(delay), token);
    }

    /// Advances to the next event for the program, but not beyond `until` or the end of the scenario.
    pub fn next(&mut self, until: Time) -> Next {
        let has_limit = until < Time::MAX;
        let until = until.min(self.end);
        loop {
            let is_idle = self.agenda.is_empty() && self.under_way == 0;
            if is_idle && !has_limit {
                return Next::Idle;
            }
            let due = self.agenda.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
            let changes = self.faults.next().into_iter().chain(self.detours.next());
            let change = changes.chain(self.reroutes.next()).min().unwrap_or(Time::MAX);
            let stop = due.min(change).min(until);
            // A change precedes events of its time, as in other runs.
            let after = if change <= stop { stop } else { stop.saturating_add(Span::from_ps(1)) };
            let mut happened = core::mem::take(&mut self.happened);
            self.parts[0].run_until_happened(after, &mut happened);
            // The network may have stopped before `stop`.
            let is_early = !happened.is_empty();
            for news in happened.drain(..) {
                self.now = self.now.max(news.at);
                self.note(news);
            }
            self.happened = happened;
            if is_early {
                continue;
            }
            if change <= stop {
                while let Some(change) = self.faults.pop(change) {
                    self.faults.apply(&change, &mut self.parts, 0);
                }
                self.detours.apply(change, &mut self.parts);
                self.reroutes.apply(change, &mut self.parts);
            } else if due <= stop {
                let token = self.agenda.pop().map(|Reverse((.., token))| token);
                self.now = self.now.max(due);
                return token.map_or(Next::Idle, Next::Event);
            } else {
                self.now = self.now.max(until);
                return if is_idle { Next::Idle } else { Next::Reached };
            }
        }
    }

    /// Returns a description of what a waiting program waits for: messages that have not arrived, and
    /// receives without a message. Returns `None` if there are none.
    #[must_use]
    pub fn unfinished(&self) -> Option<String> {
        let under_way = self.messages.iter().flatten().filter(|sent| !sent.has_arrived);
        let messages = under_way.map(|sent| describe("message", sent.key, sent.bytes));
        let receives = self.matching.receives();
        let receives = receives.map(|(key, receive)| describe("receive", key, receive.bytes));
        let all: Vec<String> = receives.chain(messages).collect();
        let first = all.first()?;
        let mut text = format!("{} unfinished: {first}", all.len());
        for more in all.iter().skip(1).take(NAMED - 1) {
            // Writing to a String cannot fail.
            let _ = write!(text, "; {more}");
        }
        if all.len() > NAMED {
            let _ = write!(text, "; and {} more", all.len() - NAMED);
        }
        Some(text)
    }

    fn check(&self, key: Key, bytes: u64) -> Result<(), LiveError> {
        let ranks = self.ranks();
        if let Some(rank) = [key.from, key.to].into_iter().find(|rank| *rank >= ranks) {
            return Err(LiveError(format!(
                "rank {rank} does not exist; the scenario has {ranks} ranks, numbered from 0"
            )));
        }
        if key.from == key.to {
            return Err(LiveError(format!(
                "rank {} is both sender and receiver; a message goes to another rank",
                key.from
            )));
        }
        if bytes == 0 {
            return Err(LiveError("a message has 0 bytes; give at least 1".to_owned()));
        }
        // The transport would never accept a longer message.
        if bytes > MAX_OP_BYTES {
            return Err(LiveError(format!(
                "a message has {bytes} bytes; give at most {MAX_OP_BYTES} (2^48), or split it"
            )));
        }
        Ok(())
    }

    /// Opens the flows from one rank to another, before the first message.
    fn open(&mut self, from: u32, to: u32) -> Result<(), LiveError> {
        if !self.pairs.insert((from, to)) {
            return Ok(());
        }
        let job = Arc::clone(self.job());
        let [sender, receiver] = [from, to].map(|rank| job.hosts[rank as usize]);
        if sender == receiver {
            return Ok(());
        }
        for _ in 0..job.flows_per_pair {
            let index = self.plan.connections.len();
            self.plan.connections.push(ConnectionPlan {
                from: sender,
                to: receiver,
                start: self.now,
                load: Load::Job { job: self.job, from, to },
                ..self.like.clone()
            });
            let Part { hosts, world, .. } = &mut self.parts[0];
            if let Err(error) = open_further(&self.plan, index, world, hosts) {
                // The next message then fails too, instead of waiting for flows that no host has.
                self.pairs.remove(&(from, to));
                return Err(LiveError(error.to_string()));
            }
        }
        Ok(())
    }

    fn plan_event(&mut self, at: Time, token: u64) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, token)));
    }

    fn note(&mut self, news: Happened) {
        let Some(sent) = &mut self.messages[news.message as usize] else { return };
        let token = match news.step {
            Step::Began => None,
            Step::Arrived => {
                sent.has_arrived = true;
                sent.receive
            }
            Step::Sent => {
                sent.is_sent = true;
                sent.token
            }
            Step::Acknowledged => {
                sent.is_acknowledged = true;
                None
            }
        };
        self.under_way -= usize::from(sent.is_over());
        if let Some(token) = token {
            self.plan_event(news.at, token);
        }
        self.release(news.message);
    }

    /// Frees the number of a message that has no further steps.
    fn release(&mut self, number: u32) {
        let place = &mut self.messages[number as usize];
        if place.as_ref().is_some_and(|sent| sent.is_over() && sent.receive.is_some()) {
            *place = None;
            self.free.push(number);
        }
    }
}

fn describe(what: &str, key: Key, bytes: u64) -> String {
    format!(
        "{what} of {bytes} bytes from rank {} to rank {} with tag {}",
        key.from, key.to, key.tag
    )
}

fn mismatch(key: Key, sent: u64, expected: u64) -> LiveError {
    LiveError(format!(
        "the message from rank {} to rank {} with tag {} has {sent} bytes, but its receive expects {expected}; \
         receives take messages in the order of sending",
        key.from, key.to, key.tag
    ))
}
