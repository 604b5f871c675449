//! Ops, goodput and latencies of the workloads of a run in comparison, by algorithm and traffic class.
//!
//! Ops and goodput are counted per group, so that they add up to the totals of the run. Latencies are
//! measured per workload name.

use std::collections::BTreeMap;
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_units::Span;
use serde::Serialize;

use crate::distribution::DistributionSummary;
use crate::metrics::Connection;
use crate::plan::{Demand, Plan};

/// Ops and goodput of some connections over the measured phase. All fields except the age are additive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Ops that completed.
    pub ops: u64,
    /// Ops submitted in the phase that had not ended when the run was over, its drain included.
    pub unfinished_ops: u64,
    /// Age of the oldest unfinished op; 0 if there are none.
    pub oldest_unfinished_us: f64,
    /// Payload bytes delivered once per time, Gb/s.
    pub goodput_gbps: f64,
    /// Goodput of the connections over that of the whole run; `null` if nothing was delivered.
    pub goodput_share: Option<f64>,
}

impl Share {
    fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.unfinished_ops += other.unfinished_ops;
        self.oldest_unfinished_us = self.oldest_unfinished_us.max(other.oldest_unfinished_us);
        self.goodput_gbps += other.goodput_gbps;
        self.goodput_share =
            self.goodput_share.zip(other.goodput_share).map(|(own, more)| own + more);
    }
}

/// The connections with one workload name, one algorithm and one traffic class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Name of the workload, or a name derived from its kind.
    pub workload: String,
    /// The label of its algorithm.
    pub algorithm: String,
    /// Traffic class, if the topology has classes.
    pub class: Option<String>,
    /// Ops and goodput of the group.
    #[serde(flatten)]
    pub share: Share,
}

/// Property that several groups have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Common {
    /// Name of the workload.
    Workload,
    /// Algorithm.
    Algorithm,
    /// Traffic class.
    Class,
}

impl Common {
    const ALL: [Self; 3] = [Self::Workload, Self::Algorithm, Self::Class];

    fn of(self, group: &Group) -> Option<&str> {
        match self {
            Self::Workload => Some(&group.workload),
            Self::Algorithm => Some(&group.algorithm),
            Self::Class => group.class.as_deref(),
        }
    }
}

/// Sum over several groups that have a name, an algorithm or a class in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupTotal {
    /// Property that the groups have in common.
    pub by: Common,
    /// The name, algorithm or class.
    pub name: String,
    /// Number of groups.
    pub groups: u64,
    /// Ops and goodput of the groups.
    #[serde(flatten)]
    pub share: Share,
}

impl GroupTotal {
    /// Returns a total for each name, algorithm and class that at least two groups have.
    pub(crate) fn of(groups: &[Group]) -> Vec<Self> {
        let mut totals: BTreeMap<(Common, &str), (u64, Share)> = BTreeMap::new();
        for group in groups {
            for by in Common::ALL {
                let Some(name) = by.of(group) else { continue };
                let total = totals.entry((by, name));
                total
                    .and_modify(|(groups, share)| {
                        *groups += 1;
                        share.add(&group.share);
                    })
                    .or_insert((1, group.share));
            }
        }
        let several = totals.into_iter().filter(|(_, (groups, _))| *groups > 1);
        several
            .map(|((by, name), (groups, share))| Self { by, name: name.to_owned(), groups, share })
            .collect()
    }
}

/// Latencies and slowdowns of ops, if they are measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupTimes<'a> {
    /// Time from submission to completion.
    pub op_latency_us: Option<&'a DistributionSummary>,
    /// Latency over the ideal completion time.
    pub slowdown: Option<&'a DistributionSummary>,
}

/// The groups of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupPlan {
    /// Name, algorithm and class of each group, in the order of the workloads.
    keys: Vec<(String, String, Option<String>)>,
    /// By connection: its group; the number of groups if it has none.
    of: Arc<[u32]>,
}

impl GroupPlan {
    /// Returns the groups of the workloads of `plan`.
    pub(crate) fn new<F: AlgorithmFactory>(plan: &Plan<F>) -> Self {
        let mut known = BTreeMap::new();
        let mut keys = Vec::new();
        let mut of = vec![u32::MAX; plan.connections.len()];
        for Demand { label, algorithm, class, connections, .. } in &plan.demands {
            let index = *known.entry((label, algorithm, class)).or_insert_with(|| {
                keys.push((label.clone(), algorithm.clone(), class.clone()));
                keys.len() as u32 - 1
            });
            of[connections.clone()].fill(index);
        }
        let none = keys.len() as u32;
        Self { keys, of: of.into_iter().map(|group| group.min(none)).collect() }
    }

    /// Returns the group of a connection; the number of groups if it has none.
    pub(crate) fn of(&self, connection: usize) -> u32 {
        self.of[connection]
    }

    /// Returns the groups with the goodput of their connections. The whole run has a goodput of `whole` Gb/s.
    pub(crate) fn groups(
        &self,
        connections: &[Connection],
        whole: f64,
        gbps: impl Fn(u64) -> f64,
    ) -> Vec<Group> {
        let mut bytes = vec![0; self.keys.len() + 1];
        for (group, connection) in self.of.iter().zip(connections) {
            bytes[*group as usize] += connection.new_bytes;
        }
        let group = |((workload, algorithm, class), &bytes): (&(_, _, _), &u64)| {
            let goodput_gbps = gbps(bytes);
            let goodput_share = (whole > 0.0).then(|| goodput_gbps / whole);
            let share = Share { goodput_gbps, goodput_share, ..Share::default() };
            Group {
                workload: String::clone(workload),
                algorithm: String::clone(algorithm),
                class: Option::clone(class),
                share,
            }
        };
        self.keys.iter().zip(&bytes).map(group).collect()
    }
}

/// Ops of the measured phase by group, in a part of the network.
#[derive(Clone, Debug)]
pub(crate) struct GroupOps {
    of: Arc<[u32]>,
    counts: Vec<Ops>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ops {
    completed: u64,
    unfinished: u64,
    oldest: Span,
}

impl GroupOps {
    pub(crate) fn new(plan: &GroupPlan) -> Self {
        // The last entry is for connections without a group.
        Self { of: Arc::clone(&plan.of), counts: vec![Ops::default(); plan.keys.len() + 1] }
    }

    /// Counts an op that completed within the measured phase.
    pub(crate) fn on_completion(&mut self, connection: u32) {
        self.counts[self.of[connection as usize] as usize].completed += 1;
    }

    /// Counts an op of the measured phase that has not ended at this age.
    pub(crate) fn on_unfinished(&mut self, connection: u32, age: Span) {
        let ops = &mut self.counts[self.of[connection as usize] as usize];
        ops.unfinished += 1;
        ops.oldest = ops.oldest.max(age);
    }

    /// Adds the ops of another part of the network.
    pub(crate) fn add(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            own.completed += more.completed;
            own.unfinished += more.unfinished;
            own.oldest = own.oldest.max(more.oldest);
        }
    }

    /// Writes the counts into the groups of the same plan.
    pub(crate) fn note(&self, groups: &mut [Group]) {
        for (group, ops) in groups.iter_mut().zip(&self.counts) {
            group.share.ops = ops.completed;
            group.share.unfinished_ops = ops.unfinished;
            group.share.oldest_unfinished_us = ops.oldest.as_us_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Common, Group, GroupTotal, Share};

    /// Of three groups, two share an algorithm, two share a class, and no two share a name.
    #[test]
    fn totals_are_sums_over_groups_with_a_common_property() {
        let group =
            |workload: &str, algorithm: &str, class: Option<&str>, ops, oldest, share| Group {
                workload: workload.to_owned(),
                algorithm: algorithm.to_owned(),
                class: class.map(str::to_owned),
                share: Share {
                    ops,
                    unfinished_ops: 1,
                    oldest_unfinished_us: oldest,
                    goodput_gbps: 100.0 * share,
                    goodput_share: Some(share),
                },
            };
        let totals = GroupTotal::of(&[
            group("a", "swift", Some("low"), 10, 7.0, 0.5),
            group("b", "swift", Some("high"), 5, 9.0, 0.25),
            group("c", "cubic", Some("high"), 2, 3.0, 0.25),
        ]);
        let total = |by, name: &str, ops, oldest, share| GroupTotal {
            by,
            name: name.to_owned(),
            groups: 2,
            share: Share {
                ops,
                unfinished_ops: 2,
                oldest_unfinished_us: oldest,
                goodput_gbps: 100.0 * share,
                goodput_share: Some(share),
            },
        };
        assert_eq!(
            totals,
            [
                total(Common::Algorithm, "swift", 15, 9.0, 0.75),
                total(Common::Class, "high", 7, 9.0, 0.5),
            ]
        );
    }
}
