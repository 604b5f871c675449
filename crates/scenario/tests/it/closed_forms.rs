//! Closed forms of completion times and shares: one path, and several.

use apus_scenario::Simulation;
use apus_scenario::{Options, Scenario, Source};
use apus_sim::summary::Summary;

fn run(text: &str) -> Summary {
    let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
    let options = Options::default();
    let scenario = Scenario::read(&source, &|n| Err(n.to_owned()), &options);
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let simulation = Simulation::with_threads(&plan, 1).expect("plan");
    simulation.run("s", &mut |_| {}).expect("packets are conserved")
}

/// One flow of 2 MB in an empty k = 8 fat tree of 100 Gb/s and 1 us per link, of packets of 4096 + 64 B with
/// acknowledgements of 64 B. S_w = 2 MB + 489 * 64 B; with H links it ends at S_w/C + (H - 1) * 4160 B/C + H * 1 us +
/// H * (1 us + 64 B/C).
#[test]
fn a_lone_flow_ends_at_the_ideal_time_to_the_picosecond() {
    // By host of the same rack, of the same pod, and of another pod.
    for (to, ideal_ns) in [(1, 166_846.72), (4, 171_522.56), (127, 176_198.4)] {
        for routing in ["", "[routing]\nbalancer = \"oblivious evs=1\"\n"] {
            let text = format!(
                r#"
duration = "1ms"
warmup = "0s"
topology = {{ kind = "fat-tree", k = 8, rate = "100Gbps", delay = "1us", buffer = "1MB", ecn = {{ threshold = "500kB" }} }}
packets = {{ payload = "4096B", header = "64B", control = "64B" }}
algorithm = {{ name = "nscc", profile = "drop-tail" }}
{routing}
[[workload]]
kind = "trace"
flows = """
start_us,from,to,bytes
0,0,{to},2000000
"""
"#
            );
            let summary = run(&text);
            let found = summary.makespan_us.expect("the flow ends") * 1e3;
            assert!(
                (found - ideal_ns).abs() < 1e-3,
                "to {to}: {found} ns, not {ideal_ns} {routing}"
            );
        }
    }
}

/// n flows on n equal links by hash: each link carries a flow with probability 1 - (1 - 1/n)^n, so the mean
/// share is 0.684 for 4 and 0.656 for 8. The variance of the occupied links in a draw of 8 is 0.62. The mean of
/// 24 draws therefore has a deviation of 0.020 of the links, and the mean of 48 draws of 4 one of 0.025.
#[test]
fn flows_by_hash_fill_one_minus_one_over_e_of_the_links() {
    for (links, draws, expected, band) in [(4, 48, 0.684, 0.075), (8, 24, 0.656, 0.06)] {
        let flow = |host| format!("[[workload.flow]]\nfrom = {host}\nto = {}\n", host + links);
        let flows: String = (0..links).map(flow).collect();
        let share = |seed| {
            let text = format!(
                r#"
seed = {seed}
duration = "100us"
warmup = "40us"
topology = {{ kind = "leaf-spine", leaves = 2, spines = {links}, hosts_per_leaf = {links}, rate = "100Gbps", delay = "1us", buffer = "unlimited" }}
algorithm = {{ name = "constant", window = 32.0 }}
[[workload]]
kind = "flows"
size = "10MB"
{flows}"#
            );
            run(&text).goodput_gbps / (links as f64 * 100.0 * 4096.0 / 4160.0)
        };
        let mean = (0..draws).map(share).sum::<f64>() / f64::from(draws);
        assert!((mean - expected).abs() < band, "{links} links: {mean}, not {expected}");
    }
}

/// Random permutations over whole trees with one path per flow, all flows endless. Expected is the mean rate of
/// max-min fair shares by Monte Carlo; single draws are within 5 % of it. NSCC's shares are near to these
/// rates: here the mean of six draws.
#[test]
fn permutations_by_hash_get_the_mean_rate_of_max_min_fairness() {
    for (tree, expected) in [
        ("kind = \"fat-tree\"\nk = 8", 0.478),
        ("kind = \"leaf-spine\"\nleaves = 16\nspines = 8\nhosts_per_leaf = 8", 0.566),
        ("kind = \"leaf-spine\"\nleaves = 8\nspines = 16\nhosts_per_leaf = 16", 0.602),
    ] {
        let share = |seed| {
            let text = format!(
                r#"
seed = {seed}
duration = "600us"
warmup = "300us"
[topology]
{tree}
rate = "100Gbps"
delay = "1us"
buffer = "1MB"
ecn = {{ k_min = "37440B", k_max = "145600B", p_max = 1.0 }}
[algorithm]
name = "nscc"
profile = "drop-tail"
[[workload]]
kind = "permutation"
size = "1GB"
"#
            );
            run(&text).goodput_gbps / (128.0 * 100.0 * 4096.0 / 4160.0)
        };
        let mean = (1..=6).map(share).sum::<f64>() / 6.0;
        assert!((mean / expected - 1.0).abs() < 0.05, "{tree}: {mean}, not {expected}");
    }
}

/// Four hosts spray packets onto four ports at the rate of the ports, each packet by an independent draw. The
/// mean queue after t packet times is sqrt(2 (1 - 1/n) t / pi), so its mean over a time T is 2/3 of the value
/// at T. After 164 us, 492.8 packet times of 4160 B: 10.2 packets. 24 runs of 4 ports have a standard error of
/// 0.2.
#[test]
fn queues_of_random_spraying_grow_as_the_root_of_time() {
    let flow = |host| format!("[[workload.flow]]\nfrom = {host}\nto = {}\n", host + 4);
    let flows: String = (0..4).map(flow).collect();
    let queue = |seed| {
        let text = format!(
            r#"
seed = {seed}
duration = "164us"
topology = {{ kind = "leaf-spine", leaves = 2, spines = 4, hosts_per_leaf = 4, rate = "100Gbps", delay = "1us", buffer = "unlimited" }}
algorithm = {{ name = "constant", window = 1000.0, min_rto = "100ms", initial_rto = "100ms" }}
routing = {{ balancer = "oblivious form=random evs=65536", loss = "timeout", range = 16384 }}
measure = {{ window = "10us", ports = {{ up = ["leaf 0 -> spine *"] }} }}
[[workload]]
kind = "flows"
size = "1GB"
{flows}"#
        );
        let summary = run(&text);
        summary.ports["up"].totals.queue_bytes.mean.expect("measured") / 4160.0
    };
    let mean = (1..=24).map(queue).sum::<f64>() / 24.0;
    let packets: f64 = 164e-6 * 100e9 / (4160.0 * 8.0);
    let expected = 2.0 / 3.0 * (2.0 * 0.75 * packets / std::f64::consts::PI).sqrt();
    assert!((mean / expected - 1.0).abs() < 0.08, "{mean}, not {expected}");
}
