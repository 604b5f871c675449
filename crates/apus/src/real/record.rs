//! Tables of `apus perf`: ops, flows and samples, with the columns of the simulator. Columns that only the simulator
//! can fill are empty.

use std::time::{Duration, Instant};

use apus_sim::columns::{FlowRow, OpRow, SampleRow, gbps};
use apus_sim::record::{FlowSample, FlowState};
use apus_udp::{Connection, FlowCounters};
use apus_units::Span;

use crate::failure::Failure;
use crate::output::OutputDir;
use crate::tables::write_rows;

/// Name of this host in the tables.
const HERE: &str = "here";

/// A recorded flow.
pub struct Recorded<'c> {
    /// Connection of the flow.
    pub connection: &'c Connection,
    /// Index of the flow within its connection.
    pub flow: usize,
}

/// A completed op.
struct Op {
    flow: usize,
    complete_us: f64,
    latency_us: f64,
}

/// Rows of a measurement. Memory grows by 24 bytes per op.
pub struct Record<'c> {
    flows: Vec<Recorded<'c>>,
    algorithm: String,
    from: Instant,
    interval: Duration,
    next: Duration,
    ops: Vec<Op>,
    samples: Vec<SampleRow>,
    /// Bytes of ops that ended in the measured time, per flow: in total, and at the time of the last sample.
    delivered: Vec<(u64, u64)>,
    /// Counters of each flow at the last sample; they remain after the connection ends.
    counters: Vec<FlowCounters>,
}

impl<'c> Record<'c> {
    /// Returns a record of these flows; `from` is the start of the measurement.
    pub fn new(
        flows: Vec<Recorded<'c>>,
        algorithm: &str,
        from: Instant,
        interval: Duration,
    ) -> Self {
        let delivered = vec![(0, 0); flows.len()];
        let counters = vec![FlowCounters::default(); flows.len()];
        Self {
            flows,
            algorithm: algorithm.to_owned(),
            from,
            interval,
            next: interval,
            ops: Vec::new(),
            samples: Vec::new(),
            delivered,
            counters,
        }
    }

    /// Records the end of an op on a flow, `elapsed` after the start.
    pub fn on_op(&mut self, flow: usize, elapsed: Duration, latency: Span) {
        let complete_us = elapsed.as_secs_f64() * 1e6;
        self.ops.push(Op { flow, complete_us, latency_us: latency.as_us_f64() });
    }

    /// Counts the bytes of an op that were delivered in the measured time.
    pub fn on_delivered(&mut self, flow: usize, bytes: usize) {
        self.delivered[flow].0 += bytes as u64;
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self) -> Result<(), Failure> {
        let since = self.from.elapsed();
        if since < self.next {
            return Ok(());
        }
        let seconds = (since - (self.next - self.interval)).as_secs_f64();
        self.next = since + self.interval;
        for (index, flow) in self.flows.iter().enumerate() {
            let state = flow.connection.flow_state(flow.flow);
            let (state, counters) = state.map_err(|end| Failure::Run(end.to_string()))?;
            self.counters[index] = counters;
            let (now, before) = self.delivered[index];
            self.delivered[index].1 = now;
            let goodput_gbps = gbps(now - before, seconds);
            let state = FlowState { algorithm: state, in_flight: None, goodput_gbps };
            self.samples.push(SampleRow {
                time_us: since.as_secs_f64() * 1e6,
                flow: index as u32,
                sample: FlowSample::new(&state, true),
            });
        }
        Ok(())
    }

    /// Writes the tables of a measurement of `seconds` into a directory. `unfinished` has the flow and the submission
    /// time of each unfinished op.
    pub fn write(
        &self,
        dir: &OutputDir,
        kind: &'static str,
        size: usize,
        seconds: f64,
        unfinished: &[(usize, Instant)],
    ) -> Result<(), Failure> {
        write_rows(dir, self.op_rows(kind, size, unfinished))
            .and_then(|()| write_rows(dir, self.flow_rows(seconds, unfinished)))
            .and_then(|()| write_rows(dir, self.samples.iter().cloned()))
            .map_err(Failure::Run)
    }

    fn peer(&self, flow: usize) -> String {
        self.flows[flow].connection.peer().to_string()
    }

    fn op_rows(
        &self,
        kind: &'static str,
        size: usize,
        unfinished: &[(usize, Instant)],
    ) -> impl Iterator<Item = OpRow> {
        let open = move |flow: usize, submit_us| OpRow {
            flow: flow as u32,
            op: None,
            from: HERE.to_owned(),
            to: self.peer(flow),
            kind,
            size_bytes: size as u64,
            submit_us,
            complete_us: None,
            latency_us: None,
            slowdown: None,
            outcome: "unfinished",
            phase: "measured",
        };
        let mut numbers = vec![0u64; self.flows.len()];
        let ended = self.ops.iter().map(move |op| {
            numbers[op.flow] += 1;
            OpRow {
                op: Some(numbers[op.flow] - 1),
                complete_us: Some(op.complete_us),
                latency_us: Some(op.latency_us),
                outcome: "done",
                ..open(op.flow, op.complete_us - op.latency_us)
            }
        });
        // The first ops were submitted before the start of the measurement.
        let us = |at: Instant| at.saturating_duration_since(self.from).as_secs_f64() * 1e6;
        ended.chain(unfinished.iter().map(move |&(flow, at)| open(flow, us(at))))
    }

    fn flow_rows(&self, seconds: f64, unfinished: &[(usize, Instant)]) -> Vec<FlowRow> {
        let row = |(index, flow): (usize, &Recorded<'_>)| {
            let last = self.counters[index];
            // A connection that has ended has the counters of its last sample.
            let state = flow.connection.flow_state(flow.flow);
            let counters = state.map_or(last, |(_, counters)| counters);
            let (delivered, _) = self.delivered[index];
            FlowRow {
                from: HERE.to_owned(),
                to: self.peer(index),
                algorithm: self.algorithm.clone(),
                ..FlowRow::of_transport(index as u32, delivered, seconds, &counters)
            }
        };
        let mut rows: Vec<FlowRow> = self.flows.iter().enumerate().map(row).collect();
        self.ops.iter().for_each(|op| rows[op.flow].ops += 1);
        for &(flow, at) in unfinished {
            rows[flow].add_unfinished(at.elapsed().as_secs_f64() * 1e6);
        }
        rows
    }
}
