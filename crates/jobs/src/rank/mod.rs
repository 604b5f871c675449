//! The executor of one rank: it starts operations and returns the work for the network.
//!
//! Time is an argument, and this module does no I/O. The owner calls [`Rank::start`], sends the messages that
//! [`Rank::poll_message`] returns, and reports events: a message has left, was delivered, was acknowledged or
//! has arrived, or the time of [`Rank::next_timeout`] has come.
//!
//! * A receive starts when its dependencies allow it. It is done when a message with its source and tag has arrived.
//!   Receives and messages match in order; sizes do not count.
//! * A computation holds its stream (cpu) for its time. Computations and sends of a stream start in the order in which
//!   their dependencies allow it, each when the stream is free. A send does not hold the stream.
//! * [`Done`] defines when a send is done.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use apus_units::Time;

use crate::graph::{ANY, Action, Program};
use crate::matching::{Matching, Waiting};

/// Time at which a send is done. A receive is always done when its message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Done {
    /// When the last byte of the message has left the sender.
    Local,
    /// When the message has arrived.
    #[default]
    Delivered,
    /// When the sender knows that the message has arrived.
    Acknowledged,
    /// By the rules of the [LogGOPS model](crate::loggops): a small message when its stream is free again, a
    /// larger message when the receiver begins to handle it.
    LogGops,
}

impl Done {
    /// All values with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("local", Self::Local),
        ("delivered", Self::Delivered),
        ("acknowledged", Self::Acknowledged),
        ("loggops", Self::LogGops),
    ];

    /// Returns `true` if the end of a send may be the end of its job. Otherwise the receive ends later, and
    /// the sender may be notified of the delivery even later.
    #[must_use]
    pub const fn counts_sends(self) -> bool {
        matches!(self, Self::Acknowledged | Self::LogGops)
    }
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The operation that sends it.
    pub op: u32,
    /// The receiving rank.
    pub to: u32,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// Tag of the message.
    pub tag: u32,
    /// The NIC of the operation ([`Op::nic`](crate::Op::nic)).
    pub nic: u8,
}

/// Progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// The operation waits for other operations.
    Waits,
    /// The dependencies of the operation are met, but its stream is busy.
    Ready,
    /// The operation has started.
    Started,
    /// The operation is done.
    Done,
}

impl Progress {
    /// Returns the progress in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waits => "waits for other operations",
            Self::Ready => "its stream is busy",
            Self::Started => "started",
            Self::Done => "done",
        }
    }
}

/// Times at which an operation started and ended; [`Time::MAX`] if it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTimes {
    /// Start of the operation.
    pub start: Time,
    /// End of the operation.
    pub end: Time,
}

/// Times at which the operations of a rank in a part of the job started and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartTimes {
    /// Start of the first send or computation, because receives are posted early; [`Time::MAX`]: none has started.
    pub start: Time,
    /// Latest end so far, counted as in [`Rank::ended_at`].
    pub end: Time,
    /// Number of operations that are not done.
    pub left: u32,
}

/// Data about each operation that a rank stores on request.
#[derive(Clone, Debug)]
struct Kept {
    times: Box<[OpTimes]>,
    /// Rank and operation of the send whose message a receive took; [`ANY`]: none.
    sources: Box<[(u32, u32)]>,
}

/// A message that no receive took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The sending rank.
    pub from: u32,
    /// Tag of the message.
    pub tag: u32,
    /// Size of the message in bytes.
    pub bytes: u64,
}

/// A stream, on which one computation runs at a time.
#[derive(Clone, Debug, Default)]
struct Stream {
    busy: bool,
    /// Computations and sends that wait for the stream.
    waiting: VecDeque<u32>,
}

/// A rank of a job.
#[derive(Clone, Debug)]
pub struct Rank {
    program: Arc<Program>,
    done: Done,
    /// Number of dependencies of each operation that are not met.
    needs: Box<[u32]>,
    progress: Box<[Progress]>,
    left: u32,
    matching: Matching,
    streams: Box<[Stream]>,
    /// Running computations, ordered by their end.
    running: BinaryHeap<Reverse<(Time, u32)>>,
    /// Operations whose dependencies allow their start.
    ready: VecDeque<u32>,
    messages: VecDeque<Message>,
    /// Latest end of an operation so far.
    ended_at: Time,
    kept: Option<Box<Kept>>,
    /// By run of operations of one part: its times.
    parts: Box<[PartTimes]>,
    /// By section: number of operations that are not done, and latest end so far.
    sections: Box<[(u32, Time)]>,
    /// Whether streams run any number of computations at the same time.
    free_streams: bool,
}

impl Rank {
    /// Returns a rank that has not started.
    #[must_use]
    pub fn new(program: Arc<Program>, done: Done) -> Self {
        let ops = program.len();
        let needs = (0..ops as u32).map(|op| program.dependencies(op)).collect();
        let streams = vec![Stream::default(); program.cpus()].into_boxed_slice();
        let sections = 0..program.sections();
        let runs: Vec<u32> = program.part_runs().map(|(first, _)| first).collect();
        let end = |run: usize| runs.get(run + 1).copied().unwrap_or(ops as u32);
        let part = |(run, first): (usize, &u32)| PartTimes {
            start: Time::MAX,
            end: Time::ZERO,
            left: end(run) - first,
        };
        Self {
            parts: runs.iter().enumerate().map(part).collect(),
            sections: sections.map(|n| (program.section_len(n), Time::ZERO)).collect(),
            done,
            needs,
            progress: vec![Progress::Waits; ops].into_boxed_slice(),
            left: ops as u32,
            matching: Matching::new(&program),
            running: BinaryHeap::with_capacity(streams.len()),
            streams,
            ready: VecDeque::new(),
            messages: VecDeque::new(),
            ended_at: Time::ZERO,
            kept: None,
            free_streams: false,
            program,
        }
    }

    /// Stores the times of all operations and the sources of received messages, in 24 bytes per operation.
    #[must_use]
    pub fn with_times(mut self) -> Self {
        let (never, ops) = (OpTimes { start: Time::MAX, end: Time::MAX }, self.program.len());
        let times = vec![never; ops].into_boxed_slice();
        self.kept = Some(Box::new(Kept { times, sources: vec![(ANY, ANY); ops].into() }));
        self
    }

    /// Allows each stream any number of computations at the same time, for the length of critical paths.
    #[must_use]
    pub fn with_free_streams(mut self) -> Self {
        self.free_streams = true;
        self
    }

    /// Returns the operations of the rank.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Starts the operations without dependencies.
    pub fn start(&mut self, now: Time) {
        self.make_ready();
        self.run(now);
    }

    /// Makes the operations without dependencies ready.
    pub(crate) fn make_ready(&mut self) {
        let free = (0..self.program.len() as u32).filter(|op| self.needs[*op as usize] == 0);
        self.ready.extend(free);
    }

    /// Returns the operations that have become ready, for a model that starts them itself.
    pub(crate) fn take_ready(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.ready.drain(..)
    }

    /// Records that a stream is busy until `until` with a message, which may have no receive.
    pub(crate) fn hold_until(&mut self, until: Time) {
        self.ended_at = self.ended_at.max(until);
    }

    /// Posts a receive. Returns rank and operation of the send whose message it takes.
    pub(crate) fn post(&mut self, op: u32) -> Option<(u32, u32)> {
        let Action::Receive { from, bytes, tag } = self.program.op(op).action else { return None };
        let message = self.matching.post(Waiting { source: from, tag, item: (op, bytes) })?;
        let source = (message.source, message.item.0);
        self.note_source(op, source);
        Some(source)
    }

    /// Returns the receive that takes a message, if one is posted.
    pub(crate) fn match_message(
        &mut self,
        (from, op): (u32, u32),
        tag: u32,
        bytes: u64,
    ) -> Option<u32> {
        let receive = self.matching.arrive(Waiting { source: from, tag, item: (op, bytes) })?;
        self.note_source(receive.item.0, (from, op));
        Some(receive.item.0)
    }

    /// Returns the next message to send.
    pub fn poll_message(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Returns the time at which the next computation ends; [`Time::MAX`] if none runs.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Time {
        self.running.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// Ends the computations that are over at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        while self.next_timeout() <= now {
            let Some(Reverse((at, op))) = self.running.pop() else { break };
            let cpu = self.program.op(op).cpu;
            self.streams[usize::from(cpu)].busy = false;
            self.end(op, at);
            self.begin_waiting(cpu, at);
            self.run(at);
        }
    }

    /// Reports that the last byte of a send's message has left.
    pub fn on_sent(&mut self, now: Time, op: u32) {
        self.on_send_progress(now, op, Done::Local);
    }

    /// Reports that the message of a send has arrived at its receiver.
    pub fn on_delivered(&mut self, now: Time, op: u32) {
        self.on_send_progress(now, op, Done::Delivered);
    }

    /// Reports that the sender knows that the message of a send has arrived.
    pub fn on_acknowledged(&mut self, now: Time, op: u32) {
        self.on_send_progress(now, op, Done::Acknowledged);
    }

    /// Reports that the message of operation `source.1` of rank `source.0` has arrived.
    pub fn on_arrival(&mut self, now: Time, source: (u32, u32), tag: u32, bytes: u64) {
        if let Some(receive) = self.match_message(source, tag, bytes) {
            self.end(receive, now);
            self.run(now);
        }
    }

    /// Returns the number of operations that are not done.
    #[inline]
    #[must_use]
    pub fn unfinished(&self) -> u32 {
        self.left
    }

    /// Returns `true` if all operations are done.
    #[inline]
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Returns the latest end of an operation so far; the epoch if none has ended. Sends count according to
    /// [`Done::counts_sends`].
    #[must_use]
    pub fn ended_at(&self) -> Time {
        self.ended_at
    }

    /// Returns `true` if a computation is running.
    #[inline]
    #[must_use]
    pub fn is_computing(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns the latest end of an operation of a section, counted as in [`Rank::ended_at`]. Returns `None`
    /// if operations of the section are not done, or if there is no such section.
    #[must_use]
    pub fn section_ended_at(&self, section: usize) -> Option<Time> {
        self.sections.get(section).filter(|(left, _)| *left == 0).map(|(_, ended_at)| *ended_at)
    }

    /// Returns the progress of an operation.
    ///
    /// # Panics
    /// If there is no operation of this number.
    #[must_use]
    pub fn progress(&self, op: u32) -> Progress {
        self.progress[op as usize]
    }

    /// Returns the operations that are not done, in order.
    pub fn stuck(&self) -> impl Iterator<Item = u32> + '_ {
        let ops = self.progress.iter().enumerate();
        ops.filter(|(_, progress)| **progress != Progress::Done).map(|(op, _)| op as u32)
    }

    /// Returns the messages that no receive has taken, in order of arrival.
    pub fn unexpected(&self) -> impl Iterator<Item = Unexpected> + '_ {
        let item = |w: Waiting| Unexpected { from: w.source, tag: w.tag, bytes: w.item.1 };
        self.matching.unexpected().map(item)
    }

    /// Returns the times of all operations, if [`Rank::with_times`] was called.
    #[must_use]
    pub fn times(&self) -> Option<&[OpTimes]> {
        self.kept.as_ref().map(|kept| &*kept.times)
    }

    /// Returns rank and operation of the send whose message a receive took, if it took one and
    /// [`Rank::with_times`] was called.
    #[must_use]
    pub fn source(&self, receive: u32) -> Option<(u32, u32)> {
        let source = *self.kept.as_ref()?.sources.get(receive as usize)?;
        (source.1 != ANY).then_some(source)
    }

    /// Returns the times of the runs of [`Program::part_runs`].
    #[must_use]
    pub fn part_times(&self) -> &[PartTimes] {
        &self.parts
    }

    fn note_source(&mut self, receive: u32, source: (u32, u32)) {
        if let Some(kept) = &mut self.kept {
            kept.sources[receive as usize] = source;
        }
    }

    fn on_send_progress(&mut self, now: Time, op: u32, event: Done) {
        if event == self.done && self.progress[op as usize] == Progress::Started {
            self.end(op, now);
            self.run(now);
        }
    }

    /// Starts operations until no operation is ready.
    fn run(&mut self, now: Time) {
        while let Some(op) = self.ready.pop_front() {
            let Action::Receive { .. } = self.program.op(op).action else {
                let cpu = self.program.op(op).cpu;
                self.progress[op as usize] = Progress::Ready;
                self.streams[usize::from(cpu)].waiting.push_back(op);
                self.begin_waiting(cpu, now);
                continue;
            };
            self.begin(op, now);
            if self.post(op).is_some() {
                self.end(op, now);
            }
        }
    }

    /// Starts the operations that wait for a stream, until a computation holds the stream.
    fn begin_waiting(&mut self, cpu: u8, now: Time) {
        while !self.streams[usize::from(cpu)].busy {
            let Some(op) = self.streams[usize::from(cpu)].waiting.pop_front() else { break };
            self.begin(op, now);
            let of = self.program.op(op);
            match of.action {
                Action::Send { to, bytes, tag } => {
                    self.messages.push_back(Message { op, to, bytes, tag, nic: of.nic });
                }
                Action::Compute { time } => {
                    self.streams[usize::from(cpu)].busy = !self.free_streams;
                    self.running.push(Reverse((now.saturating_add(time), op)));
                }
                Action::Receive { .. } => debug_assert!(false, "a receive waits for no stream"),
            }
        }
    }

    /// Records the start of an operation.
    pub(crate) fn begin(&mut self, op: u32, now: Time) {
        self.progress[op as usize] = Progress::Started;
        if let Some(kept) = &mut self.kept {
            kept.times[op as usize].start = now;
        }
        let is_receive = matches!(self.program.op(op).action, Action::Receive { .. });
        if let (false, Some(run)) = (is_receive, self.program.part_run_of(op)) {
            self.parts[run].start = self.parts[run].start.min(now);
        }
        Self::release(self.program.after_start(op), &mut self.needs, &mut self.ready);
    }

    /// Records the end of an operation.
    pub(crate) fn end(&mut self, op: u32, now: Time) {
        self.progress[op as usize] = Progress::Done;
        self.left -= 1;
        let is_send = matches!(self.program.op(op).action, Action::Send { .. });
        let (left, ended_at) = &mut self.sections[self.program.section_of(op)];
        *left -= 1;
        let counts = !is_send || self.done.counts_sends();
        if counts {
            self.ended_at = self.ended_at.max(now);
            *ended_at = (*ended_at).max(now);
        }
        if let Some(run) = self.program.part_run_of(op) {
            let part = &mut self.parts[run];
            part.left -= 1;
            part.end = if counts { part.end.max(now) } else { part.end };
        }
        if let Some(kept) = &mut self.kept {
            kept.times[op as usize].end = now;
        }
        Self::release(self.program.after_end(op), &mut self.needs, &mut self.ready);
    }

    /// Marks one dependency of each operation as met.
    fn release(ops: &[u32], needs: &mut [u32], ready: &mut VecDeque<u32>) {
        for op in ops {
            needs[*op as usize] -= 1;
            if needs[*op as usize] == 0 {
                ready.push_back(*op);
            }
        }
    }
}

#[cfg(test)]
mod tests;
