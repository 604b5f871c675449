//! `report.html`: results as interactive charts, in one file that needs no network.
//!
//! The page is a template with its style, its script and a chart library (uPlot, MIT) in line; the
//! data is JSON within the page, reduced to the resolution of a screen.

use std::collections::BTreeMap;

use apus_scenario::experiment::{CheckResult, Shown};
use apus_sim::columns::{FaultRecord, gbps};
use apus_sim::record::{BAND, Cdf, PortRecord, PortSample, Quantity, Recording};
use apus_sim::summary::Summary;
use serde_json::{Value, json};

use crate::text;

const PAGE: &str = include_str!("../assets/report.html");
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
const CHARTS_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const CHARTS_SCRIPT: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const CHARTS_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// Maximum number of points of a line: more than a screen has columns.
const MAX_POINTS: usize = 1_000;
/// Maximum number of values of individual flows over all runs, and likewise of ports.
const MAX_VALUES: usize = 400_000;
/// Maximum number of nodes of a topology that is drawn with all links.
const MAX_LINKS: usize = 20_000;

/// Content of a report.
pub struct Report<'a> {
    /// Heading.
    pub title: &'a str,
    /// Subtitle.
    pub subtitle: &'a str,
    /// Runs; those with a recording have charts.
    pub runs: Vec<&'a Summary>,
    /// Checks of an experiment.
    pub checks: &'a [CheckResult],
    /// Numbers without a band.
    pub shown: &'a [Shown],
}

impl Report<'_> {
    /// Returns the page.
    pub fn html(&self) -> String {
        let recorded = self.runs.iter().filter(|run| run.recording.is_some()).count().max(1);
        let data = json!({
            "title": self.title,
            "subtitle": self.subtitle,
            "checks": self.checks,
            "shown": self.shown,
            "runs": self.runs.iter().map(|summary| run(summary, recorded)).collect::<Vec<_>>(),
        });
        // Only this text could end the script element.
        let data = data.to_string().replace('<', "\\u003c");
        let title = self.title.replace('&', "&amp;").replace('<', "&lt;");
        let licence = CHARTS_LICENCE.replace("*/", "");
        let parts = [
            ("{{title}}", title.as_str()),
            ("{{charts-style}}", CHARTS_STYLE),
            ("{{style}}", STYLE),
            ("{{data}}", &data),
            ("{{licence}}", &licence),
            ("{{charts-script}}", CHARTS_SCRIPT),
            ("{{script}}", SCRIPT),
        ];
        let mut page = String::new();
        let mut rest = PAGE;
        // One part at a time, so that no text of a part is replaced.
        for (place, part) in parts {
            let Some((before, after)) = rest.split_once(place) else { continue };
            page += before;
            page += part;
            rest = after;
        }
        page + rest
    }
}

fn run(summary: &Summary, runs: usize) -> Value {
    let mut value = json!({
        "name": summary.name,
        "seed": summary.seed,
        "text": text::overview(summary),
        "workloads": text::workloads::table(summary),
        "notes": summary.notes,
    });
    if let Some(recording) = &summary.recording {
        value["recording"] = charts(recording, runs);
    }
    value
}

fn charts(recording: &Recording, runs: usize) -> Value {
    let stride = recording.times.len().div_ceil(MAX_POINTS).max(1);
    let points = recording.times.len().div_ceil(stride).max(1);
    let lines = MAX_VALUES / (runs * points * Quantity::ALL.len()).max(1);
    let times: Vec<f64> =
        every(&recording.times, stride).map(|time| time.as_ps() as f64 * 1e-6).collect();
    json!({
        "warmup_us": recording.warmup.as_ps() as f64 * 1e-6,
        "times_us": times,
        "flow_count": recording.flows.len(),
        "quantities": quantities(recording, stride, lines.max(2)),
        "ports": ports(recording, stride, lines.max(2)),
        "cdfs": {
            "fabric RTT": cdf(&recording.fabric_rtt),
            "end-to-end RTT": cdf(&recording.end_to_end_rtt),
            "op latency": cdf(&recording.op_latency),
        },
        "slowdown": slowdown(recording),
        "faults": recording.faults.iter().map(fault).collect::<Vec<_>>(),
        "topology": topology(recording),
    })
}

/// A fault or reroute: its times and its label. Charts show it as a band or a mark.
fn fault(fault: &FaultRecord) -> Value {
    json!({
        "at_us": fault.at_us,
        "until_us": fault.until_us,
        "instant": fault.kind == "reroute",
        "text": text::losses::fault(fault),
    })
}

fn every<T>(values: &[T], stride: usize) -> impl Iterator<Item = &T> {
    values.iter().step_by(stride)
}

/// Returns a number to four digits, more than a screen shows; `null` if there is none.
fn short(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        json!(rounded as i64)
    } else {
        json!(rounded)
    }
}

fn quantities(recording: &Recording, stride: usize, lines: usize) -> Value {
    let flows = recording.sampled_flows.len();
    let shown: Vec<usize> =
        (0..flows.min(lines)).map(|i| i * flows / flows.min(lines).max(1)).collect();
    let mut all = serde_json::Map::new();
    for quantity in Quantity::ALL {
        let index = quantity as usize;
        if recording.bands.iter().all(|bands| bands[index].flows == 0) {
            continue;
        }
        let band = |pick: &dyn Fn(&apus_sim::record::Band) -> f64| -> Vec<Value> {
            every(&recording.bands, stride).map(|bands| short(pick(&bands[index]))).collect()
        };
        let mut bands = serde_json::Map::new();
        bands.insert("mean".into(), band(&|band| band.mean).into());
        for (place, percent) in BAND.iter().enumerate() {
            bands.insert(format!("p{percent}"), band(&|b| b.percentiles[place]).into());
        }
        let line = |&place: &usize| -> Value {
            let flow = recording.sampled_flows[place] as usize;
            let (from, to) = (recording.flows[flow].from, recording.flows[flow].to);
            let values: Vec<Value> = every(&recording.samples, stride)
                .map(|row| short(row[place].get(quantity)))
                .collect();
            json!({ "name": format!("flow {flow}: {from} -> {to}"), "values": values })
        };
        let flows: Vec<Value> = shown.iter().map(line).collect();
        all.insert(quantity.column().to_owned(), json!({ "bands": bands, "flows": flows }));
    }
    all.into()
}

fn ports(recording: &Recording, stride: usize, lines: usize) -> Value {
    let seconds = recording.record.interval.as_secs_f64();
    let shown = recording.sampled_ports.iter().take(lines).enumerate();
    let port = |(place, port): (usize, &apus_units::PortId)| -> Value {
        let values = |pick: &dyn Fn(&PortSample) -> f64| -> Vec<Value> {
            every(&recording.port_samples, stride).map(|row| short(pick(&row[place]))).collect()
        };
        json!({
            "name": recording.port_name(*port),
            "throughput_gbps": values(&|s| gbps(s.sent_bytes, seconds)),
            "queue_kb": values(&|s| s.mean_queue_bytes * 1e-3),
        })
    };
    shown.map(port).collect()
}

fn cdf(points: &Cdf) -> Value {
    let values: Vec<Value> = points.iter().map(|(value, _)| short(*value)).collect();
    let fractions: Vec<f64> = points.iter().map(|(_, f)| (f * 1e6).round() / 1e6).collect();
    json!([values, fractions])
}

/// Slowdown by op size: exact sizes if they are few, else powers of two.
fn slowdown(recording: &Recording) -> Value {
    let measured = || recording.ops.iter().filter(|op| op.submitted >= recording.warmup);
    let open = || recording.open_ops.iter().filter(|op| op.submitted >= recording.warmup);
    let ended = measured().map(|op| op.size);
    let mut sizes: Vec<u64> = ended.chain(open().map(|op| op.size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let few = sizes.len() <= 16;
    let bin = |size: u64| if few { size } else { size.max(1).next_power_of_two() };
    let mut bins: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for op in measured() {
        bins.entry(bin(op.size)).or_default().push(recording.slowdown(op));
    }
    for op in open() {
        // Infinity sorts after all others; `short` omits it.
        bins.entry(bin(op.size)).or_default().push(f64::INFINITY);
    }
    let row = |(size, mut values): (u64, Vec<f64>)| -> Value {
        values.sort_unstable_by(f64::total_cmp);
        let unfinished = values.iter().filter(|value| value.is_infinite()).count();
        let rank = |percent: usize| {
            let place = (values.len() * percent).div_ceil(100).max(1) - 1;
            short(values[place])
        };
        json!({
            "size": size, "ops": values.len(), "unfinished": unfinished, "up_to": !few,
            "p50": rank(50), "p95": rank(95), "p99": rank(99),
        })
    };
    bins.into_iter().map(row).collect()
}

fn topology(recording: &Recording) -> Value {
    let links = recording.ports.len() / 2;
    if links > MAX_LINKS {
        return json!({ "left_out": format!("{links} links are too many to draw; see ports.csv") });
    }
    let seconds = recording.measured_seconds();
    let nodes: Vec<Value> =
        recording.nodes.iter().map(|node| json!([node.name, node.tier])).collect();
    let faults_of = |pair: &[PortRecord]| -> Vec<String> {
        let ours = |fault: &&FaultRecord| pair.iter().any(|port| fault.port == Some(port.port));
        recording.faults.iter().filter(ours).map(text::losses::fault).collect()
    };
    let links: Vec<Value> = recording
        .ports
        .chunks_exact(2)
        .map(|pair| {
            let use_of = |port: &PortRecord| {
                let gbps = gbps(port.sent_bytes, seconds);
                (gbps * 1e3 / port.rate.as_gbps_f64()).round() / 1e3
            };
            let (ab, ba) = (&pair[0], &pair[1]);
            json!([
                ab.from,
                ab.to,
                use_of(ab),
                use_of(ba),
                ab.rate.as_gbps_f64(),
                ab.drops + ba.drops,
                faults_of(pair)
            ])
        })
        .collect();
    json!({ "nodes": nodes, "links": links })
}
