//! The numbers of losses, faults and offered load.

use super::table::{Column, Table, WHOLE_RUN, number};

const LINK_LOAD: &str = "the time in which ops of open loops arrive, within the measured phase";

/// Numbers of a summary.
pub(super) const LOSSES: &[Column] = &[
    number(
        "offered.max_link",
        "",
        "name of the egress port of the link with the largest offered load; null without open loops",
        "-",
    ),
    number("offered.max_link_load", "", "largest offered load of a link", LINK_LOAD),
    number(
        "offered.host_link_load",
        "",
        "largest offered load of a link between a host and a switch",
        LINK_LOAD,
    ),
    number(
        "offered.switch_link_load",
        "",
        "largest offered load of a link between switches",
        LINK_LOAD,
    ),
    number(
        "offered.mean_switch_link_load",
        "",
        "mean offered load of the links between switches: the demand on the bisection",
        LINK_LOAD,
    ),
    number(
        "offered.workload.<name>.open_loop",
        "",
        "whether ops arrive independently of the ends of other ops; a closed loop submits an op when \
         another ends",
        "-",
    ),
    number(
        "offered.workload.<name>.ops",
        "",
        "ops that arrive; null for a closed loop",
        "sum over the measured phase",
    ),
    number(
        "offered.workload.<name>.offered_gbps",
        "Gb/s",
        "payload of `ops` * 8 / the time in which they arrive; null for a closed loop, or if all \
         arrive at once",
        "sum over its flows",
    ),
    number(
        "offered.workload.<name>.max_link_load",
        "",
        "largest offered load of a link by this workload alone; null where `offered_gbps` is",
        "the time in which its ops arrive, within the measured phase",
    ),
    number(
        "groups",
        "",
        "the workloads, each with `workload` (its name, or one derived from its kind) and the columns of \
         workloads.csv up to `goodput_share` (`oldest_unfinished_us` is 0 if all ops ended); their \
         latencies are in `workload`",
        "over the measured phase",
    ),
    number(
        "totals",
        "",
        "sums over `groups` with a common property: `by` is the property (workload, algorithm or class), \
         `name` which one, `groups` is their number; `oldest_unfinished_us` is the maximum",
        "over the measured phase",
    ),
    number("losses.packets", "", "packets lost for any cause", WHOLE_RUN),
    number("losses.loss_rate", "", "`losses.packets` / `packets.sent`", WHOLE_RUN),
    number("losses.buffer", "", "packets for which a port or switch had no memory", WHOLE_RUN),
    number("losses.link_down", "", "packets lost as a link was down", WHOLE_RUN),
    number("losses.link_loss", "", "packets that links lost at random", WHOLE_RUN),
    number("losses.corruption", "", "packets that links corrupted", WHOLE_RUN),
    number("losses.ttl", "", "packets whose TTL reached 0", WHOLE_RUN),
    number(
        "losses.switch_half",
        "",
        "packets that the switch half of the algorithm refused",
        WHOLE_RUN,
    ),
    number(
        "losses.credit_limit",
        "",
        "credits beyond their share of a link, which is how credits share it",
        WHOLE_RUN,
    ),
    number("losses.nic_queue", "", "packets that a NIC's full receive queue dropped", WHOLE_RUN),
    number("losses.lossy_ports", "", "ports at which packets were dropped", WHOLE_RUN),
    number(
        "losses.ports",
        "",
        "the ports that lost most packets, each with `port`, `packets` and the packets by cause; at \
         most 8, all are in ports.csv",
        WHOLE_RUN,
    ),
    number("faults", "", "faults and reroutes, each with the columns of faults.csv", "-"),
];

/// Faults and reroutes.
pub const FAULTS: Table = Table {
    file: "faults.csv",
    row: "One row per fault of a link in one direction and per flow that changes its path, in the \
          order in which they begin.",
    columns: &[
        number("kind", "", "down, loss, corrupt, reorder, or reroute of a flow", "-"),
        number("subject", "", "the link by its egress port, or the flow", "key column"),
        number("at_us", "us", "when it begins", "-"),
        number(
            "until_us",
            "us",
            "when it is due to end, which may be in the drain; empty if it does not end",
            "-",
        ),
        number(
            "probability",
            "",
            "probability that a packet is lost, corrupted or held back",
            "per packet",
        ),
        number("delay_us", "us", "by how long packets are held back", "-"),
        number("through", "", "the switches on the new path of a flow", "-"),
    ],
};
