//! Closed loops: flows with a constant number of outstanding ops, as `apus perf` and `apus bench udp` use them.

use std::time::{Duration, Instant};

use apus_udp::{Completion, Connection, Host, Request, async_channel};

use crate::failure::Failure;

/// How a closed loop waits for completions.
#[derive(Clone, Copy)]
pub enum Wait {
    /// By a blocking call of at most this duration, with a call of [`Ops::check`] in between.
    Block(Duration),
    /// By running the engine of a host in inline mode, without sleeping.
    Drive,
}

/// A load in a closed loop.
pub struct ClosedLoop<'a> {
    /// The host.
    pub host: &'a Host,
    /// Flows: the connection, and the number of the flow within it.
    pub flows: Vec<(&'a Connection, usize)>,
    /// Outstanding ops of each flow.
    pub outstanding: usize,
    /// Time in which ops are submitted.
    pub duration: Duration,
    /// Longest time afterwards in which these ops may end.
    pub drain: Duration,
    /// How to wait for completions.
    pub wait: Wait,
}

/// The ops of a load.
pub trait Ops {
    /// Returns the op with number `number` for a flow; ops are counted from 0 over all flows.
    fn request(&mut self, flow: usize, number: u64) -> Request;

    /// Records the end of an op `elapsed` after the start. `in_time` is `false` during the drain.
    fn on_end(&mut self, flow: usize, elapsed: Duration, latency: Duration, in_time: bool);

    /// Called after every completion and after every wait without one, `elapsed` after the start. An error ends the
    /// load. `in_time` is `false` during the drain.
    fn check(&mut self, elapsed: Duration, in_time: bool) -> Result<(), Failure>;
}

/// Results of a load.
pub struct Outcome {
    /// Time in which ops were submitted, seconds.
    pub seconds: f64,
    /// Ops of each flow that ended in that time.
    pub ops: Vec<u64>,
    /// Flow and submission time of each unfinished op.
    pub unfinished: Vec<(usize, Instant)>,
    /// Reason why the load ended early.
    pub failure: Option<Failure>,
}

impl ClosedLoop<'_> {
    /// Runs the load. Calls `started` with the time of the start, from which the duration counts; the first ops have
    /// then been submitted.
    ///
    /// # Errors
    /// If the first ops cannot be submitted. Later errors are part of the outcome.
    pub fn run<O: Ops>(
        &self,
        ops: &mut O,
        started: impl FnOnce(&mut O, Instant),
    ) -> Result<Outcome, Failure> {
        let slots = self.flows.len() * self.outstanding;
        let (queue, ends) = async_channel::bounded::<Completion>(slots);
        let mut number = 0;
        // An op is identified by its slot: its flow, and its index among the outstanding ops of the flow.
        let mut submit = |slot: usize, ops: &mut O| {
            let index = slot / self.outstanding;
            let (connection, flow) = self.flows[index];
            let request = ops.request(index, number);
            number += 1;
            connection
                .submit_queued(flow, request, &queue, slot as u64)
                .map_err(|error| Failure::Run(format!("{}: {error}", connection.peer())))
        };
        for place in 0..self.outstanding {
            for index in 0..self.flows.len() {
                submit(index * self.outstanding + place, ops)?;
            }
        }
        let from = Instant::now();
        let mut submitted = vec![Some(from); slots];
        let mut outstanding = slots;
        started(ops, from);
        let mut per_flow = vec![0u64; self.flows.len()];
        // Length of the measured time, once it has ended and the drain has begun.
        let mut measured: Option<Duration> = None;
        let mut failure = None;
        loop {
            let end = self.next(&ends);
            let now = Instant::now();
            let elapsed = now - from;
            let in_time = measured.is_none();
            if in_time && elapsed >= self.duration {
                measured = Some(elapsed);
            }
            if let Some(end) = end {
                let slot = end.user as usize;
                let index = slot / self.outstanding;
                if let Err(error) = end.result {
                    let peer = self.flows[index].0.peer();
                    failure = Some(Failure::Run(format!("{peer}: {error}")));
                    break;
                }
                outstanding -= 1;
                let latency = submitted[slot].take().map_or(Duration::ZERO, |at| now - at);
                ops.on_end(index, elapsed, latency, in_time);
                if in_time {
                    per_flow[index] += 1;
                }
                if measured.is_none() {
                    submitted[slot] = Some(now);
                    outstanding += 1;
                    if let Err(error) = submit(slot, ops) {
                        submitted[slot] = None;
                        failure = Some(error);
                        break;
                    }
                }
            }
            if measured.is_some_and(|m| outstanding == 0 || elapsed - m >= self.drain) {
                break;
            }
            if let Err(error) = ops.check(elapsed, measured.is_none()) {
                failure = Some(error);
                break;
            }
        }
        let unfinished = submitted
            .iter()
            .enumerate()
            .filter_map(|(slot, at)| Some((slot / self.outstanding, (*at)?)))
            .collect();
        let seconds = measured.unwrap_or_else(|| from.elapsed()).as_secs_f64();
        Ok(Outcome { seconds, ops: per_flow, unfinished, failure })
    }

    /// Returns the next completion, if one arrives soon.
    fn next(&self, ends: &async_channel::Receiver<Completion>) -> Option<Completion> {
        if let Ok(end) = ends.try_recv() {
            return Some(end);
        }
        match self.wait {
            Wait::Block(pause) => self.host.block_on(ends.recv(), Some(pause))?.ok(),
            Wait::Drive => {
                self.host.drive();
                ends.try_recv().ok()
            }
        }
    }
}
