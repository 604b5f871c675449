//! ExpressPass: feedback control, credits and the sender's states.

use std::sync::Arc;

use crate::common::{assert_close, at, us};
use apus_algorithms::expresspass::{ExpressPass, ExpressPassReceiver, Feedback, Params};
use apus_cc::{
    Algorithm, AlgorithmInfo, Backlog, CreditEcho, CreditEvent, DataEvent, FlowInfo, Receiver,
    ReceiverControl, Sender, SenderControl, Settings,
};
use apus_units::{Bytes, Rate, Span, Time};

fn params(profile: &str, settings: &[(&str, &str)]) -> Arc<Params> {
    static INFO: AlgorithmInfo = <ExpressPass as Algorithm>::INFO;
    let mut settings = Settings::read(&INFO, Some(profile), settings).unwrap();
    Arc::new(Params::from_settings(&mut settings).unwrap())
}

/// 10 Gb/s with frames of 1538 B and credits of 84 B: 10e9 / (8 * 1622) = 770 653 credits/s.
fn ethernet() -> FlowInfo {
    FlowInfo {
        line_rate: Rate::from_gbps(10),
        payload: Bytes::new(1460),
        packet: Bytes::new(1538),
        control: Bytes::new(84),
        seed: 1,
    }
}

const MAX: f64 = 1e10 / (8.0 * 1622.0);

/// One period of 100 us in which `received` of `sent` credits, starting with `first`, returned with
/// data; the last credit is among them.
fn period(feedback: &mut Feedback, params: &Params, n: u64, first: u32, sent: u32, received: u32) {
    for i in 0..received {
        let number = first + sent - received + i;
        let now =
            if i + 1 == received { at(100.0 * (n + 1) as f64) } else { at(100.0 * n as f64 + 1.0) };
        feedback.on_echo(params, now, &CreditEcho { number, rtt: us(50.0) });
    }
}

#[test]
fn paper_feedback_grows_towards_the_maximum_and_falls_with_the_loss() {
    let params = params("paper", &[]);
    let feedback = Feedback::new(&params, 1000.0, Time::ZERO, 0, 1);
    assert_close(feedback.rate(), 500.0);
    // No loss: rate = 0.5 * 500 + 0.5 * 1000 * 1.1; w stays 1/2, which is w_max. But one credit per RTT of 50
    // us is 20 000/s, so the arithmetic uses a large maximum.
    let mut feedback = Feedback::new(&params, 1e6, Time::ZERO, 0, 1);
    period(&mut feedback, &params, 0, 0, 20, 20);
    assert_close(feedback.rate(), 0.5 * 5e5 + 0.5 * 1.1e6);
    // 5 of 20 lost: 25 % is above 10 %: rate * 0.75 * 1.1, w halves.
    period(&mut feedback, &params, 1, 20, 20, 15);
    assert_close(feedback.rate(), 8e5 * 0.75 * 1.1);
    assert_close(feedback.w(), 0.25);
    // The first increase keeps w, the next moves it half way to w_max.
    period(&mut feedback, &params, 2, 40, 20, 20);
    assert_close(feedback.rate(), 0.75 * 6.6e5 + 0.25 * 1.1e6);
    assert_close(feedback.w(), 0.25);
    period(&mut feedback, &params, 3, 60, 20, 20);
    assert_close(feedback.w(), 0.375);
    assert_close(feedback.rate(), 0.625 * 7.7e5 + 0.375 * 1.1e6);
}

#[test]
fn code_feedback_cuts_to_the_delivered_rate() {
    let params = params("code", &[]);
    let mut feedback = Feedback::new(&params, 1e6, Time::ZERO, 0, 1);
    // 10 of 40 lost; the target is 0.125 * (1 - 1/2) = 6.25 %; 30 delivered in 100 us are 3e5/s.
    period(&mut feedback, &params, 0, 0, 40, 30);
    assert_close(feedback.rate(), 3e5 * 1.0625);
    assert_close(feedback.w(), 0.25);
    let rate = feedback.rate();
    // Without loss the first period keeps w, the next adds 0.05.
    period(&mut feedback, &params, 1, 40, 20, 20);
    assert_close(feedback.rate(), 0.25 * 1e6 + 0.75 * rate);
    let rate = feedback.rate();
    period(&mut feedback, &params, 2, 60, 20, 20);
    assert_close(feedback.w(), 0.30);
    assert_close(feedback.rate(), 0.3 * 1e6 + 0.7 * rate);
}

/// ns2-xpass since April 2018: alpha * packets / 40 below 40 packets.
#[test]
fn the_first_rate_grows_with_the_packets_to_send_up_to_a_number() {
    let later = params("code-2018", &[]);
    let first =
        |params: &Params, packets| Feedback::new(params, 1e6, Time::ZERO, 0, packets).rate();
    assert_close(first(&later, 10), 0.5 * 10.0 / 40.0 * 1e6);
    assert_close(first(&later, 40), 5e5);
    assert_close(first(&later, 1000), 5e5);
    // A request without data to send counts as one packet.
    assert_close(first(&later, 0), first(&later, 1));
    assert_close(first(&params("code", &[]), 1), 5e5);
}

#[test]
fn the_rate_keeps_one_credit_per_rtt() {
    let params = params("paper", &[]);
    let mut feedback = Feedback::new(&params, 1e5, Time::ZERO, 0, 1);
    for n in 0..20 {
        period(&mut feedback, &params, n, 20 * n as u32, 20, 1);
    }
    // 50 us: 20 000 per second.
    assert_close(feedback.rate(), 2e4);
}

#[test]
fn naive_credits_leave_at_the_line_rate_at_any_loss() {
    let params = params("paper", &[("feedback", "false")]);
    let mut feedback = Feedback::new(&params, MAX, Time::ZERO, 0, 1);
    period(&mut feedback, &params, 0, 0, 20, 2);
    assert_close(feedback.rate(), MAX);
}

#[test]
fn credits_leave_at_equal_gaps_from_the_request_to_the_stop() {
    let settings = [("jitter", "0"), ("random_sizes", "false"), ("feedback", "false")];
    let mut receiver = ExpressPassReceiver::new(params("code", &settings), &ethernet());
    assert_eq!(receiver.next_control(), Time::MAX);
    assert_eq!(receiver.poll_control(at(1.0)), None);
    receiver.on_credit_request(at(1.0), 1);
    let credit = Some(ReceiverControl::Credit { padding: 8 });
    assert_eq!(receiver.poll_control(at(1.0)), credit, "the first at once");
    assert_eq!(receiver.poll_control(at(1.0)), None);
    // 1622 B at 10 Gb/s: 1.2976 us.
    assert_eq!(receiver.next_control(), Time::from_ps(2_297_600));
    // A timer that is late does not slow the rate.
    assert_eq!(receiver.poll_control(Time::from_ps(2_400_000)), credit);
    assert_eq!(receiver.next_control(), Time::from_ps(3_595_200));
    receiver.on_credit_stop(at(3.0));
    assert_eq!(receiver.next_control(), Time::MAX);
}

#[test]
fn gaps_and_sizes_vary_within_their_bounds_and_by_the_seed() {
    let gaps = |seed| {
        let info = FlowInfo { seed, ..ethernet() };
        let mut receiver =
            ExpressPassReceiver::new(params("code", &[("feedback", "false")]), &info);
        receiver.on_credit_request(Time::ZERO, 1);
        let mut list = Vec::new();
        for _ in 0..1000 {
            let now = receiver.next_control();
            let Some(ReceiverControl::Credit { padding }) = receiver.poll_control(now) else {
                panic!("a credit is due");
            };
            list.push((receiver.next_control().since(now), padding));
        }
        list
    };
    let (first, other) = (gaps(1), gaps(2));
    assert_ne!(first, other);
    assert_eq!(first, gaps(1));
    let (least, most) =
        (Span::from_ps(1_297_600 * 9 / 10 - 1), Span::from_ps(1_297_600 * 11 / 10 + 1));
    assert!(first.iter().all(|(gap, padding)| (least..=most).contains(gap) && *padding <= 16));
    let mean = first.iter().map(|(_, padding)| f64::from(*padding)).sum::<f64>() / 1000.0;
    // Uniform on 0..=16: mean 8, standard deviation 4.9, of the mean of 1000 0.155; five of them.
    assert!((mean - 8.0).abs() < 0.8, "{mean}");
}

#[test]
fn a_receiver_whose_credits_bring_no_data_stops() {
    let mut receiver = ExpressPassReceiver::new(params("code", &[]), &ethernet());
    receiver.on_credit_request(Time::ZERO, 1);
    assert!(receiver.poll_control(Time::ZERO).is_some());
    assert_eq!(receiver.poll_control(at(100_000.0)), None);
    assert_eq!(receiver.next_control(), Time::MAX);
}

#[test]
fn only_data_of_a_credit_that_is_being_sent_goes_unacknowledged() {
    let mut receiver = ExpressPassReceiver::new(params("code", &[]), &ethernet());
    let data = |credit| {
        let mut event = DataEvent::new(at(9.0));
        event.credit = credit;
        event
    };
    let echo = Some(CreditEcho { number: 0, rtt: us(5.0) });
    receiver.on_credit_request(Time::ZERO, 1);
    assert!(!receiver.on_data(&data(echo)));
    assert!(receiver.on_data(&data(None)), "a read request needs no credit");
    receiver.on_credit_stop(at(9.0));
    assert!(receiver.on_data(&data(echo)), "no credit will acknowledge it");
}

fn sender(profile: &str) -> ExpressPass {
    ExpressPass::new(params(profile, &[]), &ethernet())
}

fn backlog(packets: u64, in_flight: u32) -> Backlog {
    Backlog { packets, in_flight }
}

fn credit(flow: &mut ExpressPass, now: f64, used: bool, left: u64) {
    flow.on_credit(&CreditEvent { now: at(now), used, backlog: backlog(left, 1) });
}

#[test]
fn code_sender_requests_and_stops_behind_its_last_packet() {
    let mut flow = sender("code");
    assert_eq!(flow.poll_control(at(0.0), &backlog(0, 0)), None);
    assert_eq!(flow.poll_control(at(1.0), &backlog(2, 0)), Some(SenderControl::CreditRequest));
    assert_eq!(flow.poll_control(at(2.0), &backlog(2, 0)), None);
    credit(&mut flow, 20.0, true, 1);
    assert_eq!(flow.poll_control(at(20.0), &backlog(1, 1)), None);
    assert_eq!(flow.poll_control(at(21.0), &backlog(0, 2)), Some(SenderControl::CreditStop));
    assert_eq!(flow.poll_control(at(22.0), &backlog(0, 2)), None);
    assert_eq!(flow.poll_control(at(40.0), &backlog(0, 0)), None);
    assert_eq!(flow.next_timer(), None, "closed");
    assert_eq!(flow.poll_control(at(50.0), &backlog(1, 0)), Some(SenderControl::CreditRequest));
}

/// ns2-xpass since April 2018. The first credit arrives 50 us after the request. In the following RTT six
/// credits have arrived and four packets are left, for which the credits in flight may suffice.
#[test]
fn an_early_sender_stops_when_as_many_credits_came_in_an_rtt_as_packets_are_left() {
    let mut flow = sender("code-2018");
    let request = Some(SenderControl::CreditRequest);
    assert_eq!(flow.poll_control(at(0.0), &backlog(10, 0)), request);
    for (now, left) in [(50.0, 9), (60.0, 8), (70.0, 7), (80.0, 6), (90.0, 5)] {
        credit(&mut flow, now, true, left);
        assert_eq!(flow.poll_control(at(now), &backlog(left, 1)), None, "{now}");
    }
    credit(&mut flow, 100.0, true, 4);
    assert_eq!(flow.poll_control(at(100.0), &backlog(4, 6)), Some(SenderControl::CreditStop));
    // Data that is left after two RTTs needs another request.
    assert_eq!(flow.poll_control(at(199.0), &backlog(1, 3)), None);
    assert_eq!(flow.next_timer(), Some(at(200.0)));
    assert_eq!(flow.poll_control(at(200.0), &backlog(1, 3)), request);
}

#[test]
fn an_early_sender_goes_on_while_more_packets_are_left_than_credits_came() {
    let mut flow = sender("code-2018");
    flow.poll_control(at(0.0), &backlog(100, 0));
    credit(&mut flow, 50.0, true, 99);
    for now in [100.0, 150.0, 200.0] {
        credit(&mut flow, now, true, 90);
        assert_eq!(flow.poll_control(at(now), &backlog(90, 1)), None, "{now}");
    }
}

#[test]
fn credits_of_one_size_have_one_count() {
    static INFO: AlgorithmInfo = <ExpressPass as Algorithm>::INFO;
    let both = [("random_sizes", "false"), ("credit_queue_counts", "bytes")];
    let mut settings = Settings::read(&INFO, None, &both).unwrap();
    let error = Params::from_settings(&mut settings).unwrap_err().to_string();
    assert!(error.contains("`credit_queue_counts` has no effect"), "{error}");
}

#[test]
fn paper_sender_stops_when_a_credit_finds_no_data() {
    let mut flow = sender("paper");
    flow.poll_control(at(1.0), &backlog(1, 0));
    credit(&mut flow, 20.0, true, 0);
    assert_eq!(flow.poll_control(at(21.0), &backlog(0, 1)), None);
    credit(&mut flow, 22.0, false, 0);
    assert_eq!(flow.poll_control(at(22.0), &backlog(0, 1)), Some(SenderControl::CreditStop));
}

#[test]
fn requests_and_stops_are_sent_again_until_they_are_answered() {
    let mut flow = sender("code");
    flow.poll_control(at(0.0), &backlog(1, 0));
    assert_eq!(flow.next_timer(), Some(at(10_000.0)));
    assert_eq!(flow.poll_control(at(10_000.0), &backlog(1, 0)), Some(SenderControl::CreditRequest));
    credit(&mut flow, 10_020.0, true, 0);
    assert_eq!(flow.poll_control(at(10_021.0), &backlog(0, 1)), Some(SenderControl::CreditStop));
    assert_eq!(flow.poll_control(at(20_021.0), &backlog(0, 1)), Some(SenderControl::CreditStop));
    assert_eq!(flow.poll_control(at(20_050.0), &backlog(0, 0)), None);
    // Credits of the last RTT do not indicate a lost stop; a much later credit does.
    credit(&mut flow, 20_060.0, false, 0);
    assert_eq!(flow.poll_control(at(20_060.0), &backlog(0, 0)), None);
    credit(&mut flow, 30_100.0, false, 0);
    assert_eq!(flow.poll_control(at(30_100.0), &backlog(0, 0)), Some(SenderControl::CreditStop));
}
