//! Hosts with several ports: planes, rails, and the named clusters.

use apus_fabric::Node;
use apus_scenario::Simulation;

use crate::support::{assert_reads_back, good, read, run_scenario};

/// One message of 1 MiB from rank 0 to rank `to` of `ranks`.
fn message(topology: &str, routing: &str, to: u32, ranks: u32) -> String {
    let mut operations =
        format!("num_ranks {ranks}\\nrank 0 {{\\nl1: send 1048576b to {to}\\n}}\\n");
    for rank in 1..ranks {
        let receive = if rank == to { "l1: recv 1048576b from 0\\n" } else { "" };
        operations += &format!("rank {rank} {{\\n{receive}}}\\n");
    }
    format!(
        "duration = \"10ms\"\npackets = {{ payload = \"4096B\", header = \"64B\" }}\n\
         algorithm = {{ name = \"constant\", window = 600 }}\ntopology = \"{topology}\"\n{routing}\
         [[workload]]\nkind = \"job\"\noperations = \"{operations}\"\n"
    )
}

fn time(scenario: &str) -> f64 {
    let summary = run_scenario(scenario);
    let job = summary.jobs.first().expect("a job");
    assert_eq!(job.unfinished, 0, "{:?}", job.stuck);
    let ideal = job.ideal_us.expect("an ideal time");
    let time = job.completion_us.expect("it ends");
    assert!(time >= ideal - 1e-6, "{time} {ideal}");
    time
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

const SPRAY: &str =
    "[routing]\nbalancer = \"oblivious form=round-robin\"\nev = \"indexed\"\nloss = \"timeout\"\n";

/// 256 packets of 4160 B at 25 Gb/s (1.3312 us each) over two links of 1 us: 257 packet times on one port, 65
/// on four ports.
#[test]
fn a_flow_with_one_path_uses_one_plane_and_a_spread_one_uses_all() {
    let star = "star hosts=2 planes=4 25Gbps 1us 100MB";
    assert_near(time(&message(star, "", 1, 2)), 2.0 + 257.0 * 1.3312);
    assert_near(time(&message(star, SPRAY, 1, 2)), 2.0 + 65.0 * 1.3312);
}

/// A flow with one path uses one of the ports, but several flows use several ports: the time over a single port
/// is not a bound.
#[test]
fn a_job_over_several_ports_never_takes_less_than_its_ideal_time() {
    for pattern in ["direct", "window", "pairwise"] {
        let summary = run_scenario(&format!(
            "duration = \"10ms\"\ntopology = \"star hosts=4 planes=8 25Gbps 1us 100MB\"\n\
             algorithm = {{ name = \"constant\", window = 600 }}\n\
             workload = [{{ kind = \"all-to-all\", pattern = \"{pattern}\", size = \"8MiB\" }}]\n"
        ));
        let job = &summary.jobs[0];
        assert!(job.slowdown.expect("it ends") >= 1.0, "{pattern}: {job:?}");
    }
}

/// A message that is sprayed over eight uplinks of a quarter of its NIC's rate is as fast as the NIC, since no
/// uplink carries all of it. Links that are slow at the end of a run do not make the ideal time longer.
#[test]
fn the_ideal_time_is_a_bound_with_slow_uplinks_and_with_faults() {
    let run = |more: &str| {
        let summary = run_scenario(&format!(
            "duration = \"10ms\"\nalgorithm = {{ name = \"constant\", window = 600 }}\n\
             workload = [{{ kind = \"job\", operations = \"num_ranks 3\\nrank 0 {{\\nl1: send 1048576b to 2\\n}}\\n\
             rank 1 {{\\n}}\\nrank 2 {{\\nl1: recv 1048576b from 0\\n}}\\n\" }}]\n{more}"
        ));
        let job = summary.jobs.first().expect("a job").clone();
        (job.ideal_us.expect("ideal"), job.slowdown.expect("it ends"))
    };
    let uplinks = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 2\nspines = 8\nrate = \"400Gbps\"\n\
         delay = \"1us\"\nbuffer = \"100MB\"\n\
         uplink = { rate = \"100Gbps\" }\n";
    let spray = "[routing]\nbalancer = \"oblivious form=round-robin\"\nev = \"indexed\"\nloss = \"timeout\"\n";
    let (_, slowdown) = run(&format!("{uplinks}{spray}"));
    assert!((1.0..1.5).contains(&slowdown), "{slowdown}");
    let star = "[topology]\nkind = \"star\"\nhosts = 3\nrate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"100MB\"\n";
    let (healthy, _) = run(star);
    let slow = "[[fault]]\nkind = \"slow\"\nlink = \"host 0 <-> switch 0\"\nfraction = 0.1\nat = \"80us\"\n";
    let (faulty, slowdown) = run(&format!("{star}{slow}"));
    assert!((healthy - faulty).abs() < 1e-9 && slowdown >= 1.0, "{healthy} {faulty} {slowdown}");
}

/// 6112 B in packets of 4160 B and 2080 B, which take different spines. The short packet reaches the last link
/// before the other one, and leaves it at 12,480 B of 80 ps, when the other one arrives.
#[test]
fn a_short_packet_that_overtakes_a_full_one_is_no_faster_than_the_ideal_time() {
    let tree = "leaf-spine leaves=2 hosts_per_leaf=1 spines=2 100Gbps 1us 100MB";
    let scenario = message(tree, SPRAY, 1, 2).replace("1048576b", "6112b");
    assert_near(time(&scenario), 4.0 + 4.0 * 0.3328);
    assert_near(run_scenario(&scenario).jobs[0].slowdown.expect("it ends"), 1.0);
}

/// Two chunks of 1 MB start together over separate uplinks of 40 Gb/s: each arrives at 40 Gb/s, after 203 us.
/// One after the other, they would take longer by the 81 us of the first chunk on the NIC.
#[test]
fn chunks_of_several_flows_may_take_slow_uplinks_of_their_own() {
    let run = |seed: u32| {
        let summary = run_scenario(&format!(
            "duration = \"10ms\"\nseed = {seed}\nalgorithm = {{ name = \"constant\", window = 1000 }}\n\
             topology = {{ kind = \"leaf-spine\", leaves = 2, hosts_per_leaf = 1, spines = 64, rate = \"100Gbps\", \
             delay = \"1us\", buffer = \"100MB\", uplink = {{ rate = \"40Gbps\" }} }}\n\
             workload = [{{ kind = \"broadcast\", pattern = \"chain\", chunks = 2, size = \"2MB\", flows_per_pair = 2 }}]\n"
        ));
        let job = summary.jobs[0].clone();
        assert!(job.slowdown.expect("it ends") >= 1.0, "{job:?}");
        job.completion_us.expect("it ends")
    };
    let fastest = (1..=4).map(run).fold(f64::MAX, f64::min);
    assert!((204.0..220.0).contains(&fastest), "{fastest}");
}

/// Values are drawn at random: a NIC moves a packet to a free port, so all ports stay busy.
#[test]
fn a_nic_sends_by_a_free_port_whatever_value_the_policy_draws() {
    let star = "star hosts=2 planes=4 25Gbps 1us 100MB";
    for form in ["random", "permuted"] {
        let routing =
            format!("[routing]\nbalancer = \"oblivious form={form}\"\nloss = \"timeout\"\n");
        assert_near(time(&message(star, &routing, 1, 2)), 2.0 + 65.0 * 1.3312);
    }
}

/// A packet of 4160 B leaves by one port for 1.3312 us, and one of 65 B, the last of the message, by the other port for
/// 0.0208 us: the message has left with the first.
#[test]
fn a_message_has_left_when_all_ports_have_sent_their_share() {
    let star = "star hosts=2 planes=2 25Gbps 1us 100MB";
    let scenario = message(star, SPRAY, 1, 2).replace("1048576b", "4097b") + "done = \"local\"\n";
    let summary = run_scenario(&scenario);
    let sender = summary.jobs[0].stragglers.iter().find(|rank| rank.rank == 0);
    assert_near(sender.expect("the sender").send_us, 1.3312);
}

/// Three ports are left for 256 packets: 86 packets on the busiest port, and one more packet time.
#[test]
fn a_dead_port_costs_its_share_of_the_rate() {
    let star = "star hosts=2 planes=4 25Gbps 1us 100MB";
    let fault = "[[fault]]\nlink = \"host 0 -> plane 2 switch 0\"\nkind = \"down\"\nat = \"0s\"\n";
    let scenario = message(star, SPRAY, 1, 2) + fault;
    assert_near(time(&scenario), 2.0 + 87.0 * 1.3312);
}

/// Ports of a NIC have their own routes up to the spines.
#[test]
fn planes_of_a_leaf_spine_share_no_switch() {
    let tree = "leaf-spine planes=2 leaves=2 hosts_per_leaf=2 spines=2 25Gbps 1us 100MB";
    // Four links, 128 packets per plane.
    assert_near(time(&message(tree, SPRAY, 3, 4)), 4.0 + (128.0 + 3.0) * 1.3312);
}

/// Two nodes of two NICs. A message of 1 MiB at 100 Gb/s takes 85.1968 us, and 0.3328 us for a packet on a further link.
#[test]
fn a_rank_uses_its_own_nic_and_spines_join_the_rails() {
    let rails = "rails nodes=2 nics=2 spines=1 100Gbps 1us 100MB scale_up_rate=400Gbps scale_up_delay=100ns";
    // Ranks 0 and 1 are on node 0, 2 and 3 on node 1.
    assert_near(time(&message(rails, "", 2, 4)), 2.0 + 85.1968 + 0.3328);
    assert_near(time(&message(rails, "", 3, 4)), 4.0 + 85.1968 + 3.0 * 0.3328);
    // Within the node: 8 Mibit at 400 Gb/s.
    assert_near(time(&message(rails, "", 1, 4)), 0.1 + 20.971_52);
}

/// Without spines a message to another rail goes to the GPU of that rail first.
#[test]
fn rails_alone_are_reached_by_the_network_within_the_node() {
    let rails = "rails nodes=2 nics=2 100Gbps 1us 100MB scale_up_rate=400Gbps scale_up_delay=100ns";
    let rail = 2.0 + 85.1968 + 0.3328;
    assert_near(time(&message(rails, "", 2, 4)), rail);
    assert_near(time(&message(rails, "", 3, 4)), 0.1 + 20.971_52 + rail);
}

/// Two messages of one node leave by two NICs at the same time.
#[test]
fn the_nics_of_a_node_work_at_the_same_time() {
    let operations = "num_ranks 4\\nrank 0 {\\nl1: send 1048576b to 2\\n}\\nrank 1 {\\nl1: send 1048576b to 3\\n}\\nrank 2 {\\nl1: recv 1048576b from 0\\n}\\nrank 3 {\\nl1: recv 1048576b from 1\\n}\\n";
    let scenario = message("rails nodes=2 nics=2 100Gbps 1us 100MB scale_up_rate=1Tbps", "", 1, 2);
    let (head, _) = scenario.split_once("operations").expect("operations");
    assert_near(time(&format!("{head}operations = \"{operations}\"\n")), 2.0 + 85.1968 + 0.3328);
}

/// Factor of leaf-spine: 32 hosts of 100 Gb/s over 8 uplinks of 100 Gb/s are 4:1.
#[test]
fn oversubscription_gives_the_spines_or_must_agree_with_them() {
    let topology = |more: &str| {
        let text =
            message(&format!("leaf-spine leaves=2 hosts_per_leaf=32 {more} 100Gbps 1us"), "", 1, 2);
        read(&text).map_err(|error| error.to_string())
    };
    let built = |more: &str| {
        let plan = topology(more).expect("good").runs[0].setup.plan().expect("plan");
        plan.topology.switches.len()
    };
    assert_eq!(built("oversubscription=4"), 10);
    assert_eq!(built("oversubscription=4 spines=8"), 10);
    assert_eq!(built("oversubscription=4 uplink={rate=\\\"400Gbps\\\"}"), 4);
    let error = topology("oversubscription=4 spines=4").expect_err("refused");
    assert!(
        error.contains("is 4, but `spines` is 4") && error.contains("need 8 spines"),
        "{error}"
    );
    let error = topology("oversubscription=5").expect_err("refused");
    assert!(error.contains("need 6.4 spines"), "{error}");
}

/// Properties of a topology, counted on the network that is built from it.
#[derive(Debug, PartialEq)]
struct Counts {
    hosts: u32,
    /// Ports of host 0.
    ports: usize,
    switches: u32,
    links: usize,
    /// Links between host 0 and the last host.
    hops: usize,
    /// Downlink rate over uplink rate of the switch at the first port; 0 without uplinks.
    oversubscription: u64,
}

fn count(line: &str) -> Counts {
    let scenario = good(&message(line, "", 1, 2));
    assert_reads_back(&scenario);
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let mut network = plan.topology.build::<()>(1).expect("network");
    let (hosts, first) = (network.hosts(), apus_units::HostId::new(0));
    let route = network.route(first, apus_units::HostId::new(hosts - 1), 0, 0).expect("a path");
    let edge = network.port_ends(network.host_port(first)).1;
    let (mut down, mut up) = (0, 0);
    for port in network.ports().filter(|port| network.port_ends(*port).0 == edge) {
        match network.port_ends(port).1 {
            Node::Host(_) => down += network.rate(port).as_bps(),
            Node::Switch(_) => up += network.rate(port).as_bps(),
        }
    }
    Counts {
        hosts,
        ports: network.host_ports(first).len(),
        switches: network.switches(),
        links: plan.topology.links.len(),
        hops: network.route_ports(route).len(),
        oversubscription: down.checked_div(up).unwrap_or(0),
    }
}

/// Published numbers of each named cluster. The links are calculated by hand: those of hosts, and leaves times
/// spines in each plane.
#[test]
fn named_clusters_have_the_numbers_of_their_sources() {
    for (line, (hosts, ports, switches), links, (hops, oversubscription)) in [
        // 64 down and 64 up of 400 Gb/s at each leaf.
        ("spectrum-x nodes=64", (64, 8, 8 + 64), 64 * 8 + 8 * 64, (2, 1)),
        ("spectrum-x nodes=128", (128, 8, 16 + 64), 128 * 8 + 16 * 64, (4, 1)),
        ("rail-only nodes=16", (16, 8, 8), 16 * 8, (2, 0)),
        // A segment of 1024 GPUs, and all 15 segments with 15,360 GPUs.
        ("hpn-7 nodes=128", (128, 16, 16 + 128), 128 * 16 + 16 * 64, (2, 1)),
        ("hpn-7 nodes=1920", (1920, 16, 240 + 128), 1920 * 16 + 240 * 64, (4, 1)),
        // 256 down and 256 up of 100 Gb/s at each leaf of each plane.
        ("mrc-8-planes leaves=2", (512, 8, 8 * 258), 8 * (512 + 2 * 256), (4, 1)),
        ("leaf-spine-4to1 leaves=4", (128, 1, 12), 128 + 4 * 8, (4, 4)),
        ("leaf-spine-8to1 leaves=4", (128, 1, 8), 128 + 4 * 4, (4, 8)),
        ("gb300-nvl72", (72, 1, 1), 72, (2, 0)),
        ("hgx-h100 hosts=4", (4, 1, 1), 4, (2, 0)),
    ] {
        let expected = Counts { hosts, ports, switches, links, hops, oversubscription };
        assert_eq!(count(line), expected, "{line}");
    }
}

/// Two hosts in a closed loop over four planes of 25 Gb/s, measured after 500 us.
fn closed_loop(routing: &str, fault: &str) -> f64 {
    let summary = run_scenario(&format!(
        r#"
duration = "2ms"
warmup = "500us"
topology = "star hosts=2 planes=4 25Gbps 1us 100MB"
packets = {{ payload = "4096B", header = "64B" }}
algorithm = {{ name = "constant", window = 64.0, min_rto = "100us" }}
[routing]
{routing}
[[workload]]
kind = "flows"
size = "1MB"
outstanding = 4
[[workload.flow]]
from = 0
to = 1
{fault}"#
    ));
    summary.goodput_gbps / (100.0 * 4096.0 / 4160.0)
}

const ROUND_ROBIN: &str = "balancer = \"oblivious form=round-robin\"\nev = \"indexed\"\n";

/// One of four ports is dead: three quarters of the rate are left. The sender sees its own port at once. A
/// failed port of the receiver becomes known after `reroute_global`; a policy with feedback avoids it earlier.
#[test]
fn a_dead_port_of_either_end_leaves_the_rate_of_the_others() {
    let cut = |host: u32| {
        format!(
            "[[fault]]\nlink = \"host {host} <-> plane 2 switch 0\"\nkind = \"down\"\nat = \"100us\"\n"
        )
    };
    let near = |routing: &str, fault: &str, expected: f64| {
        let found = closed_loop(&format!("{routing}loss = \"timeout\"\n"), fault);
        assert!((found - expected).abs() < 0.01, "{routing} {found} {expected}");
    };
    near(ROUND_ROBIN, "", 1.0);
    near(ROUND_ROBIN, &cut(0), 0.75);
    // The receiver cannot send by one port: acknowledgements take the others.
    near(ROUND_ROBIN, &cut(1).replace("<->", "->"), 1.0);
    near(&format!("{ROUND_ROBIN}reroute_global = \"200us\"\n"), &cut(1), 0.75);
    // Without notification and feedback, every fourth packet is lost and waits for a timeout.
    let deaf = closed_loop(&format!("{ROUND_ROBIN}loss = \"timeout\""), &cut(1));
    assert!(deaf < 0.6, "{deaf}");
    for policy in ["reps", "bitmap"] {
        let found = closed_loop(&format!("balancer = \"{policy}\""), &cut(1));
        assert!((found - 0.75).abs() < 0.01, "{policy} {found}");
    }
}

/// One of two ports is dead permanently, and the host has left it; then the other one fails for a while.
/// Packets of a policy that keeps a path wait for the second port, not for the first, and ops end when the
/// second port works again.
#[test]
fn all_ports_may_fail_for_a_time() {
    for policy in ["ecmp", "plb", "flowlet", "reps"] {
        let summary = run_scenario(&format!(
            r#"
duration = "4ms"
topology = "star hosts=2 planes=2 25Gbps 1us 100MB"
algorithm = {{ name = "constant", window = 16.0, min_rto = "100us" }}
[routing]
balancer = "{policy}"
reroute_local = "100us"
[[workload]]
kind = "flows"
size = "100kB"
[[workload.flow]]
from = 0
to = 1
[[fault]]
link = "host 0 <-> plane 0 switch 0"
kind = "down"
at = "1ms"
[[fault]]
link = "host 0 <-> plane 1 switch 0"
kind = "down"
at = "1500us"
until = "2ms"
"#
        ));
        assert_eq!(summary.stalled.at_end, 0, "{policy}");
        assert!(summary.op_latency_us.count > 20, "{policy}");
    }
}

/// A ring of eight hosts with two ports; one port of host 3 dies. All operations end over the other port, with
/// each policy, and with one path per flow once the host and its peers avoid the port. Policies with feedback
/// lose few of the packets that a policy without feedback loses. Policies that keep a path lose none once they
/// have left the port.
#[test]
fn a_job_ends_over_the_ports_that_are_left() {
    let ring = |routing: &str, at: &str| {
        let summary = run_scenario(&format!(
            r#"
duration = "100ms"
topology = "leaf-spine planes=2 leaves=2 hosts_per_leaf=4 spines=2 100Gbps 1us"
algorithm = {{ name = "constant", window = 64.0, min_rto = "100us" }}
[routing]
{routing}
[[workload]]
kind = "all-reduce"
size = "4MB"
[[fault]]
link = "host 3 <-> plane 1 leaf 0"
kind = "down"
at = "{at}"
"#
        ));
        let job = &summary.jobs[0];
        assert_eq!(job.unfinished, 0, "{routing}: {:?}", job.stuck);
        (job.completion_us.expect("it ends"), summary.losses.causes.link_down)
    };
    let (_, deaf) = ring("balancer = \"oblivious\"", "50us");
    for policy in ["bitmap", "reps", "plb", "flowlet", "mixed"] {
        let (_, lost) = ring(&format!("balancer = \"{policy}\""), "50us");
        assert!(lost < deaf / 4, "{policy}: {lost} {deaf}");
    }
    // One path per flow: at most the windows of the two flows of host 3, and their timeouts.
    let told = "reroute_local = \"10us\"\nreroute_global = \"20us\"";
    let ((healthy, _), (slower, lost)) = (ring(told, "90ms"), ring(told, "50us"));
    assert!(lost <= 2 * 64 * 2, "{lost}");
    assert!(slower < healthy + 1000.0, "{slower} {healthy}");
}

/// One of two ports of the receiver is dead, without a notification, and the policy uses no feedback. Every
/// other packet is lost, and a window that losses have closed waits for a timeout for each of them. The flows
/// nevertheless continue: 245 packets need about as many timeouts, of 1 ms.
#[test]
fn windows_go_on_over_a_dead_port_that_nobody_reports() {
    for algorithm in ["swift", "cubic", "bolt", "mswift"] {
        for loss in ["time", "count", "ev-order", "timeout"] {
            let summary = run_scenario(&format!(
                r#"
duration = "1s"
topology = "star hosts=2 planes=2 25Gbps 1us 100MB"
algorithm = {{ name = "{algorithm}" }}
routing = {{ balancer = "oblivious", loss = "{loss}" }}
[[workload]]
kind = "trace"
flows = """
start_us,from,to,bytes
0,0,1,1000000
"""
[[fault]]
link = "plane 1 switch 0 -> host 1"
kind = "down"
at = "50us"
"#
            ));
            let took = summary.makespan_us.expect("the flow ends");
            assert!(took < 400_000.0, "{algorithm}, {loss}: {took}");
        }
    }
}

/// Hosts of a list of links may have several links, which must join all pairs, because hosts do not forward.
#[test]
fn hosts_of_a_list_of_links_have_the_links_that_it_gives_them() {
    let listed = |links: &[(&str, &str)]| {
        let link = |(a, b): &(&str, &str)| format!("[[topology.link]]\na = \"{a}\"\nb = \"{b}\"\n");
        let links: String = links.iter().map(link).collect();
        let head = message("", "", 1, 2).replace("topology = \"\"\n", "");
        let (head, job) = head.split_once("[[workload]]").expect("a workload");
        format!(
            "{head}[topology]\nkind = \"links\"\nrate = \"50Gbps\"\ndelay = \"1us\"\nbuffer = \"100MB\"\n\
             {links}{SPRAY}[[workload]]{job}"
        )
    };
    // 128 packets of 4160 B at 50 Gb/s on each of two ports, and one more packet time.
    let two = [("h0", "s0"), ("h1", "s0"), ("h0", "s1"), ("h1", "s1")];
    assert_near(time(&listed(&two)), 2.0 + 129.0 * 0.6656);
    let error = read(&listed(&[("h0", "s0"), ("h1", "s0"), ("h1", "s1"), ("h2", "s1")]));
    let error = error.expect_err("host 1 does not forward").to_string();
    assert!(error.contains("leaves no path from host 0 to host 2"), "{error}");
}

#[test]
fn rails_that_nothing_joins_are_one_group() {
    let refused = |line: &str| read(&message(line, "", 1, 2)).expect_err("refused").to_string();
    let error = refused("rails nodes=4 nodes_per_leaf=2 100Gbps 1us");
    assert!(error.contains("2 groups, which nothing joins"), "{error}");
    let error = refused("rails nodes=4 planes=16 100Gbps 1us");
    assert!(error.contains("128 ports; it has at most 64"), "{error}");
    // The jobs of a cluster without a network within nodes need one.
    let error = refused("rails nodes=4 100Gbps 1us");
    assert!(error.contains("local_rate"), "{error}");
}

/// An all-to-all of ranks with their own NICs on two planes, and random entropy values.
#[test]
fn results_of_hosts_with_several_ports_do_not_depend_on_threads() {
    let text = "duration = \"10ms\"\nalgorithm = { name = \"swift\" }\n\
        topology = \"rails nodes=4 nics=2 planes=2 nodes_per_leaf=2 spines=2 50Gbps 1us scale_up_rate=400Gbps\"\n\
        [routing]\nbalancer = \"reps\"\n[[workload]]\nkind = \"all-to-all\"\npattern = \"direct\"\nsize = \"4MB\"\n";
    let plan = good(text).runs[0].setup.plan().expect("plan");
    let run = |threads| {
        let simulation = Simulation::with_threads(&plan, threads).expect("plan");
        let summary = simulation.run("s", &mut |_| {}).expect("packets are conserved");
        assert!(summary.jobs[0].completion_us.is_some(), "{:?}", summary.jobs[0].stuck);
        let (work, jobs) = (&summary.work, &summary.jobs);
        (work.events, work.event_hash.clone(), format!("{jobs:?}"))
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

/// With fewer values than ports a NIC would move a packet to a value that the policy does not have.
#[test]
fn a_policy_needs_an_entropy_value_for_each_pair_of_ports() {
    let star = "star hosts=2 planes=4 25Gbps 1us 100MB";
    let scenario = |evs: u32| {
        let routing = format!("[routing]\nbalancer = \"oblivious evs={evs}\"\n");
        message(star, &routing, 1, 2)
    };
    let run = |evs| {
        let plan = good(&scenario(evs)).runs[0].setup.plan().expect("plan");
        Simulation::with_threads(&plan, 1).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(run(4), Ok(()));
    let error = run(2).expect_err("two values for four ports");
    assert!(error.contains("has 2 entropy values for 4 pairs of ports"), "{error}");
    assert!(error.contains("set `evs` of the policy to 4 or more"), "{error}");
}
