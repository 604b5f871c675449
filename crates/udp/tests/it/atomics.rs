//! Atomic ops of several threads, connections and engines on one region, and the atomicity of reads and writes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apus_udp::{ATOMIC_BYTES, Access, Connection, Host, Region, Request};

use crate::support::{Faults, Relay, SHARED, config, host};

#[path = "../../examples/counter.rs"]
mod counter;

#[test]
fn the_example_runs() {
    counter::main().expect("it runs");
}

/// A server with two engines, and a client with a connection to each.
struct Hosts {
    region: Region,
    connections: [Connection; 2],
    _hosts: [Host; 3],
    _relay: Relay,
}

impl Hosts {
    fn new(bytes: usize) -> Self {
        let mut settings = config(SHARED);
        let clients = [(); 2].map(|()| host(settings.clone()));
        settings.engines = 2;
        let server = host(settings);
        let region = server.register(vec![0; bytes], Access::ALL).expect("region");
        let faults = Faults { loss: 10, duplication: 20, corruption: 10, reordering: 20 };
        let relay = Relay::new(server.local_addr(), faults, 1);
        let addresses = [relay.address, server.local_addr()];
        let [a, b] = &clients;
        let connections = [(a, addresses[0]), (b, addresses[1])]
            .map(|(client, address)| client.connect(address).expect("connect"));
        let [a, b] = clients;
        Self { region, connections, _hosts: [server, a, b], _relay: relay }
    }
}

#[test]
fn tickets_of_owner_and_peers_are_all_different() {
    let hosts = Hosts::new(64);
    let (region, key) = (&hosts.region, hosts.region.key());
    let owner = || (0..2_000).map(|_| region.fetch_add(8, 1).expect("a word")).collect();
    let tickets: Vec<Vec<u64>> = thread::scope(|scope| {
        let peers: Vec<_> = hosts
            .connections
            .iter()
            .map(|peer| {
                let take = || counter::take_ticket(peer, key, 8).expect("a ticket");
                scope.spawn(move || (0..300).map(|_| take()).collect())
            })
            .collect();
        let owners = [(); 2].map(|()| scope.spawn(owner));
        peers.into_iter().chain(owners).map(|thread| thread.join().expect("no panic")).collect()
    });
    for of_one in &tickets {
        assert!(of_one.is_sorted(), "one after the other");
    }
    let all: BTreeSet<u64> = tickets.into_iter().flatten().collect();
    assert!(all.into_iter().eq(0..4_600));
    assert_eq!(region.load(8), Ok(4_600));
}

/// A lock in a word: the protected value is never changed by two threads at the same time.
#[test]
fn a_lock_by_compare_and_swap_excludes_owner_and_peers() {
    let hosts = Hosts::new(64);
    let (region, key) = (&hosts.region, hosts.region.key());
    // The lock is at 0, and the protected value at 16: a count, changed by a read and a write.
    let by_peer = |peer: &Connection| {
        for _ in 0..50 {
            while !counter::replace(peer, key, 0, 0, 1).expect("swapped") {
                thread::yield_now();
            }
            let read = peer.submit(Request::read(key, 16, 8)).expect("room").wait().expect("read");
            let count = u64::from_le_bytes(read.bytes[..].try_into().expect("8 bytes")) + 1;
            let bytes = count.to_le_bytes().to_vec();
            peer.submit(Request::write(key, 16, bytes)).expect("room").wait().expect("written");
            assert!(counter::replace(peer, key, 0, 1, 0).expect("swapped"), "it was locked");
        }
    };
    thread::scope(|scope| {
        for peer in &hosts.connections {
            scope.spawn(move || by_peer(peer));
        }
        for _ in 0..50 {
            while region.compare_and_swap(0, 0, 2).expect("a word") != 0 {
                thread::yield_now();
            }
            let count = region.load(16).expect("a word");
            thread::yield_now();
            region.store(16, count + 1).expect("a word");
            assert_eq!(region.compare_and_swap(0, 2, 0), Ok(2), "it was locked");
        }
    });
    assert_eq!(region.load(16), Ok(150));
}

#[test]
fn concurrent_updates_of_a_record_all_count() {
    let hosts = Hosts::new(counter::RECORD);
    let (region, key) = (&hosts.region, hosts.region.key());
    thread::scope(|scope| {
        for peer in &hosts.connections {
            scope.spawn(move || {
                // The count is stored twice, so that a mix of two updates would show.
                let count = |value: &mut [u8]| {
                    assert_eq!(value[..8], value[48..], "the record is whole");
                    let (word, _) = value.split_first_chunk_mut().expect("a word");
                    *word = (u64::from_le_bytes(*word) + 1).to_le_bytes();
                    value.copy_within(..8, 48);
                };
                for _ in 0..50 {
                    while !counter::update(peer, key, 0, count).expect("updated") {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!([0, 8, 56].map(|at| region.load(at)), [Ok(200), Ok(100), Ok(100)]);
}

#[test]
fn threads_see_short_writes_and_words_of_long_ones_whole() {
    const LONG: usize = 60_000;
    let hosts = Hosts::new(2_048 + LONG);
    let (region, key) = (&hosts.region, hosts.region.key());
    let is_whole = |bytes: &[u8], unit: usize| {
        bytes.chunks(unit).all(|unit| unit.iter().all(|&byte| byte == unit[0]))
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                region.read(|bytes| {
                    assert!(is_whole(&bytes[4..][..ATOMIC_BYTES], ATOMIC_BYTES));
                    assert!(is_whole(&bytes[2_048..], 8));
                });
                // Between two reads the region is free, so that its engine keeps up with the peers.
                thread::sleep(Duration::from_millis(1));
            }
        });
        let peers = [0, 1].map(|number| {
            let peer = &hosts.connections[number];
            scope.spawn(move || {
                for round in 0..60u8 {
                    let fill = 2 * round + number as u8 + 1;
                    let write =
                        |at, length| peer.submit(Request::write(key, at, vec![fill; length]));
                    let read = |at, length| peer.submit(Request::read(key, at, length));
                    let ops = [write(4, ATOMIC_BYTES), write(2_048, LONG)];
                    let reads = [read(4, ATOMIC_BYTES), read(2_048, LONG)];
                    for (read, unit) in reads.into_iter().zip([ATOMIC_BYTES, 8]) {
                        let bytes = read.expect("room").wait().expect("read").bytes;
                        assert!(is_whole(&bytes, unit), "round {round}, {unit}");
                    }
                    for op in ops {
                        op.expect("room").wait().expect("written");
                    }
                }
            })
        });
        let ends = peers.map(|peer| peer.join());
        done.store(true, Ordering::Release);
        ends.into_iter().for_each(|end| end.expect("no panic"));
    });
}
