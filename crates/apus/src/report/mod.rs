//! `report.html`: the results of any command as one page that needs no network.
//!
//! The page is a template with its style, its scripts and a chart library (Observable Plot) in line. The data is JSON
//! within the page, reduced to the resolution of a screen. The page states every omission where it occurs.

mod causes;
mod chain;
mod command;
mod comparison;
mod jobs;
mod joined;
mod load;
mod matrix;
mod network;
mod numbers;
mod ops;
mod second_run;
mod setup;
mod timeline;

use std::collections::BTreeMap;
use std::path::Path;

use apus_scenario::Setup;
use apus_scenario::experiment::{CheckResult, Shown};
use apus_scenario::file::{DATA_BYTES, read_text};
use apus_sim::results::TABLES;
use apus_sim::summary::Summary;
use serde_json::{Value, json};

use crate::program;
pub use command::ReportCommand;
pub use comparison::{Axis, Comparison, Distribution, Row};
pub use second_run::SecondRun;
pub(crate) use setup::describe_all;

const PAGE: &str = include_str!("../../assets/report/page.html");
const STYLE: &str = include_str!("../../assets/report/report.css");
/// Scripts in the order in which the page runs them.
const SCRIPTS: [&str; 14] = [
    include_str!("../../assets/report/base.js"),
    include_str!("../../assets/report/picture.js"),
    include_str!("../../assets/report/lines.js"),
    include_str!("../../assets/report/jobs.js"),
    include_str!("../../assets/report/faults.js"),
    include_str!("../../assets/report/first.js"),
    include_str!("../../assets/report/slowdown.js"),
    include_str!("../../assets/report/causes.js"),
    include_str!("../../assets/report/network.js"),
    include_str!("../../assets/report/topology.js"),
    include_str!("../../assets/report/overtime.js"),
    include_str!("../../assets/report/compare.js"),
    include_str!("../../assets/report/figures.js"),
    include_str!("../../assets/report/main.js"),
];
const CHARTS: &str = include_str!("../../assets/plot/plot.min.js");
const CHARTS_LICENCE: &str = include_str!("../../assets/plot/LICENSE");

/// Start of the data in the page.
const DATA: &str = "<script id=\"data\" type=\"application/json\">";

/// Content of a report.
pub struct Report<'a> {
    /// Command that produced the results.
    pub command: &'static str,
    /// Heading.
    pub title: &'a str,
    /// Subtitle.
    pub subtitle: &'a str,
    /// Set-up of a comparison without runs ([`describe_all`]); `null` if it is unknown.
    pub setup: Value,
    /// Runs ([`RunPage::json`]); runs with a recording have pictures.
    pub runs: Vec<Value>,
    /// Checks of an experiment.
    pub checks: &'a [CheckResult],
    /// Numbers of an experiment without a band.
    pub shown: &'a [Shown],
    /// Figures of a paper.
    pub figures: Vec<Value>,
    /// Comparison of settings or algorithms.
    pub comparison: Option<Comparison>,
}

/// A run of a report.
pub struct RunPage<'a> {
    /// Results of the run.
    pub summary: &'a Summary,
    /// Name of the run on the page.
    pub label: &'a str,
    /// Setup of the run, if it is known.
    pub setup: Option<&'a Setup>,
    /// The results of all seeds, for the spread of numbers.
    pub seeds: Vec<&'a Summary>,
    /// Causes of its slowest ops ([`SecondRun`]).
    pub causes: Option<&'a Value>,
}

impl<'a> Report<'a> {
    /// Returns a report without content.
    pub fn new(command: &'static str, title: &'a str, subtitle: &'a str) -> Self {
        Self {
            command,
            title,
            subtitle,
            setup: Value::Null,
            runs: Vec::new(),
            checks: &[],
            shown: &[],
            figures: Vec::new(),
            comparison: None,
        }
    }

    /// Returns the page.
    pub fn html(&self) -> String {
        page(self.title, &self.data())
    }

    /// Returns the data of the page.
    fn data(&self) -> Value {
        let metrics = self.comparison.iter().flat_map(|all| &all.metrics);
        let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
        for name in metrics.map(String::as_str).chain(numbers::METRICS.iter().map(|m| m.name)) {
            definitions.extend(definition(name).map(|text| (name.to_owned(), text)));
        }
        json!({
            "command": self.command,
            "program": program::BUILD,
            "title": self.title,
            "subtitle": self.subtitle,
            "setup": self.setup,
            "checks": self.checks,
            "shown": self.shown,
            "figures": self.figures,
            "definitions": definitions,
            "metrics": numbers::declarations(),
            "runs": self.runs,
            "comparison": self.comparison.as_ref().map(Comparison::json),
        })
    }
}

impl RunPage<'_> {
    /// Returns the data of the run, for a page with `runs` recorded runs.
    pub fn json(&self, runs: usize) -> Value {
        let summary = self.summary;
        let recorded = summary.recording.as_deref().map(|one| ops::of_workloads(summary, one));
        let mut value = json!({
            "name": summary.name,
            "label": self.label,
            "seed": summary.seed,
            "seeds": self.seeds.len().max(1),
            "setup": self.setup.map(setup::describe),
            "status": numbers::status(summary),
            "busiest_port": (summary.busiest_port.throughput_gbps > 0.0)
                .then_some(&summary.busiest_port.name),
            "numbers": numbers::of(summary, &self.seeds),
            "text": crate::text::overview(summary),
            "workloads": crate::text::workloads::table(summary, recorded.as_deref()),
            "jobs": jobs::json(summary),
            "notes": summary.notes,
            "stalled": summary.stalled.flows,
        });
        if let Some(recording) = &summary.recording {
            value["recording"] = timeline::json(recording, runs);
            value["recording"]["ops"] = ops::json(summary, recording, runs);
            value["recording"]["network"] = network::json(recording);
            value["causes"] = self.causes.cloned().unwrap_or(Value::Null);
        }
        value
    }
}

/// Adds the causes of the slowest ops, by the names of the runs, to the page at `file`.
///
/// # Errors
/// If the page cannot be read, or is not a report of this version.
pub fn with_causes(file: &Path, causes: &BTreeMap<String, Value>) -> Result<String, String> {
    let place = file.display();
    let text = read_text(file, DATA_BYTES).map_err(|error| format!("{place}: {error}"))?;
    let mut data = data_of(&text).ok_or_else(|| format!("{place}: is no report"))?;
    for run in data["runs"].as_array_mut().into_iter().flatten() {
        if let Some(found) = run["name"].as_str().and_then(|name| causes.get(name)) {
            run["causes"] = found.clone();
        }
    }
    let title = data["title"].as_str().unwrap_or_default();
    Ok(page(title, &data))
}

/// Returns the unit, the definition and the scope of a metric.
fn definition(name: &str) -> Option<Value> {
    let columns = TABLES.first()?.columns.iter();
    let column = columns.clone().find(|column| column.explains(name))?;
    Some(json!([apus_sim::columns::unit_of(name), column.definition, column.aggregation]))
}

/// Returns the page with this data.
fn page(title: &str, data: &Value) -> String {
    // Only the character `<` in the data could end the script element.
    let data = data.to_string().replace('<', "\\u003c");
    let licence = CHARTS_LICENCE.replace("*/", "");
    let scripts = SCRIPTS.concat();
    let title = crate::svg::escape(title);
    let parts = [
        ("{{title}}", title.as_str()),
        ("{{style}}", STYLE),
        ("{{data}}", &data),
        ("{{licence}}", &licence),
        ("{{charts}}", CHARTS),
        ("{{scripts}}", &scripts),
    ];
    let mut page = String::new();
    let mut rest = PAGE;
    // Parts are replaced one at a time, so that text within a part is never replaced.
    for (place, part) in parts {
        let Some((before, after)) = rest.split_once(place) else { continue };
        page += before;
        page += part;
        rest = after;
    }
    page + rest
}

/// Returns the data of a page; `None` if the page is not a report of this version.
pub(crate) fn data_of(page: &str) -> Option<Value> {
    let (_, rest) = page.split_once(DATA)?;
    let data: Value = serde_json::from_str(rest.split_once("</script>")?.0).ok()?;
    data.is_object().then_some(data)
}

/// Returns a number to four digits, more than a screen shows, but a count exactly; `null` if the number does not exist.
fn short(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return json!(value as i64);
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        json!(rounded as i64)
    } else {
        json!(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::{DATA, data_of};

    #[test]
    fn the_data_of_a_report_is_an_object() {
        let page = |data: &str| format!("<html>{DATA}{data}</script>");
        assert!(data_of(&page("{\"runs\": []}")).is_some());
        for other in ["[1]", "\"runs\"", "{", ""] {
            assert!(data_of(&page(other)).is_none(), "{other}");
        }
        assert!(data_of("<html></html>").is_none());
    }
}
