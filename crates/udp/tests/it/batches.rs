//! Long batches in a socket, as bulk transfers cause them: acknowledgements are sent while they are read.

use std::future::Future;
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::support::hand::Hand;
use crate::support::pair::{Pair, TOO_MANY, submit};
use crate::support::{PATIENCE, config, host, pattern, until};
use apus_algorithms::registry::build;
use apus_udp::{Access, Config, Host, Mode, Op, Request};
use apus_units::Span;

/// Reports visibly that a test was skipped: the test harness hides `eprintln` output of tests that pass.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Sets a window of 256 packets, and timeouts that do not expire within a test. A timer that fires would be caused by the
/// machine, if it deschedules a thread.
fn timeless(config: &mut Config) {
    let settings =
        [("window", "256"), ("min_rto", "60s"), ("max_rto", "60s"), ("initial_rto", "60s")];
    config.algorithm = build("constant", None, &settings).expect("constant");
    config.session.handshake_timeout = Span::from_secs(600);
}

fn received(host: &Host) -> u64 {
    host.stats().map(|stats| stats.datagrams_received.load(Ordering::Relaxed)).sum()
}

/// An acknowledgement reports the newest 128 received packets (`apus_wire`, the body of an ACK), so a longer batch needs
/// several.
#[test]
fn a_long_batch_is_acknowledged_while_it_is_read() {
    let (pair, [connection, _peer]) = Pair::connect(timeless);
    let region = pair.server.register(vec![0; 1000], Access::WRITE).expect("memory");
    let mut longest = 0;
    // A busy kernel may deliver the window in parts; another round then delivers it as a whole.
    let from = Instant::now();
    for round in 0..=u8::MAX {
        if round >= 10 && (longest > 128 || longest <= 16 || from.elapsed() > PATIENCE) {
            break;
        }
        // Short writes, of which a whole window fits into any socket's buffer.
        let mut writes: Vec<Op> = (0..512)
            .map(|n| submit(&connection, Request::write(region.key(), n, vec![round; 1])))
            .collect();
        // The whole window is sent before the server polls. One step sends 64 of its packets.
        for _ in 0..20 {
            pair.client.drive();
        }
        for _ in 0..20 {
            let before = received(&pair.server);
            pair.server.drive();
            longest = longest.max(received(&pair.server) - before);
        }
        while let Some(write) = writes.pop() {
            pair.until(20, write).expect("written");
        }
        region.read(|stored| assert_eq!(stored[..512], [round; 512]));
    }
    let (_, counters) = connection.flow_state(0).expect("open");
    assert_eq!(counters.fast_losses, 0, "{counters:?}, batches of up to {longest}");
    // One poll without aggregates receives four datagrams, and a step polls four times.
    if longest <= 16 {
        return skipped("the kernel aggregates no datagrams (UDP_SEGMENT, UDP_GRO)");
    }
    assert!(longest > 128, "batches of no more than {longest} say nothing");
}

/// The flows of an initiator learn their peers' numbers with the first packet under the new keys. If the answer to the ping
/// was lost, that packet may be the head of a long batch. Acknowledgements that are sent while the batch is read must then
/// already carry those numbers.
#[test]
fn a_batch_that_opens_a_connection_is_acknowledged_to_the_right_flow_while_it_is_read() {
    let [server, client] = [(); 2].map(|()| {
        let mut config = config(Mode::Inline);
        timeless(&mut config);
        config.max_mtu = 1280; // the least, so that no probes of the path are among them
        host(config)
    });
    let region = client.register(vec![0; 45_000], Access::WRITE).expect("memory");
    let mut hand = Hand::new(server.local_addr());
    let mut context = Context::from_waker(Waker::noop());
    // The first flow has the same number as a flow's peer has until its number is known.
    let mut connecting = pin!(client.connect_async(hand.address(), &[0; 2], None));
    let peer = (0..TOO_MANY).find_map(|_| {
        // Polling drives the client.
        assert!(connecting.as_mut().poll(&mut context).is_pending());
        hand.hand_on();
        server.drive();
        let answers = hand.take_back();
        let accepted = server.try_accept();
        if accepted.is_none() {
            hand.give_back(&answers);
        }
        accepted
    });
    let peer = peer.expect("the server has heard the ping");

    // The answer to its ping is lost.
    let bytes = pattern(1, 45_000);
    let write = Request::write(region.key(), 0, bytes.clone());
    let mut write = pin!(peer.submit_to(1, write).expect("room"));
    for _ in 0..20 {
        server.drive();
    }
    let packets: Vec<_> = hand.take_back().into_iter().filter(|d| d.len() > 200).collect();
    // 45,000 B of payload in packets of 1280 B less headers.
    assert!((36..50).contains(&packets.len()), "{} packets", packets.len());
    assert!(
        connecting.as_mut().poll(&mut context).is_pending(),
        "nothing has shown that it is kept"
    );
    let before = received(&client);
    let together = hand.give_back_together(&packets);
    while together && received(&client) == before {
        client.drive();
    }
    if received(&client) - before < packets.len() as u64 {
        return skipped("the kernel aggregates no datagrams (UDP_SEGMENT, UDP_GRO)");
    }
    let Poll::Ready(Ok(_connection)) = connecting.as_mut().poll(&mut context) else {
        panic!("it is connected");
    };
    region.read(|stored| assert!(stored == bytes));

    // The server does not repeat its packets.
    let mut done = None;
    until("what came is acknowledged", || {
        client.drive();
        hand.hand_on();
        if let Poll::Ready(end) = write.as_mut().poll(&mut context) {
            done = Some(end);
        }
        done.is_some()
    });
    done.expect("an end").expect("written");
}
