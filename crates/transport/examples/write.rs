//! Two endpoints in virtual time: one writes 100 kB to the other over a network with a delay of 5 us.

use apus_algorithms::build;
use apus_cc::FlowInfo;
use apus_transport::{Arrival, Endpoint, EndpointConfig, Op, OpKind, Outcome};
use apus_units::{FlowId, Span, Time};
use apus_wire::RegionKey;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let swift = build("swift", None, &[])?;
    let mut hosts = [0, 1].map(|_| Endpoint::new(EndpointConfig::default()));
    let flow = hosts[0].open(FlowId::new(0), &swift, &FlowInfo::default());
    hosts[1].open(flow, &swift, &FlowInfo::default());

    let mut now = Time::ZERO;
    let kind = OpKind::Write { region: RegionKey::new(1), address: 0 };
    hosts[0].submit(now, flow, Op { kind, length: 100_000, user: 7 })?;
    let mut written = 0;
    let completion = loop {
        for from in [0, 1] {
            hosts[from].handle_timeout(now);
            let mut packets = Vec::new();
            while let Some(packet) = hosts[from].poll_transmit(now) {
                packets.push(packet);
            }
            now += Span::from_us(5);
            let arrival =
                Arrival { now, nic_received_at: now, hops: 1, marked: false, receiver_level: 0 };
            for packet in packets {
                hosts[1 - from].handle_packet(&arrival, &packet.header);
                written += packet.header.payload_len(); // 0 for acknowledgements
            }
        }
        if let Some(completion) = hosts[0].poll_completion() {
            break completion;
        }
    };
    assert_eq!((completion.outcome, completion.submitted.user), (Outcome::Done, 7));
    assert_eq!(written, 100_000);
    Ok(())
}
