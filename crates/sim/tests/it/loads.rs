//! Open loops and rounds of requests and answers.

use crate::support::{ConnectionPlan, Simulation, Topology};
use std::sync::Arc;

use crate::support::{connection, plan, run, tier};
use apus_sim::plan::{Load, OpArrival};
use apus_units::{Bytes, Rate, Span, Time};

/// A congestion window that is never reached: only the network limits the flow.
const WIDE: (&str, &[(&str, &str)]) = ("constant", &[("window", "1000")]);

fn star(hosts: u32) -> Topology {
    Topology::star(hosts, &tier(Rate::from_gbps(100), Span::from_us(1)))
}

fn open(from: u32, to: u32, ops: &[(u64, u64)]) -> ConnectionPlan {
    let arrivals: Arc<[OpArrival]> = ops
        .iter()
        .map(|&(us, size)| OpArrival { at: Time::ZERO + Span::from_us(us), size: Bytes::new(size) })
        .collect();
    ConnectionPlan { load: Load::Open(arrivals), ..connection(WIDE, from, to, 1) }
}

/// One op of one packet: 1064 B twice at 100 Gb/s (85.12 ns each) and 84 B twice (6.72 ns each),
/// four links of 1 us.
#[test]
fn an_op_of_an_open_loop_comes_at_its_time_and_takes_a_round_trip() {
    let plan = plan(star(2), vec![open(0, 1, &[(10, 1000), (50, 1000)])], Span::from_us(100));
    let summary = run(&plan);
    assert_eq!(summary.measured.ops, 2);
    let expected = 4.0 + 2.0 * 0.085_12 + 2.0 * 0.006_72;
    for latency in [summary.op_latency_us.min, summary.op_latency_us.max] {
        assert!((latency.expect("ops") - expected).abs() < 1e-6, "{latency:?} {expected}");
    }
}

/// If the flow can accept one op, the second of two ops that arrive together waits for the first one. Its
/// latency counts from its arrival and is twice that of the first op.
#[test]
fn an_op_that_waits_for_room_counts_from_when_it_came() {
    let mut plan = plan(star(2), vec![open(0, 1, &[(0, 1000), (0, 1000)])], Span::from_us(100));
    plan.endpoint.max_ops = 1;
    let latency = run(&plan).op_latency_us;
    let (first, second) = (latency.min.expect("ops"), latency.max.expect("ops"));
    assert_eq!(latency.count, 2);
    assert!((second - 2.0 * first).abs() < 1e-6, "{first} {second}");
}

/// Three workers with requests and answers of one packet. An answer has arrived after two links in each
/// direction, four links of 1 us in all. A round therefore takes at least 4 us, and slightly more for the
/// packets that share the master's link.
#[test]
fn the_next_round_begins_when_the_last_answer_has_arrived() {
    let load = Load::Round { request: Bytes::new(100), answer: Bytes::new(1000), group: 7 };
    let connections: Vec<_> = (1..4)
        .map(|worker| ConnectionPlan { load: load.clone(), ..connection(WIDE, 0, worker, 1) })
        .collect();
    let mut plan = plan(star(4), connections, Span::from_us(100));
    plan.drain = Span::from_us(100);
    let summary = run(&plan);
    let latency = summary.op_latency_us;
    // A request of 164 B (13.12 ns) and an answer of 1064 B, each over two links. The request's
    // acknowledgement leaves the worker before the answer.
    let least = 4.0 + 2.0 * 0.013_12 + 0.006_72 + 2.0 * 0.085_12;
    assert!((latency.min.expect("ops") - least).abs() < 1e-6, "{:?}", latency.min);
    let longest = latency.max.expect("ops");
    assert!(longest < least + 2.0 * 0.1, "{longest}");
    let rounds = (100.0 / longest).floor() as u64;
    assert_eq!(summary.measured.ops, 3 * rounds);
}

#[test]
fn open_loops_and_rounds_are_the_same_on_any_number_of_threads() {
    let mut connections =
        vec![open(0, 5, &[(0, 5000), (1, 70_000), (30, 10)]), open(5, 0, &[(2, 900), (2, 50_000)])];
    let load = Load::Round { request: Bytes::new(100), answer: Bytes::new(9000), group: 0 };
    connections.extend((1..6).map(|worker| ConnectionPlan {
        load: load.clone(),
        ..connection(("swift", &[]), 0, worker, 1)
    }));
    let plan = plan(star(6), connections, Span::from_us(500));
    let summaries: Vec<_> = [1, 2, 3]
        .map(|threads| {
            let simulation = Simulation::with_threads(&plan, threads).expect("plan");
            let summary = simulation.run("test", &mut |_| {}).expect("run");
            assert!(summary.measured.ops > 10, "{}", summary.measured.ops);
            (summary.work.event_hash.clone(), format!("{:?}", summary.op_latency_us))
        })
        .into();
    assert_eq!(summaries[0], summaries[1]);
    assert_eq!(summaries[0], summaries[2]);
}
