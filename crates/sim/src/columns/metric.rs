//! The numbers of a summary by name, for checks.

/// The paths of a summary's JSON that checks may name.
pub const METRICS: &[&str] = &[
    "simulated_s",
    "makespan_us",
    "throughput_gbps",
    "goodput_gbps",
    "duplicate_gbps",
    "engine_ns_per_kb",
    "acks_per_packet",
    "signals_gbps",
    "loss_rate",
    "startup_loss_rate",
    "jain",
    "fair_share_deviation",
    "fair_share_jain",
    "fabric_rtt_us.count",
    "fabric_rtt_us.mean",
    "fabric_rtt_us.min",
    "fabric_rtt_us.p1",
    "fabric_rtt_us.p10",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p90",
    "fabric_rtt_us.p99",
    "fabric_rtt_us.p99_9",
    "fabric_rtt_us.max",
    "end_to_end_rtt_us.count",
    "end_to_end_rtt_us.mean",
    "end_to_end_rtt_us.min",
    "end_to_end_rtt_us.p1",
    "end_to_end_rtt_us.p10",
    "end_to_end_rtt_us.p50",
    "end_to_end_rtt_us.p90",
    "end_to_end_rtt_us.p99",
    "end_to_end_rtt_us.p99_9",
    "end_to_end_rtt_us.max",
    "endpoint_delay_us.count",
    "endpoint_delay_us.mean",
    "endpoint_delay_us.min",
    "endpoint_delay_us.p1",
    "endpoint_delay_us.p10",
    "endpoint_delay_us.p50",
    "endpoint_delay_us.p90",
    "endpoint_delay_us.p99",
    "endpoint_delay_us.p99_9",
    "endpoint_delay_us.max",
    "nic_rx_delay_us.count",
    "nic_rx_delay_us.mean",
    "nic_rx_delay_us.min",
    "nic_rx_delay_us.p1",
    "nic_rx_delay_us.p10",
    "nic_rx_delay_us.p50",
    "nic_rx_delay_us.p90",
    "nic_rx_delay_us.p99",
    "nic_rx_delay_us.p99_9",
    "nic_rx_delay_us.max",
    "op_latency_us.count",
    "op_latency_us.mean",
    "op_latency_us.min",
    "op_latency_us.p1",
    "op_latency_us.p10",
    "op_latency_us.p50",
    "op_latency_us.p90",
    "op_latency_us.p99",
    "op_latency_us.p99_9",
    "op_latency_us.max",
    "op_latency_us.unfinished",
    "op_latency_us.oldest_unfinished_us",
    "op_latency_us.lower.count",
    "op_latency_us.lower.mean",
    "op_latency_us.lower.min",
    "op_latency_us.lower.p1",
    "op_latency_us.lower.p10",
    "op_latency_us.lower.p50",
    "op_latency_us.lower.p90",
    "op_latency_us.lower.p99",
    "op_latency_us.lower.p99_9",
    "op_latency_us.lower.max",
    "op_latency_us.upper.count",
    "op_latency_us.upper.mean",
    "op_latency_us.upper.min",
    "op_latency_us.upper.p1",
    "op_latency_us.upper.p10",
    "op_latency_us.upper.p50",
    "op_latency_us.upper.p90",
    "op_latency_us.upper.p99",
    "op_latency_us.upper.p99_9",
    "op_latency_us.upper.max",
    "busiest_port.throughput_gbps",
    "busiest_port.utilisation",
    "busiest_port.loss_rate",
    "busiest_port.drops",
    "busiest_port.mean_queue_bytes",
    "busiest_port.max_queue_bytes",
    "busiest_port.startup_max_queue_bytes",
    "credits.sent",
    "credits.received",
    "credits.wasted",
    "credits.waste_rate",
    "credits.data_drops",
    "credits.max_data_queue_bytes",
    "credits.bound_bytes",
    "credits.unscheduled_bytes",
    "credits.bound_used",
    "startup.seconds",
    "startup.data_packets_sent",
    "startup.acks_sent",
    "startup.data_packets_delivered",
    "startup.duplicates_delivered",
    "startup.drops",
    "startup.loss_rate",
    "startup.ops",
    "startup.unfinished_ops",
    "startup.oldest_unfinished_us",
    "measured.seconds",
    "measured.data_packets_sent",
    "measured.acks_sent",
    "measured.data_packets_delivered",
    "measured.duplicates_delivered",
    "measured.drops",
    "measured.loss_rate",
    "measured.ops",
    "measured.unfinished_ops",
    "measured.oldest_unfinished_us",
    "drain.seconds",
    "drain.limit_s",
    "stalled.noticed",
    "stalled.at_end",
    "packets.sent",
    "packets.signals",
    "packets.delivered",
    "packets.dropped",
    "packets.in_flight",
    "packets.dropped_at_nic",
    "offered.max_link_load",
    "offered.host_link_load",
    "offered.switch_link_load",
    "offered.mean_switch_link_load",
    "losses.packets",
    "losses.loss_rate",
    "losses.buffer",
    "losses.link_down",
    "losses.link_loss",
    "losses.corruption",
    "losses.ttl",
    "losses.switch_half",
    "losses.credit_limit",
    "losses.nic_queue",
    "losses.lossy_ports",
];

/// The numbers of parts of a run: `<name>` stands for what a scenario calls the part, `<class>` for
/// a traffic class, `<bucket>` for the lower end in percent of 10 % of utilisation, `<stat>` for one
/// of [`STATS`], `<n>` for the number of an entry, from 0.
pub const SCOPED: &[&str] = &[
    "workload.<name>.throughput_gbps",
    "workload.<name>.goodput_gbps",
    "workload.<name>.ops",
    "workload.<name>.ops_per_s",
    "workload.<name>.ops_failed",
    "workload.<name>.late",
    "workload.<name>.late_lower",
    "workload.<name>.late_upper",
    "workload.<name>.data_packets_sent",
    "workload.<name>.acks_sent",
    "workload.<name>.jain",
    "workload.<name>.flow_share.<stat>",
    "workload.<name>.op_latency_us.<stat>",
    "workload.<name>.op_latency_us.unfinished",
    "workload.<name>.op_latency_us.oldest_unfinished_us",
    "workload.<name>.op_latency_us.lower.<stat>",
    "workload.<name>.op_latency_us.upper.<stat>",
    "workload.<name>.slowdown.<stat>",
    "workload.<name>.slowdown.unfinished",
    "workload.<name>.slowdown.oldest_unfinished_us",
    "workload.<name>.slowdown.lower.<stat>",
    "workload.<name>.slowdown.upper.<stat>",
    "workload.<name>.fabric_rtt_us.<stat>",
    "workload.<name>.end_to_end_rtt_us.<stat>",
    "workload.<name>.endpoint_delay_us.<stat>",
    "workload.<name>.target_delay_us.<stat>",
    "workload.<name>.cwnd_packets.<stat>",
    "workload.<name>.fabric_cwnd_packets.<stat>",
    "workload.<name>.endpoint_cwnd_packets.<stat>",
    "workload.<name>.endpoint_limited",
    "workload.<name>.size.<n>.op_latency_us.<stat>",
    "workload.<name>.size.<n>.op_latency_us.unfinished",
    "workload.<name>.size.<n>.op_latency_us.oldest_unfinished_us",
    "workload.<name>.size.<n>.op_latency_us.lower.<stat>",
    "workload.<name>.size.<n>.op_latency_us.upper.<stat>",
    "workload.<name>.size.<n>.slowdown.<stat>",
    "workload.<name>.size.<n>.slowdown.unfinished",
    "workload.<name>.size.<n>.slowdown.oldest_unfinished_us",
    "workload.<name>.size.<n>.slowdown.lower.<stat>",
    "workload.<name>.size.<n>.slowdown.upper.<stat>",
    "ports.<name>.class.<class>.throughput_gbps",
    "ports.<name>.class.<class>.windows",
    "ports.<name>.class.<class>.loss_rate",
    "ports.<name>.class.<class>.loss_rate_p99_9",
    "ports.<name>.class.<class>.by_port.<bucket>.windows",
    "ports.<name>.class.<class>.by_port.<bucket>.loss_rate",
    "ports.<name>.class.<class>.by_port.<bucket>.loss_rate_p99_9",
    "ports.<name>.class.<class>.by_class.<bucket>.windows",
    "ports.<name>.class.<class>.by_class.<bucket>.loss_rate",
    "ports.<name>.class.<class>.by_class.<bucket>.loss_rate_p99_9",
    "ports.<name>.throughput_gbps",
    "ports.<name>.utilisation",
    "ports.<name>.loss_rate",
    "ports.<name>.drops",
    "ports.<name>.queue_us.<stat>",
    "ports.<name>.queue_bytes.<stat>",
    "settle.<name>.time_us",
    "span.<name>.throughput_gbps.<stat>",
    "span.<name>.queue_us.<stat>",
    "span.<name>.queue_bytes.<stat>",
    "span.<name>.goodput_gbps.<stat>",
    "span.<name>.share.<stat>",
    "compare.<name>.buckets",
    "compare.<name>.buckets_p99_9",
    "compare.<name>.windows",
    "compare.<name>.loss_ratio",
    "compare.<name>.loss_ratio_p99_9",
];

/// The buckets of utilisation, by their lower ends in percent.
const BUCKETS: [&str; 10] = ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90"];

/// What is known of a distribution.
pub const STATS: [&str; 10] =
    ["count", "mean", "min", "p1", "p10", "p50", "p90", "p99", "p99_9", "max"];

/// What a scenario calls the parts of its runs that have numbers of their own.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Workloads that are measured by themselves.
    pub workloads: Vec<String>,
    /// Number of ranges of op sizes.
    pub sizes: usize,
    /// Groups of ports.
    pub groups: Vec<String>,
    /// Traffic classes.
    pub classes: Vec<String>,
    /// Comparisons of classes.
    pub comparisons: Vec<String>,
    /// Questions when a quantity settles.
    pub settles: Vec<String>,
    /// Questions about a span of time, each with the name of its quantity.
    pub spans: Vec<(String, &'static str)>,
}

impl Names {
    /// Returns the names of all metrics of these parts.
    #[must_use]
    pub fn metrics(&self) -> Vec<String> {
        let mut all = Vec::new();
        for pattern in SCOPED {
            let spans = self.spans.iter().filter(|(_, of)| pattern.split('.').nth(2) == Some(of));
            let spans: Vec<String> = spans.map(|(name, _)| name.clone()).collect();
            let names = match pattern.split('.').next() {
                Some("ports") => &self.groups,
                Some("compare") => &self.comparisons,
                Some("settle") => &self.settles,
                Some("span") => &spans,
                _ => &self.workloads,
            };
            let numbers: Vec<String> = (0..self.sizes).map(|n| n.to_string()).collect();
            let stats = STATS.map(str::to_owned);
            let mut some = vec![(*pattern).to_owned()];
            let buckets = BUCKETS.map(str::to_owned);
            for (place, values) in [
                ("<name>", &names[..]),
                ("<class>", &self.classes[..]),
                ("<bucket>", &buckets[..]),
                ("<n>", &numbers[..]),
                ("<stat>", &stats[..]),
            ] {
                if pattern.contains(place) {
                    let fill = |one: &String| {
                        let one = one.clone();
                        values.iter().map(move |value| one.replace(place, value))
                    };
                    some = some.iter().flat_map(fill).collect();
                }
            }
            all.extend(some);
        }
        all
    }
}

/// The entry of [`METRICS`] or [`SCOPED`] that a metric belongs to, whatever its part is called.
#[must_use]
pub fn pattern_of(metric: &str) -> Option<&'static str> {
    METRICS.iter().chain(SCOPED).copied().find(|pattern| fits(metric, pattern))
}

/// Whether `name` is of the form of `pattern`, see [`SCOPED`].
pub(super) fn fits(name: &str, pattern: &str) -> bool {
    let (words, places) = (name.split('.'), pattern.split('.'));
    let fits = |(word, place): (&str, &str)| match place {
        "<name>" | "<class>" => !word.is_empty(),
        "<bucket>" => BUCKETS.contains(&word),
        "<stat>" => STATS.contains(&word),
        "<n>" => word.parse::<u32>().is_ok(),
        _ => word == place,
    };
    words.clone().count() == places.clone().count() && words.zip(places).all(fits)
}

/// The unit of a metric, which its name says; empty for counts and fractions.
#[must_use]
pub fn unit_of(metric: &str) -> &'static str {
    let mut words = metric.rsplit('.');
    let last = words.next().unwrap_or(metric);
    let quantity = match last {
        "count" => return "",
        last if STATS.contains(&last) || last == "<stat>" => match words.next().unwrap_or(last) {
            "lower" | "upper" => words.next().unwrap_or(last),
            quantity => quantity,
        },
        last => last,
    };
    let units = [
        ("_us", "us"),
        ("_ns_per_kb", "ns/kB"),
        ("_gbps", "Gb/s"),
        ("_bytes", "B"),
        ("_packets", "packets"),
        ("_per_s", "1/s"),
        ("_s", "s"),
    ];
    if quantity == "seconds" {
        return "s";
    }
    units.iter().find(|(end, _)| quantity.ends_with(end)).map_or("", |(_, unit)| unit)
}

/// Whether a metric is a fraction, which can be given in percent.
#[must_use]
pub fn is_fraction(metric: &str) -> bool {
    let mut words = metric.rsplit('.');
    let last = words.next().unwrap_or(metric);
    if last != "count" && STATS.contains(&last) {
        return words.next() == Some("share");
    }
    let fractions = [
        "jain",
        "fair_share_deviation",
        "fair_share_jain",
        "utilisation",
        "late",
        "late_lower",
        "late_upper",
        "endpoint_limited",
        "waste_rate",
        "bound_used",
    ];
    last.ends_with("loss_rate")
        || last.ends_with("_load")
        || last == "loss_rate_p99_9"
        || fractions.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::{Names, pattern_of, unit_of};

    #[test]
    fn names_become_metrics_and_units_are_those_of_the_quantity() {
        let names = Names { workloads: vec!["small_us".to_owned()], sizes: 2, ..Names::default() };
        let all = names.metrics();
        for (metric, unit) in [
            ("workload.small_us.ops", ""),
            ("workload.small_us.ops_per_s", "1/s"),
            ("workload.small_us.op_latency_us.p99_9", "us"),
            ("workload.small_us.op_latency_us.count", ""),
            ("workload.small_us.cwnd_packets.p1", "packets"),
            ("workload.small_us.size.1.slowdown.mean", ""),
            ("workload.small_us.throughput_gbps", "Gb/s"),
        ] {
            assert!(all.iter().any(|one| one == metric), "{metric}");
            assert_eq!(unit_of(metric), unit, "{metric}");
            assert!(pattern_of(metric).is_some_and(|p| p.starts_with("workload.<name>.")));
        }
        assert!(!all.contains(&"workload.small_us.size.2.slowdown.mean".to_owned()));
        assert_eq!(pattern_of("workload.small.op_latency_us"), None);
        assert_eq!(pattern_of("fabric_rtt_us.p50"), Some("fabric_rtt_us.p50"));
    }
}
