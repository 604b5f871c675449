//! The ranking of failures as text, JSON and table.

use apus_sim::bounds::Bounds;
use apus_sim::columns::{CellType, Table, Value as Cell, unit_of};
use serde_json::{Value, json};

use super::harm::{Harm, Healthy};
use super::units::{Case, Fault, Unit};
use crate::output::OutputDir;
use crate::tables::{column, write_any};
use crate::text::{self, bounds, number};

/// Maximum number of failures in the text.
const SHOWN: usize = 20;

/// Failures, the worst first.
pub(super) struct Report<'a> {
    file: &'a str,
    fault: &'a Fault,
    healthy: Healthy,
    ranked: Vec<(String, Harm)>,
    failed: Vec<String>,
    missing: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        file: &'a str,
        fault: &'a Fault,
        healthy: Healthy,
        cases: Vec<Case>,
        results: Vec<Option<Result<Harm, String>>>,
    ) -> Self {
        let (mut ranked, mut failed, mut missing) = (Vec::new(), Vec::new(), 0);
        for (case, result) in cases.into_iter().zip(results) {
            let name = case.iter().map(Unit::name).collect::<Vec<_>>().join(" and ");
            match result {
                Some(Ok(harm)) => ranked.push((name, harm)),
                Some(Err(why)) => failed.push(format!("{name}: {why}")),
                None => missing += 1,
            }
        }
        ranked.sort_by(|a, b| {
            let (a, b) = (healthy.rank(&a.1), healthy.rank(&b.1));
            (b.0, b.1).cmp(&(a.0, a.1)).then(b.2.total_cmp(&a.2))
        });
        Self { file, fault, healthy, ranked, failed, missing }
    }

    pub(super) fn failures(&self) -> &[String] {
        &self.failed
    }

    fn unit(&self) -> String {
        match unit_of(&self.healthy.metric) {
            "" => String::new(),
            unit => format!(" {unit}"),
        }
    }

    pub(super) fn json(&self) -> Value {
        let finite = |value: f64| value.is_finite().then_some(value);
        let of = |value: Option<Bounds>| {
            json!({
                "value": value.and_then(Bounds::value),
                "lower": value.and_then(|v| finite(v.lower)),
                "upper": value.and_then(|v| finite(v.upper)),
            })
        };
        let failure = |(name, harm): &(String, Harm)| {
            let (worst, excess) = harm.worst.as_ref().map(|(flow, excess)| (flow, excess)).unzip();
            json!({
                "failure": name,
                "stop_reason": harm.stopped,
                "metric": of(harm.value),
                "ratio": self.healthy.ratio(harm),
                "unfinished": harm.unfinished,
                "lost_packets": harm.lost,
                "delayed_flows": harm.flows,
                "worst_flow": worst,
                "worst_excess_us": excess.map(|excess| excess.as_us_f64()),
                "delayed_for_us": harm.lasted.map(|lasted| lasted.as_us_f64()),
                "even_after_us": harm.even_after_us,
            })
        };
        json!({
            "scenario": self.file,
            "fault": self.fault.text,
            "metric": self.healthy.metric,
            "healthy": {
                "metric": of(Some(self.healthy.value)),
                "unfinished": self.healthy.unfinished,
                "lost_packets": self.healthy.lost,
            },
            "failures": self.ranked.iter().map(failure).collect::<Vec<_>>(),
            "failed": self.failed,
        })
    }

    /// Writes whatif.csv, or the table in another format.
    pub(super) fn write_table(&self, dir: &OutputDir) -> Result<(), String> {
        let columns = vec![
            column("failure", CellType::Text, "links or switches that fail"),
            column("metric", CellType::Text, "metric that ranks failures"),
            column("value", CellType::Number, "the metric; empty if it is censored or missing"),
            column("lower", CellType::Number, "its lower bound"),
            column("ratio", CellType::Number, "lower bound over the value without the failure"),
            column("unfinished", CellType::Number, "ops that had not ended"),
            column("lost_packets", CellType::Number, "packets lost for any cause"),
            column(
                "delayed_flows",
                CellType::Number,
                "flows with an op that took over 10 % longer than their longest op without the failure",
            ),
            column("worst_excess_us", CellType::Number, "largest excess of such an op"),
            column(
                "delayed_for_us",
                CellType::Number,
                "from the beginning of the fault to the end of the last such op",
            ),
            column(
                "even_after_us",
                CellType::Number,
                "until the load of the parallel links was even again",
            ),
        ];
        let table =
            Table { file: "whatif.csv", row: "One row per failure, the worst first.", columns };
        let optional = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Number);
        let rows = self.ranked.iter().map(|(name, harm)| {
            let texts = [name.as_str(), self.healthy.metric.as_str()].map(Cell::Text);
            let numbers = [
                harm.value.and_then(Bounds::value),
                harm.value.map(|value| value.lower),
                self.healthy.ratio(harm),
                Some(harm.unfinished as f64),
                Some(harm.lost as f64),
                Some(harm.flows as f64),
                harm.worst.as_ref().map(|(_, excess)| excess.as_us_f64()),
                harm.lasted.map(|lasted| lasted.as_us_f64()),
                harm.even_after_us,
            ];
            texts.into_iter().chain(numbers.map(optional)).collect()
        });
        write_any(dir, &table, rows.collect())
    }

    pub(super) fn text(&self) -> String {
        let Healthy { metric, value, .. } = &self.healthy;
        let unit = self.unit();
        let mut text = format!(
            "{}: {metric} without a failure {}{unit}; {} packets lost\n\n",
            self.file,
            bounds(*value),
            self.healthy.lost
        );
        let heading = [
            "failure",
            "",
            "times",
            "flows delayed",
            "delayed for",
            "packets lost",
            "unfinished",
            "worst flow",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows[0][1] = format!(
            "{metric}{}",
            if unit.is_empty() { unit.clone() } else { format!(" [{}]", unit.trim()) }
        );
        for (name, harm) in self.ranked.iter().take(SHOWN) {
            let none = || "-".to_owned();
            let worst = |(flow, excess): &(String, apus_units::Span)| {
                format!("{flow}, +{} us", number(excess.as_us_f64()))
            };
            rows.push(vec![
                name.clone(),
                harm.value.map_or_else(none, bounds),
                self.healthy.ratio(harm).map_or_else(none, number),
                harm.flows.to_string(),
                harm.lasted
                    .map_or_else(none, |lasted| format!("{} us", number(lasted.as_us_f64()))),
                harm.lost.to_string(),
                harm.unfinished.to_string(),
                harm.worst.as_ref().map_or_else(none, worst),
            ]);
        }
        text += &text::columns(&rows, "");
        let count = self.ranked.len();
        if count > SHOWN {
            text +=
                &format!("and {} more with less harm; --json and --out list all\n", count - SHOWN);
        }
        for (name, why) in
            self.ranked.iter().filter_map(|(name, harm)| Some((name, harm.stopped.as_ref()?)))
        {
            text += &format!("{name}: {why}; --watchdog sets the span\n");
        }
        let same = self.ranked.iter().filter(|(_, harm)| self.healthy.is_same(harm)).count();
        text += &format!(
            "\nfault \"{}\": {same} of {count} failures change {metric} by at most 1 %\n",
            self.fault.text
        );
        if self.missing > 0 {
            text += &format!("{} failures were not run\n", self.missing);
        }
        text
    }
}
