//! Signals of switches go back along the path that their packet took so far (Bolt §3.1).

use crate::support::Sim;
use crate::support::{ClassConfig, Tier, Topology};
use apus_algorithms::bolt::BoltFields;
use apus_algorithms::registry::build;
use apus_cc::{
    AlgorithmFactory, CongestionHeader, Fields, PortView, Signal, SwitchFeedback, SwitchHalf,
    SwitchInfo, Telemetry, Verdict,
};
use apus_fabric::{Node, PortKind, Sent, Signalling, Way};
use apus_units::{Bytes, ClassId, HostId, Rate, Span};

/// Two hosts on each side of two switches: 100 Gb/s and 1 us everywhere, control packets first. The
/// ports of switches have a switch half of `algorithm`, and those of hosts too if `nics` is set.
fn dumbbell_with(algorithm: &str, nics: bool) -> Sim {
    let rate = Rate::from_gbps(100);
    let tier = Tier::hosts(rate, Span::from_us(1), Bytes::new(1_000_000));
    let middle = Tier::switches(rate, Span::from_us(1), Bytes::new(1_000_000));
    let half = build(algorithm, None, &[]).expect("algorithm");
    let half = half.switch(&SwitchInfo { packet: Bytes::new(1500), seed: 0, nic: false });
    let data = ClassConfig { priority: 1, algorithm: half, ..ClassConfig::default() };
    let classes = vec![ClassConfig::default(), data];
    let mut topology = Topology::dumbbell(2, 2, &tier, &middle)
        .with_switch_ports(|port| port.classes.clone_from(&classes));
    for link in &mut topology.links {
        for (node, port) in [(link.a, &mut link.ab), (link.b, &mut link.ba)] {
            if nics && matches!(node, Node::Host(_)) {
                port.classes.clone_from(&classes);
            }
        }
    }
    let mut sim = Sim::build(&topology);
    sim.net.answer_signals(Signalling {
        payload: |id, signal| 1000 * id + signal.queue.get() as u32 / 1500,
        class: Some(ClassId::new(0)),
        wire_bytes: 84,
        instant: false,
    });
    sim
}

fn dumbbell(algorithm: &str) -> Sim {
    dumbbell_with(algorithm, false)
}

fn send(sim: &mut Sim, (from, to): (u32, u32), id: u32, fields: Fields) {
    let route = sim.route(from, to);
    let mut packet = sim.packet(route, 1500, id);
    packet.class = ClassId::new(1);
    packet.congestion.fields = fields;
    assert_eq!(sim.send(packet), Sent::Accepted);
}

#[test]
fn bolt_3_1_an_src_reaches_the_source_while_its_packet_still_waits() {
    let mut sim = dumbbell("bolt");
    let data = BoltFields::new(0, 0).fields();
    // Hosts 0 and 1 send three packets each to host 2 at once; the packets meet at the left switch.
    for id in 1..=3 {
        send(&mut sim, (0, 2), id, data);
        send(&mut sim, (1, 2), 10 + id, data);
    }
    sim.run();
    let signals: Vec<_> = sim.delivered.iter().filter(|d| d.packet.wire_bytes == 84).collect();
    // On each link a packet takes 120 ns and 1 us. The pairs reach the switch after 1120, 1240 and
    // 1360 ns. One packet of the first pair is sent at once; the other finds it in service and no
    // packet queued. When the second pair arrives, one packet leaves the queue, and so on. The
    // queue is 1 MTU for the last packet of the second pair and for both of the third pair, of
    // which the second finds 2.
    assert_eq!(signals.len() as u64, sim.net.counters().signals);
    assert_eq!(sim.net.counters().signal_bytes, 84 * signals.len() as u64);
    let mut last = None;
    for signal in &signals {
        let (id, source) = (signal.packet.payload / 1000, signal.host);
        assert_eq!(source, HostId::new(u32::from(id > 10)), "the SRC of packet {id}");
        assert_eq!((signal.packet.src, signal.packet.class), (HostId::new(2), ClassId::new(0)));
        last = Some((signal.at, signal.packet.payload));
    }
    // The last pair arrives at 1360 ns. 84 bytes take 6.72 ns, so the first of its SRCs is back at
    // 2366.72 ns, before the pair's last packet has crossed the middle link.
    let (at, _) = last.expect("a queue of more than an MTU signals");
    assert_eq!(at.as_ps(), 2_366_720);
    let arrived = sim.delivered.iter().filter(|d| d.packet.wire_bytes == 1500);
    assert!(arrived.map(|d| d.at).max() > Some(at));
}

#[test]
fn a_signal_from_the_second_switch_takes_two_links_back() {
    let mut sim = dumbbell("bolt");
    let data = BoltFields::new(0, 0).fields();
    // Hosts on both sides send to host 3, so the queue is at the right switch.
    for id in 1..=20 {
        send(&mut sim, (0, 3), id, data);
        send(&mut sim, (2, 3), 30 + id, data);
    }
    sim.run();
    let back: Vec<_> = sim.delivered.iter().filter(|d| d.packet.wire_bytes == 84).collect();
    assert!(back.iter().any(|d| d.host == HostId::new(0)), "none returned over the middle link");
    for signal in back {
        let far = signal.packet.payload / 1000 < 30;
        assert_eq!(signal.host, HostId::new(if far { 0 } else { 2 }));
        assert_eq!(signal.packet.way, Way::BACK);
    }
    sim.net.check_conservation().expect("conserved");
}

#[test]
fn ports_with_a_half_that_acts_on_dequeue_are_class_ports() {
    let bolt = dumbbell("bolt");
    let hpcc = dumbbell("hpcc");
    let port = apus_fabric::opposite(hpcc.net.host_port(HostId::new(0)));
    assert_eq!(hpcc.net.port_kind(port), PortKind::Event);
    assert_eq!(bolt.net.port_kind(bolt.net.host_port(HostId::new(0))), PortKind::Fifo);
}

/// Bolt ns-3: a host's device is a port like any other. Signals of that port to its own host need
/// no packet.
#[test]
fn a_hosts_own_port_signals_it_at_once() {
    let mut sim = dumbbell_with("bolt", true);
    let data = BoltFields::new(0, 0).fields();
    let mut told = Vec::new();
    for id in 1..=4 {
        send(&mut sim, (0, 2), id, data);
        told.extend(sim.net.take_own_signal());
        assert_eq!(sim.net.take_own_signal(), None, "one at most of each packet");
    }
    // The first packet is sent at once, and the second waits alone. The third finds one packet
    // queued, the fourth finds two.
    assert_eq!(told, [(HostId::new(2), 3001), (HostId::new(2), 4002)]);
    sim.run();
    assert_eq!(sim.net.counters().signals, 0, "no signal is sent");
    assert_eq!(sim.delivered.len(), 4);
}

/// A switch half that signals the source of a data packet as the packet joins a queue, with 1 B,
/// and as it leaves, with 2 B.
#[derive(Clone, Debug)]
struct Twice;

impl Twice {
    fn answer(size: Bytes, queue: u64, view: &PortView<'_>) -> Verdict {
        if size < Bytes::new(1000) {
            return Verdict::Forward;
        }
        Verdict::Signal(Signal { queue: Bytes::new(queue), link_rate: view.link_rate, sent: 0 })
    }
}

impl SwitchHalf for Twice {
    fn on_enqueue(
        &mut self,
        _: &mut CongestionHeader,
        size: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        Self::answer(size, 1, view)
    }

    fn on_dequeue(
        &mut self,
        _: &mut CongestionHeader,
        _: Option<&mut Telemetry>,
        size: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        Self::answer(size, 2, view)
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Nothing
    }

    fn signals(&self) -> bool {
        true
    }

    fn acts_on_dequeue(&self) -> bool {
        true
    }
}

/// A packet that finds the port idle joins and leaves at once, so both signals are due together.
#[test]
fn signals_that_are_due_together_are_sent_in_their_order() {
    let tier =
        apus_fabric::Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(1_000_000));
    let half =
        apus_fabric::ClassConfig { algorithm: Some(Twice), ..apus_fabric::ClassConfig::default() };
    let topology = apus_fabric::Topology::star(2, &tier)
        .with_switch_ports(|port| port.classes = vec![half.clone()]);
    let mut sim = Sim::build(&topology);
    sim.net.answer_signals(Signalling {
        payload: |id, signal| 10 * id + signal.queue.get() as u32,
        class: None,
        wire_bytes: 84,
        instant: false,
    });
    let route = sim.route(0, 1);
    sim.send_bytes(route, 1500, 7);
    sim.run();
    let back = sim.delivered.iter().filter(|d| d.packet.way == Way::BACK);
    assert_eq!(back.map(|d| d.packet.payload).collect::<Vec<_>>(), [71, 72]);
}
