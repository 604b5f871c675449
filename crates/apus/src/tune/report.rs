//! Result of `apus tune`: two values, their curves, and the reasons.

use apus_scenario::Setup;
use apus_sim::bounds::Bounds;
use apus_units::Span;
use serde_json::{Map, Value, json};

use super::curve::{
    Curve, Fails, GOODPUT, JAIN, METRICS, Parameter, Parameters, Sample, UNFINISHED,
};
use super::search::{GROWTH, MOST};
use crate::chart;
use crate::sweep::Axis;
use crate::sweep::of_rows;
use crate::sweep::table::{Row, heading};
use crate::text::{bounds, columns, number};

const P50: usize = 1;
const P99: usize = 2;
const LOSS: usize = 5;
/// Minimum ratio of the goodputs over all targets at which goodput counts as independent of the target.
const FLAT: f64 = 0.98;

/// Results of the search.
pub struct Report<'a> {
    pub(super) setup: &'a Setup,
    pub(super) label: &'a str,
    /// Minimum goodput, in percent of the best.
    pub(super) keep: f64,
    pub(super) seeds: u64,
    pub(super) unloaded_us: f64,
    /// Smallest base target with which a single flow fills its link.
    pub(super) floor: Span,
    pub(super) parameters: Parameters,
    pub(super) target: Curve,
    pub(super) scaling: Option<Curve>,
}

impl Report<'_> {
    /// Returns the base target to set; `None` if no tried value keeps the throughput.
    #[must_use]
    pub fn base(&self) -> Option<Span> {
        self.target.found.map(|found| found.max(self.floor))
    }

    /// Returns the flow-scaling range to set.
    fn range(&self) -> Option<Span> {
        self.scaling.as_ref()?.found
    }

    /// Returns the run with the scenario's values and the run with the tuned values, each with its name.
    pub(super) fn runs(&self) -> Vec<Setup> {
        let present = self.setup.clone().with_name("original");
        let Some(base) = self.base() else { return vec![present] };
        let values = [
            Some((Parameter::BaseTarget, base)),
            self.range().map(|range| (Parameter::FlowScaling, range)),
        ];
        let mut tuned = self.setup.clone();
        for (parameter, value) in values.into_iter().flatten() {
            let text = value.to_string();
            let changes = [(parameter.name(), text.as_str())];
            // The search has already run with these values.
            match tuned.clone().with_parameters(self.label, &changes, parameter.dropped(value)) {
                Ok(changed) => tuned = changed,
                Err(_) => return vec![present],
            }
        }
        vec![present, tuned.with_name(&format!("tuned: base_target {base}"))]
    }

    /// Returns the text that the command prints.
    #[must_use]
    pub fn text(&self) -> String {
        let (first, last) = (self.setup.seed(), self.setup.seed() + self.seeds - 1);
        let seeds = match self.seeds {
            1 => format!("seed {first}"),
            _ => format!("seeds {first} to {last}, medians"),
        };
        let mut text = format!(
            "{}, {} ({}; smallest fabric RTT {} us)\n\n",
            self.setup.name(),
            self.label,
            seeds,
            number(self.unloaded_us)
        );
        text += "flow scaling off:\n\n";
        text += &self.table(&self.target);
        if let Some(scaling) = &self.scaling {
            text += &format!("\nbase_target {}:\n\n", shown(self.base()));
            text += &self.table(scaling);
        }
        match self.base() {
            Some(base) => {
                text += &format!("\nbase_target = \"{base}\"");
                text += &match self.range() {
                    Some(range) => format!("\nfs_range = \"{range}\"\n\n"),
                    None => "\nfs_range: unchanged; none of the tried values keeps goodput and \
                             fairness\n\n"
                        .to_owned(),
                };
            }
            None => text += "\nnone of the tried targets keeps the throughput\n\n",
        }
        text + &self.reasons().join("\n") + "\n"
    }

    fn table(&self, curve: &Curve) -> String {
        columns(&self.lines(curve), "")
    }

    fn lines(&self, curve: &Curve) -> Vec<Vec<String>> {
        let mut rows = vec![vec![curve.parameter.name().to_owned(), "keeps".to_owned()]];
        rows[0].extend(METRICS.iter().map(|name| heading(name)));
        for sample in &curve.samples {
            let mark = match self.fails(curve, sample) {
                Some(fails) => format!("no: {}", fails.word()),
                None if Some(sample.value) == curve.found => "yes <-".to_owned(),
                None => "yes".to_owned(),
            };
            let mut row = vec![sample.value.to_string(), mark];
            row.extend((0..METRICS.len()).map(|index| median_text(sample, index)));
            rows.push(row);
        }
        rows
    }

    /// Returns why a value of a curve cannot be chosen.
    fn fails(&self, curve: &Curve, sample: &Sample) -> Option<Fails> {
        curve.fails(sample, self.keep / 100.0)
    }

    /// Returns the reasons for these values, with numbers from the curves.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = self.why_target();
        if let Some(scaling) = &self.scaling {
            reasons.extend(self.why_range(scaling));
        }
        reasons.push(format!(
            "The scenario has base_target {} and fs_range {}.",
            self.parameters.base_target, self.parameters.fs_range
        ));
        reasons
    }

    fn why_target(&self) -> Vec<String> {
        let curve = &self.target;
        let best = curve.best_goodput();
        let Some(found) = curve.found else {
            return vec![format!(
                "None of the targets tried keeps the goodput; the best, {} Gb/s, is at {}.",
                number(best),
                shown(curve.most_goodput().map(|sample| sample.value))
            )];
        };
        let mut reasons = Vec::new();
        let least = curve.samples.iter().filter_map(|s| s.known(GOODPUT)).fold(best, f64::min);
        if least >= FLAT * best {
            reasons.push(format!(
                "Goodput is {} Gb/s for every target: this traffic fills its links without a queue, so \
                 throughput does not determine a target.",
                number(best)
            ));
        }
        let below = curve.samples.iter().rev().find(|sample| sample.value < found);
        let below = below.and_then(|below| Some((below, self.fails(curve, below)?)));
        if let Some((below, fails)) =
            below.filter(|(_, fails)| least < FLAT * best || *fails != Fails::Goodput)
        {
            let smaller = curve.samples.iter().filter(|sample| sample.value < below.value);
            let rises = smaller.filter_map(|s| s.known(GOODPUT)).fold(0.0, f64::max)
                <= below.known(GOODPUT).unwrap_or(0.0);
            reasons.push(describe_next_smaller(below, (fails, rises), best, self.unloaded_us));
        }
        if let Some(most) = curve.most_goodput() {
            let last = curve.samples.last().map(|sample| sample.value);
            if self.fails(curve, most) == Some(Fails::Unfinished)
                && most.known(GOODPUT).is_some_and(|goodput| goodput * self.keep / 100.0 > best)
            {
                reasons.push(format!(
                    "At {} goodput is {} Gb/s, but {} ops are unfinished that other targets finish.",
                    most.value,
                    median_text(most, GOODPUT),
                    median_text(most, UNFINISHED)
                ));
            } else if last == Some(most.value) && found.mul_f64(GROWTH) > most.value {
                let last = most.value;
                reasons.push(format!("At the largest target tried, {last}, goodput still grows."));
            }
        }
        if let Some(chosen) = curve.sample(found) {
            reasons.push(cost(chosen, best, self.unloaded_us));
            let double = curve.samples.iter().find(|s| s.value >= found.mul_f64(2.0));
            if let Some(double) = double {
                reasons.push(describe_doubled(chosen, double));
            }
        }
        if found < self.floor {
            reasons.push(format!(
                "{found} is enough here, because many flows with windows of at least a packet share the \
                 links, or the links are not filled. The window of a single flow would shrink without \
                 end with a target below the unloaded RTT of {} us. The result is therefore {}, {}.",
                number(self.unloaded_us),
                self.floor,
                if self.floor == MOST {
                    "the largest target of an algorithm".to_owned()
                } else {
                    format!("this RTT minus one hop_scale ({})", self.parameters.hop_scale)
                }
            ));
        }
        reasons
    }

    fn why_range(&self, scaling: &Curve) -> Vec<String> {
        let Some(range) = scaling.found else {
            let none = "None of the tried ranges of flow scaling keeps goodput and fairness.";
            return vec![none.to_owned()];
        };
        let fairness = if scaling.fair { " and Jain's index" } else { "" };
        if range.is_zero() {
            return vec![format!(
                "Flow scaling can be off: without it goodput{fairness} {} equally good. That holds for \
                 this number of flows; with more flows per link flow scaling keeps them fair (Swift §3.5).",
                if scaling.fair { "are" } else { "is" }
            )];
        }
        let text = |sample: Option<&Sample>, index| {
            sample.map_or_else(|| "-".to_owned(), |sample| median_text(sample, index))
        };
        let less = scaling.samples.iter().rev().find(|sample| sample.value < range);
        let mut reason = format!(
            "Flow scaling needs {range}: with {} goodput is {} Gb/s",
            shown(less.map(|sample| sample.value)),
            text(less, GOODPUT),
        );
        if less.and_then(|less| self.fails(scaling, less)) == Some(Fails::Unfinished) {
            reason += &format!(
                ", {} ops are unfinished that other ranges finish",
                text(less, UNFINISHED)
            );
        }
        if scaling.fair {
            let best = number(scaling.best(JAIN));
            reason += &format!(" and Jain's index {} (at best {best})", text(less, JAIN));
        }
        let (off, on) = (scaling.sample(Span::ZERO), scaling.sample(range));
        reason += &format!(
            ". It raises the median fabric RTT from {} to {} us, and p99 from {} to {} us.",
            text(off, P50),
            text(on, P50),
            text(off, P99),
            text(on, P99)
        );
        vec![reason]
    }

    /// Returns the content of tune.json.
    #[must_use]
    pub fn json(&self) -> Value {
        let curve = |curve: &Curve| {
            let samples = curve.samples.iter().map(|sample| {
                let median = |(index, name): (usize, &&str)| {
                    ((*name).to_owned(), median_json(sample.median(index)))
                };
                let medians: Map<String, Value> = METRICS.iter().enumerate().map(median).collect();
                json!({
                    "value_us": sample.value.as_us_f64(),
                    "keeps": self.fails(curve, sample).is_none(),
                    "fails": self.fails(curve, sample).map(Fails::word),
                    "medians": medians,
                })
            });
            samples.collect::<Vec<Value>>()
        };
        let us = |span: Option<Span>| span.map(Span::as_us_f64);
        json!({
            "scenario": self.setup.name(),
            "algorithm": self.label,
            "keep": self.keep / 100.0,
            "seeds": self.seeds,
            "unloaded_fabric_rtt_us": self.unloaded_us,
            "base_target_us": us(self.base()),
            "fs_range_us": us(self.range()),
            "base_target_floor_us": self.floor.as_us_f64(),
            "why": self.reasons(),
            "base_target_curve": curve(&self.target),
            "fs_range_curve": self.scaling.as_ref().map(curve),
        })
    }

    /// Returns the charts of the curves by file name.
    pub(super) fn charts(&self) -> Vec<(&'static str, String)> {
        let mut charts = vec![("tune.svg", self.chart(&self.target, self.base()))];
        if let Some(scaling) = &self.scaling {
            charts.push(("tune-fs_range.svg", self.chart(scaling, self.range())));
        }
        charts
    }

    /// Returns the page: the values of the target with the chosen one and the reasons, these runs, and the errors of
    /// other runs.
    pub(super) fn html(&self, runs: Vec<Value>, failures: &[String]) -> String {
        let curve = |curve: &Curve, tuned: Option<Span>, reasons| {
            let key = curve.parameter.name().to_owned();
            let values: Vec<String> =
                curve.samples.iter().map(|one| one.value.to_string()).collect();
            let row = |(sample, value): (&Sample, &String)| Row {
                values: vec![value.clone()],
                variant: None,
                numbers: sample.numbers.clone(),
            };
            let rows: Vec<Row> = curve.samples.iter().zip(&values).map(row).collect();
            let chosen = curve.samples.iter().position(|sample| Some(sample.value) == tuned);
            let caption =
                format!("{key} tuned to {}, medians over seeds: {}", shown(tuned), self.seeds);
            let axes = [Axis { key, values }];
            of_rows(caption, &axes, &rows, &METRICS.map(str::to_owned), chosen, reasons)
        };
        let mut comparison = curve(&self.target, self.base(), self.reasons());
        comparison.reasons.extend(failures.iter().cloned());
        if let Some(scaling) = &self.scaling {
            let lines = self.lines(scaling);
            let caption = format!("fs_range with base_target {}", shown(self.base()));
            comparison.tables.push((caption, lines));
        }
        let subtitle = format!("target delay of {}", self.label);
        let report = crate::report::Report::new("tune", self.setup.name(), &subtitle);
        let setup = crate::report::describe_all(std::iter::once(self.setup));
        let comparison = Some(comparison);
        crate::report::Report { setup, runs, comparison, ..report }.html()
    }

    fn chart(&self, curve: &Curve, tuned: Option<Span>) -> String {
        let values: Vec<String> =
            curve.samples.iter().map(|sample| sample.value.to_string()).collect();
        let row = |(sample, value): (&Sample, &String)| Row {
            values: vec![value.clone()],
            variant: None,
            numbers: sample.numbers.clone(),
        };
        let rows: Vec<Row> = curve.samples.iter().zip(&values).map(row).collect();
        let name = curve.parameter.name();
        let axes = [Axis { key: name.to_owned(), values }];
        let title = format!("{}: {name} tuned to {}", self.setup.name(), shown(tuned));
        chart::draw(&title, &axes, &rows, &METRICS.map(str::to_owned))
    }
}

fn median_text(sample: &Sample, index: usize) -> String {
    sample.median(index).map_or_else(|| "-".to_owned(), bounds)
}

/// Returns a number, or its bounds if it is censored.
fn median_json(median: Option<Bounds>) -> Value {
    let Some(median) = median else { return Value::Null };
    let upper = median.upper.is_finite().then_some(median.upper);
    median.value().map_or_else(|| json!({ "lower": median.lower, "upper": upper }), Value::from)
}

fn shown(value: Option<Span>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Returns why the next smaller value cannot be chosen. Windows are named as the reason only if goodput increases with
/// the target up to the chosen value.
fn describe_next_smaller(
    below: &Sample,
    (fails, rises): (Fails, bool),
    best: f64,
    unloaded_us: f64,
) -> String {
    let share = number(below.known(GOODPUT).unwrap_or(0.0) / best * 100.0);
    let text = format!("Below it, at {}, goodput is {share} % of the best", below.value);
    match fails {
        Fails::Unfinished => format!(
            "{text}, but {} ops are unfinished that other targets finish.",
            median_text(below, UNFINISHED)
        ),
        Fails::Goodput if rises => format!(
            "{text}: windows shrink before the queue (median {} us) can cover idle gaps caused by hosts and \
             bursts.",
            below.known(P50).map_or("-".to_owned(), |p50| number(p50 - unloaded_us))
        ),
        Fails::Goodput | Fails::Fairness => text + ".",
    }
}

/// Returns the cost of the chosen value.
fn cost(chosen: &Sample, best: f64, unloaded_us: f64) -> String {
    let share = chosen.known(GOODPUT).unwrap_or(0.0) / best * 100.0;
    let queueing = chosen.known(P50).map_or(0.0, |p50| p50 - unloaded_us);
    format!(
        "At {} goodput is {} % of the best, the median fabric RTT {} us ({} us of it queueing), p99 {} \
         us, loss {} %.",
        chosen.value,
        number(share),
        median_text(chosen, P50),
        number(queueing),
        median_text(chosen, P99),
        chosen.known(LOSS).map_or("-".to_owned(), |loss| number(loss * 100.0))
    )
}

/// Returns the effect of twice the value.
fn describe_doubled(chosen: &Sample, double: &Sample) -> String {
    let of = |sample: &Sample, index: usize| sample.known(index).unwrap_or(0.0);
    let gain = (of(double, GOODPUT) / of(chosen, GOODPUT) - 1.0) * 100.0;
    format!(
        "At {} goodput is {} % {} and the p99 of the fabric RTT {} times as long.",
        double.value,
        number(gain.abs()),
        if gain < 0.0 { "lower" } else { "higher" },
        number(of(double, P99) / of(chosen, P99))
    )
}
