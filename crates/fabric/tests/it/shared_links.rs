//! Links whose packets continue in another part of the network.

use crate::support::{ClassConfig, Network, PortConfig};
use crate::support::{UNLIMITED, gbps, ps, wire};
use apus_fabric::{FabricEvent, Flight, Leads, Packet, PortKind, Schedule, Sent, opposite};
use apus_units::{ClassId, HostId, PortId, Span, Time};

const PORT: PortId = PortId::new(0);
/// 1500 B at 100 Gb/s.
const T: u64 = 120_000;
/// Delay of the link.
const D: u64 = 1_000_000;

/// Requests of the port.
#[derive(Default)]
struct Asked {
    times: u32,
    flights: Vec<Flight>,
}

impl Schedule for Asked {
    fn at(&mut self, event: FabricEvent, _: Time) {
        panic!("all packets go to another part, but {event:?} was requested");
    }

    fn fly(&mut self, flight: Flight, leads: Leads) {
        assert_eq!((flight.link, leads), (PORT, Leads::ToParts));
        self.flights.push(flight);
    }

    fn serve_by(&mut self, port: PortId, _: Time, leads: Leads) {
        assert_eq!((port, leads), (PORT, Leads::ToParts));
        self.times += 1;
    }
}

/// A burst followed by idle time: after the burst, only the hand-overs of the simulator use the
/// port.
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
    let (mut now, mut served, mut got) = (ps(0), 0, Vec::new());
    loop {
        served += 1;
        let more = net.serve_link(PORT, now + Span::from_ps(D), &mut asked);
        for flight in asked.flights.drain(..) {
            assert_eq!(net.next_port(&flight), opposite(PORT));
            net.hand_over(flight.packet, |packet, _| {
                assert!(flight.arrives >= now, "{} arrives too late", packet.payload);
                got.push((flight.arrives.as_ps(), *packet.payload));
            });
        }
        // The other part has advanced by at most the delay of the link since the last hand-over.
        let Some(more) = more else { break };
        assert!(more > now, "a packet whose service began by {now} was not on the link");
        now = more + Span::from_ps(D);
    }
    // 40 services of 0.12 us take the first window and four windows of 1 us.
    assert!((5..=7).contains(&served), "served {served} times");
    let order = [0].into_iter().chain(35..40).chain(1..35);
    let expected: Vec<(u64, u32)> = (1..).map(|n| n * T + D).zip(order).collect();
    assert_eq!(got, expected);
    // The first request, and another one in each service except the last.
    assert_eq!((asked.times, net.held()), (served, 0));
    // The port requests service again after idle time.
    for id in 40..42 {
        let packet = Packet::new(route, from, to, 1500, id);
        assert_eq!(net.send(now, from, packet, &mut asked), Sent::Accepted);
    }
    assert_eq!((asked.times, asked.flights.len()), (served + 1, 1));
}
