//! Checks that `docs/algorithms.md` lists every algorithm of the table, and that its tables have the metrics of a
//! comparison.

use std::fs;
use std::path::Path;

use apus_algorithms::Registry;

/// Selected metrics that `apus compare` shows in every scenario.
const METRICS: [&str; 8] = [
    "goodput_gbps",
    "busiest_port.utilisation",
    "loss_rate",
    "busiest_port.mean_queue_bytes",
    "busiest_port.max_queue_bytes",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "jain",
];

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/algorithms.md");
    fs::read_to_string(path).expect("the page")
}

#[test]
fn every_algorithm_is_on_the_page() {
    let page = page();
    for info in Registry::BUILT_IN.algorithms() {
        assert!(page.contains(&format!("`{}`", info.name)), "{} is missing", info.name);
    }
}

#[test]
fn every_table_has_algorithms_that_exist_and_the_metrics() {
    let page = page();
    for name in ["incast", "load", "convergence"] {
        let (_, rest) = page.split_once(&format!("<!-- table: {name} -->\n")).expect("its begin");
        let (table, _) = rest.split_once("<!-- end -->").expect("its end");
        let header = table.lines().next().expect("a header");
        let columns: Vec<&str> =
            header.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert!(columns.len() >= 10, "{name}: {columns:?}; tools/algorithms-page writes it");
        for column in columns {
            let algorithm = column.split(':').next().unwrap_or(column);
            let known = Registry::BUILT_IN.algorithms().any(|info| info.name == algorithm);
            assert!(known, "{name}: there is no algorithm {column}");
        }
        let scenario =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/contest/{name}.toml"));
        assert!(scenario.is_file(), "{}", scenario.display());
        for metric in METRICS {
            assert!(table.contains(&format!("| `{metric}`")), "{name}: {metric} is missing");
        }
    }
    for metric in ["settle.fair.time_us", "slowdown.p50", "slowdown.p99"] {
        assert!(page.contains(metric), "{metric} is missing");
    }
}
