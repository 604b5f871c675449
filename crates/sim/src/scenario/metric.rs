//! The numbers of a summary by name, for checks.

/// The paths of a summary's JSON that checks may name.
pub const METRICS: &[&str] = &[
    "simulated_s",
    "throughput_gbps",
    "goodput_gbps",
    "duplicate_gbps",
    "engine_ns_per_kb",
    "acks_per_packet",
    "loss_rate",
    "startup_loss_rate",
    "jain",
    "fair_share_deviation",
    "fabric_rtt_us.count",
    "fabric_rtt_us.mean",
    "fabric_rtt_us.min",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "fabric_rtt_us.p99_9",
    "fabric_rtt_us.max",
    "end_to_end_rtt_us.count",
    "end_to_end_rtt_us.mean",
    "end_to_end_rtt_us.min",
    "end_to_end_rtt_us.p50",
    "end_to_end_rtt_us.p99",
    "end_to_end_rtt_us.p99_9",
    "end_to_end_rtt_us.max",
    "endpoint_delay_us.count",
    "endpoint_delay_us.mean",
    "endpoint_delay_us.min",
    "endpoint_delay_us.p50",
    "endpoint_delay_us.p99",
    "endpoint_delay_us.p99_9",
    "endpoint_delay_us.max",
    "op_latency_us.count",
    "op_latency_us.mean",
    "op_latency_us.min",
    "op_latency_us.p50",
    "op_latency_us.p99",
    "op_latency_us.p99_9",
    "op_latency_us.max",
    "busiest_port.throughput_gbps",
    "busiest_port.utilisation",
    "busiest_port.loss_rate",
    "busiest_port.drops",
    "busiest_port.mean_queue_bytes",
    "busiest_port.max_queue_bytes",
    "busiest_port.startup_max_queue_bytes",
    "startup.seconds",
    "startup.data_packets_sent",
    "startup.acks_sent",
    "startup.data_packets_delivered",
    "startup.duplicates_delivered",
    "startup.drops",
    "startup.loss_rate",
    "startup.ops",
    "measured.seconds",
    "measured.data_packets_sent",
    "measured.acks_sent",
    "measured.data_packets_delivered",
    "measured.duplicates_delivered",
    "measured.drops",
    "measured.loss_rate",
    "measured.ops",
    "packets.sent",
    "packets.delivered",
    "packets.dropped",
    "packets.in_flight",
    "packets.dropped_at_nic",
];

/// The unit of a metric, which its name says; empty for counts and fractions.
#[must_use]
pub fn unit_of(metric: &str) -> &'static str {
    let last = metric.rsplit('.').next().unwrap_or(metric);
    if last == "count" {
        ""
    } else if metric.contains("_us.") {
        "us"
    } else if last.ends_with("_ns_per_kb") {
        "ns/kB"
    } else if last.ends_with("_gbps") {
        "Gb/s"
    } else if last.ends_with("_bytes") {
        "B"
    } else if last == "seconds" || last == "simulated_s" {
        "s"
    } else {
        ""
    }
}

/// Whether a metric is a fraction, which can be given in percent.
pub(super) fn is_fraction(metric: &str) -> bool {
    let last = metric.rsplit('.').next().unwrap_or(metric);
    last.ends_with("loss_rate") || ["jain", "fair_share_deviation", "utilisation"].contains(&last)
}
