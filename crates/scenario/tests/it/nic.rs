//! The way of data into a host's NIC: the NIC pulls it, or the host pushes it into a queue that takes part in
//! the algorithm.

use crate::support::run_scenario;
use apus_sim::summary::Summary;

/// Packets of 5000 B, 400 ns each at 100 Gb/s; a base RTT of 5 us.
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

/// Eight windows of 12 packets are 96 packets. 12.5 are in the network, and all others wait in the NIC: before
/// their timestamps if the NIC pulls, after them if it queues. 96 packets take 38.4 us.
#[test]
fn a_queueing_nic_holds_the_packets_that_windows_admit() {
    let constant = flows("{ name = \"constant\", window = 12.0 }");
    let pulled = run("pull", &constant).fabric_rtt_us;
    assert!((4.9..5.1).contains(&pulled.p50.unwrap()), "{pulled:?}");
    let queued = run("queue", &constant).fabric_rtt_us;
    assert!((38.3..38.5).contains(&queued.p50.unwrap()), "{queued:?}");
}

/// Bolt ns-3: the NIC's port takes part. Only the NIC is congested here, so only its signals can keep the queue
/// near the threshold. Without them the queue would be at least as long as above.
#[test]
fn bolt_ns_3_a_queueing_nic_signals_its_flows() {
    let bolt = flows("{ name = \"bolt\", initial_cwnd = 12.5, max_cwnd = 12.5 }");
    let queued = run("queue", &bolt);
    let rtt = queued.fabric_rtt_us;
    // Each of eight flows keeps at least one packet, which fits; each adds one per RTT.
    assert!(rtt.p99.unwrap() < 5.0 + 8.0 * 0.4 + 2.0, "{rtt:?}");
    let rate: f64 = queued.goodput_gbps;
    assert!(rate > 90.0, "{rate} Gb/s: the signals do not starve the link");
}

/// Bolt §3.2: when a flow ends, PRU tokens let the other flow take its bandwidth, whereas one packet more per
/// RTT takes about 33 RTTs for half of the link (Fig. 12). The tokens are of use only if the senders' own NICs
/// leave INC on packets that have not passed a switch yet. In Bolt ns-3 the NICs do so if supply matching is
/// off.
#[test]
fn bolt_section_3_2_pru_without_sm_works_behind_a_nic_that_queues() {
    let settled_us = |pru: bool| {
        let text = format!(
            r#"
duration = "800us"
packets = {{ payload = "1436B", header = "64B", control = "46B" }}
transport = {{ timer_granularity = "1024ps" }}
host = {{ model = "ideal", nic = "queue" }}
algorithm = {{ name = "bolt", profile = "code", initial_cwnd = 66.67, sm = false, pru = {pru} }}
[topology]
kind = "star"
hosts = 3
rate = "100Gbps"
delay = "1938ns"
buffer = "unlimited"
ack_class = "control"
[[topology.class]]
name = "control"
[[topology.class]]
name = "data"
priority = 1
[[workload]]
kind = "flows"
size = "1GB"
class = "data"
[[workload.flow]]
from = 0
to = 2
[[workload]]
name = "leaving"
kind = "flows"
size = "1200kB"
stop = "1us"
class = "data"
[[workload.flow]]
from = 1
to = 2
[measure]
window = "100us"
[measure.ports]
edge = ["switch 0 -> host 2"]
[[measure.settle]]
name = "taken"
of = {{ ports = "edge" }}
quantity = "throughput"
interval = "4us"
after = "last end of leaving"
lead = "6us"
above = "95Gbps"
hold = "20us"
"#
        );
        run_scenario(&text).settle["taken"].time_us
    };
    // Half of the window of 67 packets, at a packet per RTT of 8 us, takes 264 us; the threshold of 95 % is
    // reached earlier.
    let without = settled_us(false).expect("the flow takes the link");
    assert!((200.0..264.0).contains(&without), "{without} us without PRU");
    let with = settled_us(true).expect("the flow takes the link");
    assert!(with < without / 2.0, "{with} us with PRU, {without} us without");
}

/// Eight hosts send to the ninth, with windows of 100 packets, through a switch that pauses them.
const PAUSED: &str = r#"
duration = "2ms"
warmup = "500us"
algorithm = { name = "constant", window = 100.0 }
packets = { payload = "4936B", header = "64B", control = "46B" }
host = { model = "ideal", nic = "NIC" }
[topology]
kind = "star"
hosts = 10
rate = "100Gbps"
delay = "1048ns"
buffer = "unlimited"
pfc = { pause = "50kB", resume = "45kB", headroom = "100kB" }
[[workload]]
name = "incast"
kind = "flows"
size = "1GB"
"#;

fn paused(scenario: &str) -> Summary {
    let flow = |from: u32| format!("[[workload.flow]]\nfrom = {from}\nto = 8\n");
    let flows: String = (0..8).map(flow).collect();
    run_scenario(&format!("{scenario}{flows}"))
}

/// IEEE 802.1Qbb: while a class is paused, a NIC sends no packet of it. A NIC that pulls leaves the packets
/// with their flows. The network then holds what the switch may hold: per link 50 kB, and the bytes sent before
/// the pause takes effect (2.1 us for both directions and two packets, 37 kB), 700 kB for all links, 56 us. A
/// NIC that queues holds eight windows of 500 kB: 320 us.
#[test]
fn a_pulling_nic_leaves_packets_with_their_flows_while_its_port_is_paused() {
    let pulled = paused(&PAUSED.replace("NIC", "pull"));
    let rtt = pulled.fabric_rtt_us;
    assert!(rtt.max.unwrap() < 56.0 + 5.0 + 5.0, "{rtt:?}");
    assert!(pulled.busiest_port.utilisation > 0.99, "{:?}", pulled.busiest_port);
    let queued = paused(&PAUSED.replace("NIC", "queue")).fabric_rtt_us;
    assert!((319.0..321.0).contains(&queued.mean.unwrap()), "{queued:?}");
}

/// A flow of another class continues while the incast's packets wait.
#[test]
fn a_pause_of_one_class_stops_no_flow_of_another() {
    let classes = "[[topology.class]]\nname = \"lossless\"\n[[topology.class]]\nname = \"other\"\n\
                   [[workload]]\nname = \"other\"\nkind = \"flows\"\nsize = \"1GB\"\nclass = \"other\"\n\
                   [[workload.flow]]\nfrom = 0\nto = 9\n\
                   [[workload]]\nname = \"incast\"\nclass = \"lossless\"";
    let scenario =
        PAUSED.replace("NIC", "pull").replace("pause =", "classes = [\"lossless\"], pause =");
    let summary = paused(&scenario.replace("[[workload]]\nname = \"incast\"", classes));
    let goodput = summary.workload["other"].goodput_gbps;
    // The incast takes an eighth of the receiver's link; headers are 64 B of 5000 B.
    assert!((84.0..100.0).contains(&goodput), "{goodput} Gb/s");
}
