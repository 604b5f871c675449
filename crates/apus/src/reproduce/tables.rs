//! Checks as tables for the terminal.

use apus_scenario::CheckKind;
use apus_scenario::experiment::{CheckResult, Shown, Verdict};
use apus_sim::bounds::Bounds;

use super::result::ExperimentResult;
use crate::text::{bounds, columns, number};

/// Relative difference from the paper's number above which the reason is shown.
const VISIBLE: f64 = 0.1;

/// Returns the text of one experiment.
pub(super) fn experiment(result: &ExperimentResult) -> String {
    let title = result.title.as_ref().map_or_else(String::new, |title| format!("  {title}"));
    let (seeds, wall) = (result.seeds, number(result.wall_s));
    let plural = if seeds == 1 { "" } else { "s" };
    let plural = if result.status == "interrupted" { "s so far: INTERRUPTED" } else { plural };
    let mut text = format!("{}{title}  ({seeds} seed{plural}, {wall} s of run time)\n", result.id);
    if !result.quick.is_empty() {
        text += &format!("  quick: {}\n", result.quick.join("; "));
    }
    if let Some(error) = &result.error {
        return text + "  ERROR: " + error + "\n\n";
    }
    text += &tables(&result.checks, &result.shown);
    text + "\n"
}

/// Returns the checks with their bands, the reasons for differences, and the shown numbers.
pub fn tables(checks: &[CheckResult], shown: &[Shown]) -> String {
    let header = ["", "kind", "paper", "simulated", "off by", "band", "", "source"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for check in checks {
        let shown = &check.shown;
        let [name, paper, simulated] = numbers(shown);
        let (kind, band, source) = (kind(shown), band(shown), shown.source.clone());
        let verdict = verdict(check);
        rows.push(vec![name, kind, paper, simulated, deviation(shown), band, verdict, source]);
    }
    let mut text = columns(&rows, "  ");
    for check in checks {
        text += &difference(check);
    }
    if !shown.is_empty() {
        text += "  Results without a band:\n";
        let rows: Vec<_> = shown.iter().map(shown_row).collect();
        text += &columns(&rows, "    ");
    }
    text
}

/// Returns the reason for a visible difference from the paper's number or for a failed check.
fn difference(check: &CheckResult) -> String {
    let Shown { name, paper, measured, why, .. } = &check.shown;
    let apart = is_apart(*paper, *measured);
    let why = why.as_deref().unwrap_or("the scenario gives no reason");
    let found = check.differs.as_deref().unwrap_or(why);
    match (check.verdict, apart) {
        (Verdict::Differs, _) => format!("  {name} DIFFERS from the paper: {found}\n"),
        (Verdict::Stale, _) => {
            format!("  {name} FAILS: this check passes now: remove `differs`\n")
        }
        (Verdict::Fail, _) => match &check.shown.censored {
            Some(open) => format!("  {name} FAILS: it is censored: {open}\n"),
            None => format!("  {name} FAILS; it may differ because: {why}\n"),
        },
        (Verdict::Pass, true) => format!("  {name}, apart from the paper: {why}\n"),
        (Verdict::Pass, false) => String::new(),
    }
}

/// Returns `true` if a measurement visibly differs from the paper's number.
pub(super) fn is_apart(paper: Option<f64>, measured: Option<f64>) -> bool {
    match (paper, measured) {
        (Some(paper), Some(measured)) => (measured - paper).abs() > VISIBLE * paper.abs(),
        _ => false,
    }
}

/// Returns a row without a band, with the paper's number if there is one.
fn shown_row(shown: &Shown) -> Vec<String> {
    let paper = shown
        .paper
        .map_or_else(String::new, |value| format!("(paper: {}, {})", number(value), shown.source));
    let [name, _, simulated] = numbers(shown);
    vec![name, simulated, paper]
}

/// Returns the name, the publication's number, and the simulated one with its spread.
fn numbers(shown: &Shown) -> [String; 3] {
    let unit = match shown.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let paper = shown.paper.map_or_else(|| "-".to_owned(), |value| number(value) + &unit);
    let simulated = match (shown.measured, shown.spread) {
        (Some(value), Some((low, high))) if low < high => {
            format!("{}{unit} ({} .. {})", number(value), number(low), number(high))
        }
        (Some(value), _) => number(value) + &unit,
        (None, _) => not_known(shown),
    };
    [shown.name.clone(), paper, simulated]
}

/// Returns the kind of a check, or "fitted".
pub(super) fn kind(shown: &Shown) -> String {
    let word = shown.kind.map_or("", CheckKind::word);
    if shown.fitted.is_some() { "fitted".to_owned() } else { word.to_owned() }
}

/// Returns the deviation from the publication's number: "+12 %".
pub(super) fn deviation(shown: &Shown) -> String {
    shown.deviation_percent.map_or_else(String::new, |off| match off.abs() < 9.95 {
        true => format!("{off:+.1} %"),
        false => format!("{off:+.0} %"),
    })
}

/// Returns the verdict; if the median is within the band, also the number of seeds outside it.
fn verdict(check: &CheckResult) -> String {
    check.verdict.word().to_owned() + &seeds_outside(check)
}

/// Returns ", 1 of 5 seeds outside" for a check whose median is within the band.
pub(super) fn seeds_outside(check: &CheckResult) -> String {
    let (outside, all) = (check.seeds_outside, check.shown.seeds.len());
    if outside == 0 || !check.pass {
        return String::new();
    }
    format!(", {outside} of {all} seeds outside")
}

/// Returns the text for an unknown number; for a censored number, its bounds.
pub(super) fn not_known(shown: &Shown) -> String {
    if shown.censored.is_none() {
        return "not measured".to_owned();
    }
    let lower = shown.lower.unwrap_or(f64::NEG_INFINITY);
    let upper = shown.upper.unwrap_or(f64::INFINITY);
    if lower.is_infinite() && upper.is_infinite() {
        return "censored".to_owned();
    }
    let unit = if shown.unit.is_empty() { String::new() } else { format!(" {}", shown.unit) };
    bounds(Bounds { lower, upper }) + &unit + " (censored)"
}

pub(super) fn band(shown: &Shown) -> String {
    match (shown.low, shown.high) {
        (Some(low), Some(high)) => format!("{} .. {}", number(low), number(high)),
        (Some(low), None) => format!(">= {}", number(low)),
        (None, Some(high)) => format!("<= {}", number(high)),
        (None, None) => String::new(),
    }
}
