//! Priority flow control: the bytes that a switch holds are bounded, and no packet is lost.

use crate::support::Topology;
use crate::support::{ClassConfig, Sim, gbps, host_tier, ps};
use apus_fabric::{DropReason, PfcConfig};
use apus_units::{Bytes, ClassId, HostId, Span};

const PACKET: u32 = 1_500;

fn config(pause: u64, headroom: u64) -> PfcConfig {
    PfcConfig {
        pause: Bytes::new(pause),
        resume: Bytes::new(pause / 2),
        headroom: Bytes::new(headroom),
        classes: vec![ClassId::new(0)],
    }
}

/// Runs hosts that send `packets` packets each to the last host, all at once.
fn incast(hosts: u32, packets: u32, pfc: Option<PfcConfig>) -> Sim {
    let topology = Topology::star(hosts, &host_tier(gbps(100))).with_pausable_ports();
    let mut sim = Sim::build(&topology);
    if let Some(pfc) = pfc {
        sim.net.enable_pfc(pfc).expect("pausable ports");
    }
    for host in 0..hosts - 1 {
        let route = sim.route(host, hosts - 1);
        for id in 0..packets {
            sim.send_bytes(route, PACKET, id);
        }
    }
    sim.run();
    sim.net.counters().check(sim.net.held(), sim.net.held()).expect("conserved");
    sim
}

#[test]
fn enough_headroom_loses_nothing_and_bounds_the_bytes_held() {
    // Bytes on the link when the pause is sent, and bytes sent while the pause is on the link, each
    // 1 us at 100 Gb/s; in addition one packet in service at either end, and the pause frame
    // itself.
    let headroom = 2 * 12_500 + 2 * u64::from(PACKET) + PfcConfig::FRAME.get();
    let pause = 20_000;
    for hosts in [3, 5, 9, 17] {
        let sim = incast(hosts, 500, Some(config(pause, headroom)));
        let counters = sim.net.counters();
        assert!(counters.pauses > 0);
        assert_eq!(counters.dropped_total(), 0, "{hosts} hosts");
        assert_eq!(sim.delivered.len() as u32, (hosts - 1) * 500);
        let route = sim.net.host_port(HostId::new(hosts - 1));
        let to_last = apus_fabric::opposite(route);
        let most = sim.net.port_counters(to_last, sim.now()).max_queue.get();
        assert!(most <= u64::from(hosts - 1) * (pause + headroom), "{most}");
        // The bottleneck never idles if the bytes held at `resume` last until more packets arrive:
        // 2 us.
        if u64::from(hosts - 1) * pause / 2 < 25_000 {
            continue;
        }
        let sent = u64::from(hosts - 1) * 500;
        let least = gbps(100).serialization_time(Bytes::new(u64::from(PACKET) * sent));
        assert!(sim.now() < ps(0) + least + Span::from_us(4), "{}", sim.now());
    }
}

#[test]
fn without_pauses_the_queue_holds_everything_sent() {
    let sim = incast(9, 500, None);
    let to_last = apus_fabric::opposite(sim.net.host_port(HostId::new(8)));
    let most = sim.net.port_counters(to_last, sim.now()).max_queue.get();
    // 8 packets arrive while 1 leaves.
    assert!(most > 7 * 499 * u64::from(PACKET), "{most}");
}

#[test]
fn too_little_headroom_drops_packets_before_the_pause_takes_effect() {
    let sim = incast(9, 500, Some(config(20_000, 0)));
    let counters = sim.net.counters();
    assert!(counters.dropped[DropReason::Buffer as usize] > 0);
    assert_eq!(counters.dropped_total(), counters.dropped[DropReason::Buffer as usize]);
}

#[test]
fn first_pause_takes_hold_a_link_later() {
    // Two senders at line rate: one packet of each arrives per 120 ns, and one packet leaves, so
    // the queue grows by one packet per 120 ns. After 14 packets of either link, 20 kB of one of
    // them are held.
    let topology = Topology::star(3, &host_tier(gbps(100))).with_pausable_ports();
    let mut sim = Sim::build(&topology);
    sim.net.enable_pfc(config(3_000, 1_000_000)).expect("pausable");
    let route = sim.route(1, 2);
    // One packet is held while it is in service; with the second, the switch holds 3000 B.
    let other = sim.route(0, 2);
    sim.send_bytes(other, PACKET, 100);
    for id in 0..40 {
        sim.send_bytes(route, PACKET, id);
    }
    // Packets of host 1 arrive at 1120, 1240 and 1360 ns. The packet of host 0, which arrives at
    // 1120 ns, is served first, so both of host 1's first two packets are held at 1240 ns. The
    // pause frame takes 84 B = 6.72 ns and 1000 ns: it arrives at 2246.72 ns, while packet 18 is
    // sent (2160 to 2280 ns).
    sim.run_before(ps(2_246_720));
    let nic = sim.net.host_port(HostId::new(1));
    let sent = |sim: &Sim| sim.net.port_counters(nic, sim.now()).sent.packets;
    assert_eq!(sent(&sim), 18);
    sim.run_before(ps(2_400_000));
    assert_eq!(sent(&sim), 19, "the packet in service finishes, no other begins");
}

/// Thresholds that differ by one packet, and equal rates: at the time at which an arriving packet
/// causes a pause, another packet leaves and ends it.
#[test]
fn a_pause_that_ends_at_its_beginning_pauses_nothing_for_long() {
    let sim = incast(2, 500, Some(config(3_000, 100_000)));
    assert!(sim.net.counters().pauses > 0);
    assert_eq!(sim.delivered.len(), 500);
}

/// Packets queued for a link that fails are lost, so that the host that filled the switch's memory
/// may send again at once.
#[test]
fn the_failure_of_a_link_ends_the_pauses_that_its_queue_has_caused() {
    let mut tier = host_tier(gbps(100));
    tier.down.variable = true;
    let mut sim = Sim::build(&Topology::star(2, &tier).with_pausable_ports());
    sim.net.enable_pfc(config(3_000, 1_000_000)).expect("pausable ports");
    let out = apus_fabric::opposite(sim.net.host_port(HostId::new(1)));
    let now = sim.now();
    sim.net.set_paused(now, out, ClassId::new(0), true, &mut sim.engine).expect("pausable");
    let route = sim.route(0, 1);
    for id in 0..100 {
        sim.send_bytes(route, PACKET, id);
    }
    sim.run();
    let nic = sim.net.host_port(HostId::new(0));
    let sent = |sim: &Sim| sim.net.port_counters(nic, sim.now()).sent.packets;
    assert!((2..100).contains(&sent(&sim)), "{} packets until the pause", sent(&sim));
    let now = sim.now();
    sim.net.set_link_up(now, out, false, &mut sim.engine).expect("variable");
    sim.run();
    assert_eq!(sent(&sim), 100);
    assert_eq!(sim.net.counters().dropped[DropReason::LinkDown as usize], 100);
}

#[test]
fn impossible_thresholds_and_ports_are_refused() {
    let star = Topology::star(3, &host_tier(gbps(100)));
    let mut plain = Sim::build(&star);
    let error = plain.net.enable_pfc(config(1_000, 0)).expect_err("FIFO ports");
    assert!(error.to_string().contains("pausable"), "{error}");
    let mut sim = Sim::build(&star.with_pausable_ports());
    let backwards = PfcConfig { resume: Bytes::new(1_000), ..config(1_000, 0) };
    let error = sim.net.enable_pfc(backwards).expect_err("resume at pause");
    assert!(error.to_string().contains("below"), "{error}");
    assert!(sim.net.enable_pfc(config(0, 0)).is_err());
    let other = PfcConfig { classes: vec![ClassId::new(3)], ..config(1_000, 0) };
    assert!(sim.net.enable_pfc(other).is_err());
}

/// A NIC with one class is connected to a switch with two: it sends again only when neither class
/// is paused.
#[test]
fn a_nic_of_one_class_waits_for_the_last_of_two_pauses_to_end() {
    let mut tier = host_tier(gbps(100));
    tier.down.classes = vec![ClassConfig::default(); 2];
    let mut sim = Sim::build(&Topology::star(2, &tier).with_pausable_ports());
    let classes = [0, 1].map(ClassId::new);
    let pfc = PfcConfig { classes: classes.to_vec(), ..config(3_000, 1_000_000) };
    sim.net.enable_pfc(pfc).expect("pausable ports");
    // No packet leaves the switch: two packets of each class make 3000 B, and pause the NIC.
    let out = apus_fabric::opposite(sim.net.host_port(HostId::new(1)));
    let stop = |sim: &mut Sim, class, paused| {
        let now = sim.now();
        sim.net.set_paused(now, out, class, paused, &mut sim.engine).expect("pausable");
    };
    classes.iter().for_each(|class| stop(&mut sim, *class, true));
    let route = sim.route(0, 1);
    for id in 0..100 {
        let mut packet = sim.packet(route, PACKET, id);
        packet.class = classes[id as usize % 2];
        sim.send(packet);
    }
    sim.run();
    let nic = sim.net.host_port(HostId::new(0));
    let sent = |sim: &Sim| sim.net.port_counters(nic, sim.now()).sent.packets;
    let before = sent(&sim);
    assert!((4..100).contains(&before), "{before} packets until both pauses took effect");
    // Class 0 drains and ends its pause; class 1 is still paused.
    stop(&mut sim, classes[0], false);
    sim.run();
    assert_eq!(sent(&sim), before, "the NIC has one class, of which a part is paused");
    stop(&mut sim, classes[1], false);
    sim.run();
    assert_eq!((sent(&sim), sim.delivered.len()), (100, 100));
    assert_eq!(sim.net.counters().dropped_total(), 0);
}
