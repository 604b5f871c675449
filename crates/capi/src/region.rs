//! `apus_region`: the caller's memory, for peers to use.

use std::ffi::c_void;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use apus_udp::{Access, Region, WordError};

use crate::failure::{Failure, Status, call};
use crate::host::{Shared, apus_host};
use crate::pointer::{Foreign, Out, given, hand_out, put};

/// Time that answers to peers' reads have to end before they are given up. deviation: no source; rationale: thousands of
/// round trips of a datacenter, so that only a peer that no longer acknowledges loses its answers, and short enough for
/// a caller that waits. The speed of this machine does not matter: the answers wait for the peer.
const GRACE: Duration = Duration::from_secs(1);
/// Interval between two checks whether a region is free.
const CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// A region.
pub struct apus_region {
    region: Region,
    host: Arc<Shared>,
}

impl Drop for apus_region {
    /// The memory is the caller's again when this ends. A peer that does not take its answers holds it up for
    /// the time of grace at most.
    fn drop(&mut self) {
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
        let host = given(host, "host")?;
        // SAFETY: the header requires memory that is not accessed until the region is freed.
        let memory = unsafe { Foreign::new(memory, length, "memory") }?;
        let access = match access {
            1 => Access::Read,
            2 => Access::Write,
            3 => Access::ReadWrite,
            other => {
                return Err(Failure::invalid(format!(
                    "`access` must be APUS_READ, APUS_WRITE or both, not {other}"
                )));
            }
        };
        let region = host.shared.host.register(memory, access);
        let region = region.map_err(|e| Failure::new(Status::System, e.to_string()))?;
        Ok(apus_region { region, host: Arc::clone(&host.shared) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn apus_region_key(region: Option<&apus_region>) -> u64 {
    region.map_or(0, |region| region.region.key().get())
}

/// Calls `access` with the region and stores its result; returns the status.
fn word(
    region: Option<&apus_region>,
    result: Out<'_, u64>,
    name: &str,
    access: impl FnOnce(&Region) -> Result<u64, WordError>,
) -> i32 {
    call(|| {
        let region = given(region, "region")?;
        let result = given(result, name)?;
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
    call(|| Ok(given(region, "region")?.region.store(address, value)?))
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
extern "C" fn apus_region_free(_: Option<Box<apus_region>>) {}
