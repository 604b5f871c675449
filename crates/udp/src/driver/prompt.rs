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
/// Number of prompt waits in succession after which the next one is expected to be prompt. deviation: no source; a single
/// late one ends the expectation, so at most one wait in 17 is late although it was expected.
const EXPECTED_AFTER: u32 = 16;

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
    /// Events of this engine in succession that a wait followed soon.
    prompt: Cell<(usize, u32)>,
}

impl Habit {
    fn on_event(&self, engine: usize, now: Instant) {
        self.event.set(Some((engine, now)));
    }

    fn on_wait(&self, engine: usize, now: Instant) {
        let Some((last, at)) = self.event.take() else { return };
        let (counted, before) = self.prompt.get();
        let prompt = last == engine && now.saturating_duration_since(at) <= PROMPT;
        let waits = match prompt {
            true if counted == engine => before.saturating_add(1),
            true => 1,
            false => 0,
        };
        self.prompt.set((engine, waits));
    }

    fn is_expected(&self, engine: usize) -> bool {
        let (counted, waits) = self.prompt.get();
        counted == engine && waits >= EXPECTED_AFTER
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
            self.after_op.prompt.set((engine, 0));
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
    fn seventeenth_prompt_return_is_expected_and_a_late_one_ends_that() {
        let promptness = Promptness::default();
        returns(&promptness, 1, &[3; 15]);
        assert!(!promptness.is_expected(1));
        returns(&promptness, 1, &[250]);
        assert!(promptness.is_expected(1) && !promptness.is_expected(2));
        returns(&promptness, 1, &[251]);
        assert!(!promptness.is_expected(1));
        returns(&promptness, 1, &[1; 15]);
        assert!(!promptness.is_expected(1), "it is counted from 0 again");
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
    fn thread_that_waits_after_each_op_is_expected_to_until_it_submits_two() {
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
