//! DCTCP's sender against RFC 8257, RFC 5681 and RFC 3168.

use std::sync::Arc;

use crate::common;
use crate::common::{assert_close, at};
use apus_algorithms::dctcp::{Dctcp, Params};
use apus_cc::{Algorithm, CongestionHeader, Ecn, FlowInfo, Pacing, SendInfo, Sender, Settings};
use apus_units::{PacketNumber, Span};

fn dctcp(profile: &str, settings: &[(&str, &str)]) -> Dctcp {
    static INFO: apus_cc::AlgorithmInfo = <Dctcp as Algorithm>::INFO;
    let mut settings = Settings::read(&INFO, Some(profile), settings).unwrap();
    Dctcp::new(Arc::new(Params::from_settings(&mut settings).unwrap()), &FlowInfo::default())
}

/// Acknowledges `acked` packets up to `seq`, `marked` of them marked, while `next` is to be sent.
fn ack(flow: &mut Dctcp, (acked, marked): (u32, u32), seq: u64, next: u64) {
    let mut event = common::ack(1000.0, 20.0);
    (event.acked_packets, event.marked_packets) = (acked, marked);
    (event.acked_seq, event.next_seq) = (PacketNumber::new(seq), PacketNumber::new(next));
    flow.on_ack(&event);
}

fn lose(flow: &mut Dctcp, seq: u64, next: u64) {
    let mut event = common::loss(1000.0);
    (event.lost_seq, event.next_seq) = (PacketNumber::new(seq), PacketNumber::new(next));
    flow.on_loss(&event);
}

fn cwnd(flow: &Dctcp) -> f64 {
    flow.allowance().window
}

#[test]
fn rfc_8257_3_3_alpha_starts_at_one_and_is_updated_once_per_window() {
    let mut flow = dctcp("rfc8257", &[]);
    assert_eq!(flow.alpha(), 1.0);
    // The first ACK ends the first window (WindowEnd starts at SND.UNA): 1 * 15/16 + 1/16 * 0.
    ack(&mut flow, (1, 0), 0, 10);
    assert_close(flow.alpha(), 15.0 / 16.0);
    // Packets 1..9 belong to the next window, which packet 10 ends: 4 of 10 marked.
    ack(&mut flow, (5, 4), 5, 15);
    ack(&mut flow, (4, 0), 9, 19);
    assert_close(flow.alpha(), 15.0 / 16.0);
    ack(&mut flow, (1, 0), 10, 20);
    assert_close(flow.alpha(), 15.0 / 16.0 * 15.0 / 16.0 + 0.4 / 16.0);
}

#[test]
fn rfc_8257_3_3_a_mark_cuts_by_half_of_alpha_once_per_window() {
    let mut flow = dctcp("rfc8257", &[("initial_cwnd", "40"), ("initial_alpha", "0.5")]);
    // alpha becomes 0.5 * 15/16 + 1/16 * 1/2 = 0.5; 40 * (1 - 0.5/2) = 30.
    ack(&mut flow, (2, 1), 1, 40);
    assert_close(flow.alpha(), 0.5);
    assert_close(cwnd(&flow), 30.0);
    assert_close(flow.ssthresh(), 30.0);
    // More marks among the packets sent before: no second cut, and no growth on a marked ACK.
    ack(&mut flow, (10, 10), 11, 41);
    ack(&mut flow, (10, 10), 39, 42);
    assert_close(cwnd(&flow), 30.0);
    // Packet 40 was sent after the cut. Its window: 21 of 21 marked.
    ack(&mut flow, (1, 1), 40, 70);
    let alpha = 0.5 * 15.0 / 16.0 + 1.0 / 16.0;
    assert_close(flow.alpha(), alpha);
    assert_close(cwnd(&flow), 30.0 * (1.0 - alpha / 2.0));
}

#[test]
fn rfc_8257_3_3_a_cut_does_not_go_below_the_minimum() {
    let mut flow = dctcp("rfc8257", &[("initial_cwnd", "1")]);
    for i in 0..50 {
        ack(&mut flow, (1, 1), i, i + 1);
    }
    assert_eq!(cwnd(&flow), 1.0);
}

#[test]
fn rfc_8257_3_4_slow_start_then_congestion_avoidance() {
    let mut flow = dctcp("rfc8257", &[]);
    assert_eq!(cwnd(&flow), 10.0);
    ack(&mut flow, (10, 0), 9, 20);
    assert_close(cwnd(&flow), 20.0);
    // Half of 20 is the threshold now: congestion avoidance, 1 per RTT.
    lose(&mut flow, 15, 40);
    assert_close(flow.ssthresh(), 10.0);
    ack(&mut flow, (5, 0), 20, 45);
    assert_close(cwnd(&flow), 10.5);
}

#[test]
fn rfc_8257_3_4_growth_stops_at_max_cwnd() {
    let mut flow = dctcp("rfc8257", &[("max_cwnd", "16")]);
    ack(&mut flow, (10, 0), 9, 20);
    assert_eq!(cwnd(&flow), 16.0);
}

#[test]
fn rfc_8257_3_5_a_loss_halves_once_per_window() {
    let mut flow = dctcp("rfc8257", &[("initial_cwnd", "40")]);
    lose(&mut flow, 3, 40);
    lose(&mut flow, 39, 45);
    assert_close(cwnd(&flow), 20.0);
    lose(&mut flow, 40, 60);
    assert_close(cwnd(&flow), 10.0);
}

#[test]
fn rfc_8257_3_5_a_small_cut_by_marks_does_not_excuse_from_halving() {
    let mut flow = dctcp("rfc8257", &[("initial_cwnd", "40"), ("initial_alpha", "0")]);
    // alpha = 1/16 * 1/16; the cut is tiny.
    ack(&mut flow, (16, 1), 15, 40);
    let cut = 40.0 * (1.0 - 1.0 / 512.0);
    assert_close(cwnd(&flow), cut);
    lose(&mut flow, 20, 41);
    assert_close(cwnd(&flow), cut / 2.0);
    // In the reverse case there is no cut: a mark on a packet sent after that cut and before the halving.
    ack(&mut flow, (1, 1), 40, 42);
    assert_close(cwnd(&flow), cut / 2.0);
}

#[test]
fn rfc_5681_3_1_a_timeout_restarts_from_the_loss_window() {
    let mut flow = dctcp("rfc8257", &[("initial_cwnd", "40")]);
    flow.on_timeout(&common::timeout(1000.0));
    assert_eq!(cwnd(&flow), 1.0);
    assert_close(flow.ssthresh(), 20.0);
    // The same data times out again: ssthresh stays.
    flow.on_timeout(&common::timeout(3000.0));
    assert_close(flow.ssthresh(), 20.0);
    // Slow start up to ssthresh.
    ack(&mut flow, (1, 0), 41, 43);
    assert_close(cwnd(&flow), 2.0);
}

#[test]
fn rfc_5681_3_1_ssthresh_is_at_least_two_packets() {
    let mut flow = dctcp("rfc8257", &[("initial_cwnd", "2")]);
    lose(&mut flow, 0, 2);
    assert_eq!(cwnd(&flow), 1.0);
    assert_eq!(flow.ssthresh(), 2.0);
}

#[test]
fn rfc_3168_5_data_packets_are_ecn_capable() {
    let mut header = CongestionHeader::default();
    let info = SendInfo::new(at(1.0), PacketNumber::new(1));
    dctcp("rfc8257", &[]).on_transmit(&mut header, &info);
    assert_eq!(header.ecn, Ecn::Capable);
}

#[test]
fn swift_4_1_gcn_cuts_by_the_mark_rate_of_the_current_window() {
    let mut flow = dctcp("gcn", &[("initial_cwnd", "40")]);
    // A quarter of this window is marked, independent of earlier windows: 40 * (1 - 0.25/2).
    ack(&mut flow, (4, 1), 3, 40);
    assert_close(flow.alpha(), 0.25);
    assert_close(cwnd(&flow), 35.0);
}

#[test]
fn dctcp_is_ack_clocked_and_its_rto_follows_the_rule() {
    let mut flow = dctcp("rfc8257", &[]);
    assert_eq!(flow.allowance().pacing, Pacing::AckClocked);
    assert_eq!(flow.rto(), Span::from_ms(1));
    let mut event = common::ack(1000.0, 700.0);
    event.acked_packets = 1;
    flow.on_ack(&event);
    assert_eq!(flow.rto(), Span::from_us(1400));
}

/// REPS's artifact b751588: 40 packets without a mark add 40/40, four marked ones remove 4 * 1/4, a lost one
/// removes 1, and three that timed out remove 3. The window does not fall below its minimum.
#[test]
fn per_packet_each_mark_loss_and_timeout_takes_its_part_off_the_window() {
    let mut flow = dctcp("rfc8257", &[("reaction", "per-packet"), ("initial_cwnd", "40")]);
    ack(&mut flow, (40, 0), 39, 80);
    assert_close(cwnd(&flow), 41.0);
    ack(&mut flow, (4, 4), 43, 84);
    assert_close(cwnd(&flow), 40.0);
    lose(&mut flow, 44, 85);
    assert_close(cwnd(&flow), 39.0);
    let mut timeout = apus_cc::TimeoutEvent::new(at(2000.0));
    timeout.lost_packets = 3;
    flow.on_timeout(&timeout);
    assert_close(cwnd(&flow), 36.0);
    timeout.lost_packets = 100;
    flow.on_timeout(&timeout);
    assert_close(cwnd(&flow), 1.0);
    let registry = apus_algorithms::Registry::BUILT_IN;
    let built = registry.build("dctcp", None, &[("reaction", "per-packet"), ("g", "0.5")]);
    let error = built.expect_err("g has no effect").to_string();
    assert!(error.contains("reaction"), "{error}");
}
