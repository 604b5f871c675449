//! Whether an engine was held off from its core while timers fell due, and so must read what came meanwhile first.

use apus_units::{Span, Time};

/// An engine that has not looked at its timers for this long, though some may have been due, was held off: timeouts
/// that fell due meanwhile say nothing before what came meanwhile is read. deviation: no source; above the longest
/// step. Where steps take longer, timers wait for at most [`CATCH_UP`] datagrams, and nothing else changes.
const HELD_OFF: Span = Span::from_ms(1);
/// Datagrams for which an engine that was held off may leave timers alone, to read. deviation: no source; more
/// than a socket's buffer of 4 MB holds.
const CATCH_UP: u64 = 4096;

/// What an engine remembers of its timers.
#[derive(Debug)]
pub(super) struct HeldOff {
    /// Up to when nothing that was due is left undone.
    timed_at: Time,
    /// Datagrams read since, and steps in which timers were left alone.
    caught_up: u64,
}

impl HeldOff {
    pub(super) fn new() -> Self {
        Self { timed_at: Time::ZERO, caught_up: 0 }
    }

    /// Datagrams were read.
    #[inline]
    pub(super) fn on_read(&mut self, datagrams: u64) {
        self.caught_up += datagrams;
    }

    /// The engine has slept until `now`; nothing was due before `due`. What it overslept counts, what it slept does
    /// not.
    pub(super) fn on_slept(&mut self, due: Time, now: Time) {
        self.timed_at = due.min(now);
    }

    /// Whether timers must wait at `now`, because this engine was held off and has not read all that came.
    #[inline]
    pub(super) fn must_read(&mut self, now: Time, unread: bool) -> bool {
        let held_off = unread && now.since(self.timed_at) > HELD_OFF;
        if held_off && self.caught_up < CATCH_UP {
            self.caught_up += 1;
            return true;
        }
        self.timed_at = now;
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

    /// An engine that has just looked at its timers.
    fn timed(us: u64) -> HeldOff {
        let mut held_off = HeldOff::new();
        assert!(!held_off.must_read(at(us), false));
        held_off
    }

    #[test]
    fn timers_wait_for_what_came_while_the_engine_was_held_off() {
        assert!(!timed(10).must_read(at(1_010), true), "a long step");
        assert!(!timed(10).must_read(at(5_000), false), "everything is read");
        let mut held_off = timed(10);
        assert!(held_off.must_read(at(1_011), true) && held_off.must_read(at(1_100), true));
        assert!(!held_off.must_read(at(1_200), false), "it has read all");
        assert!(!held_off.must_read(at(1_300), true), "it is in time again");
    }

    #[test]
    fn timers_wait_no_longer_than_a_full_socket_takes_to_read() {
        let mut held_off = timed(0);
        held_off.on_read(CATCH_UP - 2);
        assert!(held_off.must_read(at(2_000), true) && held_off.must_read(at(2_000), true));
        assert!(!held_off.must_read(at(2_000), true));
    }

    #[test]
    fn sleep_is_no_hold_off_but_sleeping_over_what_is_due_is() {
        let mut held_off = timed(0);
        held_off.on_slept(Time::MAX, at(50_000));
        assert!(!held_off.must_read(at(50_010), true), "woken by the datagrams");
        let mut held_off = timed(0);
        held_off.on_slept(at(50_000), at(50_100));
        assert!(!held_off.must_read(at(50_110), true), "woken in time by a timer");
        let mut held_off = timed(0);
        held_off.on_slept(at(50_000), at(58_000));
        assert!(held_off.must_read(at(58_010), true), "it got its core 8 ms too late");
    }
}
