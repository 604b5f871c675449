//! Collectives on ideal NICs: their closed forms, and the bytes that each rank sends.

use apus_jobs::collectives::closed::{self, Form};
use apus_jobs::collectives::{Algorithm, Collective, Composer};
use apus_jobs::ideal::{Cost, Limits, run};
use apus_jobs::{Action, Done, Op};
use apus_units::{Bytes, Rate, Span};

const RATE: Rate = Rate::from_gbps(100);

/// Returns the times on a star with packets of 4096 B and 64 B of headers, links of 100 Gb/s and 1 us.
fn star(bytes: u64) -> Cost {
    let wire = Bytes::new(bytes + 64 * bytes.div_ceil(4096));
    let last = bytes - bytes.saturating_sub(1) / 4096 * 4096;
    let forward = RATE.serialization_time(Bytes::new(last.min(4096) + 64));
    let latency = Span::from_us(2) + forward;
    Cost { occupies: RATE.serialization_time(wire), latency, acknowledgement: Span::ZERO }
}

/// Returns an exact cost without rounding: 8 ps per byte and a latency.
fn fluid(bytes: u64) -> Cost {
    let occupies = Span::from_ps(8 * bytes);
    Cost { occupies, latency: Span::from_ns(700), acknowledgement: Span::ZERO }
}

fn simulated(collective: &Collective, cost: fn(u64) -> Cost) -> Span {
    let graph = collective.graph().expect("graph");
    let outcome = run(&graph, Done::Delivered, Limits::Serial, |message| cost(message.bytes));
    assert_eq!((outcome.unfinished(), outcome.unexpected()), (0, 0), "{collective:?}");
    outcome.completion
}

fn us(us: f64) -> Span {
    Span::from_ps_f64(us * 1e6)
}

/// Computed by hand from packets of 4096 B and 64 B of headers: a message of 1 MiB, and 8 ranks with 8 MiB.
#[test]
fn a_star_of_100_gbps_gives_the_computed_times() {
    assert_eq!(star(1 << 20).alone(), us(87.5296));
    for (algorithm, time) in [
        (Algorithm::RingAllReduce, 1225.4144),
        (Algorithm::HalvingDoubling, 1206.7520),
        (Algorithm::AllToAllPairwise, 612.7072),
        (Algorithm::AllToAllDirect, 598.7104),
    ] {
        let collective = Collective::new(algorithm, 8, 8 << 20);
        assert_eq!(closed::time(&collective, star), Some(Form::Exact(us(time))), "{algorithm:?}");
        assert_eq!(simulated(&collective, star), us(time), "{algorithm:?}");
    }
    let ring = Collective::new(Algorithm::RingAllReduce, 8, 8 << 20);
    let bus = closed::bus_bandwidth(&ring, us(1225.4144)).expect("bandwidth");
    assert!((bus / 8e9 - 11.980).abs() < 0.0005, "{bus}");
}

/// Returns the algorithms with a closed form.
fn exact(ranks: u32) -> Vec<Algorithm> {
    let (forward, backward) = (Span::from_us(30), Span::from_us(50));
    let mut all = vec![
        Algorithm::RingReduceScatter,
        Algorithm::RingAllGather,
        Algorithm::RingAllReduce,
        Algorithm::HalvingDoubling,
        Algorithm::BroadcastBinomial,
        Algorithm::BroadcastChain { chunks: 1 },
        Algorithm::BroadcastChain { chunks: 8 },
        Algorithm::AllToAllDirect,
        Algorithm::AllToAllPairwise,
        Algorithm::AllToAllBruck,
        Algorithm::Pipeline { micro_batches: 1, forward, backward },
        Algorithm::Pipeline { micro_batches: 6, forward, backward },
    ];
    let groups = (2..ranks).filter(|group| ranks.is_multiple_of(*group));
    all.extend(groups.map(|group| Algorithm::Hierarchical { group }));
    all
}

#[test]
fn collectives_of_2_to_64_ranks_take_the_time_of_their_closed_form() {
    for ranks in 2..=64u32 {
        for algorithm in exact(ranks) {
            // The number of bytes is divisible by all numbers of ranks and pieces that occur here.
            let bytes = u64::from(ranks) * 64 * 48;
            let collective = Collective::new(algorithm, ranks, bytes);
            let found = simulated(&collective, fluid);
            match closed::time(&collective, fluid).expect("closed form") {
                Form::Exact(time) => assert_eq!(found, time, "{ranks} ranks, {algorithm:?}"),
                Form::AtLeast(time) => {
                    // Halves of other ranks may arrive before the data of the ranks beyond the power of two.
                    let latest = Span::from_ps(time.as_ps() * 5 / 4);
                    assert!((time..=latest).contains(&found), "{ranks} ranks, {time} {found}");
                    assert!(algorithm == Algorithm::HalvingDoubling && !ranks.is_power_of_two());
                }
                Form::About(_) => panic!("{algorithm:?} has an exact form"),
            }
        }
    }
}

/// Every rank waits for its own part of the previous iteration, and the ranks that end last begin the next one.
#[test]
fn iterations_with_computations_between_add_up() {
    for ranks in [2u32, 3, 6, 8, 16] {
        for algorithm in exact(ranks) {
            let once = Collective::new(algorithm, ranks, u64::from(ranks) * 64 * 48);
            let repeated = Collective { compute: Span::from_us(20), iterations: 3, ..once };
            let found = simulated(&repeated, fluid);
            let expected = Span::from_ps((simulated(&once, fluid).as_ps() + 20_000_000) * 3);
            match closed::time(&repeated, fluid) {
                Some(Form::Exact(form)) => {
                    assert_eq!((found, form), (expected, expected), "{ranks} ranks, {algorithm:?}");
                }
                Some(Form::AtLeast(form)) => {
                    assert!(found >= form, "{ranks} ranks: {found} {form}")
                }
                form => assert_eq!((algorithm.name(), form), ("broadcast", None)),
            }
        }
    }
}

/// Rank 0 begins the second broadcast when its first one has arrived at rank 1, not at rank 3: three messages
/// one after the other along the chain, and one more.
#[test]
fn repeated_broadcasts_overlap() {
    let algorithm = Algorithm::BroadcastChain { chunks: 1 };
    let twice = Collective { iterations: 2, ..Collective::new(algorithm, 4, 4096) };
    let message = fluid(4096).alone().as_ps();
    assert_eq!(simulated(&twice, fluid).as_ps(), 4 * message);
}

/// Returns the bytes that each rank sends.
fn sent(collective: &Collective) -> Vec<u64> {
    let graph = collective.graph().expect("graph");
    let bytes = |action| if let Action::Send { bytes, .. } = action { bytes } else { 0 };
    graph.programs().map(|p| p.ops().map(|op| bytes(op.action)).sum()).collect()
}

/// Each algorithm sends the bytes that its paper states.
#[test]
fn ranks_send_what_the_algorithms_say() {
    for ranks in 2..=64u32 {
        let n = u64::from(ranks);
        let bytes = n * 64 * 8;
        let block = bytes / n;
        let of = |algorithm| sent(&Collective::new(algorithm, ranks, bytes));
        let all = |each: u64| vec![each; ranks as usize];
        assert_eq!(of(Algorithm::RingReduceScatter), all((n - 1) * block));
        assert_eq!(of(Algorithm::RingAllReduce), all(2 * (n - 1) * block));
        assert_eq!(of(Algorithm::AllToAllDirect), all((n - 1) * block));
        assert_eq!(of(Algorithm::AllToAllPairwise), all((n - 1) * block));
        let paired = 1u64 << ranks.ilog2();
        let each = 2 * (paired - 1) * bytes / paired;
        let expected = (0..n).map(|rank| match rank {
            rank if rank >= paired => bytes,
            rank if rank + paired < n => each + bytes,
            _ => each,
        });
        assert_eq!(of(Algorithm::HalvingDoubling), expected.collect::<Vec<_>>(), "{ranks}");
        let tree = of(Algorithm::DoubleBinaryTree { chunks: 4 });
        assert!(tree.iter().all(|each| *each <= 2 * bytes), "{ranks}: {tree:?}");
        // Each of two trees has N - 1 edges, and each edge carries half of the data up and down.
        assert_eq!(tree.iter().sum::<u64>(), 2 * (n - 1) * bytes, "{ranks}");
        if ranks.is_power_of_two() {
            let steps = u64::from(ranks.ilog2());
            assert_eq!(of(Algorithm::AllToAllBruck), all(steps * bytes / 2));
        }
    }
}

/// The double tree takes about 2 S / B for many chunks. A window of N - 1 is the direct all-to-all.
#[test]
fn algorithms_with_an_approximate_form_are_near_it() {
    for ranks in [2u32, 3, 5, 8, 13, 16, 32, 64] {
        let about = |algorithm, bytes| {
            let collective = Collective::new(algorithm, ranks, bytes);
            let Some(Form::About(form)) = closed::time(&collective, fluid) else {
                panic!("{algorithm:?}: no approximation");
            };
            let found = simulated(&collective, fluid);
            (found, found.as_ps_f64() / form.as_ps_f64())
        };
        let (_, ratio) = about(Algorithm::DoubleBinaryTree { chunks: 64 }, 16 << 20);
        // With two ranks, each half of the data is sent once in each direction: S / B. Messages of one tree
        // that wait at a NIC for messages of the other tree cost up to a quarter more.
        let least = if ranks == 2 { 0.45 } else { 0.7 };
        assert!((least..1.25).contains(&ratio), "{ranks} ranks: {ratio}");
        let bytes = u64::from(ranks) * 4096;
        let exactly = |algorithm| simulated(&Collective::new(algorithm, ranks, bytes), fluid);
        let (wide, ratio) = about(Algorithm::AllToAllWindow { window: ranks - 1 }, bytes);
        assert_eq!((wide, ratio), (exactly(Algorithm::AllToAllDirect), 1.0));
        let (one, ratio) = about(Algorithm::AllToAllWindow { window: 1 }, bytes);
        assert_eq!((one, ratio), (exactly(Algorithm::AllToAllPairwise), 1.0));
    }
}

#[test]
fn channels_divide_the_data_and_the_nics() {
    let one = Collective::new(Algorithm::RingAllReduce, 8, 8 << 20);
    let four = Collective { channels: 4, ..one };
    let quarter = Collective { bytes: 2 << 20, ..one };
    assert_eq!(sent(&four), sent(&one));
    assert_eq!(simulated(&four, fluid), simulated(&quarter, fluid));
}

#[test]
fn values_out_of_range_are_errors_that_name_them() {
    let ring = Collective::new(Algorithm::RingAllReduce, 8, 1 << 20);
    let zero = Algorithm::BroadcastChain { chunks: 0 };
    for (collective, message) in [
        (Collective { ranks: 1, ..ring }, "ranks: 1; it must be at least 2"),
        (Collective { iterations: 0, ..ring }, "iterations: 0; it must be at least 1"),
        (Collective { channels: 257, ..ring }, "channels: 257; it must be 1 to 256"),
        (Collective { bytes: 7, ..ring }, "bytes: 7; it must be at least 8, one byte per message"),
        (Collective { algorithm: zero, ..ring }, "chunks: 0; it must be at least 1"),
        (
            Collective { algorithm: Algorithm::Hierarchical { group: 3 }, ..ring },
            "ranks of a group: 3; it must be a divisor of 8 between 1 and it",
        ),
    ] {
        assert_eq!(collective.graph().expect_err(message).to_string(), message);
    }
}

/// PXN: a rank sends (M - 1) S / M through the fabric in M - 1 messages, and M (G - 1) blocks within its node.
#[test]
fn an_all_to_all_by_rail_sends_one_message_per_node_and_rail() {
    for (nodes, group) in [(2u32, 2u32), (3, 4), (8, 8), (5, 3)] {
        let ranks = nodes * group;
        let bytes = u64::from(ranks) * 480;
        let collective = Collective::new(Algorithm::AllToAllRail { group }, ranks, bytes);
        let graph = collective.graph().expect("graph");
        for (rank, program) in (0..).zip(graph.programs()) {
            let (mut within, mut across) = ((0, 0), (0, 0));
            for op in program.ops() {
                let Action::Send { to, bytes, .. } = op.action else { continue };
                let is_within = to / group == rank / group;
                assert!(is_within || to % group == rank % group, "{to} is on another rail");
                let sum: &mut (u64, u64) = if is_within { &mut within } else { &mut across };
                *sum = (sum.0 + 1, sum.1 + bytes);
            }
            let (m, g) = (u64::from(nodes), u64::from(group));
            assert_eq!(across, (m - 1, (m - 1) * bytes / m), "{nodes} x {group}");
            assert_eq!(within, (m * (g - 1), m * (g - 1) * 480), "{nodes} x {group}");
        }
        // A rank sends as many blocks as in the direct all-to-all, so its NIC cannot be faster.
        let direct = simulated(&Collective::new(Algorithm::AllToAllDirect, ranks, bytes), fluid);
        let found = simulated(&collective, fluid);
        assert!(found >= direct && found < direct + direct + direct, "{found} {direct}");
    }
}

/// ASTRA-sim's regression test `rt_template`: an all-reduce of 1 MiB among 8 NPUs in a ring, in 4 chunks one
/// after the other, over links of 50 GiB/s and 500 ns. Of its 117,780 ns the network takes 4 * 14 * 1110: a
/// message of 32 KiB takes 610 ns, truncated to whole ns, and 500 ns. The rest is delays of its end points,
/// which have no counterpart here.
#[test]
fn a_ring_in_four_chunks_takes_the_network_time_of_astra_sim() {
    let chunk = Collective::new(Algorithm::RingAllReduce, 8, (1 << 20) / 4);
    let chunks = Collective { iterations: 4, ..chunk };
    let cost = |bytes: u64| {
        assert_eq!(bytes, 32 << 10);
        let occupies = Span::from_ns(bytes * 1_000_000_000 / (50 << 30));
        Cost { occupies, latency: Span::from_ns(500), acknowledgement: Span::ZERO }
    };
    assert_eq!(simulated(&chunks, cost), Span::from_ns(62_160));
}

/// Every algorithm that a composed job may have: with the data of all ranks (`true`), or of the first rank.
const COMPOSED: [(Algorithm, bool); 12] = [
    (Algorithm::RingReduceScatter, true),
    (Algorithm::RingAllGather, true),
    (Algorithm::RingAllReduce, true),
    (Algorithm::HalvingDoubling, true),
    (Algorithm::DoubleBinaryTree { chunks: 2 }, true),
    (Algorithm::Hierarchical { group: 2 }, true),
    (Algorithm::AllToAllRail { group: 2 }, true),
    (Algorithm::AllToAllDirect, true),
    (Algorithm::AllToAllPairwise, true),
    (Algorithm::AllToAllBruck, true),
    (Algorithm::BroadcastBinomial, false),
    (Algorithm::BroadcastChain { chunks: 2 }, false),
];

/// A slow rank computes for 1 ms on stream 1 before a collective on stream 0. Another rank, or the same one,
/// computes for 1 ms after it. If the second rank needs data of the first, or is the first, the job takes 2
/// ms, because messages take no time here.
#[test]
fn a_collective_ends_nowhere_before_the_ranks_whose_data_it_needs_have_entered_it() {
    let ms = Span::from_ms(1);
    let none = |_| Cost { occupies: Span::ZERO, latency: Span::ZERO, acknowledgement: Span::ZERO };
    for (algorithm, of_all) in COMPOSED {
        let ranks: Vec<u32> = (0..6).collect();
        for slow in 0..6 {
            for late in (0..6).filter(|late| of_all || slow == 0 || slow == *late) {
                let mut composer = Composer::new(6);
                let before = composer.op(slow, Op::compute(ms).on_cpu(1), &[]).expect("an op");
                let mut after = vec![Vec::new(); 6];
                // A rank waits for several operations.
                let other = composer.op(slow, Op::compute(Span::ZERO), &[]).expect("an op");
                after[slow as usize] = vec![before, other];
                composer.collective(&ranks, algorithm, 1 << 20, 0, &mut after).expect("it fits");
                let ends = &after[late as usize];
                composer.op(late, Op::compute(ms).on_cpu(1), ends).expect("an op");
                let graph = composer.finish().expect("a graph");
                let outcome = run(&graph, Done::Delivered, Limits::Serial, none);
                assert_eq!((outcome.unfinished(), outcome.unexpected()), (0, 0));
                assert_eq!(outcome.completion, ms + ms, "{algorithm:?}: {slow}, then {late}");
            }
        }
    }
}
