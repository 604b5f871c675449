//! The offered load of open loops, against calculated numbers.

use crate::support::good;
use apus_scenario::Simulation;
use apus_sim::offered::OfferedLoad;

/// Packets of 1000 B with 250 B of header: a payload of 1 Gb/s is 1.25 Gb/s on the wire.
const HEAD: &str = "duration = \"2ms\"\nalgorithm = { name = \"swift\" }\n\
    packets = { payload = \"1000B\", header = \"250B\", control = \"84B\" }\n";

fn offered(text: &str) -> (OfferedLoad, Vec<String>) {
    let plan = good(&format!("{HEAD}{text}")).runs[0].setup.plan().expect("plan");
    let run = Simulation::new(&plan).expect("plan").run("offered", &mut |_| {}).expect("run");
    (run.offered, run.notes)
}

fn near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value / expected - 1.0).abs() < 1e-9)
}

/// Two messages of 100 kB over 1 ms from each host of one leaf to the hosts of the other, over links of 10
/// Gb/s, and of 2 Gb/s between switches.
fn four_messages(spines: u32, more: &str) -> String {
    format!(
        "topology = {{ kind = \"leaf-spine\", leaves = 2, hosts_per_leaf = 2, spines = {spines}, \
         rate = \"10Gbps\", delay = \"1us\", buffer = \"4MB\", uplink = {{ rate = \"2Gbps\" }} }}\n\
         [[workload]]\nkind = \"trace\"\n{more}flows = \"\"\"\nstart_us,from,to,bytes\n\
         0,0,2,100000\n0,1,3,100000\n1000,0,2,100000\n1000,1,3,100000\n\"\"\"\n"
    )
}

/// Each host sends 200 kB, 250 kB on the wire, in 1 ms: 2 Gb/s of its 10 Gb/s. All four messages cross the
/// single link of 2 Gb/s to the spine: 500 kB in 1 ms are 4 Gb/s, twice its rate.
#[test]
fn the_load_of_a_trace_is_that_of_its_messages() {
    let (load, notes) = offered(&four_messages(1, ""));
    assert_eq!(load.max_link.as_deref(), Some("leaf 0 -> spine 0"));
    assert!(near(load.max_link_load, 2.0), "{load:?}");
    assert!(near(load.host_link_load, 0.2), "{load:?}");
    // Of the four links between switches two are used.
    assert!(near(load.mean_switch_link_load, 1.0), "{load:?}");
    let trace = &load.workload["trace"];
    assert!(trace.open_loop && trace.ops == Some(4), "{trace:?}");
    // 400 kB of payload in 1 ms.
    assert!(near(trace.offered_gbps, 3.2), "{trace:?}");
    assert!(notes[0].contains("offered load 2.000 is above 1 at the link leaf 0 -> spine 0"));
}

/// Each of four spines gets a quarter of the 500 kB, 1 Gb/s in 1 ms: half of the rate of each used link, of 16
/// links.
#[test]
fn flows_that_spread_their_packets_load_all_of_their_paths() {
    let balancer = "balancer = \"oblivious\"\n";
    let (load, notes) = offered(&four_messages(4, balancer));
    assert!(near(load.switch_link_load, 0.5), "{load:?}");
    assert!(near(load.mean_switch_link_load, 0.25), "{load:?}");
    assert!(near(load.host_link_load, 0.2), "{load:?}");
    assert!(near(load.workload["trace"].max_link_load, 0.5), "{load:?}");
    assert!(!notes.iter().any(|note| note.contains("offered load")), "{notes:?}");
    // No byte is lost if the number of paths does not divide a message.
    let (load, _) = offered(&four_messages(3, balancer));
    assert!(near(load.host_link_load, 0.2), "{load:?}");
}

/// 1000 ops of 1 kB each at a load of 0.5 of a receiver's link: with headers 0.625, except for
/// random variation.
#[test]
fn the_load_of_a_poisson_process_is_the_requested_one_with_headers() {
    let star = "topology = \"star hosts=4 10Gbps 1us\"\n";
    let poisson = "[[workload]]\nkind = \"poisson\"\nsize = \"1kB\"\nreceiver = 3\n";
    let (load, notes) = offered(&format!("{star}{poisson}load = 0.5\n"));
    assert_eq!(load.max_link.as_deref(), Some("switch 0 -> host 3"));
    let most = load.max_link_load.expect("an open loop");
    // 1250 ops: five standard deviations are 14 %.
    assert!((most / 0.625 - 1.0).abs() < 0.14, "{load:?}");
    assert!(notes.is_empty(), "{notes:?}");
    let (load, notes) = offered(&format!("{star}{poisson}load = 1.5\n"));
    assert!(load.max_link_load.is_some_and(|most| most > 1.6), "{load:?}");
    assert!(notes[0].contains("is above 1 at the link switch 0 -> host 3"), "{notes:?}");
    // Half of the time at twice the load.
    let (load, _) = offered(&format!("{star}{poisson}load = 1.0\nstart = \"1ms\"\n"));
    assert!((load.max_link_load.expect("load") / 1.25 - 1.0).abs() < 0.14, "{load:?}");
}

#[test]
fn a_closed_loop_has_no_offered_load() {
    let text = "topology = \"star hosts=4 10Gbps 1us\"\n[[workload]]\nkind = \"incast\"\n\
                size = \"1kB\"\n";
    let (load, notes) = offered(text);
    assert_eq!((load.max_link, load.max_link_load), (None, None));
    assert!(!load.workload["incast"].open_loop);
    assert!(notes.is_empty(), "{notes:?}");
}
