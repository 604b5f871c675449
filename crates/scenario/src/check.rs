//! `[[check]]` and `[[show]]`: the statements of a publication, and the accepted bands.

use serde::Serialize;

use super::source::Problems;
use super::variant::Variant;

/// The statement that a check supports if it passes. Each kind is counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// The simulator reproduces a number of a publication.
    Reproduction,
    /// An order, a limit or an exponent stated by a publication holds.
    Shape,
    /// The simulator keeps a property that holds in every correct run.
    Invariant,
    /// The simulator reproduces the value of a formula of a specification.
    Formula,
}

impl CheckKind {
    /// All kinds, with their words in scenarios and results.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("reproduction", Self::Reproduction),
        ("shape", Self::Shape),
        ("invariant", Self::Invariant),
        ("formula", Self::Formula),
    ];

    /// The word in scenarios and results.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Reproduction => "reproduction",
            Self::Shape => "shape",
            Self::Invariant => "invariant",
            Self::Formula => "formula",
        }
    }
}

/// A number of an experiment, with the publication's number and the accepted band.
#[derive(Clone, Debug)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Kind of the check; `None` for a number that is only shown.
    pub kind: Option<CheckKind>,
    /// Setting that was fitted, and the number that it was fitted to: the check shows that the number
    /// is possible, and is no reproduction.
    pub fitted: Option<String>,
    /// Reason why the publication's number is known less precisely than its band may be wide.
    pub reading_error: Option<String>,
    /// Path into the summary's JSON, one of [`METRICS`](apus_sim::results::METRICS) or of [`SCOPED`](apus_sim::results::SCOPED).
    pub metric: String,
    /// The runs that are checked, by index.
    pub runs: Vec<usize>,
    /// Function that combines the values of several runs. `None`: each run is a separate check.
    pub reduce: Option<Reduce>,
    /// The divisor of the metric.
    pub relative: Option<Relative>,
    /// Minimum number of values, in each run, of the distribution that contains the metric.
    pub samples: Option<u64>,
    /// The publication's number.
    pub paper: Option<f64>,
    /// Unit of all numbers here.
    pub unit: String,
    /// Smallest accepted value.
    pub low: Option<f64>,
    /// Largest accepted value.
    pub high: Option<f64>,
    /// Place of the statement in the publication.
    pub source: String,
    /// Reason why the measurement may differ.
    pub why: Option<String>,
    /// The check cannot be met without bending the model: the measured value and the likely cause.
    pub differs: Option<String>,
    /// Whether quick runs include the check.
    pub(super) quick: bool,
}

/// Functions that combine the values of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduce {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The median.
    Median,
    /// The exponent of the power law of the variants' values that fits best: the slope of the
    /// logarithms by least squares.
    Exponent,
    /// The smallest ratio of a value to the previous value, in the order of `increasing`; at most 10^6.
    Rise,
    /// The share of values below this number.
    Rank(f64),
}

/// The divisor of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relative {
    /// The largest value of the same metric in any run of the experiment.
    Largest,
    /// The value of the run's variant.
    Value,
    /// Another metric of the same run.
    Own {
        /// The metric.
        metric: String,
    },
    /// A metric of other runs.
    Runs {
        /// Indices of the runs: one for all runs of the check, or one for each, in order.
        runs: Vec<usize>,
        /// The metric.
        metric: String,
        /// Whether the value is the gain over the divisor: the ratio minus 1.
        gain: bool,
    },
}

/// Largest relative deviation from the publication's number that the band of a reproduction accepts,
/// unless the number itself is known less precisely.
pub(super) const WIDEST_BAND: f64 = 0.25;

/// Returns the path of the number of values of the distribution that contains the metric `path`.
pub(super) fn count_of(path: &str) -> Option<String> {
    path.rsplit_once('.').map(|(distribution, _)| format!("{distribution}.count"))
}

impl Check {
    /// Converts a value of the metric, or of the ratio of two metrics, to the check's unit.
    #[must_use]
    pub fn in_unit(&self, value: f64) -> f64 {
        if self.unit == "%" { value * 100.0 } else { value }
    }

    /// Keeps the runs of these indices and renumbers them. Returns `false` if too few remain.
    pub(super) fn keep_runs(&mut self, kept: &[usize]) -> bool {
        let place = |run: &usize| kept.iter().position(|one| one == run);
        match &mut self.relative {
            Some(Relative::Runs { runs: bases, .. }) if bases.len() == self.runs.len() => {
                let pairs = self.runs.iter().zip(bases.iter());
                let pairs = pairs.filter_map(|(run, base)| Some((place(run)?, place(base)?)));
                (self.runs, *bases) = pairs.unzip();
            }
            relative => {
                self.runs = self.runs.iter().filter_map(place).collect();
                if let Some(Relative::Runs { runs: bases, .. }) = relative {
                    *bases = bases.iter().filter_map(place).collect();
                    if bases.is_empty() {
                        return false;
                    }
                }
            }
        }
        let several = matches!(self.reduce, Some(Reduce::Rise | Reduce::Rank(_)));
        let enough = if several { 2 } else { 1 };
        self.runs.len() >= enough
    }
}

/// The variants that no check uses.
pub(super) fn unused_variants<'a>(
    variants: &[Variant],
    checks: impl Iterator<Item = &'a Check> + Clone,
) -> Vec<usize> {
    if checks.clone().any(|check| check.relative == Some(Relative::Largest)) {
        return Vec::new();
    }
    let used = |index: &usize| {
        checks.clone().any(|check| {
            let base = matches!(&check.relative, Some(Relative::Runs { runs, .. }) if runs.contains(index));
            check.runs.contains(index) || base
        })
    };
    (0..variants.len()).filter(|index| !used(index)).collect()
}

/// Reports unused variants: running a variant without using it is a mistake.
pub(super) fn refuse_unused(variants: &[Variant], unused: &[usize], problems: &Problems) {
    for variant in unused.iter().map(|&index| &variants[index]) {
        let message = format!("no check uses the variant `{}`; remove it", variant.name);
        problems.add(variant.place, message);
    }
}
