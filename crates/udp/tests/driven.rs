//! How engines look at their sockets, driven in turn by one thread.

mod support;

use std::time::Duration;

use apus_cc::registry::build;
use apus_udp::{Access, Op, Request};
use support::pair::{Pair, submit};
use support::pattern;

#[test]
fn plain_looks_begin_with_single_datagrams_and_lose_neither_bytes_nor_delays() {
    let (pair, [connection, peer]) = Pair::connect(|_| ());
    let region = pair.server.register(vec![0; 1 << 20], Access::ReadWrite).expect("memory");
    let key = region.key();

    // One by one, until both ends look plainly. Held off between two looks they count from the start.
    let mut rounds = 0;
    while pair.plain_looks().contains(&0) {
        let write = Request::write(key, rounds % 1000, vec![rounds as u8]);
        pair.until(1, submit(&connection, write)).expect("written");
        // Some looks in vain, so that what comes next has come just now; some of them read the clock.
        for _ in 0..10 {
            pair.client.drive();
            pair.server.drive();
        }
        rounds += 1;
        assert!(rounds < 1_000_000, "after {rounds} ops: {:?}", pair.plain_looks());
    }
    assert!(rounds >= 32, "64 single datagrams come first, not after {rounds} ops");

    // A datagram that nobody looks for waits, and that is endpoint delay.
    let wait = Duration::from_millis(20);
    let longest = || pair.stats()[0].endpoint_delay.quantile_us(1.0).expect("samples");
    let write = submit(&connection, Request::write(key, 0, vec![1; 64]));
    for _ in 0..10 {
        pair.client.drive();
    }
    std::thread::sleep(wait);
    let [_, looks] = pair.plain_looks();
    pair.server.drive();
    // Held off until details were due, it looks in detail, and the kernel says so with the datagram.
    let plain = pair.plain_looks()[1] > looks;
    pair.until(1, write).expect("written");
    // The histogram's middle of a bucket, within a 64th.
    assert!(longest() > wait.as_secs_f64() * 1e6 * 63.0 / 64.0, "{} us, plain: {plain}", longest());

    // Many at once, which the kernel aggregates, and messages behind them.
    let bytes = pattern(1, 1 << 20);
    let write = submit(&connection, Request::write(key, 0, bytes.clone()));
    let messages: Vec<Op> = (0..100)
        .map(|n| submit(&connection, Request::message(pattern(n, 100 + n as usize))))
        .collect();
    pair.until(1, write).expect("written");
    for message in messages {
        pair.until(1, message).expect("delivered");
    }
    assert!(region.read(|stored| stored == bytes));
    let mut heard: Vec<_> = std::iter::from_fn(|| peer.try_receive().expect("open"))
        .map(|message| message.bytes.to_vec())
        .collect();
    heard.sort_by_key(Vec::len);
    assert_eq!(heard, (0..100).map(|n| pattern(n, 100 + n as usize)).collect::<Vec<_>>());
}

/// An algorithm that understands marks (RFC 3168) hears of each: whoever sends or receives packets that can be
/// marked looks for them, also if so far only bare acknowledgements came back.
#[test]
fn looks_are_not_plain_where_packets_can_be_marked() {
    let (pair, [connection, _peer]) = Pair::connect(|config| {
        config.algorithm = build("dctcp", None, &[]).expect("dctcp");
    });
    let region = pair.server.register(vec![0; 1000], Access::Write).expect("memory");
    for _ in 0..2000 {
        let write = Request::write(region.key(), 0, vec![1; 64]);
        pair.until(1, submit(&connection, write)).expect("written");
        for _ in 0..10 {
            pair.client.drive();
            pair.server.drive();
        }
    }
    assert_eq!(pair.plain_looks(), [0, 0]);
}
