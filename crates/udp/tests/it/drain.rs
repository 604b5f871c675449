//! Hosts that drain: peers are told, outstanding ops end, and new ones are refused.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use apus_udp::{Access, ConnectError, Connection, End, Host, Request, SubmitError};

use crate::support::{PATIENCE, SHARED, config, host, until};

/// Returns a server and a client that are connected.
fn connected(server: apus_udp::Config) -> (Arc<Host>, Host, Connection, Connection) {
    let (server, client) = (Arc::new(host(server)), host(config(SHARED)));
    let here = client.connect(server.local_addr()).expect("connect");
    let there = server.accept().expect("accept");
    (server, client, here, there)
}

fn message(connection: &Connection, byte: u8) -> Result<apus_udp::Op, SubmitError> {
    connection.submit(Request::message(vec![byte]))
}

fn drain(host: &Arc<Host>) -> thread::JoinHandle<bool> {
    let host = Arc::clone(host);
    thread::spawn(move || host.drain(PATIENCE))
}

#[test]
fn a_host_that_drains_refuses_new_work_answers_what_it_has_and_closes() {
    let (server, client, here, there) = connected(config(SHARED));
    let region = client.register(vec![0; 8], Access::ALL).expect("region");
    message(&here, 1).expect("room").wait().expect("delivered");
    let drained = drain(&server);
    until("the client is told", || here.is_peer_draining());
    assert_eq!(message(&here, 2).err(), Some(SubmitError::PeerDraining));
    let write = there.submit(Request::write(region.key(), 0, vec![1]));
    assert_eq!(write.err(), Some(SubmitError::Draining));
    assert_eq!(server.connect(client.local_addr()).err(), Some(ConnectError::Draining));
    let other = host(config(SHARED));
    let refused = other.connect(server.local_addr()).err();
    assert_eq!(refused, Some(ConnectError::PeerDraining));
    // The application has not received the message yet, so the connection waits for its answer.
    assert_eq!((here.ended(), drained.is_finished()), (None, false));
    assert_eq!(there.receive().expect("the message").bytes[..], [1]);
    message(&there, 3).expect("an answer is no new work").wait().expect("delivered");
    assert_eq!(here.receive().expect("the answer").bytes[..], [3]);
    assert!(drained.join().expect("no panic"));
    assert_eq!(there.ended(), Some(End::ClosedHere));
    until("the client hears of the end", || here.ended() == Some(End::ClosedByPeer));
    // No connection is open any more, so a second call returns at once.
    assert!(server.drain(Duration::ZERO) || server.drain(PATIENCE));
}

#[test]
fn outstanding_ops_of_peers_end_before_their_connection() {
    let mut settings = config(SHARED);
    settings.max_queued_messages = 1;
    let (server, _client, here, there) = connected(settings);
    // The server has room for one of the messages, and the client repeats the others.
    let sent: Vec<_> = (0..4).map(|n| message(&here, n).expect("room")).collect();
    until("the first has arrived", || {
        server.stats().any(|s| s.payload_received.load(std::sync::atomic::Ordering::Relaxed) > 0)
    });
    let drained = drain(&server);
    until("the client is told", || here.is_peer_draining());
    for _ in 0..4 {
        there.receive().expect("a message");
    }
    for op in sent {
        op.wait().expect("delivered");
    }
    assert!(drained.join().expect("no panic"));
}

#[test]
fn a_drain_that_takes_too_long_leaves_connections_to_stop() {
    let (server, _client, here, _there) = connected(config(SHARED));
    message(&here, 1).expect("room").wait().expect("delivered");
    assert!(!server.drain(Duration::from_millis(1)), "nobody has taken the message");
    assert_eq!(here.ended(), None);
    server.stop();
    until("the client hears of the end", || here.ended() == Some(End::ClosedByPeer));
}

#[test]
fn a_host_without_connections_drains_at_once() {
    let server = host(config(SHARED));
    assert!(server.drain(PATIENCE));
    let mut two = config(SHARED);
    two.engines = 2;
    assert!(host(two).drain(PATIENCE));
}
