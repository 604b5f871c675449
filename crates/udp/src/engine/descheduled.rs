//! Detects that an engine was descheduled past a timer. The engine then reads the pending datagrams before its timers
//! run.

use apus_units::{Span, Time};

/// Time without a check of the timers after which the engine counts as descheduled. Timeouts that fell due during this
/// time indicate nothing until the pending datagrams are read. deviation: no source; above the longest step. If steps
/// take longer, timers wait for at most [`MAX_CATCH_UP`] datagrams, without any other effect.
const DESCHEDULED_AFTER: Span = Span::from_ms(1);
/// Maximum number of datagrams that an engine reads before its timers run. deviation: no source; more than a socket's
/// buffer of 4 MB holds.
const MAX_CATCH_UP: u64 = 4096;

/// Records when an engine last checked its timers.
#[derive(Debug)]
pub(super) struct DescheduledDetector {
    /// All timers due before this time have run.
    checked_at: Time,
    /// Number of datagrams read since then, plus number of steps in which timers waited.
    caught_up: u64,
}

impl DescheduledDetector {
    pub(super) fn new() -> Self {
        Self { checked_at: Time::ZERO, caught_up: 0 }
    }

    /// Records that datagrams were read.
    #[inline]
    pub(super) fn on_read(&mut self, datagrams: u64) {
        self.caught_up += datagrams;
    }

    /// Records that the engine slept until `now`, and that no timer was due before `due`. Only the time slept past
    /// `due` counts.
    pub(super) fn on_slept(&mut self, due: Time, now: Time) {
        self.checked_at = due.min(now);
    }

    /// Returns `true` if timers must wait at `now`, because the engine was descheduled and has not read all pending
    /// datagrams.
    #[inline]
    pub(super) fn must_read(&mut self, now: Time, unread: bool) -> bool {
        let descheduled = unread && now.since(self.checked_at) > DESCHEDULED_AFTER;
        if descheduled && self.caught_up < MAX_CATCH_UP {
            self.caught_up += 1;
            return true;
        }
        self.checked_at = now;
        self.caught_up = 0;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Returns the detector of an engine that has just checked its timers.
    fn checked(us: u64) -> DescheduledDetector {
        let mut detector = DescheduledDetector::new();
        assert!(!detector.must_read(at(us), false));
        detector
    }

    #[test]
    fn timers_wait_until_a_descheduled_engine_has_read_its_datagrams() {
        assert!(!checked(10).must_read(at(1_010), true), "a long step");
        assert!(!checked(10).must_read(at(5_000), false), "no datagram is pending");
        let mut detector = checked(10);
        assert!(detector.must_read(at(1_011), true) && detector.must_read(at(1_100), true));
        assert!(!detector.must_read(at(1_200), false), "all datagrams are read");
        assert!(!detector.must_read(at(1_300), true), "on time again");
    }

    #[test]
    fn timers_wait_for_at_most_a_full_socket() {
        let mut detector = checked(0);
        detector.on_read(MAX_CATCH_UP - 2);
        assert!(detector.must_read(at(2_000), true) && detector.must_read(at(2_000), true));
        assert!(!detector.must_read(at(2_000), true));
    }

    #[test]
    fn sleep_does_not_count_but_sleep_past_a_timer_does() {
        let mut detector = checked(0);
        detector.on_slept(Time::MAX, at(50_000));
        assert!(!detector.must_read(at(50_010), true), "woken by the datagrams");
        let mut detector = checked(0);
        detector.on_slept(at(50_000), at(50_100));
        assert!(!detector.must_read(at(50_110), true), "woken in time by a timer");
        let mut detector = checked(0);
        detector.on_slept(at(50_000), at(58_000));
        assert!(detector.must_read(at(58_010), true), "woken 8 ms too late");
    }
}
