//! `apus_region`: the caller's memory, for peers to use.

use std::ffi::c_void;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use apus_udp::{Access, Region};

use crate::failure::{Failure, Status, call};
use crate::host::{Shared, apus_host};
use crate::pointer::{Foreign, get, hand_out, take_back};

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
    host: *const apus_host,
    memory: *mut c_void,
    length: usize,
    access: i32,
    region: *mut *mut apus_region,
) -> i32 {
    call(|| {
        let make = || {
            // SAFETY: the header requires a handle, and memory that is not accessed until the
            // region is freed.
            let (host, memory) =
                unsafe { (get(host, "host")?, Foreign::new(memory, length, "memory")?) };
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
            let registered = host.shared.host.register_memory(Box::new(memory), access);
            let region =
                registered.map_err(|error| Failure::new(Status::System, error.to_string()))?;
            Ok(apus_region { region, host: Arc::clone(&host.shared) })
        };
        // SAFETY: the header requires room for a pointer.
        unsafe { hand_out(region, "region", make) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_region_key(region: *const apus_region) -> u64 {
    // SAFETY: the header requires a handle.
    unsafe { get(region, "region") }.map_or(0, |region| region.region.key().get())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn apus_region_free(region: *mut apus_region) {
    // SAFETY: the header requires a handle or NULL.
    unsafe { take_back(region) };
}
