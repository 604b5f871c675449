//! How data gets into a host's NIC: pulled by it, or pushed into a queue that takes part in the algorithm.

mod support;

use apus_sim::summary::Summary;
use support::scenario::run_scenario;

/// Packets of 5000 B, 400 ns each at 100 Gb/s; 5 us there and back.
const HEAD: &str = r#"
topology = { kind = "star", hosts = 9, rate = "100Gbps", delay = "1048ns", buffer = "unlimited" }
packets = { payload = "4936B", header = "64B", control = "46B" }
transport = { timer_granularity = "1024ps" }
"#;

fn run(nic: &str, text: &str) -> Summary {
    let host = format!("host = {{ model = \"ideal\", nic = \"{nic}\" }}\n");
    run_scenario(&format!("{HEAD}{host}{text}"))
}

/// A flow of host 0 to each of the others, all with endless data.
fn flows(algorithm: &str) -> String {
    let flow = |to: u32| format!("[[workload.flow]]\nfrom = 0\nto = {to}\n");
    let flows: String = (1..9).map(flow).collect();
    format!(
        "duration = \"2ms\"\nwarmup = \"200us\"\nalgorithm = {algorithm}\n[[workload]]\n\
         kind = \"flows\"\nsize = \"1GB\"\n{flows}"
    )
}

/// Eight windows of 12 packets are 96; 12.5 are in the network, and all others wait in the NIC, before
/// their timestamps if it pulls and after them if it queues: 96 packets take 38.4 us.
#[test]
fn a_nic_that_queues_holds_what_windows_let_go() {
    let constant = flows("{ name = \"constant\", window = 12.0 }");
    let pulled = run("pull", &constant).fabric_rtt_us;
    assert!((4.9..5.1).contains(&pulled.p50.unwrap()), "{pulled:?}");
    let queued = run("queue", &constant).fabric_rtt_us;
    assert!((38.3..38.5).contains(&queued.p50.unwrap()), "{queued:?}");
}

/// Bolt ns-3: the NIC's port takes part. Nothing but the NIC is congested here, so that only its signals
/// can keep the queue near the threshold: without them it would be as long as above, and longer.
#[test]
fn bolt_ns_3_a_nic_that_queues_tells_its_flows() {
    let bolt = flows("{ name = \"bolt\", initial_cwnd = 12.5, max_cwnd = 12.5 }");
    let queued = run("queue", &bolt);
    let rtt = queued.fabric_rtt_us;
    // Each of eight flows keeps a packet at least, which fits; each adds one per RTT.
    assert!(rtt.p99.unwrap() < 5.0 + 8.0 * 0.4 + 2.0, "{rtt:?}");
    let rate: f64 = queued.goodput_gbps;
    assert!(rate > 90.0, "{rate} Gb/s: the signals do not starve the link");
}
