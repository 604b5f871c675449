//! Links that are cut or slowed down.

use crate::support::{ClassConfig, PortConfig, Sim, UNLIMITED, gbps, ps, wire};
use apus_algorithms::BuiltInSwitch;
use apus_algorithms::dctcp::switch::EcnMarker;
use apus_cc::{CongestionHeader, Ecn, Fields, PortView, SwitchFeedback, SwitchHalf, Verdict};
use apus_fabric::{Count, DropReason, Impairment, Node, RateLimit};
use apus_units::{Bytes, ClassId, HostId, PortId, Span};

const PORT: PortId = PortId::new(0);
/// Time of 1500 B at 100 Gb/s, and delay of the link.
const T: u64 = 120_000;
const D: u64 = 1_000_000;

fn variable(buffer: Bytes) -> PortConfig {
    PortConfig { variable: true, ..PortConfig::new(gbps(100), buffer) }
}

fn send<W: SwitchHalf>(sim: &mut Sim<W>, packets: u32) {
    let route = sim.route(0, 1);
    for id in 0..packets {
        sim.send_bytes(route, 1500, id);
    }
}

/// When the link is cut, two of twelve packets have reached the peer. All others are on the link,
/// in service or queued, and are lost.
#[test]
fn a_cut_loses_packets_on_the_link_too() {
    let mut sim = Sim::build(&wire(variable(UNLIMITED)));
    send(&mut sim, 12);
    let cut = ps(2 * T + D + 1);
    sim.run_before(cut);
    assert_eq!(sim.ids(), [0, 1]);
    sim.net.set_link_up(cut, PORT, false, &mut sim.engine).expect("variable");
    sim.net.lose_flying(cut, PORT, &mut sim.engine).expect("variable");
    sim.run();
    assert_eq!(sim.ids(), [0, 1]);
    assert_eq!(sim.net.counters().dropped[DropReason::LinkDown as usize], 10);
    assert_eq!(sim.net.check_conservation(), Ok(()));
    let now = sim.now();
    sim.net.set_link_up(now, PORT, true, &mut sim.engine).expect("variable");
    send(&mut sim, 3);
    sim.run();
    assert_eq!(sim.ids(), [0, 1, 0, 1, 2]);
    assert_eq!(sim.net.check_conservation(), Ok(()));
}

/// Packets held back before the link are lost as well.
#[test]
fn a_cut_loses_packets_held_back() {
    let mut sim = Sim::build(&wire(variable(UNLIMITED)));
    let late = Impairment::reordering(1.0, Span::from_us(50), 1);
    sim.net.set_impairment(ps(0), PORT, Some(late), &mut sim.engine).expect("variable");
    send(&mut sim, 4);
    let cut = ps(10 * T);
    sim.run_before(cut);
    sim.net.lose_flying(cut, PORT, &mut sim.engine).expect("variable");
    sim.run();
    assert!(sim.ids().is_empty());
    assert_eq!(sim.net.counters().dropped[DropReason::LinkDown as usize], 4);
    assert_eq!(sim.net.check_conservation(), Ok(()));
}

/// At a quarter of the rate, a quarter of the packets fit into the queue, each takes four times as
/// long, and marks begin at a quarter of the threshold. Afterwards everything is as configured.
#[test]
fn a_slow_link_has_its_fraction_of_rate_memory_and_threshold() {
    let marker = BuiltInSwitch::Ecn(EcnMarker::new(Bytes::new(4 * 1500)));
    let port = variable(Bytes::new(40 * 1500)).with_algorithm(&marker);
    for (fraction, fit, unmarked) in [(0.25, 10, 2), (1.0, 40, 5)] {
        let mut sim = Sim::build(&wire(port.clone()));
        sim.net.set_capacity(ps(0), PORT, 0.25, &mut sim.engine).expect("variable");
        sim.net.set_capacity(ps(0), PORT, fraction, &mut sim.engine).expect("variable");
        let route = sim.route(0, 1);
        for id in 0..50 {
            let mut packet = sim.packet(route, 1500, id);
            packet.congestion.ecn = Ecn::Capable;
            sim.send(packet);
        }
        sim.run();
        assert_eq!(sim.delivered.len(), fit);
        assert_eq!(sim.arrivals_ps()[1], 2 * (T as f64 / fraction) as u64 + D);
        // A packet is marked if the bytes ahead of it exceeded the threshold.
        let marked = |d: &&crate::support::Delivery| d.packet.congestion.ecn == Ecn::Congested;
        assert_eq!(sim.delivered.iter().filter(marked).count(), fit - unmarked);
    }
    let mut sim = Sim::build(&wire(port));
    for wrong in [0.0, 1.5, f64::NAN] {
        let refused = sim.net.set_capacity(ps(0), PORT, wrong, &mut sim.engine).unwrap_err();
        assert!(refused.to_string().contains("at most 1"), "{refused}");
    }
}

/// The packet in service is lost at once, but counts as a drop only when its last bit would have
/// left.
#[test]
fn a_packet_that_was_in_service_is_being_lost_until_it_is_dropped() {
    let mut sim = Sim::build(&wire(variable(UNLIMITED)));
    let lost = |sim: &Sim| {
        let dropped = sim.net.counters().dropped[DropReason::LinkDown as usize];
        (sim.net.losing(PORT), dropped)
    };
    send(&mut sim, 2);
    assert_eq!(lost(&sim), (0, 0));
    let cut = ps(T / 2);
    sim.run_before(cut);
    sim.net.set_link_up(cut, PORT, false, &mut sim.engine).expect("variable");
    assert_eq!(lost(&sim), (1, 1));
    let up = ps(T / 2 + 1);
    sim.net.set_link_up(up, PORT, true, &mut sim.engine).expect("variable");
    assert_eq!(lost(&sim), (1, 1));
    sim.run();
    assert_eq!(lost(&sim), (0, 2));
    // A failure without a packet in service loses none.
    let now = sim.now();
    sim.net.set_link_up(now, PORT, false, &mut sim.engine).expect("variable");
    assert_eq!(lost(&sim), (0, 2));
}

/// The rate of a token bucket changes with that of its link, but the tokens in the bucket are kept.
/// Packets of 1500 B, one at once, at a quarter of the rate: at 2T the bucket holds half of a
/// packet's tokens, and the other half takes 4T at half the rate instead of 2T. At 8T it holds a
/// quarter, and at the whole rate the rest takes 3T.
#[test]
fn tokens_stay_when_a_link_becomes_slow_or_fast() {
    let limit = RateLimit { rate: gbps(25), burst: Bytes::new(1500) };
    let class = ClassConfig { rate_limit: Some(limit), ..ClassConfig::default() };
    let mut sim = Sim::build(&wire(PortConfig { classes: vec![class], ..variable(UNLIMITED) }));
    send(&mut sim, 4);
    for (at, fraction) in [(2 * T, 0.5), (8 * T, 1.0)] {
        sim.run_through(ps(at - 1));
        sim.net.set_capacity(ps(at), PORT, fraction, &mut sim.engine).expect("variable");
    }
    sim.run();
    assert_eq!(sim.arrivals_ps(), [T + D, 8 * T + D, 12 * T + D, 16 * T + D]);
}

/// Writes the bytes that the port has sent into each packet that joins it.
#[derive(Clone, Debug, Default)]
struct Meter;

impl SwitchHalf for Meter {
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        let [a, b, c, d, ..] = view.sent.get().to_le_bytes();
        header.fields = Fields::data(1, [a, b, c, d, 0, 0]);
        Verdict::Forward
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Nothing
    }
}

/// Packets that the link loses have occupied it, so they count as sent, for switch halves and in
/// all counters.
#[test]
fn packets_lost_on_the_link_were_sent() {
    let port = apus_fabric::PortConfig {
        variable: true,
        ..apus_fabric::PortConfig::new(gbps(100), UNLIMITED)
    };
    let topology: apus_fabric::Topology<Meter> = apus_fabric::Topology {
        hosts: 2,
        switches: Vec::new(),
        links: vec![apus_fabric::LinkSpec {
            a: Node::Host(HostId::new(0)),
            b: Node::Host(HostId::new(1)),
            delay: Span::from_us(1),
            ab: port.clone(),
            ba: port,
        }],
    };
    let mut sim = Sim::build(&topology);
    let loss = Some(Impairment::loss(1.0, 1));
    sim.net.set_impairment(ps(0), PORT, loss, &mut sim.engine).expect("variable");
    send(&mut sim, 2);
    sim.run();
    let now = sim.now();
    sim.net.set_impairment(now, PORT, None, &mut sim.engine).expect("variable");
    let route = sim.route(0, 1);
    sim.send_bytes(route, 1500, 2);
    sim.run();
    assert_eq!(sim.ids(), [2]);
    let seen = sim.delivered[0].packet.congestion.fields;
    let [a, b, ..] = 3000_u32.to_le_bytes();
    assert_eq!(seen, Fields::data(1, [a, b, 0, 0, 0, 0]));
    let count = |packets: u64| Count { packets, bytes: 1500 * packets };
    let counters = sim.net.port_counters(PORT, sim.now());
    assert_eq!((counters.offered, counters.sent), (count(3), count(3)));
    assert_eq!((counters.dropped, counters.lost), (count(2), count(2)));
    let class = sim.net.class_counters(PORT, ClassId::new(0), sim.now());
    assert_eq!((class.sent, class.lost), (count(3), count(2)));
    // A packet that is in service when the link fails has not left.
    let now = sim.now();
    send(&mut sim, 1);
    sim.net.set_link_up(now, PORT, false, &mut sim.engine).expect("variable");
    // The packet has not left at the end of its service either, as long as that end has not been
    // handled.
    let counters = sim.net.port_counters(PORT, now + Span::from_ps(T));
    assert_eq!((counters.sent, counters.dropped), (count(3), count(2)));
    sim.run();
    let counters = sim.net.port_counters(PORT, sim.now());
    assert_eq!((counters.sent, counters.dropped, counters.lost), (count(3), count(3), count(2)));
}
