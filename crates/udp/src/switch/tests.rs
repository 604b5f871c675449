//! The switch in virtual time, without sockets. A packet of 1000 wire bytes takes 8 us at 1 Gb/s.

use apus_algorithms::bolt::BoltFields;
use apus_algorithms::{AlgorithmConfig, BuiltInSwitch, build};
use apus_cc::{AlgorithmFactory, Fields, HopTelemetry, SwitchInfo};
use apus_transport::{extension_of, fields_of, written};
use apus_units::{Bytes, FlowId, OpId, PacketNumber, Rate, Span, Time};
use apus_wire::{
    Body, Header, Segment, SegmentKind, authenticated_from, decode_extended, encode_extended, open,
};

use super::*;
use counters::PortCounters;
use datagram::Datagram;
use forwarder::{Forwarder, Received};

const GIGABIT: Rate = Rate::from_gbps(1);
const DELAY: Span = Span::from_us(10);
/// Bytes that a packet occupies on a link in the tests, in addition to its own bytes.
const OVERHEAD: u32 = 100;

fn algorithm(name: &str, settings: &[(&str, &str)]) -> AlgorithmConfig {
    build(name, None, settings).expect("an algorithm")
}

fn forwarder(
    algorithm: &AlgorithmConfig,
    rate: Rate,
    buffer: u64,
    delay: Span,
) -> Forwarder<BuiltInSwitch> {
    let half = |seed| algorithm.switch(&SwitchInfo { packet: Bytes::new(1000), seed, nic: false });
    let port = (rate, Bytes::new(buffer), delay);
    Forwarder::new(port, [half(0), half(1)], algorithm.fields(), OVERHEAD)
}

fn plain(rate: Rate, buffer: u64, delay: Span) -> Forwarder<BuiltInSwitch> {
    forwarder(&algorithm("swift", &[]), rate, buffer, delay)
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Returns a datagram that occupies 1000 bytes on a link and contains a number.
fn numbered(number: u16) -> Vec<u8> {
    let mut bytes = vec![0xaa; 900];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn receive(forwarder: &mut Forwarder<BuiltInSwitch>, at: Time, bytes: &[u8]) {
    receive_marked(forwarder, at, 0, bytes);
}

fn receive_marked(forwarder: &mut Forwarder<BuiltInSwitch>, at: Time, tos: u8, bytes: &[u8]) {
    let direction = Direction::ToServer;
    forwarder.receive(&Received { at, direction, client: 3, tos, ttl: 64, bytes });
}

/// A datagram that left: direction, time, bytes, DSCP and ECN.
type Left = (Direction, Time, Vec<u8>, u8);

/// Returns all datagrams that leave until `now`.
fn departures(forwarder: &mut Forwarder<BuiltInSwitch>, now: Time) -> Vec<Left> {
    forwarder.advance(now);
    let mut all = Vec::new();
    while let Some((direction, at, datagram)) = forwarder.depart(now) {
        assert_eq!((datagram.client, datagram.ttl), (3, if datagram.ttl == 64 { 64 } else { 63 }));
        all.push((direction, at, datagram.bytes.clone(), datagram.tos));
        forwarder.on_sent(direction, datagram);
    }
    all
}

fn to_server(forwarder: &mut Forwarder<BuiltInSwitch>, now: Time) -> PortCounters {
    forwarder.take_counters(now)[0]
}

#[test]
fn packets_leave_at_the_rate_of_the_port_to_the_picosecond_in_order() {
    // 8000 bits at 3 Gb/s: 2666666.67 ps, rounded up for each packet.
    let mut forwarder = plain(Rate::from_gbps(3), 1 << 20, DELAY);
    for number in 0..100 {
        receive(&mut forwarder, us(5), &numbered(number));
    }
    let left = departures(&mut forwarder, us(5_000));
    assert_eq!(left.len(), 100);
    for (number, (direction, at, bytes, _)) in (0u16..).zip(left) {
        let departs = us(5) + Span::from_ps(2_666_667 * (u64::from(number) + 1));
        assert_eq!((direction, at), (Direction::ToServer, departs + DELAY));
        assert_eq!(bytes, numbered(number));
    }
    // A later packet finds the port idle.
    receive(&mut forwarder, us(6_000), &numbered(7));
    let left = departures(&mut forwarder, us(7_000));
    assert_eq!(left[0].1, us(6_000) + Span::from_ps(2_666_667) + DELAY);
}

#[test]
fn the_port_drops_at_its_tail_what_its_buffer_has_no_room_for() {
    let mut forwarder = plain(GIGABIT, 3_000, Span::ZERO);
    for number in 0..5 {
        receive(&mut forwarder, us(0), &numbered(number));
    }
    // The first one leaves at 8 us, which makes room for one more.
    receive(&mut forwarder, us(8), &numbered(5));
    receive(&mut forwarder, us(8), &numbered(6));
    let numbers: Vec<_> = departures(&mut forwarder, us(100))
        .iter()
        .map(|(_, at, bytes, _)| (*at, bytes[1]))
        .collect();
    assert_eq!(numbers, [(us(8), 0), (us(16), 1), (us(24), 2), (us(32), 5)]);
    let counters = to_server(&mut forwarder, us(100));
    assert_eq!((counters.received, counters.sent, counters.sent_bytes), (7, 4, 4_000));
    assert_eq!(counters.dropped(Cause::Buffer), 3);
    assert_eq!(counters.drops.iter().sum::<u64>(), 3);
    assert_eq!(counters.max_queue, Bytes::new(3_000));
    // 3 kB until 24 us, since one packet arrived when one left, then 2 kB and so on: the port serves 4 packets, with 3,
    // 3, 2 and 1 kB for 8 us each.
    assert_eq!(counters.mean_queue(Span::from_us(100)), 9_000.0 * 8.0 / 100.0);
}

#[test]
fn the_largest_and_the_mean_queue_are_those_of_the_time_since_the_last_report() {
    let mut forwarder = plain(GIGABIT, 1 << 20, Span::ZERO);
    (0..4).for_each(|number| receive(&mut forwarder, us(0), &numbered(number)));
    departures(&mut forwarder, us(16));
    let first = to_server(&mut forwarder, us(16));
    assert_eq!((first.max_queue, first.sent), (Bytes::new(4_000), 2));
    assert_eq!(first.mean_queue(Span::from_us(16)), 3_500.0);
    departures(&mut forwarder, us(32));
    let second = to_server(&mut forwarder, us(32));
    assert_eq!((second.max_queue, second.sent), (Bytes::new(2_000), 2));
    assert_eq!(second.mean_queue(Span::from_us(16)), 1_500.0);
}

#[test]
fn a_thread_that_comes_late_changes_no_time_of_the_ports() {
    let run = |step: u64| {
        let mut forwarder = forwarder(&algorithm("rcp", &[]), GIGABIT, 5_000, DELAY);
        let mut all = Vec::new();
        for begin in (0..400).step_by(step as usize) {
            for at in (begin..begin + step).filter(|at| at % 7 < 2) {
                receive_marked(&mut forwarder, us(at), 2, &numbered(at as u16));
            }
            all.extend(departures(&mut forwarder, us(begin + step)));
        }
        all.extend(departures(&mut forwarder, us(1_000)));
        (all, forwarder.take_counters(us(1_000)))
    };
    let punctual = run(1);
    assert!(punctual.1[0].dropped(Cause::Buffer) > 0);
    for step in [5, 50, 400] {
        assert_eq!(run(step), punctual, "every {step} us");
    }
}

#[test]
fn datagrams_of_several_sockets_take_effect_in_the_order_in_which_the_kernel_received_them() {
    let mut forwarder = plain(GIGABIT, 1 << 20, Span::ZERO);
    for (at, number) in [(30, 2), (10, 0), (10, 1)] {
        receive(&mut forwarder, us(at), &numbered(number));
    }
    let left = departures(&mut forwarder, us(100));
    let numbers: Vec<_> = left.iter().map(|(_, at, bytes, _)| (*at, bytes[1])).collect();
    assert_eq!(numbers, [(us(18), 0), (us(26), 1), (us(38), 2)]);
}

#[test]
fn a_small_datagram_takes_a_minimum_frame() {
    let mut forwarder = forwarder(&algorithm("swift", &[]), GIGABIT, 1 << 20, Span::ZERO);
    // 1 byte plus the overhead is more than 84 wire bytes; without the overhead it is less.
    receive(&mut forwarder, us(0), &[1]);
    assert_eq!(departures(&mut forwarder, us(9))[0].1, us(0) + Span::from_ns(8 * 101));
    let config = algorithm("swift", &[]);
    let half = || config.switch(&SwitchInfo { packet: Bytes::new(1000), seed: 0, nic: false });
    let port = (GIGABIT, Bytes::new(1 << 20), Span::ZERO);
    let mut bare = Forwarder::new(port, [half(), half()], None, 0);
    receive(&mut bare, us(0), &[1]);
    assert_eq!(departures(&mut bare, us(9))[0].1, us(0) + Span::from_ns(8 * 84));
}

#[test]
fn a_datagram_whose_ttl_reaches_0_is_dropped() {
    let mut forwarder = plain(GIGABIT, 1 << 20, Span::ZERO);
    for ttl in [0, 1, 2] {
        let (direction, bytes) = (Direction::ToServer, &[1; 900]);
        forwarder.receive(&Received { at: us(0), direction, client: 0, tos: 0, ttl, bytes });
    }
    forwarder.advance(us(50));
    let (_, _, datagram) = forwarder.depart(us(50)).expect("the last one");
    assert_eq!(datagram.ttl, 1);
    assert!(forwarder.depart(us(50)).is_none());
    assert_eq!(to_server(&mut forwarder, us(50)).dropped(Cause::Ttl), 2);
}

/// RFC 8257 §3.1: a switch marks a packet if the queue is longer than the threshold K when the packet arrives.
#[test]
fn dctcp_3_1_packets_are_marked_above_the_threshold_if_their_sender_reacts_to_marks() {
    let marks = |tos: u8| {
        let half = || BuiltInSwitch::Ecn(EcnMarker::new(Bytes::new(2_500)));
        let port = (GIGABIT, Bytes::new(1 << 20), Span::ZERO);
        let mut forwarder = Forwarder::new(port, [half(), half()], None, OVERHEAD);
        (0..6).for_each(|number| receive_marked(&mut forwarder, us(0), tos, &numbered(number)));
        let left = departures(&mut forwarder, us(100));
        let tos: Vec<u8> = left.iter().map(|(.., tos)| *tos).collect();
        (tos, to_server(&mut forwarder, us(100)).marked)
    };
    // The fourth packet finds 3000 bytes. DSCP 1 stays; ECT(0) and ECT(1) become CE.
    assert_eq!(marks(0b110), (vec![0b110, 0b110, 0b110, 0b111, 0b111, 0b111], 3));
    assert_eq!(marks(0b101).0[3..], [0b111; 3]);
    assert_eq!(marks(0b100), (vec![0b100; 6], 0));
    assert_eq!(marks(0b111), (vec![0b111; 6], 0), "an earlier switch has marked them");
}

/// Returns a data packet of 1000 wire bytes with these fields, and with arbitrary bytes in place of ciphertext.
fn data(fields: Fields, layout: Option<apus_cc::FieldLayout>, number: u64) -> Vec<u8> {
    let segment = Segment {
        op: OpId::new(1),
        kind: SegmentKind::Message,
        offset: 0,
        length: 400,
        op_length: 400_000,
        attached: None,
    };
    let body = Body::Data(segment);
    let header = Header { flow: FlowId::new(9), seq: PacketNumber::new(number), body };
    let mut bytes = vec![0xc1; 1000 - OVERHEAD as usize];
    encode_extended(&header, &extension_of(fields, layout, None, &mut [0; _]), &mut bytes)
        .expect("legal");
    bytes
}

/// Switches may write the first byte of Bolt's fields; the other bytes are authenticated.
#[test]
fn only_bytes_that_a_switch_may_write_are_written_and_counted() {
    let layout = algorithm("bolt", &[]).fields();
    let original = data(BoltFields::new(BoltFields::INC, 7).fields(), layout, 1);
    let mut datagram = Datagram { bytes: original.clone(), ..Datagram::default() };
    let id = layout.expect("Bolt's").id;
    for (byte, written) in [(3, false), (0, true)] {
        let mut header = datagram.header(layout);
        header.fields.as_data_mut(id).expect("Bolt's")[byte] ^= 1;
        assert_eq!(datagram.write(&header, layout), written);
        let changed = datagram.bytes.iter().zip(&original).filter(|(new, old)| new != old).count();
        assert_eq!(changed, usize::from(written), "byte {byte}");
    }
}

/// Bolt Alg. 1 l. 4-10: a packet that finds at least CC_THRESH waiting gets DEC, and its source an SRC with the queue,
/// the link's rate and the packet's own departure time; §4.3: the switch needs no key.
#[test]
fn bolt_alg_1_a_congested_port_writes_dec_and_signals_to_the_source() {
    let bolt = algorithm("bolt", &[("cc_threshold", "2"), ("sm", "false"), ("pru", "false")]);
    let mut forwarder = forwarder(&bolt, GIGABIT, 1 << 20, DELAY);
    let layout = bolt.fields();
    let sent = |number: u64| 1_000_000 + number as u32;
    let packet =
        |number| data(BoltFields::new(BoltFields::INC, sent(number)).fields(), layout, number);
    // Packet 0 is in service, and packets 1 and 2 wait: packet 3 finds 2000 waiting bytes.
    (0..4).for_each(|number| receive_marked(&mut forwarder, us(1), 0b110, &packet(number)));
    let left = departures(&mut forwarder, us(200));
    let (signals, packets): (Vec<_>, Vec<_>) =
        left.iter().partition(|(direction, ..)| *direction == Direction::ToClients);

    let [(_, at, signal, tos)] = signals[..] else { panic!("{} signals", signals.len()) };
    // 35 bytes with the overhead on the port to the clients.
    let time = GIGABIT.serialization_time(Bytes::new(signal.len() as u64 + u64::from(OVERHEAD)));
    assert_eq!((*at, *tos), (us(1) + time + DELAY, 0b100), "at once, without ECN");
    let (header, payload) = open(signal).expect("a datagram with a checksum");
    assert_eq!((header.flow, header.seq), (FlowId::new(9), PacketNumber::new(3)));
    let expected = apus_wire::Signal { queue: 2_000, link_rate: 1, sent: sent(3) };
    assert_eq!((header.body, payload), (Body::Signal(expected), &[][..]));

    for (number, (_, _, bytes, _)) in (0..).zip(packets) {
        let original = packet(number);
        let from = authenticated_from(bytes);
        assert_eq!(bytes[from..], original[from..], "what is authenticated stays");
        let fields = fields_of(&decode_extended(bytes).expect("legal").extension, layout).0;
        let fields = BoltFields::of(&fields).expect("Bolt's");
        // Without tokens no packet keeps INC (l. 19).
        let flags = if number == 3 { BoltFields::DEC } else { 0 };
        assert_eq!((fields.flags(), fields.sent()), (flags, sent(number)));
    }
    let [to_server, to_clients] = forwarder.take_counters(us(200));
    assert_eq!((to_server.signals, to_server.written, to_server.sent), (1, 4, 4));
    assert_eq!((to_clients.received, to_clients.sent), (0, 1));
}

#[test]
fn packets_without_fields_of_the_algorithm_pass_unchanged() {
    let bolt = algorithm("bolt", &[("cc_threshold", "0")]);
    let mut forwarder = forwarder(&bolt, GIGABIT, 1 << 20, Span::ZERO);
    let others = [data(Fields::NONE, None, 1), data(Fields::TELEMETRY, None, 2), numbered(3)];
    others.iter().for_each(|bytes| receive(&mut forwarder, us(0), bytes));
    let left: Vec<_> = departures(&mut forwarder, us(99)).into_iter().map(|it| it.2).collect();
    assert_eq!(left, others);
    assert_eq!(to_server(&mut forwarder, us(99)).written, 0);
}

/// HPCC §4.1, Fig. 7: each packet carries the state of the port when it begins to leave.
#[test]
fn hpcc_4_1_each_packet_gets_the_state_of_the_port_when_it_begins_to_leave() {
    let hpcc = algorithm("hpcc", &[]);
    let mut forwarder = forwarder(&hpcc, GIGABIT, 1 << 20, Span::ZERO);
    (0..3).for_each(|n| receive(&mut forwarder, us(2), &data(Fields::TELEMETRY, None, n)));
    let left = departures(&mut forwarder, us(99));
    // The port was idle at 2 us, so packet 0 begins alone. The other packets wait behind it.
    for (number, queue) in [(0, 0), (1, 1_000), (2, 0)] {
        let decoded = decode_extended(&left[number].2).expect("legal");
        let (_, telemetry) = fields_of(&decoded.extension, None);
        let hop = HopTelemetry {
            at: us(2 + 8 * number as u64),
            sent: Bytes::new(1_000 * number as u64),
            queue: Bytes::new(queue),
            link_rate: GIGABIT,
        };
        let telemetry = telemetry.expect("legible");
        assert_eq!(telemetry.hops(), [hop], "packet {number}: {:?}", written(&hop));
    }
    assert_eq!(to_server(&mut forwarder, us(99)).written, 3);
}

#[test]
fn a_second_switch_appends_its_hop_and_its_number() {
    let hpcc = algorithm("hpcc", &[]);
    let half = |seed| hpcc.switch(&SwitchInfo { packet: Bytes::new(1000), seed, nic: false });
    let port = (GIGABIT, Bytes::new(1 << 20), Span::ZERO);
    let mut bytes = data(Fields::TELEMETRY, None, 1);
    for seed in [5, 6] {
        let mut forwarder = Forwarder::new(port, [half(seed), half(0)], None, OVERHEAD);
        receive(&mut forwarder, us(seed), &bytes);
        bytes = departures(&mut forwarder, us(99)).remove(0).2;
    }
    let decoded = decode_extended(&bytes).expect("legal");
    let telemetry = fields_of(&decoded.extension, None).1.expect("legible");
    assert_eq!(telemetry.hops().iter().map(|hop| hop.at).collect::<Vec<_>>(), [us(5), us(6)]);
    assert_eq!(telemetry.path(), 5 ^ 6);
}

#[test]
fn impossible_settings_are_errors_with_the_remedy() {
    type Change = fn(&mut Config);
    let config = |change: Change| {
        let server = ([127, 0, 0, 1], 4).into();
        let mut config = Config::new(([127, 0, 0, 1], 0).into(), server, GIGABIT);
        change(&mut config);
        Switch::open(&config).map(|_| ()).map_err(|error| error.to_string())
    };
    config(|_| {}).expect("defaults");
    let cases: [(Change, &str); 9] = [
        (|it| it.rate = Rate::from_bps(0), "the rate is 0"),
        (|it| it.buffer = Bytes::new(9_000), "at least 9038 bytes"),
        (|it| it.max_mtu = 100, "1280 to 65535"),
        (|it| it.bind = it.server, "must have a port, and differ"),
        (|it| it.server = ([127, 0, 0, 1], 0).into(), "must have a port"),
        (
            |it| it.algorithm = Some(algorithm("expresspass", &[])),
            "expresspass needs ports that limit credits",
        ),
        (|it| it.algorithm = Some(algorithm("dctcp", &[])), "dctcp needs ECN marks"),
        (|it| it.algorithm = Some(algorithm("swift", &[])), "swift has no switch half"),
        (
            |it| {
                it.algorithm = Some(algorithm("bolt", &[]));
                it.ecn_threshold = Some(Bytes::new(1));
            },
            "bolt has a switch half of its own",
        ),
    ];
    for (change, words) in cases {
        let error = config(change).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
}
