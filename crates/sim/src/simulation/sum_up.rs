//! Summary of a run.

use std::collections::BTreeMap;

use apus_cc::AlgorithmFactory;
use apus_fabric::{Count, Counters, PortCounters};
use apus_units::PortId;

use super::Simulation;
use crate::columns::{self, StallSummary, faults_of_plan, ratio};
use crate::credits::CreditSummary;
use crate::distribution::{DistributionSummary, jain};
use crate::groups::{GroupPlan, GroupTotal};
use crate::jobs;
use crate::losses::Losses;
use crate::measure::{self, PortWindows, minus};
use crate::summary::{Conservation, Cost, DrainSummary, PhaseSummary, PortSummary, Summary, Work};

impl<F: AlgorithmFactory> Simulation<F> {
    /// Returns the summary of the run from the counters of ports now and `before`, at the end of the warm-up.
    pub(super) fn sum_up(
        &self,
        name: &str,
        before: &[PortCounters],
        counters: &Counters,
    ) -> Summary {
        let plan = &self.plan;
        let network = &self.parts[0].world.network;
        let metrics = &self.parts[0].world.metrics;
        let after = self.port_counters(self.now());
        let measured = plan.duration - plan.warmup;
        let seconds = measured.as_secs_f64();
        let gbps = |bytes: u64| columns::gbps(bytes, seconds);

        let mut startup = Totals::default();
        let mut steady = Totals::default();
        let mut busiest = (PortId::default(), 0);
        for port in network.ports().filter(|&port| self.is_switch_port(port)) {
            let (old, new) = (&before[port.index()], &after[port.index()]);
            startup.add(old.dropped, old.offered);
            steady.add(minus(new.dropped, old.dropped), minus(new.offered, old.offered));
            let sent = new.sent.bytes - old.sent.bytes;
            if sent > busiest.1 {
                busiest = (port, sent);
            }
        }
        let port = {
            let (port, bytes) = busiest;
            let (old, new) = (&before[port.index()], &after[port.index()]);
            let drops = new.dropped.packets - old.dropped.packets;
            let offered = new.offered.packets - old.offered.packets;
            PortSummary {
                name: network.port_name(port),
                throughput_gbps: gbps(bytes),
                utilisation: gbps(bytes) / network.configured_rate(port).as_gbps_f64(),
                loss_rate: ratio(drops, offered),
                drops,
                // A run that ended in its warm-up has measured nothing.
                mean_queue_bytes: (new.byte_time - old.byte_time) as f64
                    / measured.as_ps_f64().max(1.0),
                max_queue_bytes: new.max_queue.get(),
                startup_max_queue_bytes: old.max_queue.get(),
            }
        };
        let workloads = self.parts[0].world.workloads.as_deref();
        let end_of = |workload, op| workloads.and_then(|all| all.end_of(workload, op));
        let rates: Vec<f64> = metrics.connections.iter().map(|c| c.new_bytes as f64).collect();
        let goodput_gbps = gbps(metrics.warm.new_bytes);
        let by_workload = measure::summarize(workloads, plan, &metrics.connections, seconds);
        Summary {
            groups: GroupPlan::new(plan).groups(&metrics.connections, goodput_gbps, gbps),
            // Only known when the last op has ended.
            totals: Vec::new(),
            name: name.to_owned(),
            seed: plan.seed,
            // A division, because a product with 1e-12 is rounded twice: 50 ms would not be 0.05 s.
            simulated_s: plan.duration.as_ps_f64() / 1e12,
            makespan_us: None,
            makespan_lower_us: None,
            interrupted: false,
            stop_reason: None,
            startup: PhaseSummary::new(
                plan.warmup.as_secs_f64(),
                &metrics.startup,
                startup.drops,
                startup.offered,
            ),
            startup_loss_rate: ratio(startup.drops, startup.offered),
            measured: PhaseSummary::new(seconds, &metrics.warm, steady.drops, steady.offered),
            throughput_gbps: port.throughput_gbps,
            goodput_gbps,
            duplicate_gbps: gbps(metrics.warm.duplicate_bytes),
            engine_ns_per_kb: (plan.host.engine.is_some() && metrics.warm.new_bytes > 0)
                .then(|| metrics.warm.engine_time.as_ps_f64() / metrics.warm.new_bytes as f64),
            acks_per_packet: (metrics.warm.delivered_packets > 0)
                .then(|| ratio(metrics.warm.acks, metrics.warm.delivered_packets)),
            signals_gbps: columns::gbps(counters.signal_bytes, plan.duration.as_secs_f64()),
            loss_rate: port.loss_rate,
            fabric_rtt_us: DistributionSummary::from(&metrics.rtts().fabric()),
            end_to_end_rtt_us: DistributionSummary::from(&metrics.rtts().end_to_end()),
            endpoint_delay_us: DistributionSummary::from(&metrics.rtts().endpoint()),
            nic_rx_delay_us: DistributionSummary::from(&metrics.nic_rx_delay),
            credits: CreditSummary::new(&metrics.warm.credits),
            // Only known when the last op has ended.
            op_latency_us: DistributionSummary::of_values(Vec::new()),
            jain: jain(&rates),
            fair_share_deviation: self.fair_share.worst(),
            fair_share_jain: self.fair_share.lowest_jain(),
            busiest_port: port,
            workload: by_workload,
            ports: self.port_windows.as_ref().map_or_else(BTreeMap::new, |windows| {
                let queues = self.group_queues.as_ref();
                let totals = queues.map(|queues| queues.summarize(before, &after, measured));
                windows.summarize(measured, totals.unwrap_or_default())
            }),
            settle: self.series.as_ref().map_or_else(BTreeMap::new, |all| all.settled(&end_of)),
            span: self.series.as_ref().map_or_else(BTreeMap::new, |all| all.spans(&end_of)),
            compare: self.port_windows.as_ref().map_or_else(BTreeMap::new, PortWindows::compare),
            packets: Conservation {
                sent: counters.sent,
                delivered: counters.delivered,
                dropped: counters.dropped_total(),
                trimmed: counters.trimmed,
                headers_lost: counters.headers_lost,
                signals: counters.signals,
                in_flight: counters.in_flight(),
                dropped_at_nic: metrics.nic_drops,
            },
            offered: self.offered.clone(),
            losses: Losses::default(),
            faults: faults_of_plan(plan, network),
            // Only known after the drain.
            jobs: Vec::new(),
            drain: DrainSummary::default(),
            stalled: StallSummary::default(),
            work: Work::default(),
            cost: Cost::default(),
            notes: Vec::new(),
            recording: None,
        }
    }
}

impl<F: AlgorithmFactory> Simulation<F> {
    /// Adds the times of ops, which are known after the drain.
    pub(super) fn sum_up_ops(&mut self, summary: &mut Summary) {
        if self.plan.trace_ops.is_some() {
            let (makespan, complete) = self.makespan();
            summary.makespan_lower_us = Some(makespan.as_us_f64());
            summary.makespan_us = summary.makespan_lower_us.filter(|_| complete);
        }
        let now = self.now();
        if !self.plan.jobs.is_empty() {
            let ports = self.port_counters(now);
            summary.jobs = jobs::summarize(&self.plan, &self.parts, &ports, now);
        }
        let (first, others) = self.parts.split_at_mut(1);
        let times = &mut first[0].world.op_times;
        for part in others {
            times.add(&part.world.op_times);
        }
        summary.op_latency_us = times.all.summary();
        for (phase, open) in
            [(&mut summary.startup, times.startup), (&mut summary.measured, times.measured)]
        {
            phase.unfinished_ops = open.ops;
            phase.oldest_unfinished_us = open.oldest.as_us_f64();
        }
        measure::note_times(&mut summary.workload, &self.plan, times);
        times.by_group.note(&mut summary.groups);
        summary.totals = GroupTotal::of(&summary.groups);
    }

    /// Returns the work that the simulator has done so far.
    pub(super) fn work(&self) -> Work {
        let hash = self.parts.iter().fold(0u64, |sum, part| sum.wrapping_add(part.handled.hash()));
        Work {
            events: self.parts.iter().map(|part| part.handled.events).sum(),
            packet_hops: self.port_counters(self.now()).iter().map(|c| c.sent.packets).sum(),
            event_hash: format!("{hash:016x}"),
        }
    }
}

/// Sum of the drops, and of the packets sent into the queues, of several ports.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    drops: u64,
    offered: u64,
}

impl Totals {
    fn add(&mut self, dropped: Count, offered: Count) {
        self.drops += dropped.packets;
        self.offered += offered.packets;
    }
}
