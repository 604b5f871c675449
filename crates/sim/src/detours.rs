//! Which links that are down switches avoid, and when.

use std::collections::{BTreeMap, BTreeSet};

use apus_cc::AlgorithmFactory;
use apus_fabric::Avoided;
use apus_units::{PortId, Span, Time};

use crate::part::Part;
use crate::plan::{Fault, FaultKind, Plan};

/// Interval of time in which switches avoid a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detour {
    /// The port of the link with the smaller number.
    pub(crate) link: PortId,
    /// Whether all switches avoid the link, not only those at its ends.
    pub(crate) is_global: bool,
    pub(crate) from: Time,
    /// End of the interval; [`Time::MAX`]: never.
    pub(crate) until: Time,
}

/// Changes of the links that switches avoid, applied between the events of a run.
#[derive(Debug)]
pub(crate) struct Detours {
    /// Pending changes, each with the new state; the next change is the last entry.
    changes: Vec<(Time, Option<usize>)>,
    /// Connections that are pinned to a path of their own.
    pinned: BTreeSet<u32>,
}

impl Detours {
    pub(crate) fn new<F: AlgorithmFactory>(plan: &Plan<F>) -> Self {
        let (_, mut changes) = states(plan);
        changes.reverse();
        let pinned = (0..).zip(&plan.connections).filter(|(_, of)| of.reroute.is_some());
        Self { changes, pinned: pinned.map(|(connection, _)| connection).collect() }
    }

    /// Returns the time of the next change, if there is one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.changes.last().map(|(at, _)| *at)
    }

    /// Applies the changes that are due at `now`.
    pub(crate) fn apply<F: AlgorithmFactory>(&mut self, now: Time, parts: &mut [Part<F>]) {
        while let Some((_, state)) = self.changes.pop_if(|(at, _)| *at <= now) {
            for part in &mut *parts {
                part.avoid(state, &self.pinned);
            }
        }
    }
}

/// Returns the distinct states of the links of a plan, and the times at which each state begins. `None` is
/// the state in which no link is avoided.
pub(crate) fn states<F: AlgorithmFactory>(
    plan: &Plan<F>,
) -> (Vec<Avoided>, Vec<(Time, Option<usize>)>) {
    let detours = detours(plan);
    let times: BTreeSet<Time> =
        detours.iter().flat_map(|d| [d.from, d.until]).filter(|at| *at < Time::MAX).collect();
    let mut states: Vec<Avoided> = Vec::new();
    let mut known = BTreeMap::new();
    let mut changes = Vec::new();
    let mut last = None;
    for at in times {
        let present = |is_global| -> Vec<PortId> {
            let now = detours.iter().filter(|d| d.from <= at && at < d.until);
            now.filter(|d| d.is_global == is_global).map(|d| d.link).collect()
        };
        let avoided =
            Avoided { local: present(false), global: present(true), rehash: plan.rerouting.rehash };
        let state = if avoided.local.is_empty() && avoided.global.is_empty() {
            None
        } else {
            Some(*known.entry(avoided).or_insert_with_key(|avoided| {
                states.push(avoided.clone());
                states.len() - 1
            }))
        };
        if state != last {
            changes.push((at, state));
            last = state;
        }
    }
    (states, changes)
}

/// Returns the intervals in which switches avoid links, ordered by link.
pub(crate) fn detours<F: AlgorithmFactory>(plan: &Plan<F>) -> Vec<Detour> {
    let mut by_link: BTreeMap<PortId, Vec<(Time, Time)>> = BTreeMap::new();
    let ends = plan.duration.saturating_add(plan.drain);
    let is_down = |fault: &&Fault| fault.kind == FaultKind::Down && fault.at < Time::ZERO + ends;
    for fault in plan.faults.iter().filter(is_down) {
        // A fault in either direction counts: a port that receives nothing informs its peer.
        let link = PortId::new(fault.port.get() & !1);
        by_link.entry(link).or_default().push((fault.at, fault.until));
    }
    let delays = [(false, plan.rerouting.local), (true, plan.rerouting.global)];
    let mut all = Vec::new();
    for (&link, downs) in &mut by_link {
        downs.sort_unstable();
        for (is_global, delay) in delays {
            let Some(delay) = delay else { continue };
            let noticed = noticed(&joined(downs), delay).into_iter();
            all.extend(noticed.map(|(from, until)| Detour { link, is_global, from, until }));
        }
    }
    all
}

/// Returns the union of intervals that are sorted by their start.
fn joined(intervals: &[(Time, Time)]) -> Vec<(Time, Time)> {
    let mut all: Vec<(Time, Time)> = Vec::new();
    for &(from, until) in intervals {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => all.push((from, until)),
        }
    }
    all
}

/// Returns the intervals in which a link counts as failed, from the intervals in which it is down. A state of
/// the link counts once it has lasted for `delay`.
fn noticed(downs: &[(Time, Time)], delay: Span) -> Vec<(Time, Time)> {
    let mut all: Vec<(Time, Time)> = Vec::new();
    for (index, &(from, until)) in downs.iter().enumerate() {
        let next = downs.get(index + 1).map_or(Time::MAX, |(next, _)| *next);
        let is_open = all.last().is_some_and(|last: &(Time, Time)| last.1 == Time::MAX);
        if !is_open && until.since(from) >= delay {
            all.push((from.saturating_add(delay), Time::MAX));
        }
        let is_repaired = until < Time::MAX && next.since(until) >= delay;
        if let Some(last) = all.last_mut().filter(|last| is_repaired && last.1 == Time::MAX) {
            last.1 = until.saturating_add(delay);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link counts as failed, or as repaired, once it has been in that state for 10 us.
    #[test]
    fn a_state_counts_once_it_has_lasted() {
        let at = |us: u64| if us == 0 { Time::MAX } else { Time::ZERO + Span::from_us(us) };
        let of = |downs: &[(u64, u64)]| -> Vec<(Time, Time)> {
            let downs: Vec<_> = downs.iter().map(|&(a, b)| (at(a), at(b))).collect();
            noticed(&joined(&downs), Span::from_us(10))
        };
        assert_eq!(of(&[(100, 150)]), [(at(110), at(160))]);
        // In order: too short to be noticed; never repaired; repaired for too short a time.
        assert_eq!(of(&[(100, 109)]), []);
        assert_eq!(of(&[(100, 0)]), [(at(110), at(0))]);
        assert_eq!(
            of(&[(100, 150), (155, 158), (300, 320)]),
            [(at(110), at(168)), (at(310), at(330))]
        );
        // Overlapping faults count as one.
        assert_eq!(of(&[(100, 105), (103, 150)]), [(at(110), at(160))]);
    }
}
