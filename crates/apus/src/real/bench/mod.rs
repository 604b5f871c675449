//! `apus bench udp`: compares the transport over UDP with kernel sockets in a typical deployment: two processes on the
//! same path, measured alternately in the turns of one run.

mod calls;
mod contest;
pub mod end;
mod listen;
mod plan;
mod report;
mod sockets;
mod spec;
mod usage;
mod writes;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use apus_sim::Watch;
use apus_udp::keyfile;
use apus_udp::session::{Cipher, Config as SessionConfig, SharedKey};
use clap::Args;
use indicatif::ProgressBar;

use super::{Basics, address, duration};
use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::{print, to_json};
use contest::Measured;
use plan::{Choice, GAPS, Part, Setting};
use report::{Facts, Report, Section};
use spec::Spec;
use usage::Machine;

/// Compare the transport over UDP with blocking UDP and TCP sockets: round trips, writes, CPU time.
///
/// Each contestant has its own server process and client processes, and takes part in every turn. The first settings measure
/// the default mode, the last ones modes that never sleep. Use an idle machine.
#[derive(Args)]
pub struct BenchUdp {
    /// Run servers at ADDRESS for processes with `--peer`. Any process that connects can start them, without proving a key.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = [
        "peer", "full", "turns", "duration", "only", "gap", "json", "cipher", "mtu",
    ])]
    listen: Option<SocketAddr>,
    /// HOST:PORT of a process with `--listen` [default: servers on this machine].
    #[arg(long)]
    peer: Option<String>,
    #[command(flatten)]
    basics: Basics,
    /// Measure all settings: with and without encryption, 64 clients, writes with spinning engines.
    #[arg(long)]
    full: bool,
    /// Number of turns.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    turns: u32,
    /// Duration of a measurement; those with long gaps or idle connections take longer [default: 150ms, 1s with --full].
    #[arg(long, value_parser = duration)]
    duration: Option<Duration>,
    /// Measure only this part. May be given several times.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Gap between the round trips of one client, with --full also of several clients. May be given several times [default: 0s,
    /// 100us and 10ms].
    #[arg(long, value_parser = gap)]
    gap: Vec<Duration>,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads a duration with its unit; it may be 0.
fn gap(text: &str) -> Result<Duration, String> {
    let span: apus_units::Span = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Duration::from_nanos(span.as_ps() / 1_000))
}

/// Duration of a measurement. With five turns, all quick measurements take about a minute.
const QUICK: Duration = Duration::from_millis(150);
const FULL: Duration = Duration::from_secs(1);

impl BenchUdp {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let key = self.key()?;
        if let Some(bind) = self.listen {
            return listen::serve(bind, &key);
        }
        let choice = self.choice()?;
        let remote = self.peer.as_deref().map(address).transpose()?;
        let cipher = self.basics.cipher.unwrap_or(SessionConfig::default().cipher);
        let server =
            remote.map_or_else(|| "this machine, loopback".to_owned(), |peer| peer.to_string());
        let sealed = choice.sealed.contains(&true);
        let mut facts = Facts::new(
            server,
            sealed.then(|| cipher.to_string()),
            self.basics.mtu,
            self.turns,
            choice.duration,
        );
        let settings = choice.settings();
        let (before, from) = (Machine::now(), Instant::now());
        let watch = interrupt::watch(Silence(None))?;
        let (turns, early) = self.measure(&settings, cipher, &key, remote, &watch);
        if turns.iter().flatten().all(Vec::is_empty) {
            return early.map_or(Ok(()), Err);
        }
        facts.partial = early.as_ref().map(Failure::to_string);
        if let Some((after, before)) = Machine::now().zip(before) {
            let (others, steal) = after.others(before, from.elapsed().as_secs_f64());
            (facts.others_percent, facts.steal_percent) = (Some(others), Some(steal));
        }
        let measured = |turns: &Vec<Vec<Measured>>| !turns.iter().all(Vec::is_empty);
        let sections = settings.iter().zip(&turns).filter(|(_, turns)| measured(turns));
        let sections = sections.map(|(setting, turns)| Section::new(setting, turns)).collect();
        let report = Report { facts, sections };
        print(&if self.json { to_json(&report)? + "\n" } else { report.text() })?;
        early.map_or(Ok(()), Err)
    }

    fn choice(&self) -> Result<Choice, Failure> {
        let with_gaps =
            |part: &Part| *part == Part::RoundTrips || self.full && *part == Part::Clients;
        if !self.gap.is_empty() && !self.only.is_empty() && !self.only.iter().any(with_gaps) {
            let what =
                "--gap has no effect without --only round-trips, or clients with --full; remove it";
            return Err(Failure::Input(what.to_owned()));
        }
        let mut gaps = if self.gap.is_empty() { GAPS.to_vec() } else { self.gap.clone() };
        gaps.sort_unstable();
        gaps.dedup();
        let sealed = match (self.basics.insecure, self.full && self.basics.cipher.is_none()) {
            (true, _) => vec![false],
            (false, true) => vec![true, false],
            (false, false) => vec![true],
        };
        let duration = self.duration.unwrap_or(if self.full { FULL } else { QUICK });
        Ok(Choice { full: self.full, only: self.only.clone(), gaps, sealed, duration })
    }

    /// Returns the measurements of each contestant of each setting, and the reason of an early end, if any.
    fn measure(
        &self,
        settings: &[Setting],
        cipher: Cipher,
        key: &str,
        remote: Option<SocketAddr>,
        watch: &Watch,
    ) -> (Vec<Vec<Vec<Measured>>>, Option<Failure>) {
        let mut all: Vec<Vec<Vec<Measured>>> =
            settings.iter().map(|setting| vec![Vec::new(); setting.entries.len()]).collect();
        let entries: usize = settings.iter().map(|setting| setting.entries.len()).sum();
        let bar = ProgressBar::new(u64::from(self.turns) * entries as u64);
        for turn in 0..self.turns as usize {
            for (setting, results) in settings.iter().zip(&mut all) {
                if setting.once() && turn > 0 {
                    continue;
                }
                let count = setting.entries.len();
                // A different contestant begins each turn.
                for place in (0..count).map(|place| (place + turn) % count) {
                    let entry = &setting.entries[place];
                    let spec = Spec {
                        bind: Ipv4Addr::LOCALHOST.into(),
                        contestant: entry.contestant,
                        load: entry.load,
                        duration: entry.duration,
                        key: key.to_owned(),
                        cipher: cipher.to_string(),
                        mtu: self.basics.mtu,
                    };
                    bar.set_message(setting.name.clone());
                    let early = match contest::run(&spec, remote) {
                        _ if interrupt::interrupted(watch) => {
                            Some(Failure::Interrupted("interrupted".to_owned()))
                        }
                        Ok(measured) => {
                            results[place].push(measured);
                            None
                        }
                        Err(error) => {
                            let (setting, entry) = (&setting.name, entry.name());
                            Some(Failure::Run(format!("{setting}: {entry}: {error}")))
                        }
                    };
                    if early.is_some() {
                        bar.finish_and_clear();
                        return (all, early);
                    }
                    bar.inc(1);
                }
            }
        }
        bar.finish_and_clear();
        (all, None)
    }

    /// Returns the text of the key file given by `--key-file`, or of a new key if both ends run here.
    fn key(&self) -> Result<String, Failure> {
        let between_machines = self.listen.is_some() || self.peer.is_some();
        match &self.basics.key_file {
            Some(_) if !between_machines => {
                let what = "--key-file has no effect without --listen or --peer; remove it";
                Err(Failure::Input(what.to_owned()))
            }
            Some(path) => {
                keyfile::read(path).map_err(|error| Failure::Input(error.to_string()))?;
                let text = std::fs::read_to_string(path);
                text.map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
            }
            None if between_machines && !self.basics.insecure => {
                let what = "give --key-file, the same file at both ends, or --insecure";
                Err(Failure::Input(what.to_owned()))
            }
            None => {
                let key = SharedKey::generate()
                    .map_err(|error| Failure::Run(format!("a random key: {error}")))?;
                Ok(key.to_line().to_string())
            }
        }
    }
}
