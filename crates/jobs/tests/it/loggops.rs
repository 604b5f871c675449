//! The model of LogGOPSim compared with times that LogGOPSim printed, and with its formulas.

use apus_jobs::loggops::{Model, Parameters, run};
use apus_jobs::{Done, Graph, Op, Program, ProgramBuilder, Rank, goal};
use apus_units::{Span, Time};

use crate::samples::{SAMPLES, content};

#[test]
fn samples_take_the_times_that_loggopsim_prints() {
    for (name, time) in SAMPLES {
        for extension in ["goal", "bin"] {
            let graph = goal::read(&content(name, extension)).expect(name);
            let outcome = run(&graph, &Parameters::default()).expect(name);
            assert!(outcome.is_complete(), "{name}: {outcome:?}");
            assert_eq!(outcome.completion(), ns(time), "{name}.{extension}");
        }
    }
}

fn ns(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// Operations of a rank, and one dependency: an operation that requires another one.
type RankOps<'a> = (&'a [Op], Option<(u32, u32)>);

fn graph(ranks: &[RankOps<'_>]) -> Graph {
    let program = |(rank, (ops, requires)): (usize, &RankOps<'_>)| -> Program {
        let mut builder = ProgramBuilder::new(rank as u32, ranks.len() as u32);
        for op in *ops {
            builder.push(*op).expect("op");
        }
        if let Some((op, awaited)) = requires {
            builder.requires(*op, *awaited);
        }
        builder.finish().expect("program")
    };
    Graph::new(ranks.iter().enumerate().map(program).collect()).expect("graph")
}

/// An operation that waits for a stream is handled once, and once more when the stream is free, but not each
/// time that another operation begins.
#[test]
fn the_steps_of_many_operations_of_a_stream_grow_with_their_number() {
    const OPS: usize = 20_000;
    let computations = vec![Op::compute(Span::from_ns(1)); OPS];
    let sends: Vec<Op> = (0..OPS as u32).map(|tag| Op::send(2, 1, tag)).collect();
    let receives: Vec<Op> = (0..OPS as u32).map(|tag| Op::receive(1, 1, tag)).collect();
    let graph = graph(&[(&computations, None), (&sends, None), (&receives, None)]);
    let mut ranks: Vec<Rank> = graph
        .programs()
        .map(|program| Rank::new(std::sync::Arc::clone(program), Done::LogGops))
        .collect();
    let mut model = Model::new(&graph, &Parameters::default());
    model.start(Time::ZERO, &mut ranks);
    let mut steps = 0;
    while let Some(step) = model.step(&mut ranks) {
        steps += 1;
        if let Some(departure) = step.departure {
            model.arrive(&departure);
        }
    }
    // A computation, a send, a receive and a message each, all of which may wait for a stream and then for a NIC.
    assert!(steps <= 3 * 4 * OPS, "{steps} steps");
    assert!(ranks.iter().all(|rank| rank.stuck().count() == 0));
}

/// A message takes 2o + L + (s-1) max(O, G).
#[test]
fn a_message_takes_the_time_of_the_formula() {
    for (bytes, o_per_byte, time) in [(1, 0, 5500), (1001, 0, 11500), (1001, 9, 14500)] {
        let graph = graph(&[(&[Op::send(1, bytes, 3)], None), (&[Op::receive(0, bytes, 3)], None)]);
        let parameters =
            Parameters { overhead_per_byte: Span::from_ns(o_per_byte), ..Parameters::default() };
        assert_eq!(run(&graph, &parameters).expect("run").completion(), ns(time));
    }
}

/// A send of more than S bytes is done when its receiver handles the message. A receive that is posted late
/// adds nothing, because the host has already handled the message.
#[test]
fn a_large_send_waits_for_its_receive() {
    for (eager, sender) in [(1000, 1500 + 100), (999, 20_000 + 100)] {
        let after = Op::compute(Span::from_ns(100));
        let late = Op::compute(Span::from_ns(20_000));
        let graph = graph(&[
            (&[Op::send(1, 1000, 0), after], Some((1, 0))),
            (&[late, Op::receive(0, 1000, 0)], Some((1, 0))),
        ]);
        let parameters = Parameters { eager, ..Parameters::default() };
        let outcome = run(&graph, &parameters).expect("run");
        // The message arrives while rank 1 computes, and is handled from 20,000 ns onwards.
        let receiver = 20_000 + 1500 + 999 * 6;
        assert_eq!(outcome.ends, [ns(sender), ns(receiver)], "S = {eager}");
    }
}

/// Only the message decides whether its send waits: it arrives after o + L, and its receive may state another size.
#[test]
fn a_send_waits_by_the_size_of_its_message_whatever_its_receive_expects() {
    for (bytes, expected, waits) in [(10, 100_000, false), (70_000, 10, true)] {
        for late in [0, 1_000_000] {
            let before = Op::compute(Span::from_ns(late)).on_cpu(1);
            let graph = graph(&[
                (&[Op::send(1, bytes, 0)], None),
                (&[before, Op::receive(0, expected, 0)], Some((1, 0))),
            ]);
            let outcome = run(&graph, &Parameters::default()).expect("run");
            assert!(outcome.is_complete(), "{bytes} B of {expected}, {late}: {outcome:?}");
            let arrives = 1500 + 2500;
            let sender = if waits { late.max(arrives) } else { 1500 };
            let receiver = late.max(arrives + 1500 + (bytes - 1) * 6);
            assert_eq!(outcome.ends, [ns(sender), ns(receiver)], "{bytes} B, {late}");
        }
    }
}

#[test]
fn leftovers_are_listed() {
    let graph = graph(&[(&[Op::send(1, 10, 1)], None), (&[Op::receive(0, 10, 2)], None)]);
    let outcome = run(&graph, &Parameters::default()).expect("run");
    assert_eq!(outcome.stuck, [(1, 0)]);
    let (rank, message) = outcome.unexpected[0];
    assert_eq!((rank, message.from, message.tag, message.bytes), (1, 0, 1, 10));
}

#[test]
fn a_job_beyond_the_range_is_an_error() {
    let half = Op::compute(Span::from_secs(107 * 86_400));
    for ops in [&[Op::send(0, u64::MAX, 1), Op::receive(0, 1, 1)], &[half, half]] {
        run(&graph(&[(ops, None)]), &Parameters::default()).expect_err("too long");
    }
    let last = Parameters { latency: Span::MAX, ..Parameters::default() };
    run(&graph(&[(&[Op::send(0, 1, 1)], None)]), &last).expect_err("too long");
}

/// The times of the ranks add up to more than 2^64 ps.
#[test]
fn a_job_of_many_ranks_may_take_hours() {
    let hours = Span::from_secs(3 * 3600);
    let op = [Op::compute(hours)];
    let ranks: Vec<RankOps<'_>> = (0..2048).map(|_| (&op[..], None)).collect();
    let outcome = run(&graph(&ranks), &Parameters::default()).expect("run");
    assert_eq!(outcome.completion(), Time::ZERO + hours);
}
