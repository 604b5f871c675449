//! Ports with classes: priorities, weights, rate limits, pausing, shared memory, failures.

use crate::support::{ClassConfig, PortConfig, Tier, Topology};
use crate::support::{Sim, UNLIMITED, gbps, ps, wire};
use apus_algorithms::BuiltInSwitch;
use apus_algorithms::dctcp::switch::{EcnMarker, MarkAt};
use apus_cc::Ecn;
use apus_fabric::{Buffer, DropReason, Impairment, PfcConfig, PortKind, RateLimit, Sent};
use apus_units::{Bytes, ClassId, HostId, PortId, Rate, Span, SwitchId};

const PORT: PortId = PortId::new(0);
/// 1500 B at 100 Gb/s.
const T: u64 = 120_000;
/// Delay of the link.
const D: u64 = 1_000_000;

fn with_classes(classes: Vec<ClassConfig>) -> PortConfig {
    PortConfig { classes, pausable: true, ..PortConfig::new(gbps(100), UNLIMITED) }
}

/// Builds the port as a lazy port and as a port served by events.
fn both_kinds(classes: Vec<ClassConfig>) -> [Sim; 2] {
    let general = with_classes(classes);
    let strict = PortConfig { pausable: false, ..general.clone() };
    assert_eq!((strict.kind(), general.kind()), (PortKind::Lazy, PortKind::Event));
    [strict, general].map(|port| Sim::build(&wire(port)))
}

fn level(priority: u8) -> ClassConfig {
    ClassConfig { priority, ..ClassConfig::default() }
}

fn weight(weight: u32) -> ClassConfig {
    ClassConfig { weight, ..ClassConfig::default() }
}

fn send(sim: &mut Sim, class: u8, bytes: u32, id: u32) -> Sent {
    let route = sim.route(0, 1);
    let mut packet = sim.packet(route, bytes, id);
    packet.class = ClassId::new(class);
    sim.send(packet)
}

/// Returns the wire bytes of a class that were delivered.
fn delivered_bytes(sim: &Sim, class: u8) -> u64 {
    let of_class = sim.delivered.iter().filter(|d| d.packet.class == ClassId::new(class));
    of_class.map(|d| u64::from(d.packet.wire_bytes)).sum()
}

#[test]
fn a_higher_level_goes_first_but_does_not_interrupt() {
    // The priority level decides, not the number of the class.
    for mut sim in both_kinds(vec![level(7), level(2)]) {
        for id in 0..3 {
            send(&mut sim, 0, 1500, id);
        }
        for id in 10..12 {
            send(&mut sim, 1, 1500, id);
        }
        sim.run();
        assert_eq!(sim.ids(), [0, 10, 11, 1, 2]);
        assert_eq!(sim.arrivals_ps(), [1, 2, 3, 4, 5].map(|n| n * T + D));
    }
}

/// A packet that arrives exactly when a service begins is too late to be chosen.
#[test]
fn a_higher_level_arriving_as_a_service_begins_waits_for_it() {
    for mut sim in both_kinds(vec![level(1), level(0)]) {
        for id in 0..3 {
            send(&mut sim, 0, 1500, id);
        }
        sim.run_before(ps(T));
        send(&mut sim, 1, 1500, 10);
        sim.run_before(ps(2 * T - 1));
        send(&mut sim, 1, 1500, 11);
        sim.run();
        assert_eq!(sim.ids(), [0, 1, 10, 11, 2]);
    }
}

#[test]
fn a_class_the_port_does_not_have_joins_the_last_one() {
    for mut sim in both_kinds(vec![level(0), level(1)]) {
        send(&mut sim, 9, 1500, 0);
        assert_eq!(sim.net.class_queue_bytes(PORT, ClassId::new(1), ps(0)), Bytes::new(1500));
        assert_eq!(sim.net.class_queue_bytes(PORT, ClassId::new(0), ps(0)), Bytes::ZERO);
    }
}

/// Swift App. E: marked "at packet-egress", by the queue behind the packet as it leaves.
#[test]
fn marks_at_dequeue_depend_on_the_queue_behind_the_packet() {
    let marker = EcnMarker::new(Bytes::new(3000)).at(MarkAt::Dequeue);
    let port = PortConfig::new(gbps(100), UNLIMITED).with_algorithm(&BuiltInSwitch::Ecn(marker));
    let mut sim = Sim::build(&wire(port));
    let route = sim.route(0, 1);
    for id in 0..6 {
        let mut packet = sim.packet(route, 1500, id);
        packet.congestion.ecn = if id == 1 { Ecn::NotCapable } else { Ecn::Capable };
        sim.send(packet);
    }
    sim.run();
    // Packet 0 leaves before the other packets arrive. The queue behind packets 1 and 2 is 6000 and
    // 4500 B, behind packet 3 3000 B.
    let ecn: Vec<Ecn> = sim.delivered.iter().map(|d| d.packet.congestion.ecn).collect();
    let quiet = Ecn::Capable;
    assert_eq!(ecn, [quiet, Ecn::NotCapable, Ecn::Congested, quiet, quiet, quiet]);
    assert_eq!(sim.net.port_counters(PORT, sim.now()).marked, 1);
}

#[test]
fn weights_share_bytes_for_all_packet_sizes() {
    let mut sim = Sim::build(&wire(with_classes(vec![weight(1), weight(3), weight(6)])));
    for id in 0..6000 {
        send(&mut sim, 0, 9000, id);
        send(&mut sim, 1, 1500, id);
        send(&mut sim, 2, 700, id);
    }
    // Class 2 has 4.2 MB, which is 6/10 of the bytes sent in 560 us.
    sim.run_through(ps(500_000_000));
    let total: u64 = (0..3).map(|class| delivered_bytes(&sim, class)).sum();
    for (class, share) in [(0, 0.1), (1, 0.3), (2, 0.6)] {
        let measured = delivered_bytes(&sim, class) as f64 / total as f64;
        assert!((measured - share).abs() < 0.002, "class {class} has {measured} of the bytes");
    }
}

#[test]
fn an_idle_class_does_not_accumulate_service() {
    let mut sim = Sim::build(&wire(with_classes(vec![weight(1), weight(1)])));
    for id in 0..100 {
        send(&mut sim, 0, 1500, id);
    }
    sim.run_through(ps(50 * T + D));
    for id in 100..110 {
        send(&mut sim, 1, 1500, id);
    }
    sim.run();
    // From here on the two classes alternate; class 1 does not catch up with 50 packets in a row.
    let first = sim.ids().iter().position(|id| *id == 100).unwrap();
    for (n, pair) in sim.delivered[first..first + 20].chunks(2).enumerate() {
        let classes = [pair[0].packet.class, pair[1].packet.class];
        assert!(classes[0] != classes[1], "pair {n} is of one class: {classes:?}");
    }
}

#[test]
fn a_level_shares_the_remaining_rate_by_weight() {
    let classes = vec![level(0), ClassConfig { weight: 3, ..level(1) }, level(1)];
    let mut sim = Sim::build(&wire(with_classes(classes)));
    for id in 0..1000 {
        send(&mut sim, 1, 1500, id);
        send(&mut sim, 2, 1500, id);
    }
    for id in 0..500 {
        send(&mut sim, 0, 1500, id);
    }
    sim.run_through(ps(901 * T + D));
    assert_eq!(delivered_bytes(&sim, 0), 500 * 1500);
    assert!((299..=301).contains(&(delivered_bytes(&sim, 1) / 1500)));
}

fn credits() -> ClassConfig {
    // 84 B at 5 Gb/s: one packet per 134.4 ns; two at once.
    let limit = RateLimit { rate: gbps(5), burst: Bytes::new(168) };
    ClassConfig { rate_limit: Some(limit), ..ClassConfig::default() }
}

#[test]
fn a_token_bucket_lets_its_burst_through_and_then_its_rate() {
    let mut sim = Sim::build(&wire(with_classes(vec![level(1), credits()])));
    for id in 0..6 {
        send(&mut sim, 1, 84, id);
    }
    sim.run();
    // Tokens are spent when service starts: 0, 6.72 ns, then every 134.4 ns.
    let starts = [0, 6_720, 134_400, 268_800, 403_200, 537_600];
    assert_eq!(sim.arrivals_ps(), starts.map(|start| start + 6_720 + D));
}

#[test]
fn an_idle_token_bucket_saves_one_burst_and_no_more() {
    let mut sim = Sim::build(&wire(with_classes(vec![credits()])));
    sim.run_before(ps(10_000_000));
    for id in 0..3 {
        send(&mut sim, 0, 84, id);
    }
    sim.run();
    let starts = [0, 6_720, 134_400];
    assert_eq!(sim.arrivals_ps(), starts.map(|start| 10_000_000 + start + 6_720 + D));
}

#[test]
fn a_packet_larger_than_the_bucket_waits_until_it_is_full() {
    let limit = RateLimit { rate: gbps(5), burst: Bytes::new(100) };
    let class = ClassConfig { rate_limit: Some(limit), ..ClassConfig::default() };
    let mut sim = Sim::build(&wire(with_classes(vec![class])));
    for id in 0..3 {
        send(&mut sim, 0, 1500, id);
    }
    sim.run();
    // The tokens for 1500 B at 5 Gb/s take 2.4 us.
    assert_eq!(sim.arrivals_ps(), [0, 1, 2].map(|n| n * 2_400_000 + T + D));
}

#[test]
fn others_are_served_while_the_limited_class_waits_for_tokens() {
    let mut sim = Sim::build(&wire(with_classes(vec![level(1), credits()])));
    for id in 0..4 {
        send(&mut sim, 1, 84, id);
    }
    // The wake-up at 134.4 ns is pending when a data packet arrives, whose service ends later.
    sim.run_through(ps(100_000));
    send(&mut sim, 0, 1500, 10);
    send(&mut sim, 0, 1500, 11);
    sim.run();
    assert_eq!(sim.ids(), [0, 1, 10, 2, 11, 3]);
    let busy = 100_000 + T;
    assert_eq!(sim.arrivals_ps()[2..4], [busy + D, busy + 6_720 + D]);
}

#[test]
fn the_rate_of_a_limited_class_holds_under_load() {
    let mut sim = Sim::build(&wire(with_classes(vec![level(1), credits()])));
    for id in 0..3000 {
        send(&mut sim, 0, 1538, id);
        send(&mut sim, 1, 84, id);
    }
    sim.run_through(ps(300_000_000));
    // 5 Gb/s for 299 us, plus the burst.
    let expected = 299_000_000 * 5 / 8_000 + 168;
    let measured = delivered_bytes(&sim, 1);
    assert!(measured.abs_diff(expected) <= 2 * 84, "{measured} B, expected {expected} B");
}

#[test]
fn a_class_limit_holds_within_the_buffer() {
    let class = ClassConfig { limit: Bytes::new(8 * 84), ..level(0) };
    for mut sim in both_kinds(vec![class, level(1)]) {
        let sent: Vec<Sent> = (0..9).map(|id| send(&mut sim, 0, 84, id)).collect();
        assert!(sent[..8].iter().all(|sent| *sent == Sent::Accepted));
        assert_eq!(sent[8], Sent::Dropped(DropReason::Buffer));
        assert_eq!(send(&mut sim, 1, 9000, 9), Sent::Accepted);
    }
}

/// One packet is in service and three may be queued, so four of eight packets of any size are
/// dropped.
#[test]
fn a_class_limit_in_packets_counts_queued_packets() {
    let few = ClassConfig { limit_packets: 3, ..level(0) };
    let alone = PortConfig { pausable: false, ..with_classes(vec![few.clone()]) };
    let sims = both_kinds(vec![few, level(1)]).into_iter().chain([Sim::build(&wire(alone))]);
    for mut sim in sims {
        for id in 0..8 {
            send(&mut sim, 0, 100 + 10 * id, id);
        }
        let counters = sim.net.class_counters(PORT, ClassId::new(0), ps(0));
        assert_eq!((counters.dropped.packets, counters.queued.packets), (4, 4));
    }
}

/// Of eight packets of 1500 B, a limit of 4500 B drops five; packets of the other class are counted
/// separately.
#[test]
fn each_class_counts_offered_dropped_and_sent_packets() {
    let small = ClassConfig { limit: Bytes::new(4500), ..level(1) };
    for mut sim in both_kinds(vec![small, level(0)]) {
        for id in 0..8 {
            send(&mut sim, 0, 1500, id);
        }
        send(&mut sim, 1, 1500, 10);
        let counted = |sim: &Sim, class, at| {
            let c = sim.net.class_counters(PORT, ClassId::new(class), ps(at));
            [c.offered, c.dropped, c.sent, c.queued]
                .map(|count| (count.packets, count.bytes / 1500))
        };
        assert_eq!(counted(&sim, 0, 0), [(8, 8), (5, 5), (0, 0), (3, 3)]);
        assert_eq!(counted(&sim, 1, 0), [(1, 1), (0, 0), (0, 0), (1, 1)]);
        // The first packet was already in service when the higher level's arrived.
        assert_eq!(counted(&sim, 0, T), [(8, 8), (5, 5), (1, 1), (2, 2)]);
        sim.run();
        assert_eq!(counted(&sim, 0, 9 * T), [(8, 8), (5, 5), (3, 3), (0, 0)]);
        assert_eq!(counted(&sim, 1, 9 * T), [(1, 1), (0, 0), (1, 1), (0, 0)]);
    }
}

#[test]
fn a_paused_class_finishes_its_packet_and_waits() {
    let mut sim = Sim::build(&wire(with_classes(vec![level(0), level(1)])));
    let pause = |sim: &mut Sim, paused| {
        let now = sim.now();
        let class = ClassId::new(0);
        sim.net.set_paused(now, PORT, class, paused, &mut sim.engine).unwrap();
    };
    for id in 0..3 {
        send(&mut sim, 0, 1500, id);
    }
    send(&mut sim, 1, 1500, 10);
    sim.run_before(ps(T / 2));
    pause(&mut sim, true);
    sim.run_before(ps(5 * T));
    assert_eq!(sim.net.port_counters(PORT, ps(5 * T)).queued.packets, 2);
    pause(&mut sim, true);
    pause(&mut sim, false);
    sim.run_before(ps(5 * T + 1));
    pause(&mut sim, true);
    pause(&mut sim, false);
    sim.run();
    assert_eq!(sim.ids(), [0, 10, 1, 2]);
    assert_eq!(sim.arrivals_ps(), [T, 2 * T, 6 * T, 7 * T].map(|t| t + D));
}

#[test]
fn pausing_a_limited_class_past_its_wake_up_is_safe() {
    let mut sim = Sim::build(&wire(with_classes(vec![credits()])));
    for id in 0..4 {
        send(&mut sim, 0, 84, id);
    }
    for (at, paused) in [(100_000, true), (1_000_000, false)] {
        sim.run_before(ps(at));
        sim.net.set_paused(ps(at), PORT, ClassId::new(0), paused, &mut sim.engine).unwrap();
    }
    sim.run();
    // The bucket is full again at 268.8 ns, so both packets leave at once.
    assert_eq!(sim.arrivals_ps()[2..], [1, 2].map(|n| 1_000_000 + n * 6_720 + D));
}

/// Hosts 0 and 1 send to hosts 2 and 3, whose switch ports are slow and share 10 kB.
fn sharing(alpha: f64) -> Sim {
    let mut tier = Tier::hosts(gbps(1), Span::from_us(1), UNLIMITED);
    tier.up = PortConfig::new(gbps(100), UNLIMITED);
    tier.down.buffer = Buffer::Shared { alpha };
    Sim::build(&Topology::star(4, &tier).with_shared_buffer(Bytes::new(10_000)))
}

/// Sends `count` packets of 1000 B in a burst and returns how many are queued at the destination's
/// port when all have arrived, before the first has left.
fn burst(sim: &mut Sim, src: u32, dst: u32, count: u32) -> u64 {
    let route = sim.route(src, dst);
    for id in 0..count {
        sim.send_bytes(route, 1000, id);
    }
    let last = sim.now() + Span::from_ps(u64::from(count) * 80_000 + D);
    sim.run_through(last);
    let port = apus_fabric::opposite(sim.net.host_port(HostId::new(dst)));
    sim.net.port_counters(port, last).queued.packets
}

#[test]
fn choudhury_hahne_thresholds_follow_the_free_memory() {
    let mut sim = sharing(1.0);
    // Alone, the queue to host 2 accepts packets while q + 1000 <= 10000 - q, up to q = 4000: 5
    // packets, alpha / (1 + alpha) of the pool.
    assert_eq!(burst(&mut sim, 0, 2, 8), 5);
    assert_eq!(sim.net.shared_buffer_used(SwitchId::new(0)), Bytes::new(5000));
    // The queue to host 3 finds 5000 B free: q + 1000 <= 5000 - q up to q = 2000, so 3 packets.
    assert_eq!(burst(&mut sim, 1, 3, 8), 3);
    // The queue to host 2 is now above its threshold and accepts no packet.
    assert_eq!(burst(&mut sim, 0, 2, 2), 5);
    sim.run();
    assert_eq!(sim.net.shared_buffer_used(SwitchId::new(0)), Bytes::ZERO);
    assert_eq!(sim.delivered.len(), 8);
    assert_eq!(sim.net.check_conservation(), Ok(()));
}

#[test]
fn a_large_alpha_gives_the_whole_pool_but_not_more() {
    let mut sim = sharing(64.0);
    assert_eq!(burst(&mut sim, 0, 2, 15), 10);
    assert_eq!(burst(&mut sim, 1, 3, 2), 0);
}

fn variable() -> Topology {
    wire(PortConfig { variable: true, ..PortConfig::new(gbps(100), UNLIMITED) })
}

#[test]
fn a_failing_link_loses_queued_and_delivers_departed_packets() {
    let mut sim = Sim::build(&variable());
    for id in 0..4 {
        send(&mut sim, 0, 1500, id);
    }
    sim.run_before(ps(T + T / 2));
    let now = sim.now();
    sim.net.set_link_up(now, PORT, false, &mut sim.engine).unwrap();
    assert_eq!(send(&mut sim, 0, 1500, 4), Sent::Dropped(DropReason::LinkDown));
    assert_eq!(sim.net.check_conservation(), Ok(()));
    sim.net.set_link_up(now, PORT, true, &mut sim.engine).unwrap();
    // The lost packet in service occupies the port until its service would have ended.
    send(&mut sim, 0, 1500, 5);
    sim.run();
    assert_eq!(sim.ids(), [0, 5]);
    assert_eq!(sim.arrivals_ps(), [T + D, 3 * T + D]);
    let counters = sim.net.port_counters(PORT, sim.now());
    assert_eq!((counters.offered.packets, counters.dropped.packets), (6, 4));
    assert_eq!(counters.sent.packets, 2);
    assert_eq!(sim.net.counters().dropped[DropReason::LinkDown as usize], 4);
    let class = sim.net.class_counters(PORT, ClassId::new(0), sim.now());
    assert_eq!((class.dropped.packets, class.sent.packets), (4, 2));
    assert_eq!(sim.net.check_conservation(), Ok(()));
}

#[test]
fn a_new_rate_holds_from_the_next_packet_on() {
    let mut sim = Sim::build(&variable());
    for id in 0..2 {
        send(&mut sim, 0, 1500, id);
    }
    sim.run_before(ps(T / 2));
    sim.net.set_rate(ps(T / 2), PORT, gbps(10), &mut sim.engine).unwrap();
    sim.run();
    assert_eq!(sim.arrivals_ps(), [T + D, 11 * T + D]);
    assert_eq!(sim.net.rate(PORT), gbps(10));
}

#[test]
fn an_unsupported_port_change_is_an_error_that_names_the_setting() {
    let mut sim = Sim::build(&wire(PortConfig::new(gbps(100), UNLIMITED)));
    let now = sim.now();
    let class = ClassId::new(0);
    let pause = sim.net.set_paused(now, PORT, class, true, &mut sim.engine).unwrap_err();
    assert!(pause.to_string().contains("port host 0 -> host 1"), "{pause}");
    assert!(pause.to_string().contains("set `pausable`"), "{pause}");
    let down = sim.net.set_link_up(now, PORT, false, &mut sim.engine).unwrap_err();
    assert!(down.to_string().contains("set `variable`"), "{down}");

    // Several classes, or credits, do not make it possible to stop their port.
    for classes in [vec![weight(1), weight(3)], vec![level(1), credits()], vec![level(0), level(1)]]
    {
        let port = PortConfig { pausable: false, ..with_classes(classes) };
        let mut sim = Sim::build(&wire(port));
        let paused = sim.net.set_paused(now, PORT, class, true, &mut sim.engine).unwrap_err();
        assert!(paused.to_string().contains("set `pausable`"), "{paused}");
        let loss = Some(Impairment::loss(0.5, 1));
        let lost = sim.net.set_impairment(now, PORT, loss, &mut sim.engine).unwrap_err();
        assert!(lost.to_string().contains("set `variable`"), "{lost}");
        let slow = sim.net.set_rate(now, PORT, gbps(1), &mut sim.engine).unwrap_err();
        assert!(slow.to_string().contains("set `variable`"), "{slow}");
        let pfc = PfcConfig {
            pause: Bytes::new(20_000),
            resume: Bytes::new(10_000),
            headroom: Bytes::new(30_000),
            classes: vec![class],
        };
        let pfc = sim.net.enable_pfc(pfc).unwrap_err();
        assert!(pfc.to_string().contains("set `pausable`"), "{pfc}");
    }

    let mut sim = Sim::build(&variable());
    let zero = sim.net.set_rate(now, PORT, Rate::from_bps(0), &mut sim.engine).unwrap_err();
    assert!(zero.to_string().contains("rate 0"), "{zero}");
    let other = sim.net.set_paused(now, PORT, ClassId::new(3), true, &mut sim.engine);
    assert!(other.unwrap_err().to_string().contains("has no class 3"));
}
