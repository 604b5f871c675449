//! The columns of `workloads.csv`.

use super::table::{Column, Table, number};

const OF_NAME: &str = "over its ops submitted in the measured phase";
const LOWER: &str = "the same if the unfinished ops had ended with the run";
const UPPER: &str = "the same if the unfinished ops never end; empty is unbounded";

/// Workloads side by side.
pub const WORKLOADS: Table = Table {
    file: "workloads.csv",
    row: "One row per workload, over the measured phase. Workloads of one name have a row for each \
          algorithm and traffic class; their latencies are only measured together, in `workload` of \
          `summary.json`, and empty here. In a run of more than 64 workloads, those without names have no \
          latencies of their own.",
    columns: COLUMNS,
};

const COLUMNS: &[Column] = &[
    number("workload", "", "its name, or one derived from its kind", "key column"),
    number("algorithm", "", "the label of its algorithm", "key column"),
    number("class", "", "its traffic class; empty if the topology has none", "key column"),
    number("ops", "", "ops of the workload that completed", "count over the measured phase"),
    number(
        "unfinished_ops",
        "",
        "ops submitted in the measured phase that had not ended after the drain",
        "count over the measured phase",
    ),
    number(
        "oldest_unfinished_us",
        "us",
        "age of the oldest of them; empty if there are none",
        "maximum over the measured phase",
    ),
    number(
        "goodput_gbps",
        "Gb/s",
        "payload bytes of the workload delivered once * 8 / length of the measured phase",
        "sum over its flows",
    ),
    number(
        "goodput_share",
        "",
        "`goodput_gbps` / that of the whole run; empty if nothing was delivered",
        "over the measured phase",
    ),
    number(
        "op_latency_p50_us",
        "us",
        "median of the latency, submission to completion; empty if it is censored",
        OF_NAME,
    ),
    number("op_latency_p50_lower_us", "us", LOWER, OF_NAME),
    number("op_latency_p50_upper_us", "us", UPPER, OF_NAME),
    number(
        "op_latency_p99_us",
        "us",
        "99th percentile of the latency; empty if it is censored",
        OF_NAME,
    ),
    number("op_latency_p99_lower_us", "us", LOWER, OF_NAME),
    number("op_latency_p99_upper_us", "us", UPPER, OF_NAME),
    number(
        "slowdown_p99",
        "",
        "99th percentile of the slowdown; empty if it is censored, and for a single workload without a \
         name",
        OF_NAME,
    ),
    number("slowdown_p99_lower", "", LOWER, OF_NAME),
    number("slowdown_p99_upper", "", UPPER, OF_NAME),
];
