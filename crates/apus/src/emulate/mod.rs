//! `apus emulate`: runs a scenario on this machine's kernel and compares it with its simulation.

mod check;
pub mod host;
pub mod inside;
mod load;
mod network;
mod page;
mod report;
mod side;
mod spec;
mod tcp;
mod traffic;
mod translate;

use apus_scenario::Plan;
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use apus_scenario::experiment::{Threads, run_all};
use apus_scenario::{Options, Scenario, Setup};
use apus_sim::Watch;
use apus_sim::summary::Summary;
use apus_udp::session::{Cipher, Config as SessionConfig};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::Value;

use crate::closer::{self, DEFAULT_WORST};
use crate::failure::Failure;
use crate::interrupt::{self, DEFAULT_SILENCE, read_silence};
use crate::library;
use crate::memory::MaxMemory;
use crate::open;
use crate::output::{check_writable, say, to_json, write_file};
use crate::progress::Meter;
use crate::report::{RunPage, SecondRun};
use report::{Comparison, Comparisons};
use side::Side;
use spec::{Outcome, Spec};

/// Run a scenario in the simulator and with real processes on this machine, and compare the results.
///
/// The processes run in network namespaces joined by veth pairs, with HTB at every switch port.
#[derive(Args)]
pub struct Emulate {
    /// Scenario file, or name of a built-in scenario.
    file: String,
    /// Set KEY to VALUE, as in `--set algorithm.base_target=500us`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all random numbers of the simulation, and of the times of ops in both.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1 << 53))]
    seed: Option<u64>,
    /// Run only the variant NAME.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Cipher of the real packets: aes-256-gcm or aegis-128x.
    #[arg(long, value_name = "CIPHER", default_value_t = SessionConfig::default().cipher)]
    #[arg(value_parser = str::parse::<Cipher>)]
    cipher: Cipher,
    /// Also run the TCP of the kernel with the congestion control NAME, such as "cubic", over the same network. There, a closed
    /// loop is an endless stream, and the ops of an open loop are sent at their times.
    #[arg(long, value_name = "NAME")]
    tcp: Option<String>,
    /// Also write the report to FILE: an HTML page if its name ends with .html, otherwise Markdown.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Follow the N slowest simulated ops of each workload to their causes in the page. For this, the simulation is repeated,
    /// and everything around these ops is recorded; 0 disables this [default: 20].
    #[arg(long, value_name = "N", requires = "report",
          value_parser = clap::value_parser!(u32).range(0..=60))]
    worst: Option<u32>,
    /// Open the page in a browser.
    #[arg(long, requires = "report")]
    open: bool,
    #[command(flatten)]
    max_memory: MaxMemory,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl Emulate {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let options = Options {
            set: self.set.clone(),
            seed: self.seed,
            variant: self.variant.clone(),
            quick: false,
            memory: self.max_memory.limit(),
            ..Options::default()
        };
        let scenario = library::open(&self.file, &options)?;
        let runs = self.prepare(&scenario)?;
        let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "html");
        let paged = self.report.as_ref().is_some_and(is_page);
        if (self.open || self.worst.is_some()) && !paged {
            let why = "--open and --worst: have no effect without a page; give --report a name that ends with .html";
            return Err(Failure::Input(why.to_owned()));
        }
        if let Some(path) = &self.report {
            // Before a long run, check that its results can be written.
            check_writable(path).map_err(Failure::Input)?;
        }
        let silence = read_silence(DEFAULT_SILENCE).map_err(Failure::Run)?;
        let watch = interrupt::watch(silence)?;
        let (mut comparisons, mut stopped) = (Comparisons { runs: Vec::new() }, None);
        for run in &runs {
            let worst = paged.then_some(self.worst.unwrap_or(DEFAULT_WORST) as usize);
            match run.execute(worst, runs.len(), &watch) {
                Ok(comparison) => comparisons.runs.push(comparison),
                Err(failure) if comparisons.runs.is_empty() => return Err(failure),
                Err(failure) => {
                    stopped = Some(failure);
                    break;
                }
            }
        }
        let written = self.report.as_ref().map_or(Ok(()), |path| {
            let text =
                if paged { comparisons.to_html(&scenario.name) } else { comparisons.to_markdown() };
            write_file(path, &text).map_err(Failure::Run)
        });
        let mut problems = Vec::new();
        let text = if self.json { to_json(&comparisons)? + "\n" } else { comparisons.to_text() };
        say(&text, &mut problems);
        let shown = written.and_then(|()| match &self.report {
            Some(path) if self.open => open::open(path),
            _ => Ok(()),
        });
        let mut failed = comparisons.runs.iter().flat_map(Comparison::failures);
        problems.extend(failed.next().map(|first| format!("ops failed: {first}")));
        problems.extend(shown.err().map(|why| why.to_string()));
        match stopped {
            Some(failure) if problems.is_empty() => Err(failure),
            Some(failure) => Err(failure.and(&problems.join("\n"))),
            None if problems.is_empty() => Ok(()),
            None => Err(Failure::Run(problems.join("\n"))),
        }
    }

    /// Returns the runs, all of them checked to be possible.
    fn prepare(&self, scenario: &Scenario) -> Result<Vec<Run>, Failure> {
        let mut runs = Vec::new();
        for run in &scenario.runs {
            let name = run.setup.name();
            let plan = run.setup.plan().map_err(|e| Failure::Input(format!("{name}: {e}")))?;
            let spec =
                translate::spec(&run.setup, &plan, &key()?, self.cipher).map_err(|problems| {
                    let lines = problems.iter().map(|problem| format!("{}: {problem}", self.file));
                    Failure::Input(lines.collect::<Vec<_>>().join("\n"))
                })?;
            let tcp = self.tcp.as_ref().map(|name| translate::with_tcp(&spec, name));
            let tcp = tcp.transpose().map_err(Failure::Input)?;
            runs.push(Run { setup: run.setup.clone(), plan, spec, tcp });
        }
        Ok(runs)
    }
}

/// A run in all its forms: simulated, and in namespaces.
struct Run {
    setup: Setup,
    plan: Plan,
    spec: Spec,
    tcp: Option<Spec>,
}

impl Run {
    /// Executes the simulation and the emulation. `worst` is the number of slow ops that a page of `runs` runs follows,
    /// if there is a page.
    fn execute(
        &self,
        worst: Option<usize>,
        runs: usize,
        watch: &Watch,
    ) -> Result<Comparison, Failure> {
        let setups = [self.setup.clone().recorded(true)];
        let one = NonZeroUsize::MIN;
        let meter = Meter::new(&[self.setup.name()], one);
        let summary =
            run_all(&setups, one, Threads::Exactly(1), watch, &|step| meter.on_step(step)).pop();
        drop(meter);
        let summary = summary.unwrap_or_else(|| Err("the simulation did not end".to_owned()));
        if interrupt::interrupted(watch) {
            let message = format!("interrupted; there are no results of {}", self.setup.name());
            return Err(Failure::Interrupted(message));
        }
        let summary = summary.map_err(Failure::Run)?;
        let simulated = Side::of_simulation(&summary);
        let outcome = emulate(&self.spec, watch)?;
        let real = Side::of_outcome(&outcome, &self.spec);
        let mut failures = failures(&outcome, "");
        let tcp = match &self.tcp {
            Some(spec) => {
                let outcome = emulate(spec, watch)?;
                failures.extend(self::failures(&outcome, "TCP, "));
                Some(Side::of_outcome(&outcome, spec))
            }
            None => None,
        };
        let tcp_name = self.tcp.as_ref().and_then(|spec| spec.agents.first()?.tcp.clone());
        let notes = check::left_out(&self.plan);
        let page = worst.map(|worst| self.page(&summary, worst, runs, watch));
        let name = self.setup.name();
        Ok(Comparison::new(name, simulated, real, tcp.zip(tcp_name), notes, failures)
            .with_page(page))
    }

    /// Returns the simulation in the form of a page with `runs` runs.
    fn page(&self, summary: &Summary, worst: usize, runs: usize, watch: &Watch) -> Value {
        let second = SecondRun::of(&self.setup, summary, worst, runs).filter(|_| worst > 0);
        let causes = closer::follow(second.as_slice(), NonZeroUsize::MIN, watch);
        let name = self.setup.name();
        let page = RunPage {
            summary,
            label: name,
            setup: Some(&self.setup),
            seeds: vec![summary],
            causes: causes.get(name),
        };
        page.json(runs)
    }
}

/// Returns the failures, by host.
fn failures(outcome: &Outcome, side: &str) -> Vec<String> {
    let hosts = outcome.hosts.iter().enumerate();
    let failed = |(i, host): (usize, &spec::HostResult)| {
        Some(format!("{side}host {i}: {}", host.failed.as_ref()?))
    };
    hosts.filter_map(failed).collect()
}

/// Returns the line of a key file for this run alone.
fn key() -> Result<String, Failure> {
    let key = apus_udp::session::SharedKey::generate()
        .map_err(|e| Failure::Run(format!("a random key: {e}")))?;
    Ok(key.to_line().to_string())
}

/// Runs a network in its own namespaces, which end with this process or on Ctrl-C.
fn emulate(spec: &Spec, watch: &Watch) -> Result<Outcome, Failure> {
    let text = serde_json::to_string(spec).map_err(|error| Failure::Run(error.to_string()))?;
    let mut child = namespaces()?;
    let seconds = spec.agents.first().map_or(0, |agent| agent.duration_ns) / 1_000_000;
    let result = converse(&mut child, &text, seconds, watch);
    // The end of the namespaces' first process ends every process in them.
    let _ = child.kill();
    let _ = child.wait();
    result
}

/// Starts a process in network, mount and PID namespaces, as an ordinary user or as root.
fn namespaces() -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::Run(error.to_string()))?;
    let mut command = network::unshare();
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    let child = command
        .arg(program)
        .arg("emulate-inside")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.map_err(|e| Failure::Run(format!("unshare cannot be run: {e}; {}", network::needs())))
}

/// Sends the specification to the process in the namespaces, and waits for its answer.
fn converse(
    child: &mut Child,
    spec: &str,
    milliseconds: u64,
    watch: &Watch,
) -> Result<Outcome, Failure> {
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut input), Some(mut output), Some(mut errors)) = pipes else {
        return Err(Failure::Run("a process has no pipes".to_owned()));
    };
    // A process that could not start reports the reason itself.
    let _ = writeln!(input, "{spec}").and_then(|()| input.flush());
    let (sender, outcome) = channel();
    let said = thread::spawn(move || {
        let mut text = String::new();
        let _ = errors.read_to_string(&mut text);
        text
    });
    thread::spawn(move || {
        let mut text = String::new();
        let _ = output.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let bar = ProgressBar::new(milliseconds);
    let text = loop {
        match outcome.recv_timeout(Duration::from_millis(100)) {
            Ok(text) => break text,
            Err(RecvTimeoutError::Disconnected) => break String::new(),
            Err(RecvTimeoutError::Timeout) if interrupt::interrupted(watch) => {
                bar.finish_and_clear();
                let what = "interrupted; the network of namespaces is gone";
                return Err(Failure::Interrupted(what.to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => bar.inc(100),
        }
    };
    bar.finish_and_clear();
    let _ = child.kill();
    let said = said.join().unwrap_or_default();
    match serde_json::from_str::<Result<Outcome, String>>(&text) {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(why)) => Err(Failure::Run(format!("{why}\n{}", said.trim()))),
        Err(_) if said.contains("unshare") => {
            let why = said.trim().replace("unshare: ", "");
            Err(Failure::Run(format!("no namespaces: {why}; {}", network::needs())))
        }
        Err(_) => {
            Err(Failure::Run(format!("the emulation ended without results: {}", said.trim())))
        }
    }
}
