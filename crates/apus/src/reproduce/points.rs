//! Pictures of numbers on the axes of a paper's figure: over message sizes, over a load or another setting, and
//! distributions that a summary contains.

use apus_scenario::Scenario;
use apus_scenario::experiment::{Experiment, Shown};
use serde_json::Value;

use super::picture::{Across, Curves};

/// Percentiles of a distribution in a summary, each with the fraction of values up to it.
const PERCENTILES: [(&str, f64); 8] = [
    ("min", 0.0),
    ("p1", 0.01),
    ("p10", 0.1),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("max", 1.0),
];

/// Quantity on the horizontal axis of a picture.
#[derive(Clone, Copy)]
enum Over {
    /// Ranges of sizes, of which this is the number; `{}` in a metric stands for the index of a range, from 0.
    Sizes(usize),
    /// Values of the variants, with their unit.
    Values(&'static str),
    /// Values of the variants, with their unit, on a logarithmic axis.
    Log(&'static str),
    /// Values of the distribution, with their unit.
    Distribution(&'static str),
}

/// A curve: its name, its variants (`*` stands for any text), and its metric.
type Series<'a> = (&'a str, &'a str, &'a str);

/// A picture, or several pictures that differ in one word.
struct Drawing {
    experiment: &'static str,
    /// Title; `@` stands for the word of `each`.
    title: &'static str,
    /// Word of each picture, which replaces `@` in the title and in the variants of curves.
    each: &'static [&'static str],
    over: Over,
    /// `true` if the vertical axis is logarithmic.
    log: bool,
    curves: &'static [Series<'static>],
}

const fn picture(
    experiment: &'static str,
    title: &'static str,
    over: Over,
    curves: &'static [Series<'static>],
) -> Drawing {
    Drawing { experiment, title, each: &[""], over, log: false, curves }
}

const SLOWDOWN: &str = "workload.rpc.size.{}.slowdown.p99";
const MEDIAN: &str = "workload.rpc.size.{}.slowdown.p50";
const DRAIN: &str = "settle.drained.time_us";
const MASTER: &str = "busiest_port.max_queue_bytes";

const DRAWINGS: &[Drawing] = &[
    picture(
        "bolt/fig2",
        "time to drain the queue [us]",
        Over::Values("delay of the notification [us]"),
        &[("Swift", "*us", DRAIN)],
    ),
    Drawing {
        experiment: "bolt/fig14",
        title: "99th percentile of slowdown, @ Gb/s",
        each: &["100", "200", "400"],
        over: Over::Sizes(3),
        log: false,
        curves: &[
            ("Bolt", "bolt-@", SLOWDOWN),
            ("Swift", "swift-@", SLOWDOWN),
            ("HPCC", "hpcc-@", SLOWDOWN),
        ],
    },
    picture(
        "bolt/fig16",
        "99th percentile of slowdown",
        Over::Sizes(9),
        &[("Bolt", "bolt", SLOWDOWN), ("Swift", "swift", SLOWDOWN), ("HPCC", "hpcc", SLOWDOWN)],
    ),
    picture(
        "bolt/fig16",
        "median of slowdown",
        Over::Sizes(9),
        &[("Bolt", "bolt", MEDIAN), ("Swift", "swift", MEDIAN), ("HPCC", "hpcc", MEDIAN)],
    ),
    picture(
        "bolt/fig17",
        "99th percentile of slowdown",
        Over::Sizes(5),
        &[("Bolt", "bolt", SLOWDOWN), ("Swift", "swift", SLOWDOWN), ("HPCC", "hpcc", SLOWDOWN)],
    ),
    picture(
        "swift/fig18",
        "fabric RTT [us]",
        Over::Values("offered load [Gb/s]"),
        &[
            ("99.9th percentile", "load-*", "fabric_rtt_us.p99_9"),
            ("median", "load-*", "fabric_rtt_us.p50"),
        ],
    ),
    picture(
        "swift/fig18",
        "goodput [Gb/s]",
        Over::Values("offered load [Gb/s]"),
        &[("Swift", "load-*", "goodput_gbps")],
    ),
    Drawing {
        experiment: "swift/fig19",
        title: "fraction of acknowledgements, @ kB writes",
        each: &["1", "64"],
        over: Over::Distribution("window [packets]"),
        log: false,
        curves: &[
            ("endpoint window", "@kB", "workload.writes.endpoint_cwnd_packets"),
            ("fabric window", "@kB", "workload.writes.fabric_cwnd_packets"),
        ],
    },
    Drawing {
        experiment: "expresspass/fig1",
        title: "longest data queue [B]",
        each: &[""],
        over: Over::Log("flows"),
        log: true,
        curves: &[
            ("ideal pacing", "ideal-*", MASTER),
            ("DCTCP", "dctcp-*", MASTER),
            ("credits", "credits-*", "credits.max_data_queue_bytes"),
        ],
    },
];

/// Returns the pictures of an experiment.
pub(super) fn of(scenario: &Scenario, experiment: &Experiment) -> Vec<Curves> {
    let own = DRAWINGS.iter().filter(|drawing| drawing.experiment == scenario.name);
    own.flat_map(|drawing| {
        drawing.each.iter().filter_map(move |word| drawing.draw(word, scenario, experiment))
    })
    .collect()
}

impl Drawing {
    /// Returns the picture for a word of `each`.
    fn draw(&self, word: &str, scenario: &Scenario, experiment: &Experiment) -> Option<Curves> {
        let mut curves = Vec::new();
        let mut paper = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (name, variants, metric) in self.curves {
            let variants = variants.replace('@', word);
            let series: Series<'_> = (name, &variants, metric);
            let mut published = Vec::new();
            let points = match self.over {
                Over::Distribution(_) => distribution(&series, scenario, experiment),
                Over::Values(_) | Over::Log(_) => {
                    let (points, numbers) = by_value(&series, experiment);
                    published = numbers;
                    points
                }
                Over::Sizes(count) => {
                    let sizes = by_size(&series, count, experiment);
                    let place = |index: usize| index as f64;
                    let numbers =
                        sizes.iter().filter_map(|(index, one)| Some((place(*index), one.paper?)));
                    published = numbers.collect();
                    for (index, shown) in &sizes {
                        names.resize(names.len().max(index + 1), String::new());
                        names[*index] = size_of(&shown.quantity).to_owned();
                    }
                    let point =
                        |(index, one): &(usize, &Shown)| Some((place(*index), one.measured?));
                    sizes.iter().filter_map(point).collect()
                }
            };
            // Each number of the paper is assigned to a curve by the curve's index.
            if points.len() > 1 {
                paper.extend(published.into_iter().map(|point| (curves.len(), point)));
                curves.push(((*name).to_owned(), points));
            }
        }
        let (title, log) = match self.over {
            Over::Sizes(_) => ("size of the message, up to", false),
            Over::Values(title) | Over::Distribution(title) => (title, false),
            Over::Log(title) => (title, true),
        };
        let across = Across { title, log, names };
        let points = !matches!(self.over, Over::Distribution(_));
        let title = self.title.replace('@', word);
        (!curves.is_empty()).then_some(Curves {
            title,
            curves,
            paper,
            across,
            points,
            log: self.log,
        })
    }
}

/// Returns the largest size in the name of a quantity, which ends with its range: "p99 slowdown of 4kB..23kB".
fn size_of(quantity: &str) -> &str {
    let size = quantity.rsplit_once(" of ").map_or(quantity, |(_, size)| size);
    let size = size.trim_start_matches("messages ").split(" at ").next().unwrap_or(size);
    match size.split_once("..") {
        Some((_, "")) => "larger",
        Some((_, most)) => most,
        None => size,
    }
}

fn is_one_of(variant: Option<&str>, pattern: &str) -> bool {
    let Some(variant) = variant else { return false };
    match pattern.split_once('*') {
        // The part after a dot is a variation of a run, which is not a point of the figure.
        Some((before, after)) => {
            variant.starts_with(before) && variant.ends_with(after) && !variant.contains('.')
        }
        None => variant == pattern,
    }
}

/// Returns all absolute numbers of an experiment with this metric.
fn numbers<'a>(experiment: &'a Experiment, metric: &'a str) -> impl Iterator<Item = &'a Shown> {
    let checks = experiment.checks.iter().map(|check| &check.shown);
    checks.chain(&experiment.shown).filter(move |shown| !shown.relative && shown.metric == metric)
}

type Points = Vec<(f64, f64)>;

/// Returns the points of a curve over the values of its variants, and the paper's numbers.
fn by_value(&(_, variants, metric): &Series<'_>, experiment: &Experiment) -> (Points, Points) {
    let mut points: Points = Vec::new();
    let mut paper: Points = Vec::new();
    for shown in numbers(experiment, metric) {
        let Some(value) = shown.value.filter(|_| is_one_of(shown.variant.as_deref(), variants))
        else {
            continue;
        };
        let add = |points: &mut Points, y: Option<f64>| {
            if let Some(y) = y.filter(|_| points.iter().all(|(x, _)| *x != value)) {
                points.push((value, y));
            }
        };
        add(&mut points, shown.measured);
        add(&mut paper, shown.paper);
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    (points, paper)
}

/// Returns a number for each range of sizes that has one; the number with the paper's value is preferred.
fn by_size<'a>(
    &(_, variant, metric): &Series<'_>,
    count: usize,
    experiment: &'a Experiment,
) -> Vec<(usize, &'a Shown)> {
    let one = |index: usize| {
        let metric = metric.replace("{}", &index.to_string());
        let all = experiment.checks.iter().map(|check| &check.shown).chain(&experiment.shown);
        let own: Vec<&Shown> = all
            .filter(|shown| !shown.relative && shown.metric == metric)
            .filter(|shown| is_one_of(shown.variant.as_deref(), variant))
            .collect();
        let published = own.iter().find(|shown| shown.paper.is_some());
        Some((index, *published.or(own.first())?))
    };
    (0..count).filter_map(one).collect()
}

/// Returns the distribution of a metric in the first seed of a variant.
fn distribution(
    &(_, variant, metric): &Series<'_>,
    scenario: &Scenario,
    experiment: &Experiment,
) -> Points {
    let run = scenario.runs.iter().position(|run| is_one_of(run.variant.as_deref(), variant));
    let summary = run.and_then(|run| experiment.summaries.get(run)?.first());
    let json = summary.and_then(|summary| serde_json::to_value(summary).ok());
    let Some(json) = json else { return Vec::new() };
    let found = metric.split('.').try_fold(&json, |value, key| value.get(key));
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_f64);
    let point = |(key, share): (&str, f64)| Some((number(found?, key)?, share));
    PERCENTILES.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    #[test]
    fn a_variation_of_a_run_is_no_point_of_the_figure() {
        for (variant, pattern, expected) in [
            ("load-98", "load-*", true),
            ("load-98.scaled", "load-*", false),
            ("16us", "*us", true),
            ("receiver", "*us", false),
            ("bolt", "bolt", true),
            ("bolt-100", "bolt", false),
        ] {
            assert_eq!(is_one_of(Some(variant), pattern), expected, "{variant} {pattern}");
        }
        assert!(!is_one_of(None, "*"));
    }

    #[test]
    fn the_name_of_a_quantity_ends_with_its_size() {
        assert_eq!(size_of("p99 slowdown of 4kB..23kB"), "23kB");
        assert_eq!(size_of("p99 slowdown of 1MB.."), "larger");
        assert_eq!(size_of("Bolt's p99 slowdown of messages up to 4 kB at 100 Gb/s"), "up to 4 kB");
    }

    /// Every curve has variants in its experiment.
    #[test]
    fn every_curve_has_its_variants() {
        for drawing in DRAWINGS {
            let scenario = library::open(drawing.experiment, &apus_scenario::Options::default());
            let scenario = scenario.expect("a built-in experiment");
            for (word, (name, variants, _)) in drawing
                .each
                .iter()
                .flat_map(|word| drawing.curves.iter().map(move |one| (word, one)))
            {
                let variants = variants.replace('@', word);
                let own = |run: &apus_scenario::Run| is_one_of(run.variant.as_deref(), &variants);
                assert!(scenario.runs.iter().any(own), "{}: {name} {word}", drawing.experiment);
            }
        }
    }

    /// Only one value of the first curve was measured, so it is not drawn.
    #[test]
    fn the_papers_numbers_stay_with_their_curve_if_another_one_is_left_out() {
        let shown = |variant: &str, value: f64, measured: Option<f64>| Shown {
            name: "rate".to_owned(),
            quantity: "rate".to_owned(),
            metric: "goodput_gbps".to_owned(),
            relative: false,
            kind: None,
            fitted: None,
            reading_error: None,
            deviation_percent: None,
            seeds: Vec::new(),
            variant: Some(variant.to_owned()),
            value: Some(value),
            paper: Some(10.0 * value),
            measured,
            censored: None,
            lower: None,
            upper: None,
            unit: "Gb/s".to_owned(),
            low: None,
            high: None,
            source: String::new(),
            spread: None,
            why: None,
        };
        let numbers = vec![
            shown("a-1", 1.0, Some(1.0)),
            shown("a-2", 2.0, None),
            shown("b-3", 3.0, Some(3.0)),
            shown("b-4", 4.0, Some(4.0)),
        ];
        let experiment = Experiment { checks: Vec::new(), shown: numbers, summaries: Vec::new() };
        let scenario = library::open("bench/incast-100", &apus_scenario::Options::default());
        let curves = &[("a", "a-*", "goodput_gbps"), ("b", "b-*", "goodput_gbps")];
        let drawing = picture("x", "goodput", Over::Values("load"), curves);
        let drawn = drawing.draw("", &scenario.expect("built in"), &experiment);
        let drawn = drawn.expect("a picture");
        assert_eq!(drawn.curves, [("b".to_owned(), vec![(3.0, 3.0), (4.0, 4.0)])]);
        assert_eq!(drawn.paper, [(0, (3.0, 30.0)), (0, (4.0, 40.0))]);
    }
}
