//! Every column of every table and every number of a summary: what it is, in one place, from which
//! the documentation is generated and which `apus explain` prints.

mod losses;
mod metric;
mod parts;
mod summary;
mod table;
mod tables;
mod workloads;

use std::fmt::Write;

use metric::fits;

pub use losses::FAULTS;
pub use metric::{METRICS, Names, SCOPED, STATS, is_fraction, pattern_of, unit_of};
pub use table::{Column, Table};
pub use tables::{FLOWS, OPS, PORT_SAMPLES, PORTS, SAMPLE_PERCENTILES, SAMPLES};
pub use workloads::WORKLOADS;

/// Version of the layout of `summary.json`: it grows when a number changes its name or meaning, not
/// when one is added.
pub const SCHEMA_VERSION: u32 = 2;

/// Every file of results.
pub const TABLES: &[Table] = &[
    summary::SUMMARY,
    summary::COST,
    WORKLOADS,
    OPS,
    FLOWS,
    PORTS,
    FAULTS,
    SAMPLES,
    SAMPLE_PERCENTILES,
    PORT_SAMPLES,
];

/// All names, each once.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> =
        TABLES.iter().flat_map(|table| table.columns).map(|column| column.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What a column is, in every table that has it; `None` if there is none of this name. A number of
/// a distribution or of a part of a run is explained by what stands for it.
#[must_use]
pub fn explain(name: &str) -> Option<String> {
    let mut text = String::new();
    for table in TABLES {
        for column in table.columns.iter().filter(|column| column.explains(name)) {
            if text.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name}");
            }
            let _ = writeln!(text, "  in {}: {}", table.file, column.definition);
            let _ = writeln!(text, "    unit: {}", unit(column, name));
            let _ = writeln!(text, "    taken over: {}", column.reducer);
        }
    }
    (!text.is_empty()).then_some(text)
}

impl Column {
    /// Whether it stands for this name.
    #[must_use]
    pub fn explains(&self, name: &str) -> bool {
        fits(name, self.name) || name == self.name
    }
}

fn unit(column: &Column, name: &str) -> &'static str {
    if column.unit.is_empty() || name.ends_with(".count") {
        "none (a count, a fraction or a word)"
    } else {
        column.unit
    }
}

/// The reference of all results, as `docs/outputs.md` has it.
#[must_use]
pub fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for table in TABLES {
        let _ = write!(text, "\n## {}\n{}\n\n", table.file, table.row);
        text += "| name | unit | definition | taken over |\n|---|---|---|---|\n";
        for Column { name, unit, definition, reducer } in table.columns {
            let definition = definition.replace('|', "\\|");
            let _ = writeln!(text, "| `{name}` | {unit} | {definition} | {reducer} |");
        }
    }
    text
}

const INTRODUCTION: &str = "\
# Results and what they mean

This page is generated from `crates/sim/src/columns`; `apus explain NAME` prints any entry of it.

`apus run FILE --out DIR` writes, complete or not at all:

| file | what |
|---|---|
| `effective.toml` | the scenario with every default resolved; it runs as it is |
| `summary.json` | the numbers of each run, and what was left out of its tables (`notes`) |
| `cost.json` | real time, threads and events per second of each run; apart, so that equal runs have equal summaries |
| `workloads.csv` | one row per workload: who got what |
| `ops.csv`, `flows.csv`, `ports.csv` | one row per op, flow (connection) and egress port |
| `faults.csv` | one row per fault of a link and per flow that changed its path |
| `samples.csv`, `sample_percentiles.csv`, `port_samples.csv` | flows and ports over time |
| `fct.txt` | the completion time of each flow as the HPCC simulator writes it |
| `report.html` | all of it as interactive charts, in one file that needs no network |

With several variants each has a directory of its own for its tables, and `summary.json` and
`report.html` hold them all. `apus reproduce NAME --out DIR` writes `report.html` with the paper's
numbers beside ours, and the tables of each variant's first seed.

DIR must be new, empty, or a directory of earlier results: it then holds `.apus-files`, the list of
the files that apus wrote there with their checksums. A file that is not in the list, or that was
changed since, is never overwritten; the command ends with an error before it runs anything.

Words that mean one thing everywhere:
* **Wire bytes** are everything that occupies a link, preamble and gap included. **Throughput** is
  wire bytes per time at a port. **Goodput** is payload bytes delivered once per time; bytes that
  arrive again never count.
* The **measured phase** runs from the end of the warm-up to `duration`. Totals are of the measured
  phase unless they say otherwise; samples and ops are of the whole run, and `phase` says which
  part an op belongs to.
* Without `warmup`, the measured phase of a run of traces alone begins with the first message. With
  `ends_with_ops` it ends with the last op, if all ops end before `duration`. `apus run --traffic`
  sets `ends_with_ops` unless `--set duration=...` is given. Packets sent within 1/200 of `duration`
  after the last op are counted, too. The **makespan** of a run of traces lasts from the start of its first
  message to the end of its last op; it includes the drain.
* In the **drain** after it the load goes on until every op that was submitted in the measured phase
  has ended, or for `drain` at most. It counts for nothing but the latencies of these ops. Open
  loops go on with the flows that they have; a trace has no more than its messages. Every op
  of a trace is waited for. Other workloads of which no op ended within the measured phase, like long
  flows, are not.
* An op that has not ended by then is **unfinished**. Its latency is at least its age, so every
  latency and slowdown has two bounds: `lower` with the ages, `upper` with infinity. A number whose
  bounds differ by more than 1 % is **censored**: it is `null` in JSON, empty in CSV, `>=` its lower
  bound in text, and a check of it fails. Mean and maximum are censored by a single unfinished op.
* **Ideal completion time** of an op: the base RTT of its pair of hosts, and its payload with the
  headers of its packets at the rate of the slowest link of the path. The **base RTT** is a full data
  packet there and an acknowledgement back, each hop storing and forwarding, that meet no other
  packet and no host's processing. **Slowdown** is latency over ideal completion time, at least 1.
* **Loss rate** is packets dropped over packets sent into the port's queue. **Losses** (`losses`) are
  all packets that did not arrive in the whole run, by cause and by port, over all packets sent.
* **Offered load** of a link is what the ops of open loops demand of it: wire bytes of their data
  packets, without retransmissions, over what the link carries in the same time. Above 1 no algorithm
  can keep the queues short. A closed loop has no offered load: it submits an op when another ends.
* **Utilisation** is
  throughput over the link's rate.
* **Fabric RTT** is the RTT between the NICs as Swift computes it, `t6 - t1 - endpoint delay`; the
  **endpoint delay** is `remote_queuing + (t6 - t5)`; the **end-to-end RTT** is `t6 - t1` (Swift
  Fig. 2).
* An empty cell is a value that does not exist: an algorithm without such a window, an op of a flow
  without a sample. 1 kB is 1000 B, Gb/s are 10^9 bit/s, time is simulated.

What is kept is bounded (`[record]` in the scenario): what is left out is counted and said in the
`notes` of `summary.json` and at the top of the report, never silently dropped. Percentiles of
distributions are accurate to 0.1 %; minima, maxima and means are exact.
";
