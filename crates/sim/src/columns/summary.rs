//! The numbers of `summary.json`.

use super::{Column, Table};

const fn number(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    reducer: &'static str,
) -> Column {
    Column { name, unit, definition, reducer }
}

/// Numbers of a run.
pub(super) const SUMMARY: Table = Table {
    file: "summary.json",
    row: "`{ \"schema_version\": 1, \"runs\": [...] }`, one object per run (variant); a name with dots \
          is a path: `fabric_rtt_us.mean` is `mean` within `fabric_rtt_us`. `null` is what was not \
          measured. `<stat>` is one of `count` (without unit), `mean`, `min`, `p1`, `p10`, `p50`, \
          `p90`, `p99`, `p99_9` and `max`; `<name>` is what the scenario calls a part of the run, \
          `<class>` a traffic class, `<bucket>` the lower end in percent of 10 % of utilisation; \
          numbers of parts are only there if the scenario names them.",
    columns: NUMBERS,
};

const CLASS_THROUGHPUT: &str = "wire bytes of the class that ports of the group sent * 8 / length of the measured phase in whole \
     windows";
const WINDOWS: &str = "windows of time, per port, in which the class was offered a packet";
const CLASS_LOSS: &str = "packets of the class dropped / packets sent into the ports' queues";
const WINDOW_LOSS: &str = "99.9th percentile (nearest rank) of the `loss_rate` of each window of each \
                           port, so the largest of up to 1000";
const BY_PORT: &str = "windows in which the port's utilisation was in this 10 %";
const BY_CLASS: &str = "windows in which the class's own share of the link was in this 10 %";

const NUMBERS: &[Column] = &[
    number("schema_version", "", "version of this layout; once per file, beside `runs`", "-"),
    number("name", "", "the scenario, and its variant", "-"),
    number("seed", "", "what fixes everything random", "-"),
    number(
        "simulated_s",
        "s",
        "simulated time, the start-up included; less than asked for if the run was interrupted",
        "-",
    ),
    number("interrupted", "", "whether the run ended before its time", "-"),
    number("stop_reason", "", "why it did; null if it did not", "-"),
    number("notes", "", "what was left out of the tables, in sentences", "-"),
    number(
        "throughput_gbps",
        "Gb/s",
        "wire bytes sent * 8 / length of the measured phase, at the busiest switch port",
        "mean over the measured phase",
    ),
    number(
        "goodput_gbps",
        "Gb/s",
        "payload bytes delivered once * 8 / length of the measured phase",
        "sum over all flows",
    ),
    number(
        "duplicate_gbps",
        "Gb/s",
        "payload bytes delivered again * 8 / length of the measured phase",
        "sum over all flows",
    ),
    number(
        "engine_ns_per_kb",
        "ns/kB",
        "work of the hosts' engines, stalls apart / payload bytes delivered once, times 1000; null \
         if engines cost nothing",
        "all hosts, over the measured phase",
    ),
    number(
        "acks_per_packet",
        "",
        "acknowledgements sent / data packets that reached a stack",
        "all hosts, over the measured phase",
    ),
    number(
        "signals_gbps",
        "Gb/s",
        "wire bytes of signals that switches sent to sources (Bolt's SRC) * 8 / length of the run",
        "sum over the whole run and all switches; each counts once, however many links it takes",
    ),
    number(
        "loss_rate",
        "",
        "packets dropped / packets sent into the queue of the busiest switch port",
        "over the measured phase",
    ),
    number(
        "startup_loss_rate",
        "",
        "packets dropped / packets sent into switch ports' queues, all ports together",
        "over the warm-up",
    ),
    number(
        "jain",
        "",
        "Jain's index of goodput x: (sum x)^2 / (n * sum x^2); 1 if all are equal, 1/n if one has all",
        "over all flows, measured phase",
    ),
    number(
        "fair_share_deviation",
        "",
        "|rate / max-min fair share - 1|; only if the scenario has [measure]",
        "maximum over flows and intervals that no start or stop disturbs",
    ),
    number(
        "fair_share_jain",
        "",
        "Jain's index of rate / max-min fair share; only if the scenario has [measure]",
        "minimum over intervals that no start or stop disturbs",
    ),
    number(
        "fabric_rtt_us.<stat>",
        "us",
        "t6 - t1 - endpoint delay: NIC to NIC as Swift computes it (§3.3)",
        "over acknowledgements of the measured phase",
    ),
    number(
        "end_to_end_rtt_us.<stat>",
        "us",
        "t6 - t1: from the stack that sends to the same stack (Swift Fig. 2)",
        "over acknowledgements of the measured phase",
    ),
    number(
        "endpoint_delay_us.<stat>",
        "us",
        "remote_queuing + (t6 - t5) (Swift §3.3)",
        "over acknowledgements of the measured phase",
    ),
    number(
        "nic_rx_delay_us.<stat>",
        "us",
        "t3 - t2 of data, t6 - t5 of acknowledgements (Swift Fig. 2): from the NIC's receipt to the \
         stack; no values with hosts whose engine costs nothing",
        "over packets received in the measured phase",
    ),
    number(
        "op_latency_us.<stat>",
        "us",
        "submission to completion, of ops submitted after the warm-up",
        "over ops of the measured phase",
    ),
    number(
        "busiest_port.throughput_gbps",
        "Gb/s",
        "busiest switch port: wire bytes sent * 8 / length of the measured phase",
        "mean over the measured phase",
    ),
    number(
        "busiest_port.utilisation",
        "",
        "busiest switch port: throughput over the link's rate",
        "mean over the measured phase",
    ),
    number(
        "busiest_port.loss_rate",
        "",
        "busiest switch port: packets dropped / packets sent into the port's queue",
        "over the measured phase",
    ),
    number(
        "busiest_port.drops",
        "",
        "busiest switch port: packets dropped at the port",
        "sum over the measured phase",
    ),
    number(
        "busiest_port.mean_queue_bytes",
        "B",
        "busiest switch port: wire bytes in the port: (integral of occupancy over time) / time",
        "time average over the measured phase",
    ),
    number(
        "busiest_port.max_queue_bytes",
        "B",
        "busiest switch port: wire bytes in the port, the arriving packet included",
        "maximum over the measured phase",
    ),
    number(
        "busiest_port.startup_max_queue_bytes",
        "B",
        "busiest switch port: wire bytes in the port, the arriving packet included",
        "maximum over the warm-up",
    ),
    number("credits.sent", "", "credits that receivers sent", "sum over the measured phase"),
    number("credits.received", "", "credits that reached a sender", "sum over the measured phase"),
    number(
        "credits.wasted",
        "",
        "credits that reached a sender and found nothing to send",
        "sum over the measured phase",
    ),
    number("credits.waste_rate", "", "wasted / received credits", "over the measured phase"),
    number(
        "credits.data_drops",
        "",
        "packets dropped in the class of data, in a run with credits",
        "sum over the whole run, all ports",
    ),
    number(
        "credits.max_data_queue_bytes",
        "B",
        "wire bytes of data at a switch port that credits called for, requests and ACKs not counted",
        "maximum over the whole run and all switch ports",
    ),
    number(
        "credits.bound_bytes",
        "B",
        "the bound on it by network calculus, at that port, if nothing unscheduled comes; null if \
         there is none",
        "-",
    ),
    number(
        "credits.unscheduled_bytes",
        "B",
        "wire bytes of requests, stops and ACKs that came to that port while it never was empty",
        "maximum over the whole run",
    ),
    number(
        "credits.bound_used",
        "",
        "the data queue over its bound by network calculus with what was unscheduled",
        "maximum over the whole run and all ports",
    ),
    number("startup.seconds", "s", "warm-up: simulated length of the phase", "-"),
    number(
        "startup.data_packets_sent",
        "",
        "warm-up: data packets that hosts sent, retransmissions included",
        "sum over hosts",
    ),
    number("startup.acks_sent", "", "warm-up: acknowledgements that hosts sent", "sum over hosts"),
    number(
        "startup.data_packets_delivered",
        "",
        "warm-up: data packets that reached a stack",
        "sum over hosts",
    ),
    number(
        "startup.duplicates_delivered",
        "",
        "warm-up: delivered data packets that held nothing new: needless retransmissions",
        "sum over hosts",
    ),
    number(
        "startup.drops",
        "",
        "warm-up: packets dropped at switch ports",
        "sum over switch ports",
    ),
    number(
        "startup.loss_rate",
        "",
        "warm-up: packets dropped / packets sent into switch ports' queues",
        "all switch ports together",
    ),
    number("startup.ops", "", "warm-up: ops that completed", "sum over flows"),
    number("measured.seconds", "s", "measured phase: simulated length of the phase", "-"),
    number(
        "measured.data_packets_sent",
        "",
        "measured phase: data packets that hosts sent, retransmissions included",
        "sum over hosts",
    ),
    number(
        "measured.acks_sent",
        "",
        "measured phase: acknowledgements that hosts sent",
        "sum over hosts",
    ),
    number(
        "measured.data_packets_delivered",
        "",
        "measured phase: data packets that reached a stack",
        "sum over hosts",
    ),
    number(
        "measured.duplicates_delivered",
        "",
        "measured phase: delivered data packets that held nothing new: needless retransmissions",
        "sum over hosts",
    ),
    number(
        "measured.drops",
        "",
        "measured phase: packets dropped at switch ports",
        "sum over switch ports",
    ),
    number(
        "measured.loss_rate",
        "",
        "measured phase: packets dropped / packets sent into switch ports' queues",
        "all switch ports together",
    ),
    number("measured.ops", "", "measured phase: ops that completed", "sum over flows"),
    number(
        "packets.sent",
        "",
        "packets that hosts handed to the fabric, and signals that switches made",
        "sum over the whole run",
    ),
    number(
        "packets.signals",
        "",
        "signals that switches made for sources (Bolt's SRC)",
        "sum over the whole run",
    ),
    number(
        "packets.delivered",
        "",
        "packets that reached their host's NIC",
        "sum over the whole run",
    ),
    number("packets.dropped", "", "packets that the fabric dropped", "sum over the whole run"),
    number(
        "packets.in_flight",
        "",
        "packets still on their way at the end: sent - delivered - dropped",
        "sum over the whole run",
    ),
    number(
        "packets.dropped_at_nic",
        "",
        "delivered packets that a NIC's full receive queue dropped",
        "sum over the whole run",
    ),
    number(
        "busiest_port.name",
        "",
        "name of the switch port that sent most wire bytes in the measured phase",
        "-",
    ),
    number("cost.wall_s", "s", "real time that the run took", "-"),
    number("cost.events", "", "events of the simulator", "sum over the run"),
    number("cost.packet_hops", "", "packets times links that they crossed", "sum over the run"),
    number("cost.threads", "", "threads that took part", "-"),
    number(
        "cost.event_hash",
        "",
        "hash of when each entity had an event: equal for any number of threads",
        "-",
    ),
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
        "those of them in which `loss_rate_p99_9` of either class is above 0",
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
    number("workload.<name>.late", "", LATE, "over its ops submitted after the warm-up"),
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
    number("workload.<name>.op_latency_us.<stat>", "us", "as `op_latency_us`", ITS_OPS),
    number("workload.<name>.slowdown.<stat>", "", "latency / ideal completion time", ITS_OPS),
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
];

const THROUGHPUT: &str = "wire bytes of the workload's data packets that reached a stack, resent \
                          ones included, * 8 / length of the measured phase";
const GOODPUT: &str =
    "payload bytes of the workload delivered once * 8 / length of the measured phase";
const LATE: &str = "ops that failed or took longer than the workload's `deadline` / all; null \
                    without a deadline";
const ITS_OPS: &str = "over its ops submitted after the warm-up";
const ITS_ACKS: &str = "over its acknowledgements of the measured phase";
const GROUP_THROUGHPUT: &str =
    "wire bytes that the group's ports sent * 8 / length of the measured phase";
const GROUP_QUEUE_TIME: &str = "wire bytes in a port, the packet in service included, as the time \
                                that its link takes for them";
const GROUP_SAMPLES: &str = "over samples of each port, every `queue_interval`; mean (over time and \
                             ports) and maximum exact";
const SPAN: &str = "over the intervals between `from` and `to`; exact";
