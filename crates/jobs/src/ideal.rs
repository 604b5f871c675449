//! A job on a network without internal congestion: the reference for a simulated job.
//!
//! A message occupies the NIC of its sender for a time and, one latency later, the NIC of its receiver for
//! the same time. Nothing else delays the message. With [`Limits::None`] messages and computations do not
//! delay each other: the completion time is then the length of the critical path.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use apus_units::{Span, Time};

use crate::graph::{Graph, Program};
use crate::rank::{Done, Message, Rank};

/// A message from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// Size of the message in bytes.
    pub bytes: u64,
}

/// The times of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Time for which the message occupies the NIC of its sender, and then that of its receiver.
    pub occupies: Span,
    /// Time from the start of its departure to the start of its arrival.
    pub latency: Span,
    /// Time from its arrival to the arrival of the acknowledgement.
    pub acknowledgement: Span,
}

impl Transfer {
    fn of(from: u32, message: &Message) -> Self {
        Self { from, to: message.to, bytes: message.bytes }
    }
}

impl Cost {
    /// Returns the time of a message without other messages, from its start to its arrival.
    #[must_use]
    pub const fn alone(&self) -> Span {
        Span::from_ps(self.latency.as_ps().saturating_add(self.occupies.as_ps()))
    }
}

/// Causes of delay of operations in addition to their dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// A NIC carries one message at a time in each direction, and a stream runs one computation at a time, in
    /// order.
    Serial,
    /// No further delay.
    None,
}

/// The result of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time from the start to the end of the last operation.
    pub completion: Span,
    /// The ranks, with the remaining operations and messages.
    pub ranks: Vec<Rank>,
}

impl Outcome {
    /// Returns the number of operations that are not done.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.ranks.iter().map(|rank| u64::from(rank.unfinished())).sum()
    }

    /// Returns the number of messages that no receive took.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.unexpected().count() as u64).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A computation of a rank ends.
    Timeout { rank: u32 },
    /// A message has left its rank.
    Sent { flight: u32 },
    /// A message begins to arrive.
    Begins { flight: u32 },
    /// A message has arrived.
    Arrived { flight: u32 },
    /// The sender of a message has the acknowledgement.
    Acknowledged { flight: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    from: u32,
    message: Message,
}

struct Network<C> {
    cost: C,
    limits: Limits,
    /// Condition for a send to be done. Other steps of a message cause no events.
    done: Done,
    /// Events in order of time, then of creation.
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    created: u64,
    flights: Vec<Flight>,
    free: Vec<u32>,
    /// Times at which the NICs of ranks that have sent or received are free to send, and to receive.
    busy: BTreeMap<(u32, u8), [Time; 2]>,
}

impl<C: Fn(Transfer) -> Cost> Network<C> {
    fn schedule(&mut self, at: Time, event: Event) {
        self.events.push(Reverse((at, self.created, event)));
        self.created += 1;
    }

    /// Occupies a NIC from `now`, or as soon as it is free, and returns the end.
    fn occupy(&mut self, now: Time, nic: (u32, u8), direction: usize, time: Span) -> Time {
        if self.limits == Limits::None {
            return now.saturating_add(time);
        }
        let busy = &mut self.busy.entry(nic).or_default()[direction];
        *busy = (*busy).max(now).saturating_add(time);
        *busy
    }

    fn send(&mut self, now: Time, from: u32, message: Message) {
        let Cost { occupies, latency, .. } = (self.cost)(Transfer::of(from, &message));
        let left = self.occupy(now, (from, message.nic), 0, occupies);
        let flight = Flight { from, message };
        let flight = match self.free.pop() {
            Some(free) => {
                self.flights[free as usize] = flight;
                free
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        if self.done == Done::Local {
            self.schedule(left, Event::Sent { flight });
        }
        let began = left.saturating_sub(occupies).saturating_add(latency);
        match self.limits {
            Limits::Serial => self.schedule(began, Event::Begins { flight }),
            Limits::None => {
                self.schedule(began.saturating_add(occupies), Event::Arrived { flight })
            }
        }
    }
}

/// Runs a job. `cost` gives the times of a message.
#[must_use]
pub fn run(graph: &Graph, done: Done, limits: Limits, cost: impl Fn(Transfer) -> Cost) -> Outcome {
    let rank = |program: &Arc<Program>| Rank::new(Arc::clone(program), done);
    let ranks = graph.programs().map(rank).map(|rank| match limits {
        Limits::Serial => rank,
        Limits::None => rank.with_free_streams(),
    });
    run_ranks(ranks.collect(), done, limits, cost)
}

/// Runs ranks that have not started.
fn run_ranks(
    mut ranks: Vec<Rank>,
    done: Done,
    limits: Limits,
    cost: impl Fn(Transfer) -> Cost,
) -> Outcome {
    let (events, flights, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
    let busy = BTreeMap::new();
    let mut network = Network { cost, limits, done, events, created: 0, flights, free, busy };
    let touched = |rank: u32, now: Time, ranks: &mut [Rank], network: &mut Network<_>| {
        let state = &mut ranks[rank as usize];
        while let Some(message) = state.poll_message() {
            network.send(now, rank, message);
        }
        if state.next_timeout() < Time::MAX {
            network.schedule(state.next_timeout(), Event::Timeout { rank });
        }
    };
    for rank in 0..ranks.len() as u32 {
        ranks[rank as usize].start(Time::ZERO);
        touched(rank, Time::ZERO, &mut ranks, &mut network);
    }
    while let Some(Reverse((now, _, event))) = network.events.pop() {
        let rank = match event {
            Event::Timeout { rank } => {
                if ranks[rank as usize].next_timeout() > now {
                    continue;
                }
                ranks[rank as usize].handle_timeout(now);
                rank
            }
            Event::Sent { flight } => {
                let Flight { from, message } = network.flights[flight as usize];
                ranks[from as usize].on_sent(now, message.op);
                from
            }
            Event::Begins { flight } => {
                let Flight { from, message } = network.flights[flight as usize];
                let occupies = (network.cost)(Transfer::of(from, &message)).occupies;
                let arrived = network.occupy(now, (message.to, message.nic), 1, occupies);
                network.schedule(arrived, Event::Arrived { flight });
                continue;
            }
            Event::Arrived { flight } => {
                let Flight { from, message } = network.flights[flight as usize];
                if done == Done::Acknowledged {
                    let known = (network.cost)(Transfer::of(from, &message)).acknowledgement;
                    network.schedule(now.saturating_add(known), Event::Acknowledged { flight });
                } else {
                    network.free.push(flight);
                }
                ranks[from as usize].on_delivered(now, message.op);
                touched(from, now, &mut ranks, &mut network);
                ranks[message.to as usize].on_arrival(
                    now,
                    (from, message.op),
                    message.tag,
                    message.bytes,
                );
                message.to
            }
            Event::Acknowledged { flight } => {
                let Flight { from, message } = network.flights[flight as usize];
                network.free.push(flight);
                ranks[from as usize].on_acknowledged(now, message.op);
                from
            }
        };
        touched(rank, now, &mut ranks, &mut network);
    }
    let end = ranks.iter().map(Rank::ended_at).max().unwrap_or(Time::ZERO);
    Outcome { completion: end.since(Time::ZERO), ranks }
}
