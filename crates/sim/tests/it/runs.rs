//! Whole runs: determinism, conservation, the kinds of port, clocks and hosts.

use crate::support::{Plan, Simulation, Topology};
use std::sync::atomic::Ordering;

use crate::support::{connection, fingerprint, plan, run, tier};
use apus_fabric::PortKind;
use apus_sim::host_model::{EngineCosts, HostModel};
use apus_sim::plan::{Fault, FaultKind};
use apus_sim::summary::Summary;
use apus_sim::{Progress, Watch};
use apus_units::{Bytes, PortId, Rate, Span, Time};

const SWIFT: (&str, &[(&str, &str)]) = ("swift", &[]);

/// Returns `flows` Swift flows from hosts 0..8 to host 8 at 50 Gb/s through `buffer`.
fn incast(flows: u32, buffer: u64, host: HostModel) -> Plan {
    let tier = apus_fabric::Tier::hosts(Rate::from_gbps(50), Span::from_us(2), Bytes::new(buffer));
    let connections = (0..flows)
        .map(|flow| {
            let mut connection = connection(SWIFT, flow % 8, 8, 64_000);
            connection.start = Time::from_ps(u64::from(flow) * 1_234_567);
            connection
        })
        .collect();
    let mut plan = plan(Topology::star(9, &tier), connections, Span::from_ms(5));
    plan.host = host;
    plan
}

fn t1() -> HostModel {
    HostModel::preset("t1").expect("preset")
}

#[test]
fn the_same_plan_gives_the_same_results() {
    let plan = incast(40, 1 << 20, t1());
    assert_eq!(fingerprint(&run(&plan)), fingerprint(&run(&plan)));
}

/// Interrupts `plan` at the first step at or after `at`.
fn interrupted(plan: &Plan, at: Span) -> Summary {
    let watch = Watch::default();
    let simulation = Simulation::new(plan).expect("plan").watched_by(&watch);
    let mut progress = |progress: Progress| {
        if progress.simulated >= at {
            watch.stop.store(true, Ordering::Relaxed);
        }
    };
    simulation.run("interrupted", &mut progress).expect("run")
}

/// Forty flows of hosts without costs fill a link of 50 Gb/s.
#[test]
fn interrupted_run_keeps_what_it_measured() {
    let mut plan = incast(40, 1 << 20, HostModel::IDEAL);
    plan.warmup = Span::from_ms(1);
    let summary = interrupted(&plan, Span::from_ms(3));
    assert!(summary.interrupted);
    assert_eq!(summary.stop_reason.as_deref(), Some("interrupted"));
    assert!((0.003..0.005).contains(&summary.simulated_s), "{}", summary.simulated_s);
    assert!((40.0..50.0).contains(&summary.goodput_gbps), "{}", summary.goodput_gbps);
    assert!(summary.measured.ops > 0);
}

#[test]
fn run_interrupted_in_the_warm_up_measures_nothing() {
    let mut plan = incast(40, 1 << 20, t1());
    plan.warmup = Span::from_ms(4);
    let summary = interrupted(&plan, Span::from_ms(2));
    assert!(summary.interrupted);
    assert_eq!((summary.measured.seconds, summary.goodput_gbps), (0.0, 0.0));
    assert!(summary.startup.ops > 0);
}

#[test]
fn another_seed_gives_other_results() {
    let mut plan = incast(40, 1 << 20, t1());
    let first = fingerprint(&run(&plan));
    plan.seed = 2;
    assert_ne!(fingerprint(&run(&plan)), first);
}

/// Three kinds of port are the same queue: one that computes departures on arrival, one that serves when it
/// is touched, and one with a service event per packet. No measurement of a run differs, drops included.
#[test]
fn all_kinds_of_port_give_the_same_run() {
    for (host, buffer) in [(HostModel::IDEAL, 60_000), (HostModel::IDEAL, 1 << 20), (t1(), 1 << 20)]
    {
        let mut plan = incast(100, buffer, host);
        let fifo = run(&plan);
        plan.least_ports = PortKind::Lazy;
        assert_eq!(fingerprint(&fifo), fingerprint(&run(&plan)));
        plan.least_ports = PortKind::Event;
        let mut class = run(&plan);
        assert!(buffer > 60_000 || fifo.packets.dropped > 0, "the small buffer must overflow");
        // One more event per packet is the only intended difference.
        class.work.events = fifo.work.events;
        class.work.event_hash.clone_from(&fifo.work.event_hash);
        assert_eq!(fingerprint(&fifo), fingerprint(&class));
    }
}

/// A fault of a port that is not built for faults would have no effect and no error.
#[test]
fn a_fault_that_a_port_cannot_have_is_an_error() {
    for least_ports in [PortKind::Fifo, PortKind::Lazy, PortKind::Event] {
        let mut plan = incast(4, 1 << 20, HostModel::IDEAL);
        plan.least_ports = least_ports;
        plan.faults.push(Fault {
            port: PortId::new(0),
            at: Time::ZERO,
            until: Time::MAX,
            kind: FaultKind::Loss(0.1),
        });
        let Err(error) = Simulation::new(&plan) else { panic!("{least_ports:?} takes it") };
        assert!(error.to_string().contains("set `variable`"), "{error}");
    }
}

/// Stalls and costs of the engine are host delay (Swift §3.1): they count in the endpoint part of an RTT and
/// do not change the fabric part.
#[test]
fn swift_3_1_engine_stalls_are_not_fabric_delay() {
    let fabric_max = |stall| {
        let costs = EngineCosts { stall, noise: 0.0, ..EngineCosts::T1 };
        let host = HostModel { engine: Some(costs), ..HostModel::preset("t1-quiet").expect("t1") };
        let mut plan = incast(1, 1 << 22, host);
        plan.duration = Span::from_ms(40);
        run(&plan).fabric_rtt_us.max.unwrap()
    };
    let (none, long) = (fabric_max(Span::from_ps(1)), fabric_max(Span::from_us(150)));
    // A stall may bunch a flow's own packets in its NIC; that adds a microsecond or two, not 150.
    assert!(long < none + 15.0, "{none} us without stalls, {long} us with stalls of 150 us");
}

#[test]
fn packets_are_conserved() {
    let summary = run(&incast(400, 20_000, HostModel::IDEAL));
    let packets = &summary.packets;
    assert!(packets.dropped > 0 && packets.in_flight > 0);
    assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight);
}

/// Swift App. A: if the clocks of hosts and NICs differ and drift, measurements change by nanoseconds only,
/// because timestamps are subtracted on one host's clock after conversion.
#[test]
fn swift_appendix_a_skewed_and_drifting_clocks_hardly_change_a_run() {
    let straight = run(&incast(40, 1 << 20, t1()));
    let skewed = HostModel { clock_offset: Span::from_secs(1000), clock_drift_ppb: 50_000, ..t1() };
    let skewed = run(&incast(40, 1 << 20, skewed));
    for (a, b) in [
        (&straight.fabric_rtt_us, &skewed.fabric_rtt_us),
        (&straight.end_to_end_rtt_us, &skewed.end_to_end_rtt_us),
        (&straight.endpoint_delay_us, &skewed.endpoint_delay_us),
    ] {
        let (a, b) = (a.mean.unwrap(), b.mean.unwrap());
        assert!((a / b - 1.0).abs() < 0.05, "{a} us with true clocks, {b} us with skewed ones");
    }
}

/// The parts of an RTT add up: end-to-end = fabric + endpoint (Swift §3.3).
#[test]
fn swift_3_3_fabric_and_endpoint_delay_make_up_the_rtt() {
    let summary = run(&incast(40, 1 << 20, t1()));
    let mean = |d: &apus_sim::distribution::DistributionSummary| d.mean.unwrap();
    let sum = mean(&summary.fabric_rtt_us) + mean(&summary.endpoint_delay_us);
    assert!((sum - mean(&summary.end_to_end_rtt_us)).abs() < 1e-6);
    assert!(mean(&summary.endpoint_delay_us) > 0.5, "the engine takes time");
}

/// One write of one packet at a time, so that the engines' work can be counted by hand. The sender pays for
/// packet, op and acknowledgement; the receiver pays for packet, bytes, op and acknowledgement; each of them
/// also pays for one iteration of its loop.
#[test]
fn engines_work_as_much_as_their_costs_add_up_to() {
    let costs = EngineCosts { noise: 0.0, ..EngineCosts::T1_QUIET };
    let host = HostModel { engine: Some(costs), ..HostModel::preset("t1-quiet").expect("preset") };
    let mut plan = incast(1, 1 << 20, host);
    let bytes = f64::from(plan.endpoint.max_payload);
    plan.connections = vec![connection(SWIFT, 0, 8, u64::from(plan.endpoint.max_payload))];
    let summary = run(&plan);
    let sender = costs.send_packet + costs.send_op + costs.receive_ack + costs.round;
    let copy = costs.copy_kib.mul_f64(bytes / 1024.0);
    let receiver = costs.receive_packet + copy + costs.receive_op + costs.send_ack + costs.round;
    let per_op = (sender + receiver).as_ps_f64() / bytes;
    let measured = summary.engine_ns_per_kb.unwrap();
    assert!((measured / per_op - 1.0).abs() < 0.01, "{measured} ns/kB, {per_op} expected");
    assert!((summary.acks_per_packet.unwrap() - 1.0).abs() < 0.01);
}

/// An ideal host takes no time at all.
#[test]
fn ideal_hosts_have_no_endpoint_delay() {
    let summary = run(&incast(40, 1 << 20, HostModel::IDEAL));
    assert_eq!(summary.endpoint_delay_us.max, Some(0.0));
}

/// The engine of the receiver is slower than the link. The endpoint window takes over (Swift §3.3), and the
/// receive queue stays near the endpoint target instead of filling the NIC.
#[test]
fn swift_3_3_a_slow_engine_is_held_near_the_endpoint_target() {
    let slow = EngineCosts { receive_packet: Span::from_ns(1_500), ..EngineCosts::T1 };
    let host = HostModel { engine: Some(slow), ..t1() };
    let mut plan = incast(16, 1 << 22, host);
    plan.duration = Span::from_ms(60);
    plan.warmup = Span::from_ms(30);
    let summary = run(&plan);
    let endpoint = summary.endpoint_delay_us.p50.unwrap();
    assert!((60.0..160.0).contains(&endpoint), "median endpoint delay {endpoint} us, target 100");
    assert!(summary.endpoint_delay_us.p50 > summary.fabric_rtt_us.p50);
    assert_eq!(summary.packets.dropped_at_nic, 0);
}

/// The receive queue is finite: a constant window that is too large for a slow engine loses packets there.
#[test]
fn a_full_receive_queue_drops_and_the_ops_still_complete() {
    let slow = EngineCosts { receive_packet: Span::from_us(5), ..EngineCosts::T1 };
    let host = HostModel { engine: Some(slow), receive_queue: Bytes::new(20_000), ..t1() };
    let connections =
        (0..8).map(|from| connection(("constant", &[("window", "16")]), from, 8, 64_000)).collect();
    let topology = Topology::star(9, &tier(Rate::from_gbps(50), Span::from_us(2)));
    let mut plan = plan(topology, connections, Span::from_ms(50));
    plan.host = host;
    let summary = run(&plan);
    assert!(summary.packets.dropped_at_nic > 0);
    assert!(summary.measured.ops > 10, "{} ops", summary.measured.ops);
}

/// Swift App. C: with one thread for both directions, sending takes time from receiving. With a thread of its
/// own, the receiver answers sooner while it sends data itself.
#[test]
fn swift_appendix_c_shared_scheduling_delays_what_is_received() {
    let delay = |shared: bool| {
        let costs = EngineCosts { shared, stall_every: Span::ZERO, ..EngineCosts::T1 };
        let host = HostModel { engine: Some(costs), ..t1() };
        let pairs = [(0, 1), (1, 0)];
        let connections = pairs
            .map(|(from, to)| {
                let mut connection = connection(SWIFT, from, to, 64_000);
                crate::support::set_outstanding(&mut connection, 8);
                connection
            })
            .to_vec();
        let topology = Topology::star(2, &tier(Rate::from_gbps(50), Span::from_us(2)));
        let mut plan = plan(topology, connections, Span::from_ms(20));
        plan.host = host;
        run(&plan).endpoint_delay_us.mean.unwrap()
    };
    let (shared, apart) = (delay(true), delay(false));
    assert!(shared > 1.2 * apart, "shared {shared} us, apart {apart} us");
}

/// Swift §3.6: a batch of packets is acknowledged by one ACK per flow.
#[test]
fn swift_3_6_engines_coalesce_acks_and_ideal_hosts_do_not() {
    let ratio = |host| {
        let mut plan = incast(8, 1 << 22, host);
        plan.connections.truncate(1);
        crate::support::set_outstanding(&mut plan.connections[0], 8);
        let summary = run(&plan);
        summary.measured.acks_sent as f64 / summary.measured.data_packets_delivered as f64
    };
    assert!((ratio(HostModel::IDEAL) - 1.0).abs() < 1e-9);
    assert!(ratio(t1()) < 0.8, "{}", ratio(t1()));
}

/// DCTCP holds the queue near its marking threshold (RFC 8257 §3.1); Swift does not need marks.
#[test]
fn dctcp_keeps_the_queue_near_the_marking_threshold() {
    let threshold = Bytes::new(100_000);
    let marker = apus_algorithms::BuiltInSwitch::Ecn(
        apus_algorithms::dctcp::switch::EcnMarker::new(threshold),
    );
    let topology = Topology::star(3, &tier(Rate::from_gbps(10), Span::from_us(5)))
        .with_switch_ports(|port| *port = port.clone().with_algorithm(&marker));
    let connections = (0..2)
        .map(|from| {
            let mut connection = connection(("dctcp", &[]), from, 2, 1_000_000);
            crate::support::set_outstanding(&mut connection, 2);
            connection
        })
        .collect();
    let mut plan = plan(topology, connections, Span::from_ms(100));
    plan.warmup = Span::from_ms(50);
    let summary = run(&plan);
    let queue = summary.busiest_port.mean_queue_bytes;
    assert!((60_000.0..140_000.0).contains(&queue), "mean queue {queue} B");
    assert!(summary.busiest_port.utilisation > 0.99);
    assert_eq!(summary.packets.dropped, 0);
}
