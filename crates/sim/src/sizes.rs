//! Distributions of message sizes, one `size percent` per line: the text format of the HPCC tools.
//!
//! A line that begins with `#` is a comment. Sizes are in bytes, and percentages are cumulative. Neither may
//! decrease, and the last percentage is 100. If the first line is a comment with the words "step function",
//! "linearly in size" or "linearly in log(size)", it selects the interpolation between two points. Otherwise
//! interpolation is linear in size, as in the HPCC tools.

use std::fmt::Write;

use apus_units::shorten;

/// Built-in distributions by name. Each text begins with its source.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("cache_follower", include_str!("../data/workloads/cache_follower.txt")),
    ("data_mining", include_str!("../data/workloads/data_mining.txt")),
    ("facebook_hadoop", include_str!("../data/workloads/facebook_hadoop.txt")),
    ("facebook_key_value", include_str!("../data/workloads/facebook_key_value.txt")),
    ("google_all_rpc", include_str!("../data/workloads/google_all_rpc.txt")),
    ("google_search_rpc", include_str!("../data/workloads/google_search_rpc.txt")),
    ("read_rpc_synthetic", include_str!("../data/workloads/read_rpc_synthetic.txt")),
    ("web_search", include_str!("../data/workloads/web_search.txt")),
    ("web_server", include_str!("../data/workloads/web_server.txt")),
];

/// Maximum size of a distribution: far above the capacity of any run.
const MAX_SIZE: f64 = (1u64 << 40) as f64;

/// Interpolation between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// The smallest size whose percent reaches the draw.
    Step,
    /// Linear in size.
    Linear,
    /// Linear in the logarithm of the size.
    Log,
}

impl Interpolation {
    /// Words in the first line of a file that select an interpolation.
    const WORDS: [(Self, &'static str); 3] = [
        (Self::Step, "step function"),
        (Self::Log, "linearly in log(size)"),
        (Self::Linear, "linearly in size"),
    ];
}

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    interpolation: Interpolation,
    /// Size in bytes and cumulative fraction.
    points: Vec<(f64, f64)>,
}

impl Sizes {
    /// Reads a distribution.
    ///
    /// # Errors
    /// An invalid line: the message gives its number (from 1), the mistake and a valid form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let first = text.lines().next().unwrap_or_default();
        let asked = |(_, words): &&(Interpolation, &str)| {
            first.starts_with('#') && first.to_ascii_lowercase().contains(words)
        };
        let interpolation =
            Interpolation::WORDS.iter().find(asked).map_or(Interpolation::Linear, |(i, _)| *i);
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 1;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            last_line = number;
            let fail = |why: String| Err(format!("{number}: {why}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers: Option<Vec<f64>> =
                words.iter().map(|w| w.parse().ok().filter(|x: &f64| x.is_finite())).collect();
            let Some([size, percent]) = numbers.as_deref() else {
                return fail(format!(
                    "`{}` is not two numbers; write a size in bytes and a cumulative percent, like \
                     `1000 50`",
                    shorten(line)
                ));
            };
            if !(0.0..=MAX_SIZE).contains(size) {
                return fail(format!("the size {size} is not from 0 to 2^40 bytes"));
            }
            if !(0.0..=100.0).contains(percent) {
                return fail(format!("the percent {percent} is not from 0 to 100"));
            }
            if let Some((before, fraction)) = points.last()
                && (size < before || percent / 100.0 < *fraction)
            {
                return fail(format!(
                    "sizes and cumulative percents must not fall, but {size} {percent} follows \
                     {before} {}",
                    fraction * 100.0
                ));
            }
            points.push((*size, percent / 100.0));
        }
        match points.last() {
            Some((size, 1.0)) if *size >= 1.0 => Ok(Self { interpolation, points }),
            Some((size, 1.0)) => {
                Err(format!("{last_line}: the largest size is {size}; it must be at least 1 byte"))
            }
            Some((_, fraction)) => Err(format!(
                "{last_line}: the last percent is {}; it must be 100, that of the largest size",
                fraction * 100.0
            )),
            None => Err("1: there are no points; write a size in bytes and a cumulative percent \
                         per line, like `1000 50`"
                .to_owned()),
        }
    }

    /// Returns a built-in distribution.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        // A test reads all built-in distributions.
        Self::parse(text).ok()
    }

    /// Returns the size for a draw `u`, uniform in [0, 1): whole bytes, at least 1.
    #[must_use]
    pub fn quantile(&self, u: f64) -> u64 {
        let above = self.points.partition_point(|(_, fraction)| *fraction < u);
        let last = self.points.len() - 1;
        let (size, fraction) = self.points[above.min(last)];
        let size = match (self.interpolation, above.checked_sub(1)) {
            (Interpolation::Step, _) | (_, None) => size,
            (interpolation, Some(below)) => {
                let (from, start) = self.points[below];
                let part = if fraction > start { (u - start) / (fraction - start) } else { 1.0 };
                match interpolation {
                    Interpolation::Log if from > 0.0 => {
                        from * libm::exp(part * libm::log(size / from))
                    }
                    _ => from + part * (size - from),
                }
            }
        };
        libm::round(size).max(1.0) as u64
    }

    /// Returns the mean size in bytes, before rounding to whole bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let (first, weight) = self.points[0];
        let pieces = self.points.windows(2).map(|pair| {
            let ((a, start), (b, end)) = (pair[0], pair[1]);
            let middle = match self.interpolation {
                Interpolation::Step => b,
                Interpolation::Log if a > 0.0 && b > a => (b - a) / libm::log(b / a),
                _ => (a + b) / 2.0,
            };
            (end - start) * middle
        });
        (first * weight + pieces.sum::<f64>()).max(1.0)
    }

    /// Returns the text of this distribution, in the format of a file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let how = Interpolation::WORDS.iter().find(|(i, _)| *i == self.interpolation);
        let mut text =
            format!("# Size in bytes, cumulative percent; {}\n", how.map_or("", |h| h.1));
        for (size, fraction) in &self.points {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{size} {}", percent_text(*fraction));
        }
        text
    }
}

/// Returns a percentage that gives exactly the fraction when divided by 100.
fn percent_text(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let near = [percent, percent.next_up(), percent.next_down()];
    near.into_iter().find(|p| p / 100.0 == fraction).unwrap_or(percent).to_string()
}

#[cfg(test)]
mod tests {
    use super::{BUILT_IN, Interpolation, Sizes};

    /// The means that the files state in their first line. Percentages of three digits round the shares of
    /// the largest sizes: 0.0005 % of 97119 B is 0.3 % of 187.77 B.
    #[test]
    fn built_in_means_are_those_their_sources_state() {
        for (name, mean) in [
            ("facebook_hadoop", 127_796.6),
            ("facebook_key_value", 187.77),
            ("google_all_rpc", 2_927.354),
            ("google_search_rpc", 440.790_7),
            ("read_rpc_synthetic", 296_000.0),
        ] {
            let found = Sizes::built_in(name).expect(name).mean();
            assert!((found / mean - 1.0).abs() < 0.003, "{name}: {found}, not {mean}");
        }
    }

    #[test]
    fn built_in_texts_are_read_and_read_back() {
        for (name, text) in BUILT_IN {
            let sizes = Sizes::parse(text).unwrap_or_else(|e| panic!("{name}:{e}"));
            assert_eq!(Sizes::parse(&sizes.to_text()).as_ref(), Ok(&sizes), "{name}");
            let draws = 200_000;
            let sum: f64 = (0..draws)
                .map(|i| sizes.quantile((f64::from(i) + 0.5) / f64::from(draws)) as f64)
                .sum();
            let mean = sum / f64::from(draws);
            assert!((mean / sizes.mean() - 1.0).abs() < 0.02, "{name}: {mean} {}", sizes.mean());
        }
    }

    #[test]
    fn quantiles_follow_the_interpolation() {
        let points = "100 0\n100 10\n200 60\n800 100\n";
        let read = |how: &str| Sizes::parse(&format!("# {how}\n{points}")).expect("read");
        let linear = Sizes::parse(points).expect("read");
        assert_eq!(linear.interpolation, Interpolation::Linear);
        assert_eq!([0.05, 0.1, 0.35, 0.8].map(|u| linear.quantile(u)), [100, 100, 150, 500]);
        let step = read("A step function.");
        assert_eq!([0.05, 0.1, 0.35, 0.8].map(|u| step.quantile(u)), [100, 100, 200, 800]);
        // Halfway from 200 to 800 on a logarithmic scale: their geometric mean.
        let log = read("Interpolate linearly in log(size).");
        assert_eq!(log.quantile(0.8), 400);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, message) in [
            ("", "1: there are no points"),
            ("1 2 3", "1: `1 2 3` is not two numbers"),
            ("10 0\nx 100", "2: `x 100` is not two numbers"),
            ("10 50\n5 100", "2: sizes and cumulative percents must not fall"),
            ("10 50\n20 40", "2: sizes and cumulative percents must not fall"),
            ("10 50\n20 90", "2: the last percent is 90; it must be 100"),
            ("-1 100", "1: the size -1 is not"),
            ("1 101", "1: the percent 101 is not"),
            ("0 100", "1: the largest size is 0"),
        ] {
            let error = Sizes::parse(text).expect_err(text);
            assert!(error.starts_with(message), "{error}");
        }
    }
}
