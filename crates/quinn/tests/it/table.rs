//! Swift compared with quinn's own controllers: the tables of docs/quinn.md.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use apus_quinn::SwiftConfig;
use quinn_proto::TransportConfig;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

use crate::network::{Application, Link, Network, OVERHEAD, Traffic};

/// UDP payload of a full datagram: the upper bound of quinn's MTU discovery.
const MTU: u16 = 1452;
const FLOWS: u32 = 4;
const SEEDS: u64 = 5;

struct Experiment {
    name: &'static str,
    link: Link,
    base_target: &'static str,
    warm_up: Duration,
    measured: Duration,
}

const EXPERIMENTS: [Experiment; 2] = [
    Experiment {
        name: "10 Gb/s, 100 us, buffer 250 kB (two bandwidth-delay products), `base_target` 150 us",
        link: Link {
            bits_per_second: 10_000_000_000,
            delay: Duration::from_micros(50),
            buffer: 250_000,
        },
        base_target: "150us",
        warm_up: Duration::from_millis(100),
        measured: Duration::from_millis(100),
    },
    Experiment {
        name: "100 Mb/s, 20 ms, buffer 250 kB (one bandwidth-delay product), `base_target` 25 ms",
        link: Link {
            bits_per_second: 100_000_000,
            delay: Duration::from_millis(10),
            buffer: 250_000,
        },
        base_target: "25ms",
        warm_up: Duration::from_secs(10),
        measured: Duration::from_secs(10),
    },
];

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// What one run showed: goodput in Mb/s, RTT in microseconds (median, 99th percentile), loss in per cent,
/// Jain's index of the flows' goodput.
type Row = [f64; 5];

fn run(experiment: &Experiment, controller: &Factory, seed: u64) -> Row {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::clone(controller));
    transport.initial_mtu(MTU).mtu_discovery_config(None);
    let link = experiment.link;
    let mut network = Network::new(link, transport);
    for flow in 0..FLOWS {
        // Starts are spread over ten RTTs: a step of a linear congruential generator (Knuth).
        let drawn = (seed * 64 + u64::from(flow)).wrapping_mul(6_364_136_223_846_793_005);
        let start = (link.delay * 20).mul_f64((drawn >> 32) as f64 / (1u64 << 32) as f64);
        network.add(start, Application::Bulk, seed as u8);
    }
    network.run(experiment.warm_up);
    let before: Vec<_> = network.flows.iter().map(|flow| flow.received).collect();
    network.traffic = Traffic::default();
    network.run(experiment.warm_up + experiment.measured);
    let goodputs = network.flows.iter().zip(before).map(|(flow, before)| {
        (flow.received - before) as f64 * 8e-6 / experiment.measured.as_secs_f64()
    });
    let goodputs: Vec<f64> = goodputs.collect();
    let total: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    let Traffic { sent, dropped, mut waits } = network.traffic;
    waits.sort_unstable();
    let unloaded = 2 * link.delay.as_nanos() as u64 + link.serialisation(u64::from(MTU) + OVERHEAD);
    let rtt = |percent| (unloaded + waits[(waits.len() - 1) * percent / 100]) as f64 * 1e-3;
    let loss = 100.0 * dropped as f64 / sent as f64;
    [total, rtt(50), rtt(99), loss, total * total / (f64::from(FLOWS) * squares)]
}

fn median(rows: &[Row], column: usize) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn tables() -> String {
    let mut text = String::new();
    for experiment in &EXPERIMENTS {
        let swift = SwiftConfig::new(&[("base_target", experiment.base_target)]).expect("valid");
        let controllers: [(&str, Factory); 4] = [
            ("Swift (`apus-quinn`)", Arc::new(swift)),
            ("CUBIC (quinn's default)", Arc::new(CubicConfig::default())),
            ("NewReno", Arc::new(NewRenoConfig::default())),
            ("BBR", Arc::new(BbrConfig::default())),
        ];
        let columns = "goodput, Mb/s | RTT p50, us | RTT p99, us | loss | Jain's index";
        writeln!(text, "| {} | {columns} |\n|---|---|---|---|---|---|", experiment.name)
            .expect("a string");
        for (name, controller) in &controllers {
            let rows: Vec<Row> =
                (1..=SEEDS).map(|seed| run(experiment, controller, seed)).collect();
            let [goodput, p50, p99, loss, jain] =
                [0, 1, 2, 3, 4].map(|column| median(&rows, column));
            writeln!(
                text,
                "| {name} | {goodput:.0} | {p50:.0} | {p99:.0} | {loss:.2} % | {jain:.3} |"
            )
            .expect("a string");
        }
        text.push('\n');
    }
    text
}

#[test]
#[ignore = "a minute, in release mode; rewrites the tables of docs/quinn.md"]
fn write_tables() {
    const BEGIN: &str = "<!-- tables: begin -->\n";
    const END: &str = "<!-- tables: end -->";
    let tables = tables();
    println!("{tables}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quinn.md");
    let page = fs::read_to_string(&path).expect("docs/quinn.md");
    let (head, rest) = page.split_once(BEGIN).expect("the begin of the tables");
    let (_, tail) = rest.split_once(END).expect("the end of the tables");
    let page = format!("{head}{BEGIN}{tables}{END}{tail}");
    fs::write(&path, page).expect("a writable page");
}
