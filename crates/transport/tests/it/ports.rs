//! Flows of a host with several ports, some of which are busy: order of the flows, and cost of a
//! poll.
#![allow(non_snake_case)] // `function__situation`

use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_cc::FlowInfo;
use apus_transport::{Endpoint, EndpointConfig, Op, OpKind, Turn};
use apus_units::{FlowId, Time};
use apus_wire::RegionKey;

/// A host whose flows each have `packets` packets to send, and the ports by which each flow leaves,
/// in the order of flow numbers.
struct Host {
    endpoint: Endpoint<AlgorithmConfig>,
    ports: Vec<u64>,
    /// Number of times that a poll has examined a flow.
    looks: usize,
}

impl Host {
    fn new(ports: Vec<u64>, packets: u32) -> Self {
        let algorithm = build("constant", None, &[("window", "256")]).expect("constant");
        let config = EndpointConfig::default();
        let mut endpoint = Endpoint::new(config);
        let kind = OpKind::Write { region: RegionKey::new(7), address: 4096 };
        let length = u64::from(packets) * u64::from(config.max_payload);
        for number in (0..).take(ports.len()) {
            let flow = endpoint.open(FlowId::new(number), &algorithm, &FlowInfo::default());
            let op = Op { kind, length, user: 0 };
            endpoint.submit(Time::ZERO, flow, op).expect("room for an op");
        }
        Self { endpoint, ports, looks: 0 }
    }

    /// Returns the flow whose packet leaves while the ports `free` are free.
    fn poll(&mut self, free: u64) -> Option<u32> {
        let (ports, looks) = (&self.ports, &mut self.looks);
        let turn = |flow: FlowId, _: Option<apus_transport::NextEv<'_>>| {
            *looks += 1;
            let ports = ports[flow.index()];
            if ports & free == 0 { Turn::Wait(ports) } else { Turn::Send }
        };
        let sent = self.endpoint.poll_data_of(Time::ZERO, |ports| ports & free != 0, turn);
        sent.map(|transmit| transmit.flow.get())
    }
}

/// Ports 0 and 1 become free in turn; flow 0 leaves by port 0, flow 1 by port 1, flow 2 by either.
/// By hand: the order of the flows is 012, 120, 201, 012, 021 (0 waited), 210, 102, 120 (1 waited),
/// and so on with period 6.
#[test]
fn poll_data_of__three_flows_share_two_ports_equally() {
    let mut host = Host::new(vec![1, 2, 3], 100);
    let sent: Vec<_> = (0..20).filter_map(|turn| host.poll(1 << (turn % 2))).collect();
    assert_eq!(sent, [0, 1, 2, 1, 0, 2, 0, 1, 2, 1, 0, 2, 0, 1, 2, 1, 0, 2, 0, 1]);
}

/// A flow that waits for a port keeps its position before flows that became ready later.
#[test]
fn poll_data_of__waiting_flows_come_first() {
    let mut host = Host::new(vec![1, 1, 2], 2);
    let sent: Vec<_> = [2, 2, 1, 1, 1, 1].map(|free| host.poll(free)).into();
    assert_eq!(sent, [Some(2), Some(2), Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!((host.poll(3), host.endpoint.has_data()), (None, false));
}

/// Each time a poll examines a flow, the flow sends or begins to wait: 1000 flows that wait for a
/// busy port cost nothing while another flow sends.
#[test]
fn poll_data_of__looks_at_a_waiting_flow_once() {
    let mut ports = vec![1; 1000];
    ports.push(2);
    let mut host = Host::new(ports, 100);
    for _ in 0..100 {
        assert_eq!(host.poll(2), Some(1000));
    }
    assert_eq!(host.looks, 1000 + 100);
    assert_eq!(host.poll(2), None);
    assert_eq!(host.looks, 1000 + 100, "every flow waits for port 0");
    let sent: Vec<_> = (0..1000).filter_map(|_| host.poll(1)).collect();
    assert_eq!(sent, (0..1000).collect::<Vec<_>>());
    assert_eq!(host.looks, 1000 + 100 + 1000);
}

/// After a change of links or paths, the waiting flows are examined again, in their order.
#[test]
fn forget_ports__asks_waiting_flows_again() {
    let mut host = Host::new(vec![1, 2, 2, 4], 100);
    assert_eq!(host.poll(4), Some(3));
    host.ports = vec![4; 4];
    assert_eq!(host.poll(4), Some(3), "the others still wait for other ports");
    host.endpoint.forget_ports();
    let sent: Vec<_> = (0..5).filter_map(|_| host.poll(4)).collect();
    assert_eq!(sent, [0, 1, 2, 3, 0]);
}
