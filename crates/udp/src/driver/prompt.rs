//! How soon the thread of a leader waits again.
//!
//! A server takes a message, answers it and waits for the next one. Its acknowledgement and its answer can then leave
//! together, and its thread can keep the lead, if the answer comes at once.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time within which a thread that waits again is prompt. deviation: no source; about the time to wake a thread on an idle
/// core, which a peer saves if an acknowledgement and an answer reach it together.
const PROMPT: Duration = Duration::from_micros(100);
/// Number of prompt returns in succession after which the next one is expected to be prompt. deviation: no source; the
/// fourth shows that the first was no accident, and a single late one ends the expectation.
const EXPECTED_AFTER: u32 = 4;

/// How soon a thread waited again after its last waits. Several engines that one thread waits for are told apart by their
/// numbers.
#[derive(Debug, Default)]
pub(super) struct Promptness {
    /// The engine of the last wait that ended, and when it did.
    ended: Cell<Option<(usize, Instant)>>,
    /// Prompt returns to this engine in succession.
    prompt: Cell<(usize, u32)>,
}

impl Promptness {
    /// Records that a wait for `engine` has ended.
    pub(super) fn on_ended(&self, engine: usize, now: Instant) {
        self.ended.set(Some((engine, now)));
    }

    /// Records that a wait for `engine` begins.
    pub(super) fn on_wait(&self, engine: usize, now: Instant) {
        let Some((last, at)) = self.ended.take() else { return };
        let (counted, returns) = self.prompt.get();
        let prompt = last == engine && now.saturating_duration_since(at) <= PROMPT;
        let returns = match prompt {
            true if counted == engine => returns.saturating_add(1),
            true => 1,
            false => 0,
        };
        self.prompt.set((engine, returns));
    }

    /// Returns `true` if the thread is expected to wait for `engine` again at once, when its wait ends.
    pub(super) fn is_expected(&self, engine: usize) -> bool {
        let (counted, returns) = self.prompt.get();
        counted == engine && returns >= EXPECTED_AFTER
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
    fn fifth_prompt_return_is_expected_and_a_late_one_ends_that() {
        let promptness = Promptness::default();
        returns(&promptness, 1, &[3, 100, 0]);
        assert!(!promptness.is_expected(1));
        returns(&promptness, 1, &[10]);
        assert!(promptness.is_expected(1) && !promptness.is_expected(2));
        returns(&promptness, 1, &[101]);
        assert!(!promptness.is_expected(1));
        returns(&promptness, 1, &[1, 1, 1]);
        assert!(!promptness.is_expected(1), "it is counted from 0 again");
    }

    #[test]
    fn thread_that_waits_for_engines_in_turn_is_not_expected_back() {
        let promptness = Promptness::default();
        returns(&promptness, 1, &[1; 10]);
        let now = Instant::now();
        promptness.on_ended(1, now);
        promptness.on_wait(2, now);
        assert!(!promptness.is_expected(1) && !promptness.is_expected(2));
    }
}
