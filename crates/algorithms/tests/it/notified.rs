//! Reactions to queues that switches report (Bolt §2.1.1).

use apus_algorithms::bolt::BoltFields;
use apus_algorithms::{BuiltInSender, build};
use apus_cc::{
    AlgorithmFactory, CongestionHeader, FlowInfo, SendInfo, Sender, SignalEvent, SwitchInfo,
};
use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

fn sender(settings: &[(&str, &str)]) -> BuiltInSender {
    build("notified", None, settings).expect("sound").sender(&FlowInfo::default())
}

fn us(n: u64) -> Time {
    Time::ZERO + Span::from_us(n)
}

fn tell(sender: &mut BuiltInSender, now: Time, seq: u64, queue: u64) {
    sender.on_signal(&{
        let mut event = SignalEvent::new(now, Span::ZERO, PacketNumber::new(seq));
        event.queue = Bytes::new(queue);
        event.link_rate = Rate::from_gbps(100);
        event.in_flight = 66;
        event
    });
}

fn window(sender: &BuiltInSender) -> f64 {
    sender.allowance().window
}

/// 125 kB at 100 Gb/s are 10 us: a total of 18 us, far above a target of 6 us.
const LONG: u64 = 125_000;

#[test]
fn a_reported_queue_takes_effect_after_the_delay() {
    let mut late = sender(&[("delay", "4us")]);
    let before = window(&late);
    tell(&mut late, us(100), 0, LONG);
    assert_eq!(window(&late), before);
    assert_eq!(late.next_timer(), Some(us(104)));
    late.on_timer(us(104));
    assert!(window(&late) < before, "Swift's decrease");
    assert_eq!(late.next_timer(), None);

    let mut at_once = sender(&[]);
    tell(&mut at_once, us(100), 0, LONG);
    assert_eq!(window(&at_once), window(&late), "the same decrease");
}

#[test]
fn from_the_departure_on_it_takes_the_queue_longer() {
    let mut egress = sender(&[("delay", "1us"), ("point", "departure")]);
    tell(&mut egress, us(100), 0, LONG);
    assert_eq!(egress.next_timer(), Some(us(111)));
}

#[test]
fn without_a_queue_the_window_grows_as_swifts_does() {
    let mut one = sender(&[("base_rtt", "5us")]);
    let before = window(&one);
    tell(&mut one, us(100), 0, 0);
    // ai / cwnd, acked packets 1 (Swift Alg. 1 l. 9).
    assert!((window(&one) - (before + 1.0 / before)).abs() < 1e-9);
}

#[test]
fn bolt_fig_10_the_ideal_divides_its_window_by_the_load_once_per_rtt() {
    let mut ideal = sender(&[("reaction", "ideal"), ("initial_cwnd", "64")]);
    let mut header = CongestionHeader::default();
    let info = |seq| {
        let mut event = SendInfo::new(us(0), PacketNumber::new(seq));
        event.pending = Bytes::new(1_000_000);
        event
    };
    ideal.on_transmit(&mut header, &info(63));
    assert!(BoltFields::of(&header.fields).is_some());
    // A packet of 1250 B every 100 ns is the link's rate. The queue grows by the same amount, so the load is
    // twice the rate.
    for n in 0..9 {
        tell(&mut ideal, Time::ZERO + Span::from_ns(100 * n), n, 1_250 * n);
    }
    assert!((window(&ideal) - 32.0).abs() < 1e-9, "{}", window(&ideal));
    // Reports about packets that left before the cut are ignored.
    for n in 9..64 {
        tell(&mut ideal, Time::ZERO + Span::from_ns(100 * n), n, 1_250 * n);
    }
    assert!((window(&ideal) - 32.0).abs() < 1e-9);
}

#[test]
fn switches_report_every_data_packet_and_no_other() {
    use apus_cc::{ClassView, PortView, SwitchHalf, Verdict};
    use apus_units::ClassId;
    let config = build("notified", None, &[]).expect("sound");
    let mut half = config.switch(&SwitchInfo { packet: Bytes::new(1_500), seed: 0, nic: false });
    let classes = [ClassView::default()];
    let view = PortView {
        now: us(1),
        link_rate: Rate::from_gbps(100),
        class: ClassId::new(0),
        class_bytes: Bytes::new(1_500),
        queue_bytes: Bytes::new(1_500),
        class_waiting: Bytes::ZERO,
        sent: Bytes::ZERO,
        classes: &classes,
    };
    let mut other = CongestionHeader::default();
    assert_eq!(half.on_enqueue(&mut other, Bytes::new(84), &view), Verdict::Forward);
    let mut header = CongestionHeader::default();
    let info = SendInfo::new(us(1), PacketNumber::new(0));
    sender(&[]).on_transmit(&mut header, &info);
    let verdict = half.on_enqueue(&mut header, Bytes::new(1_500), &view);
    assert!(matches!(verdict, Verdict::Signal(signal) if signal.queue == Bytes::ZERO));
}
