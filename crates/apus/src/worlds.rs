//! `apus worlds`: seeded random worlds of faults, for the transport and for the simulator.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use apus_sim::Watch;
use apus_worlds::fabric::{self, Case, run_cases, shrink_case};
use apus_worlds::{Batch, Plan, STUCK, name_seeds_of_panics, quantile, run, run_seeds, shrink};
use clap::Args;

use crate::failure::Failure;
use crate::interrupt::{self, Silence};
use crate::output::print;

/// Search for violations of the guarantees of transport and simulator in random worlds of hosts and faults.
///
/// Each seed draws hosts, ops and faults. The engines, sessions and connections of the transport run in virtual time. The command
/// checks the guarantees of every completion, and that all ops end and connections work again once faults stop (docs/trust.md).
///
/// With `--simulator`, each seed draws a scenario instead: network, algorithm, path policy, traffic and faults. Packets must be
/// conserved, every op must end, and the events must not depend on the number of threads.
#[derive(Args)]
pub struct Worlds {
    /// Number of seeds, from `--from` upwards.
    #[arg(long, default_value_t = 1000, conflicts_with = "seed")]
    seeds: u64,
    /// Draw scenarios for the simulator instead of worlds for the transport.
    #[arg(long)]
    simulator: bool,
    /// First seed.
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Run the world of one seed and print its log, with `--simulator` its scenario. If a guarantee is violated, search for a
    /// smaller world with the same violation, and print that one instead. A scenario without progress is not made smaller.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of threads [default: one per core].
    #[arg(long, conflicts_with = "seed")]
    threads: Option<NonZeroUsize>,
}

impl Worlds {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        name_seeds_of_panics();
        match self.seed {
            Some(seed) if self.simulator => one_case(seed),
            Some(seed) => one(seed),
            None => self.many(),
        }
    }

    fn many(&self) -> Result<(), Failure> {
        let Some(end) = self.from.checked_add(self.seeds).filter(|_| self.seeds > 0) else {
            return Err(Failure::Input(format!(
                "--seeds is {}; it must be 1 to {} from seed {} upwards",
                self.seeds,
                u64::MAX - self.from,
                self.from
            )));
        };
        let threads = self.threads.or_else(|| available_parallelism().ok());
        let watch = interrupt::watch(Silence(None))?;
        let (seeds, threads) = (self.from..end, threads.unwrap_or(NonZeroUsize::MIN));
        let (worlds, text, failed) = if self.simulator {
            let batch = run_cases(seeds, threads, &watch);
            (batch.cases, text_of_cases(&batch), !batch.failures.is_empty())
        } else {
            let asked = watch.clone();
            let batch = run_seeds(seeds, threads, move |_| !interrupt::interrupted(&asked));
            (batch.worlds, text(&batch), !batch.failures.is_empty())
        };
        print(&text)?;
        if failed {
            return Err(Failure::Checks);
        }
        if interrupt::interrupted(&watch) {
            let what = format!("interrupted after {worlds} of {} seeds", self.seeds);
            return Err(Failure::Interrupted(what));
        }
        Ok(())
    }
}

/// Runs the world of one seed.
fn one(seed: u64) -> Result<(), Failure> {
    let plan = Plan::draw(seed);
    // A world whose time stands still has no log.
    let batch = run_seeds(seed..seed.saturating_add(1), NonZeroUsize::MIN, |_| true);
    if let Some((_, violation)) = batch.failures.iter().find(|(_, found)| found.check == STUCK) {
        print(&format!("seed {seed}: {}\n{}: {}\n", plan.summary(), STUCK, violation.what))?;
        return Err(Failure::Checks);
    }
    let outcome = run(&plan, true);
    let mut text = format!("seed {seed}: {}\n", plan.summary());
    if outcome.violation.is_none() {
        text += &(outcome.log.join("\n") + "\nno violation\n");
        return print(&text);
    }
    let (smaller, _) = shrink(&plan);
    let outcome = run(&smaller, true);
    let _ = writeln!(text, "smaller world: {}", smaller.summary());
    text += &(outcome.log.join("\n") + "\n");
    if let Some(violation) = outcome.violation {
        let _ = writeln!(text, "{}: {}", violation.check, violation.what);
    }
    print(&text)?;
    Err(Failure::Checks)
}

/// Runs the scenario of one seed, and prints it. A scenario without progress is not made smaller: each attempt may
/// take half an hour.
fn one_case(seed: u64) -> Result<(), Failure> {
    let Some(end) = seed.checked_add(1) else {
        return Err(Failure::Input(format!(
            "--seed is {seed}; with --simulator it must be smaller"
        )));
    };
    let case = Case::draw(seed);
    let batch = run_cases(seed..end, NonZeroUsize::MIN, &Watch::default());
    let Some((_, violation)) = batch.failures.first() else {
        let counts = of_counts(&batch.counts);
        return print(&format!("{}# no violation: {counts}\n", case.text()));
    };
    let (smaller, violation) = match violation.check {
        "progress" => (case, violation.clone()),
        _ => shrink_case(&case, violation),
    };
    let what = violation.what.replace('\n', "\n# ");
    print(&format!("{}# {}: {what}\n", smaller.text(), violation.check))?;
    Err(Failure::Checks)
}

fn of_counts(counts: &fabric::Counts) -> String {
    format!(
        "{} ops and {} jobs ended; {} packets, {} dropped, {} trimmed",
        counts.ops, counts.jobs, counts.packets, counts.dropped, counts.trimmed
    )
}

/// What [`spread`] shows.
const QUANTILES: &str = "5 %, 50 % and 95 % quantiles";

/// Returns three quantiles of a list of numbers; `counts` has, by number, how often it occurs.
fn spread(counts: &[u64]) -> String {
    [5, 50, 95].map(|percent| quantile(counts, percent).to_string()).join("/")
}

/// Returns the result of a batch of scenarios as text.
fn text_of_cases(batch: &fabric::Batch) -> String {
    let by = |names: &BTreeMap<&str, u64>| {
        names.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let credits = batch.algorithms.get("expresspass").copied().unwrap_or(0);
    let mut text = format!(
        "{} scenarios; {QUANTILES}: {} hosts, {} ops, {} faults, or {} counted per direction of a link\nalgorithms: {}\npath policies: {}\n{}\n\
         at most {} events per run; bounds of queues checked in {} of {credits} scenarios with expresspass\n",
        batch.cases,
        spread(&batch.hosts),
        spread(&batch.ops),
        spread(&batch.faults),
        spread(&batch.link_faults),
        by(&batch.algorithms),
        by(&batch.balancers),
        of_counts(&batch.counts),
        batch.most_events,
        batch.counts.bounded,
    );
    for (seed, violation) in &batch.failures {
        let _ = writeln!(text, "seed {seed}: {}: {}", violation.check, violation.what);
    }
    text += match batch.failures.is_empty() {
        true => "no violation\n",
        false => "`apus worlds --simulator --seed SEED` prints a smaller scenario\n",
    };
    text
}

/// Returns the result of a batch of seeds as text.
fn text(batch: &Batch) -> String {
    let counts = &batch.counts;
    let mut text = format!(
        "{} worlds; {QUANTILES}: {} hosts, {} ops, {} faults\n\
         {} ops: {} done, {} not sent, {} refused, {} unknown; the others ended with their processes\n\
         {} messages, {} datagrams, {} steps of engines\n",
        batch.worlds,
        spread(&batch.hosts),
        spread(&batch.ops),
        spread(&batch.faults),
        counts.ops,
        counts.done,
        counts.not_sent,
        counts.refused,
        counts.unknown,
        counts.messages,
        counts.datagrams,
        counts.steps,
    );
    for (seed, violation) in &batch.failures {
        let _ = writeln!(text, "seed {seed}: {}: {}", violation.check, violation.what);
    }
    text += match batch.failures.is_empty() {
        true => "no violation\n",
        false => "`apus worlds --seed SEED` prints the log of a smaller world\n",
    };
    text
}
