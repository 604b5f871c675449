//! The path change of the `falcon` profile (PLB: protective load balancing).

use super::config::PathChange;

/// Counts the delayed packets of a window-round and the delayed rounds in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// Packets acknowledged in this round.
    acked: u32,
    /// Acknowledgements above the delay limit.
    delayed: u32,
    /// Delayed rounds in a row.
    rounds: u32,
    /// The label of the path in use.
    label: u32,
}

impl Path {
    /// The label of the path in use.
    pub(super) fn label(&self) -> u32 {
        self.label
    }

    /// `acked` packets were acknowledged at `delay` against `target` while the window was `cwnd`.
    /// A round ends when a window's worth of packets has been acknowledged (Falcon).
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        rule: &PathChange,
        (delay, target): (f64, f64),
        acked: u32,
        cwnd: f64,
    ) {
        self.acked = self.acked.saturating_add(acked);
        if delay > rule.delay_factor * target {
            self.delayed = self.delayed.saturating_add(acked);
        }
        let (all, delayed) = (f64::from(self.acked), f64::from(self.delayed));
        if all < cwnd || self.acked == 0 {
            return;
        }
        self.rounds = if delayed >= rule.delayed_fraction * all { self.rounds + 1 } else { 0 };
        if self.rounds >= rule.rounds {
            self.rounds = 0;
            self.label = self.label.wrapping_add(1);
        }
        (self.acked, self.delayed) = (0, 0);
    }
}
