//! Samples at fixed intervals, and the tables at the end of a run.

use apus_cc::AlgorithmFactory;
use apus_fabric::PortCounters;
use apus_transport::FlowCounters;
use apus_units::{FlowId, PortId, Time};

use super::fold::Fold;
use super::ports::{choose_ports, drops_at, nodes, port_records};
use super::seats::{Seat, delivered, endpoint, find_seats, flow_counters};
use super::{
    BAND, Band, Cdf, FlowRecord, FlowSample, FlowState, JobOpRecord, OpRecord, OpenOpRecord,
    PortRecord, PortSample, Quantity, Record, Recording, RttSum, Traced,
};
use crate::build::PlanError;
use crate::columns::{faults_of_plan, gbps};
use crate::groups::GroupPlan;
use crate::losses::Causes;
use crate::part::Part;
use crate::plan::Plan;
use crate::slowdown::Ideal;

/// Maximum number of flows that enter percentiles over flows.
const MAX_WATCHED: usize = 10_000;
/// Takes samples of a run.
pub(crate) struct Sampler {
    record: Record,
    next: Time,
    /// By connection: the end that submits ops, and the end that sends the data.
    seats: Vec<(Seat, Seat)>,
    ideals: Vec<Ideal>,
    /// Connections that enter percentiles, and whether the individual samples of each are kept.
    watched: Vec<(u32, bool)>,
    /// By sampled connection: bytes delivered before the end of the warm-up, and up to the last sample.
    startup_bytes: Vec<u64>,
    delivered: Vec<u64>,
    counters_at_warmup: Vec<FlowCounters>,
    /// Candidates for port samples.
    ports: Vec<PortId>,
    ports_before: Vec<PortCounters>,
    times: Vec<Time>,
    samples: Vec<Vec<FlowSample>>,
    bands: Vec<[Band; Quantity::ALL.len()]>,
    port_samples: Vec<Vec<PortSample>>,
    fold: Fold,
    notes: Vec<String>,
}

/// Returns `count` of `of` indices, evenly spaced.
pub(crate) fn spread(count: usize, of: usize) -> impl Iterator<Item = usize> {
    let count = count.min(of);
    (0..count).map(move |i| (i as u128 * of as u128 / count as u128) as usize)
}

impl Sampler {
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        record: Record,
        parts: &[Part<F>],
    ) -> Result<Self, PlanError> {
        let connections = plan.connections.len();
        let network = &parts[0].world.network;
        let ideals = plan.connections.iter().enumerate().map(|(index, connection)| {
            Ideal::of(
                network,
                plan.data_terminals(connection),
                (index as u64, connection.spread.is_some()),
                plan.sizes,
            )
        });
        let ideals = ideals.collect::<Result<_, _>>().map_err(PlanError::Route)?;
        let mut notes = Vec::new();
        let mut watched: Vec<(u32, bool)> =
            spread(MAX_WATCHED, connections).map(|c| (c as u32, false)).collect();
        let count = watched.len();
        spread(record.flows as usize, count).for_each(|place| watched[place].1 = true);
        if count < connections {
            notes.push(format!(
                "percentiles over flows are of {count} of the {connections} flows, spread evenly"
            ));
        }
        if (record.flows as usize) < connections {
            notes.push(format!(
                "samples.csv holds {} of the {connections} flows, spread evenly; \
                 sample_percentiles.csv sums up the others (more with `flows` in `[record]`)",
                record.flows
            ));
        }
        let ports = choose_ports(network, plan, record, &mut notes);
        let begin = plan.connections.iter().map(|connection| connection.start).min();
        let samples = plan.duration.as_ps() / record.interval.as_ps().max(1);
        let begin = begin.unwrap_or(Time::ZERO);
        let nodes_of_tiers = nodes(network, plan.topology.switches.len());
        let fold = Fold::new(network, &nodes_of_tiers, begin, samples);
        Ok(Self {
            record,
            next: begin + record.interval,
            seats: find_seats(plan, parts),
            ideals,
            startup_bytes: vec![0; count],
            delivered: vec![0; count],
            watched,
            counters_at_warmup: vec![FlowCounters::default(); connections],
            ports_before: vec![PortCounters::default(); ports.len()],
            ports,
            times: Vec::new(),
            samples: Vec::new(),
            bands: Vec::new(),
            port_samples: Vec::new(),
            fold,
            notes,
        })
    }

    /// Samples only these connections, each individually. The bands over all flows and the links over time
    /// are those of an earlier run with the same seed.
    pub(crate) fn watch_only(&mut self, connections: impl Iterator<Item = u32>) {
        self.watched = connections.map(|connection| (connection, true)).collect();
        self.startup_bytes = vec![0; self.watched.len()];
        self.delivered = vec![0; self.watched.len()];
        self.fold.turn_off();
    }

    /// Returns the settings of the recording.
    pub(crate) fn record(&self) -> Record {
        self.record
    }

    /// Returns the time of the next sample.
    pub(crate) fn next_sample(&self) -> Time {
        self.next
    }

    /// Samples the state at `now`, and the counts since the last sample.
    pub(crate) fn sample<F: AlgorithmFactory>(
        &mut self,
        now: Time,
        parts: &[Part<F>],
        port_counters: impl Fn(PortId) -> PortCounters,
    ) {
        self.next = now + self.record.interval;
        self.times.push(now);
        let interval = self.record.interval;
        let mut all = Vec::with_capacity(self.watched.len());
        for (place, &(connection, _)) in self.watched.iter().enumerate() {
            let connection = connection as usize;
            let total = self.startup_bytes[place] + delivered(parts, connection);
            let bytes = total - self.delivered[place];
            self.delivered[place] = total;
            all.push(self.flow_sample(parts, connection, bytes));
        }
        let kept = self.watched.iter().zip(&all).filter(|((_, kept), _)| *kept);
        self.samples.push(kept.map(|(_, sample)| *sample).collect());
        let mut values = Vec::with_capacity(all.len());
        self.bands.push(Quantity::ALL.map(|quantity| band(&all, quantity, &mut values)));
        let samples = self.ports.iter().zip(&mut self.ports_before).map(|(&port, before)| {
            let counters = port_counters(port);
            let byte_time = counters.byte_time - before.byte_time;
            let sample = PortSample {
                sent_bytes: counters.sent.bytes - before.sent.bytes,
                queue_bytes: counters.queued.bytes,
                mean_queue_bytes: byte_time as f64 / interval.as_ps_f64(),
                drops: counters.dropped.packets - before.dropped.packets,
                marked: counters.marked - before.marked,
                pauses: counters.pauses - before.pauses,
            };
            *before = counters;
            sample
        });
        self.port_samples.push(samples.collect());
        self.fold.sample(now, port_counters);
    }

    fn flow_sample<F: AlgorithmFactory>(
        &self,
        parts: &[Part<F>],
        connection: usize,
        bytes: u64,
    ) -> FlowSample {
        let (submitter, sender) = self.seats[connection];
        let under_way = |seat: Seat| {
            let flow = FlowId::new(seat.flow);
            endpoint(parts, seat).ops_under_way(flow).unwrap_or(0)
        };
        let ops = under_way(submitter) + under_way(sender);
        let endpoint = endpoint(parts, sender);
        let flow = FlowId::new(sender.flow);
        let state = FlowState {
            algorithm: endpoint.snapshot(flow).unwrap_or_default(),
            in_flight: Some(endpoint.in_flight(flow).unwrap_or(0)),
            goodput_gbps: gbps(bytes, self.record.interval.as_secs_f64()),
        };
        FlowSample::new(&state, ops > 0 || bytes > 0)
    }

    /// Ends the warm-up. Called before the metrics restart.
    pub(crate) fn end_warmup<F: AlgorithmFactory>(&mut self, parts: &[Part<F>]) {
        for (place, &(connection, _)) in self.watched.iter().enumerate() {
            self.startup_bytes[place] += delivered(parts, connection as usize);
        }
        for (counters, &(_, sender)) in self.counters_at_warmup.iter_mut().zip(&self.seats) {
            *counters = flow_counters(parts, sender);
        }
    }

    /// Returns the tables. `before` and `after` are the counters of the ports at the end of the warm-up and now.
    pub(crate) fn finish<F: AlgorithmFactory>(
        mut self,
        plan: &Plan<F>,
        parts: &[Part<F>],
        before: &[PortCounters],
        after: &[PortCounters],
    ) -> Recording {
        let rtts = collect_rtts(parts, self.seats.len());
        let network = &parts[0].world.network;
        let nodes = nodes(network, plan.topology.switches.len());
        let mut ports = port_records(network, plan.duration - plan.warmup, before, after);
        for record in &mut ports {
            record.causes = Causes::of(&drops_at(parts, record.port));
        }
        let groups = GroupPlan::new(plan);
        let flows = plan.connections.iter().enumerate().map(|(index, connection)| {
            let now = flow_counters(parts, self.seats[index].1);
            let then = &self.counters_at_warmup[index];
            FlowRecord {
                from: connection.from,
                to: connection.to,
                group: groups.of(index),
                kind: connection.kind.op(),
                algorithm: connection.algorithm.name(),
                fields: connection.algorithm.fields(),
                ideal: self.ideals[index],
                delivered: delivered(parts, index),
                counters: now.since(then),
                rtt: rtts[index],
            }
        });
        let flows = flows.collect();
        let network = self.fold.finish(&self.times, &self.ports, &self.port_samples, &ports);
        self.keep_busiest(&ports);
        let kept = self.watched.iter().filter(|(_, kept)| *kept);
        Recording {
            record: self.record,
            warmup: Time::ZERO + plan.warmup,
            duration: plan.duration,
            sizes: plan.sizes,
            ops: Vec::new(),
            ops_seen: 0,
            open_ops: Vec::new(),
            jobs: plan.jobs.clone(),
            job_ops: Vec::new(),
            flows,
            nodes,
            ports,
            times: self.times,
            sampled_flows: kept.map(|(connection, _)| *connection).collect(),
            samples: self.samples,
            bands: self.bands,
            sampled_ports: self.ports,
            port_samples: self.port_samples,
            network,
            fabric_rtt: Cdf::new(),
            end_to_end_rtt: Cdf::new(),
            op_latency: Cdf::new(),
            traced: Traced::default(),
            faults: faults_of_plan(plan, &parts[0].world.network),
            notes: self.notes,
        }
    }

    /// Keeps the samples of the ports with the most traffic.
    fn keep_busiest(&mut self, ports: &[PortRecord]) {
        let mut order: Vec<usize> = (0..self.ports.len()).collect();
        let sent = |place: usize| ports[self.ports[place].index()].sent_bytes;
        order.sort_by_key(|&place| (core::cmp::Reverse(sent(place)), place));
        let candidates = order.len();
        order.truncate(self.record.ports as usize);
        if order.len() < candidates {
            self.notes.push(format!(
                "port_samples.csv holds the {} ports of {candidates} that carried most (more with \
                 `ports` in `[record]`)",
                order.len()
            ));
        }
        self.ports = order.iter().map(|&place| self.ports[place]).collect();
        for samples in &mut self.port_samples {
            *samples = order.iter().map(|&place| samples[place]).collect();
        }
    }
}

impl Recording {
    /// Adds the ops of all parts in order of completion, then the unfinished ones in order of
    /// submission.
    pub(crate) fn add_ops<F: AlgorithmFactory>(&mut self, parts: &mut [Part<F>]) {
        let (mut ops, mut open) = (Vec::new(), Vec::new());
        let (mut seen, mut seen_open) = (0, 0);
        for recorder in parts.iter_mut().filter_map(|part| part.world.recorder.take()) {
            seen += recorder.ops_seen;
            seen_open += recorder.open_seen;
            ops.extend(recorder.ops);
            open.extend(recorder.open);
        }
        ops.sort_by_key(|op: &OpRecord| (op.completed, op.flow, op.op));
        let most = self.record.ops as usize;
        ops.truncate(most);
        if (ops.len() as u64) < seen {
            self.notes.push(format!(
                "ops.csv holds the first {} of the {seen} ops that completed (more with `ops` in \
                 `[record]`)",
                ops.len()
            ));
        }
        open.sort_by_key(|op: &OpenOpRecord| (op.submitted, op.flow, op.size));
        open.truncate(most);
        if (open.len() as u64) < seen_open {
            self.notes.push(format!(
                "ops.csv holds the {} oldest of the {seen_open} ops that had not ended (more with \
                 `ops` in `[record]`)",
                open.len()
            ));
        }
        if seen_open > 0 {
            self.notes.push(format!(
                "{seen_open} ops had not ended: ops.csv lists them as unfinished, fct.txt leaves them \
                 out"
            ));
        }
        (self.ops, self.ops_seen, self.open_ops) = (ops, seen, open);
    }

    /// Adds the operations of jobs.
    pub(crate) fn add_job_ops(&mut self, ops: Vec<JobOpRecord>) {
        let all: u64 = self.jobs.iter().map(|job| job.graph.ops()).sum();
        if (ops.len() as u64) < all {
            self.notes.push(format!(
                "job_ops.csv holds {} of the {all} operations of jobs (more with `ops` in `[record]`; jobs of more \
                 than 8 million operations keep no times)",
                ops.len()
            ));
        }
        self.job_ops = ops;
    }

    /// Adds the packets and events of a trace.
    pub(crate) fn add_trace<F: AlgorithmFactory>(&mut self, parts: &mut [Part<F>]) {
        for part in parts {
            if let Some(tap) = part.tap.take() {
                tap.finish(&mut self.traced);
            }
            if let Some(close_up) = part.close_up.take() {
                self.traced.passed = close_up.finish();
            }
            let recorder = part.world.recorder.as_mut();
            if let Some(tracer) = recorder.and_then(|recorder| recorder.tracer.take()) {
                tracer.finish(&mut self.traced);
            }
        }
        self.notes.extend(self.traced.notes());
    }
}

/// Returns the RTTs by connection.
fn collect_rtts<F: AlgorithmFactory>(parts: &[Part<F>], connections: usize) -> Vec<RttSum> {
    let mut rtts = vec![RttSum::default(); connections];
    for recorder in parts.iter().filter_map(|part| part.world.recorder.as_ref()) {
        for (sum, more) in rtts.iter_mut().zip(&recorder.rtts) {
            sum.count += more.count;
            sum.sum_ps += more.sum_ps;
            sum.max = sum.max.max(more.max);
        }
    }
    rtts
}

fn band(all: &[FlowSample], quantity: Quantity, values: &mut Vec<f64>) -> Band {
    values.clear();
    let active = all.iter().filter(|sample| sample.active).map(|sample| sample.get(quantity));
    values.extend(active.filter(|value| !value.is_nan()));
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    if count == 0 {
        return Band { flows: 0, mean: f64::NAN, percentiles: [f64::NAN; BAND.len()] };
    }
    let rank = |percent: u32| (count * percent as usize).div_ceil(100).max(1) - 1;
    Band {
        flows: count as u32,
        mean: values.iter().sum::<f64>() / count as f64,
        percentiles: BAND.map(|percent| values[rank(percent)]),
    }
}
