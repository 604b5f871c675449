//! RCCC's receiver half: grants in turns.

use apus_units::{Bytes, Time};

use super::params::Params;
use super::{UNIT, ahead, target_of};
use apus_cc::{DataEvent, FlowInfo, Receiver, ReceiverControl, Turn};

/// The receiver half of RCCC (uet-htsim 40ccb05, `UecSink` and `UecPullPacer`).
#[derive(Clone, Debug)]
pub struct RcccReceiver {
    /// Units granted, and the largest count that the sender has requested (`_latest_pull`,
    /// `_highest_pull_target`).
    granted: u32,
    target: u32,
    /// Units of a turn (`_credit_per_pull`).
    per_turn: u32,
    /// Maximum number of units granted beyond the requested ones (`maxwnd`).
    most: u32,
    /// Wire bytes of a full packet.
    packet: u64,
    turn: Turn,
    /// Whether a grant is to be sent.
    is_due: bool,
}

impl RcccReceiver {
    pub(super) fn new(params: &Params, flow: &FlowInfo) -> Self {
        let units = |bytes: u64| u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        let per_turn = flow.payload.get().saturating_mul(u64::from(params.grant_packets));
        Self {
            granted: 0,
            target: 0,
            per_turn: units(per_turn).max(1),
            most: units(params.most(flow)).min(i32::MAX as u32),
            packet: flow.packet.get(),
            turn: Turn::None,
            is_due: false,
        }
    }

    /// Records the count up to which the sender of a packet requests credit (`handlePullTarget`).
    fn note_target(&mut self, target: Option<u32>) {
        let Some(target) = target else { return };
        if ahead(target, self.target) > 0 {
            self.target = target;
            self.turn = Turn::Asked;
        }
    }

    /// Returns the units that the sender has requested and not received.
    fn backlog(&self) -> u32 {
        ahead(self.target, self.granted).max(0).unsigned_abs()
    }
}

impl Receiver for RcccReceiver {
    fn on_data(&mut self, event: &DataEvent) -> bool {
        self.note_target(target_of(&event.fields));
        true
    }

    /// The sender will retransmit the packet, so it gets a turn at once (`processTrimmed`). A turn grants no
    /// more than was requested (`UecSink::pull`). If that is nothing, the packet waits for credit without a
    /// request, or for its timeout.
    fn on_trimmed(&mut self, event: &DataEvent) {
        self.note_target(target_of(&event.fields));
        self.turn = Turn::Asked;
    }

    /// deviation: a request states how many packets wait, while uet-htsim's has the count up to which credit is
    /// requested. Grants in flight may then be granted again.
    fn on_credit_request(&mut self, _: Time, packets: u32) {
        let wanted = (u64::from(packets) * self.packet).div_ceil(UNIT).min(u64::from(self.most));
        // At most `most`, which has 31 bits.
        self.note_target(Some(self.granted.wrapping_add(wanted as u32)));
        self.turn = Turn::Asked;
    }

    fn turn(&self) -> Turn {
        self.turn
    }

    /// `UecSink::pull` and `UecPullPacer::doNextEvent`.
    fn take_turn(&mut self, asked: bool) -> Bytes {
        let granted = if asked { self.per_turn.min(self.backlog()) } else { self.per_turn };
        self.granted = self.granted.wrapping_add(granted);
        let unasked = i64::from(ahead(self.granted, self.target));
        self.turn = match (asked, self.backlog()) {
            (true, 1..) => Turn::Asked,
            (true, 0) => Turn::Unasked,
            (false, 0) if unasked < i64::from(self.most) => Turn::Unasked,
            (false, _) => Turn::None,
        };
        self.is_due = true;
        Bytes::new(u64::from(granted) * UNIT)
    }

    fn next_control(&self) -> Time {
        if self.is_due { Time::ZERO } else { Time::MAX }
    }

    fn poll_control(&mut self, _: Time) -> Option<ReceiverControl> {
        let total = self.granted;
        core::mem::take(&mut self.is_due).then_some(ReceiverControl::Grant { total })
    }

    fn sends_control(&self) -> bool {
        true
    }
}
