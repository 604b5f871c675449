//! Turns in which the receiver halves of an endpoint grant.

use apus_cc::{AlgorithmFactory, ArrivedAs, GrantPace, Receiver, Regulator, Turn};
use apus_units::{Bytes, FlowId, Ring, Time};

use super::{Endpoint, enqueue};
use crate::control::Listed;

/// The flows whose receiver halves wait for a turn, and when the next one is.
#[derive(Clone, Debug)]
pub(super) struct Grants {
    pace: GrantPace,
    regulator: Option<Regulator>,
    /// Flows that wait to grant what was asked for, and those that grant more while nothing is asked for.
    asked: Ring<FlowId>,
    unasked: Ring<FlowId>,
    next_at: Time,
}

impl Grants {
    pub(super) fn new(pace: GrantPace) -> Self {
        Self {
            pace,
            regulator: pace.regulation.map(|rules| Regulator::new(rules, Time::ZERO)),
            asked: Ring::default(),
            unasked: Ring::default(),
            next_at: Time::ZERO,
        }
    }

    /// Returns when the next turn is; [`Time::MAX`] if no flow waits for one.
    pub(super) fn next_at(&self) -> Time {
        if self.asked.is_empty() && self.unasked.is_empty() { Time::MAX } else { self.next_at }
    }

    /// Puts a flow into the queue of the turns that its receiver half waits for, unless it is there.
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

    /// A turn that granted `bytes` was due.
    fn pass(&mut self, now: Time, bytes: Bytes) {
        let bytes = if bytes == Bytes::ZERO { self.pace.least } else { bytes };
        let mut gap = self.pace.rate.serialization_time(bytes);
        if let Some(regulator) = &mut self.regulator {
            gap = gap.mul_f64(1.0 / regulator.part(now));
        }
        // The next is counted from when this one was due, so that a host that is late by less than a gap keeps its
        // rate; one that was held up for longer does not make up for it.
        self.next_at = self.next_at.max(now.saturating_sub(gap)).saturating_add(gap);
    }
}

impl<F: AlgorithmFactory> Endpoint<F> {
    /// A data packet of a flow arrived: its receiver half may now wait for a turn.
    pub(super) fn note_arrival(&mut self, now: Time, id: FlowId, arrived: ArrivedAs) {
        if let Some(regulator) = self.grants.as_mut().and_then(|grants| grants.regulator.as_mut()) {
            regulator.on_packet(now, arrived);
        }
        self.list_for_grants(now, id);
    }

    /// Puts a flow into the queue of the turns that its receiver half waits for.
    pub(super) fn list_for_grants(&mut self, now: Time, id: FlowId) {
        let Some(grants) = &mut self.grants else { return };
        let Some(flow) = self.flows.get_mut(id.index()) else { return };
        let turn = flow.receiver.turn();
        let Some(listed) = flow.listed() else { return };
        if turn == Turn::Asked && !listed.asked {
            if grants.next_at() == Time::MAX {
                grants.next_at = grants.next_at.max(now);
            }
            grants.list(id, turn, listed);
            self.next_timeout = self.next_timeout.min(grants.next_at());
        }
    }

    /// Runs the turns that are due: their grants are sent with the next control packets.
    pub(super) fn run_turns(&mut self, now: Time) {
        let Some(grants) = &mut self.grants else { return };
        while grants.next_at() <= now {
            let (id, turn) = match grants.asked.pop_front() {
                Some(id) => (id, Turn::Asked),
                None => match grants.unasked.pop_front() {
                    Some(id) => (id, Turn::Unasked),
                    None => return,
                },
            };
            let Some(flow) = self.flows.get_mut(id.index()) else { continue };
            // A flow that was released, or opened again with another algorithm, has left the queues but for its place.
            let Some(listed) = flow.listed() else { continue };
            match turn {
                Turn::Asked => listed.asked = false,
                _ => listed.unasked = false,
            }
            if !flow.open || flow.receiver.turn() != turn {
                continue;
            }
            let bytes = flow.receiver.take_turn(turn == Turn::Asked);
            grants.pass(now, bytes);
            enqueue(&mut self.controls, &mut flow.in_controls, id);
            let next = flow.receiver.turn();
            if let Some(listed) = flow.listed() {
                grants.list(id, next, listed);
            }
        }
    }

    /// Returns when the next turn is; [`Time::MAX`] if there is none.
    pub(super) fn next_turn(&self) -> Time {
        self.grants.as_ref().map_or(Time::MAX, |grants| grants.next_at())
    }
}
