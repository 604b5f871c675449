//! How soon a thread waits: again after a wait, and after it has submitted an op.
//!
//! A server takes a message, answers it and waits for the next one. Its acknowledgement and its answer can then leave
//! together, and its thread can keep the lead, if the answer comes at once. A client submits an op and waits for its end. It can
//! take the lead before the op leaves, so that the answer wakes no other thread.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time within which a thread that waits is prompt. deviation: no source; a sixth of the default target of the endpoint delay,
/// which contains the time for which an acknowledgement is held.
const PROMPT: Duration = Duration::from_micros(250);
/// Points from which the next wait is expected to be prompt, and their maximum. A prompt wait is a point. deviation: no source;
/// with [`LATE`], threads are expected to be prompt whose waits are late once in ten times, as if another thread took their core.
const EXPECTED_FROM: u32 = 16;
const MAX_POINTS: u32 = 32;
/// Points that a late wait takes.
const LATE: u32 = 8;

/// How soon a thread waited in the past. Several engines that one thread waits for are told apart by their numbers.
#[derive(Debug, Default)]
pub(super) struct Promptness {
    /// Waits after a wait.
    again: Habit,
    /// Waits after an op was submitted.
    after_op: Habit,
}

/// Whether a thread waits soon after an event.
#[derive(Debug, Default)]
struct Habit {
    /// The engine of the last event, and when it was, if no wait has followed yet.
    event: Cell<Option<(usize, Instant)>>,
    /// An engine, and the points for its events.
    points: Cell<(usize, u32)>,
}

impl Habit {
    fn on_event(&self, engine: usize, now: Instant) {
        self.event.set(Some((engine, now)));
    }

    fn on_wait(&self, engine: usize, now: Instant) {
        let Some((last, at)) = self.event.take() else { return };
        self.count(engine, last == engine && now.saturating_duration_since(at) <= PROMPT);
    }

    fn count(&self, engine: usize, prompt: bool) {
        let (counted, points) = self.points.get();
        let before = if counted == engine { points } else { 0 };
        let points =
            if prompt { (before + 1).min(MAX_POINTS) } else { before.saturating_sub(LATE) };
        self.points.set((engine, points));
    }

    fn is_expected(&self, engine: usize) -> bool {
        let (counted, points) = self.points.get();
        counted == engine && points >= EXPECTED_FROM
    }
}

impl Promptness {
    /// Records that a wait for `engine` has ended.
    pub(super) fn on_ended(&self, engine: usize, now: Instant) {
        self.again.on_event(engine, now);
    }

    /// Records that an op was submitted to `engine` at `now`, and returns `true` if the thread is expected to wait at once.
    pub(super) fn on_submit(&self, engine: usize, now: Instant) -> bool {
        if self.after_op.event.get().is_some() {
            // No wait has followed the op before.
            self.after_op.count(engine, false);
        }
        self.after_op.on_event(engine, now);
        self.after_op.is_expected(engine)
    }

    /// Records that a wait for `engine` begins.
    pub(super) fn on_wait(&self, engine: usize, now: Instant) {
        self.again.on_wait(engine, now);
        self.after_op.on_wait(engine, now);
    }

    /// Returns `true` if the thread is expected to wait for `engine` again at once, when its wait ends.
    pub(super) fn is_expected(&self, engine: usize) -> bool {
        self.again.is_expected(engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a thread wait again for `engine` after each of these numbers of microseconds.
    fn returns(promptness: &Promptness, engine: usize, after_us: &[u64]) {
        let mut now = Instant::now();
        for &us in after_us {
            promptness.on_ended(engine, now);
            now += Duration::from_micros(us);
            promptness.on_wait(engine, now);
        }
    }

    #[test]
    fn prompt_return_is_expected_after_sixteen_until_three_of_thirty_two_are_late() {
        let promptness = Promptness::default();
        returns(&promptness, 1, &[3; 15]);
        assert!(!promptness.is_expected(1));
        returns(&promptness, 1, &[250]);
        assert!(promptness.is_expected(1) && !promptness.is_expected(2));
        returns(&promptness, 1, &[251]);
        assert!(!promptness.is_expected(1), "8 points are left");
        returns(&promptness, 1, &[1; 100]);
        returns(&promptness, 1, &[251; 2]);
        assert!(promptness.is_expected(1));
        returns(&promptness, 1, &[251]);
        assert!(!promptness.is_expected(1));
    }

    #[test]
    fn thread_that_waits_for_engines_in_turn_is_not_expected_back() {
        let promptness = Promptness::default();
        returns(&promptness, 1, &[1; 20]);
        let now = Instant::now();
        promptness.on_ended(1, now);
        promptness.on_wait(2, now);
        assert!(!promptness.is_expected(1) && !promptness.is_expected(2));
    }

    #[test]
    fn thread_that_waits_after_each_op_is_expected_to_until_it_submits_several() {
        let (promptness, now) = (Promptness::default(), Instant::now());
        for _ in 0..16 {
            assert!(!promptness.on_submit(1, now));
            promptness.on_wait(1, now + Duration::from_micros(5));
        }
        assert!(promptness.on_submit(1, now), "the 17th");
        assert!(!promptness.on_submit(1, now), "no wait has followed the last one");
        assert!(!promptness.is_expected(1), "no wait has ended");
    }
}
