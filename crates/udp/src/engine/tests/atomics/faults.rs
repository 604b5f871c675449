//! Atomic ops of two clients and of the owner over a network that loses, duplicates and reorders datagrams; atomicity of
//! reads and writes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use apus_units::random::SplitMix64;

use super::*;
use crate::region::ATOMIC_BYTES;

/// A datagram in flight: its arrival time, a number that makes the order total, the receiving host, and its content.
type Flight = Reverse<(Time, u64, usize, SocketAddr, u8, Vec<u8>)>;

/// Hosts 0 and 1 are clients of host 2, over a network that loses, duplicates and reorders.
struct Faulty {
    hosts: Vec<VirtualHost>,
    clients: [Opened; 2],
    _servers: [Opened; 2],
    flights: BinaryHeap<Flight>,
    random: SplitMix64,
    sent: u64,
    /// Share of datagrams that are lost, and share of those that arrive twice, per mille.
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

    /// Runs all engines at the current time, takes the datagrams that they send, and moves time to the next event.
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
            self.hosts[to].engine.network.put_datagram(from, tos, datagram);
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

/// Two clients and the owner add to one word. Each op has found another value, and the number of ops is the sum.
#[test]
fn fetch_adds_over_a_faulty_network_are_executed_exactly_once() {
    for seed in 0..30 {
        let mut network = Faulty::new(seed, [0, 50, 200][seed as usize % 3]);
        let memory = Box::new(vec![0; 64]);
        let region = Region::new(&network.hosts[2].regions, memory, Access::ALL, None);
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
        // All duplicates arrive: none is executed.
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

/// Returns `true` if the ops can be ordered so that each finds the word that it found, from `word` to `last`. The order must
/// keep the order of ops that do not overlap. `open` has a bit for each op that is not ordered yet.
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
        let region = Region::new(&network.hosts[2].regions, memory, Access::ALL, None);
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
                // This is an op of the owner.
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

/// An op that did not complete by itself has had all of its effect or none, consistent with its completion.
#[test]
fn given_up_atomic_ops_have_run_at_most_once() {
    for seed in 0..40 {
        let mut network = Faulty::new(seed, 200);
        let memory = Box::new(vec![0; 8]);
        let region = Region::new(&network.hosts[2].regions, memory, Access::ALL, None);
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
            let mut end = op.try_recv();
            // There are no further steps: hours of silence with losses would end sessions.
            for _ in 0..2_000 {
                if !matches!(end, Err(oneshot::TryRecvError::Empty)) {
                    break;
                }
                network.step();
                end = op.try_recv();
            }
            match end {
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
        let region = Region::new(&network.hosts[2].regions, memory, Access::ALL, None);
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
