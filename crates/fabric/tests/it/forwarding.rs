//! Store and forward, drop-tail, marking and TTL, to the picosecond.

use crate::support::{PortConfig, Tier, Topology};
use crate::support::{Sim, UNLIMITED, gbps, host_tier, ps, switch_tier, wire};
use apus_algorithms::BuiltInSwitch;
use apus_algorithms::dctcp::switch::EcnMarker;
use apus_cc::Ecn;
use apus_fabric::{DropReason, PortKind, Sent};
use apus_units::{Bytes, HostId, PortId, Span};

const PORT: PortId = PortId::new(0);
/// 1500 B at 100 Gb/s.
const T: u64 = 120_000;
/// Delay of every link in these tests.
const D: u64 = 1_000_000;

/// Builds the network with ports of each kind.
fn all_kinds(topology: &Topology) -> [Sim; 3] {
    let kinds = [PortKind::Fifo, PortKind::Lazy, PortKind::Event];
    kinds.map(|least| Sim::build_at_least(topology, least))
}

#[test]
fn store_and_forward_over_1_to_6_hops() {
    let rate = gbps(100);
    let (hosts, switches) = (host_tier(rate), switch_tier(rate));
    let cases = [
        (1, wire(PortConfig::new(rate, UNLIMITED)), 1),
        (2, Topology::star(3, &hosts), 2),
        (3, Topology::dumbbell(2, 2, &hosts, &switches), 3),
        (4, Topology::leaf_spine(2, 2, 3, &hosts, &switches), 3),
        (5, Topology::parking_lot(4, 1, &hosts, &switches), 3),
        (6, Topology::fat_tree(4, 2, &hosts, &switches, &switches).unwrap(), 15),
    ];
    for (hops, topology, dst) in cases {
        for mut sim in all_kinds(&topology) {
            let route = sim.route(0, dst);
            assert_eq!(sim.net.route_ports(route).len(), hops as usize);
            for id in 0..3 {
                assert_eq!(sim.send_bytes(route, 1500, id), Sent::Accepted);
            }
            sim.run();
            // The first packet is serialised once per hop; each further packet leaves T later.
            let first = hops * (T + D);
            assert_eq!(sim.arrivals_ps(), [first, first + T, first + 2 * T], "{hops} hops");
            assert!(sim.delivered.iter().all(|d| d.host == HostId::new(dst)));
            let rtt = sim.net.unloaded_rtt(
                HostId::new(0),
                HostId::new(dst),
                Bytes::new(1500),
                Bytes::new(84),
            );
            assert_eq!(rtt, Ok(Span::from_ps(first + hops * (6_720 + D))));
        }
    }
}

/// After a restart of the measurement, a packet that finds the port empty is a queue of its own
/// length.
#[test]
fn the_largest_queue_is_measured_again_after_a_restart() {
    for mut sim in all_kinds(&wire(PortConfig::new(gbps(100), UNLIMITED))) {
        let route = sim.route(0, 1);
        for id in 0..3 {
            sim.send_bytes(route, 1500, id);
            sim.run();
            let now = sim.now();
            assert_eq!(sim.net.port_counters(PORT, now).max_queue.get(), 1500, "packet {id}");
            sim.net.restart_max_queues(now);
            assert_eq!(sim.net.port_counters(PORT, now).max_queue.get(), 0);
        }
    }
}

#[test]
fn rates_that_do_not_divide_round_up_per_packet() {
    // 1500 B at 102 Gb/s: 117,647.06 ps, so 117,648 per packet and hop.
    for mut sim in all_kinds(&Topology::star(2, &host_tier(gbps(102)))) {
        let route = sim.route(0, 1);
        for id in 0..3 {
            sim.send_bytes(route, 1500, id);
        }
        sim.run();
        let first = 2 * (117_648 + D);
        assert_eq!(sim.arrivals_ps(), [first, first + 117_648, first + 2 * 117_648]);
    }
}

#[test]
fn pipeline_latency_is_added_once_per_switch() {
    let topology = Topology::dumbbell(1, 1, &host_tier(gbps(100)), &switch_tier(gbps(100)))
        .with_pipeline_latency(Span::from_ns(450));
    for mut sim in all_kinds(&topology) {
        let route = sim.route(0, 1);
        sim.send_bytes(route, 1500, 0);
        sim.run();
        assert_eq!(sim.arrivals_ps(), [3 * (T + D) + 2 * 450_000]);
    }
}

#[test]
fn a_slower_middle_link_spaces_packets() {
    let topology = Topology::dumbbell(1, 1, &host_tier(gbps(100)), &switch_tier(gbps(10)));
    for mut sim in all_kinds(&topology) {
        let route = sim.route(0, 1);
        for id in 0..2 {
            sim.send_bytes(route, 1500, id);
        }
        sim.run();
        let first = T + D + 10 * T + D + T + D;
        assert_eq!(sim.arrivals_ps(), [first, first + 10 * T]);
    }
}

#[test]
fn drop_tail_is_exact_at_the_limit() {
    for (limit, accepted) in [(4499, 2), (4500, 3), (4501, 3)] {
        for mut sim in all_kinds(&wire(PortConfig::new(gbps(100), Bytes::new(limit)))) {
            let route = sim.route(0, 1);
            let sent: Vec<Sent> = (0..5).map(|id| sim.send_bytes(route, 1500, id)).collect();
            for (n, sent) in sent.into_iter().enumerate() {
                let expected =
                    if n < accepted { Sent::Accepted } else { Sent::Dropped(DropReason::Buffer) };
                assert_eq!(sent, expected, "packet {n} with a limit of {limit} B");
            }
            let counters = sim.net.port_counters(PORT, ps(0));
            assert_eq!(counters.queued.packets, accepted as u64);
            assert_eq!(counters.max_queue, Bytes::new(1500 * accepted as u64));
            assert_eq!(counters.dropped.packets, 5 - accepted as u64);
            sim.run();
            assert_eq!(sim.delivered.len(), accepted);
        }
    }
}

#[test]
fn a_departure_at_exactly_now_counts_as_gone() {
    for mut sim in all_kinds(&wire(PortConfig::new(gbps(100), Bytes::new(1500)))) {
        let route = sim.route(0, 1);
        sim.send_bytes(route, 1500, 0);
        sim.run_before(ps(T - 1));
        assert_eq!(sim.net.queue_bytes(PORT, ps(T - 1)), Bytes::new(1500));
        assert_eq!(sim.send_bytes(route, 1500, 1), Sent::Dropped(DropReason::Buffer));
        // The service event of this time is still pending: the result must not depend on it.
        sim.run_before(ps(T));
        assert_eq!(sim.net.queue_bytes(PORT, ps(T)), Bytes::ZERO);
        assert_eq!(sim.net.port_counters(PORT, ps(T)).queued.packets, 0);
        assert_eq!(sim.net.port_counters(PORT, ps(T)).sent.packets, 1);
        assert_eq!(sim.send_bytes(route, 1500, 2), Sent::Accepted);
        assert_eq!(sim.net.busy_until(PORT), ps(2 * T));
        sim.run();
        assert_eq!(sim.arrivals_ps(), [T + D, 2 * T + D]);
    }
}

#[test]
fn time_integrals_are_exact_at_any_instant() {
    for mut sim in all_kinds(&wire(PortConfig::new(gbps(100), UNLIMITED))) {
        let route = sim.route(0, 1);
        for id in 0..3 {
            sim.send_bytes(route, 1500, id);
        }
        // Three packets for T, two packets for T, one packet for T.
        let expected = |t: u64| {
            u128::from(3 * t.min(T))
                + u128::from(2 * t.saturating_sub(T).min(T))
                + u128::from(t.saturating_sub(2 * T).min(T))
        };
        for t in [0, 1, T - 1, T, T + 1, 2 * T, 3 * T - 1, 3 * T, 5 * T] {
            sim.run_before(ps(t));
            let counters = sim.net.port_counters(PORT, ps(t));
            assert_eq!(counters.packet_time, expected(t), "at {t} ps");
            assert_eq!(counters.byte_time, 1500 * expected(t), "at {t} ps");
        }
    }
}

#[test]
fn rfc_8257_3_1_marks_above_the_threshold_only() {
    let marker = BuiltInSwitch::Ecn(EcnMarker::new(Bytes::new(3000)));
    let port = PortConfig::new(gbps(100), UNLIMITED).with_algorithm(&marker);
    for mut sim in all_kinds(&wire(port)) {
        let route = sim.route(0, 1);
        for id in 0..5 {
            let mut packet = sim.packet(route, 1500, id);
            packet.congestion.ecn = if id == 4 { Ecn::NotCapable } else { Ecn::Capable };
            sim.send(packet);
        }
        sim.run();
        // Packet 2 finds exactly 3000 B and packet 3 finds 4500 B; packet 4 is not ECN-capable.
        let ecn: Vec<Ecn> = sim.delivered.iter().map(|d| d.packet.congestion.ecn).collect();
        let quiet = Ecn::Capable;
        assert_eq!(ecn, [quiet, quiet, quiet, Ecn::Congested, Ecn::NotCapable]);
        assert_eq!(sim.net.port_counters(PORT, sim.now()).marked, 1);
    }
}

#[test]
fn each_switch_takes_one_off_the_ttl_and_drops_at_0() {
    let topology = Topology::parking_lot(4, 1, &host_tier(gbps(100)), &switch_tier(gbps(100)));
    for mut sim in all_kinds(&topology) {
        let route = sim.route(0, 3);
        for (id, ttl) in [(0, 5), (1, 4), (2, 0), (3, 64)] {
            let mut packet = sim.packet(route, 1500, id);
            packet.ttl = ttl;
            sim.send(packet);
        }
        sim.run();
        let left: Vec<(u32, u8)> =
            sim.delivered.iter().map(|d| (d.packet.payload, d.packet.ttl)).collect();
        assert_eq!(left, [(0, 1), (3, 60)]);
        assert!(sim.dropped.iter().all(|(_, reason)| *reason == DropReason::Ttl));
        assert_eq!(sim.net.counters().dropped[DropReason::Ttl as usize], 2);
        assert_eq!(sim.net.check_conservation(), Ok(()));
    }
}

#[test]
fn one_event_per_hop_at_fifo_ports_and_one_pending_per_link() {
    let mut sim = Sim::build(&Topology::star(2, &Tier::hosts(gbps(100), Span::ZERO, UNLIMITED)));
    let route = sim.route(0, 1);
    for id in 0..100 {
        sim.send_bytes(route, 1500, id);
    }
    sim.run();
    // The event queue of these tests refuses a second pending event of one kind at one port.
    assert_eq!(sim.engine.handled, 200);
}
