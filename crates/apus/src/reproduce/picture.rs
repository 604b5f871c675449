//! One picture of a figure: curves with their axes.

use std::fmt::Write;

use serde_json::{Value, json};

use super::figure::diamond;
use crate::svg::{COLOURS, ValueAxis, escape};
use crate::text::number;

/// Maximum number of names below a horizontal axis.
const NAMES: usize = 9;
/// Maximum number of points of a curve on a page.
const MAX_POINTS: usize = 600;

/// The horizontal axis.
#[derive(Default)]
pub(super) struct Across {
    /// Quantity of the axis, with its unit.
    pub(super) title: &'static str,
    /// `true` if the axis is logarithmic.
    pub(super) log: bool,
    /// Names of the positions 0, 1, …; without names the axis has numbers.
    pub(super) names: Vec<String>,
}

/// Curves of one picture.
pub(super) struct Curves {
    pub(super) title: String,
    /// Name and points of each curve.
    pub(super) curves: Vec<(String, Vec<(f64, f64)>)>,
    /// Numbers of the paper, each with the index of its curve.
    pub(super) paper: Vec<(usize, (f64, f64))>,
    pub(super) across: Across,
    /// `true` if points are marked, because the line between them was not measured.
    pub(super) points: bool,
    /// `true` if the vertical axis is logarithmic.
    pub(super) log: bool,
}

/// A vertical axis.
enum Upward {
    Linear(ValueAxis),
    /// Whole powers of ten, from exponent `first` to `last`.
    Log {
        first: i32,
        last: i32,
        y0: f64,
        y1: f64,
    },
}

impl Upward {
    fn new(values: &[f64], log: bool, y0: f64, y1: f64) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        if !log {
            return Self::Linear(ValueAxis::new(most, y0, y1));
        }
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let least = positive.fold(most, f64::min).max(f64::MIN_POSITIVE);
        let first = least.log10().floor() as i32;
        let last = (most.max(least).log10().ceil() as i32).max(first + 1);
        Self::Log { first, last, y0, y1 }
    }

    fn at(&self, value: f64) -> f64 {
        match self {
            Self::Linear(axis) => axis.at(value),
            Self::Log { first, last, y0, y1 } => {
                let share = (value.max(f64::MIN_POSITIVE).log10() - f64::from(*first))
                    / f64::from(last - first);
                y0 - (y0 - y1) * share.clamp(0.0, 1.0)
            }
        }
    }

    fn draw(&self, svg: &mut String, left: f64, right: f64) {
        match self {
            Self::Linear(axis) => axis.draw(svg, left, right),
            Self::Log { first, last, .. } => {
                for exponent in *first..=*last {
                    let value = 10f64.powi(exponent);
                    let y = self.at(value);
                    // Writing to a String cannot fail.
                    let _ = writeln!(
                        svg,
                        "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                        left - 6.0,
                        y + 4.0,
                        number(value)
                    );
                }
            }
        }
    }
}

impl Curves {
    /// Returns the picture in the form that the page of results draws.
    pub(super) fn json(&self) -> Value {
        let curve = |(name, points): &(String, Vec<(f64, f64)>)| {
            // Points beyond the resolution of a screen are left out, except the first and the last one.
            let last = points.len().saturating_sub(1);
            let stride = last.div_ceil(MAX_POINTS - 1).max(1);
            let kept = points.iter().enumerate();
            let kept = kept.filter(|(place, _)| place % stride == 0 || *place == last);
            let (x, y): (Vec<f64>, Vec<f64>) = kept.map(|(_, point)| *point).unzip();
            json!({ "name": name, "x": x, "y": y })
        };
        json!({
            "title": self.title,
            "across": self.across.title,
            "across_log": self.across.log,
            "names": self.across.names,
            "curves": self.curves.iter().map(curve).collect::<Vec<_>>(),
            "paper": self.paper.iter().map(|(curve, (x, y))| json!([curve, x, y])).collect::<Vec<_>>(),
            "points": self.points,
            "log": self.log,
        })
    }

    /// Draws the curves in the rectangle between these corners.
    pub(super) fn draw(&self, svg: &mut String, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) {
        let points = || self.curves.iter().flat_map(|(_, points)| points);
        let papers = || self.paper.iter().map(|(_, point)| point);
        let values: Vec<f64> = points().chain(papers()).map(|point| point.1).collect();
        let first = points().chain(papers()).map(|point| point.0).fold(f64::INFINITY, f64::min);
        let last = points().chain(papers()).map(|point| point.0).fold(0.0, f64::max);
        let values = Upward::new(&values, self.log, y0, y1);
        let scale = |x: f64| if self.across.log { x.max(f64::MIN_POSITIVE).ln() } else { x };
        let width = (scale(last) - scale(first)).max(f64::MIN_POSITIVE);
        // Marked points keep a distance from the vertical axis.
        let margin = if self.points { 0.04 * (x1 - x0) } else { 0.0 };
        let (left, right) = (x0 + margin, x1 - margin);
        let at_x = |x: f64| left + (right - left) * (scale(x) - scale(first)) / width;
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (x0 + x1) / 2.0,
            y1 - 12.0,
            escape(&self.title),
            (x0 + x1) / 2.0,
            y0 + 34.0,
            self.across.title,
        );
        values.draw(svg, x0, x1);
        for (x, name) in self.ticks(first, last) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{}\">{}</text>",
                at_x(x),
                y0 + 16.0,
                if self.across.names.is_empty() { 11 } else { 9 },
                escape(&name)
            );
        }
        for (index, (name, points)) in self.curves.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let path = points.iter().map(|(x, y)| format!("{:.1},{:.1}", at_x(*x), values.at(*y)));
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
                path.collect::<Vec<_>>().join(" "),
                x1 - 4.0,
                y1 + 14.0 * (index as f64 + 1.0),
                escape(name)
            );
            for (x, y) in points.iter().filter(|_| self.points) {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                    at_x(*x),
                    values.at(*y)
                );
            }
        }
        for (index, (x, y)) in &self.paper {
            // A single curve has the colour of the key; several curves have different colours.
            let colour = (self.curves.len() > 1).then(|| COLOURS[index % COLOURS.len()]);
            diamond(svg, at_x(*x), values.at(*y), colour);
        }
    }

    /// Returns the positions and texts below the horizontal axis.
    fn ticks(&self, first: f64, last: f64) -> Vec<(f64, String)> {
        if !self.across.names.is_empty() {
            let every = self.across.names.len().div_ceil(NAMES);
            let names = self.across.names.iter().enumerate().step_by(every);
            return names.map(|(index, name)| (index as f64, name.clone())).collect();
        }
        if self.across.log {
            // Neighbouring values differ by a power of two, in at most four steps.
            let factor = 2f64.powf(((last / first).log2() / 4.0).ceil().max(1.0));
            let all = std::iter::successors(Some(first), |x| Some(x * factor));
            return all.take_while(|x| *x <= last).map(|x| (x, number(x))).collect();
        }
        let at = |tick: i32| first + (last - first) * f64::from(tick) / 4.0;
        (0..=4).map(at).map(|x| (x, number(x))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Across, Curves, MAX_POINTS};

    /// Of 3600 points, every seventh is kept, and the last one.
    #[test]
    fn a_page_has_the_papers_numbers_and_as_many_points_as_a_screen_shows() {
        let points = (0..6 * MAX_POINTS).map(|n| (n as f64, 2.0 * n as f64)).collect();
        let picture = Curves {
            title: "queue".to_owned(),
            curves: vec![("Swift".to_owned(), points)],
            paper: vec![(0, (3.0, 5.0))],
            across: Across::default(),
            points: false,
            log: true,
        };
        let json = picture.json();
        let x = json["curves"][0]["x"].as_array().expect("list");
        assert_eq!((x.len(), &x[1], x.last()), (516, &7.0.into(), Some(&3599.0.into())));
        assert_eq!(json["paper"], serde_json::json!([[0, 3.0, 5.0]]));
        assert_eq!((&json["curves"][0]["name"], &json["log"]), (&"Swift".into(), &true.into()));
    }
}
