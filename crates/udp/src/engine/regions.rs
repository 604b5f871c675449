//! An engine's access to the regions of its host.

use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apus_units::{FlowId, Span, Time};
use apus_wire::{RegionKey, RejectReason};

use super::inbox::Admission;
use super::op_table::OpTable;
use crate::grant::{Access, Caller};
use crate::region::{Regions, Registered};

/// Interval of checks whether withdrawn regions can be released. deviation: no source; short for an application that
/// waits for its memory, long for an engine.
const CHECK_INTERVAL: Span = Span::from_ms(10);

/// The regions as one engine sees them.
pub(super) struct RegionAccess {
    /// Number of the engine.
    engine: u32,
    regions: Arc<Regions>,
    /// The region that packets named last. Rationale: a lookup takes two locks.
    last: Option<Arc<Registered>>,
    seen_withdrawals: u64,
    /// Number of changes of grants after which the rights to answers that are being sent were checked.
    seen_grants: u64,
    /// When [`RegionAccess::handle_withdrawals`] is due.
    pub(super) next_check: Time,
}

impl RegionAccess {
    pub(super) fn new(engine: u32, regions: Arc<Regions>) -> Self {
        Self {
            engine,
            regions,
            last: None,
            seen_withdrawals: 0,
            seen_grants: 0,
            next_check: Time::MAX,
        }
    }

    /// Returns the region with this key, even if it is withdrawn and still in use.
    #[inline]
    pub(super) fn get(&mut self, key: RegionKey) -> Option<&Registered> {
        if self.last.as_ref().is_none_or(|region| region.key != key) {
            self.last = self.regions.get(key);
        }
        self.last.as_deref()
    }

    /// Returns the region that was used last, which the packets of an aggregate probably use again.
    #[inline]
    pub(super) fn last(&self) -> Option<Arc<Registered>> {
        self.last.clone()
    }

    /// Returns the region with this key if only some peers may use it.
    #[inline]
    pub(super) fn restricted(&mut self, key: RegionKey) -> Option<Arc<Registered>> {
        if !(self.regions.any_restricted() && self.get(key)?.is_restricted()) {
            return None;
        }
        self.last.clone()
    }

    /// Returns `true` if there may be regions that only some peers may use.
    #[inline]
    pub(super) fn any_restricted(&self) -> bool {
        self.regions.any_restricted()
    }

    /// Checks a peer's op on a region.
    #[inline]
    pub(super) fn admit(
        &mut self,
        key: RegionKey,
        access: Access,
        address: u64,
        length: u64,
    ) -> Admission {
        let region = self.get(key).ok_or(RejectReason::NoRegion);
        match region.and_then(|region| region.admit(access, address, length)) {
            Ok(()) => Admission::Yes,
            Err(reason) => Admission::Refused(reason),
        }
    }

    /// Gives up answers from revoked regions and to peers that have lost their rights, and releases withdrawn regions that no
    /// answer needs. `caller` returns the peer of a flow.
    #[inline]
    pub(super) fn handle_withdrawals(
        &mut self,
        now: Time,
        ops: &mut OpTable,
        caller: impl Fn(FlowId) -> Option<Caller>,
    ) {
        let withdrawals = self.regions.withdrawals.load(Ordering::Acquire);
        if withdrawals != self.seen_withdrawals || now >= self.next_check {
            self.seen_withdrawals = withdrawals;
            self.release_withdrawn(now, ops, caller);
        }
    }

    #[cold]
    fn release_withdrawn(
        &mut self,
        now: Time,
        ops: &mut OpTable,
        caller: impl Fn(FlowId) -> Option<Caller>,
    ) {
        self.last = None;
        let grants = self.regions.grants();
        let changed = replace(&mut self.seen_grants, grants) != grants;
        let checked = if changed { self.regions.restricted() } else { Vec::new() };
        for region in checked {
            let allowed = |flow| caller(flow).is_some_and(|caller| region.hold(&caller).is_ok());
            let answers = ops.endpoint.answers_of(region.key);
            let lost: Vec<_> = answers.filter(|(flow, _)| !allowed(*flow)).collect();
            for (flow, op) in lost {
                ops.refuse_read(now, flow, op, RejectReason::Withdrawn);
            }
        }
        for key in self.regions.revoked() {
            let answers: Vec<_> = ops.endpoint.answers_of(key).collect();
            for (flow, op) in answers {
                ops.refuse_read(now, flow, op, RejectReason::Withdrawn);
            }
        }
        let in_use = self
            .regions
            .release_withdrawn(self.engine, |key| ops.endpoint.answers_of(key).next().is_some());
        self.next_check = if in_use { now + CHECK_INTERVAL } else { Time::MAX };
    }

    /// Uses no region from now on.
    pub(super) fn leave(&mut self) {
        self.last = None;
        self.regions.leave(self.engine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use crate::session::Randomness;

    #[test]
    fn a_withdrawn_region_is_refused_at_once_and_released_when_the_engine_forgets_it() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let region =
            Region::new(&regions, Box::new(vec![0u8; 10]), Access::WRITE, None).expect("room");
        let other =
            Region::new(&regions, Box::new(vec![0u8; 20]), Access::WRITE, None).expect("room");
        let key = region.key();
        let mut engine = RegionAccess::new(0, Arc::clone(&regions));
        let mut admit = |key, length| engine.admit(key, Access::WRITE, 0, length);
        assert_eq!(admit(key, 10), Admission::Yes);
        assert_eq!(admit(key, 11), Admission::Refused(RejectReason::OutOfBounds));
        assert_eq!(admit(other.key(), 11), Admission::Yes, "another key, another region");
        assert_eq!(admit(key, 10), Admission::Yes);
        region.withdraw();
        assert_eq!(admit(key, 10), Admission::Refused(RejectReason::NoRegion));
        assert!(!regions.release_withdrawn(0, |_| false) && region.is_free());
        assert!(regions.get(key).is_none() && regions.get(other.key()).is_some());
    }
}
