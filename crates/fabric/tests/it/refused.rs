//! Reports of dropped packets to the switch half of their port.

use crate::support::Sim;
use crate::support::{Tier, Topology};
use apus_algorithms::rcp::RcpFields;
use apus_algorithms::registry::build;
use apus_cc::{AlgorithmFactory, SwitchInfo};
use apus_fabric::{Buffer, PortKind, Sent};
use apus_units::{Bytes, Rate, Span, Time};

/// RCP's `y` is the rate of all arrivals (IWQoS 2005, equation 1), for any kind of port. Ten
/// packets of 1500 B reach a port of 10 Gb/s between 1.12 and 2.2 us. The port has room for two of
/// them, and none leaves before 2.32 us. The next packet arrives 20 us after the first, with an
/// average RTT of 10 us. Then y = 6 Gb/s and the queue is empty, so the initial rate, 0.5 Gb/s,
/// grows by 1 + 0.4 * 0.4 = 1.16 in each of two intervals.
#[test]
fn rcp_counts_packets_that_its_port_drops() {
    let half = build("rcp", None, &[("initial_rtt", "10us")]).expect("algorithm");
    let half = half.switch(&SwitchInfo { packet: Bytes::new(1500), seed: 0, nic: false });
    let tier = Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(1_000_000));
    let topology = Topology::star(2, &tier).with_switch_ports(|port| {
        port.rate = Rate::from_gbps(10);
        port.buffer = Buffer::Own(Bytes::new(3000));
        port.classes[0].algorithm = half.clone();
    });
    for least in [PortKind::Fifo, PortKind::Lazy, PortKind::Event] {
        let mut sim = Sim::build_at_least(&topology, least);
        let route = sim.route(0, 1);
        let send = |sim: &mut Sim, id| {
            let mut packet = sim.packet(route, 1500, id);
            packet.congestion.fields = RcpFields::new(None).fields();
            assert_eq!(sim.send(packet), Sent::Accepted);
        };
        for id in 0..10 {
            send(&mut sim, id);
        }
        sim.run_before(Time::ZERO + Span::from_us(20));
        send(&mut sim, 10);
        sim.run();
        assert_eq!(sim.dropped.len(), 8, "{least:?}");
        let last = &sim.delivered.last().expect("delivered").packet;
        let fields = RcpFields::of(&last.congestion.fields).expect("RCP\'s fields");
        let rate = fields.rate().as_bps() as f64;
        // The header carries rates with a resolution of 100 kb/s.
        assert!((rate - 0.5e9 * 1.16 * 1.16).abs() <= 1e5, "{least:?}: {rate}");
    }
}
