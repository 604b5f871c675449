//! How the engine looks at its sockets: with all that the kernel can say of a datagram, or plainly.
//!
//! Control messages, aggregation and batches cost a small round trip a sixth of its time (measured on
//! loopback), and say little to an engine that waits for datagrams which come one by one: it knows when they
//! came, as it has just looked in vain; they are not aggregated; and TTLs change with routes only. So such
//! an engine turns them off. What is known otherwise then:
//!
//! * t2 and t5: `now`, if a look less than [`KNOWN_WITHIN`] before was in vain; for any other datagram
//!   the kernel is asked when it received it;
//! * hops: those of the flow's last packet that had a TTL; every [`REFRESH`] some packets have;
//! * ECN marks: not while this side sends packets that can be marked, or has received some; a peer that begins to
//!   send them to one that does not is noticed within [`REFRESH`].
//!
//! Two datagrams waiting again and again end it, as does a flow of which no TTL is known.

use apus_units::{Span, Time};

/// Datagrams that come one by one before the engine looks plainly: switching takes five system calls.
/// deviation: no source; 0.5 us over 64 datagrams.
const SINGLES: u32 = 64;
/// Datagrams in a row that had waited, after which the engine looks for batches again. deviation: no source;
/// as many as one look for batches finds at first.
const WAITED: u32 = 4;
/// What came since a vain look this long ago came now. deviation: no source; a send and sixteen looks, between
/// which an inline engine does not read the clock, take 5 us; a twentieth of `base_target`.
const KNOWN_WITHIN: Span = Span::from_us(10);
/// How long the engine looks plainly before it sees TTL and ECN of some packets again. deviation: no source;
/// short for a change of routes, long beside 64 packets.
const REFRESH: Span = Span::from_ms(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Detailed,
    /// Aggregation is turned off after the next look in vain: of an aggregate that is in the socket then the kernel does
    /// not say any more that it is one, and it would be lost.
    Due,
    /// Aggregation is off; details are after the next look in vain.
    Turning,
    Plain,
}

/// What is to be turned off after a look in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    Nothing,
    Aggregation,
    /// Looks are plain from now on.
    Details,
}

/// What a look makes of those to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// They stay as they are.
    No,
    /// They may become plain, once two are in vain.
    Plain,
    /// They are detailed again.
    Back,
}

/// What the engine remembers of its looks.
#[derive(Debug)]
pub(super) struct Looks {
    stage: Stage,
    /// Whether it may look plainly at all.
    may: bool,
    singles: u32,
    waited: u32,
    /// The last look was in vain.
    empty: bool,
    /// A reading of the clock before the last look that was in vain.
    empty_after: Time,
    /// The last reading of the clock.
    read_at: Time,
    /// Not plainly before this, or no longer than until this.
    turn_at: Time,
}

impl Looks {
    pub(super) fn new(may: bool) -> Self {
        Self {
            stage: Stage::Detailed,
            may,
            singles: 0,
            waited: 0,
            empty: false,
            empty_after: Time::ZERO,
            read_at: Time::ZERO,
            turn_at: Time::ZERO,
        }
    }

    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.stage == Stage::Plain
    }

    #[inline]
    pub(super) fn is_detailed(&self) -> bool {
        self.stage == Stage::Detailed
    }

    /// The clock was read.
    #[inline]
    pub(super) fn on_clock(&mut self, now: Time) {
        self.read_at = now;
    }

    /// A look was in vain at every socket; what comes of it.
    #[inline]
    pub(super) fn on_nothing(&mut self) -> Off {
        self.empty = true;
        self.empty_after = self.read_at;
        match self.stage {
            Stage::Due => {
                self.stage = Stage::Turning;
                Off::Aggregation
            }
            Stage::Turning => {
                self.stage = Stage::Plain;
                self.waited = 0;
                Off::Details
            }
            Stage::Detailed | Stage::Plain => Off::Nothing,
        }
    }

    /// A look found something at `now`; whether it came just now.
    #[inline]
    pub(super) fn on_found(&mut self, now: Time) -> bool {
        let known = self.empty && now.since(self.empty_after) <= KNOWN_WITHIN;
        self.empty = false;
        self.read_at = now;
        known
    }

    /// A detailed look found a single datagram that came just now, or something else.
    #[inline]
    pub(super) fn on_detailed(&mut self, single: bool) -> Turn {
        self.singles = if single { self.singles.saturating_add(1) } else { 0 };
        let in_time = self.read_at < self.turn_at;
        match self.stage {
            Stage::Due | Stage::Turning if !(single && in_time) => Turn::Back,
            Stage::Detailed if self.may && self.singles >= SINGLES && !in_time => Turn::Plain,
            _ => Turn::No,
        }
    }

    /// A plain look found a datagram that came just now (`known`) or had waited; whether it is time to
    /// look in detail again.
    #[inline]
    pub(super) fn on_plain(&mut self, known: bool) -> bool {
        self.waited = if known { 0 } else { self.waited + 1 };
        self.waited >= WAITED || self.read_at >= self.turn_at
    }

    /// Whether datagrams wait behind each other.
    pub(super) fn is_crowded(&self) -> bool {
        self.waited >= WAITED
    }

    /// Looks become plain, unless more than single datagrams come before.
    pub(super) fn turn_plain(&mut self) {
        self.stage = Stage::Due;
        self.turn_at = self.read_at + REFRESH;
    }

    /// Details have been turned on.
    pub(super) fn turn_detailed(&mut self) {
        self.stage = Stage::Detailed;
        self.singles = 0;
        self.turn_at = Time::ZERO;
    }

    /// Somebody needs details: not plainly for a while.
    pub(super) fn hold(&mut self) {
        self.singles = 0;
        self.turn_at = self.read_at + REFRESH;
    }

    /// The kernel cannot say when something came.
    pub(super) fn forbid(&mut self) {
        self.may = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn what_waited_while_the_engine_did_not_look_is_not_taken_for_new() {
        let mut looks = Looks::new(true);
        assert!(!looks.on_found(at(0)), "it has not looked before");
        looks.on_clock(at(10));
        looks.on_nothing();
        assert!(looks.on_found(at(20)));
        assert!(!looks.on_found(at(20)), "the second of two");
        // It reads the clock, is held off, and looks in vain: what it finds next may be as old as that look,
        // and no older.
        looks.on_clock(at(20));
        looks.on_nothing();
        assert!(!looks.on_found(at(5_020)));
        // Held off between a vain look and the reading of the clock: the reading says nothing of that look.
        looks.on_nothing();
        looks.on_clock(at(9_000));
        assert!(!looks.on_found(at(9_001)));
    }

    #[test]
    fn it_turns_after_singles_in_a_row_once_the_socket_is_empty_and_back_when_they_wait() {
        let mut looks = Looks::new(true);
        for _ in 0..SINGLES - 1 {
            assert_eq!(looks.on_detailed(true), Turn::No);
        }
        assert_eq!(looks.on_detailed(false), Turn::No);
        for _ in 0..SINGLES - 1 {
            assert_eq!(looks.on_detailed(true), Turn::No);
        }
        assert_eq!(looks.on_detailed(true), Turn::Plain);
        looks.turn_plain();
        assert!(!looks.is_plain(), "aggregates may be in the socket");
        assert_eq!(looks.on_detailed(true), Turn::No, "it turns already");
        assert_eq!((looks.on_nothing(), looks.is_plain()), (Off::Aggregation, false));
        assert_eq!(looks.on_detailed(true), Turn::No, "it turns already");
        assert_eq!((looks.on_nothing(), looks.is_plain()), (Off::Details, true));
        assert_eq!(looks.on_nothing(), Off::Nothing, "it has turned");
        for _ in 0..WAITED - 1 {
            assert!(!looks.on_plain(false));
        }
        assert!(!looks.on_plain(true));
        for _ in 0..WAITED - 1 {
            assert!(!looks.on_plain(false));
        }
        assert!(looks.on_plain(false));
        looks.turn_detailed();
        assert!(looks.is_detailed());
        assert_eq!(looks.on_detailed(true), Turn::No);
    }

    /// Load that begins while aggregates may be in the socket, or lasts until details are due: the look in vain
    /// that would make looks plain does not come.
    #[test]
    fn a_turn_ends_where_more_than_single_datagrams_come_or_no_look_is_in_vain() {
        for (single, at_us, off) in [(false, 1, false), (false, 1, true), (true, 100_000, true)] {
            let mut looks = Looks::new(true);
            looks.turn_plain();
            if off {
                assert_eq!(looks.on_nothing(), Off::Aggregation);
            }
            assert_eq!(looks.on_detailed(true), Turn::No);
            looks.on_clock(at(at_us));
            assert_eq!(looks.on_detailed(single), Turn::Back);
            looks.turn_detailed();
            assert!(looks.on_nothing() == Off::Nothing && looks.is_detailed());
        }
    }

    #[test]
    fn details_are_seen_again_now_and_then_and_kept_where_they_are_needed() {
        let mut looks = Looks::new(true);
        looks.turn_plain();
        looks.on_nothing();
        assert_eq!(looks.on_nothing(), Off::Details);
        looks.on_found(at(99_999));
        assert!(!looks.on_plain(true));
        looks.on_found(at(100_000));
        assert!(looks.on_plain(true));
        looks.turn_detailed();
        looks.hold();
        assert!((0..2 * SINGLES).all(|_| looks.on_detailed(true) == Turn::No));
        looks.on_clock(at(200_000));
        assert_eq!(looks.on_detailed(true), Turn::Plain);
        looks.forbid();
        assert!((0..2 * SINGLES).all(|_| looks.on_detailed(true) == Turn::No));
    }
}
