//! Links whose packets continue in another part of the network.

use crate::support::{ClassConfig, Network, PortConfig};
use crate::support::{UNLIMITED, gbps, ps, wire};
use apus_fabric::{FabricEvent, Packet, PortKind, Schedule, Sent};
use apus_units::{ClassId, HostId, PortId, Span, Time};

const PORT: PortId = PortId::new(0);
/// 1500 B at 100 Gb/s.
const T: u64 = 120_000;
/// The delay of the wire.
const D: u64 = 1_000_000;

/// Number of requests of the port to sort its packets.
#[derive(Default)]
struct Asked(u32);

impl Schedule for Asked {
    fn at(&mut self, event: FabricEvent, _: Time) {
        panic!("all packets go to another part, but {event:?} was requested");
    }

    fn hand_over(&mut self, port: PortId) {
        assert_eq!(port, PORT);
        self.0 += 1;
    }
}

/// A burst followed by idle time: afterwards only the simulator's hand-over uses the port.
#[test]
fn queued_packets_are_handed_over_before_they_arrive() {
    let level = |priority| ClassConfig { priority, ..ClassConfig::default() };
    let port =
        PortConfig { classes: vec![level(1), level(0)], ..PortConfig::new(gbps(100), UNLIMITED) };
    assert_eq!(port.kind(), PortKind::Lazy);
    let mut net: Network<u32> = wire(port).build(1).expect("valid");
    net.share_link(PORT);
    let (from, to) = (HostId::new(0), HostId::new(1));
    let route = net.route(from, to, 0, 0).expect("a path");
    let mut asked = Asked::default();
    for id in 0..40 {
        let mut packet = Packet::new(route, from, to, 1500, id);
        packet.class = ClassId::new(u8::from(id >= 35));
        assert_eq!(net.send(ps(0), from, packet, &mut asked), Sent::Accepted);
    }
    let (mut now, mut sorted, mut got) = (ps(0), 0, Vec::new());
    loop {
        sorted += 1;
        let more = net.hand_over(
            (now, PORT),
            &mut asked,
            |_| Some(1),
            |part, arrives, packet, _| {
                assert_eq!(part, 1);
                assert!(arrives >= now, "{} arrives too late", packet.payload);
                got.push((arrives.as_ps(), *packet.payload));
            },
        );
        // The other part has advanced at most a link's delay beyond the last hand-over.
        let Some(more) = more else { break };
        assert!(more > now, "a packet whose service began by {now} was not on the link");
        now = more + Span::from_ps(D);
    }
    // 40 services of 0.12 us take four windows of 1 us and the first one.
    assert!((5..=7).contains(&sorted), "sorted {sorted} times");
    let order = [0].into_iter().chain(35..40).chain(1..35);
    let expected: Vec<(u64, u32)> = (1..).map(|n| n * T + D).zip(order).collect();
    assert_eq!(got, expected);
    assert_eq!((asked.0, net.held()), (1, 0));
    // And again.
    let packet = Packet::new(route, from, to, 1500, 40);
    assert_eq!(net.send(now, from, packet, &mut asked), Sent::Accepted);
    assert_eq!(asked.0, 2);
}
