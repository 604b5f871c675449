//! Simulator and kernel compared on a report page.

use apus_sim::record::Cdf;

use super::report::{Comparisons, ROWS};
use super::side::Side;
use crate::report::{self, Distribution, Report};
use crate::spread::Spread;

/// A distribution of a side: its name, and its accessor.
type Curve = (&'static str, fn(&Side) -> &Cdf);

/// Endings of the headings of numbers, and the endings of the names of such metrics.
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
        let mut rows = Vec::new();
        for run in &self.runs {
            for (name, side) in run.sides() {
                let label =
                    if self.runs.len() > 1 { format!("{}: {name}", run.name()) } else { name };
                let numbers = ROWS.iter().map(|(_, of)| of(side).map(Spread::one)).collect();
                let (values, parts) = (Vec::new(), Vec::new());
                rows.push(report::Row { label, values, parts, numbers, chosen: false });
            }
        }
        let metrics: Vec<String> = ROWS.iter().map(|(heading, _)| metric(heading)).collect();
        let place = report::Comparison::place;
        let comparison = report::Comparison {
            caption: "the simulator, real processes in network namespaces, and the kernel's TCP if requested".to_owned(),
            headings: ROWS.iter().map(|(heading, _)| bare(heading)).collect(),
            axes: Vec::new(),
            rows,
            reasons: self.runs.iter().flat_map(|run| run.sentences().cloned()).collect(),
            distributions: self.distributions(),
            tables: self.runs.iter().map(|run| (format!("{}, with the ratio", run.name()), run.table())).collect(),
            against: [place(&metrics, "fabric RTT p50_us", 0), place(&metrics, "goodput_gbps", 1)],
            metrics,
        };
        let runs = self.runs.iter().filter_map(|run| run.page().cloned()).collect();
        Report { runs, comparison: Some(comparison), ..Report::new("emulate", title, "") }.html()
    }

    /// Returns the distributions of all sides, in the order of the rows.
    fn distributions(&self) -> Vec<Distribution> {
        let sides = || self.runs.iter().flat_map(|run| run.sides());
        let all: [Curve; 3] = [
            ("op latency", |side| &side.curves.op_latency),
            ("fabric RTT", |side| &side.curves.fabric_rtt),
            ("end-to-end RTT", |side| &side.curves.end_to_end_rtt),
        ];
        let of = |(name, of): Curve| Distribution {
            name,
            rows: sides().map(|(_, side)| of(side).clone()).collect(),
        };
        let all = all.into_iter().map(of);
        all.filter(|one| one.rows.iter().any(|points| points.len() > 1)).collect()
    }
}
