//! The median of the last delays: MSwift and MNSCC (arXiv 2509.07907).

/// Maximum number of delays kept.
pub(super) const MAX_SAMPLES: usize = 4;

/// The last delays, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Median {
    samples: [f64; MAX_SAMPLES],
    /// Number of samples kept.
    kept: u8,
    /// Index of the next sample.
    next: u8,
}

impl Median {
    /// Adds a delay and returns the median of the last `count` (1 to [`MAX_SAMPLES`]) delays, or of all if
    /// there are fewer: the middle one, or the mean of the middle two.
    pub(super) fn add(&mut self, delay: f64, count: usize) -> f64 {
        self.samples[usize::from(self.next)] = delay;
        self.next = (self.next + 1) % MAX_SAMPLES as u8;
        self.kept = (self.kept + 1).min(MAX_SAMPLES as u8);
        let count = count.clamp(1, usize::from(self.kept));
        let mut last = [0.0; MAX_SAMPLES];
        for (back, place) in last.iter_mut().take(count).enumerate() {
            let at = usize::from(self.next) + MAX_SAMPLES - 1 - back;
            *place = self.samples[at % MAX_SAMPLES];
        }
        let last = &mut last[..count];
        last.sort_unstable_by(f64::total_cmp);
        let middle = count / 2;
        if count % 2 == 1 { last[middle] } else { (last[middle - 1] + last[middle]) / 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Median;

    #[test]
    fn the_median_is_the_middle_delay_or_the_mean_of_two() {
        let mut median = Median::default();
        let steps = [(9.0, 4, 9.0), (1.0, 4, 5.0), (5.0, 4, 5.0), (3.0, 4, 4.0), (7.0, 4, 4.0)];
        for (delay, count, expected) in steps {
            assert_eq!(median.add(delay, count), expected);
        }
        // The last three are 3, 7 and now 100; with a count of 1, the median is the delay itself.
        assert_eq!(median.add(100.0, 3), 7.0);
        assert_eq!(median.add(2.0, 1), 2.0);
    }
}
