//! Jobs of a run in `report.html`.

use std::collections::BTreeMap;

use apus_sim::record::Recording;
use apus_sim::summary::Summary;
use apus_units::Time;
use serde_json::{Value, json};

/// Maximum number of ranks whose operations are drawn.
const MAX_RANKS: usize = 64;
/// Maximum number of operations of a job that are drawn.
const MAX_SPANS: usize = 20_000;

/// Returns the jobs of a run, with the operations of some ranks over time.
pub(super) fn json(summary: &Summary) -> Value {
    let all = summary.jobs.iter().enumerate().map(|(index, job)| {
        let mut value = serde_json::to_value(job).unwrap_or_default();
        if let Some(recording) = &summary.recording {
            value["timeline"] = timeline(recording, index as u32);
        }
        value
    });
    all.collect::<Vec<_>>().into()
}

/// Returns computations (0) and sends (1) with start and end in microseconds, by rank.
fn timeline(recording: &Recording, job: u32) -> Value {
    let Some(plan) = recording.jobs.get(job as usize) else { return Value::Null };
    let mut ranks: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    let (mut end, mut count, mut left_out) = (0.0f64, 0, false);
    let us = |time: Time| (time.as_ps() as f64 * 1e-6 * 1e3).round() / 1e3;
    for op in recording.job_ops.iter().filter(|op| op.job == job && op.end < Time::MAX) {
        let kind = match plan.graph.program(op.rank).op(op.op).action {
            apus_jobs::Action::Compute { time } if !time.is_zero() => 0,
            apus_jobs::Action::Send { .. } => 1,
            apus_jobs::Action::Compute { .. } | apus_jobs::Action::Receive { .. } => continue,
        };
        end = end.max(us(op.end));
        let is_new = !ranks.contains_key(&op.rank);
        if count >= MAX_SPANS || is_new && ranks.len() >= MAX_RANKS {
            left_out = true;
            continue;
        }
        count += 1;
        ranks.entry(op.rank).or_default().push(json!([kind, us(op.start), us(op.end)]));
    }
    let note = left_out.then_some("Some ranks and operations are left out; job_ops.csv has them.");
    let ranks = ranks.into_iter().map(|(rank, spans)| json!({ "rank": rank, "spans": spans }));
    json!({ "ranks": ranks.collect::<Vec<_>>(), "end_us": end.max(1e-6), "note": note })
}
