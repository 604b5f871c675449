//! Connection matrices of htsim as jobs with one path per flow, compared with the published times of uet-htsim
//! (validate_outputs, NSCC at 100 Gb/s with links of 1 us). In htsim a flow ends with its last acknowledgement.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use apus_units::random::SplitMix64;

use crate::support::run_scenario;

/// Returns the completion time of flows of 2,000,000 B on a fat tree of 16 hosts.
fn time(flows: impl ExactSizeIterator<Item = (u32, u32)>) -> f64 {
    time_on(4, 2_000_000, 1, flows)
}

/// Returns the completion time of flows on a fat tree of switches with `k` ports.
fn time_on(k: u32, bytes: u64, seed: u64, flows: impl ExactSizeIterator<Item = (u32, u32)>) -> f64 {
    let nodes = k * k * k / 4;
    let mut matrix = format!("Nodes {nodes}\\nConnections {}\\n", flows.len());
    for (from, to) in flows {
        write!(matrix, "{from}->{to} start 0 size {bytes}\\n").expect("a text");
    }
    let summary = run_scenario(&format!(
        r#"
duration = "100ms"
seed = {seed}
ends_with_ops = true
packets = {{ payload = "4096B", header = "64B", control = "64B" }}

[topology]
kind = "fat-tree"
k = {k}
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
ecn = {{ k_min = "37440B", k_max = "145600B", p_max = 1.0, at = "dequeue" }}

[algorithm]
name = "nscc"
profile = "trimming"
network_rtt = "14027.52ns"
target_queueing = "10520.64ns"
rto = "100862.4ns"

[[workload]]
kind = "job"
class = "data"
done = "acknowledged"
operations = "{matrix}"
"#
    ));
    let job = summary.jobs.first().expect("a job");
    assert_eq!((job.unfinished, job.unexpected), (0, 0), "{:?}", job.stuck);
    job.completion_us.expect("it ends")
}

/// By hand: 489 packets with a total of 2,031,296 B take 162.5037 us on a link. The path adds 5 packet times of
/// 0.3328 us and 6 us, and the acknowledgement of 64 B adds 6 us and 6 times 5.12 ns: 176.1984 us.
#[test]
fn one_flow_takes_the_time_of_htsim() {
    let found = time([(0, 13)].into_iter());
    assert!((found - 176.1984).abs() < 1e-3, "{found}");
    assert!((found / 176.2 - 1.0).abs() < 0.001, "{found}");
}

#[test]
fn two_flows_against_each_other_take_the_time_of_htsim_within_five_percent() {
    let found = time([(0, 13), (13, 0)].into_iter());
    assert!((found / 176.8 - 1.0).abs() < 0.05, "{found}");
}

#[test]
fn an_incast_of_fifteen_flows_takes_the_time_of_htsim_within_five_percent() {
    let found = time((0..15).map(|from| (from, 15)));
    assert!((found / 2478.5 - 1.0).abs() < 0.05, "{found}");
}

/// Flows of 2 MB on 128 hosts to host 33, as in incast_128.cm, and of 100 KB on 1024 hosts to host 0, as in
/// incast_1024_100K.cm of uet-htsim. The last link limits them, so paths have little effect.
#[test]
fn incasts_of_127_and_1023_flows_take_the_times_of_htsim_within_five_percent() {
    let others = |hosts: u32, to: u32| {
        let from: Vec<u32> = (0..hosts).filter(|from| *from != to).collect();
        from.into_iter().map(move |from| (from, to))
    };
    for (k, bytes, to, published) in [(8, 2_000_000, 33, 21_029.0), (16, 100_000, 0, 10_556.0)] {
        let found = time_on(k, bytes, 1, others(k * k * k / 4, to));
        assert!((found / published - 1.0).abs() < 0.05, "{found}, not {published}");
    }
}

/// The pairs of perm_16n_16c_2MB.cm (csg-htsim, BSD 2-clause).
const PERMUTATION: [(u32, u32); 16] = [
    (7, 5),
    (15, 1),
    (0, 13),
    (14, 8),
    (1, 3),
    (6, 7),
    (5, 11),
    (9, 12),
    (11, 4),
    (3, 14),
    (12, 15),
    (2, 10),
    (13, 2),
    (10, 6),
    (4, 0),
    (8, 9),
];

/// Returns mean and standard deviation of the number of flows on the fullest link of a fat tree of switches
/// with `ports` ports, where each flow is on one of its paths at random.
fn fullest_link(ports: u32, flows: &[(u32, u32)], draws: u32) -> (f64, f64) {
    let (half, mut random) = (ports / 2, SplitMix64::new(1));
    let most = |_| {
        let mut loads = BTreeMap::from([((0, 0, 0, 0), 1u32)]);
        for (from, to) in flows {
            let (edges, pods) = ([from, to].map(|h| h / half), [from, to].map(|h| h / half / half));
            if edges[0] == edges[1] {
                continue;
            }
            let aggregation = random.below(u64::from(half));
            let mut links = vec![(1, edges[0], aggregation, 0), (2, edges[1], aggregation, 0)];
            if pods[0] != pods[1] {
                let core = random.below(u64::from(half));
                links.extend([(3, pods[0], aggregation, core), (4, pods[1], aggregation, core)]);
            }
            for link in links {
                *loads.entry(link).or_default() += 1;
            }
        }
        f64::from(loads.into_values().max().unwrap_or(1))
    };
    let all: Vec<f64> = (0..draws).map(most).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let squares = all.iter().map(|most| (most - mean).powi(2));
    (mean, (squares.sum::<f64>() / all.len() as f64).sqrt())
}

/// A lone flow takes 176.1984 us (see above), of which 162.5037 us are those of its bytes.
const BYTES_US: f64 = 162.5037;
const ALONE_US: f64 = 176.1984;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// With one path per flow the time depends on the random paths. If k flows share the fullest link, the last of
/// them cannot end before the link has carried the bytes of k flows, and ends before the link could have
/// carried those of another flow. The times therefore show k, whose mean over the draws is that of balls in
/// bins, within three standard errors (0.22 flows). The published time is that of a draw with three.
#[test]
fn permutations_of_16_hosts_on_single_paths_take_the_times_of_balls_in_bins_and_of_htsim() {
    let times: Vec<f64> =
        (0..40).map(|seed| time_on(4, 2_000_000, seed, PERMUTATION.into_iter())).collect();
    let flows = |time: &f64| ((time - ALONE_US) / BYTES_US + 1.0).floor();
    let most: Vec<f64> = times.iter().map(flows).collect();
    let (expected, deviation) = fullest_link(4, &PERMUTATION, 10_000);
    let error = deviation / f64::sqrt(40.0);
    let found = mean(&most);
    assert!((found - expected).abs() < 3.0 * error, "{found}, not {expected}: {times:.1?}");
    let three: Vec<f64> = times.into_iter().filter(|time| flows(time) == 3.0).collect();
    assert!((mean(&three) / 527.8 - 1.0).abs() < 0.05, "{three:.1?}");
}

/// Random permutations of 1024 hosts are compared with the theory of balls in bins. The last flow takes E[k] =
/// 5.85 times 162.5 us, and 12 us of delays. k has a standard deviation of 0.66 (1500 draws), so the mean of
/// ten times has a standard error of 34 us. A tenth of the theoretical time, 96 us, is 2.8 standard errors. A
/// longer check (`APUS_HTSIM=1`).
#[test]
fn permutations_of_1024_hosts_on_single_paths_take_the_time_of_htsim_for_some_paths() {
    if std::env::var_os("APUS_HTSIM").is_none() {
        return;
    }
    let mut times = Vec::new();
    for seed in 0..10 {
        let mut order: Vec<u32> = (0..1024).collect();
        let mut random = SplitMix64::new(seed);
        for place in (1..order.len()).rev() {
            // Sattolo's algorithm: a cycle, so that no host sends to itself.
            order.swap(place, random.below(place as u64) as usize);
        }
        times.push(time_on(16, 2_000_000, seed, (0..1024).zip(order.clone())));
    }
    writeln!(std::io::stdout(), "permutations of 1024, us: {times:.1?}").expect("stdout");
    times.sort_by(f64::total_cmp);
    assert!(times[0] < 889.9 && 889.9 < times[9], "{times:?}");
    let mean = mean(&times);
    assert!((mean / (5.85 * 162.5 + 12.0) - 1.0).abs() < 0.1, "{mean}");
}

/// The matrix perm_1024n_1024c_0u_2000000b.cm, which experiment uec/permutation-1024 uses, sprayed over the
/// leaf-spines of leaf_spine_1024_oversub.topo and leaf_spine_1024_oversub_8-1.topo: 32 leaves of 32 hosts, and
/// 8 or 4 spines. Queues, marks and times follow from the base RTT of 4 links, 9348.48 ns, as in that
/// experiment: a bandwidth-delay product of 29 packets of 4150 B, marks from 0.2 to 0.8 of it, a timeout of 15
/// us and 4 full queues. A longer check (`APUS_HTSIM=1`).
#[test]
fn permutations_over_oversubscribed_leaf_spines_take_the_times_of_htsim_within_five_percent() {
    if std::env::var_os("APUS_HTSIM").is_none() {
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../apus/scenarios/uec/permutation-1024.toml");
    let text = std::fs::read_to_string(file).expect("the repository");
    let (_, flows) = text.split_once("flows = \"\"\"").expect("flows");
    let (flows, _) = flows.split_once("\"\"\"").expect("flows");
    for (factor, published) in [(4, 785.8), (8, 1443.4)] {
        let summary = run_scenario(&format!(
            r#"
duration = "5ms"
ends_with_ops = true
packets = {{ payload = "4086B", header = "64B", control = "64B" }}

[topology]
kind = "leaf-spine"
leaves = 32
hosts_per_leaf = 32
oversubscription = {factor}
rate = "100Gbps"
delay = "1us"
buffer = "unlimited"
ack_class = "headers"

[[topology.class]]
name = "headers"
limit = "240700B"

[[topology.class]]
name = "data"
priority = 1
limit = "120350B"
trim_to = "headers"
ecn = {{ k_min = "24900B", k_max = "99600B", p_max = 1.0, at = "dequeue" }}

[routing]
balancer = "bitmap evs=128"
ack_path = "own"
ack_bytes = "16384B"
loss = "timeout"

[algorithm]
name = "nscc"
profile = "trimming"
network_rtt = "9348.48ns"
target_queueing = "7011.36ns"
rto = "53512ns"

[[workload]]
kind = "trace"
class = "data"
flows = """{flows}"""
"#
        ));
        let found = summary.makespan_us.expect("it ends");
        writeln!(std::io::stdout(), "leaf-spine {factor}:1: {found:.1} us, published {published}")
            .expect("stdout");
        assert!((found / published - 1.0).abs() < 0.05, "{factor}:1: {found}, not {published}");
    }
}
