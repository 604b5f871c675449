//! One packet through a switch. A sorted map is the event queue.

use std::collections::BTreeMap;

use apus_cc::Plain;
use apus_fabric::{FabricEvent, Network, Outcome, Packet, Schedule, Tier, Topology};
use apus_units::{Bytes, HostId, Rate, Span, Time};

#[derive(Default)]
struct Events(BTreeMap<(Time, u64), FabricEvent>, u64);

impl Schedule for Events {
    fn at(&mut self, event: FabricEvent, time: Time) {
        self.1 += 1;
        self.0.insert((time, self.1), event);
    }
}

fn main() {
    let links = Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(1_000_000));
    let mut network: Network<&str, Plain> = Topology::star(2, &links).build(1).unwrap();
    let mut events = Events::default();
    let (src, dst) = (HostId::new(0), HostId::new(1));
    let route = network.route(src, dst, 7, 0).unwrap();
    network.send(Time::ZERO, src, Packet::new(route, src, dst, 1500, "hello"), &mut events);
    while let Some(((now, _), event)) = events.0.pop_first() {
        if let Outcome::Delivered { host, packet } = network.handle(now, event, &mut events) {
            assert_eq!((host, network.take(packet).payload), (dst, "hello"));
            // Two links: 120 ns of serialisation and 1 us of propagation each.
            assert_eq!(now.since(Time::ZERO), Span::from_ns(2 * 1120));
        }
    }
    assert_eq!(network.counters().delivered, 1);
}
