//! The host and network model of LogGOPSim (Hoefler, Schneider and Lumsdaine, "LogGOPSim: Simulating
//! Large-Scale Applications in the LogGOPS Model", LSAP 2010), as the program computes it.
//!
//! A message of s bytes occupies the stream of its sender for o + (s-1)O and its NIC for g + (s-1)G. It
//! arrives o + L after its start. At the receiver it waits for the stream and the NIC, and occupies the stream
//! for o + max((s-1)O, (s-1)G) and the NIC for g + (s-1)G, whether a receive is posted or not. A receive is
//! posted when its stream is free and does not hold it. A send of more than S bytes is done when the receiver
//! begins to take it in and has a receive for it, a smaller one when its stream is free again. Operations
//! that become possible at the same time start in the order sends, receives, computations, then by their
//! number in the graph. Times are in nanoseconds; a message of 0 bytes counts -1 byte beyond the first.
//!
//! One difference: LogGOPSim lets an operation on another stream than the one that it waits for start as soon
//! as its own stream is free, before its dependency ends. Here it waits.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use thiserror::Error;

use crate::graph::{Action, Graph, Program};
use crate::matching::{Matching, Waiting};
use crate::rank::Unexpected;

/// Parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// L: latency of the network in ns.
    pub latency: u32,
    /// o: time of a stream per message in ns.
    pub overhead: u32,
    /// O: time of a stream per byte in ns.
    pub overhead_per_byte: u32,
    /// g: time of a NIC per message in ns.
    pub gap: u32,
    /// G: time of a NIC per byte in ns.
    pub gap_per_byte: u32,
    /// S: the largest message in bytes that is sent before its receiver is ready.
    pub eager: u32,
}

impl Default for Parameters {
    /// Those of LogGOPSim.
    fn default() -> Self {
        let (latency, overhead, overhead_per_byte) = (2500, 1500, 0);
        Self { latency, overhead, overhead_per_byte, gap: 1000, gap_per_byte: 6, eager: 65535 }
    }
}

/// The times of a job are beyond the range of 2^63 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the times of all operations add up to more than 2^63 ns (292 years)")]
pub struct TooLongError;

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the last stream of each rank is free, in ns.
    pub ends: Vec<u64>,
    /// Operations that are not done, by rank and number.
    pub stuck: Vec<(u32, u32)>,
    /// Messages that no receive took, each with its receiver.
    pub unexpected: Vec<(u32, Unexpected)>,
}

impl Outcome {
    /// Returns the time of the last rank in ns.
    #[must_use]
    pub fn completion(&self) -> u64 {
        self.ends.iter().copied().max().unwrap_or(0)
    }

    /// Returns `true` if all operations are done and all messages are taken.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.stuck.is_empty() && self.unexpected.is_empty()
    }
}

/// Order of operations that become possible at the same time; also that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Send,
    Receive,
    Compute,
    /// A message that arrives: its sender, and the size and tag in the operation.
    Message {
        from: u32,
    },
}

/// An event: its time and its place among those created, which it keeps when it is put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: u64,
    created: u64,
    rank: u32,
    /// Number of the operation at its own rank: for a message the sender's.
    op: u32,
    what: What,
}

struct Host {
    program: Arc<Program>,
    needs: Box<[u32]>,
    done: Box<[bool]>,
    matching: Matching,
    /// When each stream is free.
    streams: Box<[u64]>,
    /// When each NIC is free to send, and to receive.
    nics: Box<[[u64; 2]]>,
    /// Operations that have become possible, and since when.
    possible: Vec<(u32, u64)>,
}

struct Model {
    parameters: Parameters,
    hosts: Vec<Host>,
    events: BinaryHeap<Reverse<Event>>,
    created: u64,
}

/// Runs a job.
///
/// # Errors
/// If its times are beyond the range.
pub fn run(graph: &Graph, parameters: &Parameters) -> Result<Outcome, TooLongError> {
    check_times(graph, parameters)?;
    let streams = graph.programs().map(|program| program.cpus()).max().unwrap_or(0);
    let nics = graph.programs().map(|program| program.nics()).max().unwrap_or(0);
    let host = |program: &Arc<Program>| Host {
        needs: (0..program.len() as u32).map(|op| program.dependencies(op)).collect(),
        done: vec![false; program.len()].into_boxed_slice(),
        matching: Matching::new(program),
        streams: vec![0; streams].into_boxed_slice(),
        nics: vec![[0; 2]; nics].into_boxed_slice(),
        possible: Vec::new(),
        program: Arc::clone(program),
    };
    let hosts: Vec<Host> = graph.programs().map(host).collect();
    let events = BinaryHeap::new();
    let mut model = Model { parameters: *parameters, hosts, events, created: 0 };
    for rank in 0..graph.ranks() {
        let host = &mut model.hosts[rank as usize];
        let free = (0..host.program.len() as u32).filter(|op| host.needs[*op as usize] == 0);
        host.possible = free.map(|op| (op, 0)).collect();
        model.schedule_possible(rank);
    }
    while let Some(Reverse(event)) = model.events.pop() {
        model.handle(event);
    }
    Ok(model.outcome())
}

/// Checks that no sum of times overflows.
fn check_times(graph: &Graph, parameters: &Parameters) -> Result<(), TooLongError> {
    let Parameters { latency, overhead, overhead_per_byte, gap, gap_per_byte, .. } = *parameters;
    let each = u128::from(latency) + 2 * (u128::from(overhead) + u128::from(gap));
    let byte = 2 * (u128::from(overhead_per_byte) + u128::from(gap_per_byte));
    let time = |action| match action {
        Action::Send { bytes, .. } => each + byte * u128::from(bytes),
        Action::Receive { .. } => 0,
        Action::Compute { time } => u128::from(time.as_ps() / 1000),
    };
    let ops = graph.programs().flat_map(|program| program.ops());
    let sum = ops.fold(0u128, |sum, op| sum.saturating_add(time(op.action)));
    if sum < 1 << 63 { Ok(()) } else { Err(TooLongError) }
}

impl Model {
    fn handle(&mut self, event: Event) {
        match event.what {
            What::Compute => self.compute(event),
            What::Send => self.send(event),
            What::Receive => self.receive(event),
            What::Message { from } => self.message(event, from),
        }
    }

    /// Puts an event off to a later time.
    fn put_off(&mut self, event: Event, at: u64) {
        self.events.push(Reverse(Event { at, ..event }));
    }

    fn compute(&mut self, event: Event) {
        let Event { at, rank, op, .. } = event;
        let host = &mut self.hosts[rank as usize];
        let of = host.program.op(op);
        let Action::Compute { time } = of.action else { return };
        let stream = &mut host.streams[usize::from(of.cpu)];
        if *stream > at {
            let free = *stream;
            return self.put_off(event, free);
        }
        *stream = at.wrapping_add(time.as_ps() / 1000);
        let end = *stream;
        host.start(op, at);
        host.end(op, end);
        self.schedule_possible(rank);
    }

    fn send(&mut self, event: Event) {
        let Event { at, rank, op, .. } = event;
        let p = self.parameters;
        let host = &mut self.hosts[rank as usize];
        let of = host.program.op(op);
        let Action::Send { to, bytes, .. } = of.action else { return };
        let (stream, nic) =
            (&mut host.streams[usize::from(of.cpu)], &mut host.nics[usize::from(of.nic)][0]);
        let free = (*stream).max(*nic);
        if free > at {
            return self.put_off(event, free);
        }
        let further = bytes.wrapping_sub(1);
        let per_byte = |ns: u32| further.wrapping_mul(u64::from(ns));
        let overhead = u64::from(p.overhead);
        *stream = at.wrapping_add(overhead).wrapping_add(per_byte(p.overhead_per_byte));
        *nic = at.wrapping_add(u64::from(p.gap)).wrapping_add(per_byte(p.gap_per_byte));
        let end = *stream;
        host.start(op, at);
        if bytes <= u64::from(p.eager) {
            host.end(op, end);
        }
        let arrives = at.wrapping_add(overhead).wrapping_add(u64::from(p.latency));
        let created = self.created;
        self.created += 1;
        let what = What::Message { from: rank };
        self.events.push(Reverse(Event { at: arrives, created, rank: to, op, what }));
        self.schedule_possible(rank);
    }

    fn receive(&mut self, event: Event) {
        let Event { at, rank, op, .. } = event;
        let host = &mut self.hosts[rank as usize];
        let Action::Receive { from, bytes, tag } = host.program.op(op).action else { return };
        host.start(op, at);
        let met = host.matching.post(Waiting { source: from, tag, item: (op, 0) });
        if let Some(message) = met {
            host.end(op, at);
            if bytes > u64::from(self.parameters.eager) {
                self.end_send(at, message.source, message.item.0);
            }
        }
        self.schedule_possible(rank);
    }

    fn message(&mut self, event: Event, from: u32) {
        let Event { at, rank, op, .. } = event;
        let p = self.parameters;
        let of = self.hosts[from as usize].program.op(op);
        let Action::Send { bytes, tag, .. } = of.action else { return };
        let host = &mut self.hosts[rank as usize];
        let (stream, nic) =
            (&mut host.streams[usize::from(of.cpu)], &mut host.nics[usize::from(of.nic)][1]);
        let free = (*stream).max(*nic);
        if free > at {
            return self.put_off(event, free);
        }
        let further = bytes.wrapping_sub(1);
        let per_byte = |ns: u32| further.wrapping_mul(u64::from(ns));
        let taken = per_byte(p.overhead_per_byte).max(per_byte(p.gap_per_byte));
        *stream = at.wrapping_add(u64::from(p.overhead)).wrapping_add(taken);
        *nic = at.wrapping_add(u64::from(p.gap)).wrapping_add(per_byte(p.gap_per_byte));
        let end = *stream;
        let met = host.matching.arrive(Waiting { source: from, tag, item: (op, bytes) });
        if let Some(receive) = met {
            host.end(receive.item.0, end);
            if bytes > u64::from(p.eager) {
                self.end_send(at, from, op);
            }
            self.schedule_possible(rank);
        }
    }

    /// Ends a send that waited for its receiver. As in LogGOPSim, stream and NIC of the sender are not free
    /// before.
    fn end_send(&mut self, at: u64, rank: u32, op: u32) {
        let host = &mut self.hosts[rank as usize];
        let of = host.program.op(op);
        let stream = &mut host.streams[usize::from(of.cpu)];
        *stream = (*stream).max(at);
        let nic = &mut host.nics[usize::from(of.nic)][0];
        *nic = (*nic).max(at);
        host.end(op, at);
        self.schedule_possible(rank);
    }

    /// Schedules the operations of a rank that have become possible.
    fn schedule_possible(&mut self, rank: u32) {
        let host = &mut self.hosts[rank as usize];
        let kind = |op: u32| match host.program.op(op).action {
            Action::Send { .. } => What::Send,
            Action::Receive { .. } => What::Receive,
            Action::Compute { .. } => What::Compute,
        };
        host.possible.sort_by_key(|(op, _)| kind(*op));
        for (op, since) in host.possible.drain(..) {
            let of = host.program.op(op);
            let mut at = host.streams[usize::from(of.cpu)].max(since);
            let what = match of.action {
                Action::Send { .. } => {
                    at = at.max(host.nics[usize::from(of.nic)][0]);
                    What::Send
                }
                Action::Receive { .. } => What::Receive,
                Action::Compute { .. } => What::Compute,
            };
            let created = self.created;
            self.created += 1;
            self.events.push(Reverse(Event { at, created, rank, op, what }));
        }
    }

    fn outcome(self) -> Outcome {
        let (mut stuck, mut unexpected) = (Vec::new(), Vec::new());
        for (rank, host) in self.hosts.iter().enumerate() {
            let rank = rank as u32;
            let left = host.done.iter().enumerate().filter(|(_, done)| !**done);
            stuck.extend(left.map(|(op, _)| (rank, op as u32)));
            let message = |w: Waiting| Unexpected { from: w.source, tag: w.tag, bytes: w.item.1 };
            unexpected.extend(host.matching.unexpected().map(|waiting| (rank, message(waiting))));
        }
        let end = |host: &Host| host.streams.iter().copied().max().unwrap_or(0);
        Outcome { ends: self.hosts.iter().map(end).collect(), stuck, unexpected }
    }
}

impl Host {
    fn start(&mut self, op: u32, at: u64) {
        let followers = self.program.after_start(op);
        release(followers, at, &mut self.needs, &mut self.possible);
    }

    fn end(&mut self, op: u32, at: u64) {
        self.done[op as usize] = true;
        let followers = self.program.after_end(op);
        release(followers, at, &mut self.needs, &mut self.possible);
    }
}

fn release(followers: &[u32], at: u64, needs: &mut [u32], possible: &mut Vec<(u32, u64)>) {
    for op in followers {
        needs[*op as usize] -= 1;
        if needs[*op as usize] == 0 {
            possible.push((*op, at));
        }
    }
}
