//! Figure of an experiment, as SVG: curves on the axes of the paper's figure, its numbers over the variants, and the
//! ratio of individual numbers to those of the paper. A censored number is drawn as an arrow from its lower bound.

use std::fmt::Write;

use apus_scenario::experiment::Shown;

use super::result::ExperimentResult;
use super::tables::{deviation, not_known};
use crate::svg::{self, Towards, ValueAxis, escape};
use crate::text::number;

const PANEL: (f64, f64) = (440.0, 270.0);
/// Margins of the plot within a panel: left, top, right, bottom.
const MARGIN: [f64; 4] = [64.0, 34.0, 18.0, 58.0];
const PANELS_PER_ROW: usize = 2;
/// Height of a row of the comparison with the paper, and the width of names to its left.
const ROW: f64 = 22.0;
const NAMES: f64 = 330.0;
/// Width of the column with deviations, to the right of these rows.
const OFF_BY: f64 = 56.0;
const SIMULATED: &str = "#0072b2";
const PAPER: &str = "#d55e00";
const ACCEPTED: &str = "#d9efe3";

/// Draws the quantities that several variants have, and the checks with a number of the paper.
pub(super) fn draw(result: &ExperimentResult) -> Option<String> {
    let all: Vec<&Shown> =
        result.checks.iter().map(|check| &check.shown).chain(&result.shown).collect();
    let mut panels: Vec<Vec<&Shown>> = Vec::new();
    for shown in all.iter().copied().filter(|s| s.variant.is_some() && at_least(s).is_some()) {
        match panels.iter_mut().find(|panel| panel[0].quantity == shown.quantity) {
            // A check may use a variant that the panel already shows.
            Some(panel) if panel.iter().any(|one| one.variant == shown.variant) => {}
            Some(panel) => panel.push(shown),
            None => panels.push(vec![shown]),
        }
    }
    panels.retain(|panel| panel.len() > 1);
    let drawn = |shown: &Shown| panels.iter().any(|panel| panel[0].quantity == shown.quantity);
    let positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let compared: Vec<&Shown> = all
        .iter()
        .copied()
        .filter(|s| !drawn(s) && positive(s.paper) && positive(at_least(s)))
        .collect();
    if panels.is_empty() && compared.is_empty() && result.curves.is_empty() {
        return None;
    }
    let columns = panels.len().max(result.curves.len()).clamp(1, PANELS_PER_ROW) as f64;
    let censored = panels.iter().flatten().chain(&compared).any(|shown| shown.measured.is_none());
    // The comparison, and the key of the arrows, need the width of two panels.
    let single = compared.is_empty() && !censored;
    let width = if single { PANEL.0 * columns } else { PANEL.0 * 2.0 };
    let rows = panels.len().div_ceil(PANELS_PER_ROW) as f64;
    let ratios = if compared.is_empty() { 0.0 } else { ROW * compared.len() as f64 + 76.0 };
    let curves = PANEL.1 * result.curves.len().div_ceil(PANELS_PER_ROW) as f64;
    let height = curves + PANEL.1 * rows + ratios + 24.0;
    let mut svg = svg::begin(width, height);
    for (index, one) in result.curves.iter().enumerate() {
        let [left, top, right, bottom] = MARGIN;
        let x = PANEL.0 * (index % PANELS_PER_ROW) as f64;
        let y = PANEL.1 * (index / PANELS_PER_ROW) as f64;
        let corner = (x + PANEL.0 - right, y + top);
        one.draw(&mut svg, (x + left, y + PANEL.1 - bottom), corner);
    }
    for (index, panel) in panels.iter().enumerate() {
        let x = PANEL.0 * (index % PANELS_PER_ROW) as f64;
        let y = curves + PANEL.1 * (index / PANELS_PER_ROW) as f64;
        draw_panel(&mut svg, (x, y), panel);
    }
    if !compared.is_empty() {
        draw_ratios(&mut svg, (width, curves + PANEL.1 * rows), &compared);
    }
    let key = match censored {
        true => format!(
            "<text x=\"476\" y=\"{}\">arrow: at least this, as ops had not ended</text>",
            height - 8.0
        ),
        false => String::new(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<circle cx=\"16\" cy=\"{y}\" r=\"4\" fill=\"{SIMULATED}\"/><text x=\"26\" y=\"{t}\">simulated: \
         median, min and max of the seeds</text>\
         <path d=\"M330 {a}l5 5-5 5-5-5z\" fill=\"none\" stroke=\"{PAPER}\" stroke-width=\"2\"/>\
         <text x=\"342\" y=\"{t}\">paper</text>\
         <rect x=\"392\" y=\"{a}\" width=\"10\" height=\"10\" fill=\"{ACCEPTED}\"/>\
         <text x=\"408\" y=\"{t}\">accepted</text>{key}",
        y = height - 12.0,
        t = height - 8.0,
        a = height - 17.0,
    );
    Some(svg + "</svg>\n")
}

/// Returns the number, or the lower bound of a censored one.
fn at_least(shown: &Shown) -> Option<f64> {
    shown.measured.or(shown.lower)
}

/// Returns the horizontal positions of the variants: by value if all values differ, otherwise evenly spaced.
fn places(panel: &[&Shown]) -> Vec<f64> {
    let values: Option<Vec<f64>> = panel.iter().map(|shown| shown.value).collect();
    let beside = || (0..panel.len()).map(|i| (i as f64 + 0.5) / panel.len() as f64).collect();
    let Some(values) = values else { return beside() };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least >= most {
        return beside();
    }
    // Values that span more than about a decade are drawn on a logarithmic scale.
    let logarithmic = least > 0.0 && most / least > 20.0;
    let scale = |value: f64| if logarithmic { value.ln() } else { value };
    let share = |value: &f64| (scale(*value) - scale(least)) / (scale(most) - scale(least));
    values.iter().map(|value| 0.05 + 0.9 * share(value)).collect()
}

/// Draws one quantity over its variants; the vertical axis starts at 0.
fn draw_panel(svg: &mut String, (x, y): (f64, f64), panel: &[&Shown]) {
    let [left, top, right, bottom] = MARGIN;
    let (x0, x1) = (x + left, x + PANEL.0 - right);
    let (y0, y1) = (y + PANEL.1 - bottom, y + top);
    let highest = |shown: &&Shown| {
        let simulated = shown.spread.map_or(0.0, |(_, high)| high);
        simulated.max(shown.paper.unwrap_or(0.0)).max(at_least(shown).unwrap_or(0.0))
    };
    let most = panel.iter().map(highest).fold(0.0, f64::max);
    let values = ValueAxis::new(most, y0, y1);
    let at_y = |value: f64| values.at(value.clamp(0.0, values.most()));
    let unit = match panel[0].unit.as_str() {
        "" => String::new(),
        unit => format!(" [{unit}]"),
    };
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}{unit}</text>",
        (x0 + x1) / 2.0,
        y1 - 12.0,
        escape(&panel[0].quantity),
    );
    values.draw(svg, x0, x1);
    let places = places(panel);
    let at_x = |place: f64| x0 + (x1 - x0) * place;
    for (shown, place) in panel.iter().zip(&places) {
        if shown.low.is_some() || shown.high.is_some() {
            let high = at_y(shown.high.unwrap_or(values.most()));
            let height = at_y(shown.low.unwrap_or(0.0)) - high;
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{high:.1}\" width=\"12\" height=\"{height:.1}\" \
                 fill=\"{ACCEPTED}\"/>",
                at_x(*place) - 6.0
            );
        }
    }
    if panel.iter().all(|shown| shown.value.is_some()) {
        let point = |(shown, place): (&&Shown, &f64)| {
            Some(format!("{:.1},{:.1}", at_x(*place), at_y(shown.measured?)))
        };
        let line: Vec<String> = panel.iter().zip(&places).filter_map(point).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{SIMULATED}\" stroke-width=\"1.5\"/>",
            line.join(" ")
        );
    }
    // Neighbouring names need space, so only some are drawn.
    let every = panel.len().div_ceil(8);
    for (index, (shown, place)) in panel.iter().zip(&places).enumerate() {
        let at = at_x(*place);
        if let Some((low, high)) = shown.spread {
            whisker(svg, (at, at_y(low)), (at, at_y(high)));
        }
        if let Some(paper) = shown.paper {
            diamond(svg, at, at_y(paper), None);
        }
        if let Some(simulated) = at_least(shown) {
            point(svg, (at, at_y(simulated)), shown, Towards::Top);
        }
        if index % every == 0 {
            let _ = writeln!(
                svg,
                "<text transform=\"translate({:.1},{}) rotate(-18)\" text-anchor=\"end\" \
                 font-size=\"11\">{}</text>",
                at + 8.0,
                y0 + 16.0,
                escape(shown.variant.as_deref().unwrap_or_default())
            );
        }
    }
}

/// Draws the simulated values divided by the paper's, one row per number.
fn draw_ratios(svg: &mut String, (width, top): (f64, f64), compared: &[&Shown]) {
    let ratio = |shown: &Shown, value: f64| value / shown.paper.unwrap_or(1.0);
    let ends = compared.iter().flat_map(|shown| {
        let simulated = at_least(shown).unwrap_or_default();
        let (low, high) = shown.spread.unwrap_or((simulated, simulated));
        [ratio(shown, low), ratio(shown, high)]
    });
    let far = ends.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.ln().abs()).fold(0.0, f64::max);
    // The scale covers at least a factor of two in each direction, so that small differences look small.
    let far = (far * 1.05).max(2f64.ln());
    let (x0, x1) = (NAMES, width - OFF_BY - 8.0);
    let at = |ratio: f64| {
        let share = (ratio.max(1e-12).ln() / far).clamp(-1.0, 1.0);
        x0 + (x1 - x0) * (share + 1.0) / 2.0
    };
    let bottom = top + 34.0 + ROW * compared.len() as f64;
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">simulated \
         value / paper's value</text>",
        at(1.0),
        top + 20.0
    );
    for tick in [(-far).exp(), (-far / 2.0).exp(), 1.0, (far / 2.0).exp(), far.exp()] {
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{bottom}\" stroke=\"{}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{tick:.2}</text>",
            top + 30.0,
            if tick == 1.0 { PAPER } else { "#ddd" },
            bottom + 16.0,
            x = at(tick),
        );
    }
    for (index, shown) in compared.iter().enumerate() {
        let y = top + 34.0 + ROW * (index as f64 + 0.5);
        let name: String = shown.name.chars().take(52).collect();
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x0 - 10.0,
            y + 4.0,
            escape(&name)
        );
        if shown.low.is_some() || shown.high.is_some() {
            let low = shown.low.map_or(x0, |low| at(ratio(shown, low)));
            let high = shown.high.map_or(x1, |high| at(ratio(shown, high)));
            let _ = writeln!(
                svg,
                "<rect x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" \
                 fill=\"{ACCEPTED}\"/>",
                y - 6.0,
                high - low
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x1 + OFF_BY,
            y + 4.0,
            deviation(shown)
        );
        if let Some((low, high)) = shown.spread {
            whisker(svg, (at(ratio(shown, low)), y), (at(ratio(shown, high)), y));
        }
        if let Some(simulated) = at_least(shown) {
            point(svg, (at(ratio(shown, simulated)), y), shown, Towards::Right);
        }
    }
}

fn whisker(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{SIMULATED}\" \
         stroke-width=\"3\" opacity=\"0.4\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// Draws the simulated number at `x` and `y`.
fn point(svg: &mut String, (x, y): (f64, f64), shown: &Shown, towards: Towards) {
    let Some(value) = shown.measured else {
        let title = format!("{}: {}", shown.name, not_known(shown));
        svg::censored(svg, (x, y), towards, SIMULATED, &title);
        return;
    };
    let _ = writeln!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{SIMULATED}\"><title>{}: {} {}</title></circle>",
        escape(&shown.name),
        number(value),
        escape(&shown.unit)
    );
}

/// Draws a number of the paper, in the colour of the key unless another one is given.
pub(super) fn diamond(svg: &mut String, x: f64, y: f64, colour: Option<&str>) {
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.1} {:.1}l6 6-6 6-6-6z\" fill=\"none\" stroke=\"{}\" \
         stroke-width=\"2\"/>",
        y - 6.0,
        colour.unwrap_or(PAPER)
    );
}

#[cfg(test)]
mod tests {
    use apus_scenario::experiment::Shown;

    use super::{ExperimentResult, draw};

    fn shown(variant: Option<&str>, measured: Option<f64>) -> Shown {
        let censored = measured.is_none();
        Shown {
            name: "p99".to_owned(),
            quantity: "p99".to_owned(),
            metric: "fabric_rtt_us.p99".to_owned(),
            relative: false,
            kind: None,
            fitted: None,
            reading_error: None,
            deviation_percent: None,
            seeds: Vec::new(),
            variant: variant.map(str::to_owned),
            value: None,
            paper: Some(2.0),
            measured,
            censored: censored.then(|| "1 of 2 ops had not ended".to_owned()),
            lower: censored.then_some(3.0),
            upper: None,
            unit: "us".to_owned(),
            low: None,
            high: None,
            source: String::new(),
            spread: None,
            why: None,
        }
    }

    fn picture(shown: Vec<Shown>) -> String {
        let result = ExperimentResult {
            id: "x/y".to_owned(),
            status: "pass",
            wall_s: 0.0,
            checks: Vec::new(),
            shown,
            seeds: 1,
            events: None,
            curves: Vec::new(),
            quick: Vec::new(),
            title: None,
            error: None,
        };
        draw(&result).expect("a figure")
    }

    /// Draws panels over variants, and the comparison with the paper.
    #[test]
    fn a_censored_number_is_an_arrow_from_its_lower_bound() {
        let panel = |second| vec![shown(Some("a"), Some(1.0)), shown(Some("b"), second)];
        for (known, open, arrow) in [
            (panel(Some(3.0)), panel(None), "v-14m-4 5l4 -5l4 5"),
            (vec![shown(None, Some(3.0))], vec![shown(None, None)], "h14m-5 -4l5 4l-5 4"),
        ] {
            let (known, open) = (picture(known), picture(open));
            // The arrow starts at the position of the lower bound.
            let place = known.rsplit_once("<circle cx").map(|(before, _)| before);
            let place = place.and_then(|before| before.rsplit_once("<circle cx=\"")).expect("it").1;
            let mut words = place.split('"');
            let (x, y) = (words.next().expect("x"), words.nth(1).expect("y"));
            assert!(open.contains(&format!("M{x} {y}{arrow}")), "{x} {y}: {open}");
            assert!(open.contains("<title>p99: &gt;= 3 us (censored)</title>"), "{open}");
            assert!(open.contains("arrow: at least this") && !known.contains("arrow"));
        }
    }
}
