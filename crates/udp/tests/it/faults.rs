//! Hosts with a network between them that loses, duplicates, reorders and corrupts datagrams. Every op ends once, and the
//! received bytes are those that were sent.

use std::time::{Duration, Instant};

use crate::support;
use crate::support::{Faults, PATIENCE, Relay, SHARED, config, host, pattern};
use apus_udp::async_channel;
use apus_udp::session::KeyRing;
use apus_udp::{Access, Completion, Connection, Host, OpResult, Region, Request};

const FAULTS: Faults = Faults { loss: 10, duplication: 10, corruption: 10, reordering: 10 };

struct Path {
    region: Region,
    here: Connection,
    there: Connection,
    _relay: Relay,
    _hosts: [Host; 2],
}

fn path(insecure: bool, seed: u64) -> Path {
    let mut settings = config(SHARED);
    if insecure {
        settings.keys = KeyRing::insecure();
    }
    // A relay has no buffer for jumbo bursts, and a busy machine loses datagrams that it cannot buffer.
    settings.max_mtu = 1500;
    let server = host(settings.clone());
    let client = host(settings);
    let relay = Relay::new(server.local_addr(), FAULTS, seed);
    let region = server.register(vec![0; 1 << 20], Access::ALL).expect("region");
    let here = client.connect(relay.address).expect("connect");
    let there = server.accept().expect("accept");
    Path { region, here, there, _relay: relay, _hosts: [server, client] }
}

#[test]
fn every_op_ends_once_with_the_right_bytes_whatever_the_network_does() {
    for insecure in [false, true] {
        let path = path(insecure, 42);
        let (queue, ends) = async_channel::bounded(64);
        let (mut messages, mut ended) = (0, 0);
        for i in 0..60u64 {
            let length = (i * 977) as usize % 16_000;
            let address = i * 16_000;
            let bytes = pattern(i, length);
            let request = match i % 3 {
                0 => Request::write(path.region.key(), address, bytes),
                1 => Request::message(bytes),
                _ => Request::read(
                    path.region.key(),
                    (i - 2) * 16_000,
                    (i - 2) as usize * 977 % 16_000,
                ),
            };
            messages += u64::from(i % 3 == 1);
            if i % 3 == 2 {
                // The write must end before its bytes are read.
                ended += drain(&ends, &path, i - i % 3);
            }
            path.here.submit_queued(0, request, &queue, i).expect("room");
        }
        for _ in ended..60 {
            let end = ends.recv_blocking().expect("an end");
            check(end.user, end.result, &path);
        }
        assert!(ends.try_recv().is_err(), "no op ends twice");
        let mut got: Vec<_> =
            (0..messages).map(|_| path.there.receive().expect("message").bytes).collect();
        got.sort();
        let mut sent: Vec<_> = (0..60u64)
            .filter(|i| i % 3 == 1)
            .map(|i| pattern(i, (i * 977) as usize % 16_000))
            .collect();
        sent.sort();
        assert!(got.iter().eq(sent.iter()), "messages arrive once, as they were sent");
        assert!(path.there.try_receive().expect("connected").is_none());
    }
}

#[test]
fn a_path_that_drops_long_packets_without_a_word_carries_ops_in_shorter_ones() {
    // The kernel knows of no smaller MTU, because it uses the loopback interface.
    let settings = support::steady(SHARED);
    let (server, client) = (host(settings.clone()), host(settings));
    let relay = Relay::new(server.local_addr(), Faults::default(), 1);
    let region = server.register(vec![0; 1 << 20], Access::ALL).expect("region");
    relay.drop_longer(1400); // from the start
    let here = client.connect(relay.address).expect("connect");
    let _there = server.accept().expect("accept");
    let exchange = |seed: u64| {
        let bytes = pattern(seed, 1 << 20);
        let write = Request::write(region.key(), 0, bytes.clone());
        here.submit(write).expect("room").wait().expect("written");
        let read = here.submit(Request::read(region.key(), 0, bytes.len())).expect("room");
        assert!(read.wait().expect("read").bytes == bytes, "exchange {seed}");
    };
    exchange(1);
    assert!(relay.longest_seen() <= 1400);
    drop(here);

    relay.drop_longer(usize::MAX);
    let here = client.connect(relay.address).expect("connect");
    let exchange = |seed: u64| {
        let bytes = pattern(seed, 1 << 20);
        let write = Request::write(region.key(), 0, bytes.clone());
        here.submit(write).expect("room").wait().expect("written");
        region.read(|memory| assert!(memory == bytes, "exchange {seed}"));
    };
    let from = Instant::now();
    let mut rounds = 2;
    // 9000 B of IP packet, which the hosts allow, less 28 of headers.
    while relay.longest_seen() < 8900 {
        exchange(rounds);
        rounds += 1;
        assert!(from.elapsed() < PATIENCE, "long packets are not used: {}", relay.longest_seen());
    }
    relay.drop_longer(1300); // a black hole under way
    exchange(0);
}

#[test]
fn a_window_stays_what_it_is_in_bytes_when_a_probe_finds_that_the_path_takes_longer_packets() {
    let mut settings = config(SHARED);
    settings.set_algorithm(None, &[("initial_cwnd", "64")]).expect("a parameter of Swift");
    let (server, client) = (host(settings.clone()), host(settings));
    let here = client.connect(server.local_addr()).expect("connect");
    let from = Instant::now();
    let window = loop {
        // Shorter packets may be confirmed first, if an answer is late.
        let (state, _) = here.flow_state(0).expect("its state");
        if state.cwnd < 9.1 {
            break state.cwnd;
        }
        assert!(from.elapsed() < PATIENCE, "a window of {} packets", state.cwnd);
        std::thread::sleep(Duration::from_millis(1));
    };
    // 64 packets of at most 1280 B have as many bytes as 9.1 packets of 9000 B, less the share of the headers: 7.2 packets if
    // headers took 300 B.
    assert!(window >= 7.2, "{window}");
}

/// Takes completions until those of the write and the message of the round that began with op `first` are among them. Returns
/// the number of completions taken.
fn drain(ends: &async_channel::Receiver<Completion>, path: &Path, first: u64) -> u64 {
    let (mut missing, mut taken) = (2, 0);
    while missing > 0 {
        let end = ends.recv_blocking().expect("an end");
        missing -= u64::from(end.user >= first);
        taken += 1;
        check(end.user, end.result, path);
    }
    taken
}

fn check(user: u64, result: OpResult, path: &Path) {
    let done = result.unwrap_or_else(|error| panic!("op {user}: {error}"));
    let of = |i: u64| pattern(i, (i * 977) as usize % 16_000);
    match user % 3 {
        0 => {
            let from = user as usize * 16_000;
            path.region.read(|memory| assert!(memory[from..].starts_with(&of(user)), "op {user}"));
        }
        2 => assert!(done.bytes == of(user - 2), "op {user} read other bytes"),
        _ => {}
    }
}
