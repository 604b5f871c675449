//! The median of the last delays of a flow.

use apus_units::Span;

/// Maximum number of delays kept. deviation: the paper keeps half a window, of any size. 128 is half of the
/// window of 800 Gb/s and 10 us, and the median of more delays changes little.
pub(super) const MOST: usize = 128;

/// The last delays, in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    kept: [u64; MOST],
    /// Number of delays ever added.
    added: u64,
}

impl Delays {
    pub(super) fn new() -> Self {
        Self { kept: [0; MOST], added: 0 }
    }

    /// Adds a delay and returns the median of the last `count` delays, or of all if there are fewer: the middle
    /// one, or the mean of the middle two.
    pub(super) fn add(&mut self, delay: Span, count: usize) -> Span {
        self.kept[(self.added % MOST as u64) as usize] = delay.as_ps();
        self.added += 1;
        let there = usize::try_from(self.added).unwrap_or(MOST).min(MOST);
        let count = count.clamp(1, there);
        if count == 1 {
            return delay;
        }
        let mut last = [0; MOST];
        for (place, back) in last.iter_mut().zip(1..=count as u64) {
            *place = self.kept[((self.added - back) % MOST as u64) as usize];
        }
        let last = &mut last[..count];
        let middle = count / 2;
        let (below, &mut upper, _) = last.select_nth_unstable(middle);
        let lower = match count % 2 {
            1 => upper,
            _ => below.iter().copied().max().unwrap_or(upper),
        };
        Span::from_ps(lower.midpoint(upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Span {
        Span::from_us(us)
    }

    #[test]
    fn the_median_is_of_the_last_delays_only() {
        let mut delays = Delays::new();
        let steps = [
            (9, 4, 9_000),
            (1, 4, 5_000),
            (5, 4, 5_000),
            (3, 4, 4_000),
            (7, 4, 4_000),
            (100, 3, 7_000),
        ];
        for (delay, count, expected_ns) in steps {
            assert_eq!(delays.add(us(delay), count), Span::from_ns(expected_ns));
        }
        assert_eq!(delays.add(us(2), 1), us(2));
        for delay in 0..1000 {
            let median = delays.add(us(delay), 1000);
            // 128 delays ascend: the middle two are 63 and 64 back.
            assert!(delay < 200 || median == Span::from_ns(delay * 1000 - 63_500), "{delay}");
        }
    }

    /// Two of seven delays are far above the others: the median is one of the others, the mean is not.
    #[test]
    fn congested_paths_below_a_third_do_not_move_the_median() {
        let mut delays = Delays::new();
        for n in 0..70 {
            let median = delays.add(us(if n % 7 < 2 { 500 } else { 10 }), 7);
            assert!(n < 6 || median == us(10), "{n}");
        }
    }
}
