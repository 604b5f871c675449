//! Bolt's sender half against Algorithm 2, §3.2 and §4.2.

use crate::common;
use crate::common::{assert_close, at, us};
use apus_algorithms::bolt::{BoltFields, GrantCounter, grants};
use apus_algorithms::{BuiltInSender, build};
use apus_cc::{
    AlgorithmFactory, CongestionHeader, DataEvent, Fields, FlowInfo, Pacing, Receiver,
    ReplaySender, SendInfo, Sender, SignalEvent,
};
use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

/// Packets of 1500 wire bytes, 1400 of them payload, on a link of 100 Gb/s.
fn bolt(settings: &[(&str, &str)]) -> BuiltInSender {
    let info = FlowInfo {
        line_rate: Rate::from_gbps(100),
        payload: Bytes::new(1400),
        packet: Bytes::new(1500),
        ..FlowInfo::default()
    };
    build("bolt", None, settings).unwrap().sender(&info)
}

fn cwnd(flow: &BuiltInSender) -> f64 {
    flow.allowance().window
}

/// An acknowledgement with a full window in flight.
fn ack(flow: &mut BuiltInSender, granted: u32, seq: u64, next: u64) {
    let mut event = common::ack(1000.0, 8.0);
    event.fields = grants(granted);
    event.in_flight = 1000;
    (event.acked_seq, event.next_seq) = (PacketNumber::new(seq), PacketNumber::new(next));
    flow.on_ack(&event);
}

/// An SRC at `now` us, `rtt` us after its packet left: `packets` queued at a link of 100 Gb/s.
fn src(flow: &mut BuiltInSender, now: f64, rtt: f64, packets: u64) {
    flow.on_signal(&{
        let mut event = SignalEvent::new(at(now), us(rtt), PacketNumber::new(0));
        event.queue = Bytes::new(packets * 1500);
        event.link_rate = Rate::from_gbps(100);
        event.in_flight = 10;
        event
    });
}

fn transmit(flow: &mut BuiltInSender, now: f64, pending: u64, in_flight: u32) -> BoltFields {
    let mut header = CongestionHeader::default();
    let info = {
        let mut event = SendInfo::new(at(now), PacketNumber::new(0));
        event.pending = Bytes::new(pending);
        event.payload = Bytes::new(1400);
        event.in_flight = in_flight;
        event
    };
    flow.on_transmit(&mut header, &info);
    BoltFields::of(&header.fields).expect("Bolt's fields")
}

#[test]
fn alg_2_l_10_and_11_each_inc_adds_a_packet() {
    let mut flow = bolt(&[("initial_cwnd", "20")]);
    ack(&mut flow, 0, 0, 20); // the first ACK ends the first RTT: l. 12-14
    assert_close(cwnd(&flow), 21.0);
    ack(&mut flow, 1, 1, 21);
    assert_close(cwnd(&flow), 22.0);
    ack(&mut flow, 1, 2, 22);
    assert_close(cwnd(&flow), 22.0);
    ack(&mut flow, 2, 3, 23);
    assert_close(cwnd(&flow), 23.0);
}

#[test]
fn alg_2_l_12_to_14_one_packet_per_rtt_by_sequence_number() {
    let mut flow = bolt(&[("initial_cwnd", "20")]);
    ack(&mut flow, 0, 0, 20);
    for seq in 1..20 {
        ack(&mut flow, 0, seq, seq + 20);
    }
    assert_close(cwnd(&flow), 21.0);
    ack(&mut flow, 0, 20, 41);
    assert_close(cwnd(&flow), 22.0);
}

#[test]
fn alg_2_l_2_to_7_decrements_are_spread_over_rtt_src() {
    // Before a sample the flow's rate is that of its link: the reaction factor is 1.
    let mut flow = bolt(&[("initial_cwnd", "20")]);
    src(&mut flow, 10.0, 4.0, 4);
    assert_close(cwnd(&flow), 19.0);
    // target_q = 4, rtt_src / target_q = 1 us.
    src(&mut flow, 10.999, 4.0, 4);
    assert_close(cwnd(&flow), 19.0);
    src(&mut flow, 11.0, 4.0, 4);
    assert_close(cwnd(&flow), 18.0);
    // A larger queue allows more decrements: 8 packets, one every 0.5 us.
    src(&mut flow, 11.5, 4.0, 8);
    assert_close(cwnd(&flow), 17.0);
}

#[test]
fn alg_2_l_3_a_flow_drains_its_part_only() {
    let mut flow = bolt(&[("initial_cwnd", "20"), ("ai", "0")]);
    ack(&mut flow, 0, 0, 20);
    // 20 packets of 1500 B in 8 us are 30 Gb/s: the factor is 0.3, of 10 packets 3.
    src(&mut flow, 100.0, 6.0, 10);
    assert_close(cwnd(&flow), 19.0);
    // 19 packets in 8 us: 28.5 Gb/s, 2.85 packets, every 2.105 us.
    src(&mut flow, 102.1, 6.0, 10);
    assert_close(cwnd(&flow), 19.0);
    src(&mut flow, 102.2, 6.0, 10);
    assert_close(cwnd(&flow), 18.0);
}

#[test]
fn a_window_of_one_packet_is_held_or_halved_and_paced() {
    let mut held = bolt(&[("initial_cwnd", "1.5")]);
    src(&mut held, 10.0, 4.0, 4);
    src(&mut held, 20.0, 4.0, 4);
    assert_close(cwnd(&held), 1.0);
    let mut halved =
        bolt(&[("initial_cwnd", "1"), ("below_one", "halve"), ("min_cwnd", "0.1"), ("ai", "0")]);
    ack(&mut halved, 0, 0, 1);
    src(&mut halved, 100.0, 4.0, 400);
    assert_close(cwnd(&halved), 0.5);
    // Swift §3.4: RTT / cwnd.
    assert_eq!(halved.allowance().pacing, Pacing::Delay(us(16.0)));
}

/// Bolt ns-3 (`HandleBts`): a window above one packet loses a packet and keeps the fraction; every SRC halves a
/// window of at most one packet.
#[test]
fn with_halving_a_fraction_of_a_packet_is_left_and_every_src_halves_it() {
    let mut flow = bolt(&[
        ("initial_cwnd", "2.5"),
        ("below_one", "halve"),
        ("min_cwnd", "0.2"),
        ("ai", "0"),
        ("pacing", "rest"),
    ]);
    src(&mut flow, 10.0, 4.0, 400);
    assert_close(cwnd(&flow), 1.5);
    src(&mut flow, 20.0, 4.0, 400);
    assert_close(cwnd(&flow), 0.5);
    // A second SRC at the same time: by Alg. 2 l. 5 it would not be due.
    src(&mut flow, 20.0, 4.0, 4);
    assert_close(cwnd(&flow), 0.25);
    src(&mut flow, 20.0, 4.0, 4);
    assert_close(cwnd(&flow), 0.2);
}

/// Alg. 2 l. 3 does not define `flow.rate`. 20 packets of 1500 B in 1 us are 240 Gb/s. Limited by the line, the
/// factor is 1, and 4 packets are due in steps of rtt_src / 4 = 1 us. By the window alone, the factor is 2.4.
#[test]
fn alg_2_l_3_the_rate_of_a_flow_is_at_most_its_line_or_window_over_rtt() {
    let second_decrease = |rate: &str, after: f64| {
        let mut flow = bolt(&[("initial_cwnd", "20"), ("ai", "0"), ("rate", rate)]);
        let mut event = common::ack(1.0, 1.0);
        event.in_flight = 1000;
        flow.on_ack(&event);
        src(&mut flow, 100.0, 4.0, 4);
        src(&mut flow, 100.0 + after, 4.0, 4);
        20.0 - cwnd(&flow)
    };
    assert_close(second_decrease("line", 0.99), 1.0);
    assert_close(second_decrease("line", 1.0), 2.0);
    // After the first decrease the window is 19 packets, 228 Gb/s, and a step 0.4386 us.
    assert_close(second_decrease("window", 0.43), 1.0);
    assert_close(second_decrease("window", 0.44), 2.0);
}

#[test]
fn section_4_2_first_until_a_window_of_bytes_is_sent_last_from_a_window_before_the_end() {
    let mut flow = bolt(&[("initial_cwnd", "2")]);
    let first = transmit(&mut flow, 1.0, 100_000, 0);
    assert!(first.has(BoltFields::FIRST) && !first.has(BoltFields::LAST));
    assert!(first.has(BoltFields::INC) && !first.has(BoltFields::DEC));
    assert_eq!(first.sent(), 1000);
    assert!(transmit(&mut flow, 1.1, 100_000, 1).has(BoltFields::FIRST));
    assert!(!transmit(&mut flow, 1.2, 2_800, 2).has(BoltFields::FIRST));
    assert!(!transmit(&mut flow, 1.3, 2_800, 2).has(BoltFields::LAST));
    assert!(transmit(&mut flow, 1.4, 2_799, 2).has(BoltFields::LAST));
}

/// A window of 2.5 packets. By §4.2 a packet carries LAST if less than the window remains after it: at most two
/// packets. By Bolt ns-3 a packet carries LAST if at most the window remains with it: at most one packet after
/// it.
#[test]
fn last_counts_the_data_after_the_packet_or_with_it() {
    let marked = |last| {
        let mut flow = bolt(&[("initial_cwnd", "2.5"), ("last", last)]);
        let mut left = |packets: u64| transmit(&mut flow, 1.0, packets * 1400, 1);
        [4, 3, 2, 1, 0].map(|packets| left(packets).has(BoltFields::LAST))
    };
    assert_eq!(marked("after"), [false, false, true, true, true]);
    assert_eq!(marked("with"), [false, false, false, true, true]);
}

/// Messages of 64 B: the first window of 2 packets of 1400 B covers 43 messages with 2752 B and one more.
/// Requests of reads have no bytes.
#[test]
fn section_4_2_first_counts_bytes_and_not_packets() {
    let first_after = |payload: u64| {
        let mut flow = bolt(&[("initial_cwnd", "2")]);
        let mut is_first = || {
            let mut header = CongestionHeader::default();
            let mut info = SendInfo::new(at(1.0), PacketNumber::new(0));
            (info.payload, info.in_flight) = (Bytes::new(payload), 1);
            flow.on_transmit(&mut header, &info);
            BoltFields::of(&header.fields).expect("Bolt's fields").has(BoltFields::FIRST)
        };
        (0..1000).take_while(|_| is_first()).count()
    };
    assert_eq!([1400, 64, 0].map(first_after), [2, 44, 1000]);
}

#[test]
fn section_4_2_data_after_an_idle_rtt_is_a_first_window_again() {
    let mut flow = bolt(&[("initial_cwnd", "2"), ("ai", "0")]);
    for n in 0..3 {
        transmit(&mut flow, 1.0, 100_000, n);
    }
    ack(&mut flow, 0, 2, 3);
    assert!(!transmit(&mut flow, 2.0, 100_000, 1).has(BoltFields::FIRST));
    assert!(!transmit(&mut flow, 9.0, 100_000, 0).has(BoltFields::FIRST), "idle for 7 of 8 us");
    assert!(transmit(&mut flow, 18.0, 100_000, 0).has(BoltFields::FIRST));
}

#[test]
fn t_data_tx_wraps_after_2_to_the_32_nanoseconds() {
    let mut flow = bolt(&[]);
    let mut header = CongestionHeader::default();
    let now = Time::ZERO + Span::from_ns((1 << 32) + 7);
    let info = SendInfo::new(now, PacketNumber::new(0));
    flow.on_transmit(&mut header, &info);
    let fields = BoltFields::of(&header.fields).expect("Bolt's fields");
    assert_eq!(fields.sent(), 7);
}

#[test]
fn section_3_1_losses_cut_once_per_rtt_as_in_swift() {
    let mut flow = bolt(&[("initial_cwnd", "20")]);
    let mut event = common::loss(10.0);
    (event.lost_seq, event.next_seq) = (PacketNumber::new(5), PacketNumber::new(20));
    flow.on_loss(&event);
    assert_close(cwnd(&flow), 10.0);
    event.lost_seq = PacketNumber::new(19);
    flow.on_loss(&event);
    assert_close(cwnd(&flow), 10.0);
    event.lost_seq = PacketNumber::new(20);
    flow.on_loss(&event);
    assert_close(cwnd(&flow), 5.0);
}

#[test]
fn section_6_the_smaller_window_applies_with_swift_in_parallel() {
    let fallback = [("initial_cwnd", "20"), ("fallback", "swift"), ("fallback_fs_range", "0us")];
    let mut flow = bolt(&fallback);
    // Far above Swift's target of 25 us: Swift's window halves (max_mdf), and Bolt gets no signal.
    let mut event = common::ack(1000.0, 1000.0);
    event.in_flight = 1000;
    flow.on_ack(&event);
    assert_close(cwnd(&flow), 10.0);
    for _ in 0..15 {
        src(&mut flow, 3000.0, 4.0, 1000);
        src(&mut flow, 9000.0, 4.0, 1000);
    }
    assert!(cwnd(&flow) < 20.0);
}

#[test]
fn the_window_grows_only_while_it_limits_the_flow() {
    let mut flow = bolt(&[("initial_cwnd", "20")]);
    let mut event = common::ack(1000.0, 8.0);
    event.in_flight = 10;
    event.fields = grants(1);
    flow.on_ack(&event);
    assert_close(cwnd(&flow), 20.0);
}

#[test]
fn the_receiver_counts_the_packets_that_kept_inc() {
    let mut receiver = GrantCounter::default();
    assert_eq!(receiver.echo(), Fields::NONE);
    for flags in [BoltFields::INC, 0, BoltFields::INC | BoltFields::LAST, BoltFields::DEC] {
        let mut event = DataEvent::new(Time::ZERO);
        event.fields = BoltFields::new(flags, 0).fields();
        assert!(receiver.on_data(&event));
        // A copy of the packet does not count.
        event.is_new = false;
        assert!(receiver.on_data(&event));
    }
    assert_eq!(receiver.echo(), grants(2));
}

#[test]
fn a_forged_count_moves_the_window_by_no_more_than_was_acknowledged() {
    let mut flow = bolt(&[("initial_cwnd", "20"), ("ai", "0")]);
    ack(&mut flow, 1_000_000, 0, 20);
    assert_close(cwnd(&flow), 21.0);
}

#[test]
fn an_option_paces_every_window_after_the_first_rtt() {
    let mut flow = bolt(&[("initial_cwnd", "20"), ("pacing", "always"), ("ai", "0")]);
    assert_eq!(flow.allowance().pacing, Pacing::AckClocked);
    ack(&mut flow, 0, 0, 20);
    // An RTT of 8 us over 20 packets.
    assert_eq!(flow.allowance().pacing, Pacing::Delay(us(0.4)));
}

/// Bolt ns-3: a window of 12.5 packets does not admit a packet for its half. One more packet leaves RTT/cwnd
/// later; before the first RTT sample it leaves at once.
#[test]
fn profile_code_paces_the_rest_of_a_window() {
    use apus_cc::Pacing;
    let config = build("bolt", Some("code"), &[("initial_cwnd", "12.5")]).expect("sound");
    let mut flow = config.sender(&FlowInfo::default());
    assert_eq!(flow.allowance().pacing, Pacing::Own { gap: Span::ZERO }, "no RTT yet");
    flow.set_latest_rtt(Span::from_us(5));
    assert_eq!(flow.allowance().pacing, Pacing::Own { gap: Span::from_ns(400) });
    assert_eq!(flow.allowance().packets(), 12);
}

#[test]
fn app_b_2_a_favoured_flow_marks_every_packet() {
    let mut flow = bolt(&[("favoured", "true"), ("src_probability", "0.5")]);
    assert!(transmit(&mut flow, 1.0, 100_000, 0).has(BoltFields::FAVOURED));
    assert!(!transmit(&mut bolt(&[]), 1.0, 100_000, 0).has(BoltFields::FAVOURED));
    let error = build("bolt", None, &[("favoured", "true")]).unwrap_err().to_string();
    assert!(error.contains("favoured") && error.contains("src_probability"), "{error}");
}

/// §6 and Alg. 2 l. 3: with Swift in parallel, `flow.rate` is that of the window in force.
#[test]
fn section_6_the_rate_of_a_flow_is_that_of_the_smaller_window() {
    let mut alone = bolt(&[("initial_cwnd", "64"), ("ai", "0")]);
    let mut both = bolt(&[("initial_cwnd", "64"), ("ai", "0"), ("fallback", "swift")]);
    for flow in [&mut alone, &mut both] {
        // An RTT of 1 ms is far above Swift's target: one cut, by half at most (Swift Alg. 1 l. 13-14).
        let mut event = common::ack(1000.0, 1000.0);
        event.in_flight = 10;
        flow.on_ack(&event);
        src(flow, 2000.0, 4.0, 1000);
    }
    assert_close(cwnd(&alone), 63.0);
    let swift = cwnd(&both);
    assert!((32.0..=33.0).contains(&swift), "{swift}");
    // 64 packets of 1500 B per ms are 0.768 Gb/s, 0.00768 of the link, and half of it with Swift. The next SRC,
    // with 100 packets queued, takes effect after rtt_src / target_q: 4 us / 0.768 = 5.2 us alone, 10.4 us with
    // Swift.
    for (after, heeded) in [(4.0, [false, false]), (7.0, [true, false]), (20.0, [true, true])] {
        let mut flows = [alone.clone(), both.clone()];
        for (flow, heeded) in flows.iter_mut().zip(heeded) {
            let before = flow.clone();
            src(flow, 2000.0 + after, 4.0, 100);
            let changed = format!("{flow:?}") != format!("{before:?}");
            assert_eq!(changed, heeded, "after {after} us");
        }
    }
}
