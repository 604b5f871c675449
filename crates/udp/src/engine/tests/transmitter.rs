//! The transmitter: order of packets, bursts, and the treatment of bursts that the kernel refuses.

use std::fs;

use crate::qlog::Qlog;

use super::*;

/// Returns a pair whose client has sealed no packet yet of a message of 20 full packets.
fn pair_with_message() -> (Pair, oneshot::Receiver<OpResult>) {
    let pair = Pair::connect(&config());
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(20_000).into()));
    (pair, message)
}

/// Steps the client once; returns the number of datagrams of each burst that it sent.
fn step(pair: &mut Pair) -> Vec<usize> {
    pair.hosts[0].engine.step(true);
    let sent = pair.hosts[0].engine.network.sent.borrow();
    sent.iter().map(|burst| burst.datagrams.len()).collect()
}

fn failures(pair: &Pair) -> u64 {
    let stats = &pair.hosts[0].engine.mailbox.status.stats;
    stats.send_failures.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn data_leaves_in_bursts_of_a_quarter_of_the_window() {
    let (mut pair, message) = pair_with_message();
    // The window is 64 packets.
    let bursts = step(&mut pair);
    assert_eq!(bursts[0], 16);
    pair.run(Span::from_ms(1));
    message.try_recv().expect("ended").expect("delivered");
}

#[test]
fn a_full_kernel_keeps_the_bursts_which_leave_later_in_order() {
    let (mut pair, message) = pair_with_message();
    pair.hosts[0].engine.network.errors.borrow_mut().extend([libc::EAGAIN; 2]);
    assert_eq!(step(&mut pair), [0; 0]);
    assert!(pair.hosts[0].engine.transmitter.is_blocked());
    let bursts = step(&mut pair);
    assert_eq!(bursts[0], 16, "the first burst first");
    assert!(!pair.hosts[0].engine.transmitter.is_blocked());
    pair.run(Span::from_ms(1));
    message.try_recv().expect("ended").expect("delivered");
    assert_eq!(failures(&pair), 0);
}

#[test]
fn a_burst_that_the_kernel_cannot_segment_leaves_apart_and_the_peer_gets_no_more_bursts() {
    let (mut pair, message) = pair_with_message();
    pair.hosts[0].engine.network.errors.borrow_mut().push_back(libc::EIO);
    let bursts = step(&mut pair);
    assert_eq!(bursts[..16], [1; 16], "each datagram of the burst by itself");
    pair.run(Span::from_ms(1));
    message.try_recv().expect("ended").expect("delivered");
    assert_eq!(failures(&pair), 0);
    let _again = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(20_000).into()));
    assert!(step(&mut pair).iter().all(|&datagrams| datagrams == 1));
}

#[test]
fn a_refusal_for_another_reason_loses_the_burst_and_keeps_segmentation() {
    let (mut pair, _message) = pair_with_message();
    // The errors apply to the burst and to its first datagram.
    pair.hosts[0].engine.network.errors.borrow_mut().extend([libc::EINVAL; 2]);
    step(&mut pair);
    assert_eq!(failures(&pair), 16);
    let flow = pair.hosts[0].engine.protocol.connections.flows(pair.client.state.session)[0];
    let route = pair.hosts[0].engine.protocol.connections.route(flow).expect("open");
    assert!(route.segmentation);
}

/// Before Linux 6.14, a burst with packets above the path's MTU is refused like one that cannot be segmented.
#[test]
fn a_burst_that_is_refused_for_its_length_shortens_packets() {
    let (mut pair, message) = pair_with_message();
    pair.hosts[0].engine.network.errors.borrow_mut().push_back(libc::EINVAL);
    pair.hosts[0].engine.network.mtu.set(Some(800));
    pair.hosts[0].engine.network.longest.set(800 - 28);
    step(&mut pair);
    let connections = &pair.hosts[0].engine.protocol.connections;
    let flow = connections.flows(pair.client.state.session)[0];
    assert!(connections.route(flow).expect("open").segmentation);
    pair.run(Span::from_secs(61)); // the timeout of the packets that were lost
    message.try_recv().expect("ended").expect("delivered");
}

/// The kernel believes a forged ICMP message down to 552 bytes, and refuses longer packets. The first packets are lost; the
/// others leave with 552 bytes, and the op ends.
#[test]
fn ops_end_though_the_kernel_refuses_packets_of_more_than_552_bytes() {
    let (mut pair, message) = pair_with_message();
    let network = &pair.hosts[0].engine.network;
    network.mtu.set(Some(552));
    network.longest.set(552 - 28);
    step(&mut pair);
    assert!(failures(&pair) > 0, "packets of 1280 bytes were refused");
    pair.run(Span::from_secs(61)); // the timeout of the packets that were lost
    message.try_recv().expect("ended").expect("delivered");
    let _again = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(20_000).into()));
    step(&mut pair);
    let sent = pair.hosts[0].engine.network.sent.borrow();
    let lengths = sent.iter().flat_map(|burst| &burst.datagrams).map(Vec::len);
    let longest = lengths.max().expect("datagrams");
    assert!((552 - 28 - 64..=552 - 28).contains(&longest), "{longest}");
}

#[test]
fn a_record_has_the_mtu_of_a_path_that_became_smaller() {
    let (mut pair, _message) = pair_with_message();
    let folder = std::env::temp_dir().join(format!("apus-qlog-mtu-{}", std::process::id()));
    let qlog = Qlog::new(&folder).expect("a folder");
    let session = pair.client.state.session;
    let engine = &mut pair.hosts[0].engine;
    engine.protocol.connections.begin_record(engine.network.now(), session, &qlog);
    engine.network.errors.borrow_mut().push_back(libc::EINVAL);
    engine.network.mtu.set(Some(800));
    engine.network.longest.set(800 - 28);
    step(&mut pair);
    drop(pair); // writes the record
    let file =
        fs::read_dir(&folder).expect("a folder").next().expect("a record").expect("an entry");
    let text = fs::read_to_string(file.path()).expect("a record");
    fs::remove_dir_all(&folder).expect("removed");
    assert!(text.contains(r#""name":"apus:mtu_updated","data":{"old":1280,"new":800"#), "{text}");
}

#[test]
fn swift_figure_2_a_report_of_the_departure_corrects_t1() {
    let mut config = config();
    config.departure_timestamps = true;
    let mut pair = Pair::connect(&config);
    let _message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(10).into()));
    step(&mut pair);
    let sent = pair.hosts[0].engine.network.sent.borrow_mut().pop().expect("a data packet");
    assert!(sent.stamped);
    // Packets left 30 us after the send; the acknowledgement arrives 50 us after it.
    pair.hosts[0].engine.network.sent.borrow_mut().push(sent.clone());
    let network = &pair.hosts[0].engine.network;
    network.departures.borrow_mut().push_back((0, sent.at + Span::from_us(30)));
    for host in &pair.hosts {
        host.engine.network.advance(Span::from_us(50));
    }
    let [client, server] = &mut pair.hosts;
    server.engine.network.deliver_from(&client.engine.network);
    server.engine.step(true);
    client.engine.network.deliver_from(&server.engine.network);
    client.engine.step(true);
    let stats = &client.engine.mailbox.status.stats;
    let rtt = stats.end_to_end_rtt.quantile_us(1.0).expect("a sample");
    assert!((rtt / 20.0 - 1.0).abs() < 1.0 / 64.0, "{rtt} us");
}

#[test]
fn datagrams_sent_apart_leave_the_numbers_of_departures_alone() {
    let mut config = config();
    config.departure_timestamps = true;
    let mut pair = Pair::connect(&config);
    let large = Buffers::Payload(bytes(20_000).into());
    let _large = submit(&pair.client, OpKind::Message, large);
    pair.hosts[0].engine.network.errors.borrow_mut().push_back(libc::EIO);
    step(&mut pair);
    let network = &pair.hosts[0].engine.network;
    let stamped = network.sent.borrow().iter().filter(|burst| burst.stamped).count();
    assert_eq!(network.sent.borrow()[..16].iter().filter(|burst| burst.stamped).count(), 0);
    // The kernel numbers the stamped bursts from 0, so the report with the last number is valid and the next one is not.
    let later = network.now.get() + Span::from_us(1);
    let last = u32::try_from(stamped).expect("few") - 1;
    network.departures.borrow_mut().extend([(last, later), (last + 1, later)]);
    step(&mut pair);
    let departures = &pair.hosts[0].engine.mailbox.status.stats.departures;
    assert_eq!(departures.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// The maximum number of answers waits. Unauthenticated senders can cause them at any rate.
#[test]
fn data_leaves_beside_answers_to_strangers() {
    let (mut pair, message) = pair_with_message();
    let engine = &mut pair.hosts[0].engine;
    let stranger = crate::session::Peer::from(SocketAddr::from(([10, 0, 0, 9], 9)));
    let provoke = |engine: &mut Engine<VirtualNetwork>, from: u64| {
        let sessions = &mut engine.protocol.connections.sessions;
        for number in from..from + 256 {
            let at = Time::ZERO + Span::from_ms(number);
            sessions.reply_unknown(at, stranger, 1, number as u32);
        }
        assert_eq!(sessions.waiting_replies(), 256);
    };
    provoke(engine, 0);
    let now = engine.take_commands().expect("the message");
    assert!(engine.send(now));
    let kinds = |engine: &Engine<VirtualNetwork>| {
        let sent = engine.network.sent.borrow();
        let answers = sent.iter().filter(|burst| burst.to == stranger).count();
        (answers, sent.len() - answers)
    };
    let (answers, others) = kinds(engine);
    assert_eq!(answers, 16);
    assert!(others > 0, "bursts of data");
    // Packets of sessions are sent as well.
    provoke(engine, 256 - 16);
    let session = pair.client.state.session;
    engine.protocol.connections.sessions.announce_draining(session);
    let mut packet = [0; crate::session::MAX_HANDSHAKE_BYTES];
    let sessions = &mut engine.protocol.connections.sessions;
    let mut next = || sessions.poll_transmit(now, &mut packet).map(|(to, _)| to == stranger);
    assert!([next(), next()].contains(&Some(false)));
    pair.run(Span::from_ms(1));
    message.try_recv().expect("ended").expect("delivered");
}

#[test]
fn many_received_datagrams_are_acknowledged_before_the_rest_is_handled() {
    let mut pair = Pair::connect(&config());
    let _message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(70_000).into()));
    while step(&mut pair).iter().sum::<usize>() < 40 {}
    let [client, server] = &mut pair.hosts;
    let Engine { transmitter, protocol, network, .. } = &mut server.engine;
    let bursts = client.engine.network.sent.take();
    for (n, mut datagram) in bursts.into_iter().flat_map(|burst| burst.datagrams).enumerate() {
        let meta = VirtualNetwork::meta(client.engine.network.local, datagram.len(), 0);
        let locked = &mut LockedRegion::new(None);
        let delivery = Delivery { meta: &meta, locked, outbox: transmitter.outbox() };
        protocol.handle_datagram(network.now(), delivery, &mut datagram, network);
        transmitter.on_received(1, protocol, network);
        assert_eq!(network.sent.borrow().len(), (n + 1) / 32, "after {} datagrams", n + 1);
    }
}
