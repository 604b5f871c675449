//! RCP: the port's rate (equation 1 of IWQoS 2005), the header, and the sender's pace.

use std::sync::Arc;

use crate::common::{at, us};
use apus_algorithms::rcp::{Params, PortParams, Rcp, RcpFields, RcpPort};
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, ClassView, CongestionHeader, DataEvent, Fields, FlowInfo,
    Pacing, PortView, Receiver, SendInfo, Sender, Settings, SwitchHalf, TimeoutEvent, Verdict,
};
use apus_units::{Bytes, ClassId, PacketNumber, Rate, Time};

const C: f64 = 1e10;

fn params(settings: &[(&str, &str)]) -> Arc<Params> {
    static INFO: AlgorithmInfo = <Rcp as Algorithm>::INFO;
    let settings = Settings::read(&INFO, None, settings).unwrap();
    Arc::new(Params::from_settings(&settings).unwrap())
}

fn port_params() -> PortParams {
    params(&[("alpha", "0.4"), ("beta", "0.4"), ("initial_rtt", "100us")]).port
}

/// A port that holds `queue` of the `taken` bytes that it has accepted.
fn view(now: Time, queue: u64, taken: u64) -> PortView<'static> {
    static CLASSES: [ClassView; 1] = [ClassView { bytes: Bytes::ZERO, weight: 1, priority: 0 }];
    PortView {
        now,
        link_rate: Rate::from_gbps(10),
        class: ClassId::new(0),
        class_bytes: Bytes::new(queue),
        queue_bytes: Bytes::new(queue),
        class_waiting: Bytes::new(queue),
        sent: Bytes::new(taken - queue),
        classes: &CLASSES,
    }
}

/// A port's half, and the bytes that the port has accepted.
struct Port {
    half: RcpPort,
    taken: u64,
}

impl Port {
    fn new() -> Self {
        Self { half: RcpPort::new(port_params(), Bytes::new(1538)), taken: 0 }
    }
}

/// Passes a packet of `bytes` to the port. Returns the port's rate afterwards, in bit/s, which the packet
/// carries rounded to 100 kb/s.
fn pass(Port { half: port, taken }: &mut Port, now: Time, bytes: u64, queue: u64) -> f64 {
    let fields = RcpFields::new(Some(us(100.0))).fields();
    let mut header = CongestionHeader { fields, ..CongestionHeader::default() };
    assert_eq!(
        port.on_enqueue(&mut header, Bytes::new(bytes), &view(now, queue, *taken)),
        Verdict::Forward
    );
    *taken += bytes;
    let fields = RcpFields::of(&header.fields).expect("RCP\'s fields");
    let rate = port.rate().as_bps() as f64;
    let carried = fields.rate().as_bps() as f64;
    assert!((0.0..100_000.0).contains(&(rate - carried)), "{carried} of {rate}");
    rate
}

fn near(ours: f64, by_hand: f64) {
    assert!((ours / by_hand - 1.0).abs() < 1e-5, "{ours} is not {by_hand}");
}

/// R <- R * (1 + (alpha * (C - y) - beta * q / d) / C), once per d = 100 us.
#[test]
fn iwqos_2_the_rate_follows_spare_capacity_and_queue() {
    let mut port = Port::new();
    // The first rate: 5 % of the link.
    near(pass(&mut port, at(0.0), 62_500, 0), 0.05 * C);
    // 62 500 B in 100 us are y = 5 Gb/s: 1 + 0.4 * 0.5 = 1.2.
    near(pass(&mut port, at(100.0), 125_000, 0), 0.05 * C * 1.2);
    // y = C, and a queue of 25 000 B = 200 kb, q / d = 2 Gb/s: 1 - 0.4 * 0.2 = 0.92.
    near(pass(&mut port, at(200.0), 0, 25_000), 0.05 * C * 1.2 * 0.92);
    // Within the interval the rate is constant.
    near(pass(&mut port, at(299.0), 0, 25_000), 0.05 * C * 1.2 * 0.92);
    // Dropped bytes also count as input: 125 000 B, y = C, no queue: the rate is constant again.
    port.half.on_refused(Bytes::new(125_000));
    near(pass(&mut port, at(300.0), 0, 0), 0.05 * C * 1.2 * 0.92);
}

/// Each class of a port has a separate half, but the input of the link is that of all classes: 62 500 B of this
/// class and as many of another one in 100 us are y = C.
#[test]
fn iwqos_2_bytes_of_other_classes_are_input_too() {
    let mut port = Port::new();
    pass(&mut port, at(0.0), 62_500, 0);
    port.taken += 62_500;
    near(pass(&mut port, at(100.0), 0, 0), 0.05 * C);
}

/// If the input is the link's rate and the queue is empty, the equation is in equilibrium: R = C /
/// N.
#[test]
fn iwqos_2_the_rate_at_equilibrium_is_the_fair_share() {
    for flows in [1.0, 2.0, 10.0, 100.0] {
        let mut port = Port::new();
        let mut rate = pass(&mut port, at(0.0), 0, 0);
        // Input of each interval: `flows` flows at the rate of the last interval; at most ten times
        // C.
        for interval in 1..200 {
            let input = (flows * rate).min(10.0 * C) * 100e-6 / 8.0;
            pass(&mut port, at(100.0 * f64::from(interval) - 50.0), input as u64, 0);
            rate = pass(&mut port, at(100.0 * f64::from(interval)), 0, 0);
        }
        assert!((rate / (C / flows) - 1.0).abs() < 0.001, "{flows} flows: {rate}");
    }
}

/// A port without packets for a long time gives its whole link to the next flow.
#[test]
fn an_idle_ports_rate_rises_to_its_links() {
    let mut port = Port::new();
    pass(&mut port, at(0.0), 0, 0);
    near(pass(&mut port, at(5_000.0), 1538, 0), C);
}

#[test]
fn the_average_rtt_is_that_of_the_packets() {
    let mut port = RcpPort::new(port_params(), Bytes::new(1538));
    for _ in 0..10 {
        let fields = RcpFields::new(Some(us(200.0))).fields();
        let mut header = CongestionHeader { fields, ..CongestionHeader::default() };
        port.on_enqueue(&mut header, Bytes::new(1538), &view(at(0.0), 0, 0));
    }
    // 200 - 100 * 0.98^10 = 118.293 us.
    let by_hand = 200.0 - 100.0 * 0.98f64.powi(10);
    assert!((port.rtt().as_us_f64() - by_hand).abs() < 1e-3, "{}", port.rtt());
}

#[test]
fn the_smallest_rate_of_the_path_stays_in_the_header() {
    let mut fields = RcpFields::new(None);
    assert_eq!(fields.rtt(), None);
    for gbps in [40, 3, 7] {
        fields.limit(Rate::from_gbps(gbps));
    }
    assert_eq!(fields.rate(), Rate::from_gbps(3));
}

fn sender() -> Rcp {
    Rcp::new(params(&[]), &FlowInfo::default())
}

/// The fields of an acknowledgement of a data packet with `fields`.
fn echoed(fields: RcpFields) -> Fields {
    let mut receiver = Rcp::receiver(&params(&[]), &FlowInfo::default());
    let mut event = DataEvent::new(Time::ZERO);
    event.fields = fields.fields();
    assert!(receiver.on_data(&event), "all data is acknowledged");
    receiver.echo()
}

fn ack(now: Time, gbps: u64) -> AckEvent<'static> {
    let mut fields = RcpFields::new(None);
    fields.limit(Rate::from_gbps(gbps));
    {
        let mut event = AckEvent::new(now, us(100.0));
        event.hops = 1;
        event.next_seq = PacketNumber::new(1);
        event.fields = echoed(fields);
        event
    }
}

fn transmit(flow: &mut Rcp, now: Time, in_flight: u32) {
    let mut header = CongestionHeader::default();
    let seq = PacketNumber::new(0);
    flow.on_transmit(&mut header, &{
        let mut event = SendInfo::new(now, seq);
        event.in_flight = in_flight;
        event
    });
    assert!(RcpFields::of(&header.fields).is_some());
}

#[test]
fn a_flow_requests_a_rate_with_one_packet_and_then_paces_at_the_answer() {
    let mut flow = sender();
    assert_eq!((flow.allowance().window, flow.allowance().pacing), (1.0, Pacing::AckClocked));
    transmit(&mut flow, at(0.0), 0);
    flow.on_ack(&ack(at(100.0), 3));
    assert_eq!(flow.allowance().pacing, Pacing::Rate(Rate::from_gbps(3)));
    // Within an RTT the rate is still valid; after an idle RTT the flow requests it again.
    transmit(&mut flow, at(150.0), 0);
    assert_eq!(flow.rate(), Some(Rate::from_gbps(3)));
    transmit(&mut flow, at(251.0), 0);
    assert_eq!(flow.rate(), None);
    flow.on_ack(&ack(at(351.0), 2));
    flow.on_timeout(&{
        let mut event = TimeoutEvent::new(at(2000.0));
        event.next_seq = PacketNumber::new(2);
        event
    });
    assert_eq!(flow.allowance().window, 1.0);
}

/// The rate is not authenticated (`docs/security.md`). An attacker may write any number of steps of 100 kb/s; zero counts as one.
#[test]
fn a_rate_that_is_written_on_the_path_is_the_pace_whatever_the_ports_offer() {
    let id = Rcp::FIELDS.expect("RCP has fields").id;
    for (bytes, bps) in
        [([0, 0, 0], 100_000), ([1, 0, 0], 6_553_600_000), ([255; 3], 1_677_721_500_000)]
    {
        let mut fields = RcpFields::new(None);
        fields.limit(Rate::from_gbps(3));
        let mut written = fields.fields();
        written.as_data_mut(id).expect("RCP's fields")[..3].copy_from_slice(&bytes);
        let mut event = ack(at(100.0), 3);
        event.fields = echoed(RcpFields::of(&written).expect("RCP's fields"));
        let mut flow = sender();
        flow.on_ack(&event);
        assert_eq!(flow.allowance().pacing, Pacing::Rate(Rate::from_bps(bps)));
    }
}

#[test]
fn impossible_parameters_are_refused_by_name() {
    for (name, value) in [
        ("alpha", "0"),
        ("beta", "2"),
        ("initial_rate", "1.5"),
        ("rtt_gain", "0"),
        ("initial_rtt", "0us"),
    ] {
        let settings = Settings::read(&<Rcp as Algorithm>::INFO, None, &[(name, value)]);
        assert_eq!(settings.unwrap_err().parameter.as_deref(), Some(name));
    }
}
