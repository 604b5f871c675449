//! Common parts of SVG pictures: frame, colours, and an axis of values.

use std::fmt::Write;

use crate::text::number;

/// Colours that colour-blind readers can distinguish too (Okabe and Ito 2008).
pub const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// Number of steps of an axis of values.
const TICKS: u32 = 4;

/// Returns the start of a picture of this size, with a white background.
pub fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

/// Returns the text escaped for a page or picture.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A vertical axis of values, from 0 to a round number of steps.
pub struct ValueAxis {
    step: f64,
    /// Positions of 0 and of the largest value.
    ends: (f64, f64),
}

impl ValueAxis {
    /// Returns the axis for values up to `most`, from `bottom` up to `top`.
    pub fn new(most: f64, bottom: f64, top: f64) -> Self {
        let ticks = f64::from(TICKS);
        Self { step: round_step(if most > 0.0 { most / ticks } else { 0.25 }), ends: (bottom, top) }
    }

    /// Returns the value at the top of the axis.
    pub fn most(&self) -> f64 {
        self.step * f64::from(TICKS)
    }

    /// Returns the position of a value.
    pub fn at(&self, value: f64) -> f64 {
        let (bottom, top) = self.ends;
        bottom - (bottom - top) * value / self.most()
    }

    /// Draws the grid lines from `left` to `right`, with the numbers to their left.
    pub fn draw(&self, svg: &mut String, left: f64, right: f64) {
        for tick in 0..=TICKS {
            let value = self.step * f64::from(tick);
            let line = self.at(value);
            // Writing to a String cannot fail.
            let _ = writeln!(
                svg,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{line:.1}\" y2=\"{line:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                line + 4.0,
                number(value)
            );
        }
    }
}

/// Direction in which values grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// Upwards.
    Top,
    /// To the right.
    Right,
}

/// Draws the mark of a censored number: an arrow from its lower bound at `x` and `y` towards larger
/// values. `title` is its tooltip.
pub fn censored(svg: &mut String, (x, y): (f64, f64), towards: Towards, colour: &str, title: &str) {
    let arrow = match towards {
        Towards::Top => "v-14m-4 5l4 -5l4 5",
        Towards::Right => "h14m-5 -4l5 4l-5 4",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.1} {y:.1}{arrow}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\">\
         <title>{}</title></path>",
        escape(title)
    );
}

/// Returns the next round number: 1, 2, 2.5 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powi(step.log10().floor() as i32);
    let round = [1.0, 2.0, 2.5, 5.0].into_iter().find(|round| round * power >= step * 0.999);
    round.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::ValueAxis;

    #[test]
    fn an_axis_ends_at_the_next_round_number() {
        // Four steps of 1, 2, 2.5 or 5 times a power of ten.
        for (most, end) in
            [(3.9, 4.0), (4.1, 8.0), (9.0, 10.0), (17.0, 20.0), (0.3, 0.4), (0.0, 1.0)]
        {
            let axis = ValueAxis::new(most, 100.0, 0.0);
            assert!((axis.most() - end).abs() < 1e-12, "{most}: {}", axis.most());
            assert!((axis.at(end / 2.0) - 50.0).abs() < 1e-9 && axis.at(0.0) == 100.0);
        }
    }
}
