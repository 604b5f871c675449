//! `apus calibrate`: errors, and a longer check with two processes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::server::serve;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("apus-calibrate-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a folder");
    path
}

fn apus(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apus")).args(arguments).output().expect("run")
}

const PING: &str =
    "{\"size\": 64, \"p50_us\": 40.0, \"fabric_p50_us\": 20.0, \"fabric_p99_us\": 22.0}";
const PERF: &str =
    "{\"op\": \"write\", \"size\": 65536, \"flows\": 1, \"outstanding\": 4, \"goodput_gbps\": 8.0}";

#[test]
fn wrong_measurements_are_errors_that_name_the_remedy() {
    let dir = folder("errors");
    let refused = |ping: &str, perf: &str, rate: &str| {
        let (ping_file, perf_file) = (dir.join("ping.json"), dir.join("perf.json"));
        fs::write(&ping_file, ping).expect("a file");
        fs::write(&perf_file, perf).expect("a file");
        let [ping, perf] = [&ping_file, &perf_file].map(|path| path.to_str().expect("a path"));
        let done = apus(&["calibrate", "--ping", ping, "--perf", perf, "--rate", rate]);
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let error = refused("{}", PERF, "25Gbps");
    assert!(error.contains("ping.json") && error.contains("missing field `size`"), "{error}");
    let error = refused(PING, &PERF.replace("write", "read"), "25Gbps");
    assert!(error.contains("the perf measured reads; give a measurement of writes"), "{error}");
    let error = refused(PING, PERF, "10Mbps");
    assert!(error.contains("give the rate of the links with --rate"), "{error}");
    let error = refused(PING, PERF, "10bps");
    assert!(error.contains("must be at least 1Mbps"), "{error}");
    fs::remove_dir_all(dir).expect("the folder");
}

/// The longer check of CONTRIBUTING.md, on loopback: the scenario gives the numbers that were measured.
#[test]
fn the_scenario_of_two_processes_gives_their_numbers() {
    if std::env::var_os("APUS_CALIBRATE").is_none() {
        return;
    }
    let dir = folder("loopback");
    let file = |name: &str| dir.join(name).to_str().expect("a path").to_owned();
    let server = serve(&["--insecure"]);
    let measure = |name: &str, arguments: &[&str]| {
        let done = apus(arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::write(file(name), done.stdout).expect("a file");
    };
    let address = server.address.as_str();
    measure("ping.json", &["ping", address, "--insecure", "--count", "20000", "--json"]);
    measure(
        "perf.json",
        &["perf", address, "--insecure", "--size", "65536", "--duration", "3s", "--json"],
    );
    let (ping, perf, out) = (file("ping.json"), file("perf.json"), file("cluster.toml"));
    let made = apus(&[
        "calibrate",
        "--ping",
        &ping,
        "--perf",
        &perf,
        "--rate",
        "100Gbps",
        "--scenario",
        &out,
    ]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "{said}{}", String::from_utf8_lossy(&made.stderr));
    // Shown with --nocapture.
    let scenario = fs::read_to_string(&out).expect("the scenario");
    writeln!(std::io::stdout(), "{said}{scenario}").expect("stdout");
    for line in said.lines() {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        let (measured, simulated) =
            (numbers.next().expect("measured"), numbers.next().expect("simulated"));
        assert!((simulated / measured - 1.0).abs() < 0.1, "{line}");
    }
    let valid = apus(&["validate", &out]);
    assert!(valid.status.success(), "{}", String::from_utf8_lossy(&valid.stderr));
    fs::remove_dir_all(dir).expect("the folder");
}
