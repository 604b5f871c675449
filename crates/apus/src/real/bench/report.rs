//! Results of `apus bench udp`: medians over the turns, and ratios of measurements in the same turn, as a table or as
//! JSON.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use apus_sim::bounds::median;
use serde::Serialize;

use super::contest::{Measured, Used};
use super::plan::{Part, Setting};
use super::spec::Contestant;
use crate::text::{columns, number};

/// Facts about the machine and the measurement.
#[derive(Serialize)]
pub struct Facts {
    /// Version of Apus.
    pub version: &'static str,
    /// Cores that this process may use.
    pub cores: usize,
    /// Model of the CPU.
    pub cpu: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Mean number of runnable threads in the minute before the start; `None` if the system does not report it.
    pub load: Option<f64>,
    /// CPU time of other processes and of interrupts during the measurement, percent of a core; `None` if the system
    /// does not report it.
    pub others_percent: Option<f64>,
    /// CPU time that other virtual machines used on the cores of this one, percent of a core.
    pub steal_percent: Option<f64>,
    /// Location of the server.
    pub server: String,
    /// Cipher of sealed packets; `None` without any.
    pub cipher: Option<String>,
    /// Maximum length of IP packets, bytes.
    pub mtu: u32,
    /// Number of turns.
    pub turns: u32,
    /// Time of a measurement, seconds; long gaps and idle connections take longer.
    pub seconds: f64,
    /// Reason for an early end of the measurement; `None` if it is complete.
    pub partial: Option<String>,
}

impl Facts {
    /// Reads the facts from the system.
    pub fn new(
        server: String,
        cipher: Option<String>,
        mtu: u32,
        turns: u32,
        duration: Duration,
    ) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (cpus, load) = (read("/proc/cpuinfo"), read("/proc/loadavg"));
        let model = cpus.lines().find(|line| line.starts_with("model name"));
        let model =
            model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, model)| model);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            cores: available_parallelism().map_or(1, NonZeroUsize::get),
            cpu: model.trim().to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: load.split_ascii_whitespace().next().and_then(|load| load.parse().ok()),
            others_percent: None,
            steal_percent: None,
            server,
            cipher,
            mtu,
            turns,
            seconds: duration.as_secs_f64(),
            partial: None,
        }
    }
}

/// Median, minimum and maximum of a quantity over the turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Summarises the turns; `None` if one of them has no value.
    fn of(turns: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = turns.collect::<Option<_>>()?;
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        Some(Self { median: median(values)?, min, max })
    }

    /// Returns a text such as "1.42 (1.31-1.60)".
    fn text(self) -> String {
        format!("{} ({}-{})", short(self.median), short(self.min), short(self.max))
    }
}

/// Returns a number with three significant digits.
fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", digits.clamp(0, 3) as usize)
}

/// Results of a contestant.
#[derive(Serialize)]
pub struct Row {
    /// Name of the contestant.
    pub name: String,
    /// The contestant.
    #[serde(flatten)]
    pub contestant: Names,
    /// Median round trip.
    pub p50_us: Option<Spread>,
    /// 99th percentile of the round trips.
    pub p99_us: Option<Spread>,
    /// Ops per second.
    pub ops_per_second: Spread,
    /// Payload per second.
    pub goodput_gbps: Option<Spread>,
    /// CPU time of all processes per op; `None` without ops.
    pub cpu_us_per_op: Option<Spread>,
    /// Time in run queues of all processes per op.
    pub queued_us_per_op: Option<Spread>,
    /// Number of times that a thread got a core, per op.
    pub runs_per_op: Option<Spread>,
    /// CPU time of all busy threads, percent of a core; `None` without any.
    pub busy_percent: Option<Spread>,
    /// Name of the contestant with which this one is compared; ratios are between measurements of the same turn.
    pub base: String,
    /// Ratio of the median round trips.
    pub p50_ratio: Option<Spread>,
    /// Ratio of the 99th percentiles.
    pub p99_ratio: Option<Spread>,
    /// Ratio of the ops per second.
    pub rate_ratio: Option<Spread>,
    /// The measurement of each turn.
    pub turns: Vec<Measured>,
}

/// Header of [`Row::round_trips`].
const ROUND_TRIPS: [&str; 6] =
    ["round trips of 64 B", "contestant", "p50, us", "p99, us", "p50 / UDP", "p99 / UDP"];

fn middle(value: Option<Spread>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| short(value.median))
}

fn spread(value: Option<Spread>) -> String {
    value.map_or_else(|| "-".to_owned(), Spread::text)
}

impl Row {
    fn round_trips(&self) -> Vec<String> {
        vec![
            middle(self.p50_us),
            middle(self.p99_us),
            spread(self.p50_ratio),
            spread(self.p99_ratio),
        ]
    }

    fn costs(&self) -> Vec<String> {
        [self.cpu_us_per_op, self.queued_us_per_op, self.runs_per_op].map(middle).to_vec()
    }
}

/// The contestant of a row.
#[derive(Serialize)]
pub struct Names {
    contestant: Contestant,
}

/// Results of a setting.
#[derive(Serialize)]
pub struct Section {
    /// Part to which the setting belongs.
    pub part: Part,
    /// Name of the setting.
    pub setting: String,
    /// Results of its contestants.
    pub rows: Vec<Row>,
}

impl Section {
    /// Summarises a setting. `turns` has the measurements of each contestant; a contestant without measurements is left
    /// out.
    pub fn new(setting: &Setting, turns: &[Vec<Measured>]) -> Self {
        let measured = setting.entries.iter().zip(turns).filter(|(_, own)| !own.is_empty());
        let rows = measured.map(|(entry, own)| {
            let base = setting.base(entry);
            let all = |value: fn(&Measured) -> Option<f64>| Spread::of(own.iter().map(value));
            let ratio = |value: fn(&Measured) -> Option<f64>| {
                let ratio = |(own, base)| Some(value(own)? / value(base)?);
                Spread::of(own.iter().zip(&turns[base]).map(ratio))
            };
            let rate = all(|m| Some(m.ops_per_second));
            Row {
                name: entry.name(),
                contestant: Names { contestant: entry.contestant },
                p50_us: all(|m| m.p50_us),
                p99_us: all(|m| m.p99_us),
                ops_per_second: rate.unwrap_or(Spread { median: 0.0, min: 0.0, max: 0.0 }),
                goodput_gbps: all(|m| m.goodput_gbps),
                cpu_us_per_op: all(|m| m.per_op(|used| Some(used.cpu_us_per_second))),
                queued_us_per_op: all(|m| m.per_op(|used| used.queued_us_per_second)),
                runs_per_op: all(|m| m.per_op(|used| used.runs_per_second)),
                busy_percent: all(|m| Some(m.busy?.cpu_us_per_second * 1e-4)),
                base: setting.entries[base].name(),
                p50_ratio: ratio(|m| m.p50_us),
                p99_ratio: ratio(|m| m.p99_us),
                rate_ratio: ratio(|m| Some(m.ops_per_second).filter(|&rate| rate > 0.0)),
                turns: own.clone(),
            }
        });
        Self { part: setting.part, setting: setting.name.clone(), rows: rows.collect() }
    }
}

impl Measured {
    /// Returns a quantity of both sides per op; `None` without ops.
    fn per_op(&self, of: fn(&Used) -> Option<f64>) -> Option<f64> {
        let sum = of(&self.client)? + of(&self.server)?;
        (self.ops_per_second > 0.0).then(|| sum / self.ops_per_second)
    }
}

/// Results of all settings.
#[derive(Serialize)]
pub struct Report {
    /// Facts about the machine and the measurement.
    pub facts: Facts,
    /// Results by setting.
    pub sections: Vec<Section>,
}

impl Report {
    /// Returns the facts and a table in Markdown, which is readable as text.
    pub fn text(&self) -> String {
        let Facts { version, cores, cpu, kernel, server, mtu, turns, seconds, .. } = &self.facts;
        let cipher =
            self.facts.cipher.as_ref().map_or_else(String::new, |name| format!("; sealed: {name}"));
        let others = self.facts.others_percent.zip(self.facts.steal_percent).map_or_else(
            String::new,
            |(others, steal)| {
                format!(
                    " Other processes and interrupts used {others:.0} % of a core, other virtual machines {steal:.0} %."
                )
            },
        );
        let partial = self.facts.partial.as_ref();
        let partial = partial.map_or_else(String::new, |why| format!("partial results: {why}\n"));
        let mut text = format!(
            "{partial}Apus {version}; {cores} cores of {cpu}, Linux {kernel}; server: {server}; MTU {mtu}{cipher}.\n\
             Medians of {turns} turns of {} s with every contestant, each in fresh processes (smallest to largest). Ratios are \
             of one turn.{others}\n",
            number(*seconds)
        );
        let table = |parts: &[Part], header: &[&str], row: fn(&Row) -> Vec<String>| {
            let mut rows = vec![header.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()];
            rows.push(header.iter().map(|cell| "-".repeat(cell.len())).collect());
            for section in self.sections.iter().filter(|section| parts.contains(&section.part)) {
                for (place, entry) in section.rows.iter().enumerate() {
                    let setting = if place == 0 { section.setting.clone() } else { String::new() };
                    rows.push([vec![setting, entry.name.clone()], row(entry)].concat());
                }
            }
            if rows.len() == 2 { String::new() } else { format!("\n{}", markdown(rows)) }
        };
        let blocking = [Part::RoundTrips, Part::Clients, Part::Threads];
        text += &table(
            &blocking,
            &[&ROUND_TRIPS[..], &["CPU us/op", "queued us/op", "runs/op"]].concat(),
            |row| [row.round_trips(), row.costs()].concat(),
        );
        text +=
            &table(&[Part::Busy], &[&ROUND_TRIPS[..], &["busy threads' CPU, %"]].concat(), |row| {
                [row.round_trips(), vec![middle(row.busy_percent)]].concat()
            });
        text += &table(
            &[Part::Writes],
            &[
                "writes",
                "contestant",
                "per second",
                "Gb/s",
                "rate / inline",
                "CPU us/op",
                "queued us/op",
                "runs/op",
            ],
            |row| {
                let rate = format!("{:.0}", row.ops_per_second.median);
                let rates = vec![rate, middle(row.goodput_gbps), spread(row.rate_ratio)];
                [rates, row.costs()].concat()
            },
        );
        text += &table(
            &[Part::Rpc],
            &[
                "calls of 64 B",
                "contestant",
                "p50, us",
                "p99, us",
                "p50 / message",
                "p99 / message",
                "per second",
                "rate / message",
                "CPU us/op",
            ],
            |row| {
                let rate = format!("{:.0}", row.ops_per_second.median);
                let rates = vec![rate, spread(row.rate_ratio), middle(row.cpu_us_per_op)];
                [row.round_trips(), rates].concat()
            },
        );
        text += &table(&[Part::Spinning, Part::Inline], &ROUND_TRIPS, Row::round_trips);
        for section in self.sections.iter().filter(|section| section.part == Part::Idle) {
            let of = |used: &Used| {
                let runs = used.runs_per_second.map_or_else(|| "?".to_owned(), short);
                format!("CPU {} us/s, {runs} runs/s", short(used.cpu_us_per_second))
            };
            for turn in section.rows.iter().flat_map(|row| &row.turns) {
                text += &format!(
                    "\n{} in one process, {} s: {}; their {} peers in another one: {}\n",
                    section.setting,
                    short(turn.seconds),
                    of(&turn.server),
                    section.setting.split(' ').next().unwrap_or_default(),
                    of(&turn.client)
                );
            }
        }
        text + "\nCPU: both ends, all threads. Queued: time in which a thread was ready to run and had no core. Runs: times that a \
                thread got a core.\n"
    }
}

/// Returns rows as a Markdown table with columns of equal width.
fn markdown(rows: Vec<Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| {
            let mut cells: Vec<String> = row.into_iter().map(|cell| format!("| {cell}")).collect();
            cells.push("|".to_owned());
            cells
        })
        .collect();
    columns(&rows, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_with_the_extremes() {
        let spread = Spread::of([3.0, 1.0, 2.0, 9.0, 2.5].map(Some).into_iter()).expect("values");
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 9.0 });
        assert_eq!(spread.text(), "2.50 (1.00-9.00)");
        assert_eq!(Spread::of([Some(1.0), None].into_iter()), None);
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let cases =
            [(0.0, "0"), (0.01234, "0.012"), (1.4567, "1.46"), (14.567, "14.6"), (1456.7, "1457")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
