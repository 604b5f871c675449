//! Second run with the same seed, which records the surroundings of the slowest ops of the first run.

use std::collections::{BTreeMap, BTreeSet};

use apus_scenario::Setup;
use apus_sim::record::{Around, Recording};
use apus_sim::summary::Summary;
use apus_units::{Span, Time};
use serde_json::{Map, Value, json};

use super::causes::{Seen, op};
use super::ops::{Op, measured};
use super::timeline;

/// Maximum number of ops of a run that are followed.
const MAX_OPS: usize = 60;
/// Maximum number of ops of a page that are followed, shared by its runs.
const MAX_PAGE_OPS: usize = 200;
/// Maximum number of flows of these ops whose values over time are on the page.
const MAX_LINES: usize = 8;
/// Duration above which the ports of an op's path are recorded only at the beginning and the end of the op.
pub(super) const LONG: Span = Span::from_us(2000);
/// Recorded part at the beginning of a long op; the rest of [`LONG`] is at its end.
const BEGIN: Span = Span::from_us(500);
/// Divisor of an op's duration that gives the recorded margin before and after the op.
pub(super) const MARGIN: u64 = 20;

/// An op that the second run follows.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) op: Op,
    pub(super) submitted: Time,
    pub(super) ended: Time,
}

/// Returns the slowest `worst` ops of each workload for one of `runs` runs of a page.
pub(super) fn choose(recording: &Recording, worst: usize, runs: usize) -> Vec<Target> {
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    let all = measured(recording);
    let groups = all.iter().map(|op| op.group).collect::<BTreeSet<_>>().len().max(1);
    let most = MAX_OPS.min((MAX_PAGE_OPS / runs.max(1)).max(1));
    let worst = worst.min((most / groups).max(1));
    for op in all {
        let count = taken.entry(op.group).or_default();
        if *count >= worst || chosen.len() >= most {
            continue;
        }
        *count += 1;
        chosen.push(Target {
            op,
            submitted: op.submitted,
            ended: op.submitted + Span::from_ps_f64(op.us * 1e6),
        });
    }
    chosen
}

/// Returns the part of a long op in which the ports of its path are not recorded.
pub(super) fn gap(target: &Target) -> Option<(Time, Time)> {
    let (from, until) = span(target);
    (until.since(from) > LONG).then(|| (from + BEGIN, until.saturating_sub(LONG - BEGIN)))
}

/// Returns the duration of an op with its margins.
fn span(target: &Target) -> (Time, Time) {
    let Target { submitted, ended, .. } = target;
    let margin = ended.since(*submitted).min(LONG) / MARGIN;
    (submitted.saturating_sub(margin), *ended + margin)
}

/// Returns the time spans around ops that a second run records.
fn around(targets: &[Target]) -> Vec<Around> {
    let mut all = Vec::new();
    for target in targets {
        let (from, until) = span(target);
        let connection = target.op.flow;
        let mut add = |from, until, ports| all.push(Around { connection, from, until, ports });
        match gap(target) {
            None => add(from, until, true),
            Some((begin, end)) => {
                add(from, begin, true);
                add(end, until, true);
                // The events of one flow are few compared with the packets of all flows at its ports.
                add(begin, end, false);
            }
        }
    }
    all
}

/// The second run and the ops that it follows.
pub struct SecondRun {
    /// Setup that records the surroundings of the ops.
    pub setup: Setup,
    /// Number of runs of the page.
    runs: usize,
    targets: Vec<Target>,
    name: String,
    hash: String,
}

impl SecondRun {
    /// Returns the second run for the slowest `worst` ops of each workload of one of `runs` runs of a page; `None` if
    /// there are no ops.
    pub fn of(setup: &Setup, summary: &Summary, worst: usize, runs: usize) -> Option<Self> {
        let targets = choose(summary.recording.as_deref()?, worst, runs);
        if targets.is_empty() || summary.interrupted {
            return None;
        }
        Some(Self {
            setup: setup.clone().around(around(&targets)),
            runs,
            targets,
            name: summary.name.clone(),
            hash: summary.work.event_hash.clone(),
        })
    }

    /// Returns the flows of the ops, with the flow of the slowest op first.
    fn worst_flows(&self) -> impl Iterator<Item = u32> {
        let mut seen = BTreeSet::new();
        let flows = self.targets.iter().map(|target| target.op.flow);
        flows.filter(move |flow| seen.insert(*flow)).take(MAX_LINES)
    }

    /// Returns the name of the run and the data for its report.
    pub fn results(&self, again: &Result<Summary, String>) -> (String, Value) {
        let failed = |why: &str| (self.name.clone(), json!({ "failed": why, "ops": [] }));
        let again = match again {
            Ok(again) => again,
            Err(why) => return failed(why),
        };
        if again.interrupted {
            return failed("the second run was interrupted");
        }
        if again.work.event_hash != self.hash {
            return failed(
                "the second run with the same seed had other events than the first; this is a bug in apus",
            );
        }
        let Some(recording) = again.recording.as_deref() else {
            return failed("the second run was not recorded");
        };
        let seen = Seen::new(recording);
        let mut flows = BTreeSet::new();
        let ops: Vec<Value> =
            self.targets.iter().map(|target| op(target, &seen, &mut flows)).collect();
        let name = |flow: u32| {
            let record = &recording.flows[flow as usize];
            (
                flow.to_string(),
                json!([record.from.get(), record.to.get(), record.algorithm, record.group]),
            )
        };
        let traced = &recording.traced;
        let kept = traced.passed.packets.len() as u64;
        let mut left_out = Vec::new();
        if kept < traced.passed.seen {
            left_out.push(format!(
                "the first {kept} of {} packets at the ports were kept",
                traced.passed.seen
            ));
        }
        if (traced.events.len() as u64) < traced.events_seen {
            left_out.push(format!(
                "the first {} of {} events of flows were kept",
                traced.events.len(),
                traced.events_seen
            ));
        }
        let value = json!({
            "run_events": again.work.events,
            "packets": kept,
            "events": traced.events.len(),
            "left_out": left_out,
            "flows": flows.into_iter().map(name).collect::<Map<_, _>>(),
            // Several runs are compared by their medians instead.
            "lines": (self.runs == 1).then(|| timeline::lines(recording, self.worst_flows())),
            "ops": ops,
        });
        (self.name.clone(), value)
    }
}
