//! DX against section 4 of its paper; expected values are calculated by hand.

use crate::common;
use crate::common::assert_close;
use apus_algorithms::{BuiltInSender, build};
use apus_cc::{AlgorithmFactory, FlowInfo, Sender};
use apus_units::PacketNumber;

/// Returns a flow in congestion avoidance, with a window of 10 packets.
fn dx(settings: &[(&str, &str)]) -> BuiltInSender {
    let mut all = vec![("slow_start", "false"), ("headroom", "0us")];
    all.retain(|(name, _)| settings.iter().all(|(set, _)| set != name));
    all.extend_from_slice(settings);
    build("dx", None, &all).unwrap().sender(&FlowInfo::default())
}

/// Acknowledges packet `seq`, with a fabric delay in microseconds, while `next` is to be sent.
fn ack(flow: &mut BuiltInSender, delay: f64, seq: u64, next: u64) {
    let mut event = common::ack(1_000.0, delay);
    (event.acked_seq, event.next_seq) = (PacketNumber::new(seq), PacketNumber::new(next));
    flow.on_ack(&event);
}

fn cwnd(flow: &BuiltInSender) -> f64 {
    flow.allowance().window
}

/// The first acknowledgement ends the first window; it sets R to 10 us and adds 1.
fn started(settings: &[(&str, &str)]) -> BuiltInSender {
    let mut flow = dx(settings);
    ack(&mut flow, 10.0, 0, 10);
    flow
}

fn end_window(flow: &mut BuiltInSender, delays: &[f64]) {
    for (index, delay) in delays.iter().enumerate() {
        let last = index + 1 == delays.len();
        ack(flow, *delay, if last { 10 } else { 1 }, 20);
    }
}

#[test]
fn dx_4_a_window_without_queueing_adds_one_packet() {
    let mut flow = started(&[]);
    assert_close(cwnd(&flow), 11.0);
    end_window(&mut flow, &[10.0, 10.0, 10.0]);
    assert_close(cwnd(&flow), 12.0);
}

#[test]
fn dx_4_the_average_queueing_delay_over_v_is_subtracted() {
    // Q = (2 + 4 + 3) / 3 = 3 us; V = R W / (W - 1) = 10 * 11 / 10 = 11 us; 11 * (1 - 3 / 11) = 8.
    let mut flow = started(&[]);
    end_window(&mut flow, &[12.0, 14.0, 13.0]);
    assert_close(cwnd(&flow), 8.0);
}

/// A clock that was set back yields one delay of zero. That is not the RTT without queueing: later delays of 10
/// us contain no queueing.
#[test]
fn a_delay_of_zero_does_not_keep_the_window_small() {
    let mut flow = started(&[]);
    end_window(&mut flow, &[0.0, 10.0, 10.0]);
    ack(&mut flow, 10.0, 20, 30);
    assert_close(cwnd(&flow), 13.0);
}

#[test]
fn dx_4_equal_flows_drain_the_queue_of_one_increase() {
    // N flows fill the link with W - 1 each: N (W - 1) = C R. With W each the queue is N / C, so
    // Q = R / (W - 1), and the window falls back to W - 1: Q / V = 1 / W.
    let mut flow = started(&[]);
    let q = 10.0 / 10.0;
    end_window(&mut flow, &[10.0 + q; 11]);
    assert_close(cwnd(&flow), 10.0);
}

#[test]
fn dx_4_the_window_keeps_its_bounds() {
    // A delay beyond V leaves the smallest window; at one packet V is infinite.
    let mut flow = started(&[]);
    end_window(&mut flow, &[1_000.0]);
    assert_close(cwnd(&flow), 1.0);
    let mut flow = started(&[("initial_cwnd", "8"), ("max_cwnd", "8")]);
    end_window(&mut flow, &[10.0]);
    assert_close(cwnd(&flow), 8.0);
}

#[test]
fn delays_within_the_headroom_count_as_none() {
    let mut flow = started(&[("headroom", "2us")]);
    end_window(&mut flow, &[11.9]);
    assert_close(cwnd(&flow), 12.0);
}

#[test]
fn slow_start_doubles_until_something_queues() {
    let mut flow = dx(&[("slow_start", "true")]);
    for seq in 0..10 {
        ack(&mut flow, 10.0, seq, 10 + seq);
    }
    assert_close(cwnd(&flow), 20.0);
    // Packet 10 ends the window of packets 1 to 10. The packet still counts, so the window grows to 21; then
    // the window falls by Q = 1 us / 10 over V = 10 us * 21 / 20.
    ack(&mut flow, 11.0, 10, 30);
    assert_close(cwnd(&flow), 21.0 * (1.0 - 0.1 / 10.5));
    ack(&mut flow, 10.0, 15, 30);
    assert_close(cwnd(&flow), 20.8);
}

#[test]
fn a_loss_halves_once_per_window_and_a_timeout_starts_over() {
    let mut flow = started(&[]);
    for seq in [3, 5, 9] {
        let mut event = common::loss(1_000.0);
        (event.lost_seq, event.next_seq) = (PacketNumber::new(seq), PacketNumber::new(12));
        flow.on_loss(&event);
    }
    assert_close(cwnd(&flow), 5.5);
    flow.on_timeout(&common::timeout(2_000.0));
    assert_close(cwnd(&flow), 1.0);
}
