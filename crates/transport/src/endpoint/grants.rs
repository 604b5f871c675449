//! Turns in which the receiver halves of an endpoint send grants.

use alloc::vec::Vec;

use apus_cc::{AlgorithmFactory, ArrivedAs, GrantPace, Receiver, Regulator, Turn};
use apus_units::{Bytes, FlowId, Ring, Time};

use super::{Endpoint, enqueue};
use crate::control::Listed;

/// The turns of all receiver halves of an endpoint. Flows whose data arrives at the same ports of
/// the host form a group and take turns at the rate of these ports; a host with one port has one
/// group. If flows with one path share ports with flows that use all ports, these ports belong to
/// two groups and may be granted twice (deviation: uet-htsim has one pacer per host, and hosts with
/// one plane).
#[derive(Clone, Debug)]
pub(super) struct Grants {
    groups: Vec<Group>,
}

/// The flows of some ports whose receiver halves wait for a turn, and the time of the next turn.
#[derive(Clone, Debug)]
struct Group {
    /// Bit n: data may arrive at port n.
    ports: u64,
    pace: GrantPace,
    regulator: Option<Regulator>,
    /// Flows that wait to grant requested data, and flows that wait to grant more while nothing is
    /// requested.
    asked: Ring<FlowId>,
    unasked: Ring<FlowId>,
    next_at: Time,
}

impl Grants {
    pub(super) fn new() -> Self {
        Self { groups: Vec::new() }
    }

    /// Returns the number of the group of these ports. Creates the group with this `pace` if it
    /// does not exist yet.
    pub(super) fn group(&mut self, ports: u64, pace: GrantPace) -> u8 {
        let known = self.groups.iter().position(|group| group.ports == ports);
        // Hosts have at most 64 ports, and few sets of them.
        let last = usize::from(u8::MAX);
        let number = known.unwrap_or(self.groups.len()).min(last);
        if number == self.groups.len() {
            self.groups.push(Group::new(ports, pace));
        }
        number as u8
    }

    /// Returns the time of the next turn; [`Time::MAX`] if no flow waits for one.
    pub(super) fn next_at(&self) -> Time {
        self.groups.iter().map(Group::next_at).min().unwrap_or(Time::MAX)
    }

    /// Removes the flow whose turn is due from its queue. Returns the number of its group, the flow
    /// and the kind of turn.
    fn pop(&mut self, now: Time) -> Option<(usize, FlowId, Turn)> {
        let due = self.groups.iter_mut().enumerate().find(|(_, group)| group.next_at() <= now);
        let (number, group) = due?;
        let asked = group.asked.pop_front().map(|id| (id, Turn::Asked));
        let (id, turn) =
            asked.or_else(|| group.unasked.pop_front().map(|id| (id, Turn::Unasked)))?;
        Some((number, id, turn))
    }
}

impl Group {
    fn new(ports: u64, pace: GrantPace) -> Self {
        Self {
            ports,
            pace,
            regulator: pace.regulation.map(|rules| Regulator::new(rules, Time::ZERO)),
            asked: Ring::default(),
            unasked: Ring::default(),
            next_at: Time::ZERO,
        }
    }

    fn next_at(&self) -> Time {
        if self.asked.is_empty() && self.unasked.is_empty() { Time::MAX } else { self.next_at }
    }

    /// Adds a flow to the queue of the turns that its receiver half waits for, unless it is in that
    /// queue already.
    fn list(&mut self, id: FlowId, turn: Turn, listed: &mut Listed) {
        let (queue, is_in) = match turn {
            Turn::Asked => (&mut self.asked, &mut listed.asked),
            Turn::Unasked => (&mut self.unasked, &mut listed.unasked),
            Turn::None => return,
        };
        if !core::mem::replace(is_in, true) {
            queue.push_back(id);
        }
    }

    /// Sets the time of the next turn after a turn that granted `bytes`.
    fn pass(&mut self, now: Time, bytes: Bytes) {
        let bytes = if bytes == Bytes::ZERO { self.pace.least } else { bytes };
        let mut gap = self.pace.rate.serialization_time(bytes);
        if let Some(regulator) = &mut self.regulator {
            gap = gap.mul_f64(1.0 / regulator.part(now));
        }
        // The gap counts from the time at which this turn was due, so that a late host keeps its
        // rate. A host that was late by more than the limit does not catch up completely.
        let late = self.pace.most_late.max(gap);
        self.next_at = self.next_at.max(now.saturating_sub(late)).saturating_add(gap);
    }
}

impl<F: AlgorithmFactory> Endpoint<F> {
    /// Records the arrival of a data packet of a flow, whose receiver half may now wait for a turn.
    pub(super) fn note_arrival(&mut self, now: Time, id: FlowId, arrived: ArrivedAs) {
        let Some(grants) = &mut self.grants else { return };
        let flow = self.flows.get_mut(id.index());
        let group = flow.and_then(|flow| grants.groups.get_mut(flow.listed()?.group()));
        if let Some(regulator) = group.and_then(|group| group.regulator.as_mut()) {
            regulator.on_packet(now, arrived);
        }
        self.list_for_grants(now, id);
    }

    /// Adds a flow to the queue of the turns that its receiver half waits for.
    pub(super) fn list_for_grants(&mut self, now: Time, id: FlowId) {
        let Some(grants) = &mut self.grants else { return };
        let Some(flow) = self.flows.get_mut(id.index()) else { return };
        let turn = flow.receiver.turn();
        let Some(listed) = flow.listed() else { return };
        let Some(group) = grants.groups.get_mut(listed.group()) else { return };
        if turn == Turn::Asked && !listed.asked {
            if group.next_at() == Time::MAX {
                group.next_at = group.next_at.max(now);
            }
            group.list(id, turn, listed);
            self.next_timeout = self.next_timeout.min(group.next_at());
        }
    }

    /// Runs the turns that are due; their grants are sent with the next control packets.
    pub(super) fn run_turns(&mut self, now: Time) {
        let Some(grants) = &mut self.grants else { return };
        while let Some((group, id, turn)) = grants.pop(now) {
            let Some(flow) = self.flows.get_mut(id.index()) else { continue };
            // A released flow, or one opened again with another algorithm, may still be listed but
            // takes no turns.
            let Some(listed) = flow.listed() else { continue };
            match turn {
                Turn::Asked => listed.asked = false,
                _ => listed.unasked = false,
            }
            if !flow.is_open() || flow.receiver.turn() != turn {
                continue;
            }
            let bytes = flow.receiver.take_turn(turn == Turn::Asked);
            enqueue(&mut self.controls, &mut flow.in_controls, id);
            let next = flow.receiver.turn();
            if let (Some(listed), Some(group)) = (flow.listed(), grants.groups.get_mut(group)) {
                group.pass(now, bytes);
                group.list(id, next, listed);
            }
        }
    }

    /// Returns the time of the next turn; [`Time::MAX`] if there is none.
    pub(super) fn next_turn(&self) -> Time {
        self.grants.as_ref().map_or(Time::MAX, |grants| grants.next_at())
    }
}

#[cfg(test)]
mod tests {
    use apus_units::{Rate, Span};

    use super::*;

    /// Turns of 1250 B at 100 Gb/s take 100 ns each. A host catches up for at most 1 us.
    fn group() -> Group {
        let pace = GrantPace {
            rate: Rate::from_gbps(100),
            least: Bytes::new(125),
            most_late: Span::from_us(1),
            regulation: None,
        };
        let mut group = Group::new(1, pace);
        group.list(FlowId::new(0), Turn::Asked, &mut Listed::default());
        group
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// Returns how many turns are due at `now`, and runs them.
    fn turns(group: &mut Group, now: Time) -> u32 {
        let mut turns = 0;
        while group.next_at() <= now {
            group.pass(now, Bytes::new(1250));
            turns += 1;
        }
        turns
    }

    #[test]
    fn a_host_that_is_late_keeps_its_rate_up_to_a_limit() {
        let mut group = group();
        assert_eq!(turns(&mut group, at(0)), 1);
        assert_eq!(group.next_at(), at(100));
        // 250 ns late: the turns of 100, 200 and 300 ns run now; the next one is due at 400 ns, as
        // without the delay.
        assert_eq!(turns(&mut group, at(350)), 3);
        assert_eq!(group.next_at(), at(400));
        // Blocked until 11,400 ns, the host catches up for the last microsecond: the turn that is
        // due then, and ten more.
        assert_eq!(turns(&mut group, at(11_400)), 11);
        assert_eq!(group.next_at(), at(11_500));
    }

    #[test]
    fn a_turn_without_a_grant_takes_the_least_time() {
        let mut group = group();
        group.pass(at(0), Bytes::ZERO);
        assert_eq!(group.next_at(), at(10));
    }

    #[test]
    fn flows_of_the_same_ports_are_one_group_at_the_pace_of_these() {
        let mut grants = Grants::new();
        let pace = |gbps| GrantPace { rate: Rate::from_gbps(gbps), ..group().pace };
        assert_eq!([1, 2, 1, 3].map(|ports| grants.group(ports, pace(100 + ports))), [0, 1, 0, 2]);
        let rates = grants.groups.iter().map(|group| group.pace.rate);
        assert!(rates.eq([101, 102, 103].map(Rate::from_gbps)));
        assert_eq!(grants.next_at(), Time::MAX, "no flow waits");
    }
}
