//! Curves of a figure on the paper's axes: a queue or a throughput over time, rates of flows, distributions. The first
//! seed of a run is recorded to draw them.

use apus_scenario::Scenario;
use apus_scenario::experiment::{CheckResult, Experiment};
use apus_sim::columns::gbps;
use apus_sim::record::{Quantity, Recording};

use super::picture::{Across, Curves};
use super::points;
use crate::svg::COLOURS;

/// Quantities that a figure of a paper shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axes {
    /// Queue of the busiest port over time.
    Queue,
    /// Throughput of the busiest port over time.
    Throughput,
    /// Goodput of each flow over time.
    Rates,
    /// Distribution of the fabric RTT.
    RttCdf,
}

/// A picture of curves: the axes, one curve per variant, and the shown part of the horizontal axis.
struct Drawing {
    experiment: &'static str,
    axes: Axes,
    variants: &'static [&'static str],
    /// Ends of the horizontal axis in microseconds; `None` for the whole axis.
    range_us: Option<(f64, f64)>,
}

const fn over(
    experiment: &'static str,
    axes: Axes,
    variants: &'static [&'static str],
    from: f64,
    to: f64,
) -> Drawing {
    Drawing { experiment, axes, variants, range_us: Some((from, to)) }
}

const fn whole(experiment: &'static str, axes: Axes, variants: &'static [&'static str]) -> Drawing {
    Drawing { experiment, axes, variants, range_us: None }
}

/// Figures of papers with such axes.
const DRAWINGS: &[Drawing] = &[
    whole("swift/fig20", Axes::Rates, &[]),
    whole("swift/fig22", Axes::Rates, &["with-tbs"]),
    whole("swift/fig22", Axes::Rates, &["without-tbs"]),
    over("bolt/fig2", Axes::Queue, &["0us", "4us", "16us"], 190.0, 290.0),
    over("bolt/fig2", Axes::Queue, &["ingress", "egress", "receiver"], 190.0, 290.0),
    whole("bolt/fig4", Axes::Throughput, &["swift"]),
    whole("bolt/fig6", Axes::Queue, &["hpcc", "swift"]),
    whole("bolt/fig6", Axes::Throughput, &["hpcc", "swift"]),
    whole("bolt/fig10", Axes::Queue, &["bolt", "hpcc", "swift", "ideal"]),
    whole("bolt/fig10", Axes::Throughput, &["bolt", "hpcc", "swift", "ideal"]),
    whole("bolt/fig11", Axes::Throughput, &["bolt", "hpcc", "swift"]),
    whole("bolt/fig12", Axes::Throughput, &["sm", "no-sm"]),
    whole("bolt/fig12", Axes::Queue, &["sm", "no-sm"]),
    whole("bolt/fig13", Axes::RttCdf, &["8", "16", "32", "63"]),
    whole("bolt/fig15", Axes::Rates, &[]),
    whole("bolt/fig18", Axes::RttCdf, &["bolt-80", "bolt-100", "swift-100"]),
    whole("expresspass/fig2", Axes::Rates, &["naive"]),
    whole("expresspass/fig2", Axes::Rates, &["dctcp"]),
    whole("expresspass/fig2", Axes::Rates, &["cubic"]),
    over("expresspass/convergence", Axes::Rates, &["code-10G"], 4_000.0, 8_000.0),
    over("expresspass/convergence", Axes::Rates, &["dctcp-10G"], 0.0, 60_000.0),
];

/// Enables recording of the first seed for the runs that the figure of an experiment shows as curves.
pub(super) fn record(scenario: &mut Scenario) {
    for drawing in DRAWINGS.iter().filter(|drawing| drawing.experiment == scenario.name) {
        for run in &mut scenario.runs {
            if drawing.shows(run.variant.as_deref()) {
                run.setup = run.setup.clone().recorded(true);
            }
        }
    }
}

/// Returns the curves of an experiment.
pub(super) fn of(scenario: &Scenario, experiment: &Experiment) -> Vec<Curves> {
    let own = DRAWINGS.iter().filter(|drawing| drawing.experiment == scenario.name);
    let recorded = own.filter_map(|drawing| drawing.curves(scenario, experiment));
    recorded.chain(points::of(scenario, experiment)).collect()
}

impl Drawing {
    fn shows(&self, variant: Option<&str>) -> bool {
        self.variants.is_empty() || variant.is_some_and(|name| self.variants.contains(&name))
    }

    fn curves(&self, scenario: &Scenario, experiment: &Experiment) -> Option<Curves> {
        let mut curves = Vec::new();
        let mut paper = Vec::new();
        for (run, summaries) in scenario.runs.iter().zip(&experiment.summaries) {
            let variant = run.variant.as_deref();
            let recording = summaries.first().and_then(|summary| summary.recording.as_deref());
            let Some(recording) = recording.filter(|_| self.shows(variant)) else { continue };
            let mut own = self.axes.curves(variant.unwrap_or_default(), recording);
            if let Some((from, to)) = self.range_us {
                for (_, points) in &mut own {
                    points.retain(|(x, _)| (from..=to).contains(x));
                }
            }
            own.retain(|(_, points)| points.len() > 1);
            // Each number of the paper is assigned to a curve by the curve's index.
            if self.axes == Axes::RttCdf && !own.is_empty() {
                let numbers = experiment.checks.iter().filter_map(|c| rtt_percentile(c, variant));
                paper.extend(numbers.map(|point| (curves.len(), point)));
            }
            curves.extend(own);
        }
        let of = match self.variants {
            [one] => format!(", {one}"),
            _ => String::new(),
        };
        let title = format!("{}{of}", self.axes.title());
        let across = Across { title: self.axes.across(), ..Across::default() };
        (!curves.is_empty()).then_some(Curves {
            title,
            curves,
            paper,
            across,
            points: false,
            log: false,
        })
    }
}

impl Axes {
    fn title(self) -> &'static str {
        match self {
            Self::Queue => "queue of the busiest port [kB]",
            Self::Throughput => "throughput of the busiest port [Gb/s]",
            Self::Rates => "goodput of each flow [Gb/s]",
            Self::RttCdf => "fraction of packets with at most this fabric RTT",
        }
    }

    fn across(self) -> &'static str {
        match self {
            Self::RttCdf => "fabric RTT [us]",
            _ => "time [us]",
        }
    }

    fn curves(self, name: &str, recording: &Recording) -> Vec<(String, Vec<(f64, f64)>)> {
        let seconds = recording.record.interval.as_secs_f64();
        let times = || recording.times.iter().map(|time| time.as_ps() as f64 * 1e-6);
        let port = |value: &dyn Fn(&apus_sim::record::PortSample) -> f64| {
            let values = recording.port_samples.iter().filter_map(|row| row.first().map(value));
            vec![(name.to_owned(), times().zip(values).collect())]
        };
        match self {
            Self::Queue => port(&|sample| sample.mean_queue_bytes * 1e-3),
            Self::Throughput => port(&|sample| gbps(sample.sent_bytes, seconds)),
            Self::Rates => {
                let flows = 0..recording.sampled_flows.len().min(COLOURS.len());
                let one = |flow: usize| {
                    let rates =
                        recording.samples.iter().map(|row| row[flow].get(Quantity::Goodput));
                    let points = times().zip(rates).filter(|(_, rate)| rate.is_finite());
                    (format!("flow {flow}"), points.collect())
                };
                flows.map(one).collect()
            }
            Self::RttCdf => vec![(name.to_owned(), recording.fabric_rtt.clone())],
        }
    }
}

/// Returns the paper's number of a check of a fabric RTT percentile: the RTT and the fraction.
fn rtt_percentile(check: &CheckResult, variant: Option<&str>) -> Option<(f64, f64)> {
    let shown = &check.shown;
    let percent = shown.metric.strip_prefix("fabric_rtt_us.p")?.replace('_', ".");
    let own = shown.variant.as_deref() == variant && !shown.relative;
    let fraction = percent.parse::<f64>().ok()? / 100.0;
    shown.paper.filter(|_| own).map(|paper| (paper, fraction))
}
