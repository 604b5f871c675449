//! Ends of ops, connections and connection attempts that the other side causes: each end has its own name.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use crate::support;
use crate::support::hand::Hand;
use crate::support::pair::{Pair, TOO_MANY, submit};
use crate::support::{SHARED, config, drive, host, pattern, steady};
use apus_algorithms::registry::build;
use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{
    Access, Cause, Config, ConnectError, Connection, End, HandshakeFault, Host, Mode, OpError,
    Request,
};
use apus_units::Span;

/// Sets packets of 1500 B, a constant window of `packets`, and transport timeouts that do not expire within a test.
fn window(config: &mut Config, packets: &str) {
    let settings =
        [("window", packets), ("min_rto", "60s"), ("max_rto", "60s"), ("initial_rto", "60s")];
    config.algorithm = build("constant", None, &settings).expect("constant");
    config.max_mtu = 1500;
}

fn delivered(connection: &Connection) {
    submit(connection, Request::message(vec![1])).wait().expect("delivered");
}

#[test]
fn a_region_withdrawn_under_way_leaves_a_write_unknown_and_a_read_whole() {
    let (pair, [connection, peer]) = Pair::connect(|config| window(config, "16"));
    let bytes = pattern(1, 1 << 20);
    let [written, read] =
        [(); 2].map(|()| pair.server.register(bytes.clone(), Access::ALL).expect("memory"));
    let moved = |host: &Host| {
        host.stats().map(|stats| stats.payload_received.load(Ordering::Relaxed)).sum::<u64>()
    };
    for (region, host, request) in [
        (&written, &pair.server, Request::write(written.key(), 0, pattern(2, 1 << 20))),
        (&read, &pair.client, Request::read(read.key(), 0, 1 << 20)),
    ] {
        let before = moved(host);
        let op = submit(&connection, request);
        drive(&[&pair.client, &pair.server], "its first bytes", || moved(host) > before);
        region.withdraw();
        let end = pair.until(1, op);
        // At most one window of the 1 MiB was received before.
        if std::ptr::eq(region, &written) {
            assert_eq!(end.err(), Some(OpError::Unknown(Cause::Withdrawn)));
            assert!(moved(host) - before <= 2 * 16 * 1500, "it was not under way");
        } else {
            assert!(end.expect("answers that have begun go on").bytes == bytes);
        }
        drive(&[&pair.client, &pair.server], "nobody uses it", || region.is_free());
    }
    // The connection continues.
    let message = submit(&connection, Request::message(vec![7]));
    pair.until(1, message).expect("delivered");
    assert_eq!(peer.try_receive().expect("open").expect("a message").bytes[..], [7]);
}

#[test]
fn a_peer_that_falls_silent_leaves_unknown_what_was_sent_and_the_rest_not_sent() {
    let (pair, [connection, _peer]) = Pair::connect(|config| {
        window(config, "1");
        config.session.keepalive = Span::from_ms(500);
        config.session.idle_timeout = Span::from_secs(2);
    });
    let region = pair.server.register(vec![0; 100], Access::WRITE).expect("memory");
    let [sent, kept] =
        [(); 2].map(|()| submit(&connection, Request::write(region.key(), 0, vec![1; 100])));
    // No thread drives the server any more.
    drive(&[&pair.client], "it is found out", || connection.ended().is_some());
    assert_eq!(connection.ended(), Some(End::Silent));
    assert_eq!(sent.wait().err(), Some(OpError::Unknown(Cause::Ended(End::Silent))));
    assert_eq!(kept.wait().err(), Some(OpError::NotSent(Cause::Ended(End::Silent))));
}

#[test]
fn a_connection_whose_peer_connects_anew_is_replaced() {
    let [server, client] = [(); 2].map(|()| host(config(Mode::Inline)));
    let mut hand = Hand::new(server.local_addr());
    let mut connect = |lost: bool| {
        let here = hand.connect(&client, &server, 1);
        let mut there = None;
        drive(&[&client, &server], "a connection", || {
            hand.hand_on();
            hand.hand_back();
            there = there.take().or_else(|| server.try_accept());
            there.is_some()
        });
        if lost {
            // The server does not receive the close.
            here.close();
            assert!(!hand.take().is_empty());
        }
        (here, there.expect("accepted"))
    };
    let (_, first) = connect(true);
    assert_eq!(first.ended(), None);
    let (_here, second) = connect(false);
    assert_eq!((first.ended(), second.ended()), (Some(End::Replaced), None));
    assert_eq!(first.try_receive().err(), Some(End::Replaced));
}

#[test]
fn a_host_whose_application_accepts_nothing_refuses() {
    let mut settings = steady(SHARED);
    settings.max_unaccepted = 1;
    let (server, first, second) = (host(settings), host(steady(SHARED)), host(steady(SHARED)));
    let here = first.connect(server.local_addr()).expect("room for one");
    delivered(&here); // so the server knows that it is connected
    assert_eq!(second.connect(server.local_addr()).err(), Some(ConnectError::Refused));
    let _there = server.accept().expect("the first");
    second.connect(server.local_addr()).expect("there is room again");
}

#[test]
fn a_full_host_says_so_to_its_peers_and_its_own_application() {
    let mut settings = steady(SHARED);
    (settings.session.max_sessions, settings.session.max_pending) = (1, 1);
    let (full, other, third) = (host(settings), host(steady(SHARED)), host(steady(SHARED)));
    let here = other.connect(full.local_addr()).expect("room for one");
    delivered(&here);
    assert_eq!(third.connect(full.local_addr()).err(), Some(ConnectError::PeerFull));
    assert_eq!(full.connect(third.local_addr()).err(), Some(ConnectError::TooMany));
}

#[test]
fn of_two_hosts_that_connect_to_each_other_at_once_one_gets_the_others_connection() {
    let hosts = [(); 2].map(|()| host(config(Mode::Inline)));
    let [a, b] = &hosts;
    let mut context = Context::from_waker(Waker::noop());
    let mut asked = [
        pin!(a.connect_async(b.local_addr(), &[0], None)) as Pin<&mut dyn Future<Output = _>>,
        pin!(b.connect_async(a.local_addr(), &[0], None)),
    ];
    let mut answers = [None, None];
    for _ in 0..TOO_MANY {
        for (asked, answer) in asked.iter_mut().zip(&mut answers) {
            // Polling drives its host.
            if answer.is_none()
                && let Poll::Ready(ready) = asked.as_mut().poll(&mut context)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) {
            break;
        }
        for host in &hosts {
            host.drive();
        }
    }
    let answers = answers.map(|answer| answer.expect("an answer"));
    let (place, here) = match answers {
        [Ok(here), Err(ConnectError::Crossed)] => (1, here),
        [Err(ConnectError::Crossed), Ok(here)] => (0, here),
        other => panic!("{:?}", other.map(|answer| answer.map(drop))),
    };
    let mut there = None;
    drive(&[a, b], "the connection comes in at the other", || {
        there = there.take().or_else(|| hosts[place].try_accept());
        there.is_some()
    });
    let _message = submit(&here, Request::message(vec![3]));
    let there = there.expect("accepted");
    drive(
        &[a, b],
        "a message",
        || matches!(there.try_receive(), Ok(Some(message)) if message.bytes[..] == [3]),
    );
}

#[test]
fn connect_returns_ok_to_as_many_peers_as_the_host_has_room_for() {
    const ROOM: usize = 3;
    let server = host({
        let mut config = config(Mode::Inline);
        config.max_unaccepted = ROOM as u32;
        config
    });
    let clients: Vec<Host> = (0..10).map(|_| host(config(Mode::Inline))).collect();
    let address = server.local_addr();
    let mut context = Context::from_waker(Waker::noop());
    let mut asked: Vec<_> =
        clients.iter().map(|client| Box::pin(client.connect_async(address, &[0], None))).collect();
    let mut answers: Vec<Option<_>> = clients.iter().map(|_| None).collect();
    // The server receives all requests before the first of them is confirmed, because no client is driven meanwhile.
    drive(&[], "an answer for each", || {
        for (asked, answer) in asked.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(ready) = asked.as_mut().poll(&mut context)
            {
                *answer = Some(ready);
            }
        }
        while server.drive() {}
        answers.iter().all(Option::is_some)
    });
    let (kept, refused): (Vec<_>, Vec<_>) = answers.into_iter().flatten().partition(Result::is_ok);
    assert_eq!(kept.len(), ROOM);
    assert!(refused.into_iter().all(|end| end.err() == Some(ConnectError::Refused)));
    let accepted: Vec<Connection> = std::iter::from_fn(|| server.try_accept()).collect();
    assert_eq!(accepted.len(), ROOM, "they are there once their peers are connected");
    for connection in kept.into_iter().flatten() {
        let message = submit(&connection, Request::message(vec![1]));
        let mut message = pin!(message);
        let mut end = None;
        drive(&[&server], "a message arrives", || {
            let Poll::Ready(ready) = message.as_mut().poll(&mut context) else { return false };
            end = Some(ready);
            true
        });
        end.expect("an end").expect("delivered");
        assert_eq!(connection.ended(), None);
    }
    // Accepting a connection made room.
    let late = host(config(Mode::Inline));
    let mut asked = pin!(late.connect_async(address, &[0], None));
    drive(&[&server], "a connection", || asked.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_failed_connect_names_the_reason_here_or_at_the_peer() {
    let short = |keys: Option<KeyRing>| {
        let mut config = config(SHARED);
        config.keys = keys.unwrap_or(config.keys);
        config.session.handshake_timeout = Span::from_secs(2); // time for an answer on a busy machine
        host(config)
    };
    let client = short(None);
    let closed = std::net::UdpSocket::bind(support::any()).and_then(|s| s.local_addr());
    let closed = closed.expect("a port that is free");
    assert_eq!(client.connect(closed).err(), Some(ConnectError::PortClosed));
    let silent = std::net::UdpSocket::bind(support::any()).expect("a socket");
    let address = silent.local_addr().expect("bound");
    assert_eq!(client.connect(address).err(), Some(ConnectError::NoAnswer));
    let own = client.local_addr();
    let peer = "[::1]:48700".parse().expect("an address");
    assert_eq!(client.connect(peer).err(), Some(ConnectError::Family { peer, own }));

    let other = KeyRing::new([SharedKey::new([8; 32])]).expect("a key");
    for (keys, end, fault) in [
        (other, ConnectError::NoAnswer, HandshakeFault::UnknownKey),
        (KeyRing::insecure(), ConnectError::OtherMode, HandshakeFault::Insecure),
    ] {
        let (server, stranger) = (short(None), short(Some(keys)));
        assert_eq!(stranger.connect(server.local_addr()).err(), Some(end));
        let dropped = server.dropped_handshake().expect("it was noted");
        assert_eq!((dropped.from, dropped.fault), (stranger.local_addr(), fault));
        assert!(dropped.to_string().contains(&stranger.local_addr().to_string()));
    }
}

#[test]
fn a_peer_that_takes_no_answers_holds_a_region_only_until_it_is_revoked() {
    let (pair, [connection, _peer]) = Pair::connect(|config| window(config, "16"));
    let region = pair.server.register(vec![7; 1 << 20], Access::READ).expect("memory");
    let other = pair.server.register(vec![8; 100], Access::READ).expect("memory");
    let sent = || pair.stats()[1].payload_sent.load(Ordering::Relaxed);
    let read = submit(&connection, Request::read(region.key(), 0, 1 << 20));
    drive(&[&pair.client, &pair.server], "the first answers", || sent() > 0);
    // No thread drives the client any more, so it acknowledges nothing.
    region.withdraw();
    for _ in 0..1000 {
        pair.server.drive();
    }
    assert!(!region.is_free(), "its bytes may have to go again");
    region.revoke();
    drive(&[&pair.server], "it is free", || region.is_free());
    let end = pair.until(1, read);
    assert_eq!(end.err(), Some(OpError::Unknown(Cause::Withdrawn)));
    let read = submit(&connection, Request::read(other.key(), 0, 100));
    assert_eq!(pair.until(1, read).expect("the connection goes on").bytes, [8; 100]);
}

#[test]
fn a_region_is_free_once_its_host_is_gone_and_ends_are_errors() {
    let server = host(config(SHARED));
    let region = server.register(vec![0; 10], Access::READ).expect("memory");
    drop(server);
    assert!(!region.is_free(), "it is not withdrawn");
    region.withdraw();
    assert!(region.is_free());
    let error: Box<dyn std::error::Error> = End::Silent.into();
    assert_eq!(error.to_string(), "the peer was silent for too long");
}

#[test]
fn peers_go_on_reading_a_region_while_its_owner_looks_at_it() {
    let (server, client) = (host(config(SHARED)), host(config(SHARED)));
    let region = server.register(vec![3; 4096], Access::ALL).expect("memory");
    let connection = client.connect(server.local_addr()).expect("connect");
    let _there = server.accept().expect("a connection");
    region.read(|bytes| {
        let read = submit(&connection, Request::read(region.key(), 0, 4096)).wait();
        assert_eq!(read.expect("it is not held up").bytes, bytes);
    });
    submit(&connection, Request::write(region.key(), 0, vec![4])).wait().expect("done");
    assert_eq!(region.read(|bytes| bytes[0]), 4);
}
