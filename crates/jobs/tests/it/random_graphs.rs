//! Random jobs end without leftovers, and not before their critical path.

use apus_jobs::ideal::{Cost, Limits, run};
use apus_jobs::loggops::{self, Parameters};
use apus_jobs::{ANY, Done, Graph, Op, ProgramBuilder};
use apus_units::random::SplitMix64;
use apus_units::{Span, Time};
use proptest::prelude::*;

/// Generates any graph; its messages need not match.
pub(crate) fn any_graph() -> impl Strategy<Value = Graph> {
    (any::<u64>(), 1..6u32, 0..30u32).prop_map(|(seed, ranks, ops)| {
        let mut random = SplitMix64::new(seed);
        let mut below = |n: u64| random.below(n);
        let program = |rank| {
            let mut builder = ProgramBuilder::new(rank, ranks);
            for number in 0..ops {
                let (peer, bytes) = (below(u64::from(ranks)) as u32, below(100_000));
                let tag = if below(5) == 0 { ANY } else { below(4) as u32 };
                let from = if below(5) == 0 { ANY } else { peer };
                let cpu = below(3) as u8;
                let op = match below(3) {
                    0 => Op::send(peer, bytes, tag).on_nic(below(2) as u8),
                    1 => Op::receive(from, bytes, tag).on_nic(below(2) as u8),
                    _ => Op::compute(Span::from_ns(bytes)),
                };
                builder.push(op.on_cpu(cpu)).expect("op");
                for _ in 0..below(3) {
                    // Of two operations, the later one waits.
                    if number > 0 {
                        let awaited = below(u64::from(number)) as u32;
                        if below(3) == 0 {
                            builder.irequires(number, awaited);
                        } else {
                            builder.requires(number, awaited);
                        }
                    }
                }
            }
            builder.finish().expect("program")
        };
        Graph::new((0..ranks).map(program).collect()).expect("graph")
    })
}

/// Returns a job whose messages all match. Its operations are created in an order in which they can run, and
/// each one waits for operations that were created before it.
fn matched(seed: u64, cpus: u64) -> Graph {
    let mut random = SplitMix64::new(seed);
    let mut below = |n: u64| random.below(n);
    let ranks = 2 + below(7) as u32;
    let mut programs: Vec<_> = (0..ranks).map(|rank| ProgramBuilder::new(rank, ranks)).collect();
    for tag in 0..below(60) as u32 {
        let (from, to) = (below(u64::from(ranks)) as u32, below(u64::from(ranks)) as u32);
        let bytes = 1 + below(100_000);
        let mut steps = vec![(from, Op::send(to, bytes, tag)), (to, Op::receive(from, bytes, tag))];
        if below(2) == 0 {
            steps.push((from, Op::compute(Span::from_ns(below(20_000)))));
        }
        for (rank, op) in steps {
            let program = &mut programs[rank as usize];
            let number = program.push(op.on_cpu(below(cpus) as u8)).expect("op");
            for _ in 0..below(3) {
                if number > 0 {
                    let awaited = below(u64::from(number)) as u32;
                    if below(4) == 0 {
                        program.irequires(number, awaited);
                    } else {
                        program.requires(number, awaited);
                    }
                }
            }
        }
    }
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    Graph::new(programs.collect()).expect("graph")
}

fn cost(bytes: u64) -> Cost {
    let latency = Span::from_ns(700);
    Cost { occupies: Span::from_ps(8 * bytes), latency, acknowledgement: latency }
}

#[test]
fn five_hundred_random_jobs_end_without_leftovers_and_not_before_their_critical_path() {
    for seed in 0..500 {
        let graph = matched(seed, 2);
        let mut earlier = Span::ZERO;
        for done in [Done::Local, Done::Delivered, Done::Acknowledged] {
            let path = run(&graph, done, Limits::None, |message| cost(message.bytes));
            let serial = run(&graph, done, Limits::Serial, |message| cost(message.bytes));
            for outcome in [&path, &serial] {
                let left = (outcome.unfinished(), outcome.unexpected());
                assert_eq!(left, (0, 0), "seed {seed}, {done:?}");
            }
            assert!(serial.completion >= path.completion, "seed {seed}, {done:?}");
            // The stricter condition for the end of a send ends later.
            assert!(path.completion >= earlier, "seed {seed}, {done:?}");
            earlier = path.completion;
        }
        // LogGOPSim handles a message on the stream of its send, not of its receive, and sends that wait for
        // their receivers may wait for each other.
        let graph = matched(seed, 1);
        let parameters =
            Parameters { latency: Span::from_ns(700), eager: u64::MAX, ..Parameters::default() };
        let model = loggops::run(&graph, &parameters).expect("run");
        assert!(model.is_complete(), "seed {seed}");
        // A message takes at least 700 ns and 6 ns per byte; its eager send takes no time on this path.
        let path = run(&graph, Done::Local, Limits::None, |message| Cost {
            occupies: Span::ZERO,
            latency: Span::from_ns(700 + 6 * (message.bytes - 1)),
            acknowledgement: Span::ZERO,
        });
        assert!(model.completion().since(Time::ZERO) >= path.completion, "seed {seed}");
    }
}
