//! The path change of the `falcon` profile (PLB: protective load balancing).

use super::config::PathChange;
use crate::balancers::CongestedRounds;

/// The label of the path in use, and the rounds of delayed packets after which it changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    rounds: CongestedRounds,
    label: u32,
}

impl Path {
    /// The label of the path in use.
    pub(super) fn label(&self) -> u32 {
        self.label
    }

    /// Records that `acked` packets were acknowledged at `delay` against `target` while the window was `cwnd`.
    /// A round ends when a window of packets has been acknowledged (Falcon).
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        rule: &PathChange,
        (delay, target): (f64, f64),
        acked: u32,
        cwnd: f64,
    ) {
        let delayed = if delay > rule.delay_factor * target { acked } else { 0 };
        let in_a_row = self.rounds.on_ack((acked, delayed), cwnd, rule.delayed_fraction);
        if in_a_row.is_some_and(|rounds| rounds >= rule.rounds) {
            self.rounds.in_a_row = 0;
            self.label = self.label.wrapping_add(1);
        }
    }
}
