//! Accepted differences.

use std::fmt;

use super::load::FAILURE;

/// An accepted difference of two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A fraction of the larger number.
    Share(f64),
    /// In the unit of the metric.
    Absolute(f64),
    /// Any difference.
    Any,
}

impl Tolerance {
    fn accepts(self, a: f64, b: f64) -> bool {
        let difference = (a - b).abs();
        match self {
            Self::Share(share) => difference <= share * a.abs().max(b.abs()),
            Self::Absolute(most) => difference <= most,
            Self::Any => true,
        }
    }
}

/// Tolerance of a metric and of the metrics below it, or of all metrics if no metric is named.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Path of the metric; empty for all.
    pub metric: String,
    tolerance: Tolerance,
    /// The user's text, with the option.
    text: String,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Returns `true` if the rule covers the metric at this path.
    fn covers(&self, path: &str) -> bool {
        self.metric.is_empty()
            || path
                .strip_prefix(&self.metric)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Reads `--tolerance`.
pub fn read_rule(text: &str) -> Result<Rule, String> {
    let (metric, amount) = text.split_once('=').unwrap_or(("", text));
    let (amount, scale) = match amount.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), Some(0.01)),
        None => (amount.trim(), None),
    };
    let example = "write 1%, METRIC=5% or METRIC=2";
    let number = match amount.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => number,
        _ => return Err(format!("the tolerance must be a number from 0; {example}")),
    };
    let metric = metric.trim().to_owned();
    let tolerance = match scale {
        Some(scale) => Tolerance::Share(number * scale),
        None if metric.is_empty() && number > 0.0 => {
            return Err(format!(
                "metrics have different units: a tolerance of all is a share; {example}"
            ));
        }
        None => Tolerance::Absolute(number),
    };
    Ok(Rule { metric, tolerance, text: format!("--tolerance {text}") })
}

/// Reads `--ignore`.
pub fn read_ignored(text: &str) -> Result<Rule, String> {
    match text.trim() {
        "" => Err("must name a metric".to_owned()),
        metric => Ok(Rule {
            metric: metric.to_owned(),
            tolerance: Tolerance::Any,
            text: format!("--ignore {text}"),
        }),
    }
}

/// Tolerances of a comparison; without any, results must be equal.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Collects these rules.
    ///
    /// # Errors
    /// If two rules name the same metric.
    pub fn new<'a>(rules: impl Iterator<Item = &'a Rule>) -> Result<Self, String> {
        let mut all: Vec<Rule> = Vec::new();
        for rule in rules {
            if let Some(other) = all.iter().find(|other| other.metric == rule.metric) {
                return Err(format!("{rule}: contradicts `{other}`; remove one of them"));
            }
            all.push(rule.clone());
        }
        Ok(Self(all))
    }

    fn of(&self, path: &str) -> Option<&Rule> {
        let rules = self.0.iter().filter(|rule| rule.covers(path));
        rules.max_by_key(|rule| rule.metric.len())
    }

    /// Returns `true` if the metric at this path is left out.
    pub fn ignores(&self, path: &str) -> bool {
        self.of(path).is_some_and(|rule| rule.tolerance == Tolerance::Any)
    }

    /// Returns `true` if two numbers of the metric at this path are equal or close enough.
    pub fn accepts(&self, path: &str, a: f64, b: f64) -> bool {
        a == b || self.of(path).is_some_and(|rule| rule.tolerance.accepts(a, b))
    }

    /// Returns a rule that covers none of these metrics. If there are no metrics, returns `None`: failed runs have only
    /// the reason.
    pub fn unused(&self, metrics: &[String]) -> Option<&Rule> {
        if metrics.iter().all(|metric| metric == FAILURE) {
            return None;
        }
        self.0.iter().find(|rule| !metrics.iter().any(|metric| rule.covers(metric)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(tolerances: &[&str], ignored: &[&str]) -> Result<Rules, String> {
        let read = tolerances.iter().map(|text| read_rule(text).expect(text));
        let ignored = ignored.iter().map(|text| read_ignored(text).expect(text));
        Rules::new(read.chain(ignored).collect::<Vec<_>>().iter())
    }

    #[test]
    fn the_longest_name_decides() {
        let rules = rules(&["1%", "rtt=10%", "rtt.p99=2"], &["rtt.max"]).expect("rules");
        assert!(rules.accepts("goodput", 100.0, 99.0) && !rules.accepts("goodput", 100.0, 98.9));
        assert!(rules.accepts("rtt.p50", 90.0, 100.0) && !rules.accepts("rtt.p50", 89.0, 100.0));
        assert!(rules.accepts("rtt.p99", 8.0, 10.0) && !rules.accepts("rtt.p99", 8.0, 10.1));
        assert!(rules.ignores("rtt.max") && !rules.ignores("rtt.maximum"));
        // A rule covers whole path components only.
        assert!(!rules.accepts("rtts", 90.0, 100.0));
    }

    #[test]
    fn without_rules_numbers_must_be_equal() {
        let none = Rules::default();
        assert!(none.accepts("a", 1.0, 1.0) && !none.accepts("a", 1.0, 1.0 + f64::EPSILON));
        assert!(none.unused(&[]).is_none());
    }

    #[test]
    fn wrong_tolerances_are_refused() {
        for wrong in ["", "-1%", "a=", "a=b", "nan%", "inf", "2", "a=1%%"] {
            assert!(read_rule(wrong).is_err(), "{wrong}");
        }
        assert!(rules(&["a=1%"], &["a"]).is_err_and(|why| why.contains("contradicts")));
        let unused = rules(&["1%", "a.b=1%"], &[]).expect("rules");
        assert_eq!(
            unused.unused(&["a".into()]).map(ToString::to_string).as_deref(),
            Some("--tolerance a.b=1%")
        );
        assert_eq!(unused.unused(&[]), None);
        assert_eq!(unused.unused(&[FAILURE.into()]), None);
    }
}
