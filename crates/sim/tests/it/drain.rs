//! Unfinished ops bound every latency, and the drain lets them end.

use crate::support::Plan;
use crate::support::{connection, plan, run, tier};
use apus_sim::measure::{Measures, NamedWorkload};
use apus_sim::plan::{Fault, FaultKind, Load, OpArrival};
use apus_sim::summary::Summary;
use apus_units::{Bytes, PortId, Rate, Span, Time};
use serde_json::Value;

fn star(hosts: u32) -> crate::support::Topology {
    apus_fabric::Topology::star(hosts, &tier(Rate::from_gbps(100), Span::from_us(1)))
}

/// Each of four hosts writes 64 kB at a time to the next host. The link of host 0 is down from 0.5 ms until `up`.
fn broken_permutation(up: Time) -> Plan {
    let flows = (0..4).map(|from| connection(("swift", &[]), from, (from + 1) % 4, 64_000));
    let mut plan = plan(star(4), flows.collect(), Span::from_ms(20));
    let fault = |port| Fault {
        port: PortId::new(port),
        at: Time::ZERO + Span::from_us(500),
        until: up,
        kind: FaultKind::Down,
    };
    // Both directions of the first link.
    plan.faults = vec![fault(0), fault(1)];
    for port in [0, 1] {
        let link = &mut plan.topology.links[port / 2];
        link.ab.variable = true;
        link.ba.variable = true;
    }
    plan
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

#[test]
fn without_a_drain_an_op_that_waits_bounds_the_maximum() {
    let summary = run(&broken_permutation(Time::MAX));
    let latency = &summary.op_latency_us;
    let open = latency.open.as_ref().expect("of ops");
    // Two flows have waited since 0.5 ms at most; the other two are in the middle of an op.
    assert_eq!(open.unfinished, 4);
    assert!((19_500.0..=19_530.0).contains(&open.oldest_unfinished_us), "{open:?}");
    assert_eq!(open.lower.count, latency.count + 4);
    assert_eq!(open.lower.max, Some(open.oldest_unfinished_us));
    assert_eq!((latency.max, latency.mean, open.upper.max), (None, None, None));
    // Four of about 7000 ops exceed no percentile except possibly the 99.9th.
    assert!(latency.p50.is_some() && latency.p99.is_some(), "{latency:?}");
    assert_eq!(summary.measured.unfinished_ops, 4);
}

/// The link is up again after 19.5 ms. The ops that wait then end soon after it, or after the end of the
/// measured phase.
#[test]
fn an_op_that_ends_in_the_drain_counts_with_its_whole_latency() {
    let mut plan = broken_permutation(ms(21));
    plan.drain = Span::from_ms(20);
    let summary = run(&plan);
    let latency = &summary.op_latency_us;
    assert_eq!((latency.unfinished(), summary.drain.ended_by), (0, "complete"));
    assert!(latency.max.is_some_and(|max| max > 20_400.0), "{latency:?}");
    assert!(summary.drain.seconds > 1e-3 && summary.drain.seconds < 20e-3, "{:?}", summary.drain);
}

#[test]
fn a_drain_that_is_over_leaves_ops_unfinished() {
    let mut plan = broken_permutation(Time::MAX);
    plan.drain = Span::from_ms(5);
    let summary = run(&plan);
    assert_eq!((summary.drain.ended_by, summary.drain.seconds), ("limit", 5e-3));
    let open = summary.op_latency_us.open.expect("of ops");
    assert_eq!(open.unfinished, 2, "the links of the other two are up");
    assert!(open.oldest_unfinished_us > 24_400.0, "{open:?}");
}

/// Returns the results of the run except the times of its ops.
fn all_but_ops(summary: &Summary) -> Value {
    let mut json = serde_json::to_value(summary).expect("json");
    for key in ["op_latency_us", "drain", "work", "stalled"] {
        json[key] = Value::Null;
    }
    for phase in ["startup", "measured"] {
        json[phase]["unfinished_ops"] = Value::Null;
        json[phase]["oldest_unfinished_us"] = Value::Null;
    }
    for name in ["op_latency_us", "slowdown"] {
        if let Some(of) = json["workload"].as_object_mut() {
            of.values_mut().for_each(|workload| workload[name] = Value::Null);
        }
    }
    for table in ["groups", "totals"] {
        for row in json[table].as_array_mut().expect("rows") {
            row["unfinished_ops"] = Value::Null;
            row["oldest_unfinished_us"] = Value::Null;
        }
    }
    json
}

#[test]
fn a_drain_changes_no_number_but_those_of_ops() {
    let mut plan = broken_permutation(ms(21));
    plan.warmup = Span::from_ms(1);
    plan.measures = Measures {
        workloads: vec![NamedWorkload { name: "all".to_owned(), deadline: None }],
        ..Measures::default()
    };
    plan.connections.iter_mut().for_each(|connection| connection.workload = Some(0));
    let without = run(&plan);
    plan.drain = Span::from_ms(20);
    let with = run(&plan);
    assert_eq!(all_but_ops(&with), all_but_ops(&without));
    assert!(with.work.events > without.work.events);
    let slowdown = &with.workload["all"].slowdown;
    assert!(without.workload["all"].slowdown.max.is_none() && slowdown.max.is_some());
    assert_eq!(slowdown.unfinished(), 0);
}

/// One op at a time, all with equal latency: the ops that begin within the measured phase count.
#[test]
fn ops_submitted_in_the_drain_do_not_count() {
    let flow = || vec![connection(("constant", &[("window", "100")]), 0, 1, 1000)];
    let mut plan = plan(star(2), flow(), Span::from_us(100));
    plan.drain = Span::from_ms(100);
    let summary = run(&plan);
    let latency = summary.op_latency_us.max.expect("all have ended");
    assert_eq!(summary.op_latency_us.count, (100.0 / latency).ceil() as u64);
    assert_eq!(summary.measured.ops, (100.0 / latency).floor() as u64);
    assert_eq!(summary.drain.ended_by, "complete");
    assert!(summary.drain.seconds < 1e-3, "{:?}", summary.drain);
}

/// Two flows whose ops take at least 1 s.
#[test]
fn long_flows_are_not_waited_for() {
    let flows = [1, 2].map(|from| connection(("swift", &[]), from, 0, 12_500_000_000));
    let mut plan = plan(star(3), flows.into(), Span::from_ms(1));
    plan.drain = Span::from_ms(1);
    let summary = run(&plan);
    assert_eq!((summary.drain.ended_by, summary.drain.seconds), ("complete", 0.0));
    let latency = summary.op_latency_us;
    assert_eq!((latency.count, latency.unfinished(), latency.p50), (0, 2, None));
    assert_eq!(latency.open.expect("of ops").lower.p50, Some(1000.0));
}

/// Two ops arrive at the same time, and the flow can accept one: the other one is queued in the application.
#[test]
fn ops_that_wait_for_room_are_unfinished_too() {
    let arrivals = [0, 0].map(|at| OpArrival { at: ms(at), size: Bytes::new(1_000_000_000) });
    let flow = connection(("swift", &[]), 0, 1, 1);
    let flow = apus_sim::plan::ConnectionPlan { load: Load::Open(arrivals.into()), ..flow };
    let mut plan = plan(star(2), vec![flow], Span::from_ms(1));
    plan.endpoint.max_ops = 1;
    let summary = run(&plan);
    assert_eq!(summary.measured.unfinished_ops, 2);
    assert_eq!(summary.measured.oldest_unfinished_us, 1000.0);
}

#[test]
fn unfinished_ops_of_the_warm_up_are_counted_apart() {
    let mut plan = broken_permutation(Time::MAX);
    plan.warmup = Span::from_ms(1);
    plan.drain = Span::from_ms(3);
    let summary = run(&plan);
    assert_eq!((summary.startup.unfinished_ops, summary.measured.unfinished_ops), (2, 0));
    assert!(summary.startup.oldest_unfinished_us > 19_500.0, "{:?}", summary.startup);
    assert_eq!(summary.op_latency_us.unfinished(), 0);
    assert_eq!(summary.drain.ended_by, "complete");
}

/// Two ops of 1 GB after 1 ms. With a deadline of 0.5 ms both are late; with a deadline of 1 s it is not
/// known whether they are late.
#[test]
fn an_unfinished_op_is_late_once_its_deadline_is_over() {
    let late = |deadline| {
        let flows = [1, 2].map(|from| connection(("swift", &[]), from, 0, 1_000_000_000));
        let mut plan = plan(star(3), flows.into(), Span::from_ms(1));
        let name = "in".to_owned();
        plan.measures.workloads = vec![NamedWorkload { name, deadline: Some(deadline) }];
        plan.connections.iter_mut().for_each(|connection| connection.workload = Some(0));
        let workload = run(&plan).workload["in"].clone();
        (workload.late, workload.late_lower, workload.late_upper)
    };
    assert_eq!(late(Span::from_us(500)), (Some(1.0), Some(1.0), Some(1.0)));
    assert_eq!(late(Span::from_secs(1)), (None, Some(0.0), Some(1.0)));
}
