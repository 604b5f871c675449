//! An engine's access to the regions of its host.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apus_units::{FlowId, OpId, Span, Time};
use apus_wire::{RegionKey, RejectReason};

use super::inbox::Admission;
use super::op_table::OpTable;
use crate::grant::{Access, Caller};
use crate::region::{Regions, Registered};

/// Interval between checks whether withdrawn regions can be released. deviation: no source; short for an application
/// that waits for its memory, long for an engine.
const CHECK_INTERVAL: Span = Span::from_ms(10);

/// The regions of a host from the view of one engine.
pub(super) struct RegionAccess {
    /// Number of the engine.
    engine: u32,
    regions: Arc<Regions>,
    /// Region that packets have named last. Rationale: a lookup takes two locks.
    last: Option<Arc<Registered>>,
    seen_withdrawals: u64,
    /// Number of changes of grants at the last check of the rights to answers that are being sent.
    seen_grants: u64,
    /// Withdrawn regions that answers still need.
    needed: Needed,
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
            needed: Needed::default(),
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

    /// Returns the region that was used last. The packets of an aggregate probably use it again.
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

    /// Cancels answers from revoked regions, and answers to peers that have lost their rights. Releases withdrawn
    /// regions that no answer needs. `caller` returns the peer of a flow.
    #[inline]
    pub(super) fn handle_withdrawals(
        &mut self,
        now: Time,
        ops: &mut OpTable,
        caller: impl Fn(FlowId) -> Option<Caller>,
    ) {
        let withdrawals = self.regions.withdrawals.load(Ordering::Acquire);
        if withdrawals != self.seen_withdrawals {
            self.seen_withdrawals = withdrawals;
            self.check(now, ops, caller);
        } else if now >= self.next_check {
            let free = self.needed.check_again(|flow| ops.endpoint.answers_of(flow));
            self.release(now, free);
        }
    }

    #[cold]
    fn check(&mut self, now: Time, ops: &mut OpTable, caller: impl Fn(FlowId) -> Option<Caller>) {
        self.last = None;
        let grants = self.regions.grants();
        let changed = replace(&mut self.seen_grants, grants) != grants;
        let checked = self.regions.to_check(changed);
        let may_go_on = |region: &Registered, flow| {
            let allowed = || caller(flow).is_some_and(|caller| region.hold(&caller).is_ok());
            !region.is_revoked() && (!changed || !region.is_restricted() || allowed())
        };
        let lost = self.needed.check(&checked, ops.endpoint.answers(), may_go_on);
        for (flow, op) in lost {
            ops.refuse_read(now, flow, op, RejectReason::Withdrawn);
        }
        let withdrawn = checked.iter().filter(|region| region.is_withdrawn());
        let free = withdrawn.map(|region| region.key).filter(|&key| !self.needed.has(key));
        let free = free.collect();
        drop(checked);
        self.release(now, free);
    }

    fn release(&mut self, now: Time, free: Vec<RegionKey>) {
        self.regions.release(self.engine, &free);
        self.next_check = if self.needed.is_empty() { Time::MAX } else { now + CHECK_INTERVAL };
    }

    /// Stops using regions, permanently.
    pub(super) fn leave(&mut self) {
        self.last = None;
        self.regions.leave(self.engine);
    }
}

/// Withdrawn regions from which answers are being sent, with the flows of these answers, in the order of keys. No
/// answer begins after the withdrawal. Therefore each withdrawal checks all answers once, and later checks visit only
/// the flows listed here, until their answers have ended.
#[derive(Default)]
struct Needed(Vec<(RegionKey, Vec<FlowId>)>);

impl Needed {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, key: RegionKey) -> bool {
        self.0.binary_search_by_key(&key, |&(key, _)| key).is_ok()
    }

    /// Checks all `answers`, which are grouped by flow. `regions` are the regions to check, in the order of their keys.
    /// Returns the answers that must not continue.
    fn check(
        &mut self,
        regions: &[Arc<Registered>],
        answers: impl Iterator<Item = (FlowId, OpId, RegionKey)>,
        may_go_on: impl Fn(&Registered, FlowId) -> bool,
    ) -> Vec<(FlowId, OpId)> {
        self.0.clear();
        let mut lost = Vec::new();
        if regions.is_empty() {
            return lost;
        }
        self.0.extend(regions.iter().map(|region| (region.key, Vec::new())));
        for (flow, op, key) in answers {
            let place = regions.binary_search_by_key(&key, |region| region.key);
            let Ok(place) = place else { continue };
            let flows = &mut self.0[place].1;
            if !may_go_on(&regions[place], flow) {
                lost.push((flow, op));
            } else if flows.last() != Some(&flow) {
                flows.push(flow);
            }
        }
        let mut regions = regions.iter();
        self.0.retain(|(_, flows)| {
            regions.next().is_some_and(|region| region.is_withdrawn()) && !flows.is_empty()
        });
        lost
    }

    /// Removes and returns the regions that no answer needs any more. `answers` returns the regions of a flow's answers
    /// and is called at most once per flow.
    fn check_again<A: Iterator<Item = RegionKey>>(
        &mut self,
        answers: impl Fn(FlowId) -> A,
    ) -> Vec<RegionKey> {
        let mut known: BTreeMap<FlowId, BTreeSet<RegionKey>> = BTreeMap::new();
        let free = self.0.extract_if(.., |(key, flows)| {
            while let Some(&flow) = flows.last() {
                if known.entry(flow).or_insert_with(|| answers(flow).collect()).contains(key) {
                    return false;
                }
                flows.pop();
            }
            true
        });
        free.map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

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
        regions.release(0, &[key]);
        assert!(region.is_free());
        assert!(regions.get(key).is_none() && regions.get(other.key()).is_some());
    }
    /// 1000 withdrawn regions, and 10,000 flows, each with an answer from one of the regions.
    #[test]
    fn each_answer_is_looked_at_once_per_withdrawal_and_then_at_most_once_per_check() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let all: Vec<Region> = (0..1_000)
            .map(|_| Region::new(&regions, Box::new(vec![0u8; 1]), Access::READ, None))
            .map(|region| region.expect("room"))
            .collect();
        all.iter().for_each(Region::withdraw);
        let checked = regions.to_check(false);
        assert_eq!(checked.len(), 1_000);
        let visits = Cell::new(0);
        let visit = || visits.set(visits.get() + 1);
        let answers = (0..10_000u32)
            .map(|n| (FlowId::new(n), OpId::new(0), checked[n as usize % checked.len()].key));
        let mut needed = Needed::default();
        let lost = needed.check(&checked, answers.inspect(|_| visit()), |_, _| true);
        assert_eq!((visits.replace(0), lost.len(), needed.0.len()), (10_000, 0, 1_000));
        let key_of = |flow: FlowId| checked[flow.index() % checked.len()].key;
        // While no answer ends, one flow per region shows that the region is still needed.
        for _ in 0..10 {
            let free = needed.check_again(|flow| [key_of(flow)].into_iter().inspect(|_| visit()));
            assert_eq!((visits.replace(0), free.len()), (1_000, 0));
        }
        // The answers end one by one, from either end of the list. Each end costs at most one further visit.
        let order = (0..5_000u32).flat_map(|n| [n, 9_999 - n]);
        let mut ended = vec![false; 10_000];
        let mut free = 0;
        for (n, flow) in order.enumerate() {
            ended[flow as usize] = true;
            if n % 100 == 99 {
                let answers = |flow: FlowId| {
                    visit();
                    (!ended[flow.index()]).then(|| key_of(flow)).into_iter()
                };
                free += needed.check_again(answers).len();
            }
        }
        assert_eq!((free, needed.is_empty()), (1_000, true));
        assert!(visits.get() <= 10_000 + 100 * 1_000, "{}", visits.get());
        // One flow with an answer from every region.
        visits.set(0);
        let all = || checked.iter().map(|region| region.key).inspect(|_| visit());
        let answers = all().map(|key| (FlowId::new(0), OpId::new(0), key));
        needed.check(&checked, answers, |_, _| true);
        assert_eq!(visits.replace(0), 1_000);
        assert!(needed.check_again(|_| all()).is_empty());
        assert_eq!(visits.get(), 1_000);
    }

    #[test]
    fn answers_of_revoked_regions_end_and_those_of_regions_in_use_go_on() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let region = || Region::new(&regions, Box::new(vec![0u8; 1]), Access::READ, None);
        let [revoked, withdrawn, used] = [(); 3].map(|()| region().expect("room"));
        revoked.revoke();
        withdrawn.withdraw();
        let answer = |flow, op, region: &Region| (FlowId::new(flow), OpId::new(op), region.key());
        let answers = [
            answer(0, 0, &revoked),
            answer(0, 1, &withdrawn),
            answer(0, 2, &used),
            answer(3, 0, &withdrawn),
            answer(3, 1, &withdrawn),
            answer(3, 2, &revoked),
        ];
        let mut needed = Needed::default();
        let checked = regions.to_check(false);
        let lost = needed.check(&checked, answers.into_iter(), |region, _| !region.is_revoked());
        let ops: Vec<_> = lost.iter().map(|(flow, op)| (flow.index(), op.get())).collect();
        assert_eq!(ops, [(0, 0), (3, 2)]);
        assert!(needed.has(withdrawn.key()) && !needed.has(revoked.key()));
        assert_eq!(needed.0.len(), 1);
        let of_first = |flow: FlowId| (flow.index() == 0).then(|| withdrawn.key()).into_iter();
        assert!(needed.check_again(of_first).is_empty());
        assert_eq!(needed.check_again(|_| std::iter::empty()), [withdrawn.key()]);
    }
}
