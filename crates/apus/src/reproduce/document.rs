//! Page of all reproductions: values of the papers, measured values, and reasons for differences.
//!
//! The page does not depend on the machine: the same program writes the same page everywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use apus_scenario::experiment::{Shown, Verdict};
use apus_scenario::file::{DATA_BYTES, read_bytes};
use apus_scenario::{CheckKind, Override, Scenario};

use super::counts::{COLUMNS, Counts};
use super::figure;
use super::golden;
use super::result::ExperimentResult;
use super::tables::{band, deviation, is_apart, kind, not_known, seeds_outside};
use crate::output::{Pending, create_folder};
use crate::text::number;

/// Folder of figures, next to the page.
const FIGURES: &str = "figures";

/// Start of every page, full or quick, which identifies the pages of this command.
const TITLE: &str = "# Reproduction\n";
const WRITTEN_BY: &str = "Written by `apus reproduce";

/// Start of the line that names the version.
const VERSION: &str = "Written by: ";
/// Version of a page whose sections have different versions.
const SEVERAL: &str = "several versions; `--all` writes all sections anew";

/// A page to be written.
pub struct Document {
    file: PathBuf,
    figures: PathBuf,
    quick: bool,
    /// Current content of the page: row of the overview and section of each experiment, by name.
    entries: BTreeMap<String, Entry>,
    /// Version that wrote the current sections, if a single one did.
    version: Option<String>,
    /// Folders that were created for the page, the innermost first.
    created: Vec<PathBuf>,
}

struct Entry {
    row: String,
    section: String,
}

impl Document {
    /// Creates the folder of the page. This verifies, before a long run, that the page can be written. Sections of
    /// experiments that are not in `names` are kept.
    ///
    /// # Errors
    /// If a file that the program did not write would be overwritten, or if the page has other sections that cannot be
    /// kept because they are of another version or of the other kind of runs (quick or full).
    pub fn create(file: &Path, quick: bool, names: &[&str]) -> Result<Self, String> {
        let fail = |why: &str| Err(format!("--report {}: {why}", file.display()));
        if file.is_dir() || file.file_name().is_none() {
            return fail("it must name a file");
        }
        let old = match read_bytes(file, DATA_BYTES) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) if !file.exists() => String::new(),
            Err(error) => return fail(&format!("this file cannot be read: {error}")),
        };
        let is_page = old.starts_with(TITLE) && old.contains(WRITTEN_BY);
        if !old.is_empty() && !is_page {
            return fail(
                "this file is not a page that `apus reproduce` wrote; move it away, or choose another \
                 name",
            );
        }
        let same = old.starts_with(&introduction(quick));
        let lost = read_entries(&old).into_keys().filter(|name| !names.contains(&name.as_str()));
        let lost: Vec<String> = if same { Vec::new() } else { lost.collect() };
        if let Some(first) = lost.first() {
            let count = lost.len();
            return fail(&format!(
                "the page is of another version, or of the other kind of runs (quick or full), so that its \
                 other sections cannot stay ({count}, {first} first); write all of them (--all), or choose \
                 another file"
            ));
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let figures = folder.join(FIGURES);
        for name in names {
            let figure = figures.join(figure_name(name));
            if figure.exists() && !old.contains(&figure_link(name)) {
                return fail(&format!(
                    "{} is there, but not a figure of that page; move it away, or choose another folder",
                    figure.display()
                ));
            }
        }
        let created: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .map(Path::to_owned)
            .collect();
        create_folder(folder)?;
        let version = old.lines().find_map(|line| line.strip_prefix(VERSION)).map(str::to_owned);
        let entries = if same { read_entries(&old) } else { BTreeMap::new() };
        Ok(Self { file: file.to_owned(), figures, quick, entries, version, created })
    }

    /// Writes the page and the figures of `results`, in the order of `all`; experiments that are not in `all` follow by
    /// name. Returns a line about the written files.
    pub fn write<'a>(
        mut self,
        results: &[(&Scenario, &ExperimentResult)],
        all: impl Iterator<Item = &'a str>,
    ) -> Result<String, String> {
        let kept = self.entries.keys().any(|name| results.iter().all(|(s, _)| s.name != *name));
        let version = match &self.version {
            Some(version) if kept && *version != golden::version() => SEVERAL.to_owned(),
            _ => golden::version(),
        };
        let mut figures = Vec::new();
        for (scenario, result) in results {
            let figure = figure::draw(result);
            if let Some(figure) = &figure {
                create_folder(&self.figures)?;
                let file = self.figures.join(figure_name(&scenario.name));
                figures.push(Pending::file(&file, |out| out.write_all(figure.as_bytes()))?);
            }
            let figure = figure.map(|_| figure_link(&scenario.name));
            let section = section(scenario, result, figure.as_deref());
            let entry = Entry { row: row(scenario, result), section };
            self.entries.insert(scenario.name.clone(), entry);
        }
        let mut entries: Vec<Entry> = all.filter_map(|name| self.entries.remove(name)).collect();
        entries.extend(std::mem::take(&mut self.entries).into_values());
        let mut text = introduction(self.quick) + &format!("\n{VERSION}{version}\n") + &overview();
        text.extend(entries.iter().map(|entry| entry.row.as_str()));
        text += &sums(&entries);
        text += &shares(&entries);
        text.extend(entries.iter().map(|entry| entry.section.as_str()));
        let drawn = figures.len();
        // The page is written first: figures without their page would not be recognised as files of this command.
        Pending::file(&self.file, |out| out.write_all(text.as_bytes()))?.put()?;
        figures.into_iter().try_for_each(Pending::put)?;
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut wrote =
            format!("wrote {}: {}", self.file.display(), count(results.len(), "experiment"));
        let others = entries.len() - results.len();
        if others > 0 {
            wrote += &format!(" of {}, the others unchanged", entries.len());
        }
        if drawn > 0 {
            wrote += &format!("; {} in {}", count(drawn, "figure"), self.figures.display());
        }
        Ok(wrote + "\n")
    }
}

impl Drop for Document {
    /// Removes the created folders if nothing was written.
    fn drop(&mut self) {
        for folder in &self.created {
            // This fails if the folder is not empty; it must then be kept.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn figure_name(experiment: &str) -> String {
    format!("{}.svg", experiment.replace('/', "-"))
}

/// Returns the link from the page to the figure of an experiment.
fn figure_link(experiment: &str) -> String {
    format!("{FIGURES}/{}", figure_name(experiment))
}

/// Returns the rows and sections of a page.
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
            "of one seed, with runs shortened as their scenarios specify: **not the full experiments**",
        )
    } else {
        ("", "medians over the seeds")
    };
    format!(
        "{TITLE}\n\
         Tables and figures of the papers, reproduced by the simulator: the paper's value, the\n\
         simulated value, the accepted band and a verdict.\n\
         {WRITTEN_BY} NAME{flag} --report FILE`, which keeps the sections of other experiments;\n\
         `--all` instead of NAME writes all built-in experiments. Simulated values are {seeds},\n\
         next to the minimum and maximum over the seeds. They are the same on every machine, and so is\n\
         the hash of all events of an experiment.\n\n\
         A *reproduction* is a number of a paper; its band is at most 25 % to each side, unless the\n\
         section states why the paper's own number is less precise. A *shape* is an order, a limit or an\n\
         exponent that a paper states, an *invariant* a property of every correct run, and a *formula*\n\
         the value of a formula of a specification. A *fitted* check uses a setting that was chosen to\n\
         give its number: it shows that the number is possible, and counts as none of these.\n\n\
         A check passes if the median is within the accepted band. `differs` marks a check that the\n\
         simulator does not meet; the scenario states the measured value and the likely cause. Each\n\
         testbed has one host model and one set of parameters. Sections list every setting that\n\
         deviates from them, with the reason. `apus explain METRIC` defines a metric;\n\
         `docs/outputs.md` defines all of them.\n"
    )
}

/// Returns the heading rows of the overview.
fn overview() -> String {
    let columns = COLUMNS.join(" | ");
    let rule = "---|".repeat(COLUMNS.len() + 3);
    format!("\n| experiment | title | source | {columns} |\n|{rule}\n")
}

/// Returns a row of the overview.
fn row(scenario: &Scenario, result: &ExperimentResult) -> String {
    let title = cell(scenario.title.as_deref().unwrap_or_default());
    let link = format!("[{}](#{})", scenario.name, anchor(&heading(scenario)));
    let source = cell(scenario.source.as_deref().unwrap_or_default());
    let counts = Counts::of(result.checks.iter()).cells();
    format!("| {link} | {title} | {source} | {} |\n", counts.map(|n| n.to_string()).join(" | "))
}

/// Returns the numbers in the last cells of a row of the overview.
fn numbers(entry: &Entry) -> [u64; COLUMNS.len()] {
    let mut numbers = [0; COLUMNS.len()];
    let cells = entry.row.trim_end().trim_end_matches('|').rsplit('|');
    for (number, cell) in numbers.iter_mut().rev().zip(cells) {
        *number = cell.trim().parse().unwrap_or(0);
    }
    numbers
}

fn sum(entries: &[Entry]) -> [u64; COLUMNS.len()] {
    let mut sums = [0; COLUMNS.len()];
    for entry in entries {
        for (sum, number) in sums.iter_mut().zip(numbers(entry)) {
            *sum += number;
        }
    }
    sums
}

/// Returns the last row of the overview, with the sums.
fn sums(entries: &[Entry]) -> String {
    format!("| all | | | {} |\n", sum(entries).map(|sum| sum.to_string()).join(" | "))
}

/// Returns the number of reproductions that are close to the papers, and the experiments with other results.
fn shares(entries: &[Entry]) -> String {
    let [all, close, near, ..] = sum(entries);
    if all == 0 {
        return String::new();
    }
    let share = |part: u64| format!("{part} ({:.0} %)", part as f64 / all as f64 * 100.0);
    let mut text = format!(
        "\nOf {all} reproductions, {} are within 10 % of the paper's number and {} within 25 %; the goals are 60 % \
         and 80 %.\n",
        share(close),
        share(near)
    );
    let name = |entry: &Entry| {
        let name = entry.row.strip_prefix("| [")?.split(']').next()?;
        let [all, _, near, ..] = numbers(entry);
        (near < all).then(|| format!("{name} ({})", all - near))
    };
    let others: Vec<String> = entries.iter().filter_map(name).collect();
    if !others.is_empty() {
        text += &format!("Those further off are in {}.\n", others.join(", "));
    }
    text
}

fn heading(scenario: &Scenario) -> String {
    match &scenario.title {
        Some(title) => format!("{}: {title}", scenario.name),
        None => scenario.name.clone(),
    }
}

/// Returns the anchor of a heading.
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
        return text + &format!("\n**The run failed**: {error}\n");
    }
    text += "\n| check | kind | paper | simulated | off by | min .. max | accepted | verdict | source |\n\
             |---|---|---|---|---|---|---|---|---|\n";
    for check in &result.checks {
        let shown = &check.shown;
        let verdict = match check.verdict {
            Verdict::Pass => "pass",
            Verdict::Differs => "**differs**",
            Verdict::Fail | Verdict::Stale => "**FAILS**",
        };
        let [name, paper, simulated, spread] = cells(shown);
        let (band, source) = (cell(&band(shown)), cell(&shown.source));
        text += &format!(
            "| {name} | {} | {paper} | {simulated} | {} | {spread} | {band} | {verdict}{} | {source} |\n",
            kind(shown),
            deviation(shown),
            seeds_outside(check),
        );
    }
    if let Some(figure) = figure {
        text += &format!("\n![{}]({figure})\n", cell(&heading(scenario)));
    }
    text += &remarks(result);
    text += &differences(result);
    if !result.shown.is_empty() {
        text +=
            "\nOther metrics:\n\n| metric | paper | simulated | min .. max |\n|---|---|---|---|\n";
        for shown in &result.shown {
            text += &format!("| {} |\n", cells(shown).join(" | "));
        }
    }
    text + &overrides(&scenario.overrides)
}

/// Returns the simulated time, the number of runs and the seeds.
fn extent(scenario: &Scenario, result: &ExperimentResult) -> String {
    let times = scenario.runs.iter().map(|run| (run.setup.duration(), run.setup.warmup()));
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times.dedup();
    let time = |(duration, warmup): &(apus_units::Span, apus_units::Span)| match warmup.is_zero() {
        true => format!("{duration}"),
        false => format!("{duration} (warm-up {warmup})"),
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
    if let Some(events) = &result.events {
        text += &format!(" Events: `{events}`.");
    }
    if result.status == "interrupted" {
        text += " **Interrupted** before all seeds were finished.";
    }
    text
}

/// Returns the name, the paper's number, the simulated number, and the spread.
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
        shown.measured.map_or_else(|| cell(&not_known(shown)), value),
        spread,
    ]
}

/// Returns the fitted parameters, the reasons for wide bands, and the reasons why a publication's number is not a
/// reproduction. Each text appears once.
fn remarks(result: &ExperimentResult) -> String {
    let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
    let mut add = |text: String, name| match remarks.iter_mut().find(|(known, _)| *known == text) {
        Some((_, names)) => names.push(name),
        None => remarks.push((text, vec![name])),
    };
    for check in &result.checks {
        let Shown { name, kind, paper, fitted, reading_error, why, .. } = &check.shown;
        if let Some(fitted) = fitted {
            add(format!("fitted: {fitted}"), name);
        } else if let (Some(kind), Some(_), Some(why)) = (kind, paper, why)
            && *kind != CheckKind::Reproduction
        {
            add(format!("no reproduction but a {}: {why}", kind.word()), name);
        }
        if let Some(reading) = reading_error {
            add(format!("the band is wider than 25 %: {reading}"), name);
        }
    }
    if remarks.is_empty() {
        return String::new();
    }
    let mut text = "\nRemarks on kinds and bands:\n\n".to_owned();
    for (remark, names) in remarks {
        text += &item(&names, &remark);
    }
    text
}

/// Returns an item of a list about these checks.
fn item(names: &[&str], text: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("*{name}*")).collect();
    format!("* {}: {}\n", names.join("; "), one_line(text))
}

/// Returns the reasons for visible differences; each reason appears once.
fn differences(result: &ExperimentResult) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for check in &result.checks {
        let Shown { name, paper, measured, why, .. } = &check.shown;
        let reason = match check.verdict {
            Verdict::Differs => check.differs.clone(),
            Verdict::Stale => Some("passes, although its scenario says `differs`".to_owned()),
            Verdict::Fail => {
                let why = why.as_deref().unwrap_or("the scenario gives none");
                Some(match &check.shown.censored {
                    Some(open) => format!("fails because the value is censored: {open}"),
                    None => format!("fails; possible reason: {why}"),
                })
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
    let mut text = "\nReasons for differences:\n\n".to_owned();
    for (reason, names) in reasons {
        text += &item(&names, &reason);
    }
    text
}

fn overrides(overrides: &[Override]) -> String {
    if overrides.is_empty() {
        return String::new();
    }
    let mut text = "\nSettings that deviate from the testbed or the defaults:\n\n".to_owned();
    for Override { key, reason, variant } in overrides {
        let variant = variant.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        text += &format!("* `{key}`{variant}: {}\n", one_line(reason));
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text escaped for a table cell.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Document, Entry, anchor, overview, read_entries, shares, sums};

    /// A command that fails before its page is written leaves no files or folders.
    #[test]
    fn a_page_that_is_not_written_leaves_no_folder() {
        let root = std::env::temp_dir().join(format!("apus-page-{}", std::process::id()));
        fs::create_dir_all(&root).expect("folder");
        let page = root.join("a/b/page.md");
        let document = Document::create(&page, true, &["swift/fig22"]).expect("a page");
        assert!(root.join("a/b").is_dir());
        assert!(!root.join("a/b/figures").exists());
        drop(document);
        assert!(!root.join("a").exists());
        fs::remove_dir(&root).expect("empty");
    }

    #[test]
    fn a_page_is_read_back() {
        let row = |name: &str| {
            let counts = "3 | 1 | 2 | 2 | 0 | 7 | 0 | 1 | 1 | 0";
            format!("| [{name}](#{name}) | A \\| B | Swift Fig. 1 | {counts} |\n")
        };
        let section = |name: &str| format!("\n## {name}: A | B\n\nSwift Fig. 1.\n\n| | paper |\n");
        let [a, b] = ["x/a", "x/b"];
        let page = format!(
            "# Page\n{}{}{}| all | | | 6 |\n{}{}",
            overview(),
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
        assert_eq!(sums(&entries), "| all | | | 6 | 2 | 4 | 4 | 0 | 14 | 0 | 2 | 2 | 0 |\n");
        assert_eq!(
            shares(&entries),
            "\nOf 6 reproductions, 2 (33 %) are within 10 % of the paper's number and 4 (67 %) within 25 %; the goals \
             are 60 % and 80 %.\nThose further off are in x/a (1), x/b (1).\n"
        );
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let heading = "swift/fig17: RTT against the target (100 flows)";
        assert_eq!(anchor(heading), "swiftfig17-rtt-against-the-target-100-flows");
    }
}
