//! `apus_region`: the caller's memory, for peers to use.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use apus_udp::session::PeerKey;
use apus_udp::{Access, Grant, Region, RegionGuard, WordError};

use crate::connection::apus_connection;
use crate::failure::{Failure, Status, call};
use crate::host::{FOREVER, OfHost, Shared, apus_host, free, handle};
use crate::pointer::{Foreign, Out, given, hand_out, put};

/// Time that answers to peers' reads have to end before they are given up. deviation: no source; rationale: thousands of
/// round trips of a datacenter, so that only a peer that no longer acknowledges loses its answers, and short enough for a
/// caller that waits. The speed of this machine does not matter, because the answers wait for the peer.
const GRACE: Duration = Duration::from_secs(1);
/// Interval between two checks whether a region is free.
const CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// A region.
pub struct apus_region {
    /// The lock that the caller holds, with its thread. Dropped before the region, which it borrows.
    locked: Mutex<Option<Lock>>,
    /// Boxed, so that its address does not change.
    region: Box<Region>,
    host: Arc<Shared>,
}

/// A lock that the caller holds.
struct Lock {
    /// [`this_thread`] of the caller.
    thread: u64,
    _guard: RegionGuard<'static>,
}

// SAFETY: only the thread that made the guard drops it: `apus_region_unlock` checks this, and the header forbids freeing a
// region that another thread has locked. If a caller does so nevertheless, any thread may release the lock of the standard
// library on Linux, and locks of other threads do not change.
unsafe impl Send for Lock {}

/// Returns the number of the calling thread. A thread keeps its number until it has ended, even while it runs the destructors
/// of thread-specific values, when [`std::thread::current`] panics.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

impl OfHost for apus_region {
    fn shared(&self) -> &Shared {
        &self.host
    }
}

impl apus_region {
    fn new(region: Region, host: &Arc<Shared>) -> Self {
        Self { locked: Mutex::new(None), region: Box::new(region), host: Arc::clone(host) }
    }

    fn locked(&self) -> MutexGuard<'_, Option<Lock>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the calling thread has not locked the region, because another access by this thread would wait for the
    /// thread itself.
    fn check_unlocked(&self) -> Result<(), Failure> {
        if self.locked().as_ref().is_some_and(|lock| lock.thread == this_thread()) {
            let what =
                "this thread has locked the region; access its memory itself, or unlock it first";
            return Err(Failure::invalid(what));
        }
        Ok(())
    }
}

impl Drop for apus_region {
    /// Returns the memory to the caller. A peer that does not acknowledge its answers delays this for at most the grace time.
    fn drop(&mut self) {
        *self.locked() = None;
        let from = Instant::now();
        self.region.withdraw();
        while !self.region.is_free() {
            if from.elapsed() >= GRACE {
                self.region.revoke();
            }
            self.host.host.look();
            sleep(CHECK_INTERVAL);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_region_register(
    host: Option<&apus_host>,
    memory: *mut c_void,
    length: usize,
    access: i32,
    region: Out<'_, Box<apus_region>>,
) -> i32 {
    hand_out(region, "region", || {
        let host = handle(host, "host")?;
        // SAFETY: the header requires memory that is not accessed until the region is freed.
        let memory = unsafe { Foreign::new(memory, length, "memory") }?;
        let region = host.shared.host.register(memory, kinds(access)?);
        let region = region.map_err(|error| not_registered(&error))?;
        Ok(apus_region::new(region, &host.shared))
    })
}

/// Returns the failure for a region that cannot be registered.
fn not_registered(error: &io::Error) -> Failure {
    let status = match error.kind() {
        io::ErrorKind::QuotaExceeded => Status::TooMany,
        _ => Status::System,
    };
    Failure::new(status, error.to_string())
}

/// Returns the kinds of access of a sum of `APUS_READ`, `APUS_WRITE` and `APUS_ATOMIC`.
fn kinds(access: i32) -> Result<Access, Failure> {
    u8::try_from(access).ok().and_then(Access::from_bits).ok_or_else(|| {
        Failure::invalid(format!(
            "`access` must be APUS_READ, APUS_WRITE, APUS_ATOMIC or several of them, not {access}"
        ))
    })
}

/// `apus_grant`: the peers that may use a region.
#[repr(C)]
pub struct apus_grant {
    connection: *const apus_connection,
    keys: *const [u8; 32],
    count: usize,
}

impl apus_grant {
    /// Returns the grant of a region of this host.
    ///
    /// # Safety
    /// The connection is a handle or NULL, and `keys` points to `count` keys.
    unsafe fn read(&self, host: &Arc<Shared>) -> Result<Grant, Failure> {
        // SAFETY: the caller guarantees this.
        let connection = unsafe { self.connection.as_ref() };
        match connection {
            Some(connection) if self.count == 0 && connection.is_of(host) => {
                Ok(Grant::connection(&connection.connection))
            }
            Some(_) if self.count == 0 => {
                let what = "`grant->connection` is a connection of another host than the region's";
                Err(Failure::invalid(what))
            }
            Some(_) => Err(Failure::invalid("`grant` has a connection and keys; give one of them")),
            None if self.count > 0 && self.keys.is_null() => {
                Err(Failure::invalid("`grant->keys` is NULL"))
            }
            None if self.count == 0 => Ok(Grant::nobody()),
            None => {
                // SAFETY: the caller guarantees this.
                let keys = unsafe { std::slice::from_raw_parts(self.keys, self.count) };
                let key = |(i, bytes): (usize, &[u8; 32])| {
                    PeerKey::new(*bytes).ok_or_else(|| {
                        Failure::invalid(format!("`grant->keys[{i}]` is not a public key"))
                    })
                };
                let keys = keys.iter().enumerate().map(key).collect::<Result<Vec<_>, _>>()?;
                Ok(Grant::keys(keys))
            }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_region_register_for(
    host: Option<&apus_host>,
    memory: *mut c_void,
    length: usize,
    access: i32,
    grant: Option<&apus_grant>,
    region: Out<'_, Box<apus_region>>,
) -> i32 {
    hand_out(region, "region", || {
        let (host, grant) = (handle(host, "host")?, given(grant, "grant")?);
        // SAFETY: the header requires memory that is not accessed until the region is freed, and a grant.
        let (memory, grant) =
            unsafe { (Foreign::new(memory, length, "memory")?, grant.read(&host.shared)?) };
        let region = host.shared.host.register_for(memory, kinds(access)?, grant);
        let region = region.map_err(|error| not_registered(&error))?;
        Ok(apus_region::new(region, &host.shared))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_region_set_grant(
    region: Option<&apus_region>,
    grant: Option<&apus_grant>,
) -> i32 {
    call(|| {
        let region = handle(region, "region")?;
        region.check_unlocked()?;
        // SAFETY: the header requires a grant.
        let grant = unsafe { given(grant, "grant")?.read(&region.host) }?;
        if !region.region.set_grant(grant) {
            let what = "the region was registered for all peers; use apus_region_register_for";
            return Err(Failure::invalid(what));
        }
        region.host.host.look();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_lock(region: Option<&apus_region>, timeout_ns: u64) -> i32 {
    call(|| {
        let region = handle(region, "region")?;
        region.check_unlocked()?;
        let timeout = (timeout_ns != FOREVER).then(|| Duration::from_nanos(timeout_ns));
        let guard = region.region.lock(timeout).ok_or_else(Failure::timeout)?;
        // SAFETY: the region is boxed, and outlives the guard: the destructor of `apus_region` drops the guard first.
        let guard = unsafe { std::mem::transmute::<RegionGuard<'_>, RegionGuard<'static>>(guard) };
        *region.locked() = Some(Lock { thread: this_thread(), _guard: guard });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_unlock(region: Option<&apus_region>) -> i32 {
    call(|| {
        let region = handle(region, "region")?;
        let mut locked = region.locked();
        if locked.as_ref().is_none_or(|lock| lock.thread != this_thread()) {
            return Err(Failure::invalid("this thread has not locked the region"));
        }
        // The memory is released before another call can see it as unlocked.
        *locked = None;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_key(region: Option<&apus_region>) -> u64 {
    region.map_or(0, |region| region.region.key().get())
}

/// Calls `access` with the region and stores its result. Returns the status.
fn word(
    region: Option<&apus_region>,
    result: Out<'_, u64>,
    name: &str,
    access: impl FnOnce(&Region) -> Result<u64, WordError>,
) -> i32 {
    call(|| {
        let region = handle(region, "region")?;
        let result = given(result, name)?;
        region.check_unlocked()?;
        put(Some(result), access(&region.region)?, name)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_load(
    region: Option<&apus_region>,
    address: u64,
    value: Out<'_, u64>,
) -> i32 {
    word(region, value, "value", |region| region.load(address))
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_store(region: Option<&apus_region>, address: u64, value: u64) -> i32 {
    call(|| {
        let region = handle(region, "region")?;
        region.check_unlocked()?;
        Ok(region.region.store(address, value)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_compare_and_swap(
    region: Option<&apus_region>,
    address: u64,
    expected: u64,
    desired: u64,
    old: Out<'_, u64>,
) -> i32 {
    word(region, old, "old", |region| region.compare_and_swap(address, expected, desired))
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_fetch_add(
    region: Option<&apus_region>,
    address: u64,
    delta: u64,
    old: Out<'_, u64>,
) -> i32 {
    word(region, old, "old", |region| region.fetch_add(address, delta))
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_free(region: Option<Box<apus_region>>) {
    free(region);
}
