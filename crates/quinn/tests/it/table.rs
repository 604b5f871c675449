//! Swift compared with quinn's own controllers: the tables of docs/quinn.md.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, thread};

use apus_quinn::SwiftConfig;
use apus_units::random::SplitMix64;
use quinn_proto::TransportConfig;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

use crate::network::{Application, Link, Network, OVERHEAD, Traffic};

/// UDP payload of a full datagram: the upper bound of quinn's MTU discovery.
const MTU: u16 = 1452;
const FLOWS: usize = 4;
const SEEDS: u64 = 5;

#[derive(Clone, Copy)]
struct Experiment {
    name: &'static str,
    link: Link,
    base_target: &'static str,
    warm_up: Duration,
    measured: Duration,
}

const EXPERIMENTS: [Experiment; 2] = [
    Experiment {
        name: "2.5 Gb/s, 400 us, buffer 250 kB (two bandwidth-delay products), `base_target` 600 us",
        link: Link {
            bits_per_second: 2_500_000_000,
            delay: Duration::from_micros(200),
            buffer: 250_000,
        },
        base_target: "600us",
        // quinn's BBR begins with 200 ms in which it probes for the RTT.
        warm_up: Duration::from_millis(250),
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
        warm_up: Duration::from_secs(5),
        measured: Duration::from_secs(5),
    },
];

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

fn controllers(base_target: &str) -> [(&'static str, Factory); 4] {
    let swift = SwiftConfig::new(&[("base_target", base_target)]).expect("valid");
    [
        ("Swift (`apus-quinn`)", Arc::new(swift)),
        ("CUBIC (quinn's default)", Arc::new(CubicConfig::default())),
        ("NewReno", Arc::new(NewRenoConfig::default())),
        ("BBR", Arc::new(BbrConfig::default())),
    ]
}

/// Returns the times at which the flows of a run start: within ten RTTs.
fn starts(link: &Link, random: &mut SplitMix64) -> [Duration; FLOWS] {
    [(); FLOWS].map(|()| (link.delay * 20).mul_f64(random.uniform()))
}

/// A network with the flows of a run.
fn network(experiment: &Experiment, controller: &Factory, seed: u64) -> Network {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::clone(controller));
    transport.initial_mtu(MTU).mtu_discovery_config(None);
    let mut network = Network::new(experiment.link, transport);
    let random = &mut SplitMix64::new(seed);
    for start in starts(&experiment.link, random) {
        network.add(start, Application::Bulk, random);
    }
    network
}

/// Returns the bytes that each flow received in the measured phase, and the data packets of all flows.
fn run(experiment: &Experiment, controller: &Factory, seed: u64) -> ([u64; FLOWS], Traffic) {
    let mut network = network(experiment, controller, seed);
    let received = |network: &Network| [0, 1, 2, 3].map(|flow: usize| network.flows[flow].received);
    network.run(experiment.warm_up);
    let before = received(&network);
    network.traffic = Traffic::default();
    network.run(experiment.warm_up + experiment.measured);
    let mut bytes = received(&network);
    for (bytes, before) in bytes.iter_mut().zip(before) {
        *bytes -= before;
    }
    (bytes, network.traffic)
}

/// Goodput in Mb/s, RTT in microseconds (median, 99th percentile), loss in per cent, Jain's index of the flows'
/// goodput.
type Row = [f64; 5];

fn row(experiment: &Experiment, controller: &Factory, seed: u64) -> Row {
    let (received, traffic) = run(experiment, controller, seed);
    let Experiment { link, measured, .. } = experiment;
    let goodputs = received.map(|bytes| bytes as f64 * 8e-6 / measured.as_secs_f64());
    let total: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    let Traffic { sent, dropped, mut waits } = traffic;
    waits.sort_unstable();
    let unloaded = 2 * link.delay.as_nanos() as u64 + link.serialisation(u64::from(MTU) + OVERHEAD);
    let rtt = |percent| (unloaded + waits[(waits.len() - 1) * percent / 100]) as f64 * 1e-3;
    let loss = 100.0 * dropped as f64 / sent as f64;
    [total, rtt(50), rtt(99), loss, total * total / (FLOWS as f64 * squares)]
}

fn median(rows: &[Row], column: usize) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One row of a table: the medians over all seeds.
fn medians(experiment: &Experiment, name: &str, controller: &Factory) -> String {
    let rows: Vec<Row> = (1..=SEEDS).map(|seed| row(experiment, controller, seed)).collect();
    let [goodput, p50, p99, loss, jain] = [0, 1, 2, 3, 4].map(|column| median(&rows, column));
    format!("| {name} | {goodput:.0} | {p50:.0} | {p99:.0} | {loss:.2} % | {jain:.3} |")
}

fn tables() -> String {
    // One thread per row.
    let tables = EXPERIMENTS.each_ref().map(|experiment| {
        let rows = controllers(experiment.base_target).map(|(name, controller)| {
            thread::spawn(move || medians(experiment, name, &controller))
        });
        (experiment.name, rows)
    });
    let mut text = String::new();
    for (name, rows) in tables {
        let columns = "goodput, Mb/s | RTT p50, us | RTT p99, us | loss | Jain's index";
        writeln!(text, "| {name} | {columns} |\n|---|---|---|---|---|---|").expect("a string");
        for row in rows {
            writeln!(text, "{}", row.join().expect("a row")).expect("a string");
        }
        text.push('\n');
    }
    text
}

/// With `APUS_WRITE_DOCS=1` the test writes the tables again.
#[test]
fn the_tables_of_the_page_are_those_of_the_code() {
    const BEGIN: &str = "<!-- tables: begin -->\n";
    const END: &str = "<!-- tables: end -->";
    let tables = tables();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quinn.md");
    let page = fs::read_to_string(&path).expect("docs/quinn.md");
    let (head, rest) = page.split_once(BEGIN).expect("the begin of the tables");
    let (written, tail) = rest.split_once(END).expect("the end of the tables");
    if env::var_os("APUS_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{tables}{END}{tail}")).expect("a writable page");
        return;
    }
    assert!(
        written == tables,
        "docs/quinn.md differs from these tables; `APUS_WRITE_DOCS=1 cargo test --manifest-path \
         crates/quinn/Cargo.toml --test it table` writes them:\n{tables}"
    );
}

/// quinn's BBR draws the phase of its pacing gain from the operating system, but quinn does not pace by it.
#[test]
fn runs_of_all_controllers_are_reproducible() {
    let seconds = Duration::from_secs;
    // BBR leaves its first phase after 200 ms.
    let experiment = Experiment { warm_up: seconds(1), measured: seconds(1), ..EXPERIMENTS[1] };
    for (name, controller) in controllers(experiment.base_target) {
        let (received, traffic) = run(&experiment, &controller, 1);
        let (received_again, traffic_again) = run(&experiment, &controller, 1);
        assert_eq!(received, received_again, "{name}");
        assert!(traffic == traffic_again, "{name}");
    }
}

/// If the starts of two seeds differed only by a common shift or a rotation, both would be the same experiment.
#[test]
fn the_gaps_between_starts_differ_from_seed_to_seed() {
    let link = &EXPERIMENTS[1].link;
    let span = 20.0 * link.delay.as_secs_f64();
    let gaps = |seed| {
        let mut starts = starts(link, &mut SplitMix64::new(seed)).map(|start| start.as_secs_f64());
        starts.sort_by(f64::total_cmp);
        let first = starts[0];
        let mut next = starts;
        next.rotate_left(1);
        next[FLOWS - 1] = first + span;
        let mut gaps = [0, 1, 2, 3].map(|flow: usize| (next[flow] - starts[flow]) / span);
        gaps.sort_by(f64::total_cmp);
        gaps
    };
    for a in 1..=SEEDS {
        for b in 1..a {
            let differences = gaps(a).into_iter().zip(gaps(b)).map(|(a, b)| (a - b).abs());
            let largest = differences.fold(0.0, f64::max);
            // A tenth of the span is one RTT, so a fifth of an RTT.
            assert!(largest > 0.02, "seeds {a} and {b}: {largest}");
        }
    }
}

/// Shows why BBR loses half of its packets: to share the path without loss, four flows need room for more than
/// eight bandwidth-delay products.
#[test]
fn each_of_four_bbr_flows_has_a_window_of_two_bandwidth_delay_products_of_the_link() {
    let link = Link { buffer: 4_000_000, ..EXPERIMENTS[1].link };
    let experiment = Experiment { link, ..EXPERIMENTS[1] };
    let [.., (_, bbr)] = controllers(experiment.base_target);
    let mut network = network(&experiment, &bbr, 1);
    network.run(Duration::from_secs(3));
    network.traffic = Traffic::default();
    network.run(Duration::from_secs(5));
    assert_eq!(network.traffic.dropped, 0);
    // The window counts UDP payload.
    let share = f64::from(MTU) / (f64::from(MTU) + OVERHEAD as f64);
    let bytes_per_second = link.bits_per_second as f64 / 8.0 * share;
    let rtt = 2.0 * link.delay.as_secs_f64();
    let windows = [0, 1, 2, 3].map(|flow: usize| {
        let window = network.controller(flow).expect("a started flow").window();
        window as f64 / bytes_per_second / rtt
    });
    assert!(windows.iter().all(|window| *window > 2.0), "{windows:?}");
    // Packets that are not in propagation are in the queue.
    let waits = &network.traffic.waits;
    let wait = waits.iter().sum::<u64>() as f64 * 1e-9 / waits.len() as f64;
    let expected = windows.iter().sum::<f64>() * rtt - rtt;
    assert!((wait / expected - 1.0).abs() < 0.02, "{wait} s, not {expected} s: {windows:?}");
}
