//! An algorithm's fields through bytes: it sees what it would see in the simulator.

use apus_cc::bolt::{BoltEcho, BoltFields};
use apus_cc::rcp::RcpFields;
use apus_cc::registry::{Algorithm, build};
use apus_cc::{AckEvent, AlgorithmFields, Echo, FlowInfo, HopTelemetry, Sender, Telemetry};
use apus_transport::{
    Arrival, Endpoint, EndpointConfig, Handled, HopBuffer, Op, OpKind, Transmit, extension_of,
    fields_of, written,
};
use apus_units::{Bytes, FlowId, PacketNumber, Rate, Span, Time};
use apus_wire::{
    Body, Header, MAX_EXTENSION_BYTES, MAX_HEADER_BYTES, Signal, SwitchView, decode_extended,
    encode_extended, open,
};

fn bytes_of(header: &Header, fields: AlgorithmFields, telemetry: Option<&Telemetry>) -> Vec<u8> {
    let mut hops: HopBuffer = [0; _];
    let extension = extension_of(fields, telemetry, &mut hops);
    let mut bytes = vec![0; MAX_HEADER_BYTES + MAX_EXTENSION_BYTES];
    let length = encode_extended(header, &extension, &mut bytes).expect("legal");
    bytes.truncate(length);
    bytes
}

/// An endpoint with one flow whose peer knows it as 7, and the first packet of an op on it.
fn sending(algorithm: &str, now: Time) -> (Endpoint, Transmit) {
    let algorithm = build(algorithm, None, &[]).expect("an algorithm");
    let mut endpoint = Endpoint::new(EndpointConfig::default());
    let flow = endpoint.open(FlowId::new(7), &algorithm, &FlowInfo::default());
    let op = Op { kind: OpKind::Message, length: 400_000, user: 0 };
    endpoint.submit(now, flow, op).expect("room");
    let transmit = endpoint.poll_transmit(now).expect("data");
    (endpoint, transmit)
}

fn arrival(now: Time) -> Arrival {
    Arrival { now, nic_received_at: now, hops: 0, marked: false, receiver_level: 0 }
}

#[test]
fn every_field_survives_the_way_through_bytes() {
    let (_, transmit) = sending("bolt", Time::ZERO);
    let ack = Header { body: Body::Ack(received(1)), ..transmit.header };
    let (mut data, mut answers) = (Vec::new(), Vec::new());
    for flags in 0..32 {
        data.push(AlgorithmFields::Bolt(BoltFields::new(flags, 0x89ab_cdef)));
    }
    let mut rcp = RcpFields::new(Some(Span::from_us(100)));
    data.push(AlgorithmFields::Rcp(rcp));
    rcp.limit(Rate::from_gbps(7));
    data.push(AlgorithmFields::Rcp(rcp));
    answers.push(AlgorithmFields::RcpEcho(rcp.echo()));
    answers.push(AlgorithmFields::BoltEcho(BoltEcho::new(3)));
    for (header, all) in [(transmit.header, data), (ack, answers)] {
        for fields in all.into_iter().chain([AlgorithmFields::None]) {
            let bytes = bytes_of(&header, fields, None);
            let decoded = decode_extended(&bytes).expect("legal");
            assert_eq!(decoded.header, header);
            assert_eq!(fields_of(&decoded.extension), (fields, None));
        }
    }
}

fn received(largest: u64) -> apus_wire::Ack {
    apus_wire::Ack {
        largest: PacketNumber::new(largest),
        bitmap: 1,
        echo: PacketNumber::new(largest),
        remote_queuing: Span::ZERO,
        hops: 1,
        marked: 0,
        receiver_level: 0,
    }
}

/// Bolt Alg. 1 l. 6-9 and §4.3: what a switch makes of the bytes of a data packet does to the sender what
/// the simulator's signal does, which is to take a packet off the window at the first (Alg. 2 l. 6).
#[test]
fn bolt_4_3_a_switchs_datagram_acts_as_the_simulators_signal() {
    let start = Time::ZERO + Span::from_us(1_234);
    let later = start + Span::from_us(3);
    let (mut simulated, transmit) = sending("bolt", start);
    let (mut real, same) = sending("bolt", start);
    assert_eq!(transmit.header, same.header);
    let AlgorithmFields::Bolt(fields) = transmit.congestion.fields else {
        unreachable!("Bolt stamps its packets")
    };

    let body = Body::Signal(Signal { queue: 200_000, link_rate: 6, sent: fields.sent() });
    let told = Header { flow: FlowId::new(0), body, ..transmit.header };
    assert_eq!(simulated.handle_packet(&arrival(later), &told), Handled::Signal);

    let mut datagram = bytes_of(&same.header, same.congestion.fields, None);
    datagram.extend([0xc1; 4096]); // ciphertext and guard, which the switch does not touch
    let view = SwitchView::new(&mut datagram).expect("a packet of Bolt's");
    let src = view.signal(200_000, 6).expect("a signal");
    let (mut header, _) = open(&src).expect("a datagram");
    assert_eq!(header.flow, FlowId::new(7), "as the peer knows it");
    header.flow = FlowId::new(0);
    assert_eq!(real.handle_packet(&arrival(later), &header), Handled::Signal);

    let window = |endpoint: &Endpoint| endpoint.snapshot(FlowId::new(0)).expect("a flow").cwnd;
    assert_eq!(window(&simulated), 63.0, "64 at first (the default), one packet less");
    assert_eq!(window(&real), window(&simulated));
    assert_eq!(real.handle_packet(&arrival(later), &header), Handled::Refused, "once a packet");
}

#[test]
fn a_signal_must_say_when_its_packet_left() {
    let start = Time::ZERO + Span::from_us(5_000);
    let (mut endpoint, transmit) = sending("bolt", start);
    // The runtime notes when a burst really leaves, some time behind the stamp.
    endpoint.on_sent(FlowId::new(0), transmit.header.seq, start + Span::from_us(900));
    let signal = |sent| {
        let body = Body::Signal(Signal { queue: 200_000, link_rate: 6, sent });
        Header { flow: FlowId::new(0), body, ..transmit.header }
    };
    let mut take = |sent| endpoint.handle_packet(&arrival(start + Span::from_ms(1)), &signal(sent));
    assert_eq!(take(5_900_001), Handled::Refused, "after it left");
    assert_eq!(take(5_900_000 - (1 << 20) - 1), Handled::Refused, "more than a millisecond before");
    assert_eq!(take(5_000_000), Handled::Signal);
}

/// The window of HPCC after each of these notes of one port, told directly and through bytes.
fn hpcc_windows(notes: &[HopTelemetry], through_bytes: bool) -> Vec<f64> {
    let (_, transmit) = sending("hpcc", Time::ZERO);
    let algorithm = build("hpcc", None, &[]).expect("hpcc");
    let mut flow = algorithm.sender(&FlowInfo::default());
    let mut number = 0;
    let mut told = |flow: &mut Algorithm, note: &HopTelemetry| {
        let mut telemetry = Telemetry::default();
        telemetry.push(*note, 5);
        if through_bytes {
            // Noted by a switch on the data packet, read at the receiver, brought back by the ACK.
            let mut data = bytes_of(&transmit.header, AlgorithmFields::Telemetry, None);
            SwitchView::new(&mut data).expect("room for notes").note_hop(&written(note), 5);
            let (fields, seen) = fields_of(&decode_extended(&data).expect("legal").extension);
            let mut echo = Echo::default();
            echo.on_data(fields);
            let answer = Header { body: Body::Ack(received(number)), ..transmit.header };
            let answer = bytes_of(&answer, echo.fields(), seen.as_ref());
            let (fields, back) = fields_of(&decode_extended(&answer).expect("legal").extension);
            assert_eq!(fields, AlgorithmFields::TelemetryEcho);
            telemetry = back.expect("legible");
        }
        number += 1;
        flow.on_ack(&AckEvent {
            now: note.at,
            rtt: Span::from_us(13),
            fabric_delay: Span::from_us(13),
            endpoint_delay: Span::ZERO,
            hops: 1,
            acked_packets: 1,
            marked_packets: 0,
            receiver_level: 0,
            acked_seq: PacketNumber::new(number),
            next_seq: PacketNumber::new(number + 30),
            in_flight: 30,
            fields: AlgorithmFields::TelemetryEcho,
            telemetry: Some(&telemetry),
        });
        flow.snapshot().cwnd
    };
    notes.iter().map(|note| told(&mut flow, note)).collect()
}

/// HPCC: notes through bytes, where clocks wrap after 2^32 ns and counts after 2^40 bytes, make the same
/// windows as notes handed over whole.
#[test]
fn hpcc_notes_through_bytes_make_the_same_windows() {
    // A port that sends at 90 %, with a queue that comes and goes, across both wraps.
    let at = Time::ZERO + Span::from_ns((1 << 32) - 25_000);
    let notes: Vec<HopTelemetry> = (0u64..10)
        .map(|i| HopTelemetry {
            at: at + Span::from_us(5 * i),
            sent: Bytes::new((1 << 40) - 200_000 + 56_250 * i),
            queue: Bytes::new([0, 90_000, 40_000][i as usize % 3]),
            link_rate: Rate::from_gbps(100),
        })
        .collect();
    let direct = hpcc_windows(&notes, false);
    assert_eq!(hpcc_windows(&notes, true), direct);
    assert!(direct.windows(2).filter(|pair| pair[0] != pair[1]).count() > 5, "{direct:?}");
}

#[test]
fn telemetry_of_a_rate_without_a_name_is_none() {
    let (_, transmit) = sending("hpcc", Time::ZERO);
    let mut data = bytes_of(&transmit.header, AlgorithmFields::Telemetry, None);
    let hop = apus_wire::Hop { link_rate: 200, ..apus_wire::Hop::default() };
    SwitchView::new(&mut data).expect("room for notes").note_hop(&hop, 5);
    let extension = decode_extended(&data).expect("legal").extension;
    assert_eq!(fields_of(&extension), (AlgorithmFields::Telemetry, None));
}
