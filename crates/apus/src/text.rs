//! Results as text: every number with its unit.

mod jobs;
pub mod losses;
pub mod workloads;

use std::fmt::Write;

use apus_sim::bounds::Bounds;
use apus_sim::distribution::DistributionSummary;
use apus_sim::summary::{Cost, PhaseSummary, PortSummary, Summary};

/// Returns a number to four significant digits.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    // Number of decimals for four significant digits; large numbers keep all their digits.
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Returns rows as columns of equal width; the last column has no fixed width.
pub fn columns(rows: &[Vec<String>], indent: &str) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(indent);
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns the text of a summary.
pub fn summary(summary: &Summary) -> String {
    with_table(summary, &workloads::table(summary, None))
}

/// Describes a run as [`run`] does, without the table of several workloads.
pub fn overview(summary: &Summary) -> String {
    with_table(summary, &[])
}

fn with_table(summary: &Summary, workloads: &[Vec<String>]) -> String {
    let port = &summary.busiest_port;
    let (startup, measured) = (&summary.startup, &summary.measured);
    let percent = |fraction: f64| number(fraction * 100.0);
    let mut rows: Vec<_> = summary.jobs.iter().flat_map(jobs::rows).collect();
    rows.extend([
        row(
            "throughput",
            format!(
                "{} Gb/s at {} ({} % of the link)",
                number(summary.throughput_gbps),
                port.name,
                percent(port.utilisation)
            ),
        ),
        row(
            "goodput",
            match measured.duplicates_delivered {
                0 => format!("{} Gb/s", number(summary.goodput_gbps)),
                packets => format!(
                    "{} Gb/s; duplicates {} Gb/s ({packets} packets)",
                    number(summary.goodput_gbps),
                    number(summary.duplicate_gbps)
                ),
            },
        ),
        row("loss", losses::losses(summary)),
        row("fabric RTT", distribution(&summary.fabric_rtt_us)),
        row("end-to-end RTT", distribution(&summary.end_to_end_rtt_us)),
        row("endpoint delay", distribution(&summary.endpoint_delay_us)),
        row("op latency", distribution(&summary.op_latency_us)),
        row("queue", queue(port, startup.seconds > 0.0)),
        row("fairness", fairness(summary)),
        row("measured", phase(measured)),
        row("drain", drain(summary)),
    ]);
    if let Some(lower) = summary.makespan_lower_us {
        rows.push(row("makespan", makespan(summary, lower)));
    }
    if startup.seconds > 0.0 {
        rows.push(row("warm-up", phase(startup)));
    }
    for (index, fault) in losses::faults(&summary.faults).into_iter().enumerate() {
        rows.push(row(if index == 0 { "faults" } else { "" }, fault));
    }
    if let Some(offered) = losses::offered(summary) {
        rows.push(row("offered load", offered));
    }
    let packets = &summary.packets;
    if let Some((name, text)) = workloads::single(summary) {
        rows.push(row(&format!("workload {name}"), text));
    }
    rows.push(row(
        "packets",
        format!(
            "{} sent = {} delivered + {} dropped + {} in flight; {} dropped at NICs",
            packets.sent,
            packets.delivered,
            packets.dropped,
            packets.in_flight,
            packets.dropped_at_nic
        ),
    ));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}, seed {}", summary.name, summary.seed);
    if let Some(why) = &summary.stop_reason {
        let reached = number(summary.simulated_s * 1e3);
        let _ = writeln!(text, "  ENDED EARLY after {reached} ms of simulated time: {why}");
    }
    for flow in summary.stalled.flows.iter().take(STALLED) {
        let _ = writeln!(text, "  NO PROGRESS: {flow}");
    }
    let more = summary.stalled.noticed.saturating_sub(STALLED as u64);
    if more > 0 {
        let _ = writeln!(text, "  NO PROGRESS: {more} more flows; see `stalled` in summary.json");
    }
    text.push_str(&columns(&rows, "  "));
    text.push_str(&columns(workloads, "  "));
    for warning in summary.offered.warnings() {
        let _ = writeln!(text, "  WARNING: {warning}");
    }
    text
}

/// Maximum number of flows without progress that a summary names.
const STALLED: usize = 5;

/// Returns the cost of a run on this machine, as one line.
pub fn cost(cost: &Cost) -> String {
    let (setup, wall) = (number(cost.setup_s), number(cost.wall_s));
    let hops = number(cost.packet_hops_per_s / 1e6);
    let run =
        format!("{wall} s of real time after {setup} s of set-up, {hops} million packet-hops/s");
    columns(&[row("run", run)], "  ")
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

/// Returns the text about the queue of the busiest port; without a warm-up, its part about the warm-up is left out.
fn queue(port: &PortSummary, warmup: bool) -> String {
    let kb = |bytes: f64| number(bytes / 1e3);
    let (mean, max) = (kb(port.mean_queue_bytes), kb(port.max_queue_bytes as f64));
    let mut text = format!("mean {mean} kB, max {max} kB at the busiest port");
    if warmup {
        text += &format!("; max {} kB during warm-up", kb(port.startup_max_queue_bytes as f64));
    }
    text
}

fn distribution(d: &DistributionSummary) -> String {
    let (Some(mean), Some(p50), Some(p99), Some(p99_9), Some(max)) = (
        stat(d, |d| d.mean),
        stat(d, |d| d.p50),
        stat(d, |d| d.p99),
        stat(d, |d| d.p99_9),
        stat(d, |d| d.max),
    ) else {
        return "nothing measured".to_owned();
    };
    // For example, hosts without costs have only zeros.
    if d.max == Some(0.0) {
        return "0 us throughout".to_owned();
    }
    let unfinished = unfinished(d);
    format!(
        "mean {mean} us, median {p50} us, p99 {p99} us, p99.9 {p99_9} us, max {max} us{unfinished}"
    )
}

/// Returns a number of a distribution; for a censored number, its bounds.
fn stat(d: &DistributionSummary, of: fn(&DistributionSummary) -> Option<f64>) -> Option<String> {
    d.bounds(of).map(bounds)
}

/// Returns a number or its bounds: ">= 28.9", "28.9 .. 31.2".
pub fn bounds(bounds: Bounds) -> String {
    match bounds.value() {
        Some(value) => number(value),
        None if bounds.upper.is_finite() => {
            format!("{} .. {}", number(bounds.lower), number(bounds.upper))
        }
        None => format!(">= {}", number(bounds.lower)),
    }
}

/// Returns the number of unfinished ops of a distribution; empty if all have ended.
fn unfinished(d: &DistributionSummary) -> String {
    let Some(open) = d.open.as_ref().filter(|open| open.unfinished > 0) else {
        return String::new();
    };
    format!(
        "; {} of {} ops had not ended, the oldest of them after {} us",
        open.unfinished,
        open.lower.count,
        number(open.oldest_unfinished_us)
    )
}

/// Returns the makespan of a run of traces: the time from its first message to the end of its last op.
fn makespan(summary: &Summary, lower: f64) -> String {
    let upper = summary.makespan_us.unwrap_or(f64::INFINITY);
    let makespan = bounds(Bounds { lower, upper });
    format!("{makespan} us from the start of the first message to the end of the last op")
}

/// Returns the length of the drain and the reason for its end.
fn drain(summary: &Summary) -> String {
    let drain = &summary.drain;
    let took = number(drain.seconds * 1e3);
    let ended = match drain.ended_by {
        "limit" => "its limit",
        "stuck" => "the watchdog, because no packet was delivered",
        "interrupted" => "an interruption",
        _ if summary.measured.unfinished_ops > 0 => {
            "the end of all ops of the measured phase, except workloads of which no op ended in it"
        }
        _ => "the end of all ops of the measured phase",
    };
    let startup = match summary.startup.unfinished_ops {
        0 => String::new(),
        ops => format!(
            "; {ops} ops of the warm-up had not ended, the oldest of them after {} us",
            number(summary.startup.oldest_unfinished_us)
        ),
    };
    format!("{took} ms after the measured phase, until {ended}{startup}")
}

fn fairness(summary: &Summary) -> String {
    let mut text = format!("Jain's index {}", number(summary.jain));
    if let Some(deviation) = summary.fair_share_deviation {
        let percent = number(deviation * 100.0);
        let _ = write!(text, "; at most {percent} % off the fair share");
    }
    text
}

fn phase(phase: &PhaseSummary) -> String {
    let duplicates = match phase.duplicates_delivered {
        0 => String::new(),
        count => format!(" ({count} duplicates)"),
    };
    format!(
        "{} ms: {} ops done; {} data packets sent, {} delivered{duplicates}, {} dropped at switch ports",
        number(phase.seconds * 1e3),
        phase.ops,
        phase.data_packets_sent,
        phase.data_packets_delivered,
        phase.drops
    )
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_four_digits() {
        let shown = [49.512_34, 2027.4, 0.000_312_3, 123_456.7, 110.0, 0.0].map(number);
        assert_eq!(shown, ["49.51", "2027", "0.0003123", "123457", "110", "0"]);
    }
}
