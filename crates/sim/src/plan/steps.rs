//! Steps in which a run proceeds.

use apus_units::Span;

/// Number of times that a run reports progress and checks for a request to stop. deviation: no source; half a
/// percent per step.
const STEPS: u64 = 200;
/// Maximum length of a step, for long runs: a thousand busy hosts take one second of real time to simulate it.
const LONGEST: Span = Span::from_ms(1);
/// Minimum length of a step in time windows, for short runs. Rationale: parts of the network wait for each
/// other at every step. deviation: no source.
const SHORTEST_WINDOWS: u64 = 16;

/// Returns the length of a step of a run on links whose smallest delay is `window`: a whole number of
/// windows, so that a step never divides a window. A run holds the ops of one step of
/// [`Plan::streamed`](super::Plan::streamed), and those that their flows cannot accept yet.
#[must_use]
pub fn step_length(duration: Span, window: Span) -> Span {
    let step = (duration / STEPS).clamp(Span::from_ps(1), LONGEST);
    if window.is_zero() {
        return step;
    }
    let windows = |span: Span| span.as_ps() / window.as_ps();
    let most = windows(LONGEST).max(1);
    window * windows(step).max(SHORTEST_WINDOWS).min(most)
}
