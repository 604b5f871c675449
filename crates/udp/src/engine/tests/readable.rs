//! Like a real socket, which stays readable, the socket of a host in virtual time does not let the host rest while datagrams
//! wait.

use super::*;
use crate::session::Peer;
use crate::virtual_host::{Received, VirtualHost};

#[test]
fn a_host_rests_only_after_it_has_received_every_datagram() {
    let now = Time::ZERO + Span::from_secs(1);
    let mut host = VirtualHost::start(&config(), [1; 32], now).expect("valid");
    let datagram = Received {
        from: ([10, 0, 0, 9], 9).into(),
        port: 0,
        tos: 0,
        ttl: Some(64),
        segment: 3,
        stamp: None,
        bytes: vec![0; 3],
    };
    // A step receives at most four batches, and stops after a single datagram.
    for _ in 0..20 {
        host.put(0, vec![datagram.clone()]);
    }
    let mut steps = 0;
    while host.rest(0).is_none() {
        assert!(host.step(0), "a step without effect, although the host does not rest");
        steps += 1;
        assert!(steps <= 20);
    }
    assert_eq!(steps, 20, "one lone datagram per step");
}

#[test]
fn the_end_of_failures_removes_those_that_are_still_to_come() {
    let now = Time::ZERO + Span::from_secs(1);
    let host = VirtualHost::start(&config(), [1; 32], now).expect("valid");
    host.fail_sends(0, [libc::ENOBUFS; 3]);
    host.fail_receives(0, [libc::EIO; 3]);
    host.end_failures();
    let network = &host.engines[0].network;
    assert!(network.errors.borrow().is_empty() && network.receive_errors.borrow().is_empty());
}

/// Answers that belong to no session wait because the socket is full. There are more of them than one step sends.
#[test]
fn an_engine_rests_only_after_it_has_sent_every_answer_to_strangers() {
    let mut host = super::VirtualHost::new([10, 0, 0, 1], &config());
    host.engine.network.full.set(true);
    let stranger = Peer::from(SocketAddr::from(([10, 0, 0, 9], 9)));
    let sessions = &mut host.engine.protocol.connections.sessions;
    for number in 0..1000 {
        sessions.reply_unknown(Time::ZERO + Span::from_ms(number), stranger, 1, number as u32);
    }
    host.engine.step(true);
    assert!(host.engine.rest().is_some_and(|rest| rest.sending), "the socket is full");
    host.engine.network.full.set(false);
    host.engine.step(true);
    let waiting =
        |host: &super::VirtualHost| host.engine.protocol.connections.sessions.waiting_replies();
    assert!(waiting(&host) > 0, "not all fit into one step");
    while host.engine.rest().is_none() {
        assert!(host.engine.step(true), "a step without effect, although the engine does not rest");
    }
    assert_eq!(waiting(&host), 0);
}
