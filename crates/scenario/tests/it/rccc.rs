//! RCCC in whole runs. Expected values are closed forms.

use crate::support::{good, read};
use apus_scenario::Simulation;
use apus_sim::summary::Summary;

fn run(text: &str, threads: u32) -> Summary {
    let scenario = good(text);
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let simulation = Simulation::with_threads(&plan, threads).expect("plan");
    simulation.run("rccc", &mut |_| {}).expect("packets are conserved")
}

/// Switches that trim; the class of data with a limit of 178 880 B.
fn star(hosts: u32, algorithm: &str, workloads: &str) -> String {
    format!(
        r#"
duration = "2ms"
warmup = "500us"
[topology]
kind = "star"
hosts = {hosts}
rate = "100Gbps"
delay = "1us"
buffer = "unlimited"
ack_class = "headers"
[[topology.class]]
name = "headers"
limit = "357760B"
[[topology.class]]
name = "data"
priority = 1
limit = "178880B"
trim_to = "headers"
[packets]
payload = "4096B"
header = "64B"
control = "64B"
[host]
model = "ideal"
[algorithm]
name = "rccc"
{algorithm}
{workloads}"#
    )
}

/// A receiver grants at 0.99 of its rate, in wire bytes, for any number of senders, which get equal shares.
#[test]
fn senders_of_one_receiver_share_the_pace_of_its_grants() {
    for (senders, pace) in [(1, 0.99), (3, 0.99), (8, 0.8)] {
        let incast =
            "[[workload]]\nkind = \"incast\"\nreceiver = 0\nclass = \"data\"\nsize = \"1GB\"\n";
        let summary = run(&star(senders + 1, &format!("pace = {pace}"), incast), 1);
        let share = summary.goodput_gbps / (100.0 * 4096.0 / 4160.0);
        assert!((share / pace - 1.0).abs() < 0.005, "{senders} senders: {share}");
        assert!(summary.jain > 0.999, "{senders} senders: {}", summary.jain);
    }
}

/// A sender of two receivers divides its demand between them, so that each grants what the sender can use. Here
/// two senders share the same two receivers. Each receiver has two demands, of up to 0.75 bandwidth-delay
/// products beyond its grants. Until the receiver sees the effect of a grant on the demand, one RTT later, it
/// grants 0.99 / 2 of a product to each sender. It therefore always has a demand, and grants at its pace.
#[test]
fn a_sender_divides_its_demand() {
    let flow = |from: u32, to: u32| format!("[[workload.flow]]\nfrom = {from}\nto = {to}\n");
    let flows: String = [(0, 2), (0, 3), (1, 2), (1, 3)].map(|(a, b)| flow(a, b)).concat();
    let workload =
        format!("[[workload]]\nkind = \"flows\"\nclass = \"data\"\nsize = \"1GB\"\n{flows}");
    let text = star(4, "", &workload);
    let summary = run(&text, 1);
    let share = summary.goodput_gbps / (200.0 * 4096.0 / 4160.0);
    assert!((share / 0.99 - 1.0).abs() < 0.005, "{share}");
    assert_eq!(run(&text, 2).work.event_hash, summary.work.event_hash);
}

/// Ops of one packet, one after another. The first op has the first credit; later ones have unrequested credit.
/// No op therefore waits for a round trip of credit: RTTs of 4.7 us, not of 9.
#[test]
fn flows_that_begin_again_have_credit() {
    let workload = "[[workload]]\nkind = \"flows\"\nclass = \"data\"\nsize = \"4096B\"\n\
                    [[workload.flow]]\nfrom = 0\nto = 1\n";
    let summary = run(&star(2, "", workload), 1);
    // 4 links of 1 us; 4160 B twice and 64 B twice at 100 Gb/s.
    let rtt = 4.0 + 2.0 * 0.3328 + 2.0 * 0.00512;
    let latency = &summary.op_latency_us;
    assert!(latency.p50.is_some_and(|p50| (p50 / rtt - 1.0).abs() < 0.002), "{latency:?}");
    assert!(latency.max.is_some_and(|max| max < 2.0 * rtt), "{latency:?}");
}

/// Grants and requests are lost like other packets, and all flows end.
#[test]
fn lost_grants_are_made_up_for() {
    for algorithm in ["", "profile = \"nscc\""] {
        let workload = "[[workload]]\nkind = \"incast\"\nreceiver = 0\nclass = \"data\"\nsize = \"300kB\"\nstop = \"1ms\"\n\
                        [[fault]]\nlink = \"host 0 -> *\"\nkind = \"loss\"\nprobability = 0.2\nuntil = \"1500us\"\n\
                        [[fault]]\nlink = \"* -> host 0\"\nkind = \"loss\"\nprobability = 0.05\nuntil = \"1500us\"\n";
        let mut text = star(5, algorithm, workload).replace("warmup = \"500us\"\n", "");
        if !algorithm.is_empty() {
            text = text.replace(
                "trim_to = \"headers\"\n",
                "trim_to = \"headers\"\necn = { threshold = \"80kB\" }\n",
            );
        }
        let summary = run(&text, 1);
        assert!(summary.packets.dropped > 20);
        assert_eq!(summary.measured.unfinished_ops, 0, "{algorithm}: {:?}", summary.stalled);
    }
}

#[test]
fn settings_without_effect_are_errors() {
    for (algorithm, expected) in [
        ("target_queueing = \"9us\"", "unless `window` is \"nscc\""),
        ("window = \"nscc\"", "does not mark packets"),
        ("pace = 1.1", "pace"),
        ("network_rtt = \"300us\"\nrto = \"200us\"", "at least network_rtt"),
    ] {
        let workload = "[[workload]]\nkind = \"permutation\"\nclass = \"data\"\nsize = \"1MB\"\n";
        let why = read(&star(4, algorithm, workload)).err().map(|error| error.to_string());
        assert!(why.as_ref().is_some_and(|why| why.contains(expected)), "{algorithm}: {why:?}");
    }
}

/// A host has a single pace of grants for all algorithms of its flows.
#[test]
fn two_paces_are_an_error() {
    let flows = |more| {
        format!("[[workload]]\nkind = \"permutation\"\nclass = \"data\"\nsize = \"1MB\"\n{more}\n")
    };
    let both = flows("algorithm = \"one\"") + &flows("algorithm = \"two\"");
    let two = "[algorithm.one]\nname = \"rccc\"\n[algorithm.two]\nname = \"rccc\"\npace = 0.5\n";
    let text = star(4, "", &both).replace("[algorithm]\nname = \"rccc\"\n", two);
    let why = read(&text).err().map(|error| error.to_string());
    assert!(why.as_ref().is_some_and(|why| why.contains("two paces of grants")), "{why:?}");
    let why = read(&text.replace("pace = 0.5\n", "")).err().map(|error| error.to_string());
    assert_eq!(why, None);
}

/// Hosts have two ports of 100 Gb/s in two planes, and each flow one path. The flows of a port take turns at
/// its rate, regardless of which flow was first. Five senders are unevenly divided between the ports, and both
/// ports are full.
#[test]
fn the_flows_of_each_port_of_a_host_share_its_rate() {
    let incast =
        "[[workload]]\nkind = \"incast\"\nreceiver = 0\nclass = \"data\"\nsize = \"1GB\"\n";
    let text = star(6, "", incast).replace("hosts = 6\n", "hosts = 6\nplanes = 2\n");
    let summary = run(&text, 1);
    let share = summary.goodput_gbps / (200.0 * 4096.0 / 4160.0);
    assert!((share / 0.99 - 1.0).abs() < 0.005, "{share}");
}
