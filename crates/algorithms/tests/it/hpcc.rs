//! HPCC's sender against Algorithm 1 of its paper; expected values are calculated by hand.

use crate::common;
use crate::common::{assert_close, at};
use apus_algorithms::{BuiltInSender, build};
use apus_cc::{AlgorithmFactory, FlowInfo, HopTelemetry, Pacing, Sender, Telemetry};
use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

/// T = 8 us at 100 Gb/s: the first window is 100 000 bytes, 100 packets of 1000.
fn hpcc(settings: &[(&str, &str)]) -> BuiltInSender {
    let info = FlowInfo { packet: Bytes::new(1000), ..FlowInfo::default() };
    let mut all = vec![("base_rtt", "8us"), ("additive_rate", "1Gbps")];
    all.extend_from_slice(settings);
    build("hpcc", None, &all).unwrap().sender(&info)
}

/// Telemetry of a hop at `now` us that had sent `sent` bytes and had `queue` bytes queued.
fn hop(now: f64, sent: u64, queue: u64) -> Telemetry {
    let mut telemetry = Telemetry::default();
    telemetry.push(
        HopTelemetry {
            at: at(now),
            sent: Bytes::new(sent),
            queue: Bytes::new(queue),
            link_rate: Rate::from_gbps(100),
        },
        1,
    );
    telemetry
}

fn ack(flow: &mut BuiltInSender, telemetry: &Telemetry, seq: u64, next: u64) {
    let mut event = common::ack(1000.0, 8.0);
    event.telemetry = Some(telemetry);
    (event.acked_seq, event.next_seq) = (PacketNumber::new(seq), PacketNumber::new(next));
    flow.on_ack(&event);
}

#[test]
fn alg_1_the_first_window_is_one_bdp_and_the_pace_fills_the_link() {
    let allowance = hpcc(&[]).allowance();
    assert_close(allowance.window, 100.0);
    assert_eq!(allowance.pacing, Pacing::Rate(Rate::from_gbps(100)));
}

#[test]
fn alg_1_l_1_to_9_a_full_link_with_a_queue_divides_the_window() {
    let mut flow = hpcc(&[]);
    ack(&mut flow, &hop(100.0, 0, 50_000), 0, 100);
    assert_close(flow.allowance().window, 100.0);
    // 8 us on: 100 000 bytes sent is the full rate, and the smaller queue, 20 000 B, is 0.2 BDP.
    // tau = T, so U = u = 1.2; W = 100 000 / (1.2 / 0.95) + 1000 (1 Gb/s in 8 us).
    ack(&mut flow, &hop(108.0, 100_000, 20_000), 100, 150);
    assert_close(flow.allowance().window, (100_000.0 * 0.95 / 1.2 + 1000.0) / 1000.0);
}

#[test]
fn alg_1_l_8_a_shorter_interval_weighs_less() {
    let mut flow = hpcc(&[]);
    ack(&mut flow, &hop(100.0, 0, 0), 0, 100);
    // After 2 us, the full rate and 0.8 BDP queued in both records: u = 1.8, U = 0.75 * 1 + 0.25 * 1.8 = 1.2.
    let waiting = hop(102.0, 25_000, 80_000);
    let mut before = hpcc(&[]);
    ack(&mut before, &hop(100.0, 0, 80_000), 0, 100);
    ack(&mut before, &waiting, 100, 150);
    assert_close(before.allowance().window, 95_000.0 / 1.2 / 1000.0 + 1.0);
    // min(qlen): the same record after an empty queue counts the rate alone, U = 1.
    ack(&mut flow, &waiting, 100, 150);
    assert_close(flow.allowance().window, 96.0);
}

#[test]
fn alg_1_l_10_to_20_within_an_rtt_the_window_follows_the_reference() {
    let mut flow = hpcc(&[]);
    ack(&mut flow, &hop(100.0, 0, 20_000), 0, 100);
    ack(&mut flow, &hop(108.0, 100_000, 20_000), 100, 150);
    let reference = flow.allowance().window;
    // Packet 120 left before the reference was set: W moves from Wc, Wc stays.
    ack(&mut flow, &hop(116.0, 200_000, 20_000), 120, 160);
    let first = flow.allowance().window;
    assert_close(first, reference * 0.95 / 1.2 + 1.0);
    ack(&mut flow, &hop(124.0, 300_000, 20_000), 130, 170);
    assert_close(flow.allowance().window, first);
}

#[test]
fn alg_1_l_14_to_18_below_eta_it_adds_for_max_stage_rtts_and_then_multiplies() {
    let mut flow = hpcc(&[("max_stage", "1")]);
    ack(&mut flow, &hop(100.0, 0, 0), 0, 100);
    // Half the rate: after 8 us U = 0.5. First W_AI alone...
    ack(&mut flow, &hop(108.0, 200_000, 0), 100, 200); // U = 2: 100 -> 47.5 + 1
    assert_close(flow.allowance().window, 48.5);
    ack(&mut flow, &hop(116.0, 250_000, 0), 200, 300);
    assert_close(flow.allowance().window, 49.5);
    // ... then by eta / U.
    ack(&mut flow, &hop(124.0, 300_000, 0), 300, 400);
    assert_close(flow.allowance().window, 49.5 * 0.95 / 0.5 + 1.0);
}

#[test]
fn the_busiest_link_decides() {
    let two = |now: f64, first: u64, second: u64| {
        let mut telemetry = hop(now, first, 0);
        telemetry.push(hop(now, second, 0).hops()[0], 2);
        telemetry
    };
    let mut flow = hpcc(&[]);
    ack(&mut flow, &two(100.0, 0, 0), 0, 100);
    ack(&mut flow, &two(108.0, 50_000, 200_000), 100, 200);
    assert_close(flow.allowance().window, 48.5);
    // Another path: records cannot be compared.
    ack(&mut flow, &hop(116.0, 9_000_000, 0), 200, 300);
    assert_close(flow.allowance().window, 48.5);
}

/// On the wire a record's time wraps after 2^32 ns and its count after 2^40 bytes.
#[test]
fn wrapped_records_are_later_and_overtaken_ones_are_not() {
    let note = |ns, sent| HopTelemetry {
        at: Time::ZERO + Span::from_ns(ns),
        sent: Bytes::new(sent),
        ..HopTelemetry::default()
    };
    let late = note((1 << 32) - 1_000, (1 << 40) - 500);
    let wrapped = note(2_000, 700);
    assert_eq!(wrapped.elapsed_since(&late), Some(Span::from_us(3)));
    assert_eq!(wrapped.sent_since(&late), Bytes::new(1_200));
    assert_eq!(late.elapsed_since(&wrapped), Some(Span::from_ns((1 << 32) - 3_000)), "in order");
    let (old, new) = (note(1_000, 0), note(1_500, 9_000));
    assert_eq!(new.elapsed_since(&old), Some(Span::from_ns(500)));
    assert_eq!(new.sent_since(&old), Bytes::new(9_000));
    assert_eq!(old.elapsed_since(&new), None, "overtaken");
    assert_eq!(old.elapsed_since(&old), None);
}

/// HPCC §4.1: on another path of equal length, the records are not compared.
#[test]
fn records_of_another_path_are_discarded() {
    let mut flow = hpcc(&[]);
    ack(&mut flow, &hop(100.0, 0, 50_000), 0, 100);
    let mut elsewhere = Telemetry::default();
    elsewhere.push(hop(108.0, 100_000, 20_000).hops()[0], 7);
    ack(&mut flow, &elsewhere, 100, 150);
    assert_close(flow.allowance().window, 100.0);
    // From then on the new path counts, as in the first test of a full link with a queue.
    let mut next = Telemetry::default();
    next.push(hop(116.0, 200_000, 20_000).hops()[0], 7);
    ack(&mut flow, &next, 160, 200);
    assert_close(flow.allowance().window, (100_000.0 * 0.95 / 1.2 + 1000.0) / 1000.0);
}

/// Telemetry is not authenticated (`docs/security.md`). An attacker that writes it sets the window, from about W_AI to the first
/// window.
#[test]
fn telemetry_that_is_written_on_the_path_sets_the_window_up_to_the_first_one() {
    let mut flow = hpcc(&[("max_stage", "1")]);
    ack(&mut flow, &hop(100.0, 0, 0), 0, 1);
    // A hundred times the link's rate: W = 100 000 * 0.95 / 100 + 1000, and so on.
    ack(&mut flow, &hop(108.0, 10_000_000, 0), 1, 2);
    assert_close(flow.allowance().window, 1.95);
    ack(&mut flow, &hop(116.0, 20_000_000, 0), 2, 3);
    assert_close(flow.allowance().window, 1.95 * 0.0095 + 1.0);
    // A hundredth of the rate, though the link may be full: first W_AI, and then 95 times the window, at most the first one.
    ack(&mut flow, &hop(124.0, 20_001_000, 0), 3, 4);
    ack(&mut flow, &hop(132.0, 20_002_000, 0), 4, 5);
    assert_close(flow.allowance().window, 100.0);
}
