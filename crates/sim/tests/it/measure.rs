//! Metrics of parts of a run, compared with numbers computed by hand.
//!
//! Links of 8 Gb/s: a data packet of 1064 B takes 1.064 us, an acknowledgement of 84 B takes 84 ns.

use crate::support::{ClassConfig, ConnectionPlan, Plan, Simulation, Topology};
use crate::support::{connection, fingerprint, plan, run, tier};
use apus_algorithms::build;
use apus_sim::measure::{
    Comparison, Moment, NamedWorkload, PortGroup, Quantity, Question, SeriesPlan, SizeRange,
    Sorting, Subject, Threshold, Which, WorkloadSummary,
};
use apus_sim::plan::{Load, OpArrival};
use apus_sim::summary::Summary;
use apus_units::{Bytes, ClassId, PortId, Rate, Span, Time};

type Settings = (&'static str, &'static [(&'static str, &'static str)]);

/// A congestion window that only the size of the op limits.
const WIDE: Settings = ("constant", &[("window", "1000")]);

fn star(hosts: u32) -> Topology {
    Topology::star(hosts, &tier(Rate::from_gbps(8), Span::from_us(1)))
}

/// Returns one op of `size` at time 0.
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

/// Two ops of 100 packets share the link to host 2. The first packet reaches the switch after 2.064 us, 200
/// packets follow each other, and 1 us and an acknowledgement (2.168 us) later the last op is done: at
/// 218.032 us. The other op is done a packet earlier. The base RTT is 6.296 us, so an op without other
/// traffic takes 112.696 us.
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

/// A sender with a rate has no window: its summary has no infinite number, and no percentile of one.
#[test]
fn a_flow_without_a_window_has_no_window_in_its_summary() {
    let mut one = ConnectionPlan { workload: Some(0), ..connection(WIDE, 0, 1, 10_000) };
    one.algorithm = build("constant", Some("rate"), &[("rate", "1Gbps")]).expect("algorithm");
    let mut plan = plan(star(2), vec![one], Span::from_us(1_000));
    name(&mut plan, &["paced"], None);
    let summary = run(&plan);
    let windows = &of(&summary, "paced").cwnd_packets;
    assert!(of(&summary, "paced").fabric_rtt_us.count > 50);
    assert_eq!((windows.count, windows.mean, windows.p50), (0, None, None));
}

/// Packets outside named workloads count in no workload; the whole run counts everything.
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
    // One packet and its acknowledgement; then four more packets behind the first one.
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
    // A single packet of 1 kB.
    near(all.size["0"].op_latency_us.min, 6.296);
}

/// Swift §3.5 without scaling: the target delay of every acknowledgement is the base target.
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

/// Two classes from host 0 and host 1 to host 2, in time windows of 250 us from 0 onwards. Class "b" carries
/// an op of 100 packets of 1064 B: 106400 B within the first window, 42.6 % of its 250 000 B. Class "a" may
/// hold one packet. Its op has two packets that arrive back to back behind a packet of the other class, so at
/// least one of them is lost.
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
    // No packet goes to host 3, whose link has port number 7 in the direction back.
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
    let queue = |group: &str| summary.ports[group].totals.queue_bytes.mean;
    near(queue("edge"), summary.busiest_port.mean_queue_bytes);
    near(queue("two"), summary.busiest_port.mean_queue_bytes / 2.0);
    let both = &summary.compare["both"];
    assert_eq!((both.buckets, both.loss_ratio, both.loss_ratio_p99_9), (1, Some(0.0), Some(0.0)));
}

/// Returns the two ops of `two_ops_share_a_link`, with the port to host 2 as the group "shared". The n-th
/// packet of both ops together (from 0) reaches the port at 2.064 + floor(n/2) 1.064 us and leaves it at
/// 2.064 + (n+1) 1.064 us.
fn shared_link() -> Plan {
    let connections = vec![one_op(0, 2, 100_000, Some(0)), one_op(1, 2, 100_000, Some(0))];
    let mut plan = plan(star(3), connections, Span::from_us(1_000));
    name(&mut plan, &["both"], None);
    let ports = vec![PortId::new(5)];
    plan.measures.groups = vec![PortGroup { name: "shared".to_owned(), ports }];
    plan.measures.window = Some(Span::from_us(100));
    plan.measures.queue_interval = Some(Span::from_us(1));
    plan
}

fn series(of: Subject, quantity: Quantity, interval: u64, question: Question) -> SeriesPlan {
    let name = format!("series-{quantity:?}-{interval}");
    SeriesPlan { name, of, quantity, interval: Span::from_us(interval), question }
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// The sum over all packets of n + 1 - floor(n/2) is 10200: the mean occupancy is 10200 packets times 1.064
/// us in 1000 us. The queue grows to 101 packets in 105 us and shrinks as fast, so more than 53.6 packets are
/// queued for a tenth of the time.
#[test]
fn a_group_of_ports_is_its_traffic_and_its_queues() {
    let summary = run(&shared_link());
    let shared = &summary.ports["shared"].totals;
    near(Some(shared.throughput_gbps), 200.0 * 1064.0 * 8e-9 / 1e-3);
    near(Some(shared.utilisation), 0.2128);
    assert_eq!((shared.loss_rate, shared.drops), (0.0, 0));
    near(shared.queue_bytes.mean, 10_200.0 * 1.064 * 1064.0 / 1000.0);
    near(shared.queue_us.mean, 10_200.0 * 1.064 * 1.064 / 1000.0);
    let most = shared.queue_us.max.expect("measured") / 1.064;
    assert!((100.0..=102.0).contains(&most), "{most} packets");
    assert_eq!(shared.queue_us.p50, Some(0.0), "empty most of the time");
    let p90 = shared.queue_us.p90.expect("measured") / 1.064;
    assert!((52.0..=55.0).contains(&p90), "{p90} packets");
}

/// The run ends with the last op at 218.032 us, in a step of 1 ms. Of the 200 packets, 186 have left after two windows of
/// 100 us, the n-th (from 0) at 2.064 + (n+1) 1.064 us; the port is empty before 2.064 us and from 214.864 us on.
#[test]
fn samples_end_with_the_last_op() {
    let mut plan = shared_link();
    plan.measures.classes = vec!["all".to_owned()];
    let question = Question::Span { from: Moment::At(at(0)), to: Moment::At(at(1_000)) };
    plan.measures.series = vec![series(Subject::Workload(0), Quantity::Goodput, 50, question)];
    plan.duration = Span::from_secs(1);
    (plan.ends_with_ops, plan.trace_ops) = (true, Some(2));
    let summary = run(&plan);
    near(Some(summary.simulated_s), 218.032e-6);
    let shared = &summary.ports["shared"];
    near(Some(shared.class["all"].throughput_gbps), 186.0 * 1064.0 * 8e-9 / 200e-6);
    assert_eq!(shared.class["all"].windows, 2);
    assert_eq!(shared.totals.queue_bytes.count, 218);
    let median = shared.totals.queue_bytes.p50.expect("sampled") / 1064.0;
    assert!((40.0..=60.0).contains(&median), "{median} packets");
    let goodput = &summary.span["series-Goodput-50"]["goodput_gbps"];
    assert_eq!(goodput.count, 4);
    near(goodput.min, 44.0 * 1000.0 * 8e-3 / 50.0);
    let two = Simulation::with_threads(&plan, 2).expect("plan");
    let two = two.run("test", &mut |_| {}).expect("run");
    assert_eq!(fingerprint(&summary), fingerprint(&two));
}

/// In whole intervals of 10 us the link sends 9 or 10 packets, in the first one 7: it is busy from 10 us
/// onwards. The last packet leaves after 214.864 us.
#[test]
fn a_link_is_taken_and_left() {
    let mut plan = shared_link();
    let settle = |after: u64, hold: u64, threshold| {
        let (after, hold) = (Moment::At(at(after)), Span::from_us(hold));
        let question = Question::Settle { after, hold, threshold };
        series(Subject::Ports(0), Quantity::Throughput, 10, question)
    };
    let named = |name: &str, one: SeriesPlan| SeriesPlan { name: name.to_owned(), ..one };
    plan.measures.series = vec![
        named("taken", settle(0, 50, Threshold::Above(7.5))),
        named("left", settle(100, 100, Threshold::Below(1.0))),
        named("too-fast", settle(0, 50, Threshold::Above(9.0))),
        named("too-long", settle(0, 300, Threshold::Above(7.5))),
    ];
    let summary = run(&plan);
    let time = |name: &str| summary.settle[name].time_us;
    near(time("taken"), 10.0);
    near(time("left"), 120.0);
    assert_eq!((time("too-fast"), time("too-long")), (None, None));
}

/// The ops are done at 216.968 and 218.032 us (see above); the last packet has left at 214.864 us. In
/// intervals that begin at multiples of 10 us the link is busy up to 210 us, busy for half of the next
/// interval, and idle from 220 us onwards. From 100 to 200 us two intervals have 47 packets each (see below).
#[test]
fn ends_of_ops_say_from_when_on_a_quantity_counts() {
    let mut plan = shared_link();
    let end = |op, lead_ns| Moment::End { workload: 0, op, lead: Span::from_ns(lead_ns) };
    let (hold, threshold) = (Span::from_us(50), Threshold::Below(1.0));
    let settle = |name: &str, after| {
        let question = Question::Settle { after, hold, threshold };
        let one = series(Subject::Ports(0), Quantity::Throughput, 10, question);
        SeriesPlan { name: name.to_owned(), ..one }
    };
    let question =
        Question::Span { from: end(Which::First, 116_968), to: end(Which::Last, 18_032) };
    let span = series(Subject::Workload(0), Quantity::Goodput, 50, question);
    plan.measures.series = vec![
        settle("first", end(Which::First, 0)),
        settle("last", end(Which::Last, 0)),
        settle("leads", end(Which::Last, 10_000)),
        SeriesPlan { name: "within".to_owned(), ..span.clone() },
    ];
    // The workload of the series `never` has no ops.
    name(&mut plan, &["both", "none"], None);
    let question = Question::Settle {
        after: Moment::End { workload: 1, op: Which::Last, lead: Span::ZERO },
        hold,
        threshold,
    };
    let none = series(Subject::Ports(0), Quantity::Throughput, 10, question);
    plan.measures.series.push(SeriesPlan { name: "never".to_owned(), ..none });
    for warmup in [0, 217] {
        plan.warmup = Span::from_us(warmup);
        let summary = run(&plan);
        near(summary.settle["first"].time_us, 220.0 - 216.968);
        near(summary.settle["last"].time_us, 220.0 - 218.032);
        near(summary.settle["leads"].time_us, 220.0 - 208.032);
        assert_eq!(summary.settle["never"].time_us, None);
        let goodput = &summary.span["within"]["goodput_gbps"];
        assert_eq!(goodput.count, 2);
        near(goodput.min, 47.0 * 1000.0 * 8e-3 / 50.0);
    }
    let two = Simulation::with_threads(&plan, 2).expect("plan");
    let two = two.run("test", &mut |_| {}).expect("run");
    assert_eq!(fingerprint(&run(&plan)), fingerprint(&two));
}

/// Of the bytes that arrive at 3.064 + 1.064 n us, 44 packets have arrived after 50 us, 91 after 100 us and
/// 138 after 150 us: 47 in each interval, whether the warm-up ends between them or not.
#[test]
fn spans_do_not_care_about_the_warmup() {
    let mut plan = shared_link();
    let span = |from, to| Question::Span { from: Moment::At(at(from)), to: Moment::At(at(to)) };
    plan.measures.series = vec![
        series(Subject::Workload(0), Quantity::Goodput, 50, span(50, 150)),
        series(Subject::Flow(1), Quantity::Share, 300, span(0, 300)),
        series(Subject::Ports(0), Quantity::QueueBytes, 1_000, span(0, 1_000)),
    ];
    for warmup in [0, 80] {
        plan.warmup = Span::from_us(warmup);
        let summary = run(&plan);
        let goodput = &summary.span["series-Goodput-50"]["goodput_gbps"];
        assert_eq!(goodput.count, 2);
        near(goodput.min, 47.0 * 1000.0 * 8e-3 / 50.0);
        near(goodput.max, 47.0 * 1000.0 * 8e-3 / 50.0);
        near(summary.span["series-Share-300"]["share"].mean, 0.5);
        let queue = &summary.span["series-QueueBytes-1000"]["queue_bytes"];
        near(queue.p50, 10_200.0 * 1.064 * 1064.0 / 1000.0);
    }
    let two = Simulation::with_threads(&plan, 2).expect("plan");
    let two = two.run("test", &mut |_| {}).expect("run");
    assert_eq!(fingerprint(&run(&plan)), fingerprint(&two));
}
