//! All results of a run: the list of tables, the metrics that checks may name, and their documentation.

use std::fmt::Write;
use std::sync::LazyLock;

use crate::columns::{
    BUCKETS, BandRow, Column, Columns, FaultRecord, FlowRow, JobOpRow, Kind, OpRow, PortRow,
    PortSampleRow, STATS, SampleRow, Table, WorkloadRow, fits, summary,
};
use crate::summary::{Cost, Summary};

/// Version of the layout of `summary.json`. It increases when a number changes its name or meaning,
/// not when a number is added.
pub const SCHEMA_VERSION: u32 = 2;

/// Every file of results. The first is summary.json.
pub static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    vec![
        Table { file: "summary.json", row: SUMMARY, columns: summary_columns() },
        Table { file: "cost.json", row: COST, columns: Columns::of::<RunCost>() },
        Table::of::<WorkloadRow>(),
        Table::of::<OpRow>(),
        Table::of::<JobOpRow>(),
        Table::of::<FlowRow>(),
        Table::of::<PortRow>(),
        Table::of::<FaultRecord>(),
        Table::of::<SampleRow>(),
        Table::of::<BandRow>(),
        Table::of::<PortSampleRow>(),
    ]
});

const SUMMARY: &str = "\
    `{ \"schema_version\": 2, \"runs\": [...] }`, with one object per run (variant). A name with dots \
    is a path: `fabric_rtt_us.mean` is `mean` within `fabric_rtt_us`. `null` stands for a value that \
    was not measured or is censored. `<stat>` is one of `count` (without unit), `mean`, `min`, `p1`, `p10`, `p50`, \
    `p90`, `p99`, `p99_9` and `max`. `<name>` is a name in the scenario, `<class>` a traffic class, and `<n>` the \
    number of an entry, from 0. `<bucket>` is a bucket of 10 % of utilisation, named by its lower end in percent; \
    bucket 90 also contains values above 100 %. Numbers of port groups, settling times, spans and comparisons exist only \
    if the scenario names them. Numbers of a workload exist if it has a name, or if the run has several workloads, up to \
    64; a workload without a name is listed under its kind.";

const COST: &str = "\
    `{ \"schema_version\": 2, \"cost\": [...] }`, with one object per run in the order of \
    summary.json. These numbers differ between runs and between machines; the numbers of \
    summary.json do not. `apus run --json` prints them as `cost` next to `runs`.";

summary! {
    /// Cost of a run on this machine.
    #[derive(Clone, Debug, serde::Serialize)]
    pub struct RunCost {
        /// name of the scenario and its variant
        pub name: String = fact("-"),
        /// seed of all random number streams
        pub seed: u64 = fact("-"),
        /// Cost.
        #[serde(flatten)]
        pub cost: Cost = flat(),
    }
}

fn summary_columns() -> Vec<Column> {
    let mut version = Columns::default();
    let doc = "version of this layout; once per file, next to `runs`";
    version.push(Kind::Fact, "schema_version", doc, "-");
    let mut columns = [version.into_all(), Columns::of::<Summary>()].concat();
    let distributions: Vec<String> = columns
        .iter()
        .filter_map(|column| column.name.strip_suffix("<stat>"))
        .filter(|path| path.matches('.').count() == 1)
        .map(str::to_owned)
        .collect();
    // Numbers of the whole run come first, then its distributions, its parts, and the parts that the scenario
    // names. Within each group the order is that of the declarations.
    columns.sort_by_key(|column| {
        let name = &column.name;
        match name.split_once('.') {
            None => 0,
            Some(_) if distributions.iter().any(|path| name.starts_with(path)) => 1,
            Some((_, rest)) if !rest.starts_with('<') => 2,
            Some(_) => 3,
        }
    });
    columns
}

/// Metrics of every run: the paths of a summary's JSON that checks may name.
pub static METRICS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let whole = declared().filter(|column| !is_scoped(column));
    let filled = |column: &'static Column| -> Vec<&'static str> {
        match column.name.strip_suffix("<stat>") {
            Some(path) => STATS.iter().map(|stat| &*format!("{path}{stat}").leak()).collect(),
            None => vec![column.name.as_str()],
        }
    };
    whole.flat_map(filled).collect()
});

/// Metrics of parts of a run. `<name>` stands for a name in the scenario, `<class>` for a traffic class,
/// `<bucket>` for the lower end, in percent, of a 10 % range of utilisation, `<stat>` for one of [`STATS`],
/// and `<n>` for the number of an entry, from 0.
pub static SCOPED: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| declared().filter(|c| is_scoped(c)).map(|c| c.name.as_str()).collect());

fn declared() -> impl Iterator<Item = &'static Column> {
    TABLES[0].columns.iter().filter(|column| column.kind != Kind::Fact)
}

fn is_scoped(column: &Column) -> bool {
    column.name.trim_end_matches("<stat>").contains('<')
}

/// Names that a scenario gives to the parts of its runs that have their own metrics.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Workloads that are measured individually.
    pub workloads: Vec<String>,
    /// Number of ranges of op sizes.
    pub sizes: usize,
    /// Groups of ports.
    pub groups: Vec<String>,
    /// Traffic classes.
    pub classes: Vec<String>,
    /// Comparisons of classes.
    pub comparisons: Vec<String>,
    /// Settling times.
    pub settles: Vec<String>,
    /// Number of jobs.
    pub jobs: usize,
    /// Spans of time, each with the name of its quantity.
    pub spans: Vec<(String, &'static str)>,
}

impl Names {
    /// Returns the names of all metrics of these parts.
    #[must_use]
    pub fn metrics(&self) -> Vec<String> {
        let mut all = Vec::new();
        for pattern in SCOPED.iter() {
            let spans = self.spans.iter().filter(|(_, of)| pattern.split('.').nth(2) == Some(of));
            let spans: Vec<String> = spans.map(|(name, _)| name.clone()).collect();
            let names = match pattern.split('.').next() {
                Some("ports") => &self.groups,
                Some("compare") => &self.comparisons,
                Some("settle") => &self.settles,
                Some("span") => &spans,
                _ => &self.workloads,
            };
            let is_job = pattern.starts_with("jobs.");
            let count = if is_job { self.jobs } else { self.sizes };
            let numbers: Vec<String> = (0..count).map(|n| n.to_string()).collect();
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

/// Returns the entry of [`METRICS`] or [`SCOPED`] to which a metric belongs.
#[must_use]
pub fn pattern_of(metric: &str) -> Option<&'static str> {
    METRICS.iter().chain(SCOPED.iter()).copied().find(|pattern| fits(metric, pattern))
}

/// Returns `true` if a metric is a fraction, which can be given in percent.
#[must_use]
pub fn is_fraction(metric: &str) -> bool {
    let is_it = |column: &Column| column.kind == Kind::Fraction && fits(metric, &column.name);
    !metric.ends_with(".count") && declared().any(is_it)
}

/// Returns all names without repetition.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLES.iter().flat_map(Table::names).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the definition of a column in every table that has it; `None` if no table does. A number of a
/// distribution or of a part of a run has the definition of its pattern.
#[must_use]
pub fn explain(name: &str) -> Option<String> {
    let mut text = String::new();
    for table in TABLES.iter() {
        for column in table.columns.iter().filter(|column| column.explains(name)) {
            if text.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name}");
            }
            let _ = writeln!(text, "  in {}: {}", table.file, column.definition);
            let _ = writeln!(text, "    unit: {}", unit(column, name));
            let _ = writeln!(text, "    aggregation: {}", column.aggregation);
        }
    }
    (!text.is_empty()).then_some(text)
}

fn unit(column: &Column, name: &str) -> &'static str {
    if column.unit.is_empty() || name.ends_with(".count") {
        "none (a count, a fraction or a word)"
    } else {
        column.unit
    }
}

/// Returns the reference of all results: the content of `docs/outputs.md`.
#[must_use]
pub fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for table in TABLES.iter() {
        let _ = write!(text, "\n## {}\n{}\n\n", table.file, table.row);
        text += "| name | unit | definition | aggregation |\n|---|---|---|---|\n";
        for Column { name, unit, definition, aggregation, .. } in &table.columns {
            let definition = definition.replace('|', "\\|");
            let _ = writeln!(text, "| `{name}` | {unit} | {definition} | {aggregation} |");
        }
    }
    text
}

const INTRODUCTION: &str = "\
# Results

This page is generated from the declarations of results in `crates/sim`
(`APUS_WRITE_DOCS=1 cargo test -p apus-sim --test it columns` rewrites it). `apus explain NAME` prints any entry of this page.

`apus run FILE --out DIR` removes the results of an earlier run from DIR and writes the following files, `summary.json` last. If
the run is killed or the disk is full, DIR contains no `summary.json` and no incomplete file:

| file | content |
|---|---|
| `effective.toml` | the scenario with all defaults; it can be run unchanged |
| `summary.json` | the numbers of each run; `notes` lists the data that its tables omit |
| `cost.json` | wall time, threads and events per second of each run; a separate file, so that equal runs have equal summaries |
| `workloads.csv` | one row per workload: its share of ops and goodput |
| `ops.csv`, `flows.csv`, `ports.csv` | one row per op, flow (connection) and egress port |
| `job_ops.csv` | one row per operation of a job; only of runs with jobs |
| `faults.csv` | one row per link fault, per link that switches avoid, and per flow that changed its path |
| `samples.csv`, `sample_percentiles.csv`, `port_samples.csv` | flows and ports over time |
| `fct.txt` | the completion time of each op that succeeded, in the format of the HPCC simulator |
| `report.html` | charts of all results, from an overview down to the queue in which an op waited ([how to read it](report.md)); a single file that needs no network |

If there are several variants, the tables of each variant are in a directory of their own. `summary.json` and `report.html`
contain all variants. `apus reproduce NAME --out DIR` writes `report.html` with the paper's numbers next
to the simulated ones, and the tables of the first seed of each variant.

DIR must be new, empty, or a directory of earlier results. A directory of results contains `.apus-files`: a list of the files
that apus wrote there, with checksums. Apus never overwrites a file that is not in the list or that has changed since then. If
there is such a file, the command ends with an error before it runs anything.

Definitions:
* **Wire bytes** are everything that occupies a link, preamble and gap included. **Throughput** is
  wire bytes per time at a port. **Goodput** is payload bytes delivered once per time; duplicates do not
  count.
* The **measured phase** runs from the end of the warm-up to `duration`. Totals cover the measured
  phase unless stated otherwise. The tables of samples and ops also cover the warm-up; the column `phase` states the phase of
  an op.
* If a run consists only of traces and jobs and has no `warmup`, its measured phase begins with the first message or job. With
  `ends_with_ops` the phase ends with the last op, or with the last operation of a job if that is later, if all of them end
  before `duration`. `apus run --traffic` sets `ends_with_ops` unless `--set duration=...` is given. Packets that are sent after
  the last op, up to the end of the current step of the simulator, also count. A step is 1/200 of `duration`, but at least 16
  times the smallest link delay and at most 1 ms.
* The **makespan** of a run of traces lasts from the start of its first
  message to the end of its last op; it includes the drain.
* The **drain** follows the measured phase. In the drain the load continues until every op of the measured phase
  has ended, but not longer than `drain`. The drain affects only the latencies of these ops. Open loops continue
  with their existing flows; a trace sends only its own messages. The drain waits for every op of a trace and for every job. It
  does not wait for another workload if none of its ops completed in the measured phase, as with long flows.
* An op that has not ended after the drain is **unfinished**. Its latency is at least its age. Every
  latency and slowdown therefore has two bounds: `lower` uses the ages of unfinished ops, `upper` uses infinity. A number whose
  bounds differ by more than 1 % is **censored**. A censored number is `null` in JSON and empty in CSV; text shows `>=` and its
  lower bound; its checks fail. A single unfinished op censors mean and maximum.
* The **ideal completion time** of an op is the base RTT of its pair of hosts, plus the time to send its
  payload and headers at the line rate. The **base RTT** is the time of a
  full data packet and its acknowledgement over the store-and-forward hops of the path, without other
  packets and without processing in hosts. The **line rate** is the rate of the slowest link of the path. If packets of a flow
  take several paths, this rate counts once per port of the host with fewer ports. **Slowdown** is latency over ideal
  completion time, at least 1.
* **Loss rate** is packets dropped over packets sent into the port's queue. At ports, credits count in neither number.
  **Losses** (`losses`) are all packets that were lost in the warm-up and the measured phase, by cause and by port, credits
  included. `losses.loss_rate` is their number over all packets sent.
* The **offered load** of a link is the demand of the ops of open loops: wire bytes of their data packets,
  without retransmissions, over the capacity of the link in the same time. Above 1 no algorithm can
  keep queues short. A closed loop has no offered load, because it submits an op only when another op ends.
* **Utilisation** is throughput over the link's rate. A fault that slows a link does not change this rate.
* **Fabric RTT** is the RTT between the NICs as Swift computes it, `t6 - t1 - endpoint delay`; the
  **endpoint delay** is `remote_queuing + (t6 - t5)`; the **end-to-end RTT** is `t6 - t1` (Swift
  Fig. 2). The **stack** of a host is its transport, which processes the packets that the NIC receives.
* An empty cell means that there is no such value. Examples are the window of an algorithm without this window, and the RTT of a
  flow without a sample. 1 kB is 1000 B, 1 Gb/s is 10^9 bit/s, and times other than wall times are simulated.

`[record]` in the scenario limits the recorded data. The `notes` of `summary.json` and the top of the
report state the amount of omitted data. Percentiles of distributions are accurate to 0.1 % for values up to 13 days, 10^9
packets, 10^15 bytes and a slowdown of 10^12; larger values count as these limits. Minima, maxima and means are exact.
";

#[cfg(test)]
mod tests {
    use super::{Names, pattern_of};
    use crate::columns::unit_of;

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
