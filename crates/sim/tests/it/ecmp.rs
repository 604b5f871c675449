//! Jobs over ECMP with one path per flow, compared with the theory of balls in bins.
//!
//! Each flow takes one of the equal paths at random. With fluid max-min sharing, the last flow of a
//! permutation takes k times as long as without other flows, where k is the maximum number of flows on one
//! link. E[k] is drawn here from balls in bins on the links of the tree. For m balls in m bins, for both
//! directions of every leaf and pod, the formula m!/m^m [x^m] (sum over i <= j of x^i/i!)^m gives 2.96, 4.52
//! and 5.85 for fat trees of 4, 8 and 16 ports. This is slightly more, because it lets all flows leave their
//! leaf. htsim has 3.2 and 5.4 for 4 and 16 ports. The longer check (`APUS_ECMP=1`) has fat trees of 8 and 16
//! ports.

// The longer check prints its numbers next to the theory.
#![allow(clippy::print_stdout)]

use apus_jobs::collectives::{Algorithm, Collective};
use apus_jobs::{Graph, Op, ProgramBuilder};
use apus_sim::plan::JobPlan;
use apus_units::random::SplitMix64;
use apus_units::{HostId, Rate, Span};

use crate::jobs::{hosts, job_of, plan_on};
use crate::support::{Plan, Topology, run, tier};

/// Delay of a link.
const DELAY_US: f64 = 1.0;

fn fat_tree(k: u32) -> Topology {
    let links = tier(Rate::from_gbps(100), Span::from_us(1));
    Topology::fat_tree(k, k / 2, &links, &links, &links).expect("fat tree")
}

/// Returns a random order of ranks.
fn shuffled(ranks: u32, seed: u64) -> Vec<u32> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<u32> = (0..ranks).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, random.below(place as u64 + 1) as usize);
    }
    order
}

fn with_seed(plan: Plan, seed: u64) -> Plan {
    Plan { seed, ..plan }
}

/// Returns the slowdown of a job of `packets` packets per rank on a fat tree: its time over the time in which
/// it sends its packets, both without delays, which the theory does not have. The delays are the part of the
/// ideal time (the critical path without other messages) beyond the packets of its messages, `of_path`. If
/// the NICs need longer than that path, the delays are those of one message over six links.
fn slowdown(k: u32, job: JobPlan, (packets, of_path): (u32, u32), seed: u64) -> f64 {
    let plan = with_seed(plan_on(fat_tree(k), vec![job], 0), seed);
    let summary = run(&plan);
    let job = job_of(&summary);
    let [sending, path] = [packets, of_path].map(|packets| f64::from(packets) * 0.3328);
    let delays = match job.ideal_source {
        Some("bytes of the busiest NIC") => 6.0 * DELAY_US + 5.0 * 0.3328,
        _ => job.ideal_us.expect("ideal") - path,
    };
    (job.completion_us.expect("ends") - delays) / sending
}

/// Every rank sends `bytes` to the next rank in a random cycle, so that no rank sends to itself.
fn permutation(ranks: u32, bytes: u64, seed: u64) -> JobPlan {
    let order = shuffled(ranks, seed);
    let mut programs: Vec<_> = (0..ranks).map(|rank| ProgramBuilder::new(rank, ranks)).collect();
    for (place, from) in order.iter().enumerate() {
        let to = order[(place + 1) % order.len()];
        programs[*from as usize].push(Op::send(to, bytes, 0)).expect("op");
        programs[to as usize].push(Op::receive(*from, bytes, 0)).expect("op");
    }
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    JobPlan::new("permutation", Graph::new(programs.collect()).expect("graph"), hosts(ranks))
}

fn collective(algorithm: Algorithm, ranks: u32, bytes: u64, placed: Vec<u32>) -> JobPlan {
    let collective = Collective::new(algorithm, ranks, bytes);
    let graph = collective.graph().expect("graph");
    let hosts = placed.into_iter().map(HostId::new);
    JobPlan { collective: Some(collective), ..JobPlan::new("job", graph, hosts) }
}

/// Returns the maximum number of flows on a link if each flow takes a random path of the fat tree.
fn most_on_a_link(k: u32, flows: impl Iterator<Item = (u32, u32)>, random: &mut SplitMix64) -> f64 {
    let half = k / 2;
    let mut loads = std::collections::BTreeMap::new();
    let mut most = 1;
    for (from, to) in flows {
        let (edges, pods) = ([from / half, to / half], [from / half / half, to / half / half]);
        if edges[0] == edges[1] {
            continue;
        }
        let agg = random.below(u64::from(half)) as u32;
        let mut links = vec![(0, edges[0], agg, 0), (1, edges[1], agg, 0)];
        if pods[0] != pods[1] {
            let core = random.below(u64::from(half)) as u32;
            links.extend([(2, pods[0], agg, core), (3, pods[1], agg, core)]);
        }
        for link in links {
            let load = loads.entry(link).or_insert(0u32);
            *load += 1;
            most = most.max(*load);
        }
    }
    f64::from(most)
}

/// Returns E[k] of permutations, from a thousand random ones.
fn theory(k: u32) -> f64 {
    let ranks = k * k * k / 4;
    let mut random = SplitMix64::new(1);
    mean((0..1000).map(|seed| {
        let order = shuffled(ranks, 1000 + seed);
        let flows = (0..order.len()).map(|place| (order[place], order[(place + 1) % order.len()]));
        most_on_a_link(k, flows, &mut random)
    }))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// The mean slowdown of permutations is within a tenth of E[k], and E[k] is slightly below the formula.
fn check_permutation(k: u32, formula: f64, packets: u32, seeds: u64) {
    let (ranks, expected) = (k * k * k / 4, theory(k));
    assert!((0.85..1.02).contains(&(expected / formula)), "k = {k}: {expected}, formula {formula}");
    let bytes = u64::from(packets) * 4096;
    let found = mean(
        (0..seeds)
            .map(|seed| slowdown(k, permutation(ranks, bytes, seed), (packets, packets), seed)),
    );
    println!("permutation, k = {k}: {found:.3}, theory {expected:.3}, formula {formula}");
    assert!((found / expected - 1.0).abs() < 0.1, "k = {k}: {found}, theory {expected}");
}

/// With ranks in order, one flow leaves a leaf. With ranks in random order, each step of the ring waits for
/// the slowest flow, as in a permutation.
fn check_ring(k: u32, block: u32, seeds: u64) {
    let (ranks, expected) = (k * k * k / 4, theory(k));
    let (bytes, packets) = (u64::from(ranks) * u64::from(block) * 4096, (ranks - 1) * block);
    let ring = |placed| collective(Algorithm::RingReduceScatter, ranks, bytes, placed);
    let ordered = mean(
        (0..seeds).map(|seed| slowdown(k, ring((0..ranks).collect()), (packets, packets), seed)),
    );
    println!("ring in order, k = {k}: {ordered:.3}, theory 1");
    assert!((1.0..1.02).contains(&ordered), "k = {k}: {ordered}");
    let drawn = mean(
        (0..seeds).map(|seed| slowdown(k, ring(shuffled(ranks, seed)), (packets, packets), seed)),
    );
    println!("ring in random order, k = {k}: {drawn:.3}, theory {expected}");
    assert!((drawn / expected - 1.0).abs() < 0.15, "k = {k}: {drawn}, theory {expected}");
}

/// All messages at the same time: the link with the most flows decides, where the mean is N - 1 flows if
/// every rank has as many. With L leaves of m hosts it has about 1 + sqrt(2 ln(2 L m) / (N - m)) of the mean.
fn check_all_to_all(k: u32, block: u32, seeds: u64) {
    let ranks = k * k * k / 4;
    let mut random = SplitMix64::new(2);
    let pairs = || (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b)));
    let drawn = |_| most_on_a_link(k, pairs().filter(|(a, b)| a != b), &mut random);
    let theory = mean((0..20).map(drawn)) / f64::from(ranks - 1);
    let theory = theory.max(1.0);
    let job = || {
        let all = (0..ranks).collect();
        collective(
            Algorithm::AllToAllDirect,
            ranks,
            u64::from(ranks) * u64::from(block) * 4096,
            all,
        )
    };
    let found = mean((0..seeds).map(|seed| slowdown(k, job(), ((ranks - 1) * block, block), seed)));
    println!("all-to-all, k = {k}: {found:.3}, theory {theory:.3}");
    assert!((found / theory - 1.0).abs() < 0.15, "k = {k}: {found}, theory {theory}");
}

#[test]
fn jobs_over_ecmp_on_a_small_fat_tree_take_what_balls_in_bins_predict() {
    check_permutation(4, 2.96, 128, 60);
    check_ring(4, 64, 8);
    check_all_to_all(4, 8, 12);
}

/// Five minutes of CPU time in the profile of tests, most of them for the ring on 16 ports.
#[test]
fn jobs_over_ecmp_on_larger_fat_trees_take_what_balls_in_bins_predict() {
    if std::env::var_os("APUS_ECMP").is_none() {
        return;
    }
    check_permutation(8, 4.52, 256, 20);
    check_permutation(16, 5.85, 256, 8);
    check_ring(8, 64, 2);
    check_all_to_all(8, 8, 3);
    check_all_to_all(16, 1, 1);
    check_ring(16, 32, 1);
}
