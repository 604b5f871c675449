//! Loss as a function of utilisation: time windows sorted into buckets of 10 % of utilisation.

use crate::columns::summary;
use std::collections::BTreeMap;

use apus_fabric::Count;
use serde::Serialize;

/// Number of buckets.
pub(crate) const BUCKETS: usize = 10;

/// Returns the bucket of a utilisation by its lower end in percent: 0, 10 and so on up to 90. A packet counts
/// when its last bit has left, so a window may have one packet too many.
pub(super) fn bucket_of(utilisation: f64) -> usize {
    ((utilisation * BUCKETS as f64) as usize).min(BUCKETS - 1)
}

/// Loss of one class in some windows of some ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// Windows in which the class was offered packets.
    pub(super) windows: u64,
    pub(super) offered: u64,
    pub(super) dropped: u64,
    /// Loss rates of the windows with losses.
    lossy: Vec<f64>,
}

impl Losses {
    /// Adds a window of one port.
    pub(super) fn add(&mut self, offered: Count, dropped: Count) {
        if offered.packets == 0 {
            return;
        }
        self.windows += 1;
        self.offered += offered.packets;
        self.dropped += dropped.packets;
        if dropped.packets > 0 {
            self.lossy.push(dropped.packets as f64 / offered.packets as f64);
        }
    }

    /// Returns packets dropped over packets offered; `None` without a packet.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.dropped as f64 / self.offered as f64)
    }

    /// Returns the 99.9th percentile over the windows (nearest rank), each of equal weight: the
    /// largest value if there are at most 1000.
    pub(super) fn p99_9(&self) -> Option<f64> {
        // Of n windows, n - ceil(0.999 n) = floor(n / 1000) lie above it.
        let above = usize::try_from(self.windows / 1000).ok()?;
        let mut lossy = self.lossy.clone();
        lossy.sort_unstable_by(|a, b| b.total_cmp(a));
        (self.windows > 0).then(|| lossy.get(above).copied().unwrap_or(0.0))
    }

    pub(super) fn summary(&self) -> LossSummary {
        LossSummary { windows: self.windows, loss_rate: self.rate(), loss_rate_p99_9: self.p99_9() }
    }
}

const BUCKET: &str = "\
    over the time windows in which the utilisation by the port (`by_port`) or by the class alone (`by_class`) was in this bucket";

summary! {
    /// Loss of a class in a bucket of utilisation.
    #[derive(Clone, Debug, Serialize)]
    pub struct LossSummary {
        /// time windows, counted per port, in which the class was offered a packet
        pub windows: u64 = number(BUCKET),
        /// packets of the class dropped / packets of the class sent into the ports' queues
        pub loss_rate: Option<f64> = fraction(BUCKET),
        /// 99.9th percentile (nearest rank) of `loss_rate` over single time windows of single ports; with up to 1000
        /// windows, the largest value
        pub loss_rate_p99_9: Option<f64> = fraction(BUCKET),
    }
}

const LARGEST: &str = "maximum over the buckets that `buckets` counts";

summary! {
    /// Comparison of the loss of one class with that of another, bucket by bucket.
    #[derive(Clone, Debug, Serialize)]
    pub struct ComparisonSummary {
        /// utilisation buckets in which both classes have packets and the other class loses at least the share
        /// `floor`
        pub buckets: u64 = number("-"),
        /// buckets that `buckets` counts and in which `loss_rate_p99_9` of either class is above 0
        pub buckets_p99_9: u64 = number("-"),
        /// time windows, counted per port, in which the other class was offered a packet; with up to 1000 windows,
        /// the 99.9th percentile is the largest value
        pub windows: u64 = number(LARGEST),
        /// `loss_rate` of the class / `loss_rate` of the other class
        pub loss_ratio: Option<f64> = number(LARGEST),
        /// `loss_rate_p99_9` of the class / `loss_rate_p99_9` of the other class; 10^6 if only the divisor is 0
        pub loss_ratio_p99_9: Option<f64> = number(LARGEST),
    }
}

/// Ratio of percentiles if that of the other class is 0.
const NO_OTHER_TAIL: f64 = 1e6;

/// Compares the loss of a class with that of `others` in each bucket in which `others` lose at least `floor`.
pub(super) fn compare<'a>(
    own: impl Iterator<Item = &'a Losses>,
    others: impl Iterator<Item = &'a Losses>,
    floor: f64,
) -> ComparisonSummary {
    let (loss_ratio, loss_ratio_p99_9) = (None, None);
    let mut summary = ComparisonSummary {
        buckets: 0,
        buckets_p99_9: 0,
        windows: 0,
        loss_ratio,
        loss_ratio_p99_9,
    };
    let larger = |old: Option<f64>, new: f64| Some(old.map_or(new, |old| old.max(new)));
    for (own, other) in own.zip(others) {
        let (Some(rate), Some(base)) = (own.rate(), other.rate()) else { continue };
        if base < floor {
            continue;
        }
        summary.buckets += 1;
        summary.windows = summary.windows.max(other.windows);
        summary.loss_ratio = larger(summary.loss_ratio, rate / base);
        let (tail, base) = (own.p99_9().unwrap_or(0.0), other.p99_9().unwrap_or(0.0));
        // Losses that are rarer than one window in a thousand have no such percentile.
        if tail > 0.0 || base > 0.0 {
            summary.buckets_p99_9 += 1;
            let ratio = if base > 0.0 { tail / base } else { NO_OTHER_TAIL };
            summary.loss_ratio_p99_9 = larger(summary.loss_ratio_p99_9, ratio);
        }
    }
    summary
}

/// Returns summaries by the lower end of their bucket in percent.
pub(super) fn by_bucket<T, S>(
    buckets: &[T; BUCKETS],
    summary: impl Fn(&T) -> S,
) -> BTreeMap<String, S> {
    let entry =
        |(index, bucket): (usize, &T)| ((index * (100 / BUCKETS)).to_string(), summary(bucket));
    buckets.iter().enumerate().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use apus_fabric::Count;

    use super::{Losses, bucket_of, compare};

    fn packets(packets: u64) -> Count {
        Count { packets, bytes: packets * 1000 }
    }

    fn losses(windows: &[(u64, u64)]) -> Losses {
        let mut losses = Losses::default();
        for &(offered, dropped) in windows {
            losses.add(packets(offered), packets(dropped));
        }
        losses
    }

    #[test]
    fn buckets_are_ten_percent_wide_and_the_last_holds_all_above() {
        assert_eq!([0.0, 0.0999, 0.1, 0.55, 0.95].map(bucket_of), [0, 0, 1, 5, 9]);
        assert_eq!([1.0, 1.01].map(bucket_of), [9, 9]);
    }

    #[test]
    fn loss_is_per_packet_and_its_percentile_per_window() {
        let some = losses(&[(100, 1), (300, 0), (0, 0), (100, 50)]);
        assert_eq!((some.windows, some.rate()), (3, Some(51.0 / 500.0)));
        assert_eq!(some.p99_9(), Some(0.5));
        assert_eq!((losses(&[]).rate(), losses(&[]).p99_9()), (None, None));
    }

    /// Of 2000 windows, the two with the highest loss lie above the 99.9th percentile.
    #[test]
    fn the_percentile_is_the_nearest_rank() {
        let mut windows = vec![(100, 0); 1997];
        windows.extend([(100, 10), (100, 20), (100, 30)]);
        assert_eq!(losses(&windows).p99_9(), Some(0.1));
        windows.truncate(1999);
        assert_eq!(losses(&windows).p99_9(), Some(0.1));
        assert_eq!(losses(&vec![(5, 0); 1000]).p99_9(), Some(0.0));
    }

    #[test]
    fn only_buckets_in_which_the_other_loses_enough_are_compared() {
        let own = [losses(&[(1000, 1)]), losses(&[(1000, 2)]), losses(&[]), losses(&[(10, 10)])];
        let others = [
            losses(&[(1000, 10)]),
            losses(&[(1000, 100), (1000, 0)]),
            losses(&[(10, 10)]),
            losses(&[(100_000, 1)]),
        ];
        let found = compare(own.iter(), others.iter(), 1e-4);
        assert_eq!((found.buckets, found.loss_ratio), (2, Some(0.1)));
        assert_eq!(found.loss_ratio_p99_9, Some(0.1));
        assert_eq!((found.buckets_p99_9, found.windows), (2, 2));
        let found = compare(own[..1].iter(), others[3..].iter(), 1e-4);
        assert_eq!((found.buckets, found.loss_ratio), (0, None));
    }

    /// One lossy window of 1001 lies above the 99.9th percentile; of two such windows, one does not.
    #[test]
    fn a_percentile_of_nothing_is_not_compared_and_never_better_than_nothing() {
        let quiet = losses(&[vec![(10, 0); 1000], vec![(10, 10)]].concat());
        let tail = losses(&[vec![(10, 0); 999], vec![(10, 1); 2]].concat());
        let found =
            |own: &Losses, other: &Losses| compare([own].into_iter(), [other].into_iter(), 1e-4);
        let one = found(&quiet, &quiet);
        assert_eq!((one.buckets, one.buckets_p99_9, one.loss_ratio_p99_9), (1, 0, None));
        assert_eq!(found(&quiet, &tail).loss_ratio_p99_9, Some(0.0));
        let one = found(&tail, &quiet);
        assert_eq!((one.buckets_p99_9, one.loss_ratio_p99_9), (1, Some(1e6)));
        assert_eq!(one.windows, 1001);
    }
}
