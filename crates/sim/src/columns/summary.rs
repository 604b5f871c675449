//! The numbers of `summary.json`.

use super::losses::LOSSES;
use super::parts::PARTS;
use super::table::{Column, LOWER, OLDEST, Table, UPPER, joined, number};

/// Numbers of a run.
pub(super) const SUMMARY: Table = Table {
    file: "summary.json",
    row: "`{ \"schema_version\": 2, \"runs\": [...] }`, one object per run (variant); a name with dots \
          is a path: `fabric_rtt_us.mean` is `mean` within `fabric_rtt_us`. `null` stands for values \
          that were not measured. `<stat>` is one of `count` (without unit), `mean`, `min`, `p1`, `p10`, `p50`, \
          `p90`, `p99`, `p99_9` and `max`; `<name>` is a name in the scenario, \
          `<class>` a traffic class, `<bucket>` the lower end in percent of 10 % of utilisation; \
          numbers of named groups exist only if the scenario names them; several workloads always \
          have numbers, unnamed ones under their kind.",
    columns: &joined::<{ RUN.len() + LOSSES.len() + PARTS.len() }>(
        &joined::<{ RUN.len() + LOSSES.len() }>(RUN, LOSSES),
        PARTS,
    ),
};

/// Cost of runs on this machine.
pub(super) const COST: Table = Table {
    file: "cost.json",
    row: "`{ \"schema_version\": 2, \"cost\": [...] }`, one object per run in the order of \
          summary.json. These numbers differ from run to run and from machine to machine; those of \
          summary.json do not. `apus run --json` prints them as `cost` next to `runs`.",
    columns: &[
        number("name", "", "the scenario, and its variant", "-"),
        number("seed", "", "seed of all random number streams", "-"),
        number("wall_s", "s", "real time that the run took", "-"),
        number("threads", "", "threads that took part", "-"),
        number("events_per_s", "1/s", "`work.events` / `wall_s`", "-"),
        number("packet_hops_per_s", "1/s", "`work.packet_hops` / `wall_s`", "-"),
    ],
};

/// Numbers of the run as a whole.
const RUN: &[Column] = &[
    number("schema_version", "", "version of this layout; once per file, next to `runs`", "-"),
    number("name", "", "the scenario, and its variant", "-"),
    number("seed", "", "seed of all random number streams", "-"),
    number(
        "simulated_s",
        "s",
        "simulated time, warm-up included; less than `duration` if the run was interrupted",
        "-",
    ),
    number(
        "makespan_us",
        "us",
        "start of the first message to the end of the last op; null if an op has not ended, and if \
         not all workloads are traces",
        "over the whole run and its drain",
    ),
    number(
        "makespan_lower_us",
        "us",
        "lower bound of `makespan_us`: the unfinished ops had ended with the run",
        "over the whole run and its drain",
    ),
    number("interrupted", "", "whether the run ended early", "-"),
    number("stop_reason", "", "reason of the early end; null without one", "-"),
    number("notes", "", "data that the tables omit, in sentences", "-"),
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
        "Jain's index of goodput x: (sum x)^2 / (n * sum x^2); 1 for equal flows, 1/n if one flow has all goodput",
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
        "submission to completion, of ops submitted in the measured phase; null if it is censored: \
         if the bounds that unfinished ops set differ by more than 1 %",
        "over ops of the measured phase",
    ),
    number(
        "op_latency_us.unfinished",
        "",
        "ops submitted in the measured phase that had not ended after the drain",
        "sum over flows",
    ),
    number("op_latency_us.oldest_unfinished_us", "us", OLDEST, "maximum over flows"),
    number("op_latency_us.lower.<stat>", "us", LOWER, "over ops of the measured phase"),
    number("op_latency_us.upper.<stat>", "us", UPPER, "over ops of the measured phase"),
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
        "the data queue over its bound by network calculus plus unscheduled bytes",
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
    number(
        "startup.unfinished_ops",
        "",
        "ops submitted in the warm-up that had not ended after the drain; no distribution has them",
        "sum over flows",
    ),
    number("startup.oldest_unfinished_us", "us", OLDEST, "maximum over flows"),
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
        "measured.unfinished_ops",
        "",
        "ops submitted in the measured phase that had not ended after the drain",
        "sum over flows",
    ),
    number("measured.oldest_unfinished_us", "us", OLDEST, "maximum over flows"),
    number(
        "drain.seconds",
        "s",
        "simulated time after the measured phase, until its ops had ended",
        "-",
    ),
    number("drain.limit_s", "s", "limit of `drain.seconds`: `drain` in the scenario", "-"),
    number(
        "drain.ended_by",
        "",
        "complete: every op that is waited for had ended; limit: `drain` was over; stuck: no packet \
         was delivered any more; interrupted",
        "-",
    ),
    number(
        "stalled.noticed",
        "",
        "flows of which the peer acknowledged nothing for longer than 4 retransmission timeouts with \
         their pace's gaps, or over 4 timeouts in a row; one timeout is enough if a link on their \
         path is down. Looked for about 30 times a run",
        "over the whole run and its drain",
    ),
    number(
        "stalled.at_end",
        "",
        "stalled flows that made no further progress",
        "at the end of the drain",
    ),
    number(
        "stalled.flows",
        "",
        "the first 16 of them: `flow`, `host` and `peer`, from `since_us` to `until_us` (null: to the \
         end), the number of outstanding `ops`, and the `reason` if known",
        "-",
    ),
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
    number("work.events", "", "events of the simulator", "sum over the run"),
    number("work.packet_hops", "", "packets times links that they crossed", "sum over the run"),
    number(
        "work.event_hash",
        "",
        "hash of when each entity had an event: equal for any number of threads",
        "-",
    ),
];
