//! CPU time of a host per hostile datagram over sockets, system calls included. One thread sends a batch to a host in inline
//! mode, and then drives the host; only the second part is timed. The packets of a peer pass a relay, which can keep them.
//! Two cases of honest packets are included for comparison.

use std::future::Future;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use apus_algorithms::build;
use apus_udp::session::{self, KeyRing, Sessions, SharedKey};
use apus_udp::{Access, Config, Connection, Host, Mode, Op, Region, RegionKey, Request};
use apus_units::{FlowId, PacketNumber, Time};
use apus_wire::{Body, Header, SIGNAL_BYTES, Signal};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Number of datagrams sent before the host is driven; fewer than its socket holds.
const BATCH: u64 = 64;

fn ring(secret: u8) -> KeyRing {
    KeyRing::new([SharedKey::new([secret; 32])]).expect("one key")
}

fn host() -> Host {
    let mut config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), ring(1)).expect("defaults");
    config.mode = Mode::Inline;
    // No congestion control, like a peer that wants to cost as much as it can.
    config.algorithm = build("constant", None, &[("window", "64")]).expect("constant");
    Host::start(config).expect("a host")
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

/// Returns the first packet of a handshake under a key.
fn hello(keys: KeyRing) -> Vec<u8> {
    let mut table = Sessions::new(session::Config::default(), keys, [9; 32]).expect("defaults");
    let key = table.key_ids().next().expect("a key");
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    table.connect(Time::from_ps(1), peer, key, b"").expect("room");
    let mut hello = vec![0; 512];
    let (_, length) = table.poll_transmit(Time::from_ps(1), &mut hello).expect("a Hello");
    hello.truncate(length);
    hello
}

/// A server, a client, and the relay between them.
struct Setup {
    server: Host,
    client: Host,
    relay: UdpSocket,
    client_address: SocketAddr,
}

impl Setup {
    fn new() -> Self {
        let (server, client, relay) = (host(), host(), socket());
        let client_address = client.local_addr();
        Self { server, client, relay, client_address }
    }

    /// Connects the client by this number of flows; returns the connection at both ends.
    fn connect(&self, flows: usize) -> [Connection; 2] {
        let at = self.relay.local_addr().expect("bound");
        let classes = vec![0; flows];
        let mut connecting = pin!(self.client.connect_async(at, &classes, None));
        let mut context = Context::from_waker(Waker::noop());
        let (mut connected, mut accepted) = (None, None);
        loop {
            self.client.drive();
            self.forward();
            self.server.drive();
            accepted = accepted.or_else(|| self.server.try_accept());
            if connected.is_none()
                && let Poll::Ready(connection) = connecting.as_mut().poll(&mut context)
            {
                connected = Some(connection.expect("the server is there"));
            }
            (connected, accepted) = match (connected, accepted) {
                (Some(connected), Some(accepted)) => return [connected, accepted],
                both => both,
            };
        }
    }

    /// Forwards the datagrams of both hosts; returns the number of datagrams of the client.
    fn forward(&self) -> u64 {
        let mut buffer = [0; 65_536];
        let mut count = 0;
        loop {
            match self.relay.recv_from(&mut buffer) {
                Ok((length, from)) if from == self.client_address => {
                    count += 1;
                    self.send(&self.relay, &buffer[..length]);
                }
                Ok((length, _)) => {
                    self.relay.send_to(&buffer[..length], self.client_address).expect("sent");
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return count,
                Err(e) => panic!("{e}"),
            }
        }
    }

    /// Returns a packet of the client, a write of this length, that the server has not received.
    fn capture(&self, peer: &Connection, key: RegionKey, length: usize) -> Vec<u8> {
        self.settle();
        let write = peer.submit(Request::write(key, 0, vec![7; length])).expect("room");
        let mut packet = vec![0; 65_536];
        let length = loop {
            self.client.drive();
            match self.relay.recv_from(&mut packet) {
                Ok((length, _)) => break length,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}"),
            }
        };
        packet.truncate(length);
        drop(write);
        packet
    }

    fn send(&self, from: &UdpSocket, bytes: &[u8]) {
        from.send_to(bytes, self.server.local_addr()).expect("sent");
    }

    /// Returns a counter of the server's session layer.
    fn counter(&self, name: &str) -> u64 {
        let stats = self.server.stats().next().expect("an engine");
        stats.sessions.iter().find(|(counter, _)| *counter == name).expect("a counter").1
    }

    /// Drives the server until it has no work left; returns the time.
    fn drive(&self) -> Duration {
        let start = Instant::now();
        while self.server.drive() {}
        start.elapsed()
    }

    /// Drives both hosts until neither has work left.
    fn settle(&self) {
        loop {
            let busy = self.client.drive() | self.server.drive();
            if self.forward() == 0 && !busy {
                return;
            }
        }
    }
}

/// Returns the time of `count` datagrams like this one, and asserts that the server counts all of them as `counted`.
fn strangers(
    setup: &Setup,
    (from, bytes): (&UdpSocket, &[u8]),
    counted: &str,
    count: u64,
) -> Duration {
    let (mut spent, batches) = (Duration::ZERO, count.div_ceil(BATCH));
    let before = setup.counter(counted);
    for _ in 0..batches {
        for _ in 0..BATCH {
            setup.send(from, bytes);
        }
        spent += setup.drive();
    }
    let stats = setup.server.stats().next().expect("an engine");
    let counters: Vec<_> = stats.sessions.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(setup.counter(counted) - before, batches * BATCH, "{counted}: {counters:?}");
    setup.settle();
    spent.mul_f64(count as f64 / (batches * BATCH) as f64)
}

/// Returns a forged signal of a switch for a packet that is not in flight. `flow` is the flow's number at its receiver.
fn signal(flow: u32) -> [u8; SIGNAL_BYTES] {
    let body = Body::Signal(Signal { queue: 1 << 20, link_rate: 6, sent: 1 });
    let header = Header { flow: FlowId::new(flow), seq: PacketNumber::new(1 << 20), body };
    let mut bytes = [0; SIGNAL_BYTES];
    apus_wire::seal(&header, &[], &mut bytes).expect("legal");
    bytes
}

/// Returns the time of `count` signals like this one, and asserts that the server has received and not dropped them.
fn signals(setup: &Setup, bytes: &[u8], count: u64) -> Duration {
    let received = || {
        let stats = setup.server.stats().next().expect("an engine");
        let dropped = stats.sessions.iter().filter(|(name, _)| name.starts_with("dropped"));
        let dropped: u64 = dropped.map(|(_, count)| count).sum();
        (stats.datagrams_received.load(Ordering::Relaxed), dropped)
    };
    let (mut spent, batches) = (Duration::ZERO, count.div_ceil(BATCH));
    for _ in 0..batches {
        let before = received();
        for _ in 0..BATCH {
            setup.send(&setup.relay, bytes);
        }
        spent += setup.drive();
        assert_eq!(received(), (before.0 + BATCH, before.1));
    }
    setup.settle();
    spent.mul_f64(count as f64 / (batches * BATCH) as f64)
}

/// Returns the time of `count` Hellos that prove the key, and asserts that each is answered.
fn hellos(setup: &Setup, (from, bytes): (&UdpSocket, &[u8]), count: u64) -> Duration {
    let (mut spent, mut answers) = (Duration::ZERO, 0);
    let mut cookie = [0; 512];
    let batches = count.div_ceil(BATCH);
    for _ in 0..batches {
        for _ in 0..BATCH {
            setup.send(from, bytes);
        }
        spent += setup.drive();
        while from.recv(&mut cookie).is_ok() {
            answers += 1;
        }
    }
    assert_eq!(answers, batches * BATCH);
    spent.mul_f64(count as f64 / (batches * BATCH) as f64)
}

/// Returns the time of the server for `count` packets of the peer's writes, and asserts that the writes end as stated.
fn writes(setup: &Setup, peer: &Connection, key: RegionKey, done: bool, count: u64) -> Duration {
    let (mut spent, mut packets) = (Duration::ZERO, 0);
    let mut step = || {
        setup.client.drive();
        let forwarded = setup.forward();
        let took = setup.drive();
        // A server that waits, for example to repeat an answer, does no work for a packet.
        if forwarded > 0 {
            (spent, packets) = (spent + took, packets + forwarded);
        }
        packets
    };
    let mut context = Context::from_waker(Waker::noop());
    while step() < count {
        let submit = |_| peer.submit(Request::write(key, 0, vec![7; 64])).expect("room");
        let ops: Vec<Op> = (0..16).map(submit).collect();
        for op in ops {
            let mut op = pin!(op);
            let end = loop {
                if let Poll::Ready(end) = op.as_mut().poll(&mut context) {
                    break end;
                }
                step();
            };
            assert_eq!(end.is_ok(), done, "{end:?}");
        }
    }
    spent.mul_f64(count as f64 / packets as f64)
}

fn cost_per_datagram(c: &mut Criterion) {
    let setup = Setup::new();
    let [peer, _accepted] = setup.connect(1);
    let memory = vec![0; 4096];
    let region: Region = setup.server.register(memory.clone(), Access::WRITE).expect("memory");
    let closed: Region = setup.server.register(memory, Access::READ).expect("memory");
    let mut group = c.benchmark_group("hostile datagram");
    group.throughput(Throughput::Elements(1));

    let stranger = socket();
    let proved = hello(ring(1));
    group.bench_function("Hello that proves the key, and its Cookie", |b| {
        b.iter_custom(|count| hellos(&setup, (&stranger, &proved), count));
    });
    for (name, bytes, counted) in [
        ("random, 200 B", vec![0xa5; 200], "dropped_malformed"),
        ("Hello under an unknown key", hello(ring(2)), "dropped_unknown_key"),
    ] {
        group.bench_function(name, |b| {
            b.iter_custom(|count| strangers(&setup, (&stranger, &bytes), counted, count));
        });
    }
    let wide = Setup::new();
    let _many = wide.connect(1024);
    group.bench_function("forged signal to a connection of 1024 flows", |b| {
        b.iter_custom(|count| signals(&wide, &signal(1023), count));
    });
    for (name, length) in [("64 B", 64), ("1400 B", 1400)] {
        let relay = &setup.relay;
        let mut packet = setup.capture(&peer, region.key(), length);
        let last_of_tag = packet.len() - 9; // the packet number comes after it
        packet[last_of_tag] ^= 1;
        group.bench_function(format!("forged packet of {name}"), |b| {
            b.iter_custom(|n| strangers(&setup, (relay, &packet), "dropped_forged", n));
        });
        let packet = setup.capture(&peer, region.key(), length);
        setup.send(relay, &packet);
        group.bench_function(format!("packet of {name} again"), |b| {
            b.iter_custom(|n| strangers(&setup, (relay, &packet), "dropped_replay", n));
        });
    }
    group.bench_function("write of 64 B without the right", |b| {
        b.iter_custom(|count| writes(&setup, &peer, closed.key(), false, count));
    });
    group.bench_function("write of 64 B with the right", |b| {
        b.iter_custom(|count| writes(&setup, &peer, region.key(), true, count));
    });
    group.finish();
}

criterion_group!(benches, cost_per_datagram);
criterion_main!(benches);
