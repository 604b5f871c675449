//! Scenarios with path changes, pausing switches and delayed notifications.

use apus_scenario::Simulation;
use apus_scenario::{Options, Scenario, Source};
use apus_sim::summary::Summary;

fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
    Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default()).map_err(|e| e.to_string())
}

/// Returns the error of a refused scenario.
fn refused(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(why) => why,
    }
}

/// Runs a scenario and its written form, which must give equal results.
fn run(text: &str, threads: u32) -> Summary {
    let scenario = read(text).unwrap_or_else(|e| panic!("{e}"));
    let setup = &scenario.runs[0].setup;
    let effective = setup.to_toml();
    let again = read(&effective).unwrap_or_else(|e| panic!("{e}\n{effective}"));
    assert_eq!(again.runs[0].setup.to_toml(), effective);
    let simulation = Simulation::with_threads(&setup.plan().expect("plan"), threads).expect("plan");
    simulation.run("s", &mut |_| {}).expect("packets are conserved")
}

const SQUARE: &str = r#"
duration = "1ms"
[topology]
kind = "links"
rate = "100Gbps"
delay = "1us"
buffer = "unlimited"
link = [{ a = "h0", b = "left" }, { a = "h1", b = "right" }, { a = "left", b = "right" },
        { a = "left", b = "detour" }, { a = "detour", b = "right" }]
[algorithm]
name = "constant"
window = 256.0
[measure.ports]
direct = ["left -> right"]
detour = ["detour -> right"]
back = ["right -> detour"]
[[workload]]
kind = "flows"
size = "1GB"
[[workload.flow]]
from = 0
to = 1
"#;

#[test]
fn a_rerouted_flow_leaves_its_path_at_its_time_and_its_acknowledgements_follow() {
    let text = format!(
        "{SQUARE}reroute = {{ at = \"250us\", through = [\"left\", \"detour\", \"right\"] }}\n"
    );
    for threads in [1, 2] {
        let summary = run(&text, threads);
        let throughput = |group: &str| summary.ports[group].totals.throughput_gbps;
        // A quarter of the time on one path, three quarters on the other; 2 us in transit in either case.
        assert!((throughput("direct") - 25.0).abs() < 1.0, "{}", throughput("direct"));
        assert!((throughput("detour") - 75.0).abs() < 1.0, "{}", throughput("detour"));
        assert!(throughput("back") > 0.5, "{}", throughput("back"));
        assert_eq!(summary.duplicate_gbps, 0.0, "nothing overtakes on the longer way");
    }
}

#[test]
fn an_impossible_path_is_an_error_that_names_the_mistake() {
    for (through, why) in [
        ("[\"left\", \"nowhere\", \"right\"]", "no switch \"nowhere\""),
        ("[\"left\", \"detour\"]", "no link connects"),
        ("[]", "must be"),
    ] {
        let error =
            refused(&format!("{SQUARE}reroute = {{ at = \"1us\", through = {through} }}\n"));
        assert!(error.contains(why), "{error}");
    }
    let late = format!("{SQUARE}reroute = {{ at = \"2ms\", through = [\"left\", \"right\"] }}\n");
    assert!(refused(&late).contains("the run ends"));
}

const INCAST: &str = r#"
duration = "500us"
topology = { kind = "star", hosts = 9, rate = "100Gbps", delay = "1us", buffer = "400kB" PFC }
workload = [{ kind = "incast", senders = 8, receiver = 8, size = "1MB" }]
algorithm = { name = "constant", window = 64.0 }
"#;

#[test]
fn pauses_prevent_losses_of_an_incast_larger_than_the_buffer() {
    let without = run(&INCAST.replace("PFC", ""), 1);
    assert!(without.loss_rate > 0.0);
    // 8 links may hold 20 kB and a headroom of 28 kB each: 384 kB.
    let pfc = ", pfc = { pause = \"20kB\", resume = \"15kB\", headroom = \"30kB\" }";
    let with = run(&INCAST.replace("PFC", pfc), 1);
    assert_eq!(with.loss_rate, 0.0);
    assert!(with.busiest_port.max_queue_bytes <= 400_000.0 as _);
    assert!(with.throughput_gbps > 95.0, "{}", with.throughput_gbps);
    let wrong = ", pfc = { pause = \"20kB\", resume = \"20kB\", headroom = \"30kB\" }";
    assert!(refused(&INCAST.replace("PFC", wrong)).contains("below"));
}

/// Returns the time at which the queue is below 4 us again after a second flow has joined. This time depends on
/// the delay of notifications.
fn drained_us(delay: &str) -> f64 {
    let text = format!(
        r#"
duration = "300us"
[topology]
kind = "dumbbell"
left = 2
right = 2
rate = "102Gbps"
delay = "1272ns"
buffer = "unlimited"
signals = "instant"
plain = ["right"]
middle = {{ rate = "100Gbps" }}
[packets]
payload = "1436B"
header = "64B"
control = "46B"
[algorithm]
name = "notified"
delay = "{delay}"
base_rtt = "8us"
initial_cwnd = 66
[[workload]]
kind = "flows"
size = "1GB"
[[workload.flow]]
from = 0
to = 2
[[workload.flow]]
from = 1
to = 3
start = "200us"
[measure]
window = "10us"
[measure.ports]
middle = ["left -> right"]
[[measure.settle]]
name = "drained"
of = {{ ports = "middle" }}
quantity = "queue"
interval = "1us"
after = "201400ns"
below = "4us"
hold = "5us"
"#
    );
    run(&text, 2).settle["drained"].time_us.expect("drained")
}

#[test]
fn bolt_fig_2_a_later_notification_leaves_the_queue_longer() {
    let (at_once, late) = (drained_us("0us"), drained_us("16us"));
    assert!(at_once <= late / 2.0, "{at_once} us against {late} us");
}
