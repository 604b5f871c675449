//! Quotas of peers with keys of their own.

use apus_units::{FlowId, OpId, PacketNumber};
use apus_wire::{Body, Header, Segment, SegmentKind};

use super::*;
use crate::session::{Entry, EntryKey, KeyPair, SharedKey};

/// Settings of host `own`, which lists host `peer`.
fn identified(own: u8, peer: u8) -> Config {
    let pair = |n| KeyPair::new([n; 32]).expect("not zeros");
    let mut config = config();
    let keys = [
        EntryKey::Shared(SharedKey::new([42; 32])),
        EntryKey::Own(format!("host-{own}"), pair(own)),
        EntryKey::Peer(format!("host-{peer}"), pair(peer).public()),
    ];
    config.keys = KeyRing::of(keys.map(Entry::new)).expect("sound");
    config
}

/// A peer states how many ops it accepts itself. The server nevertheless accepts `max_ops` per flow from it, and reserves
/// memory for them.
#[test]
fn a_peer_is_charged_for_the_ops_that_it_may_have_whatever_it_accepts_itself() {
    let (mut server, mut client) = (identified(1, 2), identified(2, 1));
    server.quota_ops = Some(3 * u64::from(server.max_ops)); // three flows
    client.max_ops = 1;
    // Two processes of host 2.
    let mut hosts = [
        VirtualHost::new([10, 0, 0, 1], &server),
        VirtualHost::new([10, 0, 0, 2], &client),
        VirtualHost::new([10, 0, 0, 3], &client),
    ];
    let mut connect = |from: usize, flows: usize| {
        let answer = hosts[from].connect_by(flows, &hosts[0]);
        run(&mut hosts, Span::from_ms(1));
        answer.try_recv().expect("answered")
    };
    let _first = connect(1, 2).expect("within the quota");
    assert_eq!(connect(2, 2).map(drop), Err(ConnectError::Quota));
    connect(2, 1).map(drop).expect("within the quota");
}

/// Four processes of the same peer connect, and the server's application accepts no connection.
#[test]
fn a_peer_fills_a_quarter_of_the_backlog_and_is_told() {
    let (mut server, client) = (identified(1, 2), identified(2, 1));
    server.max_unaccepted = 8;
    let addresses = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3], [10, 0, 0, 4]];
    let mut hosts = addresses
        .map(|address| VirtualHost::new(address, if address[3] == 1 { &server } else { &client }));
    let connect = |hosts: &mut [VirtualHost; 4], from: usize| {
        let answer = hosts[from].connect(&hosts[0]);
        run(hosts, Span::from_ms(1));
        answer.try_recv().expect("answered")
    };
    let _first = connect(&mut hosts, 1).expect("within the quota");
    let _second = connect(&mut hosts, 2).expect("two of eight");
    assert_eq!(connect(&mut hosts, 3).map(drop), Err(ConnectError::Quota));
    let _accepted = hosts[0].accepted.try_recv().expect("the first").connection;
    connect(&mut hosts, 3).map(drop).expect("there is room again");
}

/// A member of the group makes one key pair after another, and opens a connection of two flows with each.
#[test]
fn the_ops_of_all_unlisted_keys_leave_room_for_listed_ones() {
    let mut server = identified(1, 2);
    server.session.accept_unlisted = true;
    (server.max_ops, server.max_flows) = (16, 2);
    // The quota of each key is 32. All unlisted keys have three times the default of a key, 4 times 32: twelve connections.
    server.quota_ops = Some(32);
    let client = |n: u8| VirtualHost::new([10, 0, 0, n], &identified(n, 1));
    let mut hosts: Vec<_> = [VirtualHost::new([10, 0, 0, 1], &server)].into();
    hosts.extend((20..33).map(client));
    hosts.push(client(2));
    let mut connect = |from: usize| {
        let answer = hosts[from].connect_by(2, &hosts[0]);
        run(&mut hosts, Span::from_ms(1));
        answer.try_recv().expect("answered")
    };
    let connected: Vec<_> = (1..=12).map(|from| connect(from).expect("room")).collect();
    assert_eq!(connect(13).map(drop), Err(ConnectError::Quota));
    connect(14).map(drop).expect("a listed peer");
    drop(connected);
}

/// A handshake takes its slot of the backlog with its first packet. A member of the group completes no handshake.
#[test]
fn connections_of_unlisted_keys_that_wait_leave_room_for_listed_ones() {
    let mut server = identified(1, 2);
    server.session.accept_unlisted = true;
    server.max_unaccepted = 8;
    let client = |n: u8| VirtualHost::new([10, 0, 0, n], &identified(n, 1));
    let mut hosts: Vec<_> = [VirtualHost::new([10, 0, 0, 1], &server)].into();
    hosts.extend((20..28).map(client));
    hosts.push(client(2));
    let mut connect = |from: usize| {
        let answer = hosts[from].connect_by(1, &hosts[0]);
        run(&mut hosts, Span::from_ms(1));
        answer.try_recv().expect("answered")
    };
    let answers: Vec<_> = (1..=8).map(&mut connect).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 6);
    connect(9).map(drop).expect("a listed peer");
}

/// The peer has no op outstanding, so the number of an op is also its place among those that the flow accepts. Each write sets a
/// byte of its own.
#[test]
fn the_last_op_within_the_limit_of_a_flow_is_taken_and_the_next_one_is_dropped() {
    let mut pair = Pair::connect(&config());
    let region = pair.register(1, vec![0; 2], Access::ALL);
    let max_ops = u64::from(config().max_ops);
    assert_eq!(max_ops, 1024);
    for (address, op) in [max_ops, max_ops - 1].into_iter().enumerate() {
        let segment = Segment {
            op: OpId::new(op),
            kind: SegmentKind::Write { region: region.key(), address: address as u64 },
            offset: 0,
            length: 1,
            op_length: 1,
            attached: None,
        };
        let body = Body::Data(segment);
        let header = Header { flow: FlowId::new(0), seq: PacketNumber::new(op), body };
        let [client, server] = &mut pair.hosts;
        let session = pair.client.state.session;
        let bytes = client.engine.seal(session, (&header).into(), &[7]).expect("connected");
        server.engine.network.put_datagram(client.engine.network.local, 0, bytes);
        while server.engine.step(true) {}
    }
    assert!(region.read(|memory| memory == [0, 7]));
}
