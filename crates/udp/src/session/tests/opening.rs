//! Handshakes that result in a session, and handshakes that fail.

use super::*;

#[test]
fn four_messages_open_a_session_and_carry_both_hellos() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    world.settle();
    let theirs = world.hosts[1].session().expect("connected");
    let key = ring().ids().next().unwrap();
    let from = world.address(0);
    let hello = Box::from(*b"hello");
    assert_eq!(
        world.hosts[1].events,
        [
            Event::Incoming { session: theirs, from: from.into(), key, identity: None, hello },
            Event::Connected { session: theirs, hello: Box::from(*b"hello") },
        ]
    );
    let welcome = Box::from(*b"welcome");
    assert_eq!(world.hosts[0].events, [Event::Connected { session: ours, hello: welcome }]);
    let kinds: Vec<u8> = world.seen.iter().map(|d| d.bytes[2]).collect();
    // Hello, Cookie, Init, Response; then a ping confirms, and a pong answers.
    assert_eq!(kinds, [0x40, 0x41, 0x42, 0x43, 0x46, 0x46]);
    assert_eq!(world.hosts[0].table.get(ours).map(|s| s.peer), Some(world.address(1).into()));
    assert_eq!(world.hosts[1].table.get(theirs).map(|s| s.key), Some(key));
}

#[test]
fn the_peer_pays_nothing_before_the_cookie_is_shown() {
    let mut world = World::new();
    for n in 0..200 {
        world.hosts[0] = host(n, ring(), Config::default());
        world.connect(0, 1);
        world.transmit();
        let hello = world.wire.pop_back().unwrap();
        world.deliver(&hello);
        assert_eq!(world.hosts[1].table.len(), 0);
        assert_eq!(world.hosts[1].table.next_timeout(), None);
    }
}

#[test]
fn a_session_is_not_usable_before_it_is_connected() {
    let mut world = World::new();
    world.hosts[1].accepts = false;
    let ours = world.connect(0, 1);
    let mut buffer = [0; 100];
    let now = world.now;
    let refused = world.hosts[0].table.seal(now, ours, &message(0, 0), &[], &mut buffer);
    assert_eq!(refused, Err(SealError::NotConnected));
    world.settle();
    let Event::Incoming { session, .. } = world.hosts[1].events[0] else { panic!("it came in") };
    let refused = world.hosts[1].table.seal(now, session, &message(0, 0), &[], &mut buffer);
    assert_eq!(refused, Err(SealError::NotConnected));
    assert_eq!(
        world.hosts[1].table.accept(now, session, &[0; 257]),
        Err(AcceptError::HelloTooLong)
    );
    world.hosts[1].table.accept(now, session, b"").unwrap();
    assert_eq!(world.hosts[1].table.accept(now, session, b""), Err(AcceptError::NotWaiting));
    world.settle();
    assert!(world.hosts[1].table.is_connected(session));
}

#[test]
fn any_message_may_be_lost() {
    for lost in 0..6 {
        let mut world = World::new();
        let ours = world.connect(0, 1);
        let mut count = 0;
        for _ in 0..20 {
            world.transmit();
            while let Some(datagram) = world.wire.pop_front() {
                if count != lost {
                    world.deliver(&datagram);
                }
                count += 1;
                world.transmit();
            }
            world.run(0);
            world.now += Span::from_ms(100);
            for host in &mut world.hosts {
                host.table.handle_timeout(world.now);
                host.take_events(world.now);
            }
        }
        assert!(world.hosts[0].table.is_connected(ours), "lost {lost}");
        let theirs = world.hosts[1].session().expect("connected");
        assert!(world.hosts[1].table.is_connected(theirs), "lost {lost}");
        assert_eq!((world.hosts[0].table.len(), world.hosts[1].table.len()), (1, 1));
    }
}

#[test]
fn another_key_is_no_answer_another_mode_is_reported_and_neither_ends_the_wait_early() {
    let other = || KeyRing::new([SharedKey::new([1; 32])]).unwrap();
    let insecure = KeyRing::insecure;
    for (a, b, end, told) in [
        (ring(), other(), End::NoAnswer, 0),
        (insecure(), ring(), End::OtherMode, 1),
        (ring(), insecure(), End::OtherMode, 1),
    ] {
        let mut world = World::with(a, b);
        let ours = world.connect(0, 1);
        world.run(4_999);
        assert!(world.hosts[0].events.is_empty());
        world.run(1);
        assert_eq!(world.hosts[0].ends(), [(ours, end)]);
        assert!(world.hosts[0].table.is_empty() && world.hosts[1].table.is_empty());
        assert!(world.hosts[1].events.is_empty());
        // Each Hello is answered by at most one packet, which is shorter and contains the mode.
        let (hellos, answers): (Vec<_>, Vec<_>) =
            world.seen.iter().partition(|d| d.from == world.address(0));
        assert_eq!(answers.len(), hellos.len() * told);
        assert!(
            answers.iter().all(|d| d.bytes.len() == 16 && d.bytes.len() < hellos[0].bytes.len())
        );
        let counters = world.hosts[1].table.counters();
        let dropped = [counters.dropped_unknown_key, counters.dropped_other_mode];
        assert_eq!(dropped[told], hellos.len() as u64);
    }
}

#[test]
fn a_forged_report_of_the_other_mode_neither_ends_nor_delays_the_handshake() {
    let forge = |world: &World, ours: SessionId| {
        let (from, to) = (world.address(1), world.address(0));
        Datagram { from, to, bytes: packet::write_unknown(false, ours.get(), 0).to_vec() }
    };
    let mut world = World::new();
    let ours = world.connect(0, 1);
    let forged = forge(&world, ours);
    assert_eq!(world.deliver(&forged), None);
    world.settle();
    assert!(world.hosts[0].table.is_connected(ours));

    // If the peer does not answer, the other mode is reported at the timeout, and not before.
    let mut world = World::new();
    let ours = world.connect(0, 1);
    let forged = forge(&world, ours);
    assert_eq!(world.deliver(&forged), None);
    world.run_cut(4_999);
    assert!(world.hosts[0].events.is_empty());
    world.run_cut(1);
    assert_eq!(world.hosts[0].ends(), [(ours, End::OtherMode)]);
}

#[test]
fn the_initiator_is_connected_once_the_responder_has_shown_that_it_keeps_the_session() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    // Hello, Cookie, Init, Response.
    assert_eq!(world.deliver_next(4), [0x40, 0x41, 0x42, 0x43]);
    assert!(!world.hosts[0].table.is_connected(ours) && world.hosts[0].events.is_empty());
    // The ping is lost and is sent again. Its answer shows that the responder keeps the session.
    world.run_cut(50);
    assert!(!world.hosts[0].table.is_connected(ours));
    world.run(1_000);
    assert!(world.hosts[0].table.is_connected(ours));
    assert!(matches!(world.hosts[0].events[..], [Event::Connected { .. }]));
}

#[test]
fn a_responder_that_closes_instead_of_confirming_leaves_the_initiator_unconnected() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    world.deliver_next(5);
    let theirs = world.hosts[1].session().expect("it was pinged");
    let now = world.now;
    world.hosts[1].table.close(now, theirs);
    world.settle();
    assert_eq!(world.hosts[0].ends(), [(ours, End::Closed)]);
    assert!(!world.hosts[0].events.iter().any(|e| matches!(e, Event::Connected { .. })));
}

#[test]
fn a_responder_that_falls_silent_before_it_confirms_is_no_answer() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    world.deliver_next(4);
    world.run_cut(4_999);
    assert!(world.hosts[0].events.is_empty());
    world.run_cut(1);
    assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);
}

#[test]
fn the_insecure_mode_opens_sessions_too() {
    let world = World::with(KeyRing::insecure(), KeyRing::insecure());
    let (mut world, ours, theirs) = world.join();
    assert!(!world.hosts[0].table.is_sealed());
    let datagram = world.sealed(0, ours, 9, b"plain");
    assert!(datagram.bytes.windows(5).any(|w| w == b"plain"));
    assert_eq!(world.deliver(&datagram), None);
    assert_eq!(world.deliver(&datagram), Some(Dropped::Replay));
    assert_eq!(world.hosts[1].delivered, [(9, b"plain".to_vec())]);
    let mut damaged = world.sealed(1, theirs, 9, b"plain");
    damaged.bytes[25] ^= 1; // within the payload
    assert_eq!(world.deliver(&damaged), Some(Dropped::Forged));
}

#[test]
fn the_application_may_refuse() {
    let mut world = World::new();
    world.hosts[1].accepts = false;
    let ours = world.connect(0, 1);
    world.settle();
    let Event::Incoming { session, .. } = world.hosts[1].events[0] else { panic!("it came in") };
    world.hosts[1].table.refuse(session);
    assert!(world.hosts[1].table.is_empty());
    world.settle();
    assert_eq!(world.hosts[0].ends(), [(ours, End::Refused)]);
}

#[test]
fn an_application_that_does_not_answer_costs_memory_for_the_timeout_only() {
    let mut world = World::new();
    world.hosts[1].accepts = false;
    let ours = world.connect(0, 1);
    world.run(6_000);
    assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);
    assert!(matches!(world.hosts[1].ends()[..], [(_, End::NoAnswer)]));
    assert!(world.hosts[1].table.is_empty());
    assert_eq!(world.hosts[1].table.next_timeout(), None);
}

#[test]
fn a_full_table_refuses_by_name() {
    let config = Config { max_sessions: 3, max_pending: 2, ..Config::default() };
    let mut world = World::new();
    world.hosts[1] = host(2, ring(), config);
    world.hosts[1].accepts = false;
    world.hosts.extend((3..6).map(|n| host(n, ring(), Config::default())));
    for from in [0, 2, 3] {
        world.connect(from, 1);
    }
    world.settle();
    assert!(matches!(world.hosts[3].ends()[..], [(_, End::PeerFull)]), "two may be pending");
    let waiting: Vec<SessionId> = world.hosts[1]
        .events
        .iter()
        .map(|e| match e {
            Event::Incoming { session, .. } => *session,
            _ => panic!("only requests"),
        })
        .collect();
    for session in waiting {
        world.hosts[1].table.accept(world.now, session, b"").unwrap();
    }
    world.hosts[1].accepts = true;
    world.settle();
    world.connect(3, 1);
    world.settle();
    assert_eq!(world.hosts[1].table.len(), 3);
    world.connect(4, 1);
    world.settle();
    assert!(matches!(world.hosts[4].ends()[..], [(_, End::PeerFull)]), "three may be open");
    let (now, key) = (world.now, ring().ids().next().unwrap());
    let nowhere: SocketAddr = "10.9.9.9:1".parse().unwrap();
    let table = &mut world.hosts[1].table;
    assert_eq!(table.connect(now, nowhere, key, b""), Err(ConnectError::Full));
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let (mut world, ours, _) = World::connected();
    let (now, to) = (world.now, world.address(1));
    let key = ring().ids().next().unwrap();
    let table = &mut world.hosts[0].table;
    assert_eq!(table.connect(now, to, key, b""), Err(ConnectError::Exists(ours)));
    let stranger = SharedKey::new([9; 32]).id();
    let other: SocketAddr = "10.0.0.9:7000".parse().unwrap();
    assert_eq!(table.connect(now, other, stranger, b""), Err(ConnectError::NoKey(stranger)));
    assert_eq!(table.connect(now, other, key, &[0; 257]), Err(ConnectError::HelloTooLong));
    assert!(table.connect(now, other, key, &[0; 256]).is_ok());
    let wrong = Config { idle_timeout: Span::from_secs(1), ..Config::default() };
    assert_eq!(
        Sessions::new(wrong, ring(), [0; 32]).unwrap_err(),
        "keepalive is 10s; it must be above 0s and below 1s (idle_timeout)"
    );
}

#[test]
fn both_asking_at_once_get_one_session() {
    let mut world = World::new();
    let asked = [world.connect(0, 1), world.connect(1, 0)];
    world.settle();
    assert_eq!((world.hosts[0].table.len(), world.hosts[1].table.len()), (1, 1));
    let crossed: Vec<usize> =
        (0..2).filter(|&h| world.hosts[h].ends() == [(asked[h], End::Crossed)]).collect();
    assert_eq!(crossed.len(), 1, "one of them yields");
    let sessions = [0, 1].map(|h| world.hosts[h].session().expect("connected"));
    let datagram = world.sealed(0, sessions[0], 0, b"works");
    assert_eq!(world.deliver(&datagram), None);
}

/// Both sides request a session, over a path of 40 ms. One side starts up to 0.3 s after the other, and the first Response is
/// lost. The later side has therefore accepted the other side's session before its own request, and both requests can be
/// answered at the same time.
#[test]
fn both_asking_within_a_round_trip_after_a_lost_response_get_one_session() {
    let delay = Span::from_ms(40);
    for (first, later) in [(0, 1), (1, 0)] {
        for offset in (0..300).step_by(5) {
            let mut world = World::new();
            let begin = world.now;
            world.connect(first, later);
            let (mut asked, mut lost) = (false, false);
            let mut under_way: Vec<(Time, Datagram)> = Vec::new();
            while world.now < begin + Span::from_secs(4) {
                if !asked && world.now >= begin + Span::from_ms(offset) {
                    asked = true;
                    // The session of the other side may exist already.
                    if world.hosts[later].session().is_none() {
                        world.connect(later, first);
                    }
                }
                world.transmit();
                for datagram in core::mem::take(&mut world.wire) {
                    if !lost && datagram.bytes[2] == 0x43 {
                        lost = true;
                        continue;
                    }
                    under_way.push((world.now + delay, datagram));
                }
                let (due, rest) = under_way.into_iter().partition(|(at, _)| *at <= world.now);
                under_way = rest;
                for (_, datagram) in due {
                    world.deliver(&datagram);
                }
                world.pass(5);
            }
            let why = format!("{first} first, {later} {offset} ms later");
            assert!(lost, "{why}");
            for host in &world.hosts {
                assert_eq!(host.table.len(), 1, "{why}");
            }
            let sessions = [0, 1].map(|h| world.hosts[h].session().expect("connected"));
            let datagram = world.sealed(0, sessions[0], 0, b"works");
            assert_eq!(world.deliver(&datagram), None, "{why}");
        }
    }
}

/// There is room for one session, and the own attempt uses it: the first Init is refused, and the other side's is accepted.
#[test]
fn both_asking_at_once_get_one_session_though_there_is_room_for_one_alone() {
    let mut world = World::new();
    for (n, host) in (1..).zip(&mut world.hosts) {
        let config = Config { max_sessions: 1, max_pending: 1, ..Config::default() };
        host.table = Sessions::new(config, ring(), [n; 32]).unwrap();
    }
    let asked = [world.connect(0, 1), world.connect(1, 0)];
    world.run(6_000);
    let connected = (0..2).filter(|&h| world.hosts[h].table.is_connected(asked[h])).count();
    assert_eq!(connected, 1);
    assert!(world.hosts.iter().all(|host| host.session().is_some() && host.table.len() == 1));
}

#[test]
fn a_peer_that_comes_again_ends_its_old_session() {
    // Another process at the same address.
    let (mut world, _, theirs) = World::connected();
    let lost = world.sealed(1, theirs, 0, b"for the old one");
    world.hosts[0] = host(1, ring(), Config::default());
    world.hosts[0].table = Sessions::new(Config::default(), ring(), [77; 32]).unwrap();
    let again = world.connect(0, 1);
    world.settle();
    assert!(world.hosts[0].table.is_connected(again));
    assert_eq!(world.hosts[1].ends(), [(theirs, End::Restarted)]);
    assert_eq!(world.deliver(&lost), Some(Dropped::UnknownSession));

    // The same process, which has lost its session without notice to the peer.
    let (mut world, ours, theirs) = World::connected();
    world.hosts[0].table.remove(ours);
    world.connect(0, 1);
    world.settle();
    assert_eq!(world.hosts[1].ends(), [(theirs, End::Replaced)]);
}

#[test]
fn a_responder_that_restarts_in_the_handshake_is_asked_anew() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    for _ in 0..2 {
        world.transmit();
        let datagram = world.wire.pop_front().unwrap();
        world.deliver(&datagram);
    }
    world.hosts[1].table = Sessions::new(Config::default(), ring(), [78; 32]).unwrap();
    world.run(3_000);
    assert!(world.hosts[0].table.is_connected(ours));
}

/// The Response is lost, as are all other packets for 1.5 s. The initiator requests a cookie again, which is the same one,
/// and the responder repeats its Response.
#[test]
fn a_handshake_that_was_interrupted_goes_on_with_its_init() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    assert_eq!(world.deliver_next(3), [0x40, 0x41, 0x42]);
    let sent = world.seen.len();
    world.run_cut(1_500);
    let asked = world.seen[sent..].iter().filter(|d| d.bytes[2] == 0x40);
    assert!(asked.count() > 0, "the responder may have been restarted");
    world.run(2_000);
    assert!(world.hosts[0].table.is_connected(ours));
    assert_eq!((world.hosts[0].table.len(), world.hosts[1].table.len()), (1, 1));
}

/// Host `b` requests a session of its own after it has accepted that of host `a`. Its Init arrives before the ping that
/// confirms the session of host `a`. Both orders of the process numbers are tested.
#[test]
fn an_accepted_session_stays_and_the_one_that_crosses_it_ends() {
    for (a, b) in [(0, 1), (1, 0)] {
        let mut world = World::new();
        let ours = world.connect(a, b);
        assert_eq!(world.deliver_next(4), [0x40, 0x41, 0x42, 0x43]);
        world.transmit();
        let ping = world.wire.pop_front().expect("a ping");
        let theirs = world.connect(b, a);
        assert_eq!(world.deliver_next(3), [0x40, 0x41, 0x42]);
        world.deliver(&ping);
        world.run(6_000);
        assert!(world.hosts[a].table.is_connected(ours), "{a}");
        assert_eq!(world.hosts[a].ends(), []);
        assert_eq!(world.hosts[b].ends(), [(theirs, End::Crossed)]);
        assert_eq!((world.hosts[0].table.len(), world.hosts[1].table.len()), (1, 1));
    }
}

/// Whichever number the new process has, it does not know the session that the old process has accepted.
#[test]
fn an_accepted_session_yields_to_a_new_process_of_the_peer() {
    for seed in 70..74 {
        let mut world = World::new();
        let ours = world.connect(0, 1);
        world.deliver_next(4);
        world.transmit();
        world.wire.clear();
        world.hosts[1].table = Sessions::new(Config::default(), ring(), [seed; 32]).unwrap();
        let theirs = world.connect(1, 0);
        world.run(1_000);
        assert!(world.hosts[1].table.is_connected(theirs), "{seed}");
        assert_eq!(world.hosts[0].ends(), [(ours, End::Crossed)]);
    }
}
