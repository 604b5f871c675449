//! The tables of a recorded run as CSV files.

use std::io::{self, Write};

use apus_sim::columns::{
    FAULTS, FLOWS, OPS, PORT_SAMPLES, PORTS, SAMPLE_PERCENTILES, SAMPLES, Table, WORKLOADS,
};
use apus_sim::distribution::DistributionSummary;
use apus_sim::record::{OpRecord, Quantity, Recording};
use apus_sim::summary::Summary;
use apus_units::{PortId, Time};

use crate::output::OutputDir;

/// Writes the rows of a table.
type Rows = fn(&Recording, &mut dyn Write) -> io::Result<()>;

/// Writes every table of a run.
pub fn write(dir: &OutputDir, summary: &Summary, recording: &Recording) -> Result<(), String> {
    dir.write_with(WORKLOADS.file, |out| {
        out.write_all(WORKLOADS.header().as_bytes())?;
        workloads(summary, out)
    })?;
    let tables: [(&Table, Rows); 7] = [
        (&OPS, ops),
        (&FLOWS, flows),
        (&PORTS, ports),
        (&FAULTS, faults),
        (&SAMPLES, samples),
        (&SAMPLE_PERCENTILES, percentiles),
        (&PORT_SAMPLES, port_samples),
    ];
    for (table, rows) in tables {
        dir.write_with(table.file, |out| {
            out.write_all(table.header().as_bytes())?;
            rows(recording, out)
        })?;
    }
    Ok(())
}

/// A number with all digits that it has, at most six after the point; empty if there is none.
pub struct Number(pub f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.0.is_finite() {
            return Ok(());
        }
        let text = format!("{:.6}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

fn us(time: Time) -> Number {
    Number(time.as_ps() as f64 * 1e-6)
}

fn measured_seconds(recording: &Recording) -> f64 {
    let measured = recording.duration.as_secs_f64() - recording.warmup.as_secs_f64();
    if measured > 0.0 { measured } else { f64::INFINITY }
}

fn gbps(bytes: u64, seconds: f64) -> Number {
    Number(bytes as f64 * 8e-9 / seconds)
}

fn is_measured(recording: &Recording, op: &OpRecord) -> bool {
    op.submitted >= recording.warmup
}

fn workloads(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    for group in &summary.groups {
        let (share, times) = (&group.share, summary.times_of_group(group));
        let oldest = Some(share.oldest_unfinished_us).filter(|_| share.unfinished_ops > 0);
        write!(
            out,
            "{},{},{},{},{},{},{},{}",
            group.workload,
            group.algorithm,
            group.class.as_deref().unwrap_or_default(),
            share.ops,
            share.unfinished_ops,
            or_empty(oldest),
            Number(share.goodput_gbps),
            or_empty(share.goodput_share),
        )?;
        let (latency, slowdown) = (times.op_latency_us, times.slowdown);
        let p50 = with_bounds(latency, |d| d.p50);
        let p99 = with_bounds(latency, |d| d.p99);
        let slowdown = with_bounds(slowdown, |d| d.p99);
        for value in [p50, p99, slowdown].into_iter().flatten() {
            write!(out, ",{}", or_empty(value))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A number of a distribution over ops with its lower and upper bound.
fn with_bounds(
    distribution: Option<&DistributionSummary>,
    value: fn(&DistributionSummary) -> Option<f64>,
) -> [Option<f64>; 3] {
    let open = distribution.and_then(|d| d.open.as_ref());
    [
        distribution.and_then(value),
        open.and_then(|open| value(&open.lower)),
        open.and_then(|open| value(&open.upper)),
    ]
}

fn or_empty(value: Option<f64>) -> Number {
    Number(value.unwrap_or(f64::NAN))
}

fn ops(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    for op in &recording.ops {
        let flow = &recording.flows[op.flow as usize];
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            op.flow,
            op.op,
            flow.from,
            flow.to,
            op.kind_name(),
            op.size,
            us(op.submitted),
            us(op.completed),
            Number(op.latency().as_us_f64()),
            Number(recording.slowdown(op)),
            op.outcome_name(),
            if is_measured(recording, op) { "measured" } else { "startup" },
        )?;
    }
    for op in &recording.open_ops {
        let flow = &recording.flows[op.flow as usize];
        let phase = if op.submitted >= recording.warmup { "measured" } else { "startup" };
        let (from, to, kind) = (flow.from, flow.to, flow.kind_name());
        let (size, submitted) = (op.size, us(op.submitted));
        writeln!(out, "{},,{from},{to},{kind},{size},{submitted},,,,unfinished,{phase}", op.flow)?;
    }
    Ok(())
}

fn flows(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let seconds = measured_seconds(recording);
    let mut ops = vec![(0_u64, 0.0); recording.flows.len()];
    let mut open = vec![(0_u64, f64::NAN); recording.flows.len()];
    for op in recording.open_ops.iter().filter(|op| op.submitted >= recording.warmup) {
        let (count, oldest) = &mut open[op.flow as usize];
        *count += 1;
        *oldest = oldest.max(op.age.as_us_f64());
    }
    for op in recording.ops.iter().filter(|op| is_measured(recording, op)) {
        let (count, sum) = &mut ops[op.flow as usize];
        *count += 1;
        *sum += recording.slowdown(op);
    }
    let flows = recording.flows.iter().zip(ops).zip(open).enumerate();
    for (index, ((flow, (ops, slowdowns)), (unfinished, oldest))) in flows {
        writeln!(
            out,
            "{index},{},{},{},{},{},{},{},{},{},{},{},{},{},{ops},{unfinished},{},{}",
            flow.from,
            flow.to,
            flow.algorithm,
            flow.delivered,
            gbps(flow.delivered, seconds),
            flow.packets_sent,
            flow.fast_losses,
            flow.timeout_losses,
            flow.timeouts,
            Number(flow.rtt.mean_us().unwrap_or(f64::NAN)),
            Number(if flow.rtt.count > 0 { flow.rtt.max.as_us_f64() } else { f64::NAN }),
            Number(flow.ideal.base_rtt.as_us_f64()),
            Number(flow.ideal.line_rate.as_gbps_f64()),
            Number(oldest),
            Number(slowdowns / ops as f64),
        )?;
    }
    Ok(())
}

fn ports(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let seconds = measured_seconds(recording);
    for port in &recording.ports {
        let (from, to) = (&recording.nodes[port.from], &recording.nodes[port.to]);
        let throughput = gbps(port.sent_bytes, seconds);
        let utilisation = Number(throughput.0 / port.rate.as_gbps_f64());
        let loss = match port.offered_packets {
            0 => 0.0,
            offered => port.drops as f64 / offered as f64,
        };
        let causes = &port.causes;
        writeln!(
            out,
            "{} -> {},{},{},{},{},{throughput},{utilisation},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            from.name,
            to.name,
            from.name,
            to.name,
            from.tier,
            Number(port.rate.as_gbps_f64()),
            port.sent_packets,
            port.offered_packets,
            port.drops,
            Number(loss),
            port.marked,
            Number(port.mean_queue_bytes),
            port.max_queue.get(),
            causes.buffer,
            causes.link_down,
            causes.link_loss,
            causes.corruption,
            causes.ttl,
            causes.switch_half,
            causes.credit_limit,
        )?;
    }
    Ok(())
}

fn faults(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    for fault in &recording.faults {
        writeln!(
            out,
            "{},{},{},{},{},{},{}",
            fault.kind,
            fault.subject,
            Number(fault.at_us),
            or_empty(fault.until_us),
            or_empty(fault.probability),
            or_empty(fault.delay_us),
            fault.through.as_deref().unwrap_or_default(),
        )?;
    }
    Ok(())
}

fn samples(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    for (time, row) in recording.times.iter().zip(&recording.samples) {
        for (flow, sample) in recording.sampled_flows.iter().zip(row) {
            write!(out, "{},{flow}", us(*time))?;
            for value in sample.values {
                write!(out, ",{}", Number(value))?;
            }
            writeln!(out, ",{}", u8::from(sample.active))?;
        }
    }
    Ok(())
}

fn percentiles(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    for (time, bands) in recording.times.iter().zip(&recording.bands) {
        for (quantity, band) in Quantity::ALL.iter().zip(bands).filter(|(_, b)| b.flows > 0) {
            write!(out, "{},{},{}", us(*time), quantity.column(), band.flows)?;
            write!(out, ",{}", Number(band.mean))?;
            for value in band.percentiles {
                write!(out, ",{}", Number(value))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn port_samples(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let seconds = recording.record.interval.as_secs_f64();
    let name = |port: &PortId| recording.port_name(*port);
    let names: Vec<String> = recording.sampled_ports.iter().map(name).collect();
    for (time, row) in recording.times.iter().zip(&recording.port_samples) {
        for (port, sample) in names.iter().zip(row) {
            writeln!(
                out,
                "{},{port},{},{},{},{}",
                us(*time),
                gbps(sample.sent_bytes, seconds),
                sample.queue_bytes,
                Number(sample.mean_queue_bytes),
                sample.drops,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        let shown = [12.5, 100.0, 0.001, 1e-9, f64::NAN, 0.0].map(|n| Number(n).to_string());
        assert_eq!(shown, ["12.5", "100", "0.001", "0", "", "0"]);
    }
}
