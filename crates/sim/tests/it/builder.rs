//! Plans from the builder.

use crate::support::{ConnectionPlan, Plan, Simulation, Topology};
use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_sim::host_model::HostModel;
use apus_sim::plan::OpArrival;
use apus_units::{Bytes, ClassId, HostId, Rate, Span, Time};

use crate::support::{run, tier};

fn algorithm(name: &str, settings: &[(&str, &str)]) -> AlgorithmConfig {
    build(name, None, settings).expect("algorithm")
}

fn host(number: u32) -> HostId {
    HostId::new(number)
}

fn star() -> apus_sim::plan::PlanBuilder<AlgorithmConfig> {
    Plan::builder(
        Topology::star(3, &tier(Rate::from_gbps(100), Span::from_us(1))),
        Span::from_ms(4),
    )
}

/// Two loops with one op of 64 kB each share 100 Gb/s. 15 packets of 4096 B and one of 2560 B have 64 B of
/// headers each: 65,024 B, or 5.2 us. An op without other traffic takes 2 us more each way.
#[test]
fn closed_loops_fill_the_link_with_the_default_packets() {
    let size = Bytes::new(64_000);
    let swift = algorithm("swift", &[]);
    let write = |from| ConnectionPlan::closed(host(from), host(2), &swift, size);
    let plan = star()
        .warmup(Span::from_ms(1))
        .drain(Span::from_ms(1))
        .connections([0, 1].map(write))
        .build();
    let summary = run(&plan.expect("a plan"));
    let capacity = 100.0 * 64_000.0 / 65_024.0;
    let goodput = summary.goodput_gbps;
    assert!((0.75 * capacity..=capacity).contains(&goodput), "{goodput}");
    // Little's law: two ops are outstanding at all times.
    let mean = summary.op_latency_us.mean.expect("ops");
    let expected = 2.0 * 64_000.0 * 8.0 / (goodput * 1e3);
    assert!((mean / expected - 1.0).abs() < 0.01, "{mean} {expected}");
}

#[test]
fn an_open_loop_submits_each_op_once() {
    let ops = [1, 2, 3]
        .map(|ms| OpArrival { at: Time::from_ps(ms * 1_000_000_000), size: Bytes::new(1) });
    let connection = ConnectionPlan::open(host(0), host(1), &algorithm("swift", &[]), ops);
    let plan = star().connections([connection]).build().expect("a plan");
    assert_eq!(run(&plan).measured.ops, 3);
}

#[test]
fn plans_that_cannot_run_are_refused() {
    let swift = algorithm("swift", &[]);
    let connect = |from, to| ConnectionPlan::closed(host(from), host(to), &swift, Bytes::new(1));
    let with = |algorithm| ConnectionPlan { algorithm, ..connect(0, 1) };
    let refused = |builder: apus_sim::plan::PlanBuilder<AlgorithmConfig>| {
        builder.build().expect_err("refused").to_string()
    };
    for (connections, message) in [
        (vec![connect(0, 3)], "connection 0 names host 3, but the topology has 3"),
        (vec![connect(0, 1), connect(1, 1)], "connection 1 is from host 1 to itself"),
        (
            vec![ConnectionPlan { class: ClassId::new(1), ..connect(0, 1) }],
            "connection 0 is in class 1, but the classes of ports are numbered from 0 to 0",
        ),
        (
            vec![with(algorithm("bolt", &[])), with(algorithm("hpcc", &[]))],
            "`bolt` and `hpcc` are in one class",
        ),
    ] {
        let error = refused(star().connections(connections));
        assert!(error.starts_with(message), "{error}");
    }
    let late = star().connections([connect(0, 1)]).warmup(Span::from_ms(4));
    assert!(refused(late).starts_with("the warm-up is 4ms, but the run ends at 4ms"));
}

#[test]
fn plan_that_ends_with_an_unknown_number_of_ops_is_refused() {
    let swift = algorithm("swift", &[]);
    let connection = ConnectionPlan::closed(host(0), host(1), &swift, Bytes::new(1));
    let mut plan = star().connections([connection]).build().expect("a plan");
    plan.ends_with_ops = true;
    let error = Simulation::new(&plan).err().expect("refused");
    assert!(error.to_string().contains("needs a job, or trace_ops"), "{error}");
}

/// A packet of 4096 + 64 B takes 332.8 ns at 100 Gb/s, so a busy host sends 3 packets within a link delay of
/// 1 us. With 400 busy hosts these are 12,000 events (ten per packet). With one busy host they are 30, too
/// few for a second thread; a short run also has too few. A network with hosts of the LogGOPS model has one
/// part.
#[test]
fn threads_are_worth_it_for_many_busy_hosts_and_long_runs() {
    let swift = algorithm("swift", &[]);
    let worth = |hosts: u32, to: fn(u32) -> u32, duration| {
        let topology = Topology::star(400, &tier(Rate::from_gbps(100), Span::from_us(1)));
        let size = Bytes::new(64_000);
        let write = |from| ConnectionPlan::closed(host(from), host(to(from)), &swift, size);
        let plan = Plan::builder(topology, duration).connections((0..hosts).map(write)).build();
        let mut plan = plan.expect("a plan");
        let worth = plan.threads_worth(8);
        plan.host = HostModel::preset("loggops").expect("a model");
        assert_eq!(plan.threads_worth(8), 1);
        worth
    };
    let next = |host| (host + 1) % 400;
    assert_eq!(worth(400, next, Span::from_ms(10)), 8);
    assert_eq!(worth(100, next, Span::from_ms(10)), 3);
    assert_eq!(worth(400, next, Span::from_us(100)), 1);
    assert_eq!(worth(399, |_| 399, Span::from_ms(10)), 1);
}
