//! The first screen of a run: completion status and the most important numbers.

use apus_sim::bounds::Bounds;
use apus_sim::columns::{FaultRecord, StallSummary};
use apus_sim::summary::Summary;
use serde_json::{Value, json};

use super::comparison::better;
use super::short;
use crate::text::{self, number};

/// A number of the first screen.
pub(super) struct Metric {
    /// Name in summary.json.
    pub(super) name: &'static str,
    /// Name on the page.
    heading: &'static str,
    /// Heading above this number and the following ones.
    part: &'static str,
}

/// Utilisation from which a port is called full. deviation: no source; windows that vary leave a few per cent idle.
const FULL: f64 = 0.95;

/// Numbers of a run, in order.
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
        heading: "busiest port, max queue",
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

/// Returns the numbers of a run. For each metric: the median over the seeds or its bounds, the smallest and the largest
/// value, and the reference value for comparison.
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

/// Returns the reference value of a number, and the name of that value.
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
                    .map_or(Value::Null, |min| with(min, "smallest measured"));
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

/// A sentence about a run, and its explanation.
struct Line {
    level: &'static str,
    text: String,
    more: String,
}

impl Line {
    fn new(level: &'static str, text: String) -> Self {
        Self { level, text, more: String::new() }
    }

    fn with(self, more: String) -> Self {
        Self { more, ..self }
    }
}

/// Returns the facts that a reader must know before any number: sentences with their levels, the worst first.
pub(super) fn status(summary: &Summary) -> Value {
    let mut lines: Vec<Line> = Vec::new();
    if let Some(why) = &summary.stop_reason {
        let reached = number(summary.simulated_s * 1e3);
        let text = format!("Ended early after {reached} ms of simulated time: {why}");
        lines.push(Line::new("bad", text));
    }
    let stalled = &summary.stalled;
    if stalled.at_end > 0 {
        let text = format!("{} made no further progress", flows(stalled.at_end));
        lines.push(Line::new("bad", text).with(first_of(stalled)));
    }
    // Faults are causes and unfinished ops their consequences, so faults come first.
    lines.extend(faults(&summary.faults));
    let measured = &summary.measured;
    if measured.unfinished_ops > 0 {
        let all = measured.unfinished_ops + summary.op_latency_us.count;
        let oldest = number(measured.oldest_unfinished_us);
        let drained = number(summary.drain.seconds * 1e6);
        let level = if summary.op_latency_us.count == 0 { "bad" } else { "warn" };
        let when = match summary.drain.seconds {
            0.0 => "at the end of the load".to_owned(),
            _ => format!("{drained} us after the end of the load, when the run stopped"),
        };
        let text = format!("{} of {all} ops had not ended {when}", measured.unfinished_ops);
        let more = format!(
            "the oldest was {oldest} us old; latencies are lower bounds where they depend on these ops"
        );
        lines.push(Line::new(level, text).with(more));
    }
    for job in summary.jobs.iter().filter(|job| job.unfinished > 0) {
        let text = format!("Job {}: {} operations have not ended", job.name, job.unfinished);
        lines.push(Line::new("bad", text));
    }
    if stalled.at_end == 0 && stalled.noticed > 0 {
        let text = format!("{} made no progress for a time, then resumed", flows(stalled.noticed));
        lines.push(Line::new("warn", text).with(first_of(stalled)));
    }
    for warning in summary.offered.warnings() {
        let text = sentence(&warning);
        let (text, more) = text.split_once(": ").map_or((text.as_str(), ""), |parts| parts);
        lines.push(Line::new("warn", text.to_owned()).with(more.to_owned()));
    }
    let port = &summary.busiest_port;
    if port.utilisation >= FULL {
        let text =
            format!("{} was in use {} % of the time", port.name, number(port.utilisation * 100.0));
        // The time that the port needs to send its mean queue.
        let rate_gbps = port.throughput_gbps / port.utilisation;
        let more = format!(
            "its mean queue was {} kB, which takes {} us at its rate",
            number(port.mean_queue_bytes * 1e-3),
            number(port.mean_queue_bytes * 8e-3 / rate_gbps)
        );
        lines.push(Line::new("info", text).with(more));
    }
    if summary.losses.packets > 0 {
        let all = text::losses::losses(summary);
        let (text, more) = all.split_once(": ").unwrap_or((&all, ""));
        lines.push(Line::new("info", format!("Lost {text}")).with(more.to_owned()));
    }
    lines.sort_by_key(|line| ["bad", "warn", "info"].iter().position(|known| *known == line.level));
    if !lines.iter().any(|line| line.level != "info") {
        let ops = summary.op_latency_us.count;
        let text = format!("Finished: all {ops} ops of the measured phase ended");
        lines.insert(0, Line::new("good", text).with("no flow stopped, no fault".to_owned()));
    }
    let json = |line: Line| json!({ "level": line.level, "text": line.text, "more": line.more });
    lines.into_iter().map(json).collect()
}

/// Maximum number of faults that are listed individually.
const MAX_FAULTS: usize = 3;

/// Returns a line for each fault, then a line for each link that switches avoid. Both directions of a link share a
/// line.
fn faults(records: &[FaultRecord]) -> Vec<Line> {
    let both = |subject: &str| match subject.split_once(" -> ") {
        Some((from, to)) if from > to => (to.to_owned(), from.to_owned()),
        Some((from, to)) => (from.to_owned(), to.to_owned()),
        None => (subject.to_owned(), String::new()),
    };
    let mut records: Vec<&FaultRecord> =
        records.iter().filter(|fault| fault.kind != "reroute").collect();
    // Reactions to faults follow the faults.
    records.sort_by_key(|fault| fault.kind.starts_with("avoided-"));
    let mut known: Vec<((String, String), &FaultRecord, u64)> = Vec::new();
    for fault in records {
        let ends = both(&fault.subject);
        let same = |(other, first, _): &&mut (_, &FaultRecord, u64)| {
            *other == ends
                && (first.kind, first.at_us, first.until_us)
                    == (fault.kind, fault.at_us, fault.until_us)
        };
        let lost = fault.lost_packets.unwrap_or(0);
        match known.iter_mut().find(same) {
            Some((_, _, packets)) => *packets += lost,
            None => known.push((ends, fault, lost)),
        }
    }
    let line = |((from, to), fault, lost): &((String, String), &FaultRecord, u64)| {
        let subject = if to.is_empty() { from.clone() } else { format!("{from} <-> {to}") };
        // The line is the text of one direction, with both ends and the losses of both directions.
        let text = text::losses::fault(&FaultRecord {
            subject,
            lost_packets: Some(*lost),
            ..(*fault).clone()
        });
        let (text, more) = text.split_once("; ").unwrap_or((&text, ""));
        Line::new("warn", sentence(text)).with(more.to_owned())
    };
    let mut lines: Vec<Line> = known.iter().take(MAX_FAULTS).map(line).collect();
    if known.len() > MAX_FAULTS {
        let text = format!("{} more faults: the table below lists them", known.len() - MAX_FAULTS);
        lines.push(Line::new("warn", text));
    }
    lines
}

/// Returns the first flow without progress with its time and the reason, and the names of the next ones.
fn first_of(stalled: &StallSummary) -> String {
    let mut flows = stalled.flows.iter();
    let first = flows.next().map_or_else(String::new, ToString::to_string);
    let others: Vec<String> = flows
        .take(3)
        .map(|one| format!("flow {} (host {} -> host {})", one.flow, one.host, one.peer))
        .collect();
    let all = stalled.noticed.max(stalled.at_end) as usize;
    let more = all.saturating_sub(1 + others.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if others.is_empty() { first } else { format!("{first}; also {}{more}", others.join(", ")) }
}

fn flows(count: u64) -> String {
    format!("{count} flow{}", if count == 1 { "" } else { "s" })
}

/// Returns the text with a capital first letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use apus_sim::columns::FaultRecord;

    use super::{faults, percentile};

    /// Three links of a leaf are cut, and the switches avoid the first one before the second is cut.
    #[test]
    fn faults_are_named_by_both_ends_before_the_links_that_switches_avoid() {
        let record = |kind, subject: &str, at_us| FaultRecord {
            kind,
            subject: subject.to_owned(),
            at_us,
            ..FaultRecord::default()
        };
        let mut all = Vec::new();
        for (spine, at_us) in [(0, 100.0), (1, 200.0), (2, 300.0)] {
            all.push(record("down", &format!("leaf 0 -> spine {spine}"), at_us));
            all.push(record("down", &format!("spine {spine} -> leaf 0"), at_us));
            let both = format!("leaf 0 <-> spine {spine}");
            all.push(record("avoided-local", &both, at_us + 20.0));
        }
        let texts = |all: &[FaultRecord]| -> Vec<String> {
            faults(all).into_iter().map(|line| line.text).collect()
        };
        assert_eq!(
            texts(&all),
            [
                "Link down from 100 us to the end: leaf 0 <-> spine 0",
                "Link down from 200 us to the end: leaf 0 <-> spine 1",
                "Link down from 300 us to the end: leaf 0 <-> spine 2",
                "3 more faults: the table below lists them",
            ]
        );
        assert_eq!(
            texts(&all[..3]),
            [
                "Link down from 100 us to the end: leaf 0 <-> spine 0",
                "The switches at its ends avoid it from 120 us to the end: leaf 0 <-> spine 0",
            ]
        );
    }

    #[test]
    fn a_percentile_is_the_value_of_the_nearest_rank() {
        let values = || vec![4.0, 1.0, 3.0, 2.0];
        let found = [0.0, 25.0, 50.0, 75.1, 100.0].map(|percent| percentile(values(), percent));
        assert_eq!(found, [1.0, 1.0, 2.0, 4.0, 4.0].map(Some));
        assert_eq!(percentile(Vec::new(), 50.0), None);
    }
}
