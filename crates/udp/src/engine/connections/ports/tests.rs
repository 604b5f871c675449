//! Tests of the ports of a connection, without packets.

use super::*;

const RETRY: Span = Span::from_ms(100);
const KEEPALIVE: Span = Span::from_secs(10);
/// Bytes of a full packet, and of a short request.
const FULL: usize = 1500;
const SHORT: usize = 37;

fn ports(own: u16) -> Ports {
    ports_with(own, AckPath::Symmetric)
}

fn ports_with(own: u16, ack_path: AckPath) -> Ports {
    Ports::new(Time::ZERO, Agreed { own, peer: 1, range: 1024 }, ack_path, KEEPALIVE)
}

/// Returns ports that the peer has all confirmed at time 0.
fn confirmed(own: u16) -> Ports {
    let mut ports = ports(own);
    while !step(&mut ports, 0).0.is_empty() {}
    (1..own).for_each(|number| joined(&mut ports, 0, number as u8));
    ports
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn joined(ports: &mut Ports, ms: u64, number: u8) {
    assert!(ports.on_joined(at(ms), number, (FULL, FULL)));
}

/// Returns the ports of the due requests, and when the next request is due.
fn step(ports: &mut Ports, ms: u64) -> (Vec<u8>, Time) {
    let mut joins = Vec::new();
    let next = ports.step(at(ms), RETRY, |number, _| joins.push(number));
    (joins, next)
}

/// Returns the lengths of the due requests.
fn lengths(ports: &mut Ports, ms: u64) -> Vec<(u8, usize)> {
    let mut joins = Vec::new();
    ports.step(at(ms), RETRY, |number, full| {
        joins.push((number, if full { FULL } else { SHORT }));
    });
    joins
}

/// Returns the port and the entropy value of a packet.
fn choose(ports: &mut Ports, ms: u64, ev: u16) -> (u8, u16) {
    let chosen = ports.choose(at(ms), Ev::new(ev));
    (chosen.port, chosen.replaced.map_or(ev, Ev::get))
}

#[test]
fn packets_leave_by_confirmed_ports_and_the_value_says_which() {
    let mut ports = ports(4);
    assert_eq!(step(&mut ports, 0), (vec![1, 2, 3], at(100)));
    assert_eq!(choose(&mut ports, 0, 7), (0, 4), "only the first port");
    joined(&mut ports, 1, 3);
    assert_eq!(choose(&mut ports, 1, 7), (3, 7));
    // Value 4 * 4 + 1 belongs to port 1, which is not confirmed. The packet takes port 0 or 3.
    let (port, ev) = choose(&mut ports, 1, 17);
    assert_eq!((port == 0 || port == 3, ev), (true, 16 + u16::from(port)));
}

/// The waits double from 100 ms to 10 s: 100, 200, 400 ms, and so on.
#[test]
fn a_request_is_repeated_twice_and_then_with_packets_ever_more_seldom() {
    let mut ports = ports(2);
    for (ms, next) in [(0, at(100)), (100, at(300)), (300, Time::MAX)] {
        assert_eq!(step(&mut ports, ms), (vec![1], next));
    }
    assert_eq!(step(&mut ports, 60_000), (vec![], Time::MAX), "no packet would leave by it");
    let mut ask = |ms: u64| {
        ports.heard(at(ms), 0, at(ms));
        ports.choose(at(ms), Ev::new(1)).due && step(&mut ports, ms).0 == [1]
    };
    let mut asked = vec![];
    for ms in (700..40_000).step_by(100) {
        if ask(ms) {
            asked.push(ms);
        }
    }
    assert_eq!(asked, [700, 1500, 3100, 6300, 12_700, 22_700, 32_700]);
}

#[test]
fn a_port_that_lost_packets_is_used_again_once_the_peer_confirms_it() {
    let mut ports = confirmed(2);
    assert!(ports.suspect(at(5), 1));
    assert!(!ports.suspect(at(5), 1), "it is left already");
    assert_eq!(choose(&mut ports, 5, 1).0, 0);
    assert_eq!(lengths(&mut ports, 5), [(1, FULL)]);
    assert!(!ports.on_joined(at(6), 1, (SHORT, FULL)), "an answer from before");
    assert!(!ports.heard(at(6), 1, at(4)), "a packet from before");
    assert_eq!(choose(&mut ports, 6, 1).0, 0);
    joined(&mut ports, 6, 1);
    assert_eq!(choose(&mut ports, 6, 1), (1, 1));
}

/// If an answer has an effect, the engine checks all its connections.
#[test]
fn an_answer_without_a_request_changes_nothing() {
    let mut ports = ports(2);
    assert!(!ports.on_joined(at(0), 0, (FULL, FULL)), "the first port was not asked for");
    assert!(!ports.on_joined(at(0), 1, (FULL, FULL)), "the request has not left");
    assert_eq!(choose(&mut ports, 0, 1).0, 0);
    assert_eq!(step(&mut ports, 0).0, [1]);
    assert!(!ports.on_joined(at(1), 1, (SHORT, FULL)), "not the answer to this request");
    assert!(ports.on_joined(at(1), 1, (FULL, FULL)), "the answer");
    assert!(!ports.on_joined(at(2), 1, (FULL, FULL)), "one answer for a request");
    assert!(ports.suspect(at(3), 1));
    assert!(!ports.on_joined(at(3), 1, (FULL, FULL)), "no request since the answer");
    assert_eq!(lengths(&mut ports, 3), [(1, FULL)]);
    assert!(ports.on_joined(at(4), 1, (FULL, FULL)));
}

#[test]
fn requests_for_many_ports_do_not_leave_at_once() {
    let mut ports = ports(64);
    let mut all = Vec::new();
    for ms in 0..16 {
        let (joins, next) = step(&mut ports, ms);
        assert_eq!(joins.len(), if ms < 15 { 4 } else { 3 });
        all.extend(joins);
        assert_eq!(next, if ms < 15 { at(ms + 1) } else { at(100) });
    }
    assert_eq!(all, (1..64).collect::<Vec<u8>>());
}

#[test]
fn there_may_be_as_many_ports_as_numbers() {
    let mut ports = ports(256);
    let all: Vec<u8> = (0..64).flat_map(|ms| step(&mut ports, ms).0).collect();
    assert_eq!(all, (1..=255).collect::<Vec<u8>>());
    joined(&mut ports, 64, 255);
    assert_eq!(choose(&mut ports, 64, 0x1ff), (255, 0x1ff));
}

/// The 64 ports cause no traffic while no packet needs them, and then one short request each.
#[test]
fn idle_ports_are_asked_for_when_a_packet_would_leave_by_them_and_briefly() {
    let mut ports = confirmed(64);
    assert_eq!(choose(&mut ports, 9_999, 1), (1, 1), "each packet is a request itself");
    assert_eq!(lengths(&mut ports, 9_999), []);
    let (port, _) = choose(&mut ports, 10_000, 1);
    assert_eq!(port, 0, "not heard of for a keepalive time");
    let asked = lengths(&mut ports, 10_000);
    assert_eq!(asked, [(1, SHORT)], "no other port");
    assert!(ports.on_joined(at(10_001), 1, (SHORT, FULL)));
    assert_eq!(choose(&mut ports, 10_001, 1), (1, 1));
    assert_eq!(choose(&mut ports, 10_001, 2).0, 1, "port 2 is asked for first");
    assert_eq!(lengths(&mut ports, 10_001), [(2, SHORT)]);
}

#[test]
fn if_all_ports_are_lost_at_once_all_are_asked_for_and_answers_bring_each_back() {
    let mut ports = confirmed(8);
    let lose_all = |ports: &mut Ports, ms| (0..8).for_each(|n| assert!(ports.suspect(at(ms), n)));
    let requests = |ports: &mut Ports, ms: u64| -> Vec<u8> {
        (ms..ms + 2).flat_map(|ms| step(ports, ms).0).collect()
    };
    (0..8).for_each(|n| assert!(!ports.heard(at(20_000), n, at(20_000))));
    lose_all(&mut ports, 20_000);
    assert_eq!(choose(&mut ports, 20_000, 5), (0, 0), "no other is left");
    assert_eq!(requests(&mut ports, 20_000), (0..8).collect::<Vec<u8>>());
    assert_eq!(requests(&mut ports, 20_101), (0..8).collect::<Vec<u8>>(), "once more after 100 ms");
    joined(&mut ports, 20_110, 5);
    assert_eq!(choose(&mut ports, 20_110, 13), (5, 13));
    // An acknowledgement of a packet from the first port that left after the port was suspected.
    assert!(!ports.heard(at(20_111), 0, at(19_999)), "it left before");
    assert!(ports.heard(at(20_111), 0, at(20_000)));
    assert_eq!(choose(&mut ports, 20_111, 8), (0, 8));
    // If the same happens again soon, not all ports are requested again: each request is a full packet.
    ports.suspect(at(21_000), 5);
    ports.suspect(at(21_000), 0);
    let again = requests(&mut ports, 21_000);
    assert!(again.contains(&0) && again.contains(&5), "{again:?}");
    assert!(requests(&mut ports, 21_002).is_empty());
}

#[test]
fn the_first_answer_after_an_outage_of_any_length_has_all_ports_asked_for() {
    for end in [10_500, 17_000, 50_000] {
        let mut ports = confirmed(8);
        (0..8).for_each(|n| assert!(ports.suspect(at(10_000), n)));
        for ms in 10_000..10_400 {
            step(&mut ports, ms);
        }
        assert!(step(&mut ports, end).0.is_empty());
        assert!(ports.heard(at(end), 0, at(end - 1)), "the outage has ended");
        let asked: Vec<u8> = (end..end + 2).flat_map(|ms| step(&mut ports, ms).0).collect();
        assert_eq!(asked, (1..8).collect::<Vec<u8>>(), "{end} ms");
    }
}

/// Acknowledgements are not answered, so their ports are not confirmed by use.
#[test]
fn ports_of_acknowledgements_are_asked_for_before_their_time_ends() {
    let mut ports = ports_with(2, AckPath::Own);
    assert_eq!(step(&mut ports, 0).0, [1]);
    joined(&mut ports, 0, 1);
    step(&mut ports, 0);
    assert_eq!(ports.back(at(4_999), 1), Back { port: Some(1), due: false });
    assert_eq!(ports.back(at(5_000), 1), Back { port: Some(1), due: true });
    assert_eq!(lengths(&mut ports, 5_000), [(1, SHORT)]);
    assert_eq!(ports.back(at(10_000), 1).port, Some(0), "no answer");
    assert!(ports.on_joined(at(10_001), 1, (SHORT, FULL)));
    assert_eq!(ports.back(at(10_002), 1), Back { port: Some(1), due: false });
    assert_eq!(ports.back(at(10_002), 7), Back { port: Some(0), due: false }, "no such port");
}

#[test]
fn longer_packets_wait_for_a_confirmation_of_their_length() {
    let mut ports = confirmed(2);
    ports.on_longer_packets(at(5));
    assert_eq!(choose(&mut ports, 5, 1).0, 0);
    assert_eq!(lengths(&mut ports, 5), [(1, FULL)]);
    assert!(!ports.on_joined(at(6), 1, (FULL - 1, FULL)));
}
