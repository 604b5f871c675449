//! Atomic ops between whole engines, and the atomicity of reads and writes, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::net::SocketAddr;

use apus_units::random::SplitMix64;
use apus_wire::RegionKey;

use super::*;
use crate::atomic::{AtomicBuffers, AtomicOp, WordError};
use crate::error::{Refusal, SubmitError};
use crate::pending::Done;
use crate::region::ATOMIC_BYTES;
use crate::session::SharedKey;

/// Timeouts of a millisecond, so that virtual runs with losses end soon.
fn lossy_config() -> Config {
    let mut config = config();
    let settings = [("window", "64"), ("min_rto", "1ms"), ("initial_rto", "1ms")];
    config.set_algorithm(Some("constant"), &settings).expect("constant");
    config
}

fn add(region: RegionKey, address: u64, delta: u64) -> (OpKind, Buffers) {
    let buffers = AtomicBuffers::new(AtomicOp::FetchAdd { delta });
    (OpKind::FetchAdd { region, address }, Buffers::Atomic(buffers))
}

fn swap(region: RegionKey, address: u64, expected: u64, new: u64) -> (OpKind, Buffers) {
    let buffers = AtomicBuffers::new(AtomicOp::CompareAndSwap { expected, new });
    (OpKind::CompareAndSwap { region, address }, Buffers::Atomic(buffers))
}

/// A datagram in flight: when it arrives, a number that keeps the order total, the receiving host, and its content.
type Flight = Reverse<(Time, u64, usize, SocketAddr, u8, Vec<u8>)>;

/// Hosts 0 and 1 are clients of host 2, over a network that loses, duplicates and reorders.
struct Faulty {
    hosts: Vec<VirtualHost>,
    clients: [Opened; 2],
    _servers: [Opened; 2],
    flights: BinaryHeap<Flight>,
    random: SplitMix64,
    sent: u64,
    /// Share of datagrams that are lost, and that arrive twice, per mille.
    faults: u64,
}

impl Faulty {
    fn new(seed: u64, faults: u64) -> Self {
        let config = lossy_config();
        let mut hosts: Vec<_> =
            [1, 2, 3].map(|n| VirtualHost::new([10, 0, 0, n], &config)).into_iter().collect();
        let mut connect = |client: usize| {
            let answer = hosts[client].connect(&hosts[2]);
            run(&mut hosts, Span::from_ms(1));
            let server = hosts[2].accepted.try_recv().expect("accepted").connection;
            (answer.try_recv().expect("answered").expect("connected"), server)
        };
        let ((a, at_a), (b, at_b)) = (connect(0), connect(1));
        let random = SplitMix64::new(seed);
        let (clients, flights) = ([a, b], BinaryHeap::new());
        Self { hosts, clients, _servers: [at_a, at_b], flights, random, sent: 0, faults }
    }

    fn now(&self) -> Time {
        self.hosts[0].engine.network.now.get()
    }

    fn submit(&self, client: usize, op: (OpKind, Buffers)) -> oneshot::Receiver<OpResult> {
        submit(&self.clients[client], op.0, op.1)
    }

    /// Runs all engines at the present time, takes what they send, and moves time to the next event.
    fn step(&mut self) {
        for host in 0..self.hosts.len() {
            while self.hosts[host].engine.step(true) {}
            let network = &self.hosts[host].engine.network;
            let (from, bursts) = (network.local, network.sent.take());
            for burst in bursts {
                let to =
                    self.hosts.iter().position(|to| burst.to.address == to.engine.network.local);
                for datagram in burst.datagrams {
                    self.put(to.expect("a host"), from, burst.tos, &datagram);
                }
            }
        }
        let arrival = self.flights.peek().map_or(Time::MAX, |Reverse(flight)| flight.0);
        let timer = self.hosts.iter_mut().map(|host| host.engine.next_due()).min();
        let next = arrival.min(timer.unwrap_or(Time::MAX)).max(self.now() + Span::from_ns(100));
        assert!(next < Time::from_ps(u64::MAX / 2), "nothing is due");
        self.hosts.iter().for_each(|host| host.engine.network.now.set(next));
        while self.flights.peek().is_some_and(|Reverse(flight)| flight.0 <= next) {
            let Some(Reverse((_, _, to, from, tos, datagram))) = self.flights.pop() else { break };
            self.hosts[to].engine.network.put(from, tos, datagram);
        }
    }

    fn put(&mut self, to: usize, from: SocketAddr, tos: u8, datagram: &[u8]) {
        if self.random.below(1000) < self.faults {
            return;
        }
        let copies = 1 + u64::from(self.random.below(1000) < self.faults);
        for _ in 0..copies {
            let delay = Span::from_ns(1_000 + self.random.below(200_000));
            self.sent += 1;
            let flight = (self.now() + delay, self.sent, to, from, tos, datagram.to_vec());
            self.flights.push(Reverse(flight));
        }
    }

    /// Runs until an op has ended.
    fn wait(&mut self, op: &oneshot::Receiver<OpResult>) -> OpResult {
        loop {
            match op.try_recv() {
                Ok(end) => return end,
                Err(oneshot::TryRecvError::Empty) => self.step(),
                Err(oneshot::TryRecvError::Disconnected) => panic!("the op has no end"),
            }
        }
    }
}

fn old(end: OpResult) -> u64 {
    end.expect("executed").old.expect("an atomic op")
}

#[test]
fn atomic_ops_return_the_word_before_and_change_only_their_word() {
    let mut pair = Pair::connect(&config());
    let mut bytes = vec![0xee; 40];
    bytes[16..24].copy_from_slice(&7u64.to_le_bytes());
    let region = pair.register(1, bytes, Access::ReadWrite);
    let mut run = |(kind, buffers)| {
        let end = submit(&pair.client, kind, buffers);
        pair.run(Span::from_us(10));
        let Done { bytes, old, .. } = end.try_recv().expect("ended").expect("executed");
        assert!(bytes.is_empty());
        old.expect("an atomic op")
    };
    assert_eq!(run(add(region.key(), 16, 5)), 7);
    assert_eq!(run(swap(region.key(), 16, 11, 1)), 12, "not replaced");
    assert_eq!(run(swap(region.key(), 16, 12, u64::MAX)), 12);
    assert_eq!(run(add(region.key(), 16, 3)), u64::MAX);
    assert_eq!(region.load(16), Ok(2));
    assert_eq!(region.compare_and_swap(16, 2, 9), Ok(2));
    assert_eq!(run(add(region.key(), 16, 1)), 9, "the owner's value");
    assert_eq!(region.fetch_add(16, 1), Ok(10));
    assert_eq!(region.store(16, 0x0807_0605_0403_0201), Ok(()));
    region.read(|memory| {
        assert_eq!(memory[16..24], [1, 2, 3, 4, 5, 6, 7, 8], "little-endian");
        assert!(memory[..16].iter().chain(&memory[24..]).all(|&byte| byte == 0xee));
    });
    let stats = |host: usize| &pair.hosts[host].engine.protocol.status.stats;
    assert_eq!(stats(1).atomics_executed.load(std::sync::atomic::Ordering::Relaxed), 5);
    assert_eq!(stats(0).atomics_executed.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn the_owner_accesses_whole_words_within_the_region() {
    let regions = Arc::new(Regions::new(1));
    let region = Region::new(&regions, Box::new(vec![1; 20]), Access::Read).expect("room");
    assert_eq!(region.fetch_add(8, 1), Ok(0x0101_0101_0101_0101), "peers' access is no limit");
    for address in [16, 24, u64::MAX - 7] {
        let error = WordError::OutOfBounds { address, length: 20 };
        assert_eq!(region.load(address), Err(error));
        assert_eq!(region.store(address, 1), Err(error));
        assert_eq!(region.fetch_add(address, 1), Err(error));
    }
    for address in [1, 12, 17, u64::MAX] {
        let error = WordError::Unaligned { address };
        assert_eq!(region.load(address), Err(error));
        assert_eq!(region.store(address, 1), Err(error));
        assert_eq!(region.compare_and_swap(address, 0, 1), Err(error));
    }
    let text = WordError::OutOfBounds { address: 16, length: 20 }.to_string();
    assert_eq!(text, "address 16 + 8 bytes: the word reaches beyond the region's 20 bytes");
    let text = WordError::Unaligned { address: 12 }.to_string();
    assert_eq!(text, "address 12: the address of a word must be a multiple of 8");
}

#[test]
fn atomic_ops_that_are_not_allowed_change_nothing() {
    let mut pair = Pair::connect(&config());
    let [read, write, both] = [Access::Read, Access::Write, Access::ReadWrite]
        .map(|access| pair.register(1, vec![0; 20], access));
    let mut run = |(kind, buffers)| {
        let end = submit(&pair.client, kind, buffers);
        pair.run(Span::from_ms(1));
        end.try_recv().expect("ended").expect_err("refused")
    };
    let unknown = RegionKey::new(both.key().get() ^ 1 << 40);
    for (key, address, refusal) in [
        (read.key(), 0, Refusal::NotAllowed),
        (write.key(), 0, Refusal::NotAllowed),
        (both.key(), 16, Refusal::OutOfBounds),
        (both.key(), 1 << 40, Refusal::OutOfBounds),
        (unknown, 0, Refusal::NoRegion),
    ] {
        assert_eq!(run(add(key, address, 1)), OpError::Refused(refusal));
        assert_eq!(run(swap(key, address, 0, 1)), OpError::Refused(refusal));
    }
    for region in [&read, &write, &both] {
        assert!(region.read(|memory| memory.iter().all(|&byte| byte == 0)));
    }
    let state = &pair.client.state;
    for address in [1, 4, 9] {
        let kind = OpKind::FetchAdd { region: both.key(), address };
        let error = state.check(kind, 8).expect_err("not a word");
        assert_eq!(error, SubmitError::Unaligned { address });
        assert_eq!(
            error.to_string(),
            format!("address {address}: the address of an atomic op must be a multiple of 8")
        );
    }
    let kind = OpKind::CompareAndSwap { region: both.key(), address: u64::MAX - 7 };
    let overflow = SubmitError::AddressOverflow { address: u64::MAX - 7, length: 8 };
    assert_eq!(state.check(kind, 8), Err(overflow));
}

/// Memory that has no bytes left when it is changed.
struct Shrinking(Vec<u8>);

impl crate::region::Memory for Shrinking {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0[..4]
    }
}

#[test]
fn an_atomic_op_on_memory_that_has_shrunk_is_refused() {
    let mut pair = Pair::connect(&config());
    let memory = Box::new(Shrinking(vec![0; 8]));
    let region = Region::new(&pair.hosts[1].regions, memory, Access::ReadWrite).expect("room");
    let (kind, buffers) = add(region.key(), 0, 1);
    let end = submit(&pair.client, kind, buffers);
    pair.run(Span::from_ms(1));
    let end = end.try_recv().expect("ended").expect_err("refused");
    assert_eq!(end, OpError::Refused(Refusal::OutOfBounds));
    assert!(region.read(|memory| memory.iter().all(|&byte| byte == 0)));
}

#[test]
fn operands_and_answers_are_encrypted() {
    let mut sealed = config();
    sealed.keys = KeyRing::new([SharedKey::new([3; 32])]).expect("one key");
    for (config, is_readable) in [(config(), true), (sealed, false)] {
        let mut pair = Pair::connect(&config);
        let region = pair.register(1, b"old word".to_vec(), Access::ReadWrite);
        let word = |text: &[u8; 8]| u64::from_le_bytes(*text);
        let (kind, buffers) = swap(region.key(), 0, word(b"old word"), word(b"new word"));
        let end = submit(&pair.client, kind, buffers);
        let mut seen = BTreeSet::new();
        while let Err(oneshot::TryRecvError::Empty) = end.try_recv() {
            for host in 0..2 {
                while pair.hosts[host].engine.step(true) {}
                let [to, from] = [1 - host, host].map(|h| &pair.hosts[h].engine.network);
                for datagram in from.sent.borrow().iter().flat_map(|burst| &burst.datagrams) {
                    let words = datagram.windows(8).filter(|bytes| bytes.ends_with(b" word"));
                    seen.extend(words.map(|bytes| (host, bytes.to_vec())));
                }
                to.deliver_from(from);
                from.advance(Span::from_us(1));
            }
        }
        let expected = [(0, &b"new word"[..]), (0, b"old word"), (1, b"old word")];
        let expected = expected.map(|(host, word)| (host, word.to_vec()));
        assert_eq!(seen, expected.into_iter().filter(|_| is_readable).collect());
    }
}

/// Two clients and the owner add to one word. Each op has found another value, and their number is the sum.
#[test]
fn fetch_adds_over_a_faulty_network_are_executed_exactly_once() {
    for seed in 0..30 {
        let mut network = Faulty::new(seed, [0, 50, 200][seed as usize % 3]);
        let memory = Box::new(vec![0; 64]);
        let region = Region::new(&network.hosts[2].regions, memory, Access::ReadWrite);
        let region = region.expect("room");
        let mut olds = Vec::new();
        for _ in 0..4 {
            let mut ops = Vec::new();
            for op in 0..60 {
                ops.push(network.submit(op % 2, add(region.key(), 24, 1)));
                if network.random.below(4) == 0 {
                    network.step();
                    olds.push(region.fetch_add(24, 1).expect("a word"));
                }
            }
            for op in &ops {
                let end = network.wait(op);
                olds.push(old(end));
            }
        }
        olds.sort_unstable();
        assert!(olds.iter().copied().eq(0..olds.len() as u64), "seed {seed}: {olds:?}");
        assert_eq!(region.load(24), Ok(olds.len() as u64), "seed {seed}");
        // All copies arrive: none is executed.
        (0..100).for_each(|_| network.step());
        assert_eq!(region.load(24), Ok(olds.len() as u64), "seed {seed}");
    }
}

/// An op with the times of its submission and its end, and the word that it fetched.
#[derive(Clone, Copy, Debug)]
struct Record {
    op: AtomicOp,
    from: Time,
    to: Time,
    old: u64,
}

/// Returns `true` if the ops in some order, which keeps the order of ops that do not overlap, find the words that they
/// found, from `word` to `last`. `open` has a bit for each op not yet ordered.
fn is_linearizable(ops: &[Record], open: u64, word: u64, last: u64) -> bool {
    let remaining = || (0..ops.len()).filter(|i| open & 1 << i != 0);
    let Some(first_end) = remaining().map(|i| ops[i].to).min() else { return word == last };
    remaining().any(|i| {
        let Record { op, from, old, .. } = ops[i];
        let mut memory = word.to_le_bytes();
        from <= first_end
            && old == word
            && op.execute(&mut memory, 0).is_some()
            && is_linearizable(ops, open & !(1 << i), u64::from_le_bytes(memory), last)
    })
}

#[test]
fn the_check_of_histories_finds_a_lost_update_and_a_wrong_order() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let add = |from, to, old| Record {
        op: AtomicOp::FetchAdd { delta: 1 },
        from: at(from),
        to: at(to),
        old,
    };
    assert!(is_linearizable(&[add(0, 5, 1), add(1, 4, 0)], 0b11, 0, 2));
    assert!(!is_linearizable(&[add(0, 5, 0), add(1, 4, 0)], 0b11, 0, 1), "a lost update");
    assert!(!is_linearizable(&[add(0, 1, 1), add(2, 3, 0)], 0b11, 0, 2), "the wrong order");
    assert!(!is_linearizable(&[add(0, 1, 0)], 0b1, 0, 2), "executed twice");
}

#[test]
fn histories_of_compare_and_swap_are_linearizable() {
    for seed in 0..60 {
        let mut network = Faulty::new(seed, [50, 200][seed as usize % 2]);
        let memory = Box::new(vec![0; 8]);
        let region = Region::new(&network.hosts[2].regions, memory, Access::ReadWrite);
        let region = region.expect("room");
        let (mut open, mut history): (Vec<_>, Vec<Record>) = (Vec::new(), Vec::new());
        for _ in 0..14 {
            let (expected, new) = (network.random.below(3), network.random.below(3));
            let op = match network.random.below(4) {
                0 => AtomicOp::FetchAdd { delta: 1 },
                _ => AtomicOp::CompareAndSwap { expected, new },
            };
            let from = network.now();
            let client = network.random.below(3) as usize;
            match op {
                // The owner.
                AtomicOp::CompareAndSwap { .. } if client == 2 => {
                    let old = region.compare_and_swap(0, expected, new).expect("a word");
                    history.push(Record { op, from, to: from, old });
                }
                AtomicOp::CompareAndSwap { .. } => {
                    let end = network.submit(client, swap(region.key(), 0, expected, new));
                    open.push((op, from, end));
                }
                AtomicOp::FetchAdd { delta } => {
                    let end = network.submit(client % 2, add(region.key(), 0, delta));
                    open.push((op, from, end));
                }
            }
            for _ in 0..network.random.below(6) {
                network.step();
                open.retain(|(op, from, end)| {
                    let Ok(end) = end.try_recv() else { return true };
                    history.push(Record { op: *op, from: *from, to: network.now(), old: old(end) });
                    false
                });
            }
        }
        for (op, from, end) in open {
            let old = old(network.wait(&end));
            history.push(Record { op, from, to: network.now(), old });
        }
        let last = region.load(0).expect("a word");
        let all = (1 << history.len()) - 1;
        assert!(is_linearizable(&history, all, 0, last), "seed {seed}: {history:?}, {last}");
    }
}

/// What an op that did not end by itself may have done: all or nothing, and what its end says.
#[test]
fn given_up_atomic_ops_have_run_at_most_once() {
    for seed in 0..40 {
        let mut network = Faulty::new(seed, 200);
        let memory = Box::new(vec![0; 8]);
        let region = Region::new(&network.hosts[2].regions, memory, Access::ReadWrite);
        let region = region.expect("room");
        let ops: Vec<_> =
            (0..40).map(|op| network.submit(op % 2, add(region.key(), 0, 1))).collect();
        (0..network.random.below(60)).for_each(|_| network.step());
        match seed % 3 {
            0 => region.withdraw(),
            1 => network.clients[0].mailbox.stop(),
            _ => network.hosts[2].engine.fail(),
        }
        let (mut done, mut unknown) = (0, 0);
        for (number, op) in ops.iter().enumerate() {
            if seed % 3 == 1 && number % 2 == 1 {
                continue; // the other client goes on
            }
            for _ in 0..2_000 {
                network.step();
            }
            match op.try_recv() {
                Ok(Ok(_)) => done += 1,
                Ok(Err(OpError::Unknown(_))) | Err(_) => unknown += 1,
                Ok(Err(OpError::Refused(Refusal::NoRegion) | OpError::NotSent(_))) => {}
                Ok(Err(other)) => panic!("seed {seed}: {other}"),
            }
        }
        if seed % 3 != 1 {
            let word = region.load(0).expect("a word");
            assert!((done..=done + unknown).contains(&word), "seed {seed}: {done} <= {word}");
        }
    }
}

/// Writes of at most [`ATOMIC_BYTES`], and each word of longer ones that begin at a multiple of 8, are stored and read as a
/// whole, whatever the network does.
#[test]
fn short_ops_and_words_of_long_ones_are_whole() {
    for seed in 0..20 {
        let mut network = Faulty::new(seed, 100);
        let memory = Box::new(vec![0; 40_000]);
        let region = Region::new(&network.hosts[2].regions, memory, Access::ReadWrite);
        let region = region.expect("room");
        let (short, long) = (4 + network.random.below(1000), 16 * network.random.below(1000));
        let is_whole = |bytes: &[u8], unit: usize| {
            bytes.chunks(unit).all(|unit| unit.iter().all(|&byte| byte == unit[0]))
        };
        let mut writes = Vec::new();
        let mut reads = Vec::new();
        for round in 0..30u8 {
            let client = usize::from(round % 2);
            let (address, length, unit) = match network.random.below(2) {
                0 => (short, ATOMIC_BYTES, ATOMIC_BYTES),
                _ => (2_048 + long, 20_000, 8),
            };
            let kind = OpKind::Write { region: region.key(), address };
            let bytes = Buffers::Payload(vec![round + 1; length].into());
            writes.push(submit(&network.clients[client], kind, bytes));
            let kind = OpKind::Read { region: region.key(), address };
            let bytes = Buffers::Vec(vec![0; length]);
            reads.push((submit(&network.clients[1 - client], kind, bytes), unit));
            for _ in 0..network.random.below(30) {
                network.step();
                region.read(|memory| {
                    assert!(is_whole(&memory[short as usize..][..ATOMIC_BYTES], ATOMIC_BYTES));
                    assert!(is_whole(&memory[2_048 + long as usize..][..20_000], 8), "{seed}");
                });
            }
        }
        for write in writes {
            network.wait(&write).expect("written");
        }
        for (read, unit) in reads {
            let bytes = network.wait(&read).expect("read").bytes;
            assert!(is_whole(&bytes, unit), "seed {seed}: {unit}");
        }
    }
}
