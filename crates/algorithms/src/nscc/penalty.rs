//! The penalty of a receiver whose buffer fills up (UEC `apply_cwnd_penalty`).

use super::params::Penalty;

/// Number of steps of the fill level of a receiver's buffer (Falcon's five bits).
const LEVELS: f64 = 32.0;
/// The largest penalty: about a packet per RTT (UEC: 7 bits).
const MOST: f64 = 127.0;

impl Penalty {
    /// Returns the penalty, 0 to 127, of a buffer filled to this level: linear between its bounds.
    pub(super) fn of(&self, level: u8) -> u64 {
        let filled = f64::from(level) / LEVELS;
        let part = (filled - self.from) / (self.full - self.from);
        (part.clamp(0.0, 1.0) * MOST) as u64
    }
}

/// The window before the receiver penalised the flow; `None` without a penalty (UEC `saved_cwnd`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Penalised(Option<u64>);

impl Penalised {
    /// Applies the penalty of an acknowledgement of `bytes` to a window of at least `least` bytes, with
    /// `in_flight` bytes in flight. Returns the window, and whether it must not grow now.
    pub(super) fn apply(
        &mut self,
        rules: &Penalty,
        penalty: u64,
        (cwnd, least): (u64, u64),
        (bytes, in_flight): (u64, u64),
    ) -> (u64, bool) {
        if penalty == 0 {
            let before = self.0.take().filter(|_| rules.restores);
            return (before.unwrap_or(cwnd), false);
        }
        self.0.get_or_insert(cwnd);
        let less = (penalty * bytes) >> 7;
        (cwnd.min(in_flight).saturating_sub(less).max(least), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Penalty = Penalty { from: 0.25, full: 0.75, restores: true };

    /// 8 of 32 are a quarter, 24 three quarters; 16 are half way: 63.5.
    #[test]
    fn the_penalty_is_linear_between_a_quarter_and_three_quarters() {
        for (level, penalty) in [(0, 0), (8, 0), (16, 63), (20, 95), (24, 127), (31, 127)] {
            assert_eq!(RULES.of(level), penalty, "{level}");
        }
    }

    /// Takes 64 / 128 of 40 000 acknowledged bytes off the 60 000 in flight, never below a packet; then the
    /// earlier window returns.
    #[test]
    fn the_window_shrinks_to_what_is_in_flight_and_returns() {
        let mut penalised = Penalised::default();
        let heard = (40_000, 60_000);
        assert_eq!(penalised.apply(&RULES, 0, (100_000, 4160), heard), (100_000, false));
        assert_eq!(penalised.apply(&RULES, 64, (100_000, 4160), heard), (40_000, true));
        assert_eq!(penalised.apply(&RULES, 127, (40_000, 4160), (40_000, 1000)), (4160, true));
        let mut forgets = penalised;
        let rules = Penalty { restores: false, ..RULES };
        assert_eq!(forgets.apply(&rules, 0, (4160, 4160), heard), (4160, false));
        assert_eq!(penalised.apply(&RULES, 0, (4160, 4160), heard), (100_000, false));
        assert_eq!(penalised.apply(&RULES, 0, (90_000, 4160), heard), (90_000, false));
    }
}
