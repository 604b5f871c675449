//! CPU time of a small round trip. One thread drives both ends, so neither waits for the other. The time is the sum of both
//! ends, with one empty poll each. Bare sockets with the same number of polls are measured for comparison.
//!
//! `round_trip --count N` runs N round trips of sealed writes without measurement, for profilers.

use core::hint::black_box;
use std::future::Future;
use std::net::{Ipv4Addr, UdpSocket};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Access, Bytes, Config, Connection, Host, Mode, Region, RegionKey, Request};
use criterion::{Criterion, criterion_group};

/// Length of a write in bytes.
const SMALL: usize = 64;

/// Two hosts and a connection between them.
struct Pair {
    _client: Host,
    server: Host,
    connection: Connection,
    _accepted: Connection,
    _region: Region,
    key: RegionKey,
    payload: Bytes,
}

impl Pair {
    fn connect(keys: &KeyRing) -> Self {
        let host = || {
            let bind = (Ipv4Addr::LOCALHOST, 0).into();
            let mut config = Config::new(bind, keys.clone()).expect("defaults");
            config.mode = Mode::Inline;
            Host::start(config).expect("a host")
        };
        let (client, server) = (host(), host());
        let connection = {
            let mut connecting = pin!(client.connect_async(server.local_addr(), &[0], None));
            let mut context = Context::from_waker(Waker::noop());
            loop {
                if let Poll::Ready(connection) = connecting.as_mut().poll(&mut context) {
                    break connection.expect("the server is there");
                }
                server.drive();
            }
        };
        let accepted = loop {
            client.drive();
            server.drive();
            if let Some(connection) = server.try_accept() {
                break connection;
            }
        };
        let region = server.register(vec![0; 4096], Access::WRITE).expect("memory");
        let key = region.key();
        let payload = Bytes::from(vec![7; SMALL]);
        Self {
            _client: client,
            server,
            connection,
            _accepted: accepted,
            _region: region,
            key,
            payload,
        }
    }

    fn round_trip(&self) {
        let request = Request::write(self.key, 0, self.payload.clone());
        let mut op = pin!(self.connection.submit(request).expect("room"));
        let mut context = Context::from_waker(Waker::noop());
        // Polling drives the client: it sends, and polls its socket once without a datagram.
        while op.as_mut().poll(&mut context).map(|end| end.expect("done")).is_pending() {
            self.server.drive();
        }
        self.server.drive(); // empty
    }
}

fn bare_round_trip(client: &UdpSocket, server: &UdpSocket, buffer: &mut [u8; SMALL]) {
    client.send(buffer).expect("sent");
    let _ = client.recv(buffer); // empty
    let (_, from) = server.recv_from(buffer).expect("it has come");
    server.send_to(buffer, from).expect("sent");
    client.recv(buffer).expect("it has come");
    let _ = server.recv_from(buffer); // empty
}

fn round_trips(c: &mut Criterion) {
    let mut group = c.benchmark_group("round trip of 64 B");
    let socket = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        socket
    };
    let (client, server) = (socket(), socket());
    client.connect(server.local_addr().expect("bound")).expect("loopback");
    let mut buffer = [7; SMALL];
    group.bench_function("bare UDP", |b| {
        b.iter(|| bare_round_trip(&client, &server, black_box(&mut buffer)));
    });
    for (name, keys) in [("sealed", sealed()), ("insecure", KeyRing::insecure())] {
        let pair = Pair::connect(&keys);
        group.bench_function(name, |b| b.iter(|| pair.round_trip()));
    }
    group.finish();
}

fn sealed() -> KeyRing {
    KeyRing::new([SharedKey::new([1; 32])]).expect("one key")
}

criterion_group!(benches, round_trips);

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--count").skip(1);
    if let Some(count) = arguments.next().map(|count| count.parse().expect("a number")) {
        let pair = Pair::connect(&sealed());
        (0..count).for_each(|_: u64| pair.round_trip());
        return;
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
