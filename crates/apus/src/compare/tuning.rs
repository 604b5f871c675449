//! `--tune-each`: searches each algorithm's own parameter, with the same objective and number of runs for all
//! algorithms.

use crate::registry;
use apus_cc::{Tunable, TunedSetting};
use apus_scenario::Setup;
use apus_sim::bounds::median;
use serde_json::{Value, json};

use super::field::THRESHOLD;
use super::table::Contestant;
use crate::paired::known;

/// Quantities that a search maximises; it minimises all others.
const LARGER_IS_BETTER: [&str; 9] = [
    "goodput_gbps",
    "throughput_gbps",
    "utilisation",
    "jain",
    "fair_share_jain",
    "ops",
    "ops_per_s",
    "algorithm_bandwidth_gbps",
    "bus_bandwidth_gbps",
];

/// The objective of a search.
#[derive(Clone, Debug)]
pub(super) struct Objective {
    /// The metric.
    pub(super) metric: String,
    /// Fraction of the algorithm's best goodput that a value must keep; the search excludes values with less goodput.
    pub(super) keep: f64,
    /// Values per algorithm.
    pub(super) values: usize,
    /// First seed of the search and number of seeds; the comparison uses none of them.
    pub(super) seeds: (u64, u64),
}

impl Objective {
    /// Returns `true` if a larger value of the metric is better.
    pub(super) fn rises(&self) -> bool {
        let mut words = self.metric.split('.');
        // The second word is a name that the user chose, not the name of a quantity.
        if matches!(
            words.clone().next(),
            Some("workload" | "ports" | "settle" | "span" | "compare")
        ) {
            words.nth(1);
        }
        words.any(|word| LARGER_IS_BETTER.contains(&word))
    }

    /// Returns the objective in words.
    pub(super) fn words(&self) -> String {
        let (first, count) = self.seeds;
        format!(
            "{} {} among values that keep {} % of the algorithm's best goodput; at most {} values x {} \
             seeds ({first} to {}) for each algorithm, medians",
            if self.rises() { "highest" } else { "lowest" },
            self.metric,
            self.keep * 100.0,
            self.values,
            count,
            first + count - 1
        )
    }
}

/// A value of the search with its results.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The value; `None` for the unchanged parameters.
    pub(super) value: Option<String>,
    pub(super) setup: Setup,
    /// Summaries by seed of the search.
    pub(super) summaries: Vec<Option<Value>>,
}

/// The search of one algorithm.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) tunable: Option<&'static Tunable>,
    pub(super) candidates: Vec<Candidate>,
    /// Values that the algorithm refuses because of other settings, with the reason.
    pub(super) refused: Vec<String>,
    /// Index of the best candidate.
    pub(super) best: usize,
    /// Reason why the parameters stay unchanged; empty if they change.
    pub(super) why: &'static str,
}

impl Search {
    /// Returns the search with its candidates: the unchanged parameters, and values over the range.
    pub(super) fn new(one: &Contestant, objective: &Objective) -> Self {
        let unknown = vec![None; objective.seeds.1 as usize];
        let candidate = |value, setup| Candidate { value, setup, summaries: unknown.clone() };
        let mut search = Self {
            tunable: None,
            candidates: vec![candidate(None, one.setup.clone())],
            refused: Vec::new(),
            best: 0,
            why: "it has no parameter to tune",
        };
        let Some((_, config)) = one.setup.algorithms().next() else { return search };
        let found = registry().tunable(config.info().name, config.profile());
        let (Some(tunable), Some(network)) = (found, one.setup.network_info()) else {
            return search;
        };
        search.tunable = Some(tunable);
        for value in tunable.values(&network, objective.values.saturating_sub(1)) {
            match with_value(one.setup.clone(), tunable, &value) {
                Ok(setup) => search.candidates.push(candidate(Some(value), setup)),
                Err(why) => search.refused.push(format!("{value}: {why}")),
            }
        }
        search
    }

    /// Chooses the best candidate.
    pub(super) fn choose(&mut self, objective: &Objective) {
        if self.tunable.is_none() {
            return;
        }
        let goodput = |one: &Candidate| one.median("goodput_gbps").unwrap_or(0.0);
        let best_goodput = self.candidates.iter().map(goodput).fold(0.0, f64::max);
        let sign = if objective.rises() { -1.0 } else { 1.0 };
        let kept = self.candidates.iter().enumerate().filter_map(|(index, one)| {
            let keeps = goodput(one) >= objective.keep * best_goodput;
            keeps.then_some((index, sign * one.median(&objective.metric)?))
        });
        // Of equal candidates the first wins, which has the unchanged parameters.
        let best = kept.min_by(|a, b| a.1.total_cmp(&b.1));
        (self.best, self.why) = match best {
            Some((index, _)) => (index, ""),
            None => (0, "the objective is unmeasured or censored; the parameters are unchanged"),
        };
    }

    /// Returns the name of the searched setting.
    pub(super) fn setting(&self) -> Option<&'static str> {
        self.tunable.map(|tunable| match tunable.setting {
            TunedSetting::Parameter(name) => name,
            TunedSetting::MarkingThreshold => THRESHOLD,
        })
    }

    /// Returns the value that was found, unless the parameters stay unchanged.
    pub(super) fn found(&self) -> Option<&str> {
        self.candidates[self.best].value.as_deref()
    }

    /// Returns the number of runs of the search.
    pub(super) fn runs(&self) -> usize {
        self.candidates.iter().map(|one| one.summaries.iter().flatten().count()).sum()
    }

    pub(super) fn json(&self, objective: &Objective) -> Value {
        let candidates = self.candidates.iter().enumerate().map(|(index, one)| {
            json!({
                "value": one.value,
                "objective": one.median(&objective.metric),
                "goodput_gbps": one.median("goodput_gbps"),
                "chosen": index == self.best,
            })
        });
        json!({
            "parameter": self.setting(),
            "range": self.tunable.map(|tunable| tunable.range),
            "source": self.tunable.map(|tunable| tunable.source),
            "value": self.found(),
            "note": self.why,
            "refused": self.refused,
            "runs": self.runs(),
            "candidates": candidates.collect::<Vec<_>>(),
        })
    }
}

impl Candidate {
    /// Returns the median over the seeds; `None` unless the number is known for all of them.
    pub(super) fn median(&self, name: &str) -> Option<f64> {
        let of = |summary: &Option<Value>| known(summary.as_ref()?, name);
        median(self.summaries.iter().map(of).collect::<Option<Vec<f64>>>()?)
    }
}

/// Returns the run with another value of the searched setting.
fn with_value(setup: Setup, tunable: &Tunable, value: &str) -> Result<Setup, String> {
    match tunable.setting {
        TunedSetting::Parameter(name) => {
            setup.with_changes(&[(name, value)]).map_err(|error| error.message)
        }
        TunedSetting::MarkingThreshold => {
            let threshold = value.parse().map_err(|error| format!("{error}"))?;
            setup.with_marking_threshold(threshold)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Objective;

    #[test]
    fn the_direction_of_a_search_does_not_depend_on_names_of_workloads() {
        let rises = |metric: &str| {
            let metric = metric.to_owned();
            Objective { metric, keep: 0.98, values: 8, seeds: (1, 1) }.rises()
        };
        for metric in
            ["goodput_gbps", "busiest_port.utilisation", "measured.ops", "fair_share_jain"]
        {
            assert!(rises(metric), "{metric}");
        }
        assert!(rises("workload.web.ops_per_s") && rises("span.late.throughput_gbps.mean"));
        assert!(rises("jobs.0.bus_bandwidth_gbps") && rises("jobs.0.algorithm_bandwidth_gbps"));
        for metric in ["op_latency_us.p99", "loss_rate", "workload.web.ops_failed"] {
            assert!(!rises(metric), "{metric}");
        }
        assert!(
            !rises("workload.goodput.op_latency_us.p99") && !rises("workload.ops.slowdown.p50")
        );
    }
}
