//! `apus bench`: speed of the simulator, and of the transport over UDP.

use apus_scenario::experiment::run_plan;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use apus_fabric::PortKind;
use apus_scenario::{Options, Scenario, Setup};
use apus_sim::bounds::median;
use apus_sim::cores::free;
use apus_units::suggestion;
use clap::{Args, ValueEnum};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::memory::MaxMemory;
use crate::{library, output};

/// Time the simulator on fixed cases: fat trees at 100 Gb/s, 1 us links, 4000 B packets, Swift.
#[derive(Args)]
#[cfg_attr(feature = "real", command(args_conflicts_with_subcommands = true))]
pub struct Bench {
    #[cfg(feature = "real")]
    #[command(subcommand)]
    other: Option<Other>,
    /// Cases to run [default: all].
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Number of measured runs of each case.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Number of warm-up runs of each case before the measured ones.
    #[arg(long, default_value_t = 1)]
    warm_up: u32,
    /// Number of threads of a run, at most one per core. A run takes fewer while other programs use the cores.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Give switch ports two traffic classes, one of them for acknowledgements; without a value, as `strict`.
    #[arg(
        long, value_enum, value_name = "PORTS",
        num_args = 0..=1, require_equals = true, default_missing_value = "strict"
    )]
    class_ports: Option<ClassPorts>,
    /// Set KEY to VALUE in all cases, as in `--set duration=1ms`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Subcommands for other parts than the simulator.
#[cfg(feature = "real")]
#[derive(clap::Subcommand)]
enum Other {
    Udp(crate::real::bench::BenchUdp),
}

/// Ports with classes; those of strict and general ones give the same results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClassPorts {
    /// Acknowledgements with strict priority over data.
    Strict,
    /// Acknowledgements with weight 1, data with weight 4.
    Weighted,
    /// As `strict`, but served by events, as rate limits, pauses, link failures and shared buffers require.
    General,
}

impl ClassPorts {
    fn kind(self) -> PortKind {
        match self {
            Self::Strict | Self::Weighted => PortKind::Lazy,
            Self::General => PortKind::Event,
        }
    }

    /// Returns the settings of traffic classes for a case.
    fn classes(self) -> String {
        let data = match self {
            Self::Strict | Self::General => "priority = 1",
            Self::Weighted => "weight = 4",
        };
        format!(
            "\n[[topology.class]]\nname = \"data\"\n{data}\n\n[[topology.class]]\nname = \"ack\"\n"
        )
    }
}

/// Cost of a case: medians over the counted runs.
#[derive(Serialize, Deserialize)]
struct Case {
    name: String,
    /// CPU seconds of the process, all threads.
    cpu_s: f64,
    cpu_s_min: f64,
    cpu_s_max: f64,
    /// CPU seconds for the construction of the network, its hosts and its flows; included in `cpu_s`.
    setup_cpu_s: f64,
    wall_s: f64,
    packet_hops: u64,
    events: u64,
    data_packets_delivered: u64,
    packet_hops_per_cpu_s: f64,
    events_per_cpu_s: f64,
    /// Largest resident set of the process, 10^6 bytes; `None` if the system does not report it.
    peak_mb: Option<f64>,
    /// Smallest number of threads that took part in a counted run.
    threads: u32,
    runs: u32,
}

#[derive(Serialize, Deserialize)]
struct Report {
    cases: Vec<Case>,
}

impl Bench {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        #[cfg(feature = "real")]
        if let Some(Other::Udp(command)) = &self.other {
            return command.execute();
        }
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        if self.threads as usize > cores {
            return Err(Failure::Input(format!(
                "--threads is {}, but there are {cores} cores: threads that share one measure how they \
                 wait; give at most {cores}",
                self.threads
            )));
        }
        let names = self.names()?;
        let mut cases = Vec::new();
        for name in &names {
            // A process per case, so that the peak memory is that of the case alone.
            cases.push(if names.len() == 1 { self.measure(name)? } else { self.delegate(name)? });
            if !self.json {
                output::print(&row(cases.len() == 1, &cases[cases.len() - 1], self.threads))?;
            }
        }
        if self.json {
            return output::print(&output::to_json(&Report { cases })?);
        }
        output::print(&format!(
            "CPU s: medians of {} runs after {} warm-up runs.\n",
            self.repeat, self.warm_up
        ))
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        let known: Vec<&str> =
            library::names().filter_map(|name| name.strip_prefix("bench/")).collect();
        if self.cases.is_empty() {
            return Ok(known.into_iter().map(str::to_owned).collect());
        }
        if let Some(name) = self.cases.iter().find(|name| !known.contains(&name.as_str())) {
            let hint = suggestion(name, known.iter().copied());
            return Err(Failure::Input(format!("unknown benchmark `{name}`{hint}")));
        }
        Ok(self.cases.clone())
    }

    fn delegate(&self, name: &str) -> Result<Case, Failure> {
        let failed = |why: String| Failure::Run(format!("benchmark {name}: {why}"));
        let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let mut command = Command::new(program);
        command.args(["bench", name, "--json"]);
        command.args(["--repeat", &self.repeat.to_string()]);
        command.args(["--warm-up", &self.warm_up.to_string()]);
        command.args(["--threads", &self.threads.to_string()]);
        if let Some(ports) = self.class_ports.and_then(|ports| ports.to_possible_value()) {
            command.arg(format!("--class-ports={}", ports.get_name()));
        }
        for setting in &self.set {
            command.args(["--set", setting]);
        }
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let report: Report =
            serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))?;
        report.cases.into_iter().next().ok_or_else(|| failed("no result".to_owned()))
    }

    fn measure(&self, name: &str) -> Result<Case, Failure> {
        let scenario = self.scenario(name)?;
        let setup = &scenario.runs[0].setup;
        for _ in 0..self.warm_up {
            self.run(setup)?;
        }
        let mut runs = (0..self.repeat).map(|_| self.run(setup)).collect::<Result<Vec<_>, _>>()?;
        let threads = runs.iter().map(|(_, summary)| summary.cost.threads).min().unwrap_or(1);
        runs.sort_by(|a, b| a.0.cpu_s.total_cmp(&b.0.cpu_s));
        let (fastest, slowest) = (runs[0].0.cpu_s, runs[runs.len() - 1].0.cpu_s);
        let median_of = |seconds: fn(&Seconds) -> f64| {
            median(runs.iter().map(|(one, _)| seconds(one)).collect()).unwrap_or(f64::NAN)
        };
        let (cpu_s, setup_cpu_s) = (median_of(|one| one.cpu_s), median_of(|one| one.setup_cpu_s));
        let middle = runs.len() / 2;
        let (_, summary) = runs.swap_remove(middle);
        let (work, cost) = (summary.work, summary.cost);
        Ok(Case {
            name: name.to_owned(),
            cpu_s,
            cpu_s_min: fastest,
            cpu_s_max: slowest,
            setup_cpu_s,
            wall_s: cost.wall_s,
            packet_hops: work.packet_hops,
            events: work.events,
            data_packets_delivered: summary.measured.data_packets_delivered,
            packet_hops_per_cpu_s: work.packet_hops as f64 / cpu_s,
            events_per_cpu_s: work.events as f64 / cpu_s,
            peak_mb: peak_mb(),
            threads,
            runs: self.repeat,
        })
    }

    fn scenario(&self, name: &str) -> Result<Scenario, Failure> {
        let mut options = Options {
            set: self.set.clone(),
            memory: MaxMemory::default().limit(),
            ..Options::default()
        };
        let file = format!("bench/{name}");
        let Some(mut source) = library::find(&file) else {
            return Err(Failure::Input(format!("unknown benchmark `{name}`")));
        };
        if let Some(ports) = self.class_ports {
            source.text.push_str(&ports.classes());
            options.set.push("topology.ack_class=ack".to_owned());
        }
        library::read(&source, Path::new(""), &options)
            .map_err(|error| Failure::Input(error.to_string()))
    }

    /// Runs a case once, including the construction of the network and its flows.
    fn run(&self, setup: &Setup) -> Result<(Seconds, apus_sim::summary::Summary), Failure> {
        let threads = free(self.threads);
        let started = cpu_seconds();
        let mut plan = setup.plan().map_err(|e| Failure::Run(e.to_string()))?;
        if let Some(ports) = self.class_ports {
            plan.least_ports = ports.kind();
        }
        let mut setup_cpu_s = 0.0;
        let built = || setup_cpu_s = cpu_seconds() - started;
        let summary = run_plan(plan, setup.name(), threads, built).map_err(Failure::Run)?;
        Ok((Seconds { cpu_s: cpu_seconds() - started, setup_cpu_s }, summary))
    }
}

/// CPU seconds of a run, and those before its first event.
struct Seconds {
    cpu_s: f64,
    setup_cpu_s: f64,
}

/// Returns the CPU time of this process, all threads, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the largest resident set so far (`VmHWM`), in 10^6 bytes, if the system reports it.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024e-6)
}

/// Returns the table row of a case. The first row is preceded by the header. A line follows if a run had fewer threads
/// than `wanted`.
fn row(first: bool, case: &Case, wanted: u32) -> String {
    let mut text = String::new();
    if first {
        text = format!(
            "{:<16} {:>7} {:>13} {:>8} {:>7} {:>12} {:>13} {:>12} {:>7}\n",
            "case",
            "CPU s",
            "min-max",
            "set-up s",
            "wall s",
            "data packets",
            "M packet-hops",
            "M hops/CPU s",
            "peak MB"
        );
    }
    text += &format!(
        "{:<16} {:>7.3} {:>6.3}-{:<6.3} {:>8.3} {:>7.3} {:>12} {:>13.2} {:>12.2} {:>7}\n",
        case.name,
        case.cpu_s,
        case.cpu_s_min,
        case.cpu_s_max,
        case.setup_cpu_s,
        case.wall_s,
        case.data_packets_delivered,
        case.packet_hops as f64 * 1e-6,
        case.packet_hops_per_cpu_s * 1e-6,
        case.peak_mb.map_or_else(|| "?".to_owned(), |mb| format!("{mb:.0}")),
    );
    if case.threads < wanted {
        text += &format!(
            "  {} of {wanted} threads: other programs used the cores, or the network cannot be divided\n",
            case.threads
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_of_fewer_threads_than_wanted() {
        let case = |threads| Case {
            name: "incast-100".to_owned(),
            cpu_s: 1.0,
            cpu_s_min: 1.0,
            cpu_s_max: 1.0,
            setup_cpu_s: 0.1,
            wall_s: 1.0,
            packet_hops: 1,
            events: 1,
            data_packets_delivered: 1,
            packet_hops_per_cpu_s: 1.0,
            events_per_cpu_s: 1.0,
            peak_mb: None,
            threads,
            runs: 1,
        };
        assert!(row(false, &case(1), 2).contains("1 of 2 threads"));
        assert_eq!(row(false, &case(2), 2).lines().count(), 1);
    }
}
