//! The first screen of a run: whether it finished, and the numbers that matter.

use apus_sim::bounds::Bounds;
use apus_sim::columns::StallSummary;
use apus_sim::summary::Summary;
use serde_json::{Value, json};

use super::comparison::better;
use super::short;
use crate::text::{self, number};

/// A number of the first screen.
pub(super) struct Metric {
    /// Its name in summary.json.
    pub(super) name: &'static str,
    /// Its name on the page.
    heading: &'static str,
    /// Heading above it and those that follow.
    part: &'static str,
}

/// Utilisation from which a port is named as full. deviation: no source; windows that vary leave a few per cent.
const FULL: f64 = 0.95;

/// The numbers of a run, in their order.
pub(super) const METRICS: [Metric; 15] = [
    Metric { name: "goodput_gbps", heading: "goodput", part: "Rate" },
    Metric { name: "busiest_port.utilisation", heading: "busiest port, utilisation", part: "Rate" },
    Metric { name: "jain", heading: "fairness (Jain's index)", part: "Rate" },
    Metric { name: "op_latency_us.p50", heading: "op latency, median", part: "Ops" },
    Metric { name: "op_latency_us.p99", heading: "op latency, p99", part: "Ops" },
    Metric { name: "op_latency_us.p99_9", heading: "op latency, p99.9", part: "Ops" },
    Metric { name: "op_latency_us.unfinished", heading: "unfinished ops", part: "Ops" },
    Metric { name: "fabric_rtt_us.p50", heading: "fabric RTT, median", part: "Packets" },
    Metric { name: "fabric_rtt_us.p99", heading: "fabric RTT, p99", part: "Packets" },
    Metric { name: "endpoint_delay_us.p99", heading: "endpoint delay, p99", part: "Packets" },
    Metric { name: "losses.loss_rate", heading: "packets lost", part: "Packets" },
    Metric { name: "duplicate_gbps", heading: "needless retransmissions", part: "Packets" },
    Metric {
        name: "busiest_port.mean_queue_bytes",
        heading: "busiest port, mean queue",
        part: "Queues",
    },
    Metric {
        name: "busiest_port.max_queue_bytes",
        heading: "busiest port, longest queue",
        part: "Queues",
    },
    Metric { name: "stalled.at_end", heading: "flows without progress at the end", part: "Queues" },
];

/// Returns the metrics of the first screen.
pub(super) fn declarations() -> Value {
    let one = |metric: &Metric| {
        json!({ "name": metric.name, "heading": metric.heading, "part": metric.part,
                "unit": apus_sim::columns::unit_of(metric.name), "better": better(metric.name),
                "fraction": apus_sim::results::is_fraction(metric.name) })
    };
    METRICS.iter().map(one).collect()
}

/// Returns the numbers of a run: of each metric the median over the seeds, or its bounds, the smallest and the
/// largest value, and the value to compare it with.
pub(super) fn of(summary: &Summary, seeds: &[&Summary]) -> Value {
    let runs = if seeds.is_empty() { &[summary][..] } else { seeds };
    let values: Vec<Value> = runs.iter().filter_map(|run| serde_json::to_value(run).ok()).collect();
    let one = |metric: &Metric| {
        let all: Vec<Bounds> =
            values.iter().filter_map(|run| Bounds::of_metric(run, metric.name)).collect();
        let Some(median) = Bounds::median(&all) else { return Value::Null };
        let min = all.iter().map(|value| value.lower).fold(f64::INFINITY, f64::min);
        let max = all.iter().map(|value| value.upper).fold(0.0, f64::max);
        json!({
            "value": median.value().map_or(Value::Null, short),
            "lower": short(median.lower),
            "upper": short(median.upper),
            "min": short(min),
            "max": short(max),
            "beside": beside(metric.name, summary),
        })
    };
    METRICS
        .iter()
        .map(|metric| (metric.name.to_owned(), one(metric)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns what a number should be compared with, as a value and its name.
fn beside(name: &str, summary: &Summary) -> Value {
    let with = |value: f64, what: &str| json!([short(value), what]);
    match name {
        "jain" => with(1.0, "equal shares"),
        "busiest_port.utilisation" => with(1.0, "full link"),
        "fabric_rtt_us.p50" | "fabric_rtt_us.p99" => {
            let Some(recording) = &summary.recording else {
                return summary
                    .fabric_rtt_us
                    .min
                    .map_or(Value::Null, |min| with(min, "smallest seen"));
            };
            let flows = recording.flows.iter().map(|flow| flow.ideal.base_rtt.as_us_f64());
            median(flows.collect()).map_or(Value::Null, |rtt| with(rtt, "unloaded"))
        }
        "op_latency_us.p50" | "op_latency_us.p99" | "op_latency_us.p99_9" => {
            let Some(recording) = &summary.recording else { return Value::Null };
            let ideal =
                recording.ops.iter().filter(|op| op.submitted >= recording.warmup).map(|op| {
                    let flow = &recording.flows[op.flow as usize];
                    flow.ideal.completion_time(op.size, recording.sizes).as_us_f64()
                });
            let percent = if name.ends_with("p50") {
                50.0
            } else if name.ends_with("p99") {
                99.0
            } else {
                99.9
            };
            let ideal = percentile(ideal.collect(), percent);
            ideal.map_or(Value::Null, |us| with(us, "ideal"))
        }
        _ => Value::Null,
    }
}

fn median(values: Vec<f64>) -> Option<f64> {
    percentile(values, 50.0)
}

/// Returns a percentile by nearest rank.
pub(super) fn percentile(mut values: Vec<f64>, percent: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let rank = (values.len() as f64 * percent / 100.0).ceil().max(1.0) as usize - 1;
    let rank = rank.min(values.len() - 1);
    Some(*values.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// Returns what a reader must know before any number: each sentence with its level, the worst first.
pub(super) fn status(summary: &Summary) -> Value {
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some(why) = &summary.stop_reason {
        let reached = number(summary.simulated_s * 1e3);
        lines.push(("bad", format!("Ended early after {reached} ms of simulated time: {why}")));
    }
    let stalled = &summary.stalled;
    if stalled.at_end > 0 {
        lines.push((
            "bad",
            format!("{} made no further progress: {}", flows(stalled.at_end), first_of(stalled)),
        ));
    } else if stalled.noticed > 0 {
        lines.push((
            "warn",
            format!(
                "{} made no progress for a time, and then went on: {}",
                flows(stalled.noticed),
                first_of(stalled)
            ),
        ));
    }
    let measured = &summary.measured;
    if measured.unfinished_ops > 0 {
        let all = measured.unfinished_ops + summary.op_latency_us.count;
        let oldest = number(measured.oldest_unfinished_us);
        let level = if summary.op_latency_us.count == 0 { "bad" } else { "warn" };
        lines.push((
            level,
            format!("{} of {all} ops had not ended, the oldest after {oldest} us; latencies are lower bounds where they depend on them", measured.unfinished_ops),
        ));
    }
    for job in summary.jobs.iter().filter(|job| job.unfinished > 0) {
        lines.push((
            "bad",
            format!("Job {}: {} operations have not ended", job.name, job.unfinished),
        ));
    }
    lines
        .extend(summary.offered.warnings().into_iter().map(|warning| ("warn", sentence(&warning))));
    let faults = summary.faults.iter().filter(|fault| fault.kind != "reroute").count();
    if faults > 0 {
        let listed: Vec<String> = summary.faults.iter().take(2).map(text::losses::fault).collect();
        let more = summary.faults.len().saturating_sub(2);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        lines.push(("warn", format!("Faults: {}{more}", listed.join("; "))));
    }
    let port = &summary.busiest_port;
    if port.utilisation >= FULL {
        lines.push((
            "info",
            format!(
                "{} was in use {} % of the time, with a mean queue of {} kB",
                port.name,
                number(port.utilisation * 100.0),
                number(port.mean_queue_bytes * 1e-3)
            ),
        ));
    }
    if summary.losses.packets > 0 {
        lines.push(("info", format!("Lost {}", text::losses::losses(summary))));
    }
    lines.sort_by_key(|(level, _)| ["bad", "warn", "info"].iter().position(|known| known == level));
    if !lines.iter().any(|(level, _)| *level != "info") {
        let ops = summary.op_latency_us.count;
        let ended = format!(
            "Finished: all {ops} ops of the measured phase ended, no flow stopped, no fault"
        );
        lines.insert(0, ("good", ended));
    }
    lines.into_iter().map(|(level, text)| json!({ "level": level, "text": text })).collect()
}

/// Returns the first flows without progress, each with its time and the reason.
fn first_of(stalled: &StallSummary) -> String {
    let named: Vec<String> = stalled.flows.iter().take(3).map(ToString::to_string).collect();
    let more = stalled.flows.len().saturating_sub(named.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    named.join("; ") + &more
}

fn flows(count: u64) -> String {
    format!("{count} flow{}", if count == 1 { "" } else { "s" })
}

/// Returns the text with a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_the_value_of_the_nearest_rank() {
        let values = || vec![4.0, 1.0, 3.0, 2.0];
        let found = [0.0, 25.0, 50.0, 75.1, 100.0].map(|percent| percentile(values(), percent));
        assert_eq!(found, [1.0, 1.0, 2.0, 4.0, 4.0].map(Some));
        assert_eq!(percentile(Vec::new(), 50.0), None);
    }
}
