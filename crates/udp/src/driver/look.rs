//! How long a leader looks for datagrams before it sleeps.
//!
//! A sleeping thread is woken after microseconds, on an idle core after tens of them. A thread that looks again and again
//! finds a datagram at once, but takes a core meanwhile. The time adapts as in Linux's haltpoll governor
//! (drivers/cpuidle/governors/haltpoll.c), which decides the same for an idle virtual core: it grows if sleeps turn out to be
//! short, and shrinks if they are long. In addition no thread looks while more threads want to run than there are cores.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Longest look: haltpoll's `guest_halt_poll_ns`.
const LONGEST: Duration = Duration::from_micros(200);
/// The first look after none: haltpoll's `guest_halt_poll_grow_start`.
const FIRST: Duration = Duration::from_micros(50);
/// Factor by which it grows and shrinks: haltpoll's `guest_halt_poll_grow` and `guest_halt_poll_shrink`.
const FACTOR: u32 = 2;
/// Time for which a count of runnable threads is used. deviation: no source; a count takes about 3 us.
const COUNTED_FOR: Duration = Duration::from_millis(1);
/// Time after which a count above the number of cores is repeated before it has an effect: threads that run for microseconds, such
/// as those that keep time, want no core. deviation: no source; several times such a run.
const REPEATED_AFTER: Duration = Duration::from_micros(50);
/// Time for which a thread looks before it has the threads counted again, so that an answer that comes at once is not delayed by
/// the count. deviation: no source; a few counts.
const UNCOUNTED: Duration = Duration::from_micros(20);
/// Time for which no thread looks after a count above the number of cores. deviation: no source; three time slices of Linux.
const CROWDED_FOR: Duration = Duration::from_millis(10);

/// Returns the next limit after a sleep that ended after `waited`.
fn adapted(limit: Duration, waited: Duration) -> Duration {
    if waited > LONGEST {
        limit / FACTOR
    } else if waited > limit {
        (limit * FACTOR).clamp(FIRST, LONGEST)
    } else {
        limit
    }
}

/// Returns the number of runnable threads of the machine from the text of /proc/loadavg: "0.20 0.18 0.12 1/80 11206".
fn runnable(loadavg: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(loadavg).ok()?;
    text.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

/// The limit of looks for one engine, and the count of runnable threads.
pub(super) struct Look {
    limit_ns: AtomicU64,
    /// /proc/loadavg; `None` if it cannot be read, so that nobody looks.
    loadavg: Option<File>,
    cores: usize,
    /// Time of the first count.
    epoch: Instant,
    /// Time until which the count is used, nanoseconds since `epoch`.
    counted_until: AtomicU64,
    crowded: AtomicBool,
    /// Whether the last count was above the number of cores.
    above: AtomicBool,
}

impl Look {
    pub(super) fn new() -> Self {
        Self {
            limit_ns: AtomicU64::new(0),
            loadavg: File::open("/proc/loadavg").ok(),
            // Respects affinities and quotas.
            cores: available_parallelism().map_or(1, usize::from),
            epoch: Instant::now(),
            counted_until: AtomicU64::new(0),
            crowded: AtomicBool::new(false),
            above: AtomicBool::new(false),
        }
    }

    /// Returns `true` if a thread that has looked since `since` does not sleep yet.
    pub(super) fn goes_on(&self, since: Instant, now: Instant) -> bool {
        let limit = Duration::from_nanos(self.limit_ns.load(Ordering::Relaxed));
        let looked = now.saturating_duration_since(since);
        looked < limit && !self.is_crowded(looked, now)
    }

    /// Records that a sleep ended `waited` after the look began.
    pub(super) fn on_slept(&self, waited: Duration) {
        let limit = Duration::from_nanos(self.limit_ns.load(Ordering::Relaxed));
        // At most `LONGEST`.
        self.limit_ns.store(adapted(limit, waited).as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns `true` if more threads want to run than there are cores; a thread asks that has `looked` for so long.
    fn is_crowded(&self, looked: Duration, now: Instant) -> bool {
        let at = now.saturating_duration_since(self.epoch).as_nanos() as u64;
        let crowded = self.crowded.load(Ordering::Relaxed);
        let counted = at < self.counted_until.load(Ordering::Relaxed);
        if !counted && (crowded || looked >= UNCOUNTED) {
            let above = self.count().is_none_or(|running| running > self.cores);
            let again = self.above.swap(above, Ordering::Relaxed);
            let (crowded, used_for) = match above {
                true if again => (true, CROWDED_FOR),
                true => (false, REPEATED_AFTER),
                false => (false, COUNTED_FOR),
            };
            self.crowded.store(crowded, Ordering::Relaxed);
            self.counted_until.store(at + used_for.as_nanos() as u64, Ordering::Relaxed);
            return crowded;
        }
        crowded
    }

    fn count(&self) -> Option<usize> {
        let mut text = [0; 64];
        let length = self.loadavg.as_ref()?.read_at(&mut text, 0).ok()?;
        runnable(&text[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// The limits after sleeps that ended after these numbers of microseconds.
    fn limits<const N: usize>(mut limit: Duration, waited_us: [u64; N]) -> [Duration; N] {
        waited_us.map(|waited| {
            limit = adapted(limit, us(waited));
            limit
        })
    }

    /// As `adjust_poll_limit` of haltpoll does with its default parameters.
    #[test]
    fn limit_grows_with_short_sleeps_and_shrinks_with_long_ones() {
        assert_eq!(limits(us(0), [10, 10, 60, 120, 200]), [50, 50, 100, 200, 200].map(us));
        assert_eq!(limits(us(200), [201, 10_000, 40, 60]), [100, 50, 50, 100].map(us));
    }

    #[test]
    fn limit_of_a_thread_that_sleeps_long_ends_at_nothing() {
        let limits = limits(us(200), [10_000; 18]);
        assert_eq!(limits[17], Duration::ZERO);
    }

    /// The example of proc_loadavg(5), and other texts.
    #[test]
    fn number_of_runnable_threads_is_read_from_loadavg() {
        assert_eq!(runnable(b"0.20 0.18 0.12 1/80 11206\n"), Some(1));
        assert_eq!(runnable(b"12.00 8.10 3.12 13/2080 11206\n"), Some(13));
        assert_eq!((runnable(b""), runnable(b"0.20 0.18 0.12")), (None, None));
    }

    #[test]
    fn nobody_looks_while_threads_wait_for_a_core_or_if_that_is_unknown() {
        let mut look = Look::new();
        look.on_slept(us(10));
        let mut now = look.epoch + us(100);
        look.cores = usize::MAX;
        let counts = look.loadavg.is_some();
        assert_eq!(look.goes_on(now - us(49), now), counts);
        assert!(!look.goes_on(now - us(50), now), "the limit");
        // The count is used for a millisecond, and then until a thread has looked for a while.
        look.cores = 0;
        assert_eq!(look.goes_on(now - us(49), now), counts);
        now += COUNTED_FOR;
        assert_eq!(look.goes_on(now - us(19), now), counts);
        // This thread runs and there is no core: counted twice.
        assert_eq!(look.goes_on(now - us(20), now), counts);
        now += REPEATED_AFTER;
        assert!(!look.goes_on(now - us(20), now));
        look.cores = usize::MAX;
        assert!(!look.goes_on(now, now + us(10)), "for a while");
        now += CROWDED_FOR;
        assert_eq!(look.goes_on(now, now), counts);
        look.loadavg = None;
        now += COUNTED_FOR;
        look.goes_on(now - us(20), now);
        now += REPEATED_AFTER;
        assert!(!look.goes_on(now - us(20), now));
    }
}
