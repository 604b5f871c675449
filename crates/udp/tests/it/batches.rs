//! Long batches in a socket, which is what bulk transfers make: what is acknowledged while they are read.

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

/// Says that a test was skipped where it is seen: what a test that passes prints by `eprintln` is not.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A window of 256 packets, and no timer within a test: one that fires is the machine's, of a thread that was held
/// off.
fn timeless(config: &mut Config) {
    let settings = [("window", "256"), ("min_rto", "60s"), ("initial_rto", "60s")];
    config.algorithm = build("constant", None, &settings).expect("constant");
    config.session.handshake_timeout = Span::from_secs(600);
}

fn received(host: &Host) -> u64 {
    host.stats().map(|stats| stats.datagrams_received.load(Ordering::Relaxed)).sum()
}

/// An acknowledgement says of the newest 128 packets which have come (`apus_wire`, the body of an ACK), so
/// that a longer batch takes several.
#[test]
fn a_long_batch_is_acknowledged_while_it_is_read() {
    let (pair, [connection, _peer]) = Pair::connect(timeless);
    let region = pair.server.register(vec![0; 1000], Access::WRITE).expect("memory");
    let mut longest = 0;
    // A busy kernel may hand the window over in parts; then another round shows it.
    let from = Instant::now();
    for round in 0..=u8::MAX {
        if round >= 10 && (longest > 128 || longest <= 16 || from.elapsed() > PATIENCE) {
            break;
        }
        // Short ones, of which a whole window fits into any socket's buffer.
        let mut writes: Vec<Op> = (0..512)
            .map(|n| submit(&connection, Request::write(region.key(), n, vec![round; 1])))
            .collect();
        // The whole window, of which one step sends 64 packets, goes before the server looks.
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
    // By one look, without aggregates, the engine takes four datagrams, and in a step it looks four times.
    if longest <= 16 {
        return skipped("the kernel aggregates no datagrams (UDP_SEGMENT, UDP_GRO)");
    }
    assert!(longest > 128, "batches of no more than {longest} say nothing");
}

/// An initiator's flows learn their peers' numbers with the first packet under the new keys. If that comes at the
/// head of a long batch, as the answer to the ping was lost, what is acknowledged while the batch is read must bear
/// those numbers already.
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
    // The first flow has the number that a flow's peer has until it is known.
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

    // Its answer is lost.
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

    // The server does not say it again.
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
