//! Forks of this process.
#![expect(unsafe_code, reason = "the system calls a function in the child")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns a number that differs between this process and a process that was forked from it after the first call.
///
/// A forked process has copies of the parent's hosts without their threads, and shares their sockets. Any use of these hosts
/// would disturb the parent.
#[must_use]
pub fn forks() -> u32 {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        // SAFETY: the function only adds to an atomic number, which is allowed in the child of a process with threads.
        // The call fails only if there is no memory for the entry.
        unsafe { libc::pthread_atfork(None, None, Some(count)) };
    });
    FORKS.load(Ordering::Relaxed)
}
