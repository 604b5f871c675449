//! The columns of the CSV tables.

use super::table::{Column, Table, WHOLE_RUN};

const fn column(
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    reducer: &'static str,
) -> Column {
    Column { name, unit, definition, reducer }
}

const FLOW: Column =
    column("flow", "", "the connection, numbered from 0 in the scenario's order", "key column");
const FROM_HOST: Column = column("from", "", "the host that submits ops", "key column");
const TO_HOST: Column = column("to", "", "its peer", "key column");
const PORT: Column =
    column("port", "", "name of the egress port: its node -> its peer", "key column");
const TIME: Column =
    column("time_us", "us", "end of the interval of this sample, since the start of the run", "-");

/// Ops in order of completion.
pub const OPS: Table = Table {
    file: "ops.csv",
    row: "One row per op that was submitted before the end of the measured phase: ended ops in \
          order of completion, then unfinished ops in order of submission. An answer of a round counts as an op, from its request's submission to its \
          last byte.",
    columns: &[
        FLOW,
        column("op", "", "its number within the flow; empty if it had not ended", "key column"),
        FROM_HOST,
        TO_HOST,
        column("kind", "", "write, read or message", "-"),
        column("size_bytes", "B", "payload of the op", "-"),
        column(
            "submit_us",
            "us",
            "when it was submitted, or came if it waited for room: complete_us - latency_us",
            "-",
        ),
        column(
            "complete_us",
            "us",
            "when its last byte was acknowledged, or a read's or round's last byte was here",
            "-",
        ),
        column(
            "latency_us",
            "us",
            "submission to completion on the clock of the submitting host",
            "one op",
        ),
        column(
            "slowdown",
            "",
            "max(1, latency / (base RTT + (size + header * packets) / rate of the slowest link))",
            "one op",
        ),
        column(
            "outcome",
            "",
            "done; failed: nothing was sent; unknown: parts may have been applied; unfinished: it had \
             not ended",
            "-",
        ),
        column("phase", "", "measured if it was submitted after the warm-up, else startup", "-"),
    ],
};

/// Connections.
pub const FLOWS: Table = Table {
    file: "flows.csv",
    row: "One row per flow (connection), over the measured phase.",
    columns: &[
        FLOW,
        FROM_HOST,
        TO_HOST,
        column("algorithm", "", "its congestion control algorithm", "-"),
        column(
            "delivered_bytes",
            "B",
            "payload bytes delivered once",
            "sum over the measured phase",
        ),
        column(
            "goodput_gbps",
            "Gb/s",
            "delivered_bytes * 8 / length of the measured phase, whether or not the flow had something to send",
            "mean over the measured phase",
        ),
        column(
            "packets_sent",
            "",
            "data packets sent, retransmissions included, by the side that sends the data",
            "sum over the measured phase",
        ),
        column(
            "fast_losses",
            "",
            "data packets found lost by the SACK bitmap",
            "sum over the measured phase",
        ),
        column(
            "timeout_losses",
            "",
            "data packets taken for lost by a timeout",
            "sum over the measured phase",
        ),
        column(
            "timeouts",
            "",
            "retransmission timeouts that expired",
            "sum over the measured phase",
        ),
        column(
            "mean_fabric_rtt_us",
            "us",
            "t6 - t1 - endpoint delay",
            "mean over acknowledgements of the measured phase",
        ),
        column(
            "max_fabric_rtt_us",
            "us",
            "t6 - t1 - endpoint delay",
            "maximum over acknowledgements of the measured phase",
        ),
        column(
            "base_rtt_us",
            "us",
            "a full data packet there and an acknowledgement back, meeting nothing else",
            "of the pair of hosts",
        ),
        column(
            "line_rate_gbps",
            "Gb/s",
            "rate of the slowest link of the path",
            "of the pair of hosts",
        ),
        column(
            "ops",
            "",
            "ended ops of ops.csv that were submitted in the measured phase",
            "count over the measured phase",
        ),
        column(
            "unfinished_ops",
            "",
            "ops submitted in the measured phase that had not ended after the drain",
            "count over the measured phase",
        ),
        column(
            "oldest_unfinished_us",
            "us",
            "age of the oldest of them; empty if there are none",
            "maximum over the measured phase",
        ),
        column(
            "mean_slowdown",
            "",
            "slowdown as in ops.csv",
            "mean over the flow's measured ops that ended and that ops.csv holds",
        ),
    ],
};

/// Egress ports.
pub const PORTS: Table = Table {
    file: "ports.csv",
    row: "One row per egress port, NICs included, over the measured phase.",
    columns: &[
        PORT,
        column("from", "", "the node it belongs to", "key column"),
        column("to", "", "the node its link leads to", "key column"),
        column(
            "tier",
            "",
            "links from the port's node to the nearest host: 0 is a NIC, 1 an edge switch",
            "-",
        ),
        column("rate_gbps", "Gb/s", "rate of the link", "-"),
        column(
            "throughput_gbps",
            "Gb/s",
            "wire bytes sent * 8 / length of the measured phase",
            "mean over the measured phase",
        ),
        column("utilisation", "", "throughput_gbps / rate_gbps", "mean over the measured phase"),
        column("sent_packets", "", "packets whose last bit left", "sum over the measured phase"),
        column(
            "offered_packets",
            "",
            "packets sent into the port's queue, dropped ones included",
            "sum over the measured phase",
        ),
        column("drops", "", "packets dropped at the port", "sum over the measured phase"),
        column("loss_rate", "", "drops / offered_packets", "over the measured phase"),
        column(
            "marked_packets",
            "",
            "packets whose ECN field the port set to congested",
            "sum over the measured phase",
        ),
        column(
            "mean_queue_bytes",
            "B",
            "wire bytes in the port, the packet in service included: (integral of occupancy over time) / time",
            "time average over the measured phase",
        ),
        column(
            "max_queue_bytes",
            "B",
            "wire bytes in the port, the arriving packet included",
            "maximum over the measured phase",
        ),
        column("buffer_drops", "", "drops for lack of memory", WHOLE_RUN),
        column("link_down_drops", "", "drops as the link was down", WHOLE_RUN),
        column("link_loss_drops", "", "packets that the link lost at random", WHOLE_RUN),
        column("corruption_drops", "", "packets that the link corrupted", WHOLE_RUN),
        column("ttl_drops", "", "packets whose TTL reached 0 behind the port's link", WHOLE_RUN),
        column(
            "switch_half_drops",
            "",
            "packets that the switch half of the algorithm refused",
            WHOLE_RUN,
        ),
        column("credit_limit_drops", "", "credits beyond their share of the link", WHOLE_RUN),
    ],
};

/// Flows over time.
pub const SAMPLES: Table = Table {
    file: "samples.csv",
    row: "One row per sample time and sampled flow: the state of the side that sends the data. \
          `[record] flows` says how many flows are sampled.",
    columns: &[
        TIME,
        FLOW,
        column(
            "cwnd_packets",
            "packets",
            "window in force: for Swift min(fabric_cwnd, endpoint_cwnd)",
            "instant",
        ),
        column(
            "fabric_cwnd_packets",
            "packets",
            "window that follows the fabric delay (Swift §3.3)",
            "instant",
        ),
        column(
            "endpoint_cwnd_packets",
            "packets",
            "window that follows the endpoint delay (Swift §3.3)",
            "instant",
        ),
        column(
            "target_delay_us",
            "us",
            "fabric target: base_target + hops * hop_scale + flow scaling (Swift §3.5), at the last acknowledgement",
            "instant",
        ),
        column(
            "pacing_delay_us",
            "us",
            "time between packets while the window is paced: rtt / cwnd (Swift §3.4)",
            "instant",
        ),
        column("smoothed_rtt_us", "us", "smoothed end-to-end RTT", "instant"),
        column(
            "in_flight_packets",
            "packets",
            "data packets sent and neither acknowledged nor taken for lost",
            "instant",
        ),
        column(
            "goodput_gbps",
            "Gb/s",
            "payload bytes delivered once in the interval * 8 / interval",
            "mean over the interval",
        ),
        column(
            "active",
            "",
            "1 if the flow had an outstanding op or delivered data in the interval, else 0",
            "instant",
        ),
    ],
};

/// Percentiles over flows.
pub const SAMPLE_PERCENTILES: Table = Table {
    file: "sample_percentiles.csv",
    row: "One row per sample time and column of samples.csv: the column over all active flows.",
    columns: &[
        TIME,
        column("column", "", "the column of samples.csv, whose unit the values have", "key column"),
        column("flows", "", "active flows that have the value", "count over flows"),
        column("mean", "of the column", "the column", "mean over active flows"),
        column(
            "p5",
            "of the column",
            "the column",
            "5th percentile over active flows, nearest rank",
        ),
        column(
            "p25",
            "of the column",
            "the column",
            "25th percentile over active flows, nearest rank",
        ),
        column("p50", "of the column", "the column", "median over active flows, nearest rank"),
        column(
            "p75",
            "of the column",
            "the column",
            "75th percentile over active flows, nearest rank",
        ),
        column(
            "p95",
            "of the column",
            "the column",
            "95th percentile over active flows, nearest rank",
        ),
    ],
};

/// Ports over time.
pub const PORT_SAMPLES: Table = Table {
    file: "port_samples.csv",
    row: "One row per sample time and sampled port: the switch ports with the most \
          traffic (`[record] ports`), and with `nics = true` also NIC ports.",
    columns: &[
        TIME,
        PORT,
        column(
            "throughput_gbps",
            "Gb/s",
            "wire bytes sent in the interval * 8 / interval",
            "mean over the interval",
        ),
        column(
            "queue_bytes",
            "B",
            "wire bytes in the port, the packet in service included",
            "instant",
        ),
        column(
            "mean_queue_bytes",
            "B",
            "(integral of occupancy over the interval) / interval",
            "time average over the interval",
        ),
        column("drops", "", "packets dropped at the port", "sum over the interval"),
    ],
};
