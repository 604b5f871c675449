//! Metrics of parts of a run, against numbers by hand.
//!
//! Links of 8 Gb/s: a data packet of 1064 B takes 1.064 us, an acknowledgement of 84 B takes 84 ns.

mod support;

use apus_fabric::{ClassConfig, Topology};
use apus_sim::Simulation;
use apus_sim::measure::{
    Comparison, NamedWorkload, PortGroup, SizeRange, Sorting, WorkloadSummary,
};
use apus_sim::plan::{ConnectionPlan, Load, OpArrival, Plan};
use apus_sim::summary::Summary;
use apus_units::{Bytes, ClassId, PortId, Rate, Span, Time};
use support::{connection, fingerprint, plan, run, tier};

type Settings = (&'static str, &'static [(&'static str, &'static str)]);

/// A window that nothing but the op's size limits.
const WIDE: Settings = ("constant", &[("window", "1000")]);

fn star(hosts: u32) -> Topology {
    Topology::star(hosts, &tier(Rate::from_gbps(8), Span::from_us(1)))
}

/// One op of `size` at 0.
fn one_op(from: u32, to: u32, size: u64, workload: Option<u32>) -> ConnectionPlan {
    let arrival = OpArrival { at: Time::ZERO, size: Bytes::new(size) };
    let plan = connection(WIDE, from, to, 1);
    ConnectionPlan { load: Load::Open([arrival].into()), workload, ..plan }
}

fn name(plan: &mut Plan, names: &[&str], deadline: Option<Span>) {
    let named = |name: &&str| NamedWorkload { name: (*name).to_owned(), deadline };
    plan.measures.workloads = names.iter().map(named).collect();
}

fn of<'a>(summary: &'a Summary, name: &str) -> &'a WorkloadSummary {
    summary.workload.get(name).expect("measured")
}

#[track_caller]
fn near(measured: Option<f64>, expected: f64) {
    let measured = measured.expect("measured");
    assert!((measured / expected - 1.0).abs() < 1e-3, "{measured} instead of {expected}");
}

/// Two ops of 100 packets share the link to host 2. The first packet reaches the switch after 2.064
/// us, 200 packets follow each other, 1 us and an acknowledgement (2.168 us) later the last is done:
/// 218.032 us, the other op a packet earlier. The base RTT is 6.296 us, so alone an op takes
/// 112.696 us.
#[test]
fn two_ops_share_a_link() {
    let connections = vec![one_op(0, 2, 100_000, Some(0)), one_op(1, 2, 100_000, Some(0))];
    let mut plan = plan(star(3), connections, Span::from_us(1_000));
    name(&mut plan, &["both"], Some(Span::from_us(217)));
    let summary = run(&plan);
    let both = of(&summary, "both");
    assert_eq!((both.ops, both.ops_failed), (2, 0));
    near(both.late, 0.5);
    near(both.op_latency_us.max, 218.032);
    near(both.op_latency_us.min, 216.968);
    near(both.slowdown.max, 218.032 / 112.696);
    near(both.slowdown.min, 216.968 / 112.696);
    near(both.slowdown.p99, 218.032 / 112.696);
    near(Some(both.throughput_gbps), 200.0 * 1064.0 * 8e-9 / 1e-3);
    near(Some(both.goodput_gbps), 200.0 * 1000.0 * 8e-9 / 1e-3);
    near(Some(both.ops_per_s), 2.0 / 1e-3);
    assert_eq!((both.data_packets_sent, both.acks_sent), (200, 200));
    near(Some(both.jain), 1.0);
    assert_eq!(both.cwnd_packets.count, 200);
    near(both.cwnd_packets.p1, 1000.0);
    assert_eq!(both.fabric_cwnd_packets.count, 0);
    assert_eq!(both.endpoint_limited, None);
}

/// What belongs to no named workload counts in none; the whole counts everything.
#[test]
fn each_workload_has_its_own_numbers() {
    let connections = vec![
        one_op(0, 3, 5_000, Some(1)),
        one_op(1, 4, 50_000, None),
        one_op(2, 5, 1_000, Some(0)),
    ];
    let mut plan = plan(star(6), connections, Span::from_us(1_000));
    name(&mut plan, &["small", "middle"], None);
    let summary = run(&plan);
    assert_eq!(summary.measured.ops, 3);
    let (small, middle) = (of(&summary, "small"), of(&summary, "middle"));
    assert_eq!((small.ops, middle.ops), (1, 1));
    // One packet there and an acknowledgement back; four more packets behind the first.
    near(small.op_latency_us.max, 6.296);
    near(middle.op_latency_us.max, 6.296 + 4.0 * 1.064);
    near(small.fabric_rtt_us.mean, 6.296);
    assert_eq!(small.endpoint_delay_us.max, Some(0.0));
    assert_eq!(small.late, None, "no deadline");
    assert_eq!(small.slowdown.max, Some(1.0), "never below 1");
}

#[test]
fn ranges_of_sizes_hold_their_start_and_not_their_end() {
    let sizes = [999, 1_000, 9_999, 10_000, 2_000_000];
    let ops: Vec<OpArrival> = (0..)
        .zip(sizes)
        .map(|(index, size)| OpArrival {
            at: Time::ZERO + Span::from_us(index * 3_000),
            size: Bytes::new(size),
        })
        .collect();
    let load = Load::Open(ops.into());
    let one = ConnectionPlan { load, ..one_op(0, 1, 1, Some(0)) };
    let mut plan = plan(star(2), vec![one], Span::from_us(20_000));
    name(&mut plan, &["all"], None);
    let range =
        |from, to: Option<u64>| SizeRange { from: Bytes::new(from), to: to.map(Bytes::new) };
    plan.measures.sizes = vec![range(1_000, Some(10_000)), range(10_000, None)];
    let summary = run(&plan);
    let all = of(&summary, "all");
    assert_eq!(all.op_latency_us.count, 5);
    let counts: Vec<u64> = all.size.values().map(|size| size.slowdown.count).collect();
    assert_eq!(counts, [2, 2]);
    near(all.size["1"].slowdown.max, 1.0);
    // A packet of 1 kB alone.
    near(all.size["0"].op_latency_us.min, 6.296);
}

/// Swift §3.5 without scaling: the target of every acknowledgement is the base target.
#[test]
fn swift_3_5_target_as_the_algorithm_shows_it() {
    let swift: Settings =
        ("swift", &[("base_target", "40us"), ("fs_range", "0us"), ("hop_scale", "0us")]);
    let mut one = connection(swift, 0, 1, 64_000);
    one.workload = Some(0);
    let mut plan = plan(star(2), vec![one], Span::from_us(2_000));
    plan.warmup = Span::from_us(500);
    name(&mut plan, &["all"], None);
    let summary = run(&plan);
    let all = of(&summary, "all");
    near(all.target_delay_us.mean, 40.0);
    assert_eq!(all.fabric_cwnd_packets.count, all.fabric_rtt_us.count);
    assert_eq!(all.fabric_rtt_us.count, summary.fabric_rtt_us.count, "from the warm-up on");
    assert_eq!(all.acks_sent, summary.measured.acks_sent);
    assert_eq!(all.endpoint_limited, Some(0.0), "ideal hosts have no endpoint delay");
}

#[test]
fn naming_workloads_changes_nothing_else_and_threads_do_not_matter() {
    let connections = |workload| -> Vec<ConnectionPlan> {
        let one = |from| ConnectionPlan { workload, ..connection(("swift", &[]), from, 7, 64_000) };
        (0..7).map(one).collect()
    };
    let mut named = plan(star(8), connections(Some(0)), Span::from_us(3_000));
    named.warmup = Span::from_us(1_000);
    name(&mut named, &["all"], Some(Span::from_us(300)));
    let mut unnamed = named.clone();
    unnamed.connections = connections(None);
    unnamed.measures.workloads.clear();
    let one = run(&named);
    let mut alike = one.clone();
    alike.workload.clear();
    assert_eq!(fingerprint(&alike), fingerprint(&run(&unnamed)));
    let two = Simulation::with_threads(&named, 2).expect("plan");
    let two = two.run("test", &mut |_| {}).expect("run");
    assert_eq!(fingerprint(&one), fingerprint(&two));
    assert!(of(&one, "all").ops > 10);
}

/// Two classes from host 0 and host 1 to host 2, in windows of 250 us from 0 on. Class "b" carries an
/// op of 100 packets of 1064 B: 106400 B within the first window, 42.6 % of its 250 000 B. Class "a"
/// may hold one packet; of the two of its op that arrive back to back behind another's, one at least
/// is lost.
#[test]
fn classes_of_a_port_are_counted_by_window() {
    let small = ClassConfig { limit: Bytes::new(1064), ..ClassConfig::default() };
    let classes = vec![small, ClassConfig::default()];
    let topology = star(4).with_switch_ports(move |port| port.classes.clone_from(&classes));
    let mut connections = vec![one_op(0, 2, 100_000, None), one_op(1, 2, 3_000, None)];
    connections[0].class = ClassId::new(1);
    let mut plan = plan(topology, connections, Span::from_us(900));
    plan.measures.window = Some(Span::from_us(250));
    plan.measures.classes = vec!["a".to_owned(), "b".to_owned()];
    // Link 2 leads from host 2 to the switch: its port back is number 5.
    let group = PortGroup { name: "edge".to_owned(), ports: vec![PortId::new(5)] };
    // Nothing goes to host 3, whose link's port back is number 7.
    let two = PortGroup { name: "two".to_owned(), ports: vec![PortId::new(5), PortId::new(7)] };
    plan.measures.groups = vec![group, two];
    plan.measures.comparisons = vec![Comparison {
        name: "both".to_owned(),
        group: 0,
        class: ClassId::new(1),
        with: ClassId::new(0),
        floor: 1e-4,
        by: Sorting::Together,
    }];
    let summary = run(&plan);
    let [a, b] = ["a", "b"].map(|class| summary.ports["edge"].class[class].clone());
    near(Some(b.throughput_gbps), 106_400.0 * 8e-9 / 750e-6);
    assert_eq!((b.windows, b.loss_rate), (1, Some(0.0)));
    assert_eq!(b.by_class["40"].windows, 1);
    assert_eq!(b.by_port["40"].windows, 1);
    assert!(a.loss_rate.is_some_and(|rate| rate > 0.0));
    assert_eq!(a.by_class["0"].windows, a.windows);
    let queue = |group: &str| summary.ports[group].mean_queue_bytes;
    near(Some(queue("edge")), summary.busiest_port.mean_queue_bytes);
    near(Some(queue("two")), summary.busiest_port.mean_queue_bytes / 2.0);
    let both = &summary.compare["both"];
    assert_eq!((both.buckets, both.loss_ratio, both.loss_ratio_p99_9), (1, Some(0.0), Some(0.0)));
}
