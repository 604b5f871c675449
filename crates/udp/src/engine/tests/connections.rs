//! Connections: refused requests, reasons for failed attempts, and limits.

use apus_cc::FlowInfo;
use apus_units::FlowId;

use super::*;
use crate::connection_state::Message;
use crate::error::HandshakeFault;
use crate::message_receiver::{Attach, MessageReceiver};
use crate::session::{Cipher, SharedKey};

fn request(host: &VirtualHost, request: ConnectRequest) {
    host.engine.mailbox.post(Command::Connect(request));
}

/// Returns the error of a request for a connection of `classes` from 10.0.0.1 to `peer`.
fn refused(config: &Config, peer: SocketAddr, classes: Vec<u8>) -> ConnectError {
    let mut host = VirtualHost::new([10, 0, 0, 1], config);
    let (reply, receiver) = oneshot::channel();
    request(&host, ConnectRequest { peer, classes, towards: Towards::Any, reply });
    host.engine.step(true);
    receiver.try_recv().expect("answered at once").map(drop).expect_err("refused")
}

#[test]
fn impossible_requests_are_refused_with_the_value_and_the_limit() {
    let peer = ([10, 0, 0, 2], 7000).into();
    let mut few = config();
    few.max_flows = 4;
    let error = refused(&few, peer, vec![0; 5]).to_string();
    assert!(error.contains("5 flows") && error.contains("1 to 4"), "{error}");
    assert!(matches!(refused(&few, peer, vec![]), ConnectError::Request(_)));
    let error = refused(&config(), peer, vec![0, 8]).to_string();
    assert!(error.contains("class 8") && error.contains("0 to 7"), "{error}");
    let v6 = "[2001:db8::1]:7000".parse().expect("an address");
    assert!(matches!(refused(&config(), v6, vec![0]), ConnectError::Family { .. }));
}

/// A receiver that fails the test if it gets a message.
struct Never;

impl MessageReceiver for Never {
    fn receive(&mut self, _: Message) {
        unreachable!("a message of another connection");
    }

    fn ended(&mut self, end: End) {
        assert_eq!(end, End::Silent);
    }
}

/// Slots of sessions are reused, and after 4096 sessions their numbers too. Here an ended connection has the number of a live
/// one: requests of its handle do not reach the live connection.
#[test]
fn the_handle_of_an_ended_connection_asks_nothing_of_another() {
    let mut pair = Pair::connect(&config());
    let live = &pair.server.state;
    let old = ConnectionState::new(
        live.session,
        live.peer,
        PeerIdentity::default(),
        Arc::clone(&live.engine),
        live.limits,
        1,
        None,
    );
    old.set_ended(End::Silent);
    let old = Arc::new(old);
    let (_sender, queued) = async_channel::unbounded();
    let attach = Attach::new(Box::new(Never), Arc::clone(&old), queued);
    let (answer, state) = oneshot::channel();
    for command in [
        ConnectionCommand::Attach(attach),
        ConnectionCommand::Inspect { flow: 0, reply: answer },
        ConnectionCommand::Close { closed: None },
    ] {
        pair.server.mailbox.ask(&old, command);
    }
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(100).into()));
    pair.run(Span::from_ms(1));
    message.try_recv().expect("ended").expect("delivered");
    pair.server.messages.try_recv().expect("to the receiver of its connection");
    assert!(matches!(state.try_recv(), Err(oneshot::TryRecvError::Disconnected)));
    assert_eq!((pair.client.state.ended(), pair.server.state.ended()), (None, None));
}

/// A clock of 2^64 ps ends after 213.5 days.
#[test]
fn an_engine_stops_before_its_clock_ends() {
    let mut pair = Pair::connect(&config());
    let now = Time::ZERO + Span::from_secs(213 * 86_400);
    pair.hosts[0].engine.network.now.set(now);
    pair.hosts[0].engine.step(true);
    pair.hosts[0].engine.step(true);
    assert_eq!(pair.client.state.ended(), Some(End::Stopped));
    pair.run(Span::from_ms(1));
    assert_eq!(pair.server.state.ended(), Some(End::ClosedByPeer));
}

#[test]
fn a_silent_address_fails_after_the_handshake_timeout_and_probes_name_the_reason() {
    for (reach, expected) in [
        (libc::ECONNREFUSED, ConnectError::PortClosed),
        (libc::EHOSTUNREACH, ConnectError::NoRoute),
        (libc::EACCES, ConnectError::NoAnswer),
    ] {
        let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config()));
        hosts[0].engine.network.reach.set(reach);
        let absent = VirtualHost::new([10, 0, 0, 3], &config());
        let answer = hosts[0].connect(&absent);
        run(&mut hosts, Span::from_ms(4_990));
        assert!(matches!(answer.try_recv(), Err(oneshot::TryRecvError::Empty)));
        run(&mut hosts, Span::from_ms(20));
        let error = answer.try_recv().expect("answered").map(drop).expect_err("nobody answers");
        assert_eq!(error, expected);
        // Probes are sent after 0.1, 0.5 and 2.1 s; the fourth would follow 6.4 s later.
        assert_eq!(hosts[0].engine.network.probes.get(), 3);
        assert!(hosts[0].engine.protocol.connections.is_empty());
    }
}

#[test]
fn a_full_backlog_refuses_peers_until_the_application_accepts() {
    let mut config = config();
    config.max_unaccepted = 1;
    let mut hosts = [1, 2, 3].map(|n| VirtualHost::new([10, 0, 0, n], &config));
    let first = hosts[0].connect(&hosts[2]);
    run(&mut hosts, Span::from_ms(1));
    let _first = first.try_recv().expect("answered").expect("a slot is free");
    let second = hosts[1].connect(&hosts[2]);
    run(&mut hosts, Span::from_ms(1));
    let error = second.try_recv().expect("answered").map(drop).expect_err("no slot");
    assert_eq!(error, ConnectError::Refused);
    let _accepted = hosts[2].accepted.try_recv().expect("the first").connection;
    let third = hosts[1].connect(&hosts[2]);
    run(&mut hosts, Span::from_ms(1));
    third.try_recv().expect("answered").map(drop).expect("a slot is free again");
}

#[test]
fn a_new_request_replaces_an_abandoned_one_to_the_same_peer() {
    let mut host = VirtualHost::new([10, 0, 0, 1], &config());
    let absent = VirtualHost::new([10, 0, 0, 2], &config());
    let first = host.connect(&absent);
    host.engine.step(true);
    let second = host.connect(&absent);
    host.engine.step(true);
    let error = second.try_recv().expect("answered").map(drop).expect_err("the first goes on");
    assert_eq!(error, ConnectError::Exists);
    drop(first);
    let third = host.connect(&absent);
    host.engine.step(true);
    assert!(matches!(third.try_recv(), Err(oneshot::TryRecvError::Empty)), "the handshake runs");
}

#[test]
fn rfc_8899_a_path_is_probed_and_packets_become_longer() {
    let mut config = config();
    config.max_mtu = 9000;
    let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config));
    for host in &hosts {
        host.engine.network.mtu.set(Some(9000));
    }
    let answer = hosts[0].connect(&hosts[1]);
    run(&mut hosts, Span::from_ms(10));
    let client = answer.try_recv().expect("answered").expect("connected");
    let _server = hosts[1].accepted.try_recv().expect("accepted");
    let _message = submit(&client, OpKind::Message, Buffers::Payload(bytes(8_000).into()));
    hosts[0].engine.step(true);
    let sent = hosts[0].engine.network.sent.borrow();
    assert_eq!(sent.iter().map(|burst| burst.datagrams.len()).collect::<Vec<_>>(), [1]);
}

/// The server's kernel knows of a smaller path MTU when the connection begins. This limits the server's packets until the
/// kernel is asked again, and does not limit the client's packets.
#[test]
fn what_a_kernel_knows_of_its_path_bounds_one_direction_for_ten_minutes() {
    let mut config = config();
    config.max_mtu = 9000;
    let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config));
    for (host, mtu) in hosts.iter().zip([9000, 1400]) {
        host.engine.network.mtu.set(Some(mtu));
    }
    let answer = hosts[0].connect(&hosts[1]);
    run(&mut hosts, Span::from_ms(10));
    let client = answer.try_recv().expect("answered").expect("connected");
    let server = hosts[1].accepted.try_recv().expect("accepted").connection;
    let datagrams = |hosts: &mut [VirtualHost; 2], n: usize, opened: &Opened| {
        let message = submit(opened, OpKind::Message, Buffers::Payload(bytes(8_000).into()));
        hosts[n].engine.step(true);
        let sent = hosts[n].engine.network.sent.borrow();
        let count = sent.iter().map(|burst| burst.datagrams.len()).sum::<usize>();
        drop(sent);
        run(hosts, Span::from_ms(10));
        message.try_recv().expect("ended").expect("delivered");
        count
    };
    assert_eq!(datagrams(&mut hosts, 0, &client), 1);
    assert!(datagrams(&mut hosts, 1, &server) >= 6);
    hosts[1].engine.network.mtu.set(Some(9000));
    run(&mut hosts, Span::from_secs(601));
    assert_eq!(datagrams(&mut hosts, 1, &server), 1);
}

/// A probe that finds no room would count as a probe that was lost on the path.
#[test]
fn probes_wait_for_room_and_none_is_lost_meanwhile() {
    let mut config = config();
    config.max_mtu = 9000;
    let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config));
    for host in &hosts {
        host.engine.network.mtu.set(Some(9000));
    }
    let answer = hosts[0].connect(&hosts[1]);
    // Runs until the connection is open, before its first probe is sent.
    while answer.try_recv().is_err() {
        for (i, j) in [(0, 1), (1, 0)] {
            let engine = &mut hosts[i].engine;
            let now = engine.network.now();
            engine.take_commands();
            engine.poll_socket();
            engine.protocol.handle_session_events(now, &engine.network);
            engine.send(now);
            let [to, from] = [j, i].map(|host| &hosts[host].engine.network);
            to.deliver_from(from);
        }
    }
    let engine = &mut hosts[0].engine;
    let far = Time::ZERO + Span::from_secs(1000);
    let mut probes = |now, room| {
        let Protocol { connections, ops, .. } = &mut engine.protocol;
        connections.due_probes(now, ops, &engine.network, room)
    };
    for round in 0..20 {
        assert!(probes(far + Span::from_ms(round), 0).is_empty());
    }
    let probe = probes(far + Span::from_ms(20), 64).pop().expect("due since then");
    assert!(probe.length > 8000, "of the length that is tried first: {}", probe.length);
}

/// A Hello under an unknown key arrives every millisecond for a second.
#[test]
fn dropped_handshakes_are_noted_a_hundred_times_per_second_at_most() {
    let of = |key: u8| {
        let mut config = config();
        config.keys = KeyRing::new([SharedKey::new([key; 32])]).expect("a key");
        VirtualHost::new([10, 0, 0, key], &config)
    };
    let (mut host, mut stranger) = (of(1), of(2));
    let _answer = stranger.connect(&host);
    stranger.engine.step(true);
    let burst = stranger.engine.network.sent.take().pop().expect("a Hello");
    let from = stranger.engine.network.address(0);
    let mut notes = 0;
    for _ in 0..1000 {
        host.engine.network.put_datagram(from, 0, burst.datagrams[0].clone());
        while host.engine.step(true) {}
        while let Some(note) = host.engine.mailbox.status.take_note() {
            assert_eq!((note.from, note.fault), (from, HandshakeFault::UnknownKey));
            notes += 1;
        }
        let now = host.engine.network.now.get();
        host.engine.network.now.set(now + Span::from_ms(1));
    }
    assert_eq!(notes, 100);
}

/// Changes every bit of the packets of a sealed write, one at a time.
#[test]
fn no_changed_bit_of_a_sealed_write_reaches_its_region() {
    for cipher in Cipher::available() {
        let mut config = config();
        config.keys = KeyRing::new([SharedKey::new([1; 32])]).expect("a key");
        config.session.cipher = cipher;
        let mut pair = Pair::connect(&config);
        let region = pair.register(1, vec![0; 100], Access::ALL);
        let payload = Buffers::Payload(bytes(100).into());
        let end = submit(&pair.client, write_to(region.key()), payload);
        while pair.hosts[0].engine.step(true) {}
        let [client, server] = &mut pair.hosts;
        let from = client.engine.network.local;
        let sent = client.engine.network.sent.borrow().clone();
        let datagrams: Vec<_> = sent.iter().flat_map(|burst| &burst.datagrams).collect();
        assert!(datagrams.iter().any(|datagram| datagram.len() > 100));
        for datagram in datagrams {
            for bit in 0..8 * datagram.len() {
                let mut changed = datagram.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                server.engine.network.put_datagram(from, 0, changed);
                while server.engine.step(true) {}
                assert!(region.read(|memory| memory == [0; 100]), "{cipher:?}, bit {bit}");
            }
        }
        pair.run(Span::from_ms(1));
        end.try_recv().expect("ended").expect("written");
        assert!(region.read(|memory| memory == bytes(100)));
    }
}

/// Host 1 requests a session, and restarts with the same numbers. Its new request replaces the earlier one, and is then
/// dropped because its address exceeds the rate limit: the datagram that ends the session is itself dropped. The next
/// connection of host 0 gets the same slot.
#[test]
fn the_end_of_a_session_is_handled_before_its_slot_is_used_again() {
    let mut config = config();
    config.session.handshake_rate = 4; // a further one within 250 ms
    let mut hosts = [1, 2, 3].map(|n| VirtualHost::new([10, 0, 0, n], &config));
    /// A process of host 1 with this seed requests a connection to host 0 at this time: Hello, Cookie, Init.
    fn ask(hosts: &mut [VirtualHost; 3], config: &Config, seed: u8, ms: u64) {
        hosts[1] = VirtualHost::seeded([10, 0, 0, 2], config, seed);
        hosts.iter().for_each(|host| {
            host.engine.network.now.set(Time::ZERO + Span::from_ms(ms));
        });
        drop(hosts[1].connect(&hosts[0]));
        for (from, to) in [(1, 0), (0, 1), (1, 0)] {
            hosts[from].engine.step(true);
            hosts[to].engine.network.deliver_from(&hosts[from].engine.network);
        }
    }
    for (seed, ms) in [(9, 4_800), (2, 4_900)] {
        ask(&mut hosts, &config, seed, ms);
        hosts[0].engine.step(true);
        hosts[0].engine.network.sent.take();
    }
    assert_eq!(hosts[0].engine.usage().connections, 2);
    // The secret of the cookies has changed by now.
    ask(&mut hosts, &config, 2, 5_000);
    hosts[0].engine.poll_socket();
    let dropped = hosts[0].engine.protocol.connections.sessions.counters().dropped_rate;
    assert_eq!(dropped, 1);
    let third = hosts[0].connect(&hosts[2]);
    hosts[0].engine.take_commands();
    hosts[0].engine.step(true);
    assert!(matches!(third.try_recv(), Err(oneshot::TryRecvError::Empty)), "it goes on");
    let usage = hosts[0].engine.usage();
    assert_eq!(
        (usage.connections, usage.flows),
        (2, 2),
        "that of the first process, and the third"
    );
}

/// Opens flows and closes every second one; returns the number of flows that remain open.
fn scatter(host: &mut VirtualHost, flows: usize) -> usize {
    let (endpoint, algorithm) = (&mut host.engine.protocol.ops.endpoint, config().algorithm);
    let mut open = || endpoint.open(FlowId::new(0), &algorithm, &FlowInfo::default());
    let flows: Vec<FlowId> = (0..flows).map(|_| open()).collect();
    flows.iter().skip(1).step_by(2).for_each(|&flow| endpoint.release(Time::ZERO, flow));
    flows.len().div_ceil(2)
}

/// A hello names flows in at most 33 runs of numbers. At one of the sides, enough flows have been closed to make more runs.
#[test]
fn a_connection_of_many_flows_opens_although_the_numbers_of_closed_flows_are_scattered() {
    for side in 0..2 {
        let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config()));
        let others = scatter(&mut hosts[side], 68);
        let answer = hosts[0].connect_by(40, &hosts[1]);
        run(&mut hosts, Span::from_ms(1));
        let _client = answer.try_recv().expect("answered").expect("connected");
        let endpoint = &mut hosts[side].engine.protocol.ops.endpoint;
        assert_eq!(endpoint.flows(), others + 40);
        // The reserved numbers are used again, in order.
        let mut next = || endpoint.open(FlowId::new(0), &config().algorithm, &FlowInfo::default());
        assert_eq!([next(), next()], [FlowId::new(1), FlowId::new(3)]);
    }
}

#[test]
fn the_search_for_numbers_of_flows_has_a_limit_and_leaves_nothing() {
    for side in 0..2 {
        let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config()));
        let others = scatter(&mut hosts[side], 4_200);
        let answer = hosts[0].connect_by(40, &hosts[1]);
        run(&mut hosts, Span::from_ms(1));
        let error = answer.try_recv().expect("answered").map(drop).expect_err("too scattered");
        match side {
            0 => assert!(error.to_string().contains("too scattered"), "{error}"),
            _ => assert_eq!(error, ConnectError::Refused),
        }
        assert_eq!(hosts[side].engine.usage().flows, others);
        assert_eq!(hosts[1 - side].engine.usage().flows, 0);
    }
}

#[test]
fn keys_that_were_replaced_do_not_stay_in_an_engine() {
    let ring = |n| KeyRing::new([SharedKey::new([n; 32])]).expect("a key");
    let mut settings = config();
    settings.keys = ring(1);
    let is_left = settings.keys.watch();
    let mut host = VirtualHost::new([10, 0, 0, 1], &settings);
    drop(settings);
    assert!(is_left());
    host.engine.mailbox.post(Command::Keys(ring(2)));
    host.engine.step(true);
    assert!(!is_left());
}
