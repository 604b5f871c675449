//! RCCC's halves. Expected values are of uet-htsim's rules, computed by hand, for 100 Gb/s, T0 = 14.0275 us and packets of
//! 4096 + 64 B: W_max = 1.5 * 175 344 = 263 016 B, a turn of 4 * 4096 B = 64 units of 256 B.

use std::sync::Arc;

use apus_algorithms::Registry;
use apus_algorithms::rccc::{Params, Rccc, RcccReceiver};
use apus_cc::{
    AckEvent, Algorithm, AlgorithmFactory, Backlog, CongestionHeader, DataEvent, Departure, Fields,
    FlowInfo, Receiver, ReceiverControl, SendInfo, Sender, SenderControl, Settings, TimeoutEvent,
    TrimEvent, Turn,
};
use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

const T0: &str = "14027520ps";

fn params(profile: &str, settings: &[(&str, &str)]) -> Arc<Params> {
    static INFO: apus_cc::AlgorithmInfo = <Rccc as Algorithm>::INFO;
    let mut all = vec![("network_rtt", T0)];
    all.extend_from_slice(settings);
    let mut settings = Settings::read(&INFO, Some(profile), &all).expect("valid");
    Arc::new(Params::from_settings(&mut settings).expect("valid"))
}

fn halves(profile: &str, settings: &[(&str, &str)]) -> (Rccc, Box<RcccReceiver>) {
    let (params, flow) = (params(profile, settings), FlowInfo::default());
    (Rccc::new(Arc::clone(&params), &flow), Rccc::receiver(&params, &flow))
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Sends a full packet with this much left, and returns its target in units.
fn send(sender: &mut Rccc, left: u64, resends: u32, ready_flows: u32) -> u32 {
    let mut info = SendInfo::new(at(0), PacketNumber::new(0));
    (info.pending, info.payload) = (Bytes::new(left), Bytes::new(4096));
    (info.resends, info.ready_flows) = (resends, ready_flows);
    let mut header = CongestionHeader::default();
    sender.on_transmit(&mut header, &info);
    let bytes = header.fields.as_data(3).expect("RCCC's fields");
    u32::from_be_bytes(bytes[..4].try_into().expect("4 bytes"))
}

fn data(target: u32) -> DataEvent {
    let [a, b, c, d] = target.to_be_bytes();
    let mut event = DataEvent::new(at(0));
    event.fields = Fields::data(3, [a, b, c, d, 0, 0]);
    event
}

fn grant(receiver: &mut RcccReceiver) -> u32 {
    match receiver.poll_control(at(0)) {
        Some(ReceiverControl::Grant { total }) => total,
        other => panic!("{other:?}"),
    }
}

/// Any credit permits a packet: 263 016 B are 63.2 packets, so 64 leave. The first answer voids the rest of the
/// credit.
#[test]
fn the_first_credit_is_a_window_and_void_after_an_answer() {
    let (mut sender, _) = halves("credits", &[]);
    let mut sent = 0;
    while sender.departure(at(0), sent) == Departure::Now {
        send(&mut sender, 1_000_000, 0, 1);
        sent += 1;
    }
    assert_eq!(sent, 64);
    let (mut sender, _) = halves("credits", &[]);
    send(&mut sender, 1_000_000, 0, 1);
    sender.on_ack(&AckEvent::new(at(14), Span::from_us(14)));
    assert_eq!(sender.departure(at(14), 0), Departure::Blocked);
    sender.on_grant(at(15), 17);
    assert_eq!(sender.departure(at(15), 0), Departure::Now);
    // 4352 B of credit: two packets, the second with the rest of the credit.
    send(&mut sender, 1_000_000, 0, 1);
    assert_eq!(sender.departure(at(15), 1), Departure::Now);
    send(&mut sender, 1_000_000, 0, 1);
    assert_eq!(sender.departure(at(15), 2), Departure::Blocked);
    // An old grant has no effect, and the debt of 3968 B is paid first.
    sender.on_grant(at(16), 17);
    sender.on_grant(at(16), 32);
    assert_eq!(sender.departure(at(16), 0), Departure::Blocked);
    sender.on_grant(at(16), 33);
    assert_eq!(sender.departure(at(16), 0), Departure::Now);
}

/// With 100 payloads left and 2 packets to retransmit, the demand is 102 * 4160 B, but at most W_max, less the
/// credit.
#[test]
fn targets_are_what_is_left_up_to_a_window_less_the_credit() {
    let (mut sender, _) = halves("credits", &[]);
    sender.on_ack(&AckEvent::new(at(14), Span::from_us(14)));
    sender.on_grant(at(14), 100); // 25 600 B, of which each packet takes 4160
    let expected = |wanted: u64| 100 + wanted.div_ceil(256) as u32;
    assert_eq!(send(&mut sender, 10 * 4096, 2, 1), expected(12 * 4160 - (25_600 - 4160)));
    assert_eq!(send(&mut sender, 100 * 4096, 2, 1), expected(263_016 - (25_600 - 2 * 4160)));
    // Three flows of the host divide the demand.
    assert_eq!(send(&mut sender, 100 * 4096, 0, 3), expected((263_016 - (25_600 - 3 * 4160)) / 3));
    // Without data and with credit, the target is what was granted.
    assert_eq!(send(&mut sender, 0, 0, 1), 100);
    // A new flow requests a packet although it has a window of credit, unless it has no more data.
    let (mut new, _) = halves("credits", &[]);
    assert_eq!(send(&mut new, 4096, 0, 1), 17);
    assert_eq!(send(&mut new, 0, 0, 1), 0);
}

/// With NSCC's window at its largest, 263 016 B, the target may be a packet more, but not more than W_max.
/// After trims have shrunk the window, the target is the window and a packet. Trims at the last hop do not
/// change the window.
#[test]
fn the_window_of_nscc_limits_targets_and_packets_in_flight() {
    let (mut sender, _) = halves("nscc", &[]);
    let trim = |sender: &mut Rccc, last_hop| {
        let mut event = TrimEvent::new(at(14), PacketNumber::new(0));
        (event.payload, event.last_hop, event.in_flight) = (Bytes::new(4096), last_hop, 10);
        sender.on_trim(&event);
    };
    let before = sender.allowance().window.max(sender.snapshot().cwnd);
    for _ in 0..40 {
        trim(&mut sender, true);
    }
    assert_eq!(sender.snapshot().cwnd, before);
    for _ in 0..40 {
        trim(&mut sender, false);
    }
    let cwnd = sender.snapshot().cwnd;
    assert!((before - cwnd - 40.0).abs() < 1e-9, "{before} {cwnd}");
    let bytes = (cwnd * 4160.0) as u64 + 4160;
    // No credit: the packet that leaves owes its bytes.
    assert_eq!(send(&mut sender, 1_000_000, 0, 1), (bytes + 4160).div_ceil(256) as u32);
    sender.on_grant(at(20), 10_000);
    assert_eq!(sender.departure(at(20), cwnd as u32 - 1), Departure::Now);
    assert_eq!(sender.departure(at(20), cwnd as u32), Departure::Blocked);
}

/// Turns grant 64 units, at most the requested ones; afterwards up to W_max, 1027 units, without a request: 17
/// turns.
#[test]
fn turns_grant_what_was_asked_for_and_then_a_window() {
    let (_, mut receiver) = halves("credits", &[]);
    assert_eq!(receiver.turn(), Turn::None);
    assert!(receiver.on_data(&data(100)));
    assert_eq!(receiver.turn(), Turn::Asked);
    assert_eq!(receiver.take_turn(true), Bytes::new(16_384));
    assert_eq!((grant(&mut receiver), receiver.turn()), (64, Turn::Asked));
    assert_eq!(receiver.take_turn(true), Bytes::new(36 * 256));
    assert_eq!((grant(&mut receiver), receiver.turn()), (100, Turn::Unasked));
    assert_eq!(receiver.poll_control(at(0)), None);
    let mut turns = 0;
    while receiver.turn() == Turn::Unasked {
        assert_eq!(receiver.take_turn(false), Bytes::new(16_384));
        turns += 1;
    }
    assert_eq!((turns, grant(&mut receiver)), (17, 100 + 17 * 64));
    // An older target has no effect; a larger one gets a turn, even if it was granted before.
    receiver.on_data(&data(99));
    assert_eq!(receiver.turn(), Turn::None);
    receiver.on_data(&data(200));
    assert_eq!(receiver.turn(), Turn::Asked);
    assert_eq!(receiver.take_turn(true), Bytes::ZERO);
}

/// A trimmed packet gives its source a turn at once, and a request demands credit for its packets.
#[test]
fn trims_and_requests_list_their_source() {
    let (_, mut receiver) = halves("credits", &[]);
    receiver.on_trimmed(&data(0));
    assert_eq!(receiver.turn(), Turn::Asked);
    assert_eq!(receiver.take_turn(true), Bytes::ZERO);
    receiver.on_credit_request(at(0), 2);
    assert_eq!(receiver.take_turn(true), Bytes::new(33 * 256)); // 2 * 4160 B in units of 256 B
    receiver.on_credit_request(at(0), 1_000_000);
    let mut granted = 33;
    while receiver.turn() == Turn::Asked {
        granted += receiver.take_turn(true).get() / 256;
    }
    assert_eq!(granted, 33 + 1027);
}

/// Without credit a sender sends a request after a timeout, and again once per RTT or timeout; with credit it
/// does not.
#[test]
fn requests_follow_timeouts() {
    let (mut sender, _) = halves("credits", &[("rto", "100us")]);
    let waits = Backlog { packets: 3, in_flight: 1 };
    assert_eq!(sender.poll_control(at(0), &waits), None, "the first credit");
    send(&mut sender, 12_288, 0, 1);
    sender.on_ack(&AckEvent::new(at(14), Span::from_us(14)));
    assert_eq!(sender.poll_control(at(14), &waits), None);
    assert_eq!(sender.next_timer(), Some(at(114)));
    sender.on_timeout(&TimeoutEvent::new(at(50)));
    assert_eq!(sender.poll_control(at(50), &waits), Some(SenderControl::CreditRequest));
    sender.on_timeout(&TimeoutEvent::new(at(60)));
    assert_eq!(sender.poll_control(at(60), &waits), None, "within an RTT");
    // The request waits for its time. Without a further reason the next one is due after a timeout of 100 us.
    let next = at(50) + Span::from_ps(14_027_520);
    assert_eq!(sender.next_timer(), Some(next));
    sender.on_timer(next);
    assert_eq!(sender.poll_control(next, &waits), Some(SenderControl::CreditRequest));
    let next = next + Span::from_us(100);
    assert_eq!(sender.next_timer(), Some(next));
    sender.on_timer(next);
    assert_eq!(sender.poll_control(next, &waits), Some(SenderControl::CreditRequest));
    sender.on_grant(at(170), 100);
    assert_eq!((sender.poll_control(at(170), &waits), sender.next_timer()), (None, None));
    // New data after an idle time, without credit, causes a request at once.
    let (mut idle, _) = halves("credits", &[]);
    idle.on_ack(&AckEvent::new(at(14), Span::from_us(14)));
    assert_eq!(idle.poll_control(at(14), &Backlog::default()), None);
    idle.on_idle(at(14));
    assert_eq!(idle.poll_control(at(20), &waits), Some(SenderControl::CreditRequest));
}

/// The pace is 0.99 of the line rate; regulation applies only if it is set, with the RTT as its period.
#[test]
fn the_pace_is_a_part_of_the_line_rate() {
    let flow = FlowInfo::default();
    let pace = Rccc::grant_pace(&params("credits", &[]), &flow).expect("a pace");
    assert_eq!((pace.rate, pace.regulation), (Rate::from_gbps(99), None));
    let pace = Rccc::grant_pace(&params("credits", &[("regulated", "true")]), &flow);
    let period = pace.and_then(|pace| pace.regulation).map(|rules| rules.period);
    assert_eq!(period, Some(Span::from_ps(14_027_520)));
}

/// Profile `nscc` has the target and timeout of the NSCC profile for the network, whose switches trim or drop.
#[test]
fn targets_and_timeouts_are_those_of_nscc_in_the_same_network() {
    let mut network = apus_cc::NetworkInfo {
        base_rtt: Span::from_us(14),
        fabric_rtt: Span::from_us(14),
        fabric_jitter: Span::ZERO,
        hops: 5,
        line_rate: Rate::from_gbps(100),
        path_rate: Rate::from_gbps(100),
        packet: Bytes::new(4160),
        trims: true,
    };
    let rto = |name: &str, profile: &str, network: &apus_cc::NetworkInfo| {
        let config = Registry::BUILT_IN.build_for(name, Some(profile), &[], Some(network));
        config.expect("valid").sender(&FlowInfo::default()).rto()
    };
    for (trims, of) in [(true, "trimming"), (false, "drop-tail")] {
        network.trims = trims;
        for profile in ["credits", "nscc"] {
            assert_eq!(rto("rccc", profile, &network), rto("nscc", of, &network));
        }
    }
}
