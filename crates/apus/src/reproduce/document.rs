//! The page of all reproductions: what the papers state, what came out, and why they differ.
//!
//! It holds nothing that depends on the machine: the same program writes the same page anywhere.

use std::collections::BTreeMap;
use std::path::Path;

use apus_sim::experiment::{Shown, Verdict};
use apus_sim::scenario::{Override, Scenario};

use super::figure;
use super::result::ExperimentResult;
use super::tables::{band, is_apart};
use crate::output::OutputDir;
use crate::text::number;

/// The folder of figures, beside the page.
const FIGURES: &str = "figures";

/// A page to be written.
pub struct Document {
    name: String,
    dir: OutputDir,
    figures: OutputDir,
    quick: bool,
    /// What the page holds so far: row of the overview and section of each experiment, by name.
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    row: String,
    section: String,
}

impl Document {
    /// Creates the folders, which shows before a long run that the page can be written. What the
    /// page says of other experiments stays, unless it is of another kind of runs.
    pub fn create(file: &Path, quick: bool) -> Result<Self, String> {
        let name = file.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|_| !file.is_dir()) else {
            return Err(format!("--report {}: it must name a file", file.display()));
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let dir = OutputDir::open(folder.unwrap_or(Path::new(".")))?;
        let figures = dir.within(FIGURES)?;
        let old = std::fs::read_to_string(file).unwrap_or_default();
        let entries = if old.starts_with(&introduction(quick)) {
            read_entries(&old)
        } else {
            BTreeMap::new()
        };
        Ok(Self { name: name.to_owned(), dir, figures, quick, entries })
    }

    /// Writes the page and the figures of `results`, in the order of `all`, and what is not in `all`
    /// after that, by name.
    pub fn write<'a>(
        mut self,
        results: &[(&Scenario, &ExperimentResult)],
        all: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        for (scenario, result) in results {
            let figure = figure::draw(result);
            let file = format!("{}.svg", scenario.name.replace('/', "-"));
            if let Some(figure) = &figure {
                self.figures.write(&file, figure)?;
            }
            let figure = figure.map(|_| format!("{FIGURES}/{file}"));
            let section = section(scenario, result, figure.as_deref());
            let entry = Entry { row: row(scenario, result), section };
            self.entries.insert(scenario.name.clone(), entry);
        }
        let mut entries: Vec<Entry> = all.filter_map(|name| self.entries.remove(name)).collect();
        entries.extend(std::mem::take(&mut self.entries).into_values());
        let mut text = introduction(self.quick) + OVERVIEW;
        text.extend(entries.iter().map(|entry| entry.row.as_str()));
        text += &sums(&entries);
        text.extend(entries.iter().map(|entry| entry.section.as_str()));
        self.dir.write(&self.name, &text)
    }
}

/// The rows and sections of a page.
fn read_entries(page: &str) -> BTreeMap<String, Entry> {
    let rows = page.lines().filter_map(|line| {
        let name = line.strip_prefix("| [")?.split(']').next()?;
        Some((name, format!("{line}\n")))
    });
    let rows: BTreeMap<&str, String> = rows.collect();
    let sections = page.split("\n## ").skip(1).filter_map(|section| {
        let name = section.split([':', '\n']).next()?;
        let entry = Entry {
            row: rows.get(name)?.clone(),
            section: format!("\n## {}\n", section.trim_end_matches('\n')),
        };
        Some((name.to_owned(), entry))
    });
    sections.collect()
}

fn introduction(quick: bool) -> String {
    let (flag, seeds) = if quick {
        (
            " --quick",
            "one seed, runs shortened as their scenarios say: **not the full experiments**",
        )
    } else {
        ("", "medians over the seeds")
    };
    format!(
        "# Reproduction\n\n\
         What the papers state, what the simulator yields, and where and why they differ.\n\
         Written by `apus reproduce --all{flag} --report docs/reproduction.md`; with a NAME in place of\n\
         `--all` only its part is written anew. Our numbers are {seeds}, with the smallest and\n\
         the largest over the seeds beside them. They are the same on every machine.\n\n\
         A check passes if the median lies in the band that is accepted. It **differs** if the\n\
         scenario says that it cannot, what was found, and what is believed to be in the way. Every\n\
         setting that departs from the one host model and the one set of parameters of its testbed\n\
         is listed with its reason. What the numbers mean stands in [outputs.md](outputs.md).\n"
    )
}

const OVERVIEW: &str =
    "\n| experiment | what | checks | pass | differ | fail |\n|---|---|---|---|---|---|\n";

/// A row of the overview.
fn row(scenario: &Scenario, result: &ExperimentResult) -> String {
    let count = |verdicts: &[Verdict]| {
        result.checks.iter().filter(|check| verdicts.contains(&check.verdict)).count()
    };
    let title = cell(scenario.title.as_deref().unwrap_or_default());
    let link = format!("[{}](#{})", scenario.name, anchor(&heading(scenario)));
    let (all, pass) = (result.checks.len(), count(&[Verdict::Pass]));
    let (differ, fail) = (count(&[Verdict::Differs]), count(&[Verdict::Fail, Verdict::Stale]));
    format!("| {link} | {title} | {all} | {pass} | {differ} | {fail} |\n")
}

/// The last row of the overview.
fn sums(entries: &[Entry]) -> String {
    let mut sums = [0u64; 4];
    for entry in entries {
        // The numbers are the last cells of a row.
        let cells: Vec<&str> = entry.row.trim_end().trim_end_matches('|').rsplit('|').collect();
        for (sum, cell) in sums.iter_mut().zip(cells[..4.min(cells.len())].iter().rev()) {
            *sum += cell.trim().parse::<u64>().unwrap_or(0);
        }
    }
    let [all, pass, differ, fail] = sums;
    format!("| all | | {all} | {pass} | {differ} | {fail} |\n")
}

fn heading(scenario: &Scenario) -> String {
    match &scenario.title {
        Some(title) => format!("{}: {title}", scenario.name),
        None => scenario.name.clone(),
    }
}

/// The name by which a page links to a heading.
fn anchor(heading: &str) -> String {
    let keep = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    heading.chars().filter_map(keep).collect()
}

fn section(scenario: &Scenario, result: &ExperimentResult, figure: Option<&str>) -> String {
    let mut text = format!("\n## {}\n\n", heading(scenario));
    if let Some(source) = &scenario.source {
        text += &format!("{source}. ");
    }
    text += &format!("{}\n", extent(scenario, result));
    if let Some(error) = &result.error {
        return text + &format!("\n**It could not be run**: {error}\n");
    }
    text += "\n| | paper | ours | over the seeds | accepted | | source |\n|---|---|---|---|---|---|---|\n";
    for check in &result.checks {
        let shown = &check.shown;
        let verdict = match check.verdict {
            Verdict::Pass => "pass",
            Verdict::Differs => "**differs**",
            Verdict::Fail | Verdict::Stale => "**FAILS**",
        };
        let [name, paper, ours, spread] = cells(shown);
        let (band, source) = (cell(&band(shown)), cell(&shown.source));
        text +=
            &format!("| {name} | {paper} | {ours} | {spread} | {band} | {verdict} | {source} |\n");
    }
    if let Some(figure) = figure {
        text += &format!("\n![{}]({figure})\n", cell(&heading(scenario)));
    }
    text += &differences(result);
    if !result.shown.is_empty() {
        text += "\nAlso measured:\n\n| | paper | ours | over the seeds |\n|---|---|---|---|\n";
        for shown in &result.shown {
            text += &format!("| {} |\n", cells(shown).join(" | "));
        }
    }
    text + &overrides(&scenario.overrides)
}

/// How long it is simulated, with which seeds.
fn extent(scenario: &Scenario, result: &ExperimentResult) -> String {
    let times = scenario.runs.iter().map(|run| (run.setup.duration(), run.setup.warmup()));
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times.dedup();
    let time = |(duration, warmup): &(apus_units::Span, apus_units::Span)| match warmup.is_zero() {
        true => format!("{duration}"),
        false => format!("{duration} (measured from {warmup} on)"),
    };
    let times: Vec<String> = times.iter().map(time).collect();
    let runs = scenario.runs.len();
    let first = scenario.runs.first().map_or(1, |run| run.setup.seed());
    let last = first + result.seeds.saturating_sub(1);
    let seeds =
        if first == last { format!("seed {first}") } else { format!("seeds {first} to {last}") };
    let runs = if runs == 1 { "one run".to_owned() } else { format!("{runs} runs") };
    let mut text = format!("Simulated: {runs} of {}, {seeds}.", times.join(" or "));
    if !result.quick.is_empty() {
        text += &format!(" Quick: {}.", result.quick.join("; "));
    }
    if result.status == "interrupted" {
        text += " **Interrupted** before all seeds were finished.";
    }
    text
}

/// Name, the paper's number, ours, and the spread.
fn cells(shown: &Shown) -> [String; 4] {
    let unit = if shown.unit.is_empty() { String::new() } else { format!(" {}", shown.unit) };
    let value = |value: f64| number(value) + &unit;
    let spread = match shown.spread {
        Some((low, high)) if low < high => format!("{} .. {}", number(low), number(high)),
        _ => String::new(),
    };
    [
        cell(&shown.name),
        shown.paper.map_or_else(String::new, value),
        shown.measured.map_or_else(|| "not measured".to_owned(), value),
        spread,
    ]
}

/// Why numbers differ visibly, each reason once.
fn differences(result: &ExperimentResult) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for check in &result.checks {
        let Shown { name, paper, measured, why, .. } = &check.shown;
        let reason = match check.verdict {
            Verdict::Differs => check.differs.clone(),
            Verdict::Stale => Some("passes now, though its scenario says `differs`".to_owned()),
            Verdict::Fail => {
                let why = why.as_deref().unwrap_or("its scenario gives no reason");
                Some(format!("fails; it may differ because: {why}"))
            }
            Verdict::Pass if is_apart(*paper, *measured) => why.clone(),
            Verdict::Pass => None,
        };
        let Some(reason) = reason else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    let mut text = "\nWhere it differs, and why:\n\n".to_owned();
    for (reason, names) in reasons {
        let names: Vec<String> = names.iter().map(|name| format!("*{name}*")).collect();
        text += &format!("* {}: {}\n", names.join("; "), one_line(&reason));
    }
    text
}

fn overrides(overrides: &[Override]) -> String {
    if overrides.is_empty() {
        return String::new();
    }
    let mut text = "\nSettings of its own:\n\n".to_owned();
    for Override { key, reason, variant } in overrides {
        let variant = variant.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        text += &format!("* `{key}`{variant}: {}\n", one_line(reason));
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text within a table.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::{Entry, OVERVIEW, anchor, read_entries, sums};

    #[test]
    fn a_page_is_read_back() {
        let row = |name: &str| format!("| [{name}](#{name}) | A \\| B | 3 | 2 | 1 | 0 |\n");
        let section = |name: &str| format!("\n## {name}: A | B\n\nSwift Fig. 1.\n\n| | paper |\n");
        let [a, b] = ["x/a", "x/b"];
        let page = format!(
            "# Page\n{OVERVIEW}{}{}| all | | 6 |\n{}{}",
            row(a),
            row(b),
            section(a),
            section(b)
        );
        let entries = read_entries(&page);
        for name in [a, b] {
            assert_eq!(entries[name].row, row(name));
            assert_eq!(entries[name].section, section(name));
        }
        let entries: Vec<Entry> = entries.into_values().collect();
        assert_eq!(sums(&entries), "| all | | 6 | 4 | 2 | 0 |\n");
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let heading = "swift/fig17: RTT against the target (100 flows)";
        assert_eq!(anchor(heading), "swiftfig17-rtt-against-the-target-100-flows");
    }
}
