//! The streams and NICs of all ranks, event by event.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use apus_units::Time;

use super::Parameters;
use crate::graph::{Action, Graph};
use crate::rank::Rank;

/// The ranks of a job, which the owner of the model stores.
pub trait Ranks {
    /// Returns a rank by its number.
    fn rank(&mut self, number: u32) -> &mut Rank;
}

impl Ranks for Vec<Rank> {
    fn rank(&mut self, number: u32) -> &mut Rank {
        &mut self[number as usize]
    }
}

/// A message that leaves its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The sending rank.
    pub from: u32,
    /// The operation that sends it.
    pub op: u32,
    /// The receiving rank.
    pub to: u32,
    /// Time at which the first byte leaves.
    pub leaves: Time,
    /// Earliest time at which the first byte arrives.
    pub arrives: Time,
    /// Its position in the order of creation of events.
    created: u64,
}

/// Effects of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rank.
    pub rank: u32,
    /// End of a computation of the rank that begins.
    pub computes_until: Option<Time>,
    /// Time until which a stream of the rank handles a message, as sender or receiver.
    pub handles_until: Option<Time>,
    /// Message that leaves the rank.
    pub departure: Option<Departure>,
    /// Another rank, one of whose sends has ended.
    pub sender: Option<u32>,
}

/// Kinds of events. Operations that become possible at the same time start in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Send,
    Receive,
    Compute,
    /// The first byte of a message arrives from a rank.
    Message {
        from: u32,
    },
}

/// An event: its time, and its position in the order of creation, which it keeps when it is postponed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Time,
    created: u64,
    rank: u32,
    /// Number of the operation at its own rank; for a message, its send at the sender.
    op: u32,
    what: What,
    /// Resource for which the event was postponed.
    waits_for: Option<Resource>,
}

/// Resource that an operation or a message occupies for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    Stream(u8),
    /// A NIC that sends.
    Out(u8),
    /// A NIC that receives.
    In(u8),
}

/// Events that were postponed until a stream or a NIC is free. Only the first of them is among the events of
/// the model, because the others cannot begin before it.
#[derive(Default)]
struct Queue {
    /// Position of the first event in the order of creation.
    first: Option<u64>,
    others: BinaryHeap<Reverse<(u64, Event)>>,
}

/// A message that a fabric carries.
#[derive(Clone, Copy, Debug)]
struct Flight {
    departure: Departure,
    /// Its first byte has arrived.
    began: bool,
    /// Time at which its last byte arrived.
    complete: Option<Time>,
    /// Receive that took the message before its last byte arrived: its rank, its operation, and its end
    /// without the fabric.
    taken: Option<(u32, u32, Time)>,
    /// Whether a receive has taken the message.
    is_over: bool,
}

struct Host {
    /// Times at which the streams are free.
    streams: Box<[Time]>,
    /// Times at which the NICs are free to send, and to receive.
    nics: Box<[[Time; 2]]>,
    /// Operations that have become possible, with the times at which they did.
    possible: Vec<(u32, Time)>,
    /// Events that wait for a stream or a NIC.
    queues: BTreeMap<Resource, Queue>,
}

impl Host {
    /// Returns the time at which a stream or a NIC is free.
    fn free_at(&self, resource: Resource) -> Time {
        match resource {
            Resource::Stream(cpu) => self.streams[usize::from(cpu)],
            Resource::Out(nic) => self.nics[usize::from(nic)][0],
            Resource::In(nic) => self.nics[usize::from(nic)][1],
        }
    }
}

/// The model without a network.
pub struct Model {
    parameters: Parameters,
    hosts: Vec<Host>,
    events: BinaryHeap<Reverse<Event>>,
    created: u64,
    /// Messages on a fabric, by sending rank and operation.
    flights: BTreeMap<(u32, u32), Flight>,
}

impl Model {
    /// Returns the model of the ranks of a job. Times beyond the range become [`Time::MAX`].
    #[must_use]
    pub fn new(graph: &Graph, parameters: &Parameters) -> Self {
        let streams = graph.programs().map(|program| program.cpus()).max().unwrap_or(0);
        let nics = graph.programs().map(|program| program.nics()).max().unwrap_or(0);
        let host = |_| Host {
            streams: vec![Time::ZERO; streams].into_boxed_slice(),
            nics: vec![[Time::ZERO; 2]; nics].into_boxed_slice(),
            possible: Vec::new(),
            queues: BTreeMap::new(),
        };
        let hosts = (0..graph.ranks()).map(host).collect();
        let (events, flights) = (BinaryHeap::new(), BTreeMap::new());
        Self { parameters: *parameters, hosts, events, created: 0, flights }
    }

    /// Starts the job.
    pub fn start(&mut self, now: Time, ranks: &mut impl Ranks) {
        for number in 0..self.hosts.len() as u32 {
            ranks.rank(number).make_ready();
            self.note_ready(now, number, ranks);
            self.schedule_possible(number, ranks);
        }
    }

    /// Returns the time of the next event; [`Time::MAX`] if there is none.
    #[must_use]
    pub fn next_at(&self) -> Time {
        self.events.peek().map_or(Time::MAX, |Reverse(event)| event.at)
    }

    /// Handles the next event. Returns `None` if there is none.
    pub fn step(&mut self, ranks: &mut impl Ranks) -> Option<Step> {
        let Reverse(event) = self.events.pop()?;
        let mut step = Step {
            rank: event.rank,
            computes_until: None,
            handles_until: None,
            departure: None,
            sender: None,
        };
        self.leave_queue(&event);
        match event.what {
            What::Compute => self.compute(event, ranks, &mut step),
            What::Send => self.send(event, ranks, &mut step),
            What::Receive => self.receive(event, ranks, &mut step),
            What::Message { from } => self.message(event, from, ranks, &mut step),
        }
        if let Some(resource) = event.waits_for {
            self.follow(&event, resource);
        }
        Some(step)
    }

    /// Returns the time at which the last stream of a rank is free.
    #[must_use]
    pub fn free_at(&self, rank: u32) -> Time {
        let streams = self.hosts.get(rank as usize).map(|host| &host.streams);
        streams.and_then(|streams| streams.iter().copied().max()).unwrap_or(Time::ZERO)
    }

    /// Lets a message arrive without a fabric: its bytes arrive in time.
    pub fn arrive(&mut self, message: &Departure) {
        self.push_message(message, message.arrives);
    }

    /// Registers a message that a fabric carries.
    pub fn carry(&mut self, message: &Departure) {
        let (began, is_over) = (false, false);
        let flight = Flight { departure: *message, began, complete: None, taken: None, is_over };
        self.flights.insert((message.from, message.op), flight);
    }

    /// Records that the fabric has delivered the first byte of a message, given by rank and operation.
    pub fn on_first_byte(&mut self, now: Time, message: (u32, u32)) {
        let Some(flight) = self.flights.get_mut(&message) else { return };
        if !core::mem::replace(&mut flight.began, true) {
            let departure = flight.departure;
            self.push_message(&departure, departure.arrives.max(now));
        }
    }

    /// Records that the fabric has delivered the last byte of a message. Returns the rank whose receive has
    /// ended, if one has.
    pub fn on_last_byte(
        &mut self,
        now: Time,
        message: (u32, u32),
        ranks: &mut impl Ranks,
    ) -> Option<u32> {
        self.on_first_byte(now, message);
        let flight = self.flights.get_mut(&message)?;
        flight.complete = Some(now);
        let is_over = flight.is_over;
        let taken = flight.taken.take();
        if is_over {
            self.flights.remove(&message);
        }
        let (rank, receive, end) = taken?;
        self.end(rank, receive, end.max(now.saturating_add(self.parameters.overhead)), ranks);
        self.schedule_possible(rank, ranks);
        Some(rank)
    }

    fn push_message(&mut self, message: &Departure, at: Time) {
        let Departure { from, op, to, created, .. } = *message;
        let what = What::Message { from };
        self.events.push(Reverse(Event { at, created, rank: to, op, what, waits_for: None }));
    }

    /// Postpones an event until the last of the resources that it needs is free. Returns `false` if the event
    /// may begin.
    fn puts_off(&mut self, event: Event, needs: &[Resource]) -> bool {
        let host = &mut self.hosts[event.rank as usize];
        let last = needs.iter().max_by_key(|resource| host.free_at(**resource));
        let Some(resource) = last.copied().filter(|last| host.free_at(*last) > event.at) else {
            return false;
        };
        let event = Event { at: host.free_at(resource), waits_for: Some(resource), ..event };
        let queue = host.queues.entry(resource).or_default();
        if queue.first.is_some_and(|first| first < event.created) {
            queue.others.push(Reverse((event.created, event)));
        } else {
            queue.first = Some(event.created);
            self.events.push(Reverse(event));
        }
        true
    }

    /// Removes a postponed event that is due from its queue.
    fn leave_queue(&mut self, event: &Event) {
        let queues = &mut self.hosts[event.rank as usize].queues;
        if let Some(queue) = event.waits_for.and_then(|resource| queues.get_mut(&resource))
            && queue.first == Some(event.created)
        {
            queue.first = None;
        }
    }

    /// If the first event of a queue has begun, or waits for another resource, makes the next event the first.
    fn follow(&mut self, before: &Event, resource: Resource) {
        let host = &mut self.hosts[before.rank as usize];
        let at = host.free_at(resource).max(before.at);
        let Some(queue) = host.queues.get_mut(&resource) else { return };
        if queue.first.is_some() {
            return;
        }
        queue.first = queue.others.pop().map(|Reverse((created, event))| {
            self.events.push(Reverse(Event { at, ..event }));
            created
        });
    }

    fn compute(&mut self, event: Event, ranks: &mut impl Ranks, step: &mut Step) {
        let Event { at, rank, op, .. } = event;
        let of = ranks.rank(rank).program().op(op);
        let Action::Compute { time } = of.action else { return };
        if self.puts_off(event, &[Resource::Stream(of.cpu)]) {
            return;
        }
        let stream = &mut self.hosts[rank as usize].streams[usize::from(of.cpu)];
        *stream = at.saturating_add(time);
        let end = *stream;
        step.computes_until = Some(end);
        self.begin(rank, op, at, ranks);
        self.end(rank, op, end, ranks);
        self.schedule_possible(rank, ranks);
    }

    fn send(&mut self, event: Event, ranks: &mut impl Ranks, step: &mut Step) {
        let Event { at, rank, op, .. } = event;
        let p = self.parameters;
        let of = ranks.rank(rank).program().op(op);
        let Action::Send { to, bytes, .. } = of.action else { return };
        if self.puts_off(event, &[Resource::Stream(of.cpu), Resource::Out(of.nic)]) {
            return;
        }
        let host = &mut self.hosts[rank as usize];
        let (stream, nic) =
            (&mut host.streams[usize::from(of.cpu)], &mut host.nics[usize::from(of.nic)][0]);
        *stream = at.saturating_add(p.sending(bytes));
        *nic = at.saturating_add(p.occupies(bytes));
        let end = *stream;
        step.handles_until = Some(end);
        self.begin(rank, op, at, ranks);
        if bytes <= p.eager {
            self.end(rank, op, end, ranks);
        }
        let leaves = at.saturating_add(p.overhead);
        let arrives = leaves.saturating_add(p.latency);
        let created = self.created;
        self.created += 1;
        step.departure = Some(Departure { from: rank, op, to, leaves, arrives, created });
        self.schedule_possible(rank, ranks);
    }

    fn receive(&mut self, event: Event, ranks: &mut impl Ranks, step: &mut Step) {
        let Event { at, rank, op, .. } = event;
        self.begin(rank, op, at, ranks);
        if let Some(send) = ranks.rank(rank).post(op) {
            self.take(send, (rank, op), at, ranks);
            let of = ranks.rank(send.0).program().op(send.1);
            // The size of the receive does not count; it may differ.
            if matches!(of.action, Action::Send { bytes, .. } if bytes > self.parameters.eager) {
                self.end_send(at, send, ranks, step);
            }
        }
        self.schedule_possible(rank, ranks);
    }

    fn message(&mut self, event: Event, from: u32, ranks: &mut impl Ranks, step: &mut Step) {
        let Event { at, rank, op, .. } = event;
        let p = self.parameters;
        let of = ranks.rank(from).program().op(op);
        let Action::Send { bytes, tag, .. } = of.action else { return };
        if self.puts_off(event, &[Resource::Stream(of.cpu), Resource::In(of.nic)]) {
            return;
        }
        let host = &mut self.hosts[rank as usize];
        let (stream, nic) =
            (&mut host.streams[usize::from(of.cpu)], &mut host.nics[usize::from(of.nic)][1]);
        *stream = at.saturating_add(p.receiving(bytes));
        *nic = at.saturating_add(p.occupies(bytes));
        let end = *stream;
        step.handles_until = Some(end);
        ranks.rank(rank).hold_until(end);
        if let Some(receive) = ranks.rank(rank).match_message((from, op), tag, bytes) {
            self.take((from, op), (rank, receive), end, ranks);
            if bytes > p.eager {
                self.end_send(at, (from, op), ranks, step);
            }
            self.schedule_possible(rank, ranks);
        }
    }

    /// Lets a receive take a message. The receive ends at `end`, unless bytes of the message are still on a fabric.
    fn take(
        &mut self,
        send: (u32, u32),
        (rank, receive): (u32, u32),
        end: Time,
        ranks: &mut impl Ranks,
    ) {
        let Some(flight) = self.flights.get_mut(&send) else {
            return self.end(rank, receive, end, ranks);
        };
        flight.is_over = true;
        let Some(complete) = flight.complete else {
            flight.taken = Some((rank, receive, end));
            return;
        };
        self.flights.remove(&send);
        let complete = complete.saturating_add(self.parameters.overhead);
        self.end(rank, receive, end.max(complete), ranks);
    }

    /// Ends a send that waited for its receiver. As in LogGOPSim, the stream and the NIC of the sender are
    /// not free earlier.
    fn end_send(
        &mut self,
        at: Time,
        (rank, op): (u32, u32),
        ranks: &mut impl Ranks,
        step: &mut Step,
    ) {
        let of = ranks.rank(rank).program().op(op);
        let host = &mut self.hosts[rank as usize];
        let stream = &mut host.streams[usize::from(of.cpu)];
        *stream = (*stream).max(at);
        let nic = &mut host.nics[usize::from(of.nic)][0];
        *nic = (*nic).max(at);
        self.end(rank, op, at, ranks);
        self.schedule_possible(rank, ranks);
        step.sender = Some(rank);
    }

    fn begin(&mut self, rank: u32, op: u32, at: Time, ranks: &mut impl Ranks) {
        ranks.rank(rank).begin(op, at);
        self.note_ready(at, rank, ranks);
    }

    fn end(&mut self, rank: u32, op: u32, at: Time, ranks: &mut impl Ranks) {
        ranks.rank(rank).end(op, at);
        self.note_ready(at, rank, ranks);
    }

    fn note_ready(&mut self, since: Time, rank: u32, ranks: &mut impl Ranks) {
        let ready = ranks.rank(rank).take_ready().map(|op| (op, since));
        self.hosts[rank as usize].possible.extend(ready);
    }

    /// Schedules the operations of a rank that have become possible.
    fn schedule_possible(&mut self, rank: u32, ranks: &mut impl Ranks) {
        let host = &mut self.hosts[rank as usize];
        let program = ranks.rank(rank).program();
        let kind = |op: u32| match program.op(op).action {
            Action::Send { .. } => What::Send,
            Action::Receive { .. } => What::Receive,
            Action::Compute { .. } => What::Compute,
        };
        host.possible.sort_by_key(|(op, _)| kind(*op));
        for (op, since) in host.possible.drain(..) {
            let (of, what) = (program.op(op), kind(op));
            let mut at = host.streams[usize::from(of.cpu)].max(since);
            if what == What::Send {
                at = at.max(host.nics[usize::from(of.nic)][0]);
            }
            let created = self.created;
            self.created += 1;
            self.events.push(Reverse(Event { at, created, rank, op, what, waits_for: None }));
        }
    }
}
