//! An engine's access to the regions of its host.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apus_units::{Span, Time};
use apus_wire::{RegionKey, RejectReason};

use super::inbox::Admission;
use super::op_table::OpTable;
use crate::region::{LastRegion, Regions, Registered, Want};

/// Interval of checks whether withdrawn regions can be released. deviation: no source; short for an application that
/// waits for its memory, long for an engine.
const CHECK_INTERVAL: Span = Span::from_ms(10);

/// The regions as one engine sees them.
pub(super) struct RegionAccess {
    /// Number of the engine.
    engine: u32,
    regions: Arc<Regions>,
    last: LastRegion,
    seen_withdrawals: u64,
    next_check: Time,
}

impl RegionAccess {
    pub(super) fn new(engine: u32, regions: Arc<Regions>) -> Self {
        Self {
            engine,
            regions,
            last: LastRegion::default(),
            seen_withdrawals: 0,
            next_check: Time::MAX,
        }
    }

    /// Returns the region with this key.
    #[inline]
    pub(super) fn get(&mut self, key: RegionKey) -> Option<&Registered> {
        self.last.get(&self.regions, key)
    }

    /// Returns the region that was used last, which the packets of an aggregate probably use again.
    #[inline]
    pub(super) fn last(&self) -> Option<Arc<Registered>> {
        self.last.kept()
    }

    /// Checks a peer's op on a region.
    #[inline]
    pub(super) fn admit(
        &mut self,
        key: RegionKey,
        want: Want,
        address: u64,
        length: u64,
    ) -> Admission {
        let region = self.get(key).ok_or(RejectReason::NoRegion);
        match region.and_then(|region| region.admit(want, address, length)) {
            Ok(()) => Admission::Yes,
            Err(reason) => Admission::Refused(reason),
        }
    }

    /// Returns when [`RegionAccess::handle_withdrawals`] is due.
    pub(super) fn next_timeout(&self) -> Time {
        self.next_check
    }

    /// Gives up answers from revoked regions, and releases withdrawn regions that no answer needs.
    #[inline]
    pub(super) fn handle_withdrawals(&mut self, now: Time, ops: &mut OpTable) {
        let withdrawals = self.regions.withdrawals.load(Ordering::Acquire);
        if withdrawals != self.seen_withdrawals || now >= self.next_check {
            self.seen_withdrawals = withdrawals;
            self.release_withdrawn(now, ops);
        }
    }

    #[cold]
    fn release_withdrawn(&mut self, now: Time, ops: &mut OpTable) {
        self.last.forget();
        for key in self.regions.revoked() {
            let answers: Vec<_> = ops.endpoint.answers_of(key).collect();
            for (flow, op) in answers {
                ops.refuse_read(now, flow, op, RejectReason::Withdrawn);
            }
        }
        let in_use =
            self.regions.release_withdrawn(self.engine, |key| ops.endpoint.answers_from(key));
        self.next_check = if in_use { now + CHECK_INTERVAL } else { Time::MAX };
    }

    /// Uses no region from now on.
    pub(super) fn leave(&mut self) {
        self.last.forget();
        self.regions.leave(self.engine);
    }
}
