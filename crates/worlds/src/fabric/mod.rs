//! Worlds of the simulator. A seed draws a scenario with its network, algorithm, path policy, traffic and
//! faults. Every run must satisfy the following checks, whatever was drawn.
//!
//! | check | what must hold |
//! |---|---|
//! | `scenario` | the drawn scenario is valid, and so is its written form, with equal settings |
//! | `run` | packets are conserved; with ExpressPass, no data queue exceeds its bound by network calculus, where there is a bound |
//! | `progress` | a run takes a bounded number of events and a bounded real time |
//! | `panic` | no run panics |
//! | `threads` | events and results are equal for any number of threads, and with time windows |
//! | `end` | once faults have ended and no ops are submitted, every op and every job ends |
//! | `ideal` | no job ends before its ideal time, unless links fail and flows change their paths meanwhile |

mod batch;
mod case;
mod network;
mod parts;
mod shrink;

pub use batch::{Batch, run_cases, run_drawn, run_text};
pub use case::Case;
pub use parts::pairs;
pub use shrink::shrink_case;

use apus_scenario::{Options, Scenario, Setup, Simulation, Source};
use apus_sim::summary::Summary;
use apus_sim::{Progress, Watch};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::running::guarded;

/// Maximum number of events of a run. deviation: no source; twice the longest known run, of seed 802855, which has 120 million:
/// 27,262 flows of one packet each offer 2.5 times the capacity of a link, and RCCC repeats packets without back-off.
const MAX_EVENTS: u64 = 250_000_000;

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the check.
    pub check: &'static str,
    /// Description of the observation.
    pub what: String,
}

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ops that ended before the workloads stopped.
    pub ops: u64,
    /// Faults of single directions of links: each direction that a fault matches counts, each time that the fault
    /// occurs.
    pub link_faults: u64,
    /// Packets that hosts sent.
    pub packets: u64,
    /// Packets that the fabric dropped.
    pub dropped: u64,
    /// Packets whose payload a port trimmed.
    pub trimmed: u64,
    /// Jobs that ended.
    pub jobs: u64,
    /// Runs with ExpressPass in which data queues had bounds by network calculus.
    pub bounded: u64,
    /// Events of the simulator.
    pub events: u64,
}

/// Runs a case with one thread, and again with several threads or in time windows.
///
/// # Errors
/// The first property that does not hold.
pub fn run_case(case: &Case) -> Result<Counts, Violation> {
    run_watched(case, &Watch::default())
}

/// Runs a case as [`run_case`] does. If the watch stops its runs, the result is not meaningful.
///
/// # Errors
/// The first property that does not hold.
pub fn run_watched(case: &Case, watch: &Watch) -> Result<Counts, Violation> {
    run_guarded(case.seed, &case.text(), watch)
}

fn run_guarded(seed: u64, text: &str, watch: &Watch) -> Result<Counts, Violation> {
    let name = format!("the scenario of seed {seed}");
    let panicked = |what| Violation { check: "panic", what };
    guarded(name, || check(seed, text, watch, MAX_EVENTS)).map_err(panicked)?
}

/// Checks the scenario of a seed, with at most about `most` events per run.
fn check(seed: u64, text: &str, watch: &Watch, most: u64) -> Result<Counts, Violation> {
    let violation = |check| move |what: String| Violation { check, what };
    let setup = read(text).map_err(violation("scenario"))?;
    let plan = setup.plan().map_err(|e| violation("scenario")(e.to_string()))?;
    let run = |threads: u32, windows: bool| -> Result<Summary, String> {
        let mut simulation = Simulation::with_threads(&plan, threads).map_err(|e| e.to_string())?;
        if windows {
            simulation = simulation.in_windows();
        }
        // The run asks its own flag, which also passes on that of the caller.
        let own = Watch { stop: Arc::default(), ..watch.clone() };
        let stop: Arc<AtomicBool> = Arc::clone(&own.stop);
        let mut note = |progress: Progress| {
            let ends = progress.events > most || watch.stop.load(Ordering::Relaxed);
            stop.fetch_or(ends, Ordering::Relaxed);
        };
        simulation.watched_by(&own).run("world", &mut note).map_err(|e| e.to_string())
    };
    let alone = run(1, false).map_err(violation("run"))?;
    if alone.work.events > most && alone.interrupted {
        let what = format!("the run has no end after {} events", alone.work.events);
        return Err(violation("progress")(what));
    }
    // The seed selects one of four kinds of second run, because one run per kind would double the time of each world.
    let (threads, windows) = [(1, true), (2, false), (3, true), (4, false)][seed as usize % 4];
    let other = run(threads, windows).map_err(violation("run"))?;
    if other.work.event_hash != alone.work.event_hash {
        let windows = if windows { ", with time windows," } else { "" };
        let what =
            format!("with {threads} threads{windows} the events differ from those of one thread");
        return Err(violation("threads")(what));
    }
    if let Some(what) = first_difference(&alone, &other) {
        return Err(violation("threads")(format!("with {threads} threads, {what}")));
    }
    check_end(&alone).map_err(violation("end"))?;
    // A flow whose path changes may use two links at the same time for a while.
    if !text.contains("kind = \"down\"") {
        check_ideal(&alone).map_err(violation("ideal"))?;
    }
    Ok(Counts {
        ops: alone.startup.ops + alone.measured.ops,
        link_faults: plan.faults.len() as u64,
        packets: alone.packets.sent,
        dropped: alone.packets.dropped,
        trimmed: alone.packets.trimmed,
        jobs: alone.jobs.len() as u64,
        bounded: u64::from(alone.credits.bound_used.is_some()),
        events: alone.work.events,
    })
}

/// Reads a scenario and its written form, which must have the same settings.
fn read(text: &str) -> Result<Setup, String> {
    let of = |text: &str| -> Result<Setup, String> {
        let source = Source { name: "world.toml".to_owned(), text: text.to_owned() };
        let missing = |name: &str| Err(format!("`{name}` cannot be read"));
        let scenario = Scenario::read(&source, &missing, &Options::default());
        let mut runs = scenario.map_err(|e| e.to_string())?.runs.into_iter();
        runs.next().map(|run| run.setup).ok_or_else(|| "no run".to_owned())
    };
    let setup = of(text)?;
    let written = setup.to_toml();
    let again = of(&written).map_err(|e| format!("the written form is invalid: {e}\n{written}"))?;
    if again.to_toml() != written {
        return Err(format!(
            "the written form has other settings:\n{written}\n{}",
            again.to_toml()
        ));
    }
    Ok(setup)
}

/// Describes the first result in which two runs differ, with both values.
fn first_difference(alone: &Summary, other: &Summary) -> Option<String> {
    let [alone, other] = [alone, other].map(|run| serde_json::to_value(run).unwrap_or_default());
    let (name, alone, other) = difference(&alone, &other)?;
    Some(format!("`{name}` is {other}, and with one thread {alone}"))
}

/// Returns the path of the first value in which these differ, with both values.
fn difference<'a>(a: &'a Value, b: &'a Value) -> Option<(String, &'a Value, &'a Value)> {
    let within = |name: &str, a, b| {
        let (path, a, b) = difference(a, b)?;
        let path = if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") };
        Some((path, a, b))
    };
    match (a, b) {
        _ if a == b => None,
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().zip(b.values()).find_map(|((name, a), b)| within(name, a, b))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => (0..)
            .zip(a.iter().zip(b))
            .find_map(|(n, (a, b)): (u32, _)| within(&n.to_string(), a, b)),
        _ => Some((String::new(), a, b)),
    }
}

fn check_end(run: &Summary) -> Result<(), String> {
    if let Some(reason) = &run.stop_reason {
        return Err(format!("the run stopped early: {reason}"));
    }
    // A run of only jobs ends with the jobs. If sends are done before their acknowledgements, the last
    // messages may then have none.
    let jobs_alone = run.jobs.len() == run.groups.len();
    let open = run.startup.unfinished_ops + run.measured.unfinished_ops;
    if open > 0 && !jobs_alone {
        let oldest = run.measured.oldest_unfinished_us;
        return Err(format!("{open} ops have no end, the oldest is {oldest} us old"));
    }
    match run.jobs.iter().find(|job| job.completion_us.is_none()) {
        Some(job) => Err(format!("job {} has no end", job.name)),
        None => Ok(()),
    }
}

fn check_ideal(run: &Summary) -> Result<(), String> {
    for job in &run.jobs {
        if let (Some(took), Some(ideal)) = (job.completion_us, job.ideal_us)
            && took < ideal * (1.0 - 1e-9)
        {
            return Err(format!("job {} took {took} us, less than the ideal {ideal} us", job.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use apus_sim::Watch;
    use serde_json::json;

    use super::{Case, MAX_EVENTS, check, difference};

    #[test]
    fn a_run_with_too_many_events_is_a_violation_of_progress() {
        let (text, watch) = (Case::draw(0).text(), Watch::default());
        let counts = check(0, &text, &watch, MAX_EVENTS).expect("no violation");
        let cut = check(0, &text, &watch, counts.events / 2).expect_err("too many events");
        assert_eq!(cut.check, "progress", "{cut:?}");
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let of = |rate: f64| json!({ "name": "x", "ports": [{ "rate": 1.0 }, { "rate": rate }] });
        assert!(difference(&of(2.0), &of(2.0)).is_none());
        let (a, b) = (of(2.0), of(3.0));
        let found = difference(&a, &b).map(|(path, a, b)| (path, a.clone(), b.clone()));
        assert_eq!(found, Some(("ports.1.rate".to_owned(), json!(2.0), json!(3.0))));
        let (a, b) = (json!([1]), json!([1, 2]));
        assert_eq!(difference(&a, &b).map(|(path, ..)| path), Some(String::new()));
    }
}
