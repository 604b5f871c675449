//! Simulator and kernel side by side as a page.

use apus_sim::bounds::Bounds;

use super::report::{Comparisons, ROWS};
use crate::report::{self, Report};

/// Ends of the headings of numbers, and what the names of such metrics end with.
const UNITS: [(&str, &str); 3] = [(", us", "_us"), (", Gb/s", "_gbps"), (", packets", "_packets")];

impl Comparisons {
    /// Returns the page.
    pub fn to_html(&self, title: &str) -> String {
        let ends = |heading: &str| UNITS.into_iter().find(|(end, _)| heading.ends_with(end));
        let metric = |heading: &str| match ends(heading) {
            Some((end, unit)) => heading.trim_end_matches(end).to_owned() + unit,
            None => heading.to_owned(),
        };
        let bare = |heading: &str| {
            ends(heading).map_or(heading, |(end, _)| heading.trim_end_matches(end)).to_owned()
        };
        let one = |value: Option<Bounds>| value.map(|value| (value, value.lower, value.upper));
        let mut rows = Vec::new();
        for run in &self.runs {
            for (name, side) in run.sides() {
                let label =
                    if self.runs.len() > 1 { format!("{}: {name}", run.name()) } else { name };
                let numbers = ROWS.iter().map(|(_, of)| one(of(side))).collect();
                rows.push(report::Row { label, values: Vec::new(), numbers, chosen: false });
            }
        }
        let metrics: Vec<String> = ROWS.iter().map(|(heading, _)| metric(heading)).collect();
        let place = report::Comparison::place;
        let comparison = report::Comparison {
            caption: "the simulator, real processes in network namespaces, and the kernel's TCP if it was asked for".to_owned(),
            headings: ROWS.iter().map(|(heading, _)| bare(heading)).collect(),
            axes: Vec::new(),
            rows,
            reasons: self.runs.iter().flat_map(|run| run.sentences().cloned()).collect(),
            distributions: Vec::new(),
            tables: self.runs.iter().map(|run| (format!("{}, with the ratio", run.name()), run.table())).collect(),
            against: [place(&metrics, "fabric RTT p50_us", 0), place(&metrics, "goodput_gbps", 1)],
            metrics,
        };
        Report { comparison: Some(comparison), ..Report::new("emulate", title, "") }.html()
    }
}
