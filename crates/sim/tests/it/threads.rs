//! A run gives the same results for any number of threads, event by event.

use crate::support::{ClassConfig, Plan, Simulation, Topology};
use crate::support::{connection, fingerprint, plan, run};
use apus_algorithms::registry::build;
use apus_cc::{AlgorithmFactory, SwitchInfo};
use apus_fabric::{PortKind, SchedulerKind, Trim};
use apus_sim::host_model::HostModel;
use apus_sim::plan::Demand;
use apus_sim::plan::{Load, OpArrival};
use apus_sim::record::Record;
use apus_sim::summary::Summary;
use apus_units::{Bytes, ClassId, Rate, Span, Time};

/// Checks that runs are equal for any number of threads. Every event (its time and its entity) enters the
/// hash, and every measurement of a run enters the fingerprint.
fn check(plan: &Plan) {
    let alone = run(plan);
    let record = Record { flows: 5, ports: 7, ..Record::of_duration(plan.duration) };
    let recorded = |threads| {
        let simulation = Simulation::with_threads(plan, threads).expect("plan");
        let recorded = simulation.record(record).expect("record");
        let summary = recorded.run("test", &mut |_| {}).expect("run");
        let noted = Summary { notes: summary.notes.clone(), ..alone.clone() };
        assert_eq!(fingerprint(&summary), fingerprint(&noted), "recorded, {threads} threads");
        // Compared as text, because values that an algorithm does not have are NaN.
        format!("{:?}", summary.recording.expect("recorded"))
    };
    let tables = recorded(1);
    assert!(alone.work.events > 10_000, "too little happens to tell: {} events", alone.work.events);
    let windows = Simulation::new(plan).expect("plan").in_windows();
    let windows = windows.run("test", &mut |_| {}).expect("run");
    assert_eq!(windows.work.event_hash, alone.work.event_hash, "window by window");
    assert_eq!(fingerprint(&windows), fingerprint(&alone), "window by window");
    for threads in [2, 3, 8] {
        let mut simulation = Simulation::with_threads(plan, threads).expect("plan");
        if threads == 3 {
            simulation = simulation.in_windows().alternating();
        }
        let together = simulation.run("test", &mut |_| {}).expect("run");
        assert_eq!(together.cost.threads, threads.min(plan.topology.hosts));
        assert_eq!(together.work.event_hash, alone.work.event_hash, "{threads} threads");
        assert_eq!(fingerprint(&together), fingerprint(&alone), "{threads} threads");
        assert!(recorded(threads) == tables, "the tables of {threads} threads differ");
    }
}

fn fat_tree(buffer: u64) -> Topology {
    let tier =
        apus_fabric::Tier::switches(Rate::from_gbps(100), Span::from_us(1), Bytes::new(buffer));
    let hosts =
        apus_fabric::Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(buffer));
    Topology::fat_tree(4, 2, &hosts, &tier, &tier).expect("fat tree")
}

/// Every host sends to three other hosts, with staggered start times.
fn crowd(buffer: u64, algorithm: (&str, &[(&str, &str)])) -> Plan {
    let mut connections = Vec::new();
    for from in 0..16 {
        for step in [1, 5, 11] {
            let mut connection = connection(algorithm, from, (from * 3 + step) % 16, 64_000);
            connection.start = Time::from_ps(u64::from(from * 7 + step) * 123_457);
            connections.push(connection);
        }
    }
    connections.retain(|c| c.from != c.to);
    let mut plan = plan(fat_tree(buffer), connections, Span::from_us(400));
    plan.warmup = Span::from_us(120);
    plan.drain = Span::from_us(300);
    plan.sample_interval = Some(Span::from_us(40));
    plan.fair_share_after = Some(Span::from_us(40));
    plan
}

#[test]
fn swift_on_a_fat_tree() {
    check(&crowd(1 << 20, ("swift", &[])));
}

#[test]
fn losses_and_retransmissions() {
    let plan = crowd(30_000, ("constant", &[("window", "60")]));
    assert!(run(&plan).packets.dropped > 0);
    check(&plan);
}

/// The last op ends the run, in whichever part it is. Messages of 100 kB over 100 Gb/s take at least 8 us.
#[test]
fn messages_that_end_the_run_with_the_last_op() {
    let mut plan = crowd(1 << 20, ("swift", &[]));
    for connection in &mut plan.connections {
        let arrival = OpArrival { at: connection.start, size: Bytes::new(100_000) };
        connection.load = Load::Open([arrival].into());
    }
    plan.duration = Span::from_ms(20);
    plan.warmup = Span::ZERO;
    plan.ends_with_ops = true;
    // Two workloads by sender, with two algorithms by name.
    let half = plan.connections.iter().take_while(|connection| connection.from.get() < 8).count();
    let all = plan.connections.len();
    plan.trace_ops = Some(all as u64);
    plan.demands = [("low", "a", 0..half), ("high", "b", half..all)]
        .map(|(label, algorithm, connections)| Demand {
            label: label.to_owned(),
            algorithm: algorithm.to_owned(),
            class: None,
            connections,
            open: None,
            is_trace: true,
        })
        .to_vec();
    check(&plan);
    let summary = run(&plan);
    let first = plan.connections.iter().map(|connection| connection.start).min().expect("one");
    let makespan = summary.makespan_us.expect("all have ended");
    let end = first.as_ps() as f64 * 1e-6 + makespan;
    assert!((summary.measured.seconds * 1e6 - end).abs() < 1e-6, "{end}: {summary:?}");
    assert!((8.0..20_000.0).contains(&makespan), "{makespan}");
    let ops: Vec<u64> = summary.groups.iter().map(|group| group.share.ops).collect();
    assert_eq!(ops, [half as u64, (all - half) as u64]);
}

#[test]
fn class_ports() {
    let mut plan = crowd(1 << 20, ("swift", &[]));
    plan.least_ports = PortKind::Event;
    check(&plan);
}

/// Queues at the cut, with acknowledgements in a class of higher priority, and with drops. A port whose link
/// leads to another part must serve its queue even if no more packets arrive.
#[test]
fn strict_priorities() {
    for (buffer, algorithm, settings) in
        [(1 << 20, "swift", [].as_slice()), (60_000, "constant", &[("window", "60")])]
    {
        let mut plan = crowd(buffer, (algorithm, settings));
        plan.topology = plan.topology.with_switch_ports(|port| {
            let data = ClassConfig { priority: 1, ..ClassConfig::default() };
            port.classes = vec![data, ClassConfig::default()];
        });
        plan.ack_class = Some(ClassId::new(1));
        check(&plan);
        let strict = run(&plan);
        assert_eq!(strict.packets.dropped > 0, algorithm == "constant");
        let strict = fingerprint(&strict);
        plan.least_ports = PortKind::Lazy;
        assert_eq!(fingerprint(&run(&plan)), strict, "NICs");
        plan.least_ports = PortKind::Event;
        let mut general = run(&plan);
        // These ports have service events.
        let work = run(&Plan { least_ports: PortKind::Lazy, ..plan.clone() }).work;
        general.work.events = work.events;
        general.work.event_hash = work.event_hash;
        assert_eq!(fingerprint(&general), strict, "the general kind");
    }
}

/// The data of every third connection and acknowledgements share ports with other data by weight.
#[test]
fn schedulers_of_classes() {
    for (word, scheduler) in SchedulerKind::WORDS {
        let mut plan = crowd(60_000, ("constant", &[("window", "60")]));
        plan.topology = plan.topology.with_switch_ports(|port| {
            let gold = ClassConfig { weight: 3, ..ClassConfig::default() };
            port.classes = vec![ClassConfig::default(), gold];
            port.scheduler = scheduler;
        });
        for connection in plan.connections.iter_mut().step_by(3) {
            connection.class = ClassId::new(1);
        }
        plan.ack_class = Some(ClassId::new(1));
        assert!(run(&plan).packets.dropped > 0, "{word}");
        check(&plan);
    }
}

#[test]
fn hosts_with_engines_and_clocks_of_their_own() {
    let mut plan = crowd(1 << 20, ("swift", &[]));
    plan.host = HostModel {
        clock_offset: Span::from_secs(1),
        clock_drift_ppb: 20_000,
        ..HostModel::preset("t1").expect("preset")
    };
    check(&plan);
}

/// Falcon's path change resolves routes while the parts run. This must not affect the routes of other parts.
#[test]
fn routes_that_change_on_the_way() {
    let settings = [("base_target", "12us"), ("fs_range", "0us"), ("plb_rounds", "1")];
    let mut plan = crowd(1 << 20, ("swift", &[]));
    let falcon = build("swift", Some("falcon"), &settings).expect("falcon");
    for connection in &mut plan.connections {
        connection.algorithm = falcon.clone();
        crate::support::set_outstanding(connection, 4);
    }
    check(&plan);
}

/// An incast crosses the cut with data in one direction and with only ACKs in the other direction.
#[test]
fn an_incast_into_one_part() {
    let mut plan = crowd(1 << 20, ("swift", &[]));
    plan.connections = (1..16).map(|from| connection(("swift", &[]), from, 0, 64_000)).collect();
    check(&plan);
}

/// Adds the switch halves of an algorithm to every switch, with two classes, and control packets before data.
fn with_switch_halves(mut plan: Plan, algorithm: &str) -> Plan {
    let half = build(algorithm, None, &[]).expect("algorithm");
    let info = |seed| SwitchInfo { packet: Bytes::new(4160), seed, nic: false };
    plan.topology = plan.topology.with_switch_ports(|port| {
        let control = ClassConfig::default();
        let data = ClassConfig { priority: 1, algorithm: half.switch(&info(7)), ..control.clone() };
        port.classes = vec![control, data];
    });
    for connection in &mut plan.connections {
        connection.class = ClassId::new(1);
    }
    plan.ack_class = Some(ClassId::new(0));
    plan
}

/// Signals of switches cross the cut, and take the reverse paths of other routes.
#[test]
fn bolt_on_a_fat_tree() {
    let plan = with_switch_halves(crowd(1 << 20, ("bolt", &[])), "bolt");
    check(&plan);
    let summary = run(&plan);
    assert!(summary.packets.signals > 1_000, "only {} signals", summary.packets.signals);
}

/// Telemetry crosses the cut with its packets, in both directions.
#[test]
fn hpcc_on_a_fat_tree() {
    check(&with_switch_halves(crowd(1 << 20, ("hpcc", &[])), "hpcc"));
}

/// Ports trim at random; headers and NACKs of trimmed packets cross the cut.
#[test]
fn trimming_on_a_fat_tree() {
    let mut plan = crowd(1 << 20, ("nscc", &[]));
    plan.topology = plan.topology.with_switch_ports(|port| {
        let trim =
            Trim { class: ClassId::new(0), bytes: 84, tail: true, keeps_headers: true, seed: 3 };
        let limit = Bytes::new(30_000);
        let data = ClassConfig { priority: 1, limit, trim: Some(trim), ..ClassConfig::default() };
        port.classes = vec![ClassConfig::default(), data];
    });
    for connection in &mut plan.connections {
        connection.class = ClassId::new(1);
    }
    plan.ack_class = Some(ClassId::new(0));
    check(&plan);
    let summary = run(&plan);
    assert!(summary.packets.trimmed > 1_000, "only {} trims", summary.packets.trimmed);
    assert_eq!((summary.packets.dropped, summary.packets.headers_lost), (0, 0));
}
