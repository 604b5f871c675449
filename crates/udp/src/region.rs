//! Memory that peers may read and write.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};

use apus_units::planted::{Bug, is_planted};
use apus_units::prefetch_start;
use apus_wire::{RegionKey, RejectReason};

use crate::atomic::AtomicOp;
use crate::containment::contain;
use crate::driver::{HeldMemory, HostId};
use crate::grant::{Access, Caller, Grant};
use crate::session::Randomness;
use crate::uses::Uses;

/// Memory of a region, or the target of a read.
///
/// Engines call these functions. Both must return the same bytes each time. If the memory shrinks, ops on the missing bytes fail,
/// or their bytes are not stored. If one of the functions panics, the engine ends: all its connections end as
/// [`End::EngineFailed`](crate::End::EngineFailed), and all its ops as unknown.
pub trait Memory: Send + Sync {
    /// Returns the bytes.
    fn bytes(&self) -> &[u8];
    /// Returns the bytes for writing.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Maximum length in bytes of reads and writes that are atomic.
///
/// One packet carries all bytes of such an op, and an engine locks the region while it copies the bytes of a packet. This
/// requires a path that carries packets of 1280 bytes, as all paths of IPv6 do (RFC 8200 §5). If the kernel knows of a smaller
/// MTU, packets have less payload, but at least 256 bytes.
pub const ATOMIC_BYTES: usize = 1024;

/// A registered region.
pub(crate) struct Registered {
    pub(crate) key: RegionKey,
    access: Access,
    /// The peers that may use the region; `None` for all peers. Engines hold this lock while they handle or build a
    /// packet, so that no packet takes effect for a peer after its right was taken away.
    grant: Option<RwLock<Grant>>,
    length: u64,
    memory: RwLock<Box<dyn Memory>>,
    uses: Uses,
    /// Whether the answers to outstanding reads are cancelled.
    revoked: AtomicBool,
}

impl Drop for Registered {
    /// Catches panics of the memory's destructor, because an engine may drop the last reference.
    fn drop(&mut self) {
        let nothing: Box<dyn Memory> = Box::new(Vec::new());
        let memory = self.memory.get_mut().unwrap_or_else(PoisonError::into_inner);
        let memory = std::mem::replace(memory, nothing);
        contain(|| drop(memory));
    }
}

impl Registered {
    /// Checks whether an op with this access and range is allowed.
    pub(crate) fn admit(
        &self,
        access: Access,
        address: u64,
        length: u64,
    ) -> Result<(), RejectReason> {
        if self.uses.is_withdrawn() && !is_planted(Bug::WithdrawnUsed) {
            return Err(RejectReason::NoRegion);
        }
        if !self.access.allows(access) && !is_planted(Bug::ReadOnlyWritten) {
            return Err(RejectReason::NotAllowed);
        }
        match address.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            Some(_) if is_planted(Bug::BeyondEnd) && address <= self.length => Ok(()),
            _ => Err(RejectReason::OutOfBounds),
        }
    }

    /// Returns the lock on a peer's right to use the region. While the lock is held, the right cannot be taken away.
    /// Returns `Ok(None)` if all peers have the right.
    pub(crate) fn hold(&self, caller: &Caller) -> Result<Option<Held<'_>>, RejectReason> {
        let Some(grant) = &self.grant else { return Ok(None) };
        let held = grant.read().unwrap_or_else(PoisonError::into_inner);
        // Any other reason would reveal that the region exists.
        if held.allows(caller) { Ok(Some(held)) } else { Err(RejectReason::NoRegion) }
    }

    /// Returns `true` if the region was withdrawn. No answer from it begins any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.uses.is_withdrawn()
    }

    /// Returns `true` if the answers to outstanding reads are cancelled.
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// Returns `true` if only some peers may use the region.
    pub(crate) fn is_restricted(&self) -> bool {
        self.grant.is_some()
    }

    fn lock(&self) -> Locked<'_> {
        self.memory.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `read` with the `length` bytes from `address`. The range must have been admitted. Returns `None` if the
    /// memory has shrunk since.
    pub(crate) fn read<T>(
        &self,
        address: u64,
        length: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let start = address as usize;
        if is_planted(Bug::ShrunkMemory) {
            return Some(read(&memory.bytes()[start..start + length]));
        }
        memory.bytes().get(start..start.checked_add(length)?).map(read)
    }
}

/// Maximum number of bytes to prefetch for the next packet. deviation: no source; a packet of Ethernet's 1500 bytes.
/// Longer packets are copied by an instruction that prefetches on its own, and a larger value brought no gain.
const PREFETCH_BYTES: usize = 1500;
/// Interval between attempts to lock a region with a time limit. deviation: no source; an engine holds the lock for
/// about as long.
const LOCK_INTERVAL: Duration = Duration::from_micros(20);
/// Number of bytes of a cache line.
const LINE: usize = 64;

/// A peer's right to use a region. The right cannot be taken away while this guard is held.
pub(crate) type Held<'a> = RwLockReadGuard<'a, Grant>;

type Locked<'a> = RwLockWriteGuard<'a, Box<dyn Memory>>;

/// Copies `bytes` to `address`. The range must have been admitted.
fn copy(memory: &mut Locked<'_>, address: u64, bytes: &[u8]) {
    if let Some(target) = memory.bytes_mut().get_mut(address as usize..) {
        let length = bytes.len().min(target.len());
        target[..length].copy_from_slice(&bytes[..length]);
    }
}

/// Prefetches up to `length` bytes from `address`.
#[inline]
fn prefetch_range(memory: &Locked<'_>, address: u64, length: usize) {
    let bytes = memory.bytes();
    if let Some(next) = bytes.get(address as usize..) {
        next[..length.min(next.len())].chunks(LINE).for_each(|line| prefetch_start(&line[0]));
    }
}

/// The region to which the packets of an aggregate probably store, and its lock, which is kept between stores.
/// Rationale: an unlock waits until the stores have reached the caches. If the caches do not contain the region, this
/// takes as long as the stores themselves. If the lock is kept, the next packet is decrypted meanwhile. The bytes
/// behind a store are prefetched, because the next packet usually continues the op.
///
/// While holding the lock, never block on anything that an application may hold while it waits for the region. Call
/// [`LockedRegion::release`] before.
#[derive(Default)]
pub(crate) struct LockedRegion<'a> {
    region: Option<&'a Registered>,
    locked: Option<Locked<'a>>,
}

impl<'a> LockedRegion<'a> {
    /// Returns the likely region, unlocked.
    pub(crate) fn new(likely: Option<&'a Registered>) -> Self {
        Self { region: likely, locked: None }
    }

    /// Copies `bytes` to `address` of `region`. The range must have been admitted.
    #[inline]
    pub(crate) fn store(&mut self, region: &Registered, address: u64, bytes: &[u8]) {
        match self.region {
            Some(held) if held.key == region.key => {
                let memory = self.locked.get_or_insert_with(|| held.lock());
                copy(memory, address, bytes);
                prefetch_range(
                    memory,
                    address + bytes.len() as u64,
                    bytes.len().min(PREFETCH_BYTES),
                );
            }
            _ => {
                self.release();
                copy(&mut region.lock(), address, bytes);
            }
        }
    }

    /// Executes an atomic op on the word at `address` of `region`. The range must have been admitted. Returns the word
    /// before the op, or `None` if the memory has shrunk since.
    #[inline]
    pub(crate) fn execute(
        &mut self,
        region: &Registered,
        address: u64,
        op: AtomicOp,
    ) -> Option<u64> {
        match self.region {
            Some(held) if held.key == region.key => {
                let memory = self.locked.get_or_insert_with(|| held.lock());
                op.execute(memory.bytes_mut(), address)
            }
            _ => {
                self.release();
                op.execute(region.lock().bytes_mut(), address)
            }
        }
    }

    /// Unlocks the region.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.locked = None;
    }
}

/// Maximum number of regions, which the low 16 bits of a region key distinguish.
const MAX_REGIONS: usize = 1 << 16;

/// All regions of a host.
pub(crate) struct Regions {
    /// Host that the regions belong to.
    pub(crate) host: HostId,
    table: RwLock<Vec<Option<Arc<Registered>>>>,
    /// Whether a region was ever registered for some peers only.
    any_restricted: AtomicBool,
    /// Number of withdrawals and changes of grants. Engines compare it to notice them.
    pub(crate) withdrawals: AtomicU64,
    /// Number of changes of grants.
    grants: AtomicU64,
    /// One bit per engine that has not ended.
    engines: AtomicU64,
    /// Source of the secret parts of region keys.
    random: Mutex<Randomness>,
}

impl Regions {
    pub(crate) fn new(engines: u32, randomness: impl Into<Randomness>) -> Self {
        Self {
            host: HostId::new(),
            table: RwLock::new(Vec::new()),
            any_restricted: AtomicBool::new(false),
            withdrawals: AtomicU64::new(0),
            grants: AtomicU64::new(0),
            engines: AtomicU64::new(u64::MAX >> (64 - engines)),
            random: Mutex::new(randomness.into()),
        }
    }

    fn register(
        &self,
        memory: Box<dyn Memory>,
        access: Access,
        grant: Option<Grant>,
    ) -> io::Result<Arc<Registered>> {
        if let Some(grant) = &grant {
            if !grant.is_for(self.host) {
                let what = "the grant names a connection of another host; give one of the host that \
                            registers the region";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            // This precedes the publication of the region key to peers.
            self.any_restricted.store(true, Ordering::Release);
        }
        let drawn = self.random.lock().unwrap_or_else(PoisonError::into_inner).bytes();
        let drawn = drawn.ok_or_else(|| io::Error::other("the system gives no randomness"))?;
        let [a, b, c, d, e, f, g, h, ..] = *drawn;
        let secret = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        // This calls code of the application, which may wait for a thread that uses the table. Therefore the table is
        // not locked yet.
        let length = memory.bytes().len() as u64;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let place = match table.iter().position(Option::is_none) {
            Some(place) => place,
            None if table.len() < MAX_REGIONS => {
                table.push(None);
                table.len() - 1
            }
            None => {
                let what = "65536 regions are registered; withdraw one";
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, what));
            }
        };
        let key = secret & !(MAX_REGIONS as u64 - 1) | place as u64;
        let registered = Arc::new(Registered {
            key: RegionKey::new(key),
            access,
            grant: grant.map(RwLock::new),
            length,
            memory: RwLock::new(memory),
            // The engines are read under the lock of the table, as in `leave`, so that no engine is missed.
            uses: Uses::new(self.engines.load(Ordering::Acquire)),
            revoked: AtomicBool::new(false),
        });
        table[place] = Some(Arc::clone(&registered));
        Ok(registered)
    }

    /// Returns the region with this key, even if it is withdrawn and still in use.
    pub(crate) fn get(&self, key: RegionKey) -> Option<Arc<Registered>> {
        let place = key.get() as usize % MAX_REGIONS;
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(place)?.as_ref().filter(|r| r.key == key || is_planted(Bug::TenantKey)).cloned()
    }

    /// Records that engine `engine` has ended and no longer uses any region.
    pub(crate) fn leave(&self, engine: u32) {
        let table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        self.engines.fetch_and(!(1 << engine), Ordering::AcqRel);
        for region in table.iter().flatten() {
            region.uses.leave(engine);
        }
        drop(table);
        self.remove_free();
    }

    /// Removes the withdrawn regions that no engine uses. Their memory is dropped after the table has been unlocked,
    /// because dropping it runs code of the application.
    fn remove_free(&self) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let take =
            |place: &mut Option<_>| place.take_if(|r: &mut Arc<Registered>| r.uses.is_free());
        let free: Vec<_> = table.iter_mut().filter_map(take).collect();
        drop(table);
        drop(free);
    }

    /// Returns `true` if there may be regions that only some peers may use.
    #[inline]
    pub(crate) fn any_restricted(&self) -> bool {
        self.any_restricted.load(Ordering::Acquire)
    }

    /// Returns the number of changes of grants.
    pub(crate) fn grants(&self) -> u64 {
        self.grants.load(Ordering::Acquire)
    }

    /// Returns the withdrawn regions that are still in use, and with `restricted` also the regions that only some peers
    /// may use, in the order of their keys.
    pub(crate) fn to_check(&self, restricted: bool) -> Vec<Arc<Registered>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = |r: &&Arc<Registered>| r.is_withdrawn() || restricted && r.is_restricted();
        let mut regions: Vec<_> = table.iter().flatten().filter(wanted).cloned().collect();
        drop(table);
        regions.sort_unstable_by_key(|region| region.key);
        regions
    }

    /// Records that engine `engine` no longer sends bytes from these withdrawn regions.
    pub(crate) fn release(&self, engine: u32, keys: &[RegionKey]) {
        let mut any_free = false;
        for region in keys.iter().filter_map(|&key| self.get(key)) {
            region.uses.leave(engine);
            any_free |= region.uses.is_free();
        }
        if any_free {
            self.remove_free();
        }
    }
}

/// A registered region. Dropping it withdraws the region.
pub struct Region {
    registered: Arc<Registered>,
    regions: Arc<Regions>,
}

impl Region {
    pub(crate) fn new(
        regions: &Arc<Regions>,
        memory: Box<dyn Memory>,
        access: Access,
        grant: Option<Grant>,
    ) -> io::Result<Self> {
        let registered = regions.register(memory, access, grant)?;
        Ok(Self { registered, regions: Arc::clone(regions) })
    }

    /// Returns the region key. Every connected peer that knows the key has access, unless the region was registered for some
    /// peers ([`Host::register_for`](crate::Host::register_for)).
    #[must_use]
    pub fn key(&self) -> RegionKey {
        self.registered.key
    }

    /// Records that this thread holds the memory of the region.
    fn hold(&self) -> HeldMemory {
        HeldMemory::new(self.regions.host, self.key())
    }

    /// Calls `read` with the bytes of the region, which do not change during the call.
    ///
    /// Peers can still read the region, but an engine that receives a write to the region waits. A waiting engine does nothing
    /// else, not even for other regions or connections, so the call must be short. Calls in `read` that would wait for the same
    /// host are refused ([`End::WouldDeadlock`](crate::End::WouldDeadlock)).
    ///
    /// A write of a peer that is longer than [`ATOMIC_BYTES`] is not atomic. Its packets are stored one by one, or as aggregates
    /// of up to 64 kB, and `read` may see some of them without the rest.
    pub fn read<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let memory = self.registered.memory.read().unwrap_or_else(PoisonError::into_inner);
        let _held = self.hold();
        read(memory.bytes())
    }

    /// Calls `change` with the bytes of the region. An engine that receives a read or a write of the region waits, as in
    /// [`Region::read`].
    ///
    /// A read of a peer that is longer than [`ATOMIC_BYTES`] is not atomic: each packet of the answer carries the bytes at the
    /// time of its sending.
    pub fn write<T>(&self, change: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut memory = self.registered.memory.write().unwrap_or_else(PoisonError::into_inner);
        let _held = self.hold();
        change(memory.bytes_mut())
    }

    /// Locks the memory of the region until the guard is dropped, as [`Region::write`] does during its call. Returns `None` if
    /// `timeout` has passed; a `timeout` of `None` waits without limit.
    ///
    /// While the guard lives, engines that receive packets for the region wait and do nothing else. Hold the guard only briefly,
    /// and do not access the region in any other way during that time. Calls of this thread that would wait for the same host are
    /// refused ([`End::WouldDeadlock`](crate::End::WouldDeadlock)).
    pub fn lock(&self, timeout: Option<Duration>) -> Option<RegionGuard<'_>> {
        let memory = match timeout {
            None => self.registered.memory.write().unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                let from = Instant::now();
                loop {
                    match self.registered.memory.try_write() {
                        Ok(memory) => break memory,
                        Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                        Err(TryLockError::WouldBlock) if from.elapsed() >= timeout => return None,
                        Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
                    }
                }
            }
        };
        Some(RegionGuard { memory, _held: self.hold() })
    }

    /// Sets which peers may use the region, if it was registered for some peers
    /// ([`Host::register_for`](crate::Host::register_for)). Returns `false`, and changes nothing, if the region was registered
    /// for all peers, or if the grant names a connection of another host.
    ///
    /// After the call has returned, no byte of the region is read or changed for a peer that has lost the right. Later packets of
    /// the peer's ops are refused, as if the region did not exist. Its reads that are being answered end as unknown, with
    /// [`Cause::Withdrawn`](crate::Cause::Withdrawn). Bytes that were sent before may still arrive.
    ///
    /// Do not call this function within [`Region::read`] or [`Region::write`], or while a [`RegionGuard`] of the region lives: an
    /// engine that waits for the region would wait for the caller.
    pub fn set_grant(&self, grant: Grant) -> bool {
        let Some(place) = &self.registered.grant else { return false };
        if !grant.is_for(self.regions.host) {
            return false;
        }
        // Waits until engines have handled their current packets.
        *place.write().unwrap_or_else(PoisonError::into_inner) = grant;
        self.regions.grants.fetch_add(1, Ordering::AcqRel);
        self.regions.withdrawals.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Withdraws the region: later ops of peers are refused. Outstanding answers to reads are completed.
    pub fn withdraw(&self) {
        if self.registered.uses.withdraw() {
            self.regions.withdrawals.fetch_add(1, Ordering::AcqRel);
            if self.is_free() {
                // All engines have ended before.
                self.regions.remove_free();
            }
        }
    }

    /// Withdraws the region and gives up the outstanding answers to reads. At the peers, these reads end as unknown, with
    /// [`Cause::Withdrawn`](crate::Cause::Withdrawn). A peer that acknowledges no answers can therefore not hold the memory.
    pub fn revoke(&self) {
        self.withdraw();
        if !self.registered.revoked.swap(true, Ordering::AcqRel) {
            self.regions.withdrawals.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns `true` if the region was withdrawn and no engine uses its memory any more. An engine that sleeps notices the
    /// withdrawal when it wakes ([`Host::look`](crate::Host::look)).
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.registered.uses.is_free()
    }
}

/// Locked memory of a region ([`Region::lock`]). The thread that locked the region must drop the guard.
pub struct RegionGuard<'a> {
    memory: Locked<'a>,
    _held: HeldMemory,
}

impl Deref for RegionGuard<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.bytes()
    }
}

impl DerefMut for RegionGuard<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_locks_a_region_for_a_bounded_time() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let memory = Box::new(vec![0u8; 4]);
        let region = Region::new(&regions, memory, Access::ALL, None).expect("room");
        let mut first = region.lock(Some(Duration::ZERO)).expect("nobody else");
        assert!(crate::driver::holds_locks());
        first[1] = 7;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| region.lock(Some(Duration::from_millis(1))).is_none());
            assert!(other.join().expect("no panic"), "it was locked meanwhile");
        });
        drop(first);
        assert!(!crate::driver::holds_locks());
        let again = region.lock(None).expect("free");
        assert_eq!(&again[..], [0, 7, 0, 0]);
    }

    /// Memory whose owner accesses the table of regions in its destructor and when it is asked for its length.
    struct Shy(Arc<Regions>);

    impl Drop for Shy {
        fn drop(&mut self) {
            assert!(self.0.table.try_write().is_ok(), "the table is locked");
        }
    }

    impl Memory for Shy {
        fn bytes(&self) -> &[u8] {
            assert!(self.0.table.try_write().is_ok(), "the table is locked");
            &[]
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut []
        }
    }

    #[test]
    fn code_of_the_application_runs_while_the_table_is_unlocked() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let shy = || Box::new(Shy(Arc::clone(&regions)));
        let first = Region::new(&regions, shy(), Access::ALL, None).expect("room");
        let key = first.key();
        drop(first);
        regions.release(0, &[key]);
        assert!(regions.table.read().expect("lock").iter().all(Option::is_none), "removed");
        drop(Region::new(&regions, shy(), Access::ALL, None).expect("room"));
        regions.leave(0);
        assert!(regions.table.read().expect("lock").iter().all(Option::is_none), "removed");
    }

    #[test]
    fn a_region_beyond_the_limit_is_an_error_of_its_own_kind() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let region = || Region::new(&regions, Box::new(vec![0u8; 4]), Access::READ, None);
        let first = region().expect("room");
        let taken = Some(Arc::clone(&first.registered));
        regions.table.write().expect("lock").resize(MAX_REGIONS, taken);
        let refused = region().err().expect("no room");
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded, "{refused}");
    }

    #[test]
    fn stores_lock_one_region_at_a_time_until_it_is_released() {
        let regions = Arc::new(Regions::new(1, Randomness::System));
        let region =
            || Region::new(&regions, Box::new(vec![0u8; 4]), Access::WRITE, None).expect("room");
        let (likely, other) = (region(), region());
        let free = |region: &Region| region.registered.memory.try_write().is_ok();
        let mut held = LockedRegion::new(Some(&likely.registered));
        assert!(free(&likely), "nothing was stored");
        held.store(&likely.registered, 1, &[1, 2]);
        assert!(!free(&likely) && free(&other));
        held.store(&other.registered, 3, &[3]);
        assert!(free(&likely) && free(&other), "a lock is released before another is taken");
        held.store(&likely.registered, 2, &[4, 5, 6]);
        assert!(!free(&likely));
        held.release();
        assert!(free(&likely));
        held.store(&likely.registered, 0, &[7]);
        drop(held);
        assert_eq!(
            likely.read(<[u8]>::to_vec),
            [7, 1, 4, 5],
            "bytes beyond the end are not stored"
        );
        assert_eq!(other.read(<[u8]>::to_vec), [0, 0, 0, 3]);
        LockedRegion::default().store(&other.registered, 0, &[8]);
        assert!(other.read(|bytes| bytes[0] == 8) && free(&other));
    }
}
