//! Schedule of the faults of links, applied between the events of a run.

use std::collections::BTreeMap;

use apus_cc::AlgorithmFactory;
use apus_fabric::{ControlError, DropReason, Impairment, Node};
use apus_units::planted::{Bug, is_planted};
use apus_units::{PortId, Time};

use crate::part::Part;
use crate::plan::{Fault, FaultKind};
use crate::random::{Purpose, Stream};
use crate::record::drops_at;

/// The faults of a run.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Pending changes; the next change is the last entry.
    changes: Vec<Change>,
    seed: u64,
    faults: Vec<Fault>,
    state: Vec<State>,
    /// By fault: while it lasts, the packets that its port had lost for the same reason before it began;
    /// after its end, the packets lost to it.
    lost: Vec<u64>,
    /// Present faults of each property of the link behind a port, in order of their start. There may be
    /// several, for example if both switches at the ends of a link fail. The first one applies until it ends.
    present: BTreeMap<(PortId, Property), Vec<usize>>,
}

/// Property of a link that a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Property {
    State,
    Capacity,
    Impairment,
}

impl Property {
    const fn of(kind: FaultKind) -> Self {
        match kind {
            FaultKind::Down => Self::State,
            FaultKind::Slow(_) => Self::Capacity,
            FaultKind::Loss(_) | FaultKind::Corrupt(_) | FaultKind::Reorder(..) => Self::Impairment,
        }
    }
}

/// State of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Present,
    Ended,
}

/// Start or end of a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    at: Time,
    begins: bool,
    index: usize,
    pub(crate) fault: Fault,
}

impl Faults {
    pub(crate) fn new(faults: &[Fault], seed: u64) -> Self {
        let mut changes: Vec<Change> = faults
            .iter()
            .enumerate()
            .flat_map(|(index, &fault)| {
                let change = |at, begins| Change { at, begins, index, fault };
                [change(fault.at, true), change(fault.until, false)]
            })
            .collect();
        // Of changes at the same time, ends come first, because another fault of the link may follow.
        changes.sort_by_key(|c| (c.at, c.begins, c.index));
        changes.reverse();
        Self {
            changes,
            seed,
            state: vec![State::Pending; faults.len()],
            lost: vec![0; faults.len()],
            faults: faults.to_vec(),
            present: BTreeMap::new(),
        }
    }

    /// Returns the time of the next change, if there is one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.changes.last().map(|change| change.at)
    }

    /// Returns the next change if it is due at `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Change> {
        self.changes.pop_if(|change| change.at <= now)
    }

    /// Applies a change in the part of the network that simulates the port: the part with index `owner`.
    pub(crate) fn apply<F: AlgorithmFactory>(
        &mut self,
        change: &Change,
        parts: &mut [Part<F>],
        owner: usize,
    ) {
        let index = change.index;
        if change.begins {
            self.lost[index] = self.count_lost(index, parts);
            self.state[index] = State::Present;
            self.change_link(change, parts, owner);
        } else {
            self.change_link(change, parts, owner);
            // The fault applies to a packet whose last bit leaves at its end.
            self.lost[index] = self.count_lost(index, parts) - self.lost[index];
            self.state[index] = State::Ended;
        }
    }

    /// Changes the link at the start or end of a fault.
    fn change_link<F: AlgorithmFactory>(
        &mut self,
        change: &Change,
        parts: &mut [Part<F>],
        owner: usize,
    ) {
        let Change { at: now, begins, index, fault } = *change;
        let port = fault.port;
        let all = self.present.entry((port, Property::of(fault.kind))).or_default();
        let before = all.first().copied();
        if begins {
            all.push(index);
        } else {
            all.retain(|&other| other != index);
        }
        let after = all.first().copied();
        if before == after {
            return;
        }
        let impairment = match (fault.kind, after) {
            (FaultKind::Down, _) => {
                // Between two overlapping faults the link stays down.
                if before.is_none() || after.is_none() && !is_planted(Bug::RepairForgotten) {
                    set_up(now, port, after.is_none(), parts, owner);
                }
                return;
            }
            (FaultKind::Slow(_), after) => {
                let fraction = match after.map(|after| self.faults[after].kind) {
                    Some(FaultKind::Slow(fraction)) => fraction,
                    _ => 1.0,
                };
                return set_capacity(now, port, fraction, parts, owner);
            }
            (_, after) => after.and_then(|after| self.impairment(after)),
        };
        let (network, mut scheduler) = parts[owner].world.network();
        check(network.set_impairment(now, port, impairment, &mut scheduler));
    }

    /// Returns the effect of a fault on the packets of its link; `None` if the fault does not act on single packets.
    fn impairment(&self, index: usize) -> Option<Impairment> {
        let seed = self.seed_of(index);
        match self.faults[index].kind {
            FaultKind::Down | FaultKind::Slow(_) => None,
            FaultKind::Loss(p) => Some(Impairment::loss(p, seed)),
            FaultKind::Corrupt(p) => Some(Impairment::corruption(p, seed)),
            FaultKind::Reorder(p, delay) => Some(Impairment::reordering(p, delay, seed)),
        }
    }

    /// Returns the seed of the random stream of a fault.
    fn seed_of(&self, index: usize) -> u64 {
        Stream::new(self.seed, Purpose::Fault, index as u64).below(u64::MAX)
    }

    /// Returns the packets that a fault's port has lost so far for the fault's reason.
    fn count_lost<F: AlgorithmFactory>(&self, index: usize, parts: &[Part<F>]) -> u64 {
        let fault = &self.faults[index];
        let reason = match fault.kind {
            FaultKind::Down => DropReason::LinkDown,
            FaultKind::Loss(_) => DropReason::Loss,
            FaultKind::Corrupt(_) => DropReason::Corruption,
            FaultKind::Slow(_) | FaultKind::Reorder(..) => DropReason::Buffer,
        };
        let losing = |part: &Part<F>| part.world.network.losing(fault.port);
        let losing = match fault.kind {
            FaultKind::Down => parts.iter().map(losing).sum(),
            _ => 0,
        };
        drops_at(parts, fault.port)[reason as usize] + losing
    }

    /// Returns, by fault, the packets lost to it so far; `None` if it has not begun.
    pub(crate) fn lost<F: AlgorithmFactory>(&self, parts: &[Part<F>]) -> Vec<Option<u64>> {
        let of = |index: usize| match self.state[index] {
            State::Pending => None,
            State::Present => Some(self.count_lost(index, parts) - self.lost[index]),
            State::Ended => Some(self.lost[index]),
        };
        (0..self.faults.len()).map(of).collect()
    }
}

/// Takes a link down, or up again. If it goes down, its packets are lost.
fn set_up<F: AlgorithmFactory>(
    now: Time,
    port: PortId,
    up: bool,
    parts: &mut [Part<F>],
    owner: usize,
) {
    let (network, mut scheduler) = parts[owner].world.network();
    check(network.set_link_up(now, port, up, &mut scheduler));
    parts[owner].on_link_change(now, port);
    if up {
        return;
    }
    // Packets on the link may have been handed over to another part.
    for (number, part) in parts.iter_mut().enumerate() {
        if number != owner && is_planted(Bug::PartKeepsPackets) {
            continue;
        }
        let (network, mut scheduler) = part.world.network();
        check(network.lose_flying(now, port, &mut scheduler));
    }
}

/// Sets the rate of a link to this fraction. The NIC of a host then pulls packets at the new rate.
fn set_capacity<F: AlgorithmFactory>(
    now: Time,
    port: PortId,
    fraction: f64,
    parts: &mut [Part<F>],
    owner: usize,
) {
    let part = &mut parts[owner];
    let (network, mut scheduler) = part.world.network();
    check(network.set_capacity(now, port, fraction, &mut scheduler));
    let rate = network.rate(port);
    if let Node::Host(host) = network.port_ends(port).0 {
        part.set_nic_rate(host, port, rate);
    }
}

fn check(changed: Result<(), ControlError>) {
    debug_assert!(
        changed.is_ok(),
        "a plan whose faults its ports cannot have is no run: {changed:?}"
    );
}
