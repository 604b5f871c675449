//! A comparison as text, JSON, table and report page.

use apus_scenario::Scenario;
use apus_sim::columns::{CellType, Table, Value as Cell, unit_of};
use serde_json::{Map, Value, json};

use super::ranking::by_job_time;
use super::table::{Contestant, Metrics, heading};
use super::tuning::Objective;
use crate::output::OutputDir;
use crate::paired::Difference;
use crate::report;
use crate::spread::Spread;
use crate::sweep::PERCENTILES;
use crate::tables::{column, write_any};
use crate::text::{bounds, columns, number};

/// Returns the declaration of the table.
fn table_of_metrics() -> Table {
    let text = |name, definition| column(name, CellType::Text, definition);
    let number = |name, definition| column(name, CellType::Number, definition);
    Table {
        file: "compare.csv",
        row: "a metric of an algorithm",
        columns: vec![
            text("metric", "name of the metric"),
            text("unit", "its unit; empty for counts and fractions"),
            text("algorithm", "the algorithm"),
            number("median", "median over the seeds; missing if it is censored"),
            number("lower", "lower bound of the median"),
            number("upper", "upper bound of the median; missing if there is none"),
            number("min", "smallest lower bound of a seed"),
            number("max", "largest upper bound of a seed; missing if there is none"),
        ],
    }
}

/// Results of a comparison.
pub struct Report<'a> {
    pub(super) scenario: &'a Scenario,
    /// First seed and number of seeds.
    pub(super) seeds: (u64, u64),
    pub(super) contestants: &'a [Contestant],
    pub(super) metrics: &'a Metrics,
    /// Objective of `--tune-each`.
    pub(super) objective: Option<&'a Objective>,
}

impl Report<'_> {
    /// Returns the metrics that at least one algorithm has, with the values of all algorithms.
    fn rows(&self) -> Vec<(&str, Vec<Option<Spread>>)> {
        let of = |name: &String| -> Vec<_> {
            self.contestants.iter().map(|contestant| contestant.spread(name)).collect()
        };
        let all = self.metrics.names.iter().map(|name| (name.as_str(), of(name)));
        all.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    }

    fn heading(&self, name: &str) -> String {
        self.contestants.first().map_or_else(|| name.to_owned(), |one| heading(&one.setup, name))
    }

    /// Returns a line that describes the runs.
    fn caption(&self) -> String {
        let (first, count) = self.seeds;
        let last = first + count - 1;
        let name = &self.scenario.name;
        let same: Vec<&str> =
            self.contestants.iter().filter(|one| one.same).map(|one| one.label.as_str()).collect();
        let seeds = format!("{name}, seeds {first} to {last}");
        if same.is_empty() {
            return format!("{seeds}, medians");
        }
        if same.len() == self.contestants.len() {
            return format!("{seeds}, which give identical results");
        }
        format!("{seeds}, medians; {} with identical results for all seeds", same.join(", "))
    }

    /// Returns the differences of all algorithms from the first, per metric; empty if only one algorithm is compared.
    fn differences(&self) -> Vec<Vec<String>> {
        let Some((reference, others)) = self.contestants.split_first() else { return Vec::new() };
        if others.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![vec![String::new()]];
        lines[0].extend(others.iter().map(|one| one.label.clone()));
        for (name, _) in self.rows() {
            let mut line = vec![self.heading(name)];
            line.extend(others.iter().map(|one| {
                let same = one.same && reference.same;
                let seeds = one.summaries.len();
                let difference = one.difference(reference, name);
                difference.map_or("-".to_owned(), |d| written(&d, seeds, same))
            }));
            lines.push(line);
        }
        lines
    }

    /// Returns the caption of the differences.
    fn differences_caption(&self) -> String {
        let reference = self.contestants.first().map_or("", |one| one.label.as_str());
        format!(
            "difference from {reference}: mean over the seeds of both, and the 95 % confidence interval \
             (Student's t, paired by seed); *: excludes 0; -: not measured for both, or censored"
        )
    }

    /// Returns the results of `--tune-each`, a line per algorithm.
    fn tuning(&self) -> Vec<Vec<String>> {
        let lines = self.contestants.iter().filter_map(|one| {
            let search = one.search.as_ref()?;
            let setting = search.setting().unwrap_or("-").to_owned();
            let found = search.found().unwrap_or("unchanged").to_owned();
            let range = search.tunable.map_or(String::new(), |tunable| {
                format!("range: {} ({})", tunable.range, tunable.source)
            });
            let mut notes: Vec<String> = search.refused.clone();
            notes.extend([search.why.to_owned(), range]);
            notes.retain(|note| !note.is_empty());
            let runs = format!("{} runs", search.runs());
            Some(vec![one.label.clone(), setting, found, runs, notes.join("; ")])
        });
        lines.collect()
    }

    /// Returns the medians with a column per algorithm and a row per metric; `cell` formats a cell.
    fn medians(&self, cell: impl Fn(&Spread) -> String) -> Vec<Vec<String>> {
        let mut lines = vec![vec![String::new()]];
        lines[0].extend(self.contestants.iter().map(|one| one.label.clone()));
        for (name, values) in self.rows() {
            let mut line = vec![self.heading(name)];
            line.extend(values.iter().map(|v| v.as_ref().map_or("-".to_owned(), &cell)));
            lines.push(line);
        }
        lines
    }

    /// Returns the changes to the scenario that algorithms needed, a line each.
    fn notes(&self) -> impl Iterator<Item = String> {
        let of = |one: &Contestant| {
            let label = one.label.clone();
            one.changes().into_iter().map(move |note| format!("{label}: {note}"))
        };
        self.contestants.iter().flat_map(of)
    }

    /// Returns the tables after the differences, each with its caption.
    fn tables(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let mut tables = Vec::new();
        if let Some(objective) = self.objective {
            tables.push((format!("tuned for the {}", objective.words()), self.tuning()));
        }
        tables.push(("parameters other than defaults".to_owned(), self.parameters()));
        tables.retain(|(_, lines)| !lines.is_empty());
        tables
    }

    /// Returns these tables with headings.
    fn tables_of_page(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let headed = |(caption, lines): (String, Vec<Vec<String>>)| {
            let heads: &[&str] = match lines.first().map_or(0, Vec::len) {
                4 => &["algorithm", "parameter", "value", "origin"],
                _ => &["algorithm", "setting", "found", "runs", "notes"],
            };
            let heads = heads.iter().map(|&head| head.to_owned()).collect();
            (caption, std::iter::once(heads).chain(lines).collect())
        };
        self.tables().into_iter().map(headed).collect()
    }

    pub fn text(&self) -> String {
        let medians = self.medians(|value| bounds(value.median));
        let mut text = format!("{}\n\n{}", self.caption(), columns(&medians, ""));
        let ranking = by_job_time(&self.contestants[0].setup, self.contestants);
        text.extend(ranking.into_iter().chain(self.notes()).map(|note| note + "\n"));
        let differences = Some((self.differences_caption(), self.differences()));
        let differences = differences.filter(|(_, lines)| !lines.is_empty());
        for (caption, lines) in differences.into_iter().chain(self.tables()) {
            text += &format!("\n{caption}\n{}", columns(&lines, ""));
        }
        text
    }

    /// Returns the parameters that are not defaults: algorithm, name, value and origin of the value.
    fn parameters(&self) -> Vec<Vec<String>> {
        let line = |one: &Contestant| {
            let label = one.label.clone();
            one.shown().into_iter().map(move |shown| {
                let origin = match shown.rule {
                    Some((rule, source)) => format!("derived: {rule} ({source})"),
                    None if shown.origin == "tuned" => "tuned".to_owned(),
                    None => "set".to_owned(),
                };
                vec![label.clone(), shown.name, shown.value, origin]
            })
        };
        self.contestants.iter().flat_map(line).collect()
    }

    pub fn json(&self) -> Value {
        let rows = self.rows();
        let algorithms = self.contestants.iter().enumerate().map(|(index, one)| {
            let metrics: Map<String, Value> = rows
                .iter()
                .map(|(name, values)| {
                    let value = values[index].as_ref().map(Spread::json);
                    ((*name).to_owned(), json!(value))
                })
                .collect();
            let complete = one.summaries.iter().flatten().count();
            let reference = self.contestants.first().filter(|_| index > 0);
            let differences = reference.map(|reference| self.differences_json(one, reference));
            let tuning = self.objective.zip(one.search.as_ref());
            json!({
                "algorithm": one.label,
                "changes": one.changes(),
                "parameters": one.parameters_json(),
                "complete_runs": complete,
                "same_for_all_seeds": one.same,
                "differences": differences,
                "tuning": tuning.map(|(objective, search)| search.json(objective)),
                "metrics": metrics,
            })
        });
        json!({
            "scenario": self.scenario.name,
            "first_seed": self.seeds.0,
            "seeds": self.seeds.1,
            "reference": self.contestants.first().map(|one| &one.label),
            "objective": self.objective.map(Objective::words),
            "algorithms": algorithms.collect::<Vec<_>>(),
        })
    }

    /// Returns the differences of an algorithm from a reference, by metric.
    fn differences_json(&self, one: &Contestant, reference: &Contestant) -> Value {
        let of = |name: &str| {
            let found = one.difference(reference, name)?;
            let half = found.half_width;
            Some(json!({
                "mean": found.mean,
                "low": half.map(|half| found.mean - half),
                "high": half.map(|half| found.mean + half),
                "pairs": found.pairs,
            }))
        };
        let all = self.rows().into_iter().map(|(name, _)| (name.to_owned(), json!(of(name))));
        Value::Object(all.collect())
    }

    /// Writes the table: one row per metric and algorithm.
    pub fn write_table(&self, dir: &OutputDir) -> Result<(), String> {
        let rows = self.rows();
        let mut cells = Vec::new();
        for (name, values) in &rows {
            for (one, value) in self.contestants.iter().zip(values) {
                let Some(Spread { median, min, max, .. }) = value else { continue };
                let mut row = [*name, unit_of(name), one.label.as_str()].map(Cell::Text).to_vec();
                row.push(median.value().map_or(Cell::Missing, Cell::Number));
                row.extend([median.lower, median.upper, *min, *max].map(Cell::Number));
                cells.push(row);
            }
        }
        write_any(dir, &table_of_metrics(), cells)
    }

    /// Returns the percentiles of ops and packets by algorithm: medians over the seeds.
    fn distributions(&self) -> Vec<report::Distribution> {
        let all = [("op_latency_us", "op latency"), ("fabric_rtt_us", "fabric RTT")];
        let of = |(path, name): (&str, &'static str)| {
            let points = |one: &Contestant| {
                let point = |(stat, fraction): (&str, f64)| {
                    let value = one.spread(&format!("{path}.{stat}"))?.median.value()?;
                    Some((value, fraction))
                };
                PERCENTILES.into_iter().filter_map(point).collect()
            };
            report::Distribution { name, rows: self.contestants.iter().map(points).collect() }
        };
        all.map(of).into_iter().filter(|one| one.rows.iter().any(|row| row.len() > 1)).collect()
    }

    /// Returns the page in one file, with the recorded runs and the reasons of failed ones.
    pub fn html(&self, runs: Vec<Value>, failures: &[String]) -> String {
        let rows = self.rows();
        let metrics: Vec<String> = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
        let of = |(index, one): (usize, &Contestant)| report::Row {
            label: one.label.clone(),
            values: Vec::new(),
            parts: Vec::new(),
            numbers: rows.iter().map(|(_, values)| values[index].clone()).collect(),
            chosen: false,
        };
        let unit = |name: &str| match unit_of(name) {
            "" => String::new(),
            unit => format!(" [{unit}]"),
        };
        let heading = |name: &String| {
            let heading = self.heading(name);
            heading.strip_suffix(&unit(name)).map_or(heading.clone(), str::to_owned)
        };
        let place = report::Comparison::place;
        // Bounds cannot be compared, so the first metric in this list that every algorithm has measured is used.
        let known = |name: &&str| {
            let all = rows.iter().find(|(row, _)| row == name).map(|(_, values)| values);
            all.is_some_and(|values| {
                values
                    .iter()
                    .all(|value| value.as_ref().is_some_and(|value| value.median.value().is_some()))
            })
        };
        let delays =
            ["jobs.0.completion_us", "op_latency_us.p99", "op_latency_us.p50", "fabric_rtt_us.p99"];
        let delay = delays.into_iter().find(known).unwrap_or(delays[1]);
        let ranking = by_job_time(&self.contestants[0].setup, self.contestants);
        let comparison = report::Comparison {
            caption: self.caption(),
            headings: metrics.iter().map(heading).collect(),
            axes: Vec::new(),
            rows: self.contestants.iter().enumerate().map(of).collect(),
            reasons: ranking
                .into_iter()
                .chain(self.notes())
                .chain(failures.iter().cloned())
                .collect(),
            // Recorded runs have complete curves.
            distributions: match runs.len() == self.contestants.len() {
                true => Vec::new(),
                false => self.distributions(),
            },
            tables: self.tables_of_page(),
            against: [place(&metrics, delay, 0), place(&metrics, "goodput_gbps", 1)],
            metrics,
        };
        let subtitle = self.scenario.title.as_deref().unwrap_or_default();
        let report = report::Report::new("compare", &self.scenario.name, subtitle);
        let setup = report::describe_all(self.scenario.runs.iter().map(|run| &run.setup).take(1));
        report::Report { setup, runs, comparison: Some(comparison), ..report }.html()
    }
}

/// Returns a difference over these seeds in words. A seed counts only if the number is known for both algorithms.
/// `same` is `true` if all seeds give the results of the first.
fn written(difference: &Difference, seeds: usize, same: bool) -> String {
    let mean = number(difference.mean);
    let of = match difference.pairs {
        pairs if pairs < seeds => format!(" ({pairs} of {seeds} seeds)"),
        _ => String::new(),
    };
    match difference.half_width {
        _ if same => format!("{mean} (all seeds)"),
        None if of.is_empty() => format!("{mean} (one seed)"),
        None => mean + &of,
        Some(half) => {
            let mark = if difference.is_significant() { " *" } else { "" };
            format!("{mean} +- {}{mark}{of}", number(half))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apus_scenario::Source;
    use clap::Parser;

    use super::*;
    use crate::batch::Job;
    use crate::compare::{Comparison, Contest};

    #[test]
    fn a_difference_says_how_many_seeds_it_has() {
        let of = [Some(2.0), None, Some(4.0), Some(6.0)];
        let found = |from: usize| Difference::new(&of[from..], &[Some(1.0); 4][from..]);
        let found = |from| written(&found(from).expect("a pair"), 4 - from, false);
        // Differences 1, 3 and 5: mean 3, standard deviation 2, t of two degrees of freedom 4.303.
        assert_eq!(found(0), "3 +- 4.969 (3 of 4 seeds)");
        assert_eq!(found(1), "4 +- 12.71 (2 of 3 seeds)");
        assert_eq!(found(3), "5 (one seed)");
        let one = Difference::new(&of[..2], &[Some(1.0); 2]).expect("a pair");
        assert_eq!(written(&one, 2, false), "1 (1 of 2 seeds)");
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        contest: Contest,
    }

    /// Percentiles come from the summaries of all seeds. Curves of recorded runs replace them only if every algorithm
    /// has a recorded run.
    #[test]
    fn the_page_keeps_the_percentiles_of_all_while_one_has_no_run_and_says_why() {
        let text = "duration = \"1ms\"\ntopology = \"star hosts=3 10Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
            [[workload]]\nkind = \"incast\"\nsize = \"10kB\"\n";
        let Line { contest } =
            Line::parse_from(["apus", "--algorithms", "swift,dctcp", "--seeds", "1"]);
        let source = Source { name: "mine".to_owned(), text: text.to_owned() };
        let scenario = crate::library::read(&source, Path::new(""), &contest.options(None));
        let mut comparison = Comparison::new(&contest, scenario.expect("good")).expect("good");
        let run = |jobs: Vec<Job>| {
            let run = |job: Job| {
                let plan = job.setup.plan().expect("plan");
                let summary = apus_scenario::experiment::run_plan(plan, "mine", 1, || ());
                serde_json::to_value(summary.expect("run")).ok()
            };
            (jobs.into_iter().map(run).collect(), Vec::new())
        };
        let failures = comparison.run(&run, &|| false);
        assert!(failures.is_empty(), "{failures:?}");
        let why = ["no curves and causes of dctcp (seed 1): a reason".to_owned()];
        let recorded = |label| json!({ "label": label });
        let data = |runs: Vec<Value>| {
            let page = comparison.report().html(runs, &why);
            report::data_of(&page).expect("a report")["comparison"].clone()
        };
        let one = data(vec![recorded("swift")]);
        assert_eq!(one["distributions"][0]["rows"].as_array().map(Vec::len), Some(2));
        let reasons = one["reasons"].as_array().expect("sentences");
        assert!(reasons.contains(&json!(why[0])), "{reasons:?}");
        assert_eq!(data(vec![recorded("swift"), recorded("dctcp")])["distributions"], json!([]));
    }

    /// Returns a comparison with one algorithm.
    fn comparison<'a>(contest: &'a Contest) -> Comparison<'a> {
        let text = "duration = \"1ms\"\ntopology = \"star hosts=3 10Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
            [[workload]]\nkind = \"incast\"\nsize = \"10kB\"\n";
        let source = Source { name: "mine".to_owned(), text: text.to_owned() };
        let scenario = crate::library::read(&source, Path::new(""), &contest.options(None));
        Comparison::new(contest, scenario.expect("good")).expect("good")
    }

    /// With rare losses the first seeds may give equal results.
    #[test]
    fn a_seed_that_differs_after_equal_ones_is_run_and_counts() {
        let words = ["apus", "--algorithms", "swift", "--seeds", "4"];
        let Line { contest } = Line::parse_from(words);
        let same = |rare: f64| {
            let mut comparison = comparison(&contest);
            let run = |jobs: Vec<Job>| {
                let goodput = |seed| if seed == 4 { rare } else { 9.0 };
                let run = |job: Job| json!({ "goodput_gbps": goodput(job.setup.seed()) });
                (jobs.into_iter().map(run).map(Some).collect(), Vec::new())
            };
            assert!(comparison.run(&run, &|| false).is_empty());
            let json = comparison.report().json();
            let one = &json["algorithms"][0];
            assert_eq!(one["complete_runs"], 4);
            (one["same_for_all_seeds"] == true, one["metrics"]["goodput_gbps"]["min"].clone())
        };
        assert_eq!(same(8.0), (false, json!(8.0)));
        assert_eq!(same(9.0), (true, json!(9.0)));
    }

    #[test]
    fn runs_that_fail_take_no_other_run_from_the_comparison() {
        let words = [
            "apus",
            "--algorithms",
            "swift,dctcp",
            "--seeds",
            "4",
            "--tune-each",
            "--tune-values",
            "2",
        ];
        let Line { contest } = Line::parse_from(words);
        let mut comparison = comparison(&contest);
        // Fails for one value of the search, and for the first seed of DCTCP.
        let fails = |job: &Job| {
            job.settings.starts_with("swift, as it is") || job.settings == "dctcp, seed 1"
        };
        let run = |jobs: Vec<Job>| {
            let (failed, ended): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| fails(job));
            assert!(!ended.is_empty());
            let one = |job| {
                (!fails(job))
                    .then(|| json!({ "goodput_gbps": 9.0, "op_latency_us": { "p99": 1.0 } }))
            };
            let failures = failed.iter().map(|job| job.settings.clone()).collect();
            (jobs.iter().map(one).collect(), failures)
        };
        assert_eq!(comparison.run(&run, &|| false).len(), 3 + 1);
        let json = comparison.report().json();
        let complete = |index: usize| json["algorithms"][index]["complete_runs"].clone();
        assert_eq!((complete(0), complete(1)), (json!(4), json!(3)));
    }
}
