//! DCQCN against section 3.1 of its paper; expected values are calculated by hand.

use std::sync::Arc;

use crate::common::{assert_close, at};
use apus_algorithms::dcqcn::switch::{Ramp, RampMarker};
use apus_algorithms::dcqcn::{Dcqcn, NotificationPoint, Params};
use apus_cc::{
    Algorithm, CongestionHeader, DataEvent, Ecn, FlowInfo, Pacing, PortView, Receiver,
    ReceiverControl, SendInfo, Sender, Settings, SwitchHalf,
};
use apus_units::{Bytes, ClassId, PacketNumber, Rate, Span, Time};

/// Returns a flow at 40 Gb/s with packets of 1000 B.
fn dcqcn(settings: &[(&str, &str)]) -> Dcqcn {
    static INFO: apus_cc::AlgorithmInfo = <Dcqcn as Algorithm>::INFO;
    let settings = Settings::read(&INFO, None, settings).unwrap();
    let flow = FlowInfo {
        line_rate: Rate::from_gbps(40),
        packet: Bytes::new(1000),
        ..FlowInfo::default()
    };
    Dcqcn::new(Arc::new(Params::from_settings(&settings).unwrap()), &flow)
}

fn gbps(flow: &Dcqcn) -> (f64, f64) {
    (flow.rate() / 1e9, flow.target_rate() / 1e9)
}

fn send(flow: &mut Dcqcn, packets: u32) {
    for _ in 0..packets {
        let mut header = CongestionHeader::default();
        let (now, seq) = (at(0.0), PacketNumber::new(0));
        flow.on_transmit(&mut header, &SendInfo::new(now, seq));
        assert_eq!(header.ecn, Ecn::Capable);
    }
}

/// Lets the increase timer expire `times` times.
fn tick(flow: &mut Dcqcn, times: u32) {
    for _ in 0..times {
        let due = flow.next_timer().expect("the timer runs");
        flow.on_timer(due);
    }
}

#[test]
fn dcqcn_3_1_starts_at_line_rate_without_a_timer() {
    let flow = dcqcn(&[]);
    assert_eq!(flow.allowance().pacing, Pacing::Rate(Rate::from_gbps(40)));
    assert_eq!(flow.next_timer(), None);
}

#[test]
fn dcqcn_eq_1_a_notification_cuts_by_half_of_alpha() {
    let mut flow = dcqcn(&[]);
    flow.on_notification(at(1_000.0));
    assert_eq!(gbps(&flow), (20.0, 40.0));
    assert_close(flow.alpha(), 1.0);
    flow.on_notification(at(1_050.0));
    assert_eq!(gbps(&flow), (10.0, 20.0));
}

#[test]
fn dcqcn_eq_2_alpha_decays_by_g_per_55_us_without_a_notification() {
    let mut flow = dcqcn(&[]);
    flow.on_notification(at(1_000.0));
    // A little more than 10 * 55 us: ten periods. The cut uses the decayed alpha, which then rises.
    flow.on_notification(at(1_560.0));
    let decayed = (255.0_f64 / 256.0).powi(10);
    assert_close(flow.alpha(), decayed * 255.0 / 256.0 + 1.0 / 256.0);
}

#[test]
fn dcqcn_3_1_fast_recovery_halves_the_distance_five_times() {
    let mut flow = dcqcn(&[]);
    flow.on_notification(at(1_000.0));
    assert_eq!(flow.next_timer(), Some(at(1_055.0)));
    for distance in [10.0, 5.0, 2.5, 1.25, 0.625] {
        tick(&mut flow, 1);
        assert_close(gbps(&flow).0, 40.0 - distance);
        assert_close(gbps(&flow).1, 40.0);
    }
}

#[test]
fn dcqcn_eq_3_and_4_additive_then_hyper_increase() {
    let settings = [("byte_counter", "10kB")];
    let mut flow = dcqcn(&settings);
    // Far below the line rate: four cuts leave 2.5 Gb/s, and the target is 5 Gb/s.
    for i in 0..4 {
        flow.on_notification(at(1_000.0 + 50.0 * f64::from(i)));
    }
    assert_eq!(gbps(&flow), (2.5, 5.0));
    tick(&mut flow, 5);
    assert_close(gbps(&flow).1, 5.0);
    // The sixth increase is by the timer alone: R_T + 40 Mb/s.
    let before = gbps(&flow).0;
    tick(&mut flow, 1);
    assert_close(gbps(&flow).1, 5.04);
    assert_close(gbps(&flow).0, (before + 5.04) / 2.0);
    // Ten packets of 1000 B are one increase by the byte counter. Until both counters exceed F, the increase is
    // additive.
    send(&mut flow, 50);
    assert_close(gbps(&flow).1, 5.04 + 5.0 * 0.04);
    send(&mut flow, 9);
    assert_close(gbps(&flow).1, 5.24);
    // i = min(6, 6) - 5 = 1; after another increase by time (7 and 6) still 1; at 7 and 7: 2.
    send(&mut flow, 1);
    assert_close(gbps(&flow).1, 5.64);
    tick(&mut flow, 1);
    assert_close(gbps(&flow).1, 6.04);
    send(&mut flow, 10);
    assert_close(gbps(&flow).1, 6.84);
    // A notification restarts the counters.
    flow.on_notification(at(10_000.0));
    let target = gbps(&flow).1;
    tick(&mut flow, 5);
    assert_close(gbps(&flow).1, target);
}

#[test]
fn a_recovered_flow_is_at_the_line_and_its_timer_rests() {
    let mut flow = dcqcn(&[]);
    flow.on_notification(at(1_000.0));
    tick(&mut flow, 9);
    assert_eq!(gbps(&flow), (40.0, 40.0));
    assert_eq!(flow.next_timer(), None);
}

#[test]
fn the_rate_has_a_floor() {
    let mut flow = dcqcn(&[]);
    for i in 0..1000 {
        flow.on_notification(at(1_000.0 + 50.0 * f64::from(i)));
    }
    assert_eq!(flow.allowance().pacing, Pacing::Rate(Rate::from_bps(10_000_000)));
}

#[test]
fn dcqcn_fig_6_one_notification_per_interval_the_first_at_once() {
    let mut point = NotificationPoint::new(Span::from_us(50));
    let data = |now: f64, marked| {
        let mut event = DataEvent::new(at(now));
        event.marked = marked;
        event
    };
    assert!(point.on_data(&data(100.0, false)));
    assert_eq!(point.next_control(), Time::MAX);
    point.on_data(&data(101.0, true));
    assert_eq!(point.next_control(), at(101.0));
    assert_eq!(point.poll_control(at(101.0)), Some(ReceiverControl::Notification));
    assert_eq!(point.poll_control(at(101.0)), None);
    // Marks within the next 50 us cause one more notification, at the end of the interval.
    point.on_data(&data(110.0, true));
    point.on_data(&data(120.0, true));
    assert_eq!(point.next_control(), at(151.0));
    assert_eq!(point.poll_control(at(150.0)), None);
    assert_eq!(point.poll_control(at(151.0)), Some(ReceiverControl::Notification));
    // No notification in the interval after; the next mark is notified at once.
    point.on_data(&data(500.0, true));
    assert_eq!(point.next_control(), at(500.0));
}

const RAMP: Ramp = Ramp { k_min: Bytes::new(5_000), k_max: Bytes::new(205_000), p_max: 0.01 };

#[test]
fn dcqcn_fig_5_the_probability_of_a_mark() {
    for (queue, probability) in
        [(0, 0.0), (5_000, 0.0), (105_000, 0.005), (205_000, 0.01), (205_001, 1.0)]
    {
        assert_close(RAMP.probability(Bytes::new(queue)), probability);
    }
    let step = Ramp { k_min: Bytes::new(7), k_max: Bytes::new(7), p_max: 0.5 };
    assert_close(step.probability(Bytes::new(7)), 0.0);
    assert_close(step.probability(Bytes::new(8)), 1.0);
}

#[test]
fn dcqcn_fig_5_marks_have_the_expected_frequency() {
    let mut marker = RampMarker::new(Ramp { p_max: 0.4, ..RAMP }, 7);
    let mut marks = |ecn: Ecn, queue: u64| {
        let view = PortView {
            now: at(0.0),
            link_rate: Rate::from_gbps(40),
            class: ClassId::new(0),
            class_bytes: Bytes::new(queue),
            queue_bytes: Bytes::new(queue),
            class_waiting: Bytes::new(queue),
            sent: Bytes::ZERO,
            classes: &[],
        };
        let mark = |_: &u32| {
            let mut header = CongestionHeader { ecn, ..CongestionHeader::default() };
            marker.on_enqueue(&mut header, Bytes::new(1000), &view);
            header.ecn == Ecn::Congested
        };
        (0..10_000_u32).filter(mark).count()
    };
    assert_eq!(marks(Ecn::NotCapable, 300_000), 0);
    assert_eq!(marks(Ecn::Capable, 5_000), 0);
    assert_eq!(marks(Ecn::Capable, 300_000), 10_000);
    // 10 000 draws at 0.2: a standard deviation of 40.
    let half = marks(Ecn::Capable, 105_000);
    assert!((1_800..=2_200).contains(&half), "{half}");
}
