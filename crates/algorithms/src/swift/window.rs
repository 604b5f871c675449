//! A congestion window with its guard (Swift Alg. 1).

use apus_units::{Span, Time};

use super::config::Rules;
use apus_cc::PacketSizeEvent;

/// Parameters of increase and decrease, equal for both windows of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Aimd {
    /// Additive increment in packets per RTT.
    pub ai: f64,
    /// Multiplicative decrease constant.
    pub beta: f64,
    /// `1 - max_mdf`, the smallest factor of a decrease.
    pub min_factor: f64,
    /// Bounds in packets (Alg. 1 l. 26).
    pub min_cwnd: f64,
    /// The ceiling limits the window that is not the bottleneck (Swift §3.3 footnote 3): that window grows on
    /// every ACK and would otherwise be far too large when it becomes the bottleneck.
    pub max_cwnd: f64,
    /// Decides when the guard's marker moves.
    pub rules: Rules,
}

/// A congestion window in packets, and when it last decreased.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    cwnd: f64,
    /// Alg. 1 `t_last_decrease`; [`Time::MAX`] before the first decrease.
    last_decrease: Time,
}

impl Window {
    /// A window that has never decreased.
    pub(super) fn new(cwnd: f64) -> Self {
        Self { cwnd, last_decrease: Time::MAX }
    }

    /// The window in packets.
    #[inline]
    pub(super) fn packets(&self) -> f64 {
        self.cwnd
    }

    /// Overwrites the window and the time of its last decrease, for replays.
    pub(super) fn set(&mut self, cwnd: Option<f64>, last_decrease: Option<Time>) {
        self.cwnd = cwnd.unwrap_or(self.cwnd);
        self.last_decrease = last_decrease.unwrap_or(self.last_decrease);
    }

    /// Adapts the window to another packet size: its size in bytes and its guard remain.
    pub(super) fn scale(&mut self, aimd: &Aimd, event: &PacketSizeEvent) {
        self.cwnd = event.scaled(self.cwnd).max(aimd.min_cwnd).min(aimd.max_cwnd);
    }

    /// Picoseconds since the last decrease. The clock of a transport may wrap around.
    #[inline]
    fn age(&self, now: Time) -> u64 {
        if self.last_decrease == Time::MAX {
            return u64::MAX;
        }
        now.as_ps().wrapping_sub(self.last_decrease.as_ps())
    }

    /// Alg. 1 l. 3: at most one decrease per `rtt`.
    #[inline]
    pub(super) fn can_decrease(&self, now: Time, rtt: Span) -> bool {
        self.age(now) >= rtt.as_ps()
    }

    /// Alg. 1 l. 7-14 for one window: `delay` and `target` in one unit, `acked` packets.
    #[inline]
    pub(super) fn on_delay(
        &mut self,
        aimd: &Aimd,
        (now, rtt): (Time, Span),
        (delay, target): (f64, f64),
        acked: f64,
    ) {
        let mut cwnd = self.cwnd;
        if delay < target {
            let step = aimd.ai * acked;
            cwnd += if cwnd >= 1.0 { step / cwnd } else { step };
        } else if self.can_decrease(now, rtt) {
            cwnd *= decrease_factor(aimd, delay, target);
        }
        self.settle(aimd, cwnd, now, rtt);
    }

    /// The receiver-buffer window (Falcon): `increase` packets per ACK while the level is below
    /// its target, otherwise the decrease of Alg. 1 with levels for delays.
    #[inline]
    pub(super) fn on_level(
        &mut self,
        aimd: &Aimd,
        (now, rtt): (Time, Span),
        (level, target): (f64, f64),
        increase: f64,
    ) {
        let mut cwnd = self.cwnd;
        if level < target {
            cwnd += increase;
        } else if self.can_decrease(now, rtt) {
            cwnd *= decrease_factor(aimd, level, target);
        }
        self.settle(aimd, cwnd, now, rtt);
    }

    /// Alg. 1 l. 20-21 and 24-25: cut by `max_mdf` unless the guard forbids it.
    pub(super) fn cut(&mut self, aimd: &Aimd, now: Time, rtt: Span) {
        let allowed = self.can_decrease(now, rtt);
        let cwnd = if allowed { self.cwnd * aimd.min_factor } else { self.cwnd };
        self.settle(aimd, cwnd, now, rtt);
    }

    /// Alg. 1 l. 18: lowers the window to the minimum.
    pub(super) fn collapse(&mut self, aimd: &Aimd, now: Time, rtt: Span) {
        self.settle(aimd, aimd.min_cwnd, now, rtt);
    }

    /// Alg. 1 l. 26-28: clamps the window, and notes the time of a decrease.
    ///
    /// deviation: line 27 reads `cwnd <= cwnd_prev`. Taken literally, a decrease that the guard blocked would
    /// move the marker as well, and while ACKs stay above the target the next decrease would be postponed for
    /// ever. The marker moves only if the window really shrank. Falcon also moves it while the window is at its
    /// minimum. In Falcon, a marker older than one RTT follows at that distance, which keeps a wrapping clock
    /// safe.
    #[inline]
    fn settle(&mut self, aimd: &Aimd, cwnd: f64, now: Time, rtt: Span) {
        let cwnd = if cwnd > aimd.min_cwnd { cwnd } else { aimd.min_cwnd };
        let cwnd = if cwnd < aimd.max_cwnd { cwnd } else { aimd.max_cwnd };
        if cwnd < self.cwnd {
            self.last_decrease = now;
        } else if aimd.rules == Rules::Falcon {
            if cwnd <= aimd.min_cwnd {
                self.last_decrease = now;
            } else if self.age(now) > rtt.as_ps() {
                self.last_decrease = Time::from_ps(now.as_ps().wrapping_sub(rtt.as_ps()));
            }
        }
        self.cwnd = cwnd;
    }
}

/// Alg. 1 l. 14: `max(1 - beta * (delay - target) / delay, 1 - max_mdf)`, where `delay >= target`
/// and `target > 0`.
#[inline]
fn decrease_factor(aimd: &Aimd, delay: f64, target: f64) -> f64 {
    let factor = 1.0 - aimd.beta * ((delay - target) / delay);
    if factor > aimd.min_factor { factor } else { aimd.min_factor }
}
