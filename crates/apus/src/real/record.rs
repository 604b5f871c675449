//! What `apus perf` writes: the tables of ops, flows and samples that the simulator writes, with the
//! same columns. What only a simulator knows stays empty.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use apus_sim::columns::{FLOWS, OPS, SAMPLES};
use apus_udp::{Connection, FlowCounters, Snapshot};
use apus_units::Span;

use crate::failure::Failure;
use crate::output::OutputDir;
use crate::tables::Number;

/// A flow that is recorded.
pub struct Recorded<'c> {
    /// Its connection.
    pub connection: &'c Connection,
    /// Its place among the connection's flows.
    pub flow: usize,
}

/// An op that ended.
struct Op {
    flow: usize,
    complete_us: f64,
    latency_us: f64,
}

/// A flow at the end of an interval.
struct Sample {
    time_us: f64,
    flow: usize,
    state: Snapshot,
    goodput_gbps: f64,
}

/// The rows in the making. Memory grows with the ops: 24 bytes each.
pub struct Record<'c> {
    flows: Vec<Recorded<'c>>,
    algorithm: String,
    from: Instant,
    interval: Duration,
    next: Duration,
    ops: Vec<Op>,
    samples: Vec<Sample>,
    /// Ops that had not ended, per flow, and the age of the oldest.
    unfinished: Vec<(u64, Option<f64>)>,
    /// Bytes of ops that ended, per flow: in all, and when the last sample was taken.
    delivered: Vec<(u64, u64)>,
    /// Counters of each flow at the last sample, which stay when its connection ends.
    counters: Vec<FlowCounters>,
}

impl<'c> Record<'c> {
    /// A record of these flows that begins now.
    pub fn new(flows: Vec<Recorded<'c>>, algorithm: &str, interval: Duration) -> Self {
        let delivered = vec![(0, 0); flows.len()];
        let unfinished = vec![(0, None); flows.len()];
        let counters = vec![FlowCounters::default(); flows.len()];
        Self {
            flows,
            algorithm: algorithm.to_owned(),
            from: Instant::now(),
            interval,
            next: interval,
            ops: Vec::new(),
            samples: Vec::new(),
            unfinished,
            delivered,
            counters,
        }
    }

    /// An op of `bytes` bytes ended on a flow.
    pub fn on_op(&mut self, flow: usize, bytes: usize, latency: Span) {
        self.delivered[flow].0 += bytes as u64;
        let complete_us = self.from.elapsed().as_secs_f64() * 1e6;
        self.ops.push(Op { flow, complete_us, latency_us: latency.as_us_f64() });
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
            self.samples.push(Sample {
                time_us: since.as_secs_f64() * 1e6,
                flow: index,
                state,
                goodput_gbps: (now - before) as f64 * 8e-9 / seconds,
            });
        }
        Ok(())
    }

    /// Writes the tables into a directory.
    pub fn write(&self, dir: &OutputDir, kind: &str, size: usize) -> Result<(), Failure> {
        let seconds = self.from.elapsed().as_secs_f64();
        // Of a connection that has ended, as they were at its last sample.
        let now = self.flows.iter().zip(&self.counters).map(|(flow, last)| {
            flow.connection.flow_state(flow.flow).map_or(*last, |(_, counters)| counters)
        });
        let counters: Vec<FlowCounters> = now.collect();
        let write = || {
            dir.write_with(OPS.file, |out| self.write_ops(out, kind, size))?;
            dir.write_with(FLOWS.file, |out| self.write_flows(out, &counters, seconds))?;
            dir.write_with(SAMPLES.file, |out| self.write_samples(out))
        };
        write().map_err(Failure::Run)
    }

    /// Notes the flows and ages, in microseconds, of the ops that had not ended.
    pub fn unfinished(&mut self, ages: &[(usize, f64)]) {
        for &(flow, age) in ages {
            let (count, oldest) = &mut self.unfinished[flow];
            *count += 1;
            *oldest = Some(oldest.unwrap_or(0.0).max(age));
        }
    }

    fn peer(&self, flow: usize) -> String {
        self.flows[flow].connection.peer().to_string()
    }

    fn write_ops(&self, out: &mut dyn Write, kind: &str, size: usize) -> io::Result<()> {
        out.write_all(OPS.header().as_bytes())?;
        let mut numbers = vec![0u64; self.flows.len()];
        for op in &self.ops {
            let (flow, peer) = (op.flow, self.peer(op.flow));
            let number = numbers[flow];
            numbers[flow] += 1;
            let (submit, complete) =
                (Number(op.complete_us - op.latency_us), Number(op.complete_us));
            let latency = Number(op.latency_us);
            writeln!(
                out,
                "{flow},{number},here,{peer},{kind},{size},{submit},{complete},{latency},,done,measured"
            )?;
        }
        Ok(())
    }

    fn write_flows(
        &self,
        out: &mut dyn Write,
        counters: &[FlowCounters],
        seconds: f64,
    ) -> io::Result<()> {
        out.write_all(FLOWS.header().as_bytes())?;
        let mut ops = vec![0u64; self.flows.len()];
        self.ops.iter().for_each(|op| ops[op.flow] += 1);
        for (flow, counted) in counters.iter().enumerate() {
            let (delivered, _) = self.delivered[flow];
            writeln!(
                out,
                "{flow},here,{},{},{delivered},{},{},{},{},{},,,,,{},{},{},",
                self.peer(flow),
                self.algorithm,
                Number(delivered as f64 * 8e-9 / seconds),
                counted.packets_sent,
                counted.fast_losses,
                counted.timeout_losses,
                counted.timeouts,
                ops[flow],
                self.unfinished[flow].0,
                self.unfinished[flow].1.map(|age| Number(age).to_string()).unwrap_or_default(),
            )?;
        }
        Ok(())
    }

    fn write_samples(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(SAMPLES.header().as_bytes())?;
        let us = |span: Option<Span>| Number(span.map_or(f64::NAN, Span::as_us_f64));
        let packets = |window: Option<f64>| Number(window.unwrap_or(f64::NAN));
        for sample in &self.samples {
            let state = &sample.state;
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},,{},1",
                Number(sample.time_us),
                sample.flow,
                Number(state.cwnd),
                packets(state.fabric_cwnd),
                packets(state.endpoint_cwnd),
                us(state.target_delay),
                us(state.pacing_delay),
                us(state.smoothed_rtt),
                Number(sample.goodput_gbps),
            )?;
        }
        Ok(())
    }
}
