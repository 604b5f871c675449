//! Hosts whose peer is restarted during ops, over a network that loses, duplicates, reorders and corrupts datagrams (1 %
//! each). Every op ends once: as done, and then all its bytes are present; as not sent, and then none of its bytes is
//! present; or as unknown.
//!
//! This run is short; `APUS_RESTARTS=1000 cargo test --release -p apus-udp --test it restart` is a long run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::support::{Faults, PATIENCE, Random, Relay, SHARED, host, pattern, steady, until};
use apus_udp::session::KeyRing;
use apus_udp::{
    Access, Completion, Connection, End, Host, OpError, OpResult, Region, Request, async_channel,
};
use apus_units::Span;

const FAULTS: Faults = Faults { loss: 10, duplication: 10, corruption: 10, reordering: 10 };
/// Number of writes per round, each to a slot of its own. The number of messages is the same.
const WRITES: u64 = 60;
const PLACE: usize = 8_000;

/// A process that serves until it is cut off.
struct Server {
    host: Host,
    region: Region,
}

impl Server {
    fn start(insecure: bool) -> Self {
        let host = host(settings(insecure));
        let memory = vec![0; WRITES as usize * PLACE];
        let region = host.register(memory, Access::ALL).expect("region");
        Self { host, region }
    }
}

fn settings(insecure: bool) -> apus_udp::Config {
    let mut settings = steady(SHARED);
    if insecure {
        settings.keys = KeyRing::insecure();
    }
    // A relay has no buffer for jumbo bursts, and a busy machine loses datagrams that it cannot buffer.
    settings.max_mtu = 1500;
    settings.session.suspect_timeout = Span::from_ms(300);
    // If all ops have ended before the restart, the client notices the restart after this time.
    settings.session.keepalive = Span::from_ms(300);
    settings
}

/// Returns the bytes of op `n`, which is a write (even) or a message (odd).
fn bytes(round: u64, n: u64) -> Vec<u8> {
    // No byte is 0, so that bytes that were not written can be recognised.
    let length = 1 + ((round * 131 + n) * 977) as usize % (PLACE - 1);
    pattern(round * 1000 + n, length).iter().map(|byte| byte | 1).collect()
}

fn submit(
    here: &Connection,
    region: &Region,
    queue: &async_channel::Sender<Completion>,
    round: u64,
) {
    for n in 0..2 * WRITES {
        let bytes = bytes(round, n);
        let request = if n.is_multiple_of(2) {
            Request::write(region.key(), n / 2 * PLACE as u64, bytes)
        } else {
            Request::message(bytes)
        };
        here.submit_queued(0, request, queue, n).expect("room");
    }
}

/// Compares the region of a server that was cut off with the ends of the writes.
fn check_writes(region: &Region, ends: &BTreeMap<u64, OpResult>, round: u64) {
    region.read(|memory| {
        for (n, end) in ends.iter().filter(|(n, _)| n.is_multiple_of(2)) {
            let bytes = bytes(round, *n);
            let place = &memory[*n as usize / 2 * PLACE..][..PLACE];
            assert!(place[bytes.len()..].iter().all(|&byte| byte == 0), "op {n}: beyond its end");
            match end {
                Ok(_) => assert!(place.starts_with(&bytes), "op {n} is done"),
                Err(OpError::NotSent(_)) => {
                    assert!(place.iter().all(|&byte| byte == 0), "op {n} was not sent");
                }
                // Nothing, a part or all was written: each byte is either right or 0.
                Err(OpError::Unknown(_)) => {
                    let right = place.iter().zip(&bytes).all(|(&is, &sent)| is == 0 || is == sent);
                    assert!(right, "op {n} is unknown");
                }
                Err(error) => panic!("op {n}: {error}"),
            }
        }
    });
}

/// Compares the messages that a cut-off server has received with the ends of the messages.
fn check_messages(there: &Connection, ends: &BTreeMap<u64, OpResult>, round: u64) {
    let mut received: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    while let Ok(Some(message)) = there.try_receive() {
        *received.entry(message.bytes.to_vec()).or_default() += 1;
    }
    for (n, end) in ends.iter().filter(|(n, _)| !n.is_multiple_of(2)) {
        match (received.remove(&bytes(round, *n)), end) {
            (Some(1), Ok(_) | Err(OpError::Unknown(_))) | (None, Err(_)) => {}
            (count, end) => panic!("message {n} came {count:?} times and ended as {end:?}"),
        }
    }
    assert!(received.is_empty(), "messages that nobody sent");
}

#[test]
fn a_restart_under_way_leaves_every_op_with_one_end_that_is_true() {
    let restarts: u64 =
        std::env::var("APUS_RESTARTS").map_or(4, |text| text.parse().expect("a number"));
    let mut random = Random(8);
    let (mut done, mut unknown) = (0, 0);
    for insecure in [false, true] {
        let client = host(settings(insecure));
        let mut server = Server::start(insecure);
        let relay = Relay::new(server.host.local_addr(), FAULTS, 42);
        for round in 0..restarts {
            let here = client.connect(relay.address).expect("connect");
            let there = server.host.accept().expect("accept");
            let (queue, ends) = async_channel::bounded(2 * WRITES as usize);
            let next = Server::start(insecure);
            // The server is cut off after some of about 360 datagrams, with a window of 16 of them unanswered.
            relay.cut_after(20 + random.next() as usize % 200);
            submit(&here, &server.region, &queue, round);
            let mut ended = BTreeMap::new();
            let mut note = |end: Completion| {
                assert!(ended.insert(end.user, end.result).is_none(), "op {} ends twice", end.user);
            };
            until("the server is cut off", || relay.is_cut());
            // The new server does not know the session.
            relay.redirect(next.host.local_addr());
            let old = std::mem::replace(&mut server, next);
            let from = Instant::now();
            for _ in 0..2 * WRITES {
                match ends.try_recv() {
                    Ok(end) => note(end),
                    Err(_) => break,
                }
            }
            while here.ended().is_none() || !ends.is_empty() {
                ends.try_recv().into_iter().for_each(&mut note);
                assert!(from.elapsed() < PATIENCE, "the restart is not found out");
                std::thread::sleep(Duration::from_micros(100));
            }
            // The last completions may arrive right after the end of the connection.
            while ended.len() < 2 * WRITES as usize {
                let end = ends.try_recv();
                assert!(from.elapsed() < PATIENCE, "ops without an end");
                match end {
                    Ok(end) => {
                        assert!(
                            ended.insert(end.user, end.result).is_none(),
                            "twice: {}",
                            end.user
                        );
                    }
                    Err(_) => std::thread::sleep(Duration::from_micros(100)),
                }
            }
            assert_eq!(here.ended(), Some(End::PeerRestarted));
            let Server { host, region } = old;
            check_messages(&there, &ended, round);
            drop((there, host));
            check_writes(&region, &ended, round);
            done += ended.values().filter(|end| end.is_ok()).count();
            let is_unknown = |end: &&OpResult| matches!(end, Err(OpError::Unknown(_)));
            unknown += ended.values().filter(is_unknown).count();
            assert!(ends.try_recv().is_err(), "no op ends twice");
        }
    }
    assert!(done > 0 && unknown > 0, "{done} done, {unknown} unknown");
}
