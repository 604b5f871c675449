//! The example's program, run as a user runs it: its algorithm works with every command of `apus`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/incast.toml");

/// Two senders and packets of 4096 B of payload with at most 200 B of headers. Below the target each sender
/// adds one packet per round trip; above it, no sender adds any. A sender learns of a crossing one round trip
/// late, so the queue exceeds the target by at most two packets of each sender. The decrease is 0.8 times the
/// relative excess, at most 0.8 * 16 / 116 of a window of target, excess and bandwidth-delay product (100 Gb/s
/// times 5 us = 63 kB): 20 kB, and back to no less than 4 kB below the target.
const BAND: f64 = 4.0 * 4296.0;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-algorithm"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    program(arguments).output().expect("process")
}

#[track_caller]
fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn json(output: Output) -> Value {
    serde_json::from_str(&stdout(output)).expect("JSON")
}

#[track_caller]
fn assert_near(queue: f64, target: f64) {
    assert!((queue - target).abs() < BAND, "a mean queue of {queue} B for a target of {target} B");
}

fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("own-algorithm-{test}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("folder");
    path
}

#[test]
fn list_and_explain_show_the_algorithm_beside_the_others() {
    let list = stdout(run(&["list", "algorithms"]));
    for name in ["peak", "swift", "bolt"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name} is not in\n{list}");
    }
    let explained = stdout(run(&["explain", "peak"]));
    for part in ["target (size", "beta (number; above 0 and below 1)", "100kB", "as Swift's"] {
        assert!(explained.contains(part), "{part} is not in\n{explained}");
    }
}

#[test]
fn run_keeps_the_queue_at_the_target_and_follows_the_parameter() {
    for (target, bytes) in [("100kB", 100e3), ("200kB", 200e3)] {
        let set = format!("algorithm.target={target}");
        let results = json(run(&["run", SCENARIO, "--set", &set, "--json"]));
        let port = &results["runs"][0]["busiest_port"];
        assert_near(port["mean_queue_bytes"].as_f64().expect("a queue"), bytes);
        // The queue is never empty.
        assert!(port["utilisation"].as_f64().expect("a share") > 0.99, "{port}");
        assert_eq!(results["runs"][0]["loss_rate"].as_f64(), Some(0.0));
    }
}

#[test]
fn compare_runs_it_beside_swift() {
    let algorithms = "peak,swift";
    let compared =
        json(run(&["compare", SCENARIO, "--algorithms", algorithms, "--seeds", "1", "--json"]));
    let [own, swift] = compared["algorithms"].as_array().expect("a list").as_slice() else {
        panic!("not two algorithms: {compared:#}")
    };
    let queue = |one: &Value| {
        let median = &one["metrics"]["busiest_port.mean_queue_bytes"]["median"];
        median.as_f64().expect("a queue")
    };
    assert_near(queue(own), 100e3);
    // Swift's target of at least 25 us leaves a queue of about 20 us at 100 Gb/s.
    assert!(queue(swift) > 200e3, "{compared:#}");
}

#[test]
fn sweep_varies_its_parameter() {
    let folder = folder("sweep");
    let out = folder.join("out");
    let metric = "busiest_port.mean_queue_bytes";
    let mut command = program(&["sweep", SCENARIO, "--metric", metric, "--out"]);
    command.arg(&out).args(["--vary", "algorithm.target=50kB,100kB,200kB"]);
    stdout(command.output().expect("process"));
    let table = fs::read_to_string(out.join("sweep.csv")).expect("a table");
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().expect("a header");
    let column = header.iter().position(|name| *name == metric).expect("a column");
    let queues: Vec<f64> = rows.map(|row| row[column].parse().expect("a queue")).collect();
    assert_eq!(queues.len(), 3, "{table}");
    for (queue, target) in queues.into_iter().zip([50e3, 100e3, 200e3]) {
        assert_near(queue, target);
    }
}

#[test]
fn replay_shows_its_reactions() {
    let log = folder("replay").join("log.csv");
    let header = "time_ps,event,rtt_ps,fabric_delay_ps,endpoint_delay_ps,hops,acked\n";
    let events = "0,ack,20000000000,20000000000,0,0,1\n\
                  1000,loss,,,,,\n\
                  2000,loss,,,,,\n\
                  3000,timeout,,,,,\n";
    fs::write(&log, format!("{header}{events}")).expect("log");
    let text = stdout(program(&["replay", "peak", "--trace"]).arg(&log).output().expect("process"));
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let cells = |index: usize| -> Vec<f64> {
        rows.iter().map(|row| row[index].parse().expect("a number")).collect()
    };
    // 10 + 1/10; half of it; the second loss is of the same round trip; a timeout.
    let expected = [10.1, 5.05, 5.05, 1.0];
    for (window, expected) in cells(5).into_iter().zip(expected) {
        assert!((window - expected).abs() < 1e-9, "{window} is not {expected}");
    }
    // Twice the RTT of 20 ms.
    assert_eq!(cells(7), [40e9; 4]);
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    for (set, words) in [
        ("algorithm.beta=1.5", "`beta` must be above 0 and below 1, but it is 1.5"),
        ("algorithm.target=0B", "`target` must be above 0"),
        ("algorithm.target=soon", "target"),
        ("algorithm.tarjet=1kB", "did you mean `target`?"),
    ] {
        let output = run(&["run", SCENARIO, "--set", set]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{set}: {message}");
        assert!(message.contains(words), "{set}: {message}");
    }
    let output =
        run(&["ping", "127.0.0.1", "--insecure", "--algorithm", "peak", "--param", "beta=2"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("`beta` must be above 0 and below 1"), "{message}");
}

/// A command that runs until the end of the test, and the address on which it listens.
struct Running(Child, String);

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = program(arguments).stdout(Stdio::piped()).spawn().expect("process");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout"))
            .read_line(&mut line)
            .expect("a line");
        let words = line.strip_prefix("listening on ").expect(&line);
        let address = words.split_whitespace().next().expect(&line).to_owned();
        Self(child, address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The windows of a `perf` through a `switch`, with this target.
fn windows(test: &str, target: &str) -> Vec<f64> {
    let server = ["serve", "--listen", "127.0.0.1:0", "--insecure", "--algorithm", "peak"];
    let server = Running::start(&server);
    let switch = ["switch", &server.1, "--bind", "127.0.0.1:0", "--rate", "100Mbps"];
    let switch =
        Running::start(&[&switch[..], &["--buffer", "4MB", "--algorithm", "peak"]].concat());
    let out = folder(test).join("out");
    let mut perf =
        program(&["perf", &switch.1, "--insecure", "--algorithm", "peak", "--param", target]);
    perf.args(["--size", "20000", "--outstanding", "200", "--mtu", "1280"]);
    perf.args(["--duration", "2s", "--interval", "10ms", "--json", "--out"]);
    let results = json(perf.arg(&out).output().expect("process"));
    assert!(results["goodput_gbps"].as_f64().expect("a rate") > 0.0, "{results}");
    let table = fs::read_to_string(out.join("samples.csv")).expect("samples");
    let mut rows = table.lines();
    let header = rows.next().expect("a header");
    let column = header.split(',').position(|name| name == "cwnd_packets").expect("a column");
    let windows = rows.map(|row| row.split(',').nth(column).expect("a cell").parse());
    let windows: Vec<f64> = windows.map(|window| window.expect("a window")).collect();
    assert!(!windows.is_empty(), "{table}");
    windows
}

/// Repeats `perf` until its windows meet the condition, for at most a minute: on a busy machine a run may have
/// few round trips, or timeouts.
fn windows_until(test: &str, target: &str, condition: fn(&[f64]) -> bool) -> Vec<f64> {
    let start = Instant::now();
    loop {
        let windows = windows(test, target);
        if condition(&windows) || start.elapsed() > Duration::from_secs(60) {
            return windows;
        }
    }
}

/// With a target of one byte every packet that finds a queue is congested, so the window stays below its
/// initial 10 packets. Without the field, which the switch half writes, the window would grow with every
/// acknowledgement.
#[test]
fn over_udp_the_sender_obeys_the_field_that_the_switch_half_writes() {
    let obeys = |windows: &[f64]| windows.iter().all(|window| *window <= 10.0);
    let windows = windows_until("small-target", "target=1B", obeys);
    assert!(obeys(&windows), "{windows:?}");
}

/// A target of 1 MB takes 800 packets of 1280 bytes at this port: the window grows from its 10 packets.
#[test]
fn over_udp_the_window_grows_while_the_queue_is_below_the_target() {
    let has_grown = |windows: &[f64]| windows.iter().any(|window| *window > 20.0);
    let windows = windows_until("large-target", "target=1MB", has_grown);
    assert!(has_grown(&windows), "{windows:?}");
}

/// Four pairs of racks on four spines: paths without collisions are chance, and the policy finds other paths.
#[test]
fn a_scenario_names_the_path_policy() {
    let arguments = |balancer: &'static str| {
        vec![
            "run",
            SCENARIO,
            "--set",
            "topology={ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2, rate = \"100Gbps\", delay = \"1us\", buffer = \"4MB\" }",
            "--set",
            balancer,
            "--json",
        ]
    };
    let run_with = |balancer| json(run(&arguments(balancer)));
    let known = run_with("routing={ balancer = \"second-chance patience=1\" }");
    assert!(known.to_string().contains("op_latency_us"), "{known}");
    let refused = run(&arguments("routing={ balancer = \"second-chanse\" }"));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("did you mean") && text.contains("second-chance"), "{text}");
}
