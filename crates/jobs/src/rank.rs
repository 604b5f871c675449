//! The executor of one rank: which operation starts when, and what the network has to do.
//!
//! Time is an argument, and nothing here does I/O. The owner calls [`Rank::start`], carries out what
//! [`Rank::poll_command`] returns, and reports what happens: a message left, was delivered, was acknowledged
//! or arrived, or the time of [`Rank::next_timeout`] has come.
//!
//! * A receive starts when its dependencies allow. It is done when a message with its source and tag has
//!   arrived. Receives and messages match in their order; sizes play no part.
//! * A computation holds its stream (cpu) for its time. Computations and sends of a stream start in the order
//!   in which their dependencies allow, each when the stream is free. A send does not hold the stream.
//! * [`Done`] says when a send is done.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use core::cmp::Reverse;

use apus_units::Time;

use crate::graph::{Action, Program};
use crate::matching::{Matching, Waiting};

/// When a send is done. A receive is always done when its message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Done {
    /// When the last byte of the message has left the sender.
    Local,
    /// When the message has arrived.
    #[default]
    Delivered,
    /// When the sender knows that the message has arrived.
    Acknowledged,
}

impl Done {
    /// All values with their names in files.
    pub const ALL: [(&'static str, Self); 3] = [
        ("local", Self::Local),
        ("delivered", Self::Delivered),
        ("acknowledged", Self::Acknowledged),
    ];
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The operation that sends it.
    pub op: u32,
    /// The receiving rank.
    pub to: u32,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its tag.
    pub tag: u32,
    /// The NIC to use.
    pub nic: u8,
}

/// Progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It waits for other operations.
    Waits,
    /// Its dependencies allow it, but its stream is busy.
    Ready,
    /// It has started.
    Started,
    /// It is done.
    Done,
}

impl Progress {
    /// Returns it in words.
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

/// When an operation started and ended; [`Time::MAX`]: it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTimes {
    /// Its start.
    pub start: Time,
    /// Its end.
    pub end: Time,
}

/// A message that no receive took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The sending rank.
    pub from: u32,
    /// Its tag.
    pub tag: u32,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A stream, on which one computation runs at a time.
#[derive(Clone, Debug, Default)]
struct Stream {
    busy: bool,
    /// Computations and sends that wait for it.
    waiting: VecDeque<u32>,
}

/// A rank of a job.
#[derive(Clone, Debug)]
pub struct Rank {
    program: Arc<Program>,
    done: Done,
    /// Dependencies of each operation that are not met.
    needs: Box<[u32]>,
    progress: Box<[Progress]>,
    left: u32,
    matching: Matching,
    streams: Box<[Stream]>,
    /// Computations that run, by their end.
    running: BinaryHeap<Reverse<(Time, u32)>>,
    /// Operations whose dependencies allow their start.
    ready: VecDeque<u32>,
    messages: VecDeque<Message>,
    /// Time at which the last operation ended so far.
    ended_at: Time,
    times: Option<Box<[OpTimes]>>,
    /// By section: operations that are not done, and the time at which the last one ended so far.
    sections: Box<[(u32, Time)]>,
    /// Streams run any number of computations.
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
        Self {
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
            times: None,
            free_streams: false,
            program,
        }
    }

    /// Keeps the times of all operations, in 16 bytes each.
    #[must_use]
    pub fn with_times(mut self) -> Self {
        let never = OpTimes { start: Time::MAX, end: Time::MAX };
        self.times = Some(vec![never; self.program.len()].into_boxed_slice());
        self
    }

    /// Lets each stream run any number of computations at a time, for the length of critical paths.
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
        let free = (0..self.program.len() as u32).filter(|op| self.needs[*op as usize] == 0);
        self.ready.extend(free);
        self.run(now);
    }

    /// Returns the next message to send.
    pub fn poll_message(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Returns when the next computation ends; [`Time::MAX`] if none runs.
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

    /// The last byte of a send's message has left.
    pub fn on_sent(&mut self, now: Time, op: u32) {
        self.on_send_progress(now, op, Done::Local);
    }

    /// The message of a send has arrived at its receiver.
    pub fn on_delivered(&mut self, now: Time, op: u32) {
        self.on_send_progress(now, op, Done::Delivered);
    }

    /// The sender knows that the message of a send has arrived.
    pub fn on_acknowledged(&mut self, now: Time, op: u32) {
        self.on_send_progress(now, op, Done::Acknowledged);
    }

    /// A message from another rank has arrived.
    pub fn on_arrival(&mut self, now: Time, from: u32, tag: u32, bytes: u64) {
        let message = Waiting { source: from, tag, item: (0, bytes) };
        if let Some(receive) = self.matching.arrive(message) {
            self.end(receive.item.0, now);
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

    /// Returns when the last operation ended, of those that have ended; the epoch if none has. A send counts
    /// only with [`Done::Acknowledged`]: otherwise its receive ends later, and the sender of a message may
    /// hear of its delivery later than that.
    #[must_use]
    pub fn ended_at(&self) -> Time {
        self.ended_at
    }

    /// Returns `true` if a computation runs.
    #[inline]
    #[must_use]
    pub fn is_computing(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns when the last operation of a section ended, counted as in [`Rank::ended_at`]; `None` while
    /// operations of it are not done, and without such a section.
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

    /// Returns the operations that are not done, in their order.
    pub fn stuck(&self) -> impl Iterator<Item = u32> + '_ {
        let ops = self.progress.iter().enumerate();
        ops.filter(|(_, progress)| **progress != Progress::Done).map(|(op, _)| op as u32)
    }

    /// Returns the messages that no receive has taken, in the order of their arrival.
    pub fn unexpected(&self) -> impl Iterator<Item = Unexpected> + '_ {
        let item = |w: Waiting| Unexpected { from: w.source, tag: w.tag, bytes: w.item.1 };
        self.matching.unexpected().map(item)
    }

    /// Returns the times of all operations, if [`Rank::with_times`] keeps them.
    #[must_use]
    pub fn times(&self) -> Option<&[OpTimes]> {
        self.times.as_deref()
    }

    fn on_send_progress(&mut self, now: Time, op: u32, event: Done) {
        if event == self.done && self.progress[op as usize] == Progress::Started {
            self.end(op, now);
            self.run(now);
        }
    }

    /// Starts operations until none is ready.
    fn run(&mut self, now: Time) {
        while let Some(op) = self.ready.pop_front() {
            let Action::Receive { from, bytes, tag } = self.program.op(op).action else {
                let cpu = self.program.op(op).cpu;
                self.progress[op as usize] = Progress::Ready;
                self.streams[usize::from(cpu)].waiting.push_back(op);
                self.begin_waiting(cpu, now);
                continue;
            };
            self.begin(op, now);
            let receive = Waiting { source: from, tag, item: (op, bytes) };
            if self.matching.post(receive).is_some() {
                self.end(op, now);
            }
        }
    }

    /// Starts what waits for a stream, until a computation holds it.
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

    fn begin(&mut self, op: u32, now: Time) {
        self.progress[op as usize] = Progress::Started;
        if let Some(times) = &mut self.times {
            times[op as usize].start = now;
        }
        Self::release(self.program.after_start(op), &mut self.needs, &mut self.ready);
    }

    fn end(&mut self, op: u32, now: Time) {
        self.progress[op as usize] = Progress::Done;
        self.left -= 1;
        let is_send = matches!(self.program.op(op).action, Action::Send { .. });
        let (left, ended_at) = &mut self.sections[self.program.section_of(op)];
        *left -= 1;
        if !is_send || self.done == Done::Acknowledged {
            self.ended_at = self.ended_at.max(now);
            *ended_at = (*ended_at).max(now);
        }
        if let Some(times) = &mut self.times {
            times[op as usize].end = now;
        }
        Self::release(self.program.after_end(op), &mut self.needs, &mut self.ready);
    }

    /// Meets one dependency of each operation.
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
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use apus_units::{Span, Time};

    use super::{Done, Message, Progress, Rank, Unexpected};
    use crate::graph::{ANY, Op, ProgramBuilder};

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn rank(done: Done, ops: &[Op], requires: &[(u32, u32)], irequires: &[(u32, u32)]) -> Rank {
        let mut builder = ProgramBuilder::new(0, 4);
        for op in ops {
            builder.push(*op).expect("op");
        }
        for (op, awaited) in requires {
            builder.requires(*op, *awaited);
        }
        for (op, awaited) in irequires {
            builder.irequires(*op, *awaited);
        }
        Rank::new(Arc::new(builder.finish().expect("program")), done).with_times()
    }

    fn sent(rank: &mut Rank) -> Vec<u32> {
        core::iter::from_fn(|| rank.poll_message()).map(|message| message.op).collect()
    }

    #[test]
    fn a_send_is_done_when_the_setting_says() {
        for (done, ends) in [(Done::Local, 10), (Done::Delivered, 20), (Done::Acknowledged, 30)] {
            let mut rank = rank(done, &[Op::send(1, 100, 7)], &[], &[]);
            rank.start(at(5));
            let message = Message { op: 0, to: 1, bytes: 100, tag: 7, nic: 0 };
            assert_eq!(rank.poll_message(), Some(message));
            rank.on_sent(at(10), 0);
            rank.on_delivered(at(20), 0);
            rank.on_acknowledged(at(30), 0);
            let times = rank.times().expect("times")[0];
            assert_eq!(
                (times.start, times.end, rank.is_done()),
                (at(5), at(ends), true),
                "{done:?}"
            );
            let ended = if done == Done::Acknowledged { at(ends) } else { Time::ZERO };
            assert_eq!(rank.ended_at(), ended);
        }
    }

    #[test]
    fn requires_waits_for_the_end_and_irequires_for_the_start() {
        let compute = |ns| Op::compute(Span::from_ns(ns));
        let ops = [compute(100), Op::send(1, 1, 0).on_cpu(1), Op::send(1, 1, 1).on_cpu(1)];
        let mut rank = rank(Done::Local, &ops, &[(1, 0)], &[(2, 0)]);
        rank.start(at(0));
        assert_eq!(sent(&mut rank), [2]);
        assert_eq!(rank.next_timeout(), at(100));
        rank.handle_timeout(at(100));
        assert_eq!(sent(&mut rank), [1]);
    }

    #[test]
    fn a_computation_holds_its_stream_and_no_other_one() {
        let compute = |ns, cpu| Op::compute(Span::from_ns(ns)).on_cpu(cpu);
        let ops = [compute(100, 0), compute(50, 0), Op::send(1, 1, 0), compute(30, 1)];
        let mut rank = rank(Done::Local, &ops, &[], &[]);
        rank.start(at(0));
        assert_eq!(sent(&mut rank), []);
        for ends in [30, 100, 150] {
            assert_eq!(rank.next_timeout(), at(ends));
            rank.handle_timeout(at(ends));
        }
        assert_eq!(sent(&mut rank), [2]);
        assert_eq!(rank.times().expect("times")[2].start, at(150));
    }

    #[test]
    fn early_messages_wait_for_their_receive_and_leftovers_are_listed() {
        let ops = [Op::compute(Span::from_ns(10)), Op::receive(2, 5, 1), Op::receive(ANY, 5, 9)];
        let mut rank = rank(Done::Local, &ops, &[(1, 0)], &[]);
        rank.start(at(0));
        rank.on_arrival(at(1), 2, 1, 5);
        rank.on_arrival(at(2), 3, 1, 6);
        rank.handle_timeout(at(10));
        assert_eq!(rank.progress(1), Progress::Done);
        assert_eq!(rank.times().expect("times")[1].end, at(10));
        assert_eq!(rank.stuck().collect::<Vec<_>>(), [2]);
        let left = Unexpected { from: 3, tag: 1, bytes: 6 };
        assert_eq!(rank.unexpected().collect::<Vec<_>>(), [left]);
        assert_eq!(rank.program().describe(2), "op 2: receive 5 B from rank any, tag 9");
    }
}
