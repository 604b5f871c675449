//! An algorithm's fields sent as bytes have the same effect as in the simulator.

use apus_algorithms::bolt::{BoltFields, grants};
use apus_algorithms::rcp::{RcpFields, echoed_rate};
use apus_algorithms::{AlgorithmConfig, BuiltInSender, build};
use apus_cc::{
    AckEvent, AlgorithmFactory, DataEvent, FieldLayout, Fields, FlowInfo, HopTelemetry,
    MAX_FIELD_BYTES, Receiver, Sender, Telemetry,
};
use apus_transport::{
    Arrival, Endpoint, EndpointConfig, ExtensionBuffer, Handled, Op, OpKind, Transmit,
    extension_of, fields_of, written,
};
use apus_units::{Bytes, FlowId, PacketNumber, Rate, Span, Time};
use apus_wire::{
    Body, Extension, Header, MAX_EXTENSION_BYTES, MAX_HEADER_BYTES, OwnFields, Signal, SwitchView,
    decode_extended, encode_extended, open,
};

fn bytes_of(
    header: &Header,
    fields: Fields,
    layout: Option<FieldLayout>,
    telemetry: Option<&Telemetry>,
) -> Vec<u8> {
    // Not zeros: the previous content of the buffer must not be sent.
    let mut buffer: ExtensionBuffer = [0xee; _];
    let extension = extension_of(fields, layout, telemetry, &mut buffer);
    let mut bytes = vec![0; MAX_HEADER_BYTES + MAX_EXTENSION_BYTES];
    let length = encode_extended(header, &extension, &mut bytes).expect("legal");
    bytes.truncate(length);
    bytes
}

fn algorithm(name: &str) -> AlgorithmConfig {
    build(name, None, &[]).expect("an algorithm")
}

fn layout(name: &str) -> Option<FieldLayout> {
    let layout = algorithm(name).fields();
    assert!(layout.is_some(), "{name} has fields");
    layout
}

/// An endpoint with one flow whose index at the peer is 7, and the first packet of an op on it.
fn sending(name: &str, now: Time) -> (Endpoint<AlgorithmConfig>, Transmit) {
    let algorithm = algorithm(name);
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
    let mut all = Vec::new();
    for flags in 0..32 {
        let fields = BoltFields::new(flags, 0x89ab_cdef).fields();
        all.push((transmit.header, layout("bolt"), fields));
    }
    all.push((ack, layout("bolt"), grants(0x0102_0304)));
    let mut rcp = RcpFields::new(Some(Span::from_us(100)));
    all.push((transmit.header, layout("rcp"), rcp.fields()));
    rcp.limit(Rate::from_gbps(7));
    all.push((transmit.header, layout("rcp"), rcp.fields()));
    all.push((transmit.header, None, Fields::NONE));
    all.push((ack, None, Fields::NONE));
    for (header, layout, fields) in all {
        let bytes = bytes_of(&header, fields, layout, None);
        let decoded = decode_extended(&bytes).expect("legal");
        assert_eq!(decoded.header, header);
        assert_eq!(fields_of(&decoded.extension, layout), (fields, None));
    }
}

/// IWQoS 2005 §2: the receiver returns the rate of the newest data packet.
#[test]
fn rcp_echoed_rate_survives_the_way_through_bytes() {
    let (_, transmit) = sending("rcp", Time::ZERO);
    let mut rcp = RcpFields::new(Some(Span::from_us(100)));
    rcp.limit(Rate::from_gbps(7));
    let mut receiver = algorithm("rcp").receiver(&FlowInfo::default());
    let mut event = DataEvent::new(Time::ZERO);
    event.fields = rcp.fields();
    receiver.on_data(&event);
    let ack = Header { body: Body::Ack(received(1)), ..transmit.header };
    let bytes = bytes_of(&ack, receiver.echo(), layout("rcp"), None);
    let extension = decode_extended(&bytes).expect("legal").extension;
    let (fields, _) = fields_of(&extension, layout("rcp"));
    assert_eq!(echoed_rate(&fields), Some(Rate::from_gbps(7)));
}

/// Switches write the first bytes of the layout; the next ones are authenticated.
#[test]
fn layout_decides_which_bytes_are_writable() {
    let bytes = [1, 2, 3, 4, 5, 6];
    assert_eq!(bytes.len(), MAX_FIELD_BYTES);
    // Number of writable, authenticated and returned bytes.
    for (writable, authenticated, echo) in [(0, 0, 0), (1, 5, 4), (6, 0, 6), (0, 6, 1), (2, 1, 3)] {
        let layout = FieldLayout { id: 64, writable, authenticated, echo };
        let mut buffer: ExtensionBuffer = [0xee; _];
        let extension = extension_of(Fields::data(64, bytes), Some(layout), None, &mut buffer);
        let (first, rest) = bytes.split_at(writable.into());
        let expected = OwnFields {
            id: 64,
            is_echo: false,
            writable: first,
            authenticated: &rest[..authenticated.into()],
        };
        assert_eq!(extension, Extension::Own(expected));
        let mut arrived = [0; MAX_FIELD_BYTES];
        let sent = usize::from(writable + authenticated);
        arrived[..sent].copy_from_slice(&bytes[..sent]);
        assert_eq!(fields_of(&extension, Some(layout)), (Fields::data(64, arrived), None));

        let extension = extension_of(Fields::echo(64, bytes), Some(layout), None, &mut buffer);
        let returned = &bytes[..echo.into()];
        let expected = OwnFields { id: 64, is_echo: true, writable: &[], authenticated: returned };
        assert_eq!(extension, Extension::Own(expected));
        let mut arrived = [0; MAX_FIELD_BYTES];
        arrived[..returned.len()].copy_from_slice(returned);
        assert_eq!(fields_of(&extension, Some(layout)), (Fields::echo(64, arrived), None));
    }
}

#[test]
fn fields_of_another_layout_are_ignored() {
    let layout = FieldLayout { id: 64, writable: 1, authenticated: 2, echo: 3 };
    let own = OwnFields { id: 64, is_echo: false, writable: &[1], authenticated: &[2, 3] };
    let echo = OwnFields { id: 64, is_echo: true, writable: &[], authenticated: &[1, 2, 3] };
    let seen = |own, layout| fields_of(&Extension::Own(own), layout).0;
    assert_eq!(seen(own, Some(layout)), Fields::data(64, [1, 2, 3, 0, 0, 0]));
    assert_eq!(seen(echo, Some(layout)), Fields::echo(64, [1, 2, 3, 0, 0, 0]));
    let long = [7; 16];
    for other in [
        OwnFields { id: 65, ..own },
        OwnFields { writable: &[], ..own },
        OwnFields { writable: &[1, 2], ..own },
        OwnFields { writable: &long, authenticated: &long, ..own },
        OwnFields { authenticated: &[2], ..own },
        OwnFields { authenticated: &[2, 3, 4], ..own },
        OwnFields { id: 65, ..echo },
        OwnFields { authenticated: &[1, 2], ..echo },
        OwnFields { authenticated: &long, ..echo },
    ] {
        assert_eq!(seen(other, Some(layout)), Fields::NONE, "{other:?}");
    }
    assert_eq!(seen(own, None), Fields::NONE, "an algorithm without fields");
    assert_eq!(seen(echo, None), Fields::NONE, "an algorithm without fields");
}

#[test]
fn fields_of_another_algorithm_are_not_sent() {
    let mut buffer: ExtensionBuffer = [0; _];
    for fields in [BoltFields::new(4, 1).fields(), grants(1)] {
        for layout in [layout("rcp"), None] {
            assert_eq!(extension_of(fields, layout, None, &mut buffer), Extension::None);
        }
    }
}

/// Returns an acknowledgement of this packet alone, without queuing delay.
pub(crate) fn received(largest: u64) -> apus_wire::Ack {
    apus_wire::Ack {
        largest: PacketNumber::new(largest),
        bitmap: 1,
        echo: PacketNumber::new(largest),
        remote_queuing: Span::ZERO,
        hops: 1,
        marked: 0,
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    }
}

/// Bolt Alg. 1 l. 6-9 and §4.3: the datagram that a switch makes from the bytes of a data packet
/// has the same effect on the sender as the simulator's signal. The first one reduces the window by
/// one packet (Alg. 2 l. 6).
#[test]
fn bolt_4_3_a_switchs_datagram_acts_as_the_simulators_signal() {
    let start = Time::ZERO + Span::from_us(1_234);
    let later = start + Span::from_us(3);
    let (mut simulated, transmit) = sending("bolt", start);
    let (mut real, same) = sending("bolt", start);
    assert_eq!(transmit.header, same.header);
    let fields = BoltFields::of(&transmit.congestion.fields).expect("Bolt stamps its packets");

    let body = Body::Signal(Signal { queue: 200_000, link_rate: 6, sent: fields.sent() });
    let told = Header { flow: FlowId::new(0), body, ..transmit.header };
    assert_eq!(simulated.handle_packet(&arrival(later), &told), Handled::Signal);

    let mut datagram = bytes_of(&same.header, same.congestion.fields, layout("bolt"), None);
    datagram.extend([0xc1; 4096]); // ciphertext and guard, which the switch does not touch
    let view = SwitchView::new(&mut datagram).expect("a packet of Bolt's");
    // The switch reads the departure time of the packet.
    let (seen, _) = fields_of(&view.extension(), layout("bolt"));
    let sent = BoltFields::of(&seen).expect("Bolt's fields").sent();
    let src = view.signal(200_000, 6, sent).expect("a signal");
    let (mut header, _) = open(&src).expect("a datagram");
    assert_eq!(header.flow, FlowId::new(7), "the index at the peer");
    header.flow = FlowId::new(0);
    assert_eq!(real.handle_packet(&arrival(later), &header), Handled::Signal);

    let window = |endpoint: &Endpoint<AlgorithmConfig>| {
        endpoint.snapshot(FlowId::new(0)).expect("a flow").cwnd
    };
    assert_eq!(window(&simulated), 63.0, "64 at first (the default), one packet less");
    assert_eq!(window(&real), window(&simulated));
    assert_eq!(real.handle_packet(&arrival(later), &header), Handled::Refused, "once a packet");
}

#[test]
fn a_signal_must_state_when_its_packet_left() {
    let start = Time::ZERO + Span::from_us(5_000);
    let (mut endpoint, transmit) = sending("bolt", start);
    // The runtime records the actual departure of a burst, some time after the timestamp.
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

/// The stamp of a packet counts nanoseconds modulo 2^32. A packet that leaves at most 2^20 ns after
/// its stamp is named correctly, on both sides of every wrap-around; any other distance is refused.
#[test]
fn a_signal_names_the_departure_across_2_to_the_32_ns() {
    const WRAPS: u64 = 1 << 32;
    const MOST: u64 = 1 << 20;
    let last = u64::MAX / 1_000 / WRAPS; // the last wrap-around within the range of times
    for wrap in [1, 2, last].map(|n| n * WRAPS) {
        for away in [-(MOST as i64) - 1, -(MOST as i64), -1, 0, 1] {
            let stamped = wrap.saturating_add_signed(away);
            for late in [0, 1, MOST - 1, MOST, MOST + 1, WRAPS / 2, WRAPS - 1] {
                let start = Time::from_ps(stamped * 1_000);
                let (mut endpoint, transmit) = sending("bolt", start);
                let left = start.saturating_add(Span::from_ns(late));
                endpoint.on_sent(FlowId::new(0), transmit.header.seq, left);
                let signal = Signal { queue: 200_000, link_rate: 6, sent: stamped as u32 };
                let flow = FlowId::new(0);
                let header = Header { flow, body: Body::Signal(signal), ..transmit.header };
                let arrived = left.saturating_add(Span::from_us(5));
                let expected = if late <= MOST { Handled::Signal } else { Handled::Refused };
                let handled = endpoint.handle_packet(&arrival(arrived), &header);
                assert_eq!(handled, expected, "{late} ns after {stamped} ns");
            }
        }
    }
}

/// Returns the window of HPCC after each of these records of one port, passed directly or as bytes.
fn hpcc_windows(notes: &[HopTelemetry], through_bytes: bool) -> Vec<f64> {
    let (_, transmit) = sending("hpcc", Time::ZERO);
    let algorithm = algorithm("hpcc");
    let mut flow = algorithm.sender(&FlowInfo::default());
    let mut number = 0;
    let mut told = |flow: &mut BuiltInSender, note: &HopTelemetry| {
        let mut telemetry = Telemetry::default();
        telemetry.push(*note, 5);
        if through_bytes {
            // Appended by a switch to the data packet, read at the receiver, returned by the ACK.
            let mut data = bytes_of(&transmit.header, Fields::TELEMETRY, None, None);
            SwitchView::new(&mut data).expect("room for notes").note_hop(&written(note), 5);
            let (fields, seen) = fields_of(&decode_extended(&data).expect("legal").extension, None);
            let mut receiver = algorithm.receiver(&FlowInfo::default());
            let mut event = DataEvent::new(note.at);
            event.fields = fields;
            receiver.on_data(&event);
            let answer = Header { body: Body::Ack(received(number)), ..transmit.header };
            let answer = bytes_of(&answer, receiver.echo(), None, seen.as_ref());
            let (fields, back) =
                fields_of(&decode_extended(&answer).expect("legal").extension, None);
            assert_eq!(fields, Fields::TELEMETRY_ECHO);
            telemetry = back.expect("legible");
        }
        number += 1;
        flow.on_ack(&{
            let mut event = AckEvent::new(note.at, Span::from_us(13));
            event.hops = 1;
            event.acked_seq = PacketNumber::new(number);
            event.next_seq = PacketNumber::new(number + 30);
            event.in_flight = 30;
            event.fields = Fields::TELEMETRY_ECHO;
            event.telemetry = Some(&telemetry);
            event
        });
        flow.snapshot().cwnd
    };
    notes.iter().map(|note| told(&mut flow, note)).collect()
}

/// HPCC: records sent as bytes, where clocks wrap after 2^32 ns and counts after 2^40 bytes, give
/// the same windows as records passed as values.
#[test]
fn hpcc_records_sent_as_bytes_give_the_same_windows() {
    // A port that sends at 90 % with a varying queue, across both wraps.
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
    let mut data = bytes_of(&transmit.header, Fields::TELEMETRY, None, None);
    let hop = apus_wire::Hop { link_rate: 200, ..apus_wire::Hop::default() };
    SwitchView::new(&mut data).expect("room for notes").note_hop(&hop, 5);
    let extension = decode_extended(&data).expect("legal").extension;
    assert_eq!(fields_of(&extension, None), (Fields::TELEMETRY, None));
}
