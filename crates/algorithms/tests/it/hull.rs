//! HULL: the phantom queue, the pacer, and the reaction to marks.

use crate::common::{ack, at, us};
use apus_algorithms::build;
use apus_algorithms::hull::{Hull, Pacer, PacerParams, Params, PhantomParams, PhantomQueue};
use apus_cc::{
    Algorithm, AlgorithmFactory, ClassView, CongestionHeader, Ecn, FlowInfo, Pacing, PortView,
    Sender, Settings, SwitchHalf,
};
use apus_units::{Bytes, ClassId, Rate, Time};

/// 10 Gb/s, threshold 10 kB.
const PHANTOM: PhantomParams = PhantomParams { gamma: 0.95, threshold_per_gbps: Bytes::new(1000) };

/// Returns which of `count` packets of 1250 B at a distance of `gap_ns` are marked.
fn marked(count: u64, gap_ns: u64) -> Vec<u64> {
    static CLASSES: [ClassView; 1] = [ClassView { bytes: Bytes::ZERO, weight: 1, priority: 0 }];
    let mut queue = PhantomQueue::new(PHANTOM);
    let is_marked = |n: &u64| {
        let view = PortView {
            now: Time::from_ps(n * gap_ns * 1000),
            link_rate: Rate::from_gbps(10),
            class: ClassId::new(0),
            class_bytes: Bytes::ZERO,
            queue_bytes: Bytes::ZERO,
            class_waiting: Bytes::ZERO,
            sent: Bytes::ZERO,
            classes: &CLASSES,
        };
        let mut header = CongestionHeader { ecn: Ecn::Capable, ..CongestionHeader::default() };
        queue.on_enqueue(&mut header, Bytes::new(1250), &view);
        header.ecn == Ecn::Congested
    };
    (0..count).filter(is_marked).collect()
}

/// At the link's rate, 1250 B per us, the phantom queue gains 5 % of each packet. After packet n it holds 1250
/// B plus n times 62.5 B, which is above 10 000 B from n = 141 upwards. The real queue stays empty.
#[test]
fn hull_3_1_the_phantom_queue_marks_before_the_link_is_full() {
    assert_eq!(marked(200, 1000), (141..200).collect::<Vec<_>>());
}

/// At 94 % of the link's rate the phantom queue never holds more than one packet.
#[test]
fn hull_3_1_below_gamma_nothing_is_marked() {
    assert!(marked(10_000, 1064).is_empty());
}

/// A burst is marked from the packet that exceeds the threshold: 8 packets are 10 000 B.
#[test]
fn hull_3_1_a_burst_is_marked_above_the_threshold() {
    assert_eq!(marked(12, 0), [8, 9, 10, 11]);
}

/// Each class of a port has a separate half, but the phantom queue is that of the port: two classes that share
/// the link's rate are marked like one class. The first packet of the second class is the second packet of the
/// port; the half of that class learns of the first one with it.
#[test]
fn hull_3_1_the_phantom_queue_is_that_of_all_classes() {
    static CLASSES: [ClassView; 2] = [ClassView { bytes: Bytes::ZERO, weight: 1, priority: 0 }; 2];
    let mut halves = [PhantomQueue::new(PHANTOM); 2];
    let is_marked = |n: &u64| {
        let class = (n % 2) as usize;
        let view = PortView {
            now: Time::from_ps(n * 1_000_000),
            link_rate: Rate::from_gbps(10),
            class: ClassId::new(class as u8),
            class_bytes: Bytes::ZERO,
            queue_bytes: Bytes::ZERO,
            class_waiting: Bytes::ZERO,
            sent: Bytes::new(1250 * n),
            classes: &CLASSES,
        };
        let mut header = CongestionHeader { ecn: Ecn::Capable, ..CongestionHeader::default() };
        halves[class].on_enqueue(&mut header, Bytes::new(1250), &view);
        header.ecn == Ecn::Congested
    };
    assert_eq!((0..200).filter(is_marked).collect::<Vec<_>>(), (141..200).collect::<Vec<_>>());
}

/// A class that was silent for a millisecond finds the burst of 90 kB that another class has sent in the last
/// microsecond.
#[test]
fn hull_3_1_a_burst_of_another_class_is_in_the_phantom_queue() {
    static CLASSES: [ClassView; 2] = [ClassView { bytes: Bytes::ZERO, weight: 1, priority: 0 }; 2];
    let mut queue = PhantomQueue::new(PHANTOM);
    for (us, brought, expected) in [(0, 0, 1500.0), (1001, 90_000, 91_500.0)] {
        let view = PortView {
            now: Time::from_ps(us * 1_000_000),
            link_rate: Rate::from_gbps(10),
            class: ClassId::new(0),
            class_bytes: Bytes::ZERO,
            queue_bytes: Bytes::new(brought),
            class_waiting: Bytes::ZERO,
            sent: Bytes::new(if us > 0 { 1500 } else { 0 }),
            classes: &CLASSES,
        };
        queue.on_enqueue(&mut CongestionHeader::default(), Bytes::new(1500), &view);
        assert_eq!(queue.bytes(), expected);
    }
}

const PACER: PacerParams = PacerParams {
    probability: 1.0,
    timeout: apus_units::Span::from_ms(10),
    interval: apus_units::Span::from_us(64),
    eta: 0.125,
    beta: 16.0,
};

/// R <- (1 - eta) * R + eta * M / T + beta * Q every T_r, starting at the line rate.
#[test]
fn hull_4_3_the_pace_follows_the_input() {
    let mut pacer = Pacer::new(Rate::from_gbps(10), 1);
    assert_eq!(pacer.rate(at(0.0)), None);
    pacer.on_mark(&PACER, at(1.0));
    assert_eq!(pacer.rate(at(1.0)), Some(Rate::from_gbps(10)));
    // 8000 B in 64 us are 1 Gb/s: 0.875 * 10 + 0.125 * 1 = 8.875.
    pacer.on_transmit(&PACER, at(20.0), 4000.0, 0.0);
    pacer.on_transmit(&PACER, at(65.0), 4000.0, 0.0);
    assert_eq!(pacer.rate(at(65.0)), Some(Rate::from_bps(8_875_000_000)));
    // 8000 B leave and 8000 B are queued: the input is 2 Gb/s; 8000 B at 16 kb/s each are 0.128
    // Gb/s more.
    pacer.on_transmit(&PACER, at(129.0), 8000.0, 8000.0);
    let by_hand = 0.875 * 8.875e9 + 0.125 * 2e9 + 0.128e9;
    let rate = pacer.rate(at(129.0)).expect("paced").as_bps() as f64;
    assert!((rate - by_hand).abs() < 2.0, "{rate} is not {by_hand}");
    // 10 ms after its last mark the flow is no longer paced.
    assert_eq!(pacer.rate(at(10_001.0)), None);
}

/// A window cut removes the backlog: there is no input, and with eta = 1 the rate falls to the
/// minimum of a packet per timeout, 1000 B in 10 ms.
#[test]
fn hull_4_3_the_pace_is_never_zero() {
    let params = PacerParams { eta: 1.0, ..PACER };
    let mut pacer = Pacer::new(Rate::from_gbps(10), 1);
    pacer.on_mark(&params, at(1.0));
    pacer.on_transmit(&params, at(65.0), 1000.0, 5000.0);
    pacer.on_transmit(&params, at(129.0), 1000.0, 0.0);
    assert_eq!(pacer.rate(at(129.0)), Some(Rate::from_bps(800_000)));
}

/// A mark starts pacing with probability 1/8. Of 4000 flows with one mark each, 500 are paced, and
/// the standard deviation is 21; the tolerance is five of them.
#[test]
fn hull_4_3_one_mark_in_eight_starts_pacing() {
    let params = PacerParams { probability: 0.125, ..PACER };
    let paced = |seed: &u64| {
        let mut pacer = Pacer::new(Rate::from_gbps(10), *seed);
        pacer.on_mark(&params, at(1.0));
        pacer.rate(at(1.0)).is_some()
    };
    let count = (0..4000).filter(paced).count();
    assert!((395..=605).contains(&count), "{count}");
}

#[test]
fn hull_reacts_to_marks_as_dctcp_does() {
    let settings = [("pacing", "false")];
    let mut hull = build("hull", None, &settings).unwrap().sender(&FlowInfo::default());
    let mut dctcp = build("dctcp", None, &[]).unwrap().sender(&FlowInfo::default());
    for n in 0..200 {
        let mut event = ack(100.0 * f64::from(n), 50.0);
        event.now = at(100.0 * f64::from(n));
        event.rtt = us(50.0);
        event.marked_packets = u32::from(n % 7 == 0);
        hull.on_ack(&event);
        dctcp.on_ack(&event);
        assert_eq!(hull.allowance(), dctcp.allowance());
    }
    assert_eq!(hull.allowance().pacing, Pacing::AckClocked);
}

#[test]
fn settings_without_effect_or_sense_are_refused_by_name() {
    let refused = |settings: &[(&str, &str)]| {
        let settings = Settings::read(&<Hull as Algorithm>::INFO, None, settings);
        let params = settings.and_then(|mut settings| Params::from_settings(&mut settings));
        params.unwrap_err().parameter
    };
    assert_eq!(refused(&[("gamma", "1.5")]).as_deref(), Some("gamma"));
    assert_eq!(refused(&[("pacer_eta", "0")]).as_deref(), Some("pacer_eta"));
    let unused = refused(&[("pacing", "false"), ("pacer_timeout", "1ms")]);
    assert_eq!(unused.as_deref(), Some("pacer_timeout"));
}
