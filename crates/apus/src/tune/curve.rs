//! The curve of a parameter, and what is read from it.

use apus_algorithms::registry::AlgorithmConfig;
use apus_sim::bounds::Bounds;
use apus_units::Span;

use super::search::Tried;

/// A parameter that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    BaseTarget,
    FlowScaling,
}

impl Parameter {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::BaseTarget => "base_target",
            Self::FlowScaling => "fs_range",
        }
    }

    /// What has no effect beside `value`.
    pub(super) fn dropped(self, value: Span) -> &'static [&'static str] {
        match self {
            Self::FlowScaling if value.is_zero() => &["fs_min_cwnd", "fs_max_cwnd"],
            _ => &[],
        }
    }
}

/// One value of a parameter with its medians over the seeds.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) value: Span,
    pub(super) medians: Vec<Option<Bounds>>,
}

impl Sample {
    /// A median, by its place in [`METRICS`]; `None` if it was not measured or is censored.
    pub(super) fn known(&self, index: usize) -> Option<f64> {
        self.medians[index].and_then(Bounds::value)
    }

    /// Whether too many ops have not ended for the 99th percentile of their latency to be known.
    pub(super) fn is_censored(&self) -> bool {
        self.medians[LATENCY].is_some_and(|latency| latency.value().is_none())
    }
}

/// What is measured for each value, and shown in the table.
pub(super) const METRICS: [&str; 7] = [
    "goodput_gbps",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "op_latency_us.p99",
    "op_latency_us.unfinished",
    "loss_rate",
    "jain",
];
/// Places in [`METRICS`].
pub(super) const GOODPUT: usize = 0;
pub(super) const LATENCY: usize = 3;
pub(super) const JAIN: usize = 6;
/// How far Jain's index may fall below the best one while flow scaling shrinks, where flows always
/// have something to send: what they get is then not what they asked for.
/// deviation: no source; a difference of 0.05 is the spread over seeds of the 5000-flow incast.
const JAIN_SLACK: f64 = 0.05;
/// The part of goodput by which a range of flow scaling may miss what the target, which lies at the
/// edge of keeping it, just met. deviation: no source; medians of three seeds vary by as much.
const GOODPUT_SLACK: f64 = 0.005;

/// A curve and what was read from it.
pub(super) struct Curve {
    pub(super) parameter: Parameter,
    pub(super) samples: Vec<Sample>,
    /// The best goodput of another curve that this one is to keep up with, Gb/s.
    pub(super) rival: f64,
    /// Whether flows should be equal.
    pub(super) fair: bool,
    /// The smallest value that keeps; `None`: not even the largest does.
    pub(super) found: Option<Span>,
}

impl Curve {
    /// The best goodput of this curve and its rival, Gb/s.
    pub(super) fn best_goodput(&self) -> f64 {
        self.best(GOODPUT).max(self.rival)
    }

    /// What was measured with `value`.
    pub(super) fn sample(&self, value: Span) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.value == value)
    }

    /// The best median of a metric, by its place in [`METRICS`].
    pub(super) fn best(&self, index: usize) -> f64 {
        let open = self.samples.iter().all(Sample::is_censored);
        let rivals = self.samples.iter().filter(|sample| open || !sample.is_censored());
        rivals.filter_map(|sample| sample.known(index)).fold(0.0, f64::max)
    }

    /// Whether a sample keeps the share `keep` of the best goodput, and fairness beside flow scaling.
    /// One that leaves ops waiting which another value finishes keeps nothing.
    pub(super) fn keeps(&self, sample: &Sample, keep: f64) -> bool {
        if sample.is_censored() && !self.samples.iter().all(Sample::is_censored) {
            return false;
        }
        let of = |index: usize| sample.known(index).unwrap_or(0.0);
        let fair = !self.fair || of(JAIN) >= self.best(JAIN) - JAIN_SLACK;
        let slack = match self.parameter {
            Parameter::BaseTarget => 0.0,
            Parameter::FlowScaling => GOODPUT_SLACK,
        };
        fair && of(GOODPUT) >= keep * (1.0 - slack) * self.best_goodput()
    }

    /// The samples as the search sees them.
    pub(super) fn tried(&self, keep: f64) -> Vec<Tried> {
        let tried =
            |sample: &Sample| Tried { value: sample.value, keeps: self.keeps(sample, keep) };
        self.samples.iter().map(tried).collect()
    }
}

/// The parameters as the scenario has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) base_target: Span,
    pub(super) hop_scale: Span,
    pub(super) fs_range: Span,
}

impl Parameters {
    /// Reads them.
    pub(super) fn of(config: &AlgorithmConfig) -> Self {
        let effective = config.effective();
        let span = |name: &str| {
            let value = effective.iter().find(|(known, _)| *known == name);
            value.and_then(|(_, text)| text.parse().ok()).unwrap_or(Span::ZERO)
        };
        Self {
            base_target: span("base_target"),
            hop_scale: span("hop_scale"),
            fs_range: span("fs_range"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Curve, GOODPUT, JAIN, LATENCY, METRICS, Parameter, Sample, Span};

    fn sample(us: u64, goodput: f64, latency: Bounds) -> Sample {
        let mut medians = vec![Some(Bounds::exact(0.0)); METRICS.len()];
        medians[GOODPUT] = Some(Bounds::exact(goodput));
        medians[LATENCY] = Some(latency);
        medians[JAIN] = Some(Bounds::exact(1.0));
        Sample { value: Span::from_us(us), medians }
    }

    fn kept(samples: Vec<Sample>) -> Vec<bool> {
        let parameter = Parameter::BaseTarget;
        let curve = Curve { parameter, samples, rival: 0.0, fair: false, found: None };
        curve.samples.iter().map(|sample| curve.keeps(sample, 0.98)).collect()
    }

    /// The smaller target has more goodput, and ops that never end: it must not win by them.
    #[test]
    fn a_target_that_leaves_ops_unfinished_loses_to_one_that_does_not() {
        let open = Bounds { lower: 5.0, upper: f64::INFINITY };
        let known = Bounds::exact(50.0);
        assert_eq!(kept(vec![sample(10, 95.0, open), sample(20, 90.0, known)]), [false, true]);
        // Where no op can end, as with long flows, goodput alone decides.
        assert_eq!(kept(vec![sample(10, 80.0, open), sample(20, 90.0, open)]), [false, true]);
    }
}
