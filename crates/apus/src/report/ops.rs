//! Slowdown of ops: distribution, dependence on size, and the ops in the tail.

use std::collections::{BTreeMap, BTreeSet};

use apus_sim::record::Recording;
use apus_sim::summary::Summary;
use apus_units::Time;
use serde_json::{Value, json};

use super::short;
use crate::text::workloads::Recorded;

/// Maximum number of individual ops on a page, over all runs.
const MAX_OPS: usize = 4_000;
/// Number of slowest ops of each workload that the page always contains.
const WORST: usize = 200;
/// Maximum number of workloads with their own distribution.
const MAX_GROUPS: usize = 12;

/// An op of the measured phase.
#[derive(Clone, Copy)]
pub(super) struct Op {
    pub(super) flow: u32,
    /// Number of the op; `None` if it is unfinished.
    pub(super) number: Option<u64>,
    pub(super) size: u64,
    pub(super) submitted: Time,
    pub(super) submit_us: f64,
    /// Latency; for an unfinished op, its age.
    pub(super) us: f64,
    /// Slowdown; infinite if the op is unfinished.
    pub(super) slowdown: f64,
    pub(super) group: u32,
}

/// Returns the ops of the measured phase: first the unfinished ones, the oldest first, then the ended ones, the slowest
/// first.
pub(super) fn measured(recording: &Recording) -> Vec<Op> {
    let us = |time: Time| time.as_ps() as f64 * 1e-6;
    let group = |flow: u32| recording.flows[flow as usize].group;
    let ended = recording.ops.iter().filter(|op| op.submitted >= recording.warmup).map(|op| Op {
        flow: op.flow,
        number: Some(op.op),
        size: op.size,
        submitted: op.submitted,
        submit_us: us(op.submitted),
        us: op.latency().as_us_f64(),
        slowdown: recording.slowdown(op),
        group: group(op.flow),
    });
    let open = recording.open_ops.iter().filter(|op| op.submitted >= recording.warmup);
    let open = open.map(|op| Op {
        flow: op.flow,
        number: None,
        size: op.size,
        submitted: op.submitted,
        submit_us: us(op.submitted),
        us: op.age.as_us_f64(),
        slowdown: f64::INFINITY,
        group: group(op.flow),
    });
    let mut all: Vec<Op> = ended.chain(open).collect();
    all.sort_by(|a, b| {
        b.slowdown.total_cmp(&a.slowdown).then(b.us.total_cmp(&a.us)).then(a.flow.cmp(&b.flow))
    });
    all
}

/// Returns the ops of the measured phase by workload: their number, smallest payload and largest payload.
pub(super) fn of_workloads(summary: &Summary, recording: &Recording) -> Vec<Recorded> {
    let mut all = vec![Recorded::default(); summary.groups.len()];
    let ended = recording.ops.iter().map(|op| (op.flow, op.submitted, op.size));
    let open = recording.open_ops.iter().map(|op| (op.flow, op.submitted, op.size));
    for (flow, submitted, size) in ended.chain(open) {
        let group = recording.flows[flow as usize].group as usize;
        if let Some(one) = all.get_mut(group).filter(|_| submitted >= recording.warmup) {
            one.ops += 1;
            let (least, most) = one.sizes.unwrap_or((size, size));
            one.sizes = Some((least.min(size), most.max(size)));
        }
    }
    all
}

/// Returns the distributions and the table of ops for one of `runs` runs of a page.
pub(super) fn json(summary: &Summary, recording: &Recording, runs: usize) -> Value {
    let all = measured(recording);
    let name = |group: u32| {
        summary
            .groups
            .get(group as usize)
            .map_or_else(|| "others".to_owned(), |group| group.workload.clone())
    };
    let mut groups: BTreeMap<u32, Vec<&Op>> = BTreeMap::new();
    for op in &all {
        groups.entry(op.group).or_default().push(op);
    }
    // Ops that ended late may be the slow ones.
    let ended = recording.ops.len() as u64;
    let whose = match recording.ops_seen > ended {
        true => format!("the first {ended} of {} ops to end", recording.ops_seen),
        false => "all ops".to_owned(),
    };
    let every = all.iter().collect::<Vec<_>>();
    let mut curves = vec![json!({ "name": whose, "points": curve(&every), "ops": all.len() })];
    let mut bins = vec![json!({ "name": whose, "bins": by_size(&every) })];
    if groups.len() > 1 {
        for (&group, ops) in groups.iter().take(MAX_GROUPS) {
            curves.push(json!({ "name": name(group), "points": curve(ops), "ops": ops.len() }));
            bins.push(json!({ "name": name(group), "bins": by_size(ops) }));
        }
    }
    let shown = choose(&all, &groups, MAX_OPS / runs.max(1));
    let rows: Vec<&Op> = shown.iter().map(|&place| &all[place]).collect();
    let flows: BTreeSet<u32> = rows.iter().map(|op| op.flow).collect();
    let flows = flows.into_iter().chain(recording.sampled_flows.iter().copied()).map(|flow| {
        let record = &recording.flows[flow as usize];
        (flow.to_string(), json!([record.from.get(), record.to.get(), record.algorithm]))
    });
    let flows: serde_json::Map<String, Value> = flows.collect();
    json!({
        "count": all.len(),
        "of": recording.ops.len() + recording.open_ops.len(),
        "kept": rows.len(),
        "worst": WORST,
        "groups": groups.keys().map(|group| (group.to_string(), json!(name(*group)))).collect::<serde_json::Map<_, _>>(),
        "groups_left_out": groups.len().saturating_sub(MAX_GROUPS),
        "curves": curves,
        "sizes": bins,
        "flows": flows,
        "rank": shown,
        "flow": rows.iter().map(|op| op.flow).collect::<Vec<_>>(),
        "op": rows.iter().map(|op| op.number).collect::<Vec<_>>(),
        "size": rows.iter().map(|op| op.size).collect::<Vec<_>>(),
        "submit_us": rows.iter().map(|op| (op.submit_us * 1e3).round() / 1e3).collect::<Vec<_>>(),
        "latency_us": rows.iter().map(|op| short(op.us)).collect::<Vec<_>>(),
        "slowdown": rows.iter().map(|op| short(op.slowdown)).collect::<Vec<_>>(),
        "group": rows.iter().map(|op| op.group).collect::<Vec<_>>(),
    })
}

/// Returns the ranks of the ops that the page contains: the slowest of each workload, then others spread evenly.
fn choose(all: &[Op], groups: &BTreeMap<u32, Vec<&Op>>, most: usize) -> Vec<usize> {
    if all.len() <= most {
        return (0..all.len()).collect();
    }
    let worst = WORST.min(most / groups.len().max(1)).max(20);
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let mut chosen: BTreeSet<usize> = BTreeSet::new();
    for (rank, op) in all.iter().enumerate() {
        let count = taken.entry(op.group).or_default();
        if *count < worst {
            *count += 1;
            chosen.insert(rank);
        }
    }
    let room = most.saturating_sub(chosen.len());
    chosen.extend((0..room).map(|place| place * all.len() / room.max(1)));
    chosen.into_iter().collect()
}

/// Returns points of a distribution, denser towards the tail: slowdown and the fraction of ops at or below. Unfinished
/// ops come last, without a slowdown.
fn curve(slowest_first: &[&Op]) -> Value {
    let count = slowest_first.len();
    let mut ranks = BTreeSet::new();
    // Ranks from the slow end: 80 per factor of ten, then 100 over the remaining ranks.
    let mut from_end = 1.0;
    while (from_end as usize) < count {
        ranks.insert(count - from_end as usize);
        from_end = (from_end * 1.03f64).max(from_end + 1.0);
    }
    ranks.extend((0..=100).map(|place| (place * count / 100).max(1).min(count)));
    let points = ranks.into_iter().filter(|&rank| rank > 0).map(|rank| {
        let op = slowest_first[count - rank];
        (short(op.slowdown), rank as f64 / count as f64)
    });
    let (values, fractions): (Vec<Value>, Vec<f64>) = points.unzip();
    json!([values, fractions.iter().map(|f| (f * 1e7).round() / 1e7).collect::<Vec<_>>()])
}

/// Returns the slowdown by op size: by exact size if there are few sizes, otherwise by powers of two.
fn by_size(slowest_first: &[&Op]) -> Value {
    let sizes: BTreeSet<u64> = slowest_first.iter().map(|op| op.size).collect();
    let few = sizes.len() <= 16;
    let bin = |size: u64| if few { size } else { size.max(1).next_power_of_two() };
    let mut bins: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for op in slowest_first {
        bins.entry(bin(op.size)).or_default().push(op.slowdown);
    }
    let row = |(size, values): (u64, Vec<f64>)| -> Value {
        // The slowest ops are first.
        let rank = |percent: f64| {
            let rank = (values.len() as f64 * percent / 100.0).ceil().max(1.0) as usize;
            short(values[values.len() - rank.min(values.len())])
        };
        let unfinished = values.iter().filter(|value| value.is_infinite()).count();
        json!({
            "size": size, "ops": values.len(), "unfinished": unfinished, "up_to": !few,
            "p50": rank(50.0), "p95": rank(95.0), "p99": rank(99.0), "p99_9": rank(99.9), "max": rank(100.0),
        })
    };
    bins.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(slowdown: f64, group: u32) -> Op {
        Op {
            flow: 0,
            number: None,
            size: 1000,
            submitted: Time::ZERO,
            submit_us: 0.0,
            us: 1.0,
            slowdown,
            group,
        }
    }

    /// Of 1000 slowdowns 1000, 999, ... 1, the p99 is the 990th smallest.
    #[test]
    fn percentiles_by_size_are_nearest_ranks() {
        let ops: Vec<Op> = (1..=1000).rev().map(|n| op(f64::from(n), 0)).collect();
        let bins = by_size(&ops.iter().collect::<Vec<_>>());
        assert_eq!(
            (&bins[0]["p50"], &bins[0]["p99"], &bins[0]["max"]),
            (&json!(500), &json!(990), &json!(1000))
        );
        let points = curve(&ops.iter().collect::<Vec<_>>());
        let last = points[0].as_array().and_then(|all| all.last());
        assert_eq!(last, Some(&json!(1000)));
        let fractions: Vec<f64> =
            points[1].as_array().expect("list").iter().filter_map(Value::as_f64).collect();
        assert!(fractions.is_sorted() && fractions.last() == Some(&1.0));
        // The point 0.999 exists because points are denser in the tail.
        assert!(fractions.contains(&0.999));
    }

    /// The few slow ops of group 1 are kept, although all ops of group 0 are slower.
    #[test]
    fn the_slowest_of_each_workload_are_kept() {
        let mut ops: Vec<Op> = (0..10_000).map(|_| op(9.0, 0)).collect();
        ops.extend((0..10).map(|_| op(2.0, 1)));
        let mut groups: BTreeMap<u32, Vec<&Op>> = BTreeMap::new();
        ops.iter().for_each(|op| groups.entry(op.group).or_default().push(op));
        let chosen = choose(&ops, &groups, 500);
        assert!((10_000..10_010).all(|rank| chosen.contains(&rank)));
        assert!(chosen.len() <= 500 && (0..200).all(|rank| chosen.contains(&rank)));
    }
}
