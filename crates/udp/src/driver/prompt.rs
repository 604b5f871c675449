//! Predicts whether a thread waits soon: after the end of its last wait, and after it has submitted an op.
//!
//! A server takes a message, answers it and waits for the next one. If the answer follows at once, the acknowledgement
//! of the message can be sent together with the answer, and the thread can keep the lead. A client submits an op and
//! waits for its completion. The client can take the lead before the op is sent, so that the answer wakes no other
//! thread.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time within which a wait counts as prompt. deviation: no source; a sixth of the default target of the endpoint
/// delay, which includes the time for which an acknowledgement is held.
const PROMPT: Duration = Duration::from_micros(250);
/// Number of points from which the next wait is expected to be prompt, and maximum number of points. A prompt wait adds
/// a point. deviation: no source; with [`LATE`], a thread is still expected to be prompt if one wait in ten is late,
/// for example because another thread took its core.
const EXPECTED_FROM: u32 = 16;
const MAX_POINTS: u32 = 32;
/// Number of points that a late wait subtracts.
const LATE: u32 = 8;

/// Record of how soon a thread waited in the past. If one thread waits for several engines, their numbers distinguish
/// them.
#[derive(Debug, Default)]
pub(super) struct Promptness {
    /// Waits after the end of a wait.
    again: Habit,
    /// Waits after the submission of an op.
    after_op: Habit,
}

/// Record of whether a thread waits soon after an event.
#[derive(Debug, Default)]
struct Habit {
    /// Engine and time of the last event, if no wait has followed yet.
    event: Cell<Option<(usize, Instant)>>,
    /// The engine counted last, and the points of its events.
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

    /// Records that an op was submitted to `engine` at `now`. Returns `true` if the thread is expected to wait at once.
    pub(super) fn on_submit(&self, engine: usize, now: Instant) -> bool {
        if self.after_op.event.get().is_some() {
            // No wait has followed the previous op.
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

    /// Returns `true` if the thread is expected to wait for `engine` again at once after the end of its current wait.
    pub(super) fn is_expected(&self, engine: usize) -> bool {
        self.again.is_expected(engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a thread that waits again for `engine` after each of these numbers of microseconds.
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
