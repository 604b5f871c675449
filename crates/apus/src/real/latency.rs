//! Latencies that the commands of the real transport report, always including unfinished ops.

use apus_sim::bounds::{Bounds, percentile};
use apus_udp::{Histogram, Host, Stats};
use serde::Serialize;

use crate::text::{self, number};

/// Latencies of ops, microseconds. A number is `null` if unfinished ops make it uncertain by more than 1 %.
#[derive(Debug, Serialize)]
pub struct Latency {
    #[serde(flatten)]
    value: Numbers,
    /// Lower bounds: the unfinished ops end now.
    lower: Numbers,
    /// Upper bounds: the unfinished ops never end; `null` is unbounded.
    upper: Numbers,
    /// Number of unfinished ops.
    unfinished: usize,
    /// Age of the oldest unfinished op; 0 if there are none.
    oldest_unfinished_us: f64,
    #[serde(skip)]
    bounds: [Option<Bounds>; 5],
}

#[derive(Debug, Serialize)]
struct Numbers {
    min_us: Option<f64>,
    p50_us: Option<f64>,
    p90_us: Option<f64>,
    p99_us: Option<f64>,
    max_us: Option<f64>,
}

impl Latency {
    /// Summarises the latencies of ended ops and the ages of unfinished ones, microseconds.
    pub fn new(mut ended: Vec<f64>, open: &[f64]) -> Self {
        ended.sort_by(f64::total_cmp);
        let ended: Vec<(f64, u64)> = ended.into_iter().map(|latency| (latency, 1)).collect();
        let bounds =
            [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| Bounds::of_percentile(&ended, open, share));
        let numbers = |of: fn(Bounds) -> Option<f64>| {
            let [min_us, p50_us, p90_us, p99_us, max_us] = bounds.map(|bounds| of(bounds?));
            Numbers { min_us, p50_us, p90_us, p99_us, max_us }
        };
        Self {
            value: numbers(Bounds::value),
            lower: numbers(|bounds| Some(bounds.lower)),
            upper: numbers(|bounds| Some(bounds.upper).filter(|upper| upper.is_finite())),
            unfinished: open.len(),
            oldest_unfinished_us: open.iter().copied().fold(0.0, f64::max),
            bounds,
        }
    }

    /// Returns one line for people, and a second one if there are unfinished ops.
    pub fn text(&self) -> String {
        let [min, p50, p90, p99, max] =
            self.bounds.map(|bounds| bounds.map_or_else(|| "-".to_owned(), text::bounds));
        let mut text = format!("min {min}, p50 {p50}, p90 {p90}, p99 {p99}, max {max} us\n");
        if self.unfinished > 0 {
            text += &format!(
                "{} had not ended, the oldest after {} us\n",
                self.unfinished,
                number(self.oldest_unfinished_us)
            );
        }
        text
    }
}

/// Delays of acknowledged packets, as Swift divides them (§3.3), to within [`apus_udp::Histogram::RESOLUTION`].
#[derive(Debug, Serialize)]
pub struct Delays {
    fabric_p50_us: Option<f64>,
    fabric_p99_us: Option<f64>,
    endpoint_p50_us: Option<f64>,
    endpoint_p99_us: Option<f64>,
}

impl Delays {
    /// Returns the delays that all engines of the host have recorded.
    pub fn of(host: &Host) -> Self {
        Self::over(|| host.stats())
    }

    fn over<'s, I: Iterator<Item = &'s Stats>>(engines: impl Fn() -> I) -> Self {
        let all = |of: fn(&Stats) -> &Histogram| {
            let mut all: Vec<(f64, u64)> = engines().flat_map(|one| of(one).buckets()).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all
        };
        let (fabric, endpoint) = (all(|one| &one.fabric_rtt), all(|one| &one.endpoint_delay));
        Self {
            fabric_p50_us: percentile(&fabric, 0.5),
            fabric_p99_us: percentile(&fabric, 0.99),
            endpoint_p50_us: percentile(&endpoint, 0.5),
            endpoint_p99_us: percentile(&endpoint, 0.99),
        }
    }

    /// Returns two lines for people.
    pub fn text(&self) -> String {
        let us = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        format!(
            "fabric:     p50 {}, p99 {} us\nendpoint:   p50 {}, p99 {} us\n",
            us(self.fabric_p50_us),
            us(self.fabric_p99_us),
            us(self.endpoint_p50_us),
            us(self.endpoint_p99_us)
        )
    }
}

#[cfg(test)]
mod tests {
    use apus_udp::Stats;
    use apus_units::Span;

    use super::{Delays, Latency};

    /// One engine recorded 10 us once, the other one 1000 us three times: the median is a value of the second.
    #[test]
    fn delays_are_those_of_all_engines() {
        let engines = [Stats::default(), Stats::default()];
        engines[0].fabric_rtt.record(Span::from_us(10));
        (0..3).for_each(|_| engines[1].fabric_rtt.record(Span::from_us(1000)));
        let delays = Delays::over(|| engines.iter());
        let median = delays.fabric_p50_us.expect("four packets");
        assert!((median / 1000.0 - 1.0).abs() <= apus_udp::Histogram::RESOLUTION, "{median}");
        assert_eq!(delays.endpoint_p50_us, None);
    }

    /// Of a hundred ops, 98 took 1 to 98 us and two are unfinished after 500 us: the 99th percentile is one of the two.
    #[test]
    fn unfinished_ops_bound_the_percentiles_that_they_may_change() {
        let latency = Latency::new((1..=98).map(f64::from).collect(), &[500.0, 400.0]);
        assert_eq!(
            latency.text(),
            "min 1, p50 50, p90 90, p99 >= 400, max >= 500 us\n2 had not ended, the oldest after 500 us\n"
        );
        let json = serde_json::to_value(&latency).expect("JSON");
        assert_eq!(json["p50_us"], 50.0);
        assert!(json["p99_us"].is_null() && json["upper"]["p99_us"].is_null());
        assert_eq!((&json["lower"]["p99_us"], &json["unfinished"]), (&400.0.into(), &2.into()));
        assert_eq!(Latency::new(Vec::new(), &[]).text(), "min -, p50 -, p90 -, p99 -, max - us\n");
    }
}
