//! Reads `[[check]]` and `[[show]]`.

use apus_units::suggestion;

use super::check::{Check, CheckKind, Reduce, Relative, WIDEST_BAND, count_of};
use super::declared::{Keys, Kind, key, words_of};
use super::section::Section;
use super::source::Problems;
use super::tree::{Node, Value};
use super::variant::{Variant, is_in_quick_runs};
use apus_sim::columns::unit_of;
use apus_sim::results::{METRICS, Names, is_fraction};

/// Words for the functions that combine several runs.
const REDUCE: [(&str, Reduce); 5] = [
    ("min", Reduce::Min),
    ("max", Reduce::Max),
    ("mean", Reduce::Mean),
    ("median", Reduce::Median),
    ("exponent", Reduce::Exponent),
];

/// Keys of `check`.
pub(super) static CHECK: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the check"),
    key(
        "kind",
        Kind::Word(&words_of(&CheckKind::WORDS)),
        "What the check shows. `reproduction`: a number of a publication. `shape`: an order, a limit or an exponent that a publication states. `invariant`: a property of every correct run. `formula`: the value of a formula of a specification",
    ),
    key("metric", Kind::Text, "The metric, see below"),
    key("variant", Kind::TextOrTexts, "A variant, a list of variants, or \"all\"").or("all"),
    key(
        "increasing",
        Kind::Texts,
        "In place of `variant` and `reduce`: the variants in the order in which the metric must grow. The value of the check is the smallest ratio of a variant to the previous one. If neither `low` nor `high` is given, `low` is 1",
    ),
    key(
        "reduce",
        Kind::Word(&words_of(&REDUCE)),
        "Combines the metrics of several variants into one value. \"exponent\": the exponent of the power law that fits the metrics over the `value` of the variants. Without `reduce`, each variant is checked separately",
    ),
    key(
        "rank_of",
        Kind::Number,
        "In place of `reduce`: the value of the check is the share of the variants whose metric is less than this number. If a number of a publication is one draw from the distribution of the variants, its share is neither near 0 nor near 1",
    ),
    key(
        "relative_to",
        Kind::TextOrTable(&RELATIVE_TO),
        "Divisor of the metric: \"max\" (the largest value of the metric in any run of the experiment), \"value\" (the `value` of the variant), or a table",
    ),
    key(
        "samples",
        Kind::Count,
        "For a metric of a distribution, such as a percentile: minimum number of values in each run. With fewer values, the check fails",
    )
    .at_least(1),
    key("unit", Kind::Text, "\"%\" if a fraction is given in percent"),
    key(
        "paper",
        Kind::Number,
        "The value in the publication. A reproduction needs it. If a check of another kind has it, `why` must state why the check is not a reproduction",
    ),
    key(
        "fitted",
        Kind::Text,
        "The setting that was fitted, and the number to which it was fitted. The check then shows only that the number is possible, and is not counted as a reproduction",
    ),
    key(
        "reading_error",
        Kind::Text,
        "Why the value in the publication is known less precisely than within 25 %, which is the widest band of a reproduction",
    ),
    key("low", Kind::Number, "Lower end of the band"),
    key("high", Kind::Number, "Upper end of the band"),
    key("source", Kind::Text, "Source of the value. Default: the `source` of the scenario"),
    key("why", Kind::Text, "Why the metric may differ from the publication"),
    key(
        "differs",
        Kind::Text,
        "For a check that cannot be met without bending the model: the measured value and the likely cause. The result is printed as \"differs\", and fails only if all its medians are in the band",
    ),
    key("quick", Kind::Flag, "`false`: quick runs omit the check"),
]);

/// The keys of `relative_to` of a check.
pub(super) static RELATIVE_TO: Keys = Keys::of(&[
    key(
        "variant",
        Kind::TextOrTexts,
        "The variant whose metric is the divisor, or a list with one such variant for each variant of the check",
    ),
    key(
        "metric",
        Kind::Text,
        "The metric that is the divisor: of `variant`, or of the same run if `variant` is not given. Default: the metric of the check",
    ),
    key(
        "gain",
        Kind::Flag,
        "`true`: the value is the gain over the divisor, which is the ratio minus 1. A small gain is then not hidden by a ratio near 1",
    ),
]);

/// Reads `[[check]]` and `[[show]]`; `default_source` is the scenario's.
pub(super) fn read_checks(
    root: &Section<'_>,
    variants: &[Variant],
    names: &Names,
    default_source: Option<&str>,
    problems: &Problems,
) -> (Vec<Check>, Vec<Check>) {
    let scoped = names.metrics();
    let read = |key, banded| -> Vec<Check> {
        let sections = root.sections(key).into_iter();
        let checks = sections.filter_map(|s| {
            let reader = Reader { section: &s, variants, scoped: &scoped, problems };
            let check = reader.check(default_source, banded);
            s.finish();
            check
        });
        checks.collect()
    };
    let checks = read("check", true);
    let shown = read("show", false);
    for (index, check) in checks.iter().enumerate() {
        if checks[..index].iter().any(|other| other.name == check.name) {
            let message = format!("has two checks named \"{}\"; rename one", check.name);
            root.problem("check", message);
        }
    }
    (checks, shown)
}

struct Reader<'a, 'b> {
    section: &'b Section<'a>,
    variants: &'b [Variant],
    /// The metrics of parts of the runs.
    scoped: &'b [String],
    problems: &'b Problems,
}

impl Reader<'_, '_> {
    fn check(&self, default_source: Option<&str>, banded: bool) -> Option<Check> {
        let section = self.section;
        let name: Option<String> = section.require("name");
        let metric = match section.node("metric") {
            Some(node) => self.metric("metric", node),
            None => {
                section.missing("metric", "a path into the summary, like \"fabric_rtt_us.mean\"");
                None
            }
        };
        let order = self.increasing();
        let runs = match &order {
            Some(order) => order.clone(),
            None => self.runs(),
        };
        let relative = match (section.node("relative_to"), metric.as_deref()) {
            (Some(node), Some(metric)) => Some(self.relative(node, metric, runs.as_deref()?)?),
            _ => None,
        };
        let rank = self.rank(order.is_some(), runs.as_deref());
        let reduce = match (&order, rank) {
            (Some(_), _) => Some(Some(Reduce::Rise)),
            (None, Some(rank)) => Some(Some(rank)),
            (None, None) => self.reduce(runs.as_deref()),
        };
        let ratio = relative.is_some() || order.is_some() || rank.is_some();
        let unit = if reduce == Some(Some(Reduce::Exponent)) {
            section.no_effect("unit", "on an exponent, which has none");
            self.check_exponent(runs.as_deref()?);
            Some(String::new())
        } else {
            metric.as_ref().map(|metric| self.unit(metric, ratio))
        };
        let kind = self.kind(banded);
        let (low, high) = self.band(banded, order.is_some());
        let paper = section.get("paper");
        self.check_band(paper, low, high);
        let (fitted, reading_error) =
            (self.reason("fitted", banded), self.reason("reading_error", banded));
        let source: Option<String> = section.get("source");
        let source = source.or(default_source.map(str::to_owned));
        if source.is_none() {
            section.missing("source", "where the number is from, like \"Swift Fig. 17\"");
        }
        let why = section.get("why");
        let differs = self.differs(banded);
        if let Some(kind) = kind {
            let exempt = fitted.is_some() || reading_error.is_some();
            self.check_kind(kind, (paper, low, high), exempt, why.is_some());
        }
        let samples: Option<u64> = section.get("samples");
        if let (Some(_), Some(metric)) = (samples, &metric) {
            let known = || METRICS.iter().copied().chain(self.scoped.iter().map(String::as_str));
            let counted = count_of(metric).is_some_and(|count| known().any(|one| one == count));
            let message = "has no effect: the metric is no number of a distribution; remove it";
            section.check(counted, "samples", message);
        }
        let quick = is_in_quick_runs(section);
        if relative == Some(Relative::Value) {
            self.check_values(metric.as_deref()?, runs.as_deref()?);
        }
        Some(Check {
            name: name?,
            kind,
            fitted,
            reading_error,
            metric: metric?,
            runs: runs?,
            reduce: reduce?,
            relative,
            samples,
            paper,
            unit: unit?,
            low,
            high,
            source: source?,
            why,
            differs,
            quick,
        })
    }

    fn metric(&self, key: &str, node: &Node) -> Option<String> {
        let path: String = self.section.read_node(key, node)?;
        let known = || METRICS.iter().copied().chain(self.scoped.iter().map(String::as_str));
        if known().any(|metric| metric == path) {
            return Some(path);
        }
        // A missing name of a part is more likely than a misspelt number.
        let lacks = |part: &str| path.starts_with(part) && !known().any(|m| m.starts_with(part));
        let hint = if lacks("workload.") {
            "; no workload of this scenario has a `name`".to_owned()
        } else {
            suggestion(&path, known())
        };
        self.problems.add(node.place, format!("unknown metric \"{path}\"{hint}"));
        None
    }

    /// Reads `increasing = [...]`: the variants in whose order the metric grows. The inner `None` means
    /// that an error was reported.
    fn increasing(&self) -> Option<Option<Vec<usize>>> {
        let node = self.section.node("increasing")?;
        for key in ["variant", "reduce"] {
            self.section.no_effect(key, "with `increasing`, which lists the variants");
        }
        let Value::List(list) = &node.value else {
            self.section.problem("increasing", "must be a list of variants, the smallest first");
            return Some(None);
        };
        let message = "must list two variants or more, the smallest first";
        self.section.check(list.len() > 1, "increasing", message);
        Some(list.iter().map(|node| self.variant(node)).collect())
    }

    fn runs(&self) -> Option<Vec<usize>> {
        let all = || (0..self.variants.len().max(1)).collect();
        let Some(node) = self.section.node("variant") else { return Some(all()) };
        match &node.value {
            Value::Text(text) if text == "all" => Some(all()),
            Value::List(list) => list.iter().map(|node| self.variant(node)).collect(),
            _ => Some(vec![self.variant(node)?]),
        }
    }

    fn variant(&self, node: &Node) -> Option<usize> {
        let name: String = self.section.read_node("variant", node)?;
        let found = self.variants.iter().position(|variant| variant.name == name);
        if found.is_none() {
            let message = if self.variants.is_empty() {
                format!("unknown variant `{name}`; this scenario has none")
            } else {
                let names = self.variants.iter().map(|variant| variant.name.as_str());
                format!("unknown variant `{name}`{}", suggestion(&name, names))
            };
            self.problems.add(node.place, message);
        }
        found
    }

    /// Reads `reduce`; the outer `None` means that an error was reported.
    fn reduce(&self, runs: Option<&[usize]>) -> Option<Option<Reduce>> {
        if self.section.node("reduce").is_none() {
            return Some(None);
        }
        let reduce = self.section.meaning("reduce", &REDUCE)?;
        if runs.is_some_and(|runs| runs.len() == 1) {
            self.section.no_effect("reduce", "on one run");
        }
        Some(Some(reduce))
    }

    /// Reads `rank_of`, which combines several runs that have no order.
    fn rank(&self, ordered: bool, runs: Option<&[usize]>) -> Option<Reduce> {
        let number: f64 = self.section.get("rank_of")?;
        if ordered {
            self.section.no_effect("rank_of", "with `increasing`, whose value is a ratio");
        }
        self.section.no_effect("reduce", "with `rank_of`, which combines the variants itself");
        if runs.is_some_and(|runs| runs.len() == 1) {
            self.section.no_effect("rank_of", "on one run");
        }
        Some(Reduce::Rank(number))
    }

    /// Checks that the variants of an exponent have different, positive values.
    fn check_exponent(&self, runs: &[usize]) {
        let value = |run: &usize| self.variants.get(*run)?.value.map(|(value, _)| value);
        let values: Option<Vec<f64>> = runs.iter().map(value).collect();
        let fits = values.as_ref().is_some_and(|values| {
            values.iter().all(|value| *value > 0.0) && values.iter().any(|v| *v != values[0])
        });
        let must = "\"exponent\" needs variants with a `value` above 0, and not all the same";
        self.section.check(fits, "reduce", must);
    }

    fn relative(&self, node: &Node, metric: &str, runs: &[usize]) -> Option<Relative> {
        match &node.value {
            Value::Text(text) if text == "max" => Some(Relative::Largest),
            Value::Text(text) if text == "value" => Some(Relative::Value),
            Value::Table(table) => {
                let inner = Section::new(
                    table,
                    &RELATIVE_TO,
                    "check.relative_to",
                    node.place,
                    self.problems,
                );
                let bases = inner.node("variant").map(|node| self.bases(node, runs));
                if bases.is_none() && inner.node("metric").is_none() {
                    inner.missing("variant", "the name of a variant, or another `metric`");
                }
                let other = match inner.node("metric") {
                    Some(node) => self.metric("relative_to.metric", node),
                    None => Some(metric.to_owned()),
                };
                let gain: Option<bool> = inner.get("gain");
                if bases.is_none() {
                    inner.no_effect("gain", "without `variant`, whose metric is the divisor");
                }
                inner.finish();
                let other = other?;
                if unit_of(&other) != unit_of(metric) {
                    let message = format!("`{metric}` and `{other}` have different units");
                    self.problems.add(node.place, message);
                }
                match bases {
                    Some(bases) => Some(Relative::Runs {
                        runs: bases?,
                        metric: other,
                        gain: gain.unwrap_or(false),
                    }),
                    None => Some(Relative::Own { metric: other }),
                }
            }
            other => {
                let message = format!(
                    "`relative_to` must be \"max\", \"value\", {{ variant = \"...\" }} or \
                     {{ metric = \"...\" }}, not {}",
                    other.describe()
                );
                self.problems.add(node.place, message);
                None
            }
        }
    }

    /// Returns the runs whose values are divisors: one for all runs of the check, or one for each.
    fn bases(&self, node: &Node, runs: &[usize]) -> Option<Vec<usize>> {
        let Value::List(list) = &node.value else { return Some(vec![self.variant(node)?]) };
        if list.len() != runs.len() || list.len() < 2 {
            let message = format!(
                "`check.relative_to.variant` lists {} variants for {} of the check; give one variant, or one per variant of the check",
                list.len(),
                runs.len()
            );
            self.problems.add(node.place, message);
            return None;
        }
        list.iter().map(|node| self.variant(node)).collect()
    }

    fn unit(&self, metric: &str, relative: bool) -> String {
        let own = if relative { "" } else { unit_of(metric) };
        let Some(unit) = self.section.get::<String>("unit") else { return own.to_owned() };
        let percent = relative || is_fraction(metric);
        if unit != own && !(percent && unit == "%") {
            let right = match (own, percent) {
                ("", true) => "\"%\", or none for a fraction".to_owned(),
                ("", false) => "none: it counts something".to_owned(),
                (own, _) => format!("\"{own}\""),
            };
            let message = format!("cannot be \"{unit}\"; the unit of `{metric}` is {right}");
            self.section.problem("unit", message);
        }
        unit
    }

    /// Returns the accepted band; by default a growing metric never falls below the previous value.
    fn band(&self, banded: bool, grows: bool) -> (Option<f64>, Option<f64>) {
        if !banded {
            let why = "in `[[show]]`, which has no band; use `[[check]]`";
            self.section.no_effect("low", why);
            self.section.no_effect("high", why);
            return (None, None);
        }
        let (low, high) = (self.section.get("low"), self.section.get("high"));
        if self.section.node("low").is_none() && self.section.node("high").is_none() {
            if grows {
                return (Some(1.0), None);
            }
            self.section.missing("low", "a number; a check needs `low`, `high` or both");
        }
        (low, high)
    }

    /// Returns the kind of a check. `None` for a number that is only shown, or if an error was reported.
    fn kind(&self, banded: bool) -> Option<CheckKind> {
        if !banded {
            self.section.no_effect("kind", "in `[[show]]`, which checks nothing; use `[[check]]`");
            return None;
        }
        if self.section.node("kind").is_none() {
            let words = "\"reproduction\", \"shape\", \"invariant\" or \"formula\"";
            self.section.missing("kind", &format!("{words}, by what the check shows"));
            return None;
        }
        self.section.meaning("kind", &CheckKind::WORDS)
    }

    /// Reads a text of a check that must give a reason.
    fn reason(&self, key: &'static str, banded: bool) -> Option<String> {
        let text: Option<String> = self.section.get(key);
        if !banded {
            self.section.no_effect(key, "in `[[show]]`, which has no band; use `why`");
        }
        if let Some(text) = &text {
            let message = "must name the settings or numbers that it is about";
            self.section.check(text.trim().len() > 20, key, message);
        }
        text
    }

    /// Checks the rules of each kind. `exempt` means that the band of the check may be wider than that of a
    /// reproduction, `reasoned` that the check has a `why`.
    fn check_kind(
        &self,
        kind: CheckKind,
        (paper, low, high): (Option<f64>, Option<f64>, Option<f64>),
        exempt: bool,
        reasoned: bool,
    ) {
        let section = self.section;
        if kind != CheckKind::Reproduction {
            let word = kind.word();
            let why = format!("with the kind \"{word}\", whose band is its own; use `why`");
            section.no_effect("reading_error", &why);
            if matches!(kind, CheckKind::Invariant | CheckKind::Formula) {
                section.no_effect("fitted", &format!("with the kind \"{word}\""));
            }
            if kind == CheckKind::Invariant {
                let why = "with the kind \"invariant\", as no publication states it";
                section.no_effect("paper", why);
            } else if paper.is_some() && !reasoned {
                let must = format!(
                    "the reason why a check with a publication's value has the kind \"{word}\""
                );
                section.missing("why", &must);
            }
            return;
        }
        let Some(paper) = paper else {
            section.missing("paper", "the publication's value, which a reproduction needs");
            return;
        };
        let (Some(low), Some(high)) = (low, high) else {
            let key = if low.is_none() { "low" } else { "high" };
            section.missing(key, "a number; a reproduction needs `low` and `high`");
            return;
        };
        // The ends of a band are written with few digits.
        let widest = (WIDEST_BAND + 0.005) * paper.abs();
        if exempt && low >= paper - widest && high <= paper + widest {
            section.no_effect("reading_error", "on a band within 25 % of `paper`");
        }
        if !exempt {
            let wide = |end: f64| {
                format!(
                    "is {end}, more than 25 % from `paper`, which is {paper}; narrow the band, or give the reason \
                     in `reading_error`"
                )
            };
            section.check(low >= paper - widest, "low", wide(low));
            section.check(high <= paper + widest, "high", wide(high));
        }
    }

    fn differs(&self, banded: bool) -> Option<String> {
        let differs: Option<String> = self.section.get("differs");
        if !banded {
            self.section.no_effect("differs", "in `[[show]]`, which has no band; use `why`");
        }
        if let Some(text) = &differs {
            let message = "must give the measured value and the likely cause";
            self.section.check(text.trim().len() > 20, "differs", message);
        }
        differs
    }

    fn check_band(&self, paper: Option<f64>, low: Option<f64>, high: Option<f64>) {
        if let (Some(low), Some(high)) = (low, high) {
            let message = format_args!("is {low}, above `high`, which is {high}");
            self.section.check(low <= high, "low", message);
        }
        if let Some(paper) = paper {
            let holds = low.is_none_or(|low| low <= paper) && high.is_none_or(|h| paper <= h);
            let message = format_args!("is {paper}, which the band itself does not accept");
            self.section.check(holds, "paper", message);
        }
    }

    fn check_values(&self, metric: &str, runs: &[usize]) {
        for &run in runs {
            let Some(variant) = self.variants.get(run) else {
                self.section.problem("relative_to", "\"value\" needs variants with a `value`");
                continue;
            };
            match variant.value {
                Some((value, unit))
                    if value != 0.0 && (unit == unit_of(metric) || unit.is_empty()) => {}
                Some((value, unit)) => {
                    let message = format!(
                        "\"value\" of `{}` is {value} {unit}, which `{metric}` in {} cannot be \
                         compared with",
                        variant.name,
                        unit_of(metric)
                    );
                    self.section.problem("relative_to", message);
                }
                None => {
                    let message =
                        format!("\"value\" needs a `value` of the variant `{}`", variant.name);
                    self.section.problem("relative_to", message);
                }
            }
        }
    }
}
