//! Ops between two processes, without sockets and in virtual time. The link loses, repeats, reorders and damages packets (1 %
//! each), and both processes are occasionally killed and started again. Each op completes once, fails with a reason, or is
//! unknown. The bytes of each completed op are present, exactly once.
//!
//! This run is short; `APUS_SOAK_OPS=10000000 cargo test --release -p apus-udp --test soak` is the long run.

mod process;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use apus_transport::Outcome;
use apus_udp::session::{Cipher, KeyRing, SharedKey};
use apus_units::{Span, Time};
use process::{Ended, MEMORY_BYTES, Process, SLOTS, Shared, byte_of};

/// SplitMix64: a run is a function of its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A datagram in flight: its arrival time, its number in the order of sending, its receiver, and its bytes.
type Arriving = Reverse<(Time, u64, usize, Vec<u8>)>;

/// Faults of the link, in thousandths each.
#[derive(Clone, Copy)]
struct Faults {
    loss: u64,
    duplication: u64,
    reordering: u64,
    corruption: u64,
}

const HEALTHY: Faults = Faults { loss: 0, duplication: 0, reordering: 0, corruption: 0 };
/// 1 % each.
const FAULTY: Faults = Faults { loss: 10, duplication: 10, reordering: 10, corruption: 10 };

struct Link {
    random: Random,
    faults: Faults,
    arriving: BinaryHeap<Arriving>,
    count: u64,
    spare: Vec<Vec<u8>>,
}

impl Link {
    fn send(&mut self, now: Time, to: usize, bytes: &[u8]) {
        let fate = |random: &mut Random, per_mille| random.below(1000) < per_mille;
        if fate(&mut self.random, self.faults.loss) {
            return;
        }
        let copies = 1 + u32::from(fate(&mut self.random, self.faults.duplication));
        for _ in 0..copies {
            let mut delay = Span::from_us(10) + Span::from_ns(self.random.below(1000));
            if fate(&mut self.random, self.faults.reordering) {
                delay += Span::from_us(self.random.below(60));
            }
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            if fate(&mut self.random, self.faults.corruption) {
                let bit = self.random.below(copy.len() as u64 * 8) as usize;
                copy[bit / 8] ^= 1 << (bit % 8);
            }
            self.count += 1;
            self.arriving.push(Reverse((now + delay, self.count, to, copy)));
        }
    }
}

/// Outcomes of the ops.
#[derive(Debug, Default)]
struct Tally {
    done: u64,
    failed: u64,
    unknown: u64,
    /// Ops whose own process was killed.
    lost_with_process: u64,
    restarts: u64,
}

struct World {
    now: Time,
    processes: [Process; 2],
    /// State that outlives a killed process, and state that only the test knows.
    shared: [Shared; 2],
    link: Link,
    ring: KeyRing,
    cipher: Cipher,
    starts: u64,
    tally: Tally,
    /// Number of deliveries of each message, indexed by the message's number.
    delivered: Vec<u8>,
    next_user: u64,
}

impl World {
    fn new(seed: u64, ring: KeyRing, cipher: Cipher) -> Self {
        let link = Link {
            random: Random(seed),
            faults: FAULTY,
            arriving: BinaryHeap::new(),
            count: 0,
            spare: Vec::new(),
        };
        Self {
            now: Time::from_ps(0) + Span::from_secs(1),
            processes: [0, 1].map(|side| Process::new(side, &ring, cipher, 0)),
            shared: [0, 1].map(|_| Shared::new()),
            link,
            ring,
            cipher,
            starts: 0,
            tally: Tally::default(),
            delivered: Vec::new(),
            next_user: 0,
        }
    }

    /// Keeps ops outstanding until `ops` have been submitted.
    fn submit(&mut self, ops: u64) {
        for side in 0..2 {
            while self.next_user < ops && self.processes[side].has_room() {
                let Some(slot) = self.shared[side].free.pop() else { break };
                let user = self.next_user;
                let random = &mut self.link.random;
                let length = match random.below(8) {
                    0 => 8 + random.below(4088),
                    _ => 8 + random.below(120),
                };
                self.next_user += 1;
                self.delivered.push(0);
                let kind = random.below(3);
                self.processes[side].submit(self.now, user, kind, slot, length);
            }
        }
    }

    /// Sends all packets that processes have to send, and takes completions.
    fn poll(&mut self) {
        for side in 0..2 {
            let (now, link) = (self.now, &mut self.link);
            let process = &mut self.processes[side];
            process.poll(now, &self.shared[side].memory, |bytes| link.send(now, 1 - side, bytes));
            for user in process.messages.drain(..) {
                self.delivered[user as usize] += 1;
            }
            let ended = core::mem::take(&mut process.ended);
            for op in &ended {
                self.check(side, op);
            }
            self.processes[side].ended = ended;
            self.processes[side].ended.clear();
        }
    }

    /// Checks that the result of an ended op is true.
    fn check(&mut self, side: usize, op: &Ended) {
        let peer_memory = &self.shared[1 - side].memory;
        let whole = |bytes: &[u8], seed: u64| {
            bytes.iter().enumerate().all(|(i, &byte)| byte == byte_of(seed, i as u64))
        };
        let (slot, length) = (op.slot * MEMORY_BYTES / SLOTS, op.length as usize);
        let delivered = self.delivered[op.user as usize];
        match op.outcome {
            Outcome::Done => {
                self.tally.done += 1;
                match op.kind {
                    0 => assert!(whole(&peer_memory[slot..slot + length], op.user), "{op:?}"),
                    1 => {
                        let place = slot + MEMORY_BYTES;
                        assert_eq!(op.read, peer_memory[place..place + length], "{op:?}");
                    }
                    _ => assert_eq!(delivered, 1, "{op:?}"),
                }
            }
            Outcome::Failed => {
                self.tally.failed += 1;
                assert_eq!(delivered, 0, "{op:?}: said not to be sent");
            }
            Outcome::Unknown => {
                self.tally.unknown += 1;
                assert!(delivered <= 1, "{op:?}");
            }
            Outcome::Rejected(_) => panic!("{op:?}: nobody rejects here"),
        }
        self.shared[side].free.push(op.slot);
    }

    /// Kills a process and starts it again, at the same address with other randomness.
    fn restart(&mut self, side: usize) {
        self.starts += 1;
        let old = core::mem::replace(
            &mut self.processes[side],
            Process::new(side, &self.ring, self.cipher, self.starts),
        );
        for slot in old.slots_under_way() {
            self.tally.lost_with_process += 1;
            self.shared[side].free.push(slot);
        }
        self.tally.restarts += 1;
    }

    /// Processes the next event, unless it is after `until`.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.link.arriving.peek().map(|Reverse((at, ..))| *at);
        let timeout = self.processes.iter().filter_map(Process::next_timeout).min();
        let Some(next) = arrival.into_iter().chain(timeout).min().filter(|&at| at <= until) else {
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let Some(Reverse((_, _, to, mut bytes))) = self.link.arriving.pop() else {
                return false;
            };
            let memory = &mut self.shared[to].memory;
            self.processes[to].receive(self.now, &mut bytes, memory);
            self.link.spare.push(bytes);
        } else {
            for process in &mut self.processes {
                process.handle_timeout(self.now);
            }
        }
        true
    }

    fn run(&mut self, ops: u64, ops_per_restart: u64) {
        let mut restart_at = ops_per_restart;
        while self.next_user < ops || self.processes.iter().any(Process::is_busy) {
            self.submit(ops);
            self.poll();
            if self.next_user >= restart_at && self.next_user < ops {
                let side = self.link.random.below(2) as usize;
                self.restart(side);
                restart_at += self.link.random.below(2 * ops_per_restart);
            }
            if self.next_user == ops {
                self.link.faults = HEALTHY;
            }
            assert!(self.step(Time::MAX), "nothing will ever happen, and ops are under way");
        }
        self.poll();
        let tally = &self.tally;
        let ended = tally.done + tally.failed + tally.unknown + tally.lost_with_process;
        assert_eq!(ended, ops, "each op ends once: {tally:?}");
        assert!(self.delivered.iter().all(|&count| count <= 1), "a message was delivered twice");
    }
}

fn ops() -> u64 {
    std::env::var("APUS_SOAK_OPS").ok().and_then(|text| text.parse().ok()).unwrap_or(60_000)
}

#[expect(clippy::print_stderr, reason = "a long run says what it did")]
fn soak(ring: &KeyRing, cipher: Cipher, seed: u64) {
    let ops = ops();
    let mut world = World::new(seed, ring.clone(), cipher);
    world.run(ops, (ops / 200).clamp(2_000, 50_000));
    let tally = &world.tally;
    eprintln!("{tally:?} in {:.1} s of virtual time", world.now.as_secs_f64());
    assert!(tally.restarts >= 5 && tally.unknown > 0, "{tally:?}");
    // Only restarts may prevent ops from being done: for each restart at most the ops that were outstanding, at either side.
    let under_way = 2 * SLOTS as u64 * tally.restarts;
    assert!(tally.done >= ops.saturating_sub(under_way), "{tally:?}");
    assert!(tally.done > ops / 2, "{tally:?}");
}

#[test]
fn sealed_ops_end_once_whatever_the_link_and_the_processes_do() {
    let ring = KeyRing::new([SharedKey::new([5; 32])]).expect("one key");
    for (seed, cipher) in [1, 3].into_iter().zip(Cipher::available()) {
        soak(&ring, cipher, seed);
    }
}

#[test]
fn insecure_ops_end_once_whatever_the_link_and_the_processes_do() {
    soak(&KeyRing::insecure(), Cipher::Aes256Gcm, 2);
}
