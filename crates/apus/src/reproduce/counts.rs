//! Number of checks by kind and verdict.

use apus_scenario::CheckKind;
use apus_scenario::experiment::{CheckResult, Verdict};
use serde::Serialize;

/// Limits of the relative deviation, in percent, for which reproductions are counted.
const CLOSE: f64 = 10.0;
const NEAR: f64 = 25.0;

/// Number of checks by kind and verdict. A fitted check counts as `fitted` and not by its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) checks: usize,
    pub(super) pass: usize,
    pub(super) fail: usize,
    pub(super) differs: usize,
    pub(super) stale: usize,
    pub(super) reproductions: Reproductions,
    pub(super) fitted: Kind,
    pub(super) shapes: Kind,
    pub(super) invariants: Kind,
    pub(super) formulas: Kind,
}

/// Reproductions, and their deviation from the publications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reproductions {
    pub(super) checks: usize,
    pub(super) within_10_percent: usize,
    pub(super) within_25_percent: usize,
    pub(super) within_band: usize,
}

/// Checks of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Kind {
    pub(super) checks: usize,
    pub(super) within_band: usize,
}

impl Counts {
    /// Counts the checks.
    pub(super) fn of<'a>(checks: impl Iterator<Item = &'a CheckResult>) -> Self {
        let mut counts = Self::default();
        for check in checks {
            counts.add(check);
        }
        counts
    }

    fn add(&mut self, check: &CheckResult) {
        self.checks += 1;
        *match check.verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail => &mut self.fail,
            Verdict::Differs => &mut self.differs,
            Verdict::Stale => &mut self.stale,
        } += 1;
        let within = |most: f64| {
            usize::from(check.shown.deviation_percent.is_some_and(|off| off.abs() <= most))
        };
        let kind = match check.shown.kind {
            _ if check.shown.fitted.is_some() => &mut self.fitted,
            Some(CheckKind::Reproduction) => {
                self.reproductions.checks += 1;
                self.reproductions.within_10_percent += within(CLOSE);
                self.reproductions.within_25_percent += within(NEAR);
                self.reproductions.within_band += usize::from(check.pass);
                return;
            }
            Some(CheckKind::Shape) | None => &mut self.shapes,
            Some(CheckKind::Invariant) => &mut self.invariants,
            Some(CheckKind::Formula) => &mut self.formulas,
        };
        kind.checks += 1;
        kind.within_band += usize::from(check.pass);
    }

    /// Returns the lines at the end of the command's output; `errors` is the number of experiments without results.
    pub(super) fn lines(&self, errors: usize) -> String {
        let mut text = String::new();
        let Reproductions { checks, within_10_percent, within_25_percent, within_band } =
            self.reproductions;
        if checks > 0 {
            text += &format!(
                "reproductions: {within_10_percent} of {checks} within 10 %, {within_25_percent} within 25 %, \
                 {within_band} within band\n"
            );
        }
        let others = [
            ("fitted", self.fitted),
            ("shapes", self.shapes),
            ("invariants", self.invariants),
            ("formulas", self.formulas),
        ];
        let others: Vec<String> = others
            .iter()
            .filter(|(_, kind)| kind.checks > 0)
            .map(|(word, kind)| format!("{word} {} of {}", kind.within_band, kind.checks))
            .collect();
        if !others.is_empty() {
            text += &format!("within band: {}\n", others.join(", "));
        }
        for (count, what) in [
            (self.differs, "differ, as their scenarios say"),
            (self.fail, "FAIL"),
            (self.stale, "pass though their scenarios say `differs`"),
            (errors, "experiments could not be run"),
        ] {
            if count > 0 {
                text += &format!("{count} {what}\n");
            }
        }
        text
    }

    /// Returns the numbers of a row of the page's overview, in the order of [`COLUMNS`].
    pub(super) fn cells(&self) -> [usize; 10] {
        let near = self.reproductions;
        [
            near.checks,
            near.within_10_percent,
            near.within_25_percent,
            near.within_band,
            self.fitted.checks,
            self.shapes.checks,
            self.invariants.checks,
            self.formulas.checks,
            self.differs,
            self.fail + self.stale,
        ]
    }
}

/// Headings of [`Counts::cells`].
pub(super) const COLUMNS: [&str; 10] = [
    "reproductions",
    "within 10 %",
    "within 25 %",
    "within band",
    "fitted",
    "shapes",
    "invariants",
    "formulas",
    "differ",
    "fail",
];
