//! Two engines that one thread drives in turn, so that what each finds in its socket is known.

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use apus_cc::registry::build;
use apus_udp::{Access, Config, Connection, Host, Mode, Op, Request, Stats};
use support::{config, host, pattern};

/// Rounds without progress that are too many: each takes a microsecond and more.
const TOO_MANY: usize = 50_000_000;

struct Pair {
    client: Host,
    server: Host,
}

impl Pair {
    /// Two hosts and a connection; what `configure` says holds for both.
    fn connect(configure: impl Fn(&mut Config)) -> (Self, [Connection; 2]) {
        let [client, server] = [(); 2].map(|()| {
            let mut config = config(Mode::Inline);
            configure(&mut config);
            host(config)
        });
        let pair = Self { client, server };
        let connection =
            pair.until(1, pair.client.connect_async(pair.server.local_addr(), 1, None));
        let connection = connection.expect("a server");
        let accept = || {
            pair.client.drive();
            pair.server.drive();
            pair.server.try_accept()
        };
        let peer = std::iter::repeat_with(accept).take(TOO_MANY).flatten().next();
        (pair, [connection, peer.expect("a client")])
    }

    /// Drives both, the client `steps` times as often, until a future of the client's is done.
    fn until<T>(&self, steps: usize, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..TOO_MANY {
            for _ in 0..steps {
                // Polling drives the client.
                if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                    return value;
                }
            }
            self.server.drive();
        }
        panic!("no progress");
    }

    fn stats(&self) -> [&Stats; 2] {
        [&self.client, &self.server].map(|host| host.stats().next().expect("an engine"))
    }

    fn plain_looks(&self) -> [u64; 2] {
        self.stats().map(|stats| stats.plain_looks.load(Ordering::Relaxed))
    }
}

fn submit(connection: &Connection, request: Request) -> Op {
    connection.submit(request).expect("room")
}

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

/// An acknowledgement says of the newest 128 packets which have come (`apus_wire`, the body of an ACK), so
/// that a longer batch takes several.
#[test]
fn a_long_batch_is_acknowledged_while_it_is_read() {
    let (pair, [connection, _peer]) = Pair::connect(|config| {
        config.max_mtu = 1500;
        // Timeouts are the machine's: a thread that was held off.
        let settings = [("window", "256"), ("min_rto", "60s"), ("initial_rto", "60s")];
        config.algorithm = build("constant", None, &settings).expect("constant");
    });
    let region = pair.server.register(vec![0; 1 << 20], Access::Write).expect("memory");
    for round in 0..10 {
        let bytes = pattern(round, 1 << 20);
        let write = submit(&connection, Request::write(region.key(), 0, bytes.clone()));
        // Enough steps for the whole window, of which one step sends 64 packets.
        pair.until(20, write).expect("written");
        assert!(region.read(|stored| stored == bytes));
    }
    let (_, counters) = connection.flow_state(0).expect("open");
    assert!(counters.packets_sent >= 10 * (1 << 20) / 1500);
    assert_eq!(counters.fast_losses, 0, "{counters:?}");
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
