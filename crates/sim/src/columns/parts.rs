//! The numbers of `summary.json` of the parts of a run that the scenario names: groups of ports,
//! workloads, and spans of time.

use super::table::{Column, LOWER, OLDEST, UPPER, number};

const CLASS_THROUGHPUT: &str = "wire bytes of the class that ports of the group sent * 8 / length of the measured phase in whole \
     windows";
const WINDOWS: &str = "windows of time, per port, in which the class was offered a packet";
const CLASS_LOSS: &str = "packets of the class dropped / packets sent into the ports' queues";
const WINDOW_LOSS: &str = "99.9th percentile (nearest rank) of the `loss_rate` of each window of each \
                           port, so the largest of up to 1000";
const BY_PORT: &str = "windows in which the port's utilisation was in this 10 %";
const BY_CLASS: &str = "windows in which the class's own share of the link was in this 10 %";

const THROUGHPUT: &str = "wire bytes of the workload's data packets that reached a stack, resent \
                          ones included, * 8 / length of the measured phase";
const GOODPUT: &str =
    "payload bytes of the workload delivered once * 8 / length of the measured phase";
const LATE: &str = "ops that failed or took longer than the workload's `deadline` / all; null \
                    without a deadline, or if `late_lower` and `late_upper` differ by over 1 %";
const ITS_OPS: &str = "over its ops submitted in the measured phase";
const ITS_ACKS: &str = "over its acknowledgements of the measured phase";
const GROUP_THROUGHPUT: &str =
    "wire bytes that the group's ports sent * 8 / length of the measured phase";
const GROUP_QUEUE_TIME: &str = "wire bytes in a port, the packet in service included, as the time \
                                that its link takes for them";
const GROUP_SAMPLES: &str = "over samples of each port, every `queue_interval`; mean (over time and \
                             ports) and maximum exact";
const SPAN: &str = "over the intervals between `from` and `to`; exact";

/// Numbers of parts.
pub(super) const PARTS: &[Column] = &[
    number(
        "ports.<name>.class.<class>.throughput_gbps",
        "Gb/s",
        CLASS_THROUGHPUT,
        "sum over ports",
    ),
    number("ports.<name>.class.<class>.windows", "", WINDOWS, "all ports, measured phase"),
    number("ports.<name>.class.<class>.loss_rate", "", CLASS_LOSS, "all ports and windows"),
    number("ports.<name>.class.<class>.loss_rate_p99_9", "", WINDOW_LOSS, "over windows"),
    number("ports.<name>.class.<class>.by_port.<bucket>.windows", "", WINDOWS, BY_PORT),
    number("ports.<name>.class.<class>.by_port.<bucket>.loss_rate", "", CLASS_LOSS, BY_PORT),
    number("ports.<name>.class.<class>.by_port.<bucket>.loss_rate_p99_9", "", WINDOW_LOSS, BY_PORT),
    number("ports.<name>.class.<class>.by_class.<bucket>.windows", "", WINDOWS, BY_CLASS),
    number("ports.<name>.class.<class>.by_class.<bucket>.loss_rate", "", CLASS_LOSS, BY_CLASS),
    number(
        "ports.<name>.class.<class>.by_class.<bucket>.loss_rate_p99_9",
        "",
        WINDOW_LOSS,
        BY_CLASS,
    ),
    number("ports.<name>.throughput_gbps", "Gb/s", GROUP_THROUGHPUT, "sum over ports"),
    number(
        "ports.<name>.utilisation",
        "",
        "`throughput_gbps` over the rates of the ports' links together",
        "mean over the measured phase",
    ),
    number(
        "ports.<name>.loss_rate",
        "",
        "packets dropped / packets sent into the ports' queues",
        "all ports together",
    ),
    number("ports.<name>.drops", "", "packets dropped at the ports", "sum over ports"),
    number("ports.<name>.queue_us.<stat>", "us", GROUP_QUEUE_TIME, GROUP_SAMPLES),
    number(
        "ports.<name>.queue_bytes.<stat>",
        "B",
        "wire bytes in a port, the packet in service included",
        GROUP_SAMPLES,
    ),
    number(
        "settle.<name>.time_us",
        "us",
        "time from `after` to the first interval from which on the quantity stays beyond its \
         threshold for `hold`; null if it never does",
        "the whole run",
    ),
    number(
        "span.<name>.throughput_gbps.<stat>",
        "Gb/s",
        "wire bytes sent per time by a group of ports",
        SPAN,
    ),
    number(
        "span.<name>.queue_us.<stat>",
        "us",
        "mean `queue_us` over an interval, of the group's port that has most",
        SPAN,
    ),
    number(
        "span.<name>.queue_bytes.<stat>",
        "B",
        "mean `queue_bytes` over an interval, of the group's port that has most",
        SPAN,
    ),
    number(
        "span.<name>.goodput_gbps.<stat>",
        "Gb/s",
        "payload bytes delivered once per time, of a workload or a flow",
        SPAN,
    ),
    number(
        "span.<name>.share.<stat>",
        "",
        "goodput of a workload or a flow over that of all flows",
        SPAN,
    ),
    number(
        "compare.<name>.buckets",
        "",
        "buckets of utilisation in which the other class loses at least the floor, and both have \
         packets",
        "-",
    ),
    number(
        "compare.<name>.buckets_p99_9",
        "",
        "buckets of `buckets` in which `loss_rate_p99_9` of either class is above 0",
        "-",
    ),
    number(
        "compare.<name>.windows",
        "",
        "windows of ports in which the other class was offered a packet; up to 1000, the 99.9th \
         percentile is the largest",
        "largest of those buckets",
    ),
    number(
        "compare.<name>.loss_ratio",
        "",
        "`loss_rate` of the class / that of the other one",
        "largest of those buckets",
    ),
    number(
        "compare.<name>.loss_ratio_p99_9",
        "",
        "`loss_rate_p99_9` of the class / that of the other one; 10^6 where only that is 0",
        "largest of those buckets",
    ),
    number("workload.<name>.throughput_gbps", "Gb/s", THROUGHPUT, "sum over its flows"),
    number("workload.<name>.goodput_gbps", "Gb/s", GOODPUT, "sum over its flows"),
    number("workload.<name>.ops", "", "ops of the workload that completed", "sum over its flows"),
    number("workload.<name>.ops_per_s", "1/s", "`ops` / length of the measured phase", "-"),
    number("workload.<name>.ops_failed", "", "`ops` that did not succeed", "sum over its flows"),
    number("workload.<name>.late", "", LATE, ITS_OPS),
    number(
        "workload.<name>.data_packets_sent",
        "",
        "data packets that hosts sent, retransmissions included",
        "sum over its flows",
    ),
    number(
        "workload.<name>.acks_sent",
        "",
        "acknowledgements that hosts sent",
        "sum over its flows",
    ),
    number(
        "workload.<name>.jain",
        "",
        "Jain's index of goodput, as `jain`",
        "over its flows, measured phase",
    ),
    number(
        "workload.<name>.flow_share.<stat>",
        "",
        "a flow's goodput / the mean over the workload's flows",
        "over its flows, measured phase",
    ),
    number(
        "workload.<name>.late_lower",
        "",
        "lower bound of `late`: unfinished ops that are not late yet count as in time",
        ITS_OPS,
    ),
    number(
        "workload.<name>.late_upper",
        "",
        "upper bound of `late`: every unfinished op counts as late",
        ITS_OPS,
    ),
    number("workload.<name>.op_latency_us.<stat>", "us", "as `op_latency_us`", ITS_OPS),
    number(
        "workload.<name>.op_latency_us.unfinished",
        "",
        "as `op_latency_us.unfinished`, of the workload",
        ITS_OPS,
    ),
    number("workload.<name>.op_latency_us.oldest_unfinished_us", "us", OLDEST, ITS_OPS),
    number("workload.<name>.op_latency_us.lower.<stat>", "us", LOWER, ITS_OPS),
    number("workload.<name>.op_latency_us.upper.<stat>", "us", UPPER, ITS_OPS),
    number(
        "workload.<name>.slowdown.<stat>",
        "",
        "latency / ideal completion time; null if it is censored, as `op_latency_us`",
        ITS_OPS,
    ),
    number(
        "workload.<name>.slowdown.unfinished",
        "",
        "as `op_latency_us.unfinished`, of the workload",
        ITS_OPS,
    ),
    number("workload.<name>.slowdown.oldest_unfinished_us", "us", OLDEST, ITS_OPS),
    number("workload.<name>.slowdown.lower.<stat>", "", LOWER, ITS_OPS),
    number("workload.<name>.slowdown.upper.<stat>", "", UPPER, ITS_OPS),
    number("workload.<name>.fabric_rtt_us.<stat>", "us", "as `fabric_rtt_us`", ITS_ACKS),
    number("workload.<name>.end_to_end_rtt_us.<stat>", "us", "as `end_to_end_rtt_us`", ITS_ACKS),
    number("workload.<name>.endpoint_delay_us.<stat>", "us", "as `endpoint_delay_us`", ITS_ACKS),
    number(
        "workload.<name>.target_delay_us.<stat>",
        "us",
        "fabric target (Swift §3.5), as the algorithm shows it",
        ITS_ACKS,
    ),
    number(
        "workload.<name>.cwnd_packets.<stat>",
        "packets",
        "window in force, as the algorithm shows it",
        ITS_ACKS,
    ),
    number(
        "workload.<name>.fabric_cwnd_packets.<stat>",
        "packets",
        "window that follows the fabric delay, as the algorithm shows it",
        ITS_ACKS,
    ),
    number(
        "workload.<name>.endpoint_cwnd_packets.<stat>",
        "packets",
        "window that follows the endpoint delay, as the algorithm shows it",
        ITS_ACKS,
    ),
    number(
        "workload.<name>.endpoint_limited",
        "",
        "share of acknowledgements after which the endpoint's window was the smaller of both",
        ITS_ACKS,
    ),
    number(
        "workload.<name>.size.<n>.op_latency_us.<stat>",
        "us",
        "as `op_latency_us`, of ops in the range `n` (from 0) of `sizes` in `[measure]`",
        ITS_OPS,
    ),
    number(
        "workload.<name>.size.<n>.slowdown.<stat>",
        "",
        "as `slowdown`, of ops in the range `n` (from 0) of `sizes` in `[measure]`",
        ITS_OPS,
    ),
    number(
        "workload.<name>.size.<n>.op_latency_us.unfinished",
        "",
        "as `op_latency_us.unfinished`, of that range",
        ITS_OPS,
    ),
    number("workload.<name>.size.<n>.op_latency_us.oldest_unfinished_us", "us", OLDEST, ITS_OPS),
    number("workload.<name>.size.<n>.op_latency_us.lower.<stat>", "us", LOWER, ITS_OPS),
    number("workload.<name>.size.<n>.op_latency_us.upper.<stat>", "us", UPPER, ITS_OPS),
    number(
        "workload.<name>.size.<n>.slowdown.unfinished",
        "",
        "as `op_latency_us.unfinished`, of that range",
        ITS_OPS,
    ),
    number("workload.<name>.size.<n>.slowdown.oldest_unfinished_us", "us", OLDEST, ITS_OPS),
    number("workload.<name>.size.<n>.slowdown.lower.<stat>", "", LOWER, ITS_OPS),
    number("workload.<name>.size.<n>.slowdown.upper.<stat>", "", UPPER, ITS_OPS),
];
