//! Goodput of honest peers beside each kind of abuse, in virtual time: a server whose core takes a stated time per packet.

use std::collections::VecDeque;
use std::net::SocketAddr;

use apus_units::{FlowId, OpId, PacketNumber};
use apus_wire::{Ack, Body, Header, Segment, SegmentKind};

use super::*;
use crate::connection::{Connection, Request};
use crate::session::{Counters, Entry, EntryKey, KeyPair, SharedKey};
use crate::virtual_host::{Connecting, Received, VirtualHost as Machine};

/// Time that the server's core takes for a datagram, the kernel's work for its socket included: from docs/security.md ("Costs") and
/// docs/performance.md, rounded up.
mod cost {
    use apus_units::Span;

    /// Dropped at its first bytes, by its key's name, or beyond a share or rate.
    pub const CHEAP: Span = Span::from_ns(900);
    /// A proof was computed, or a packet opened, that turned out not to be authentic.
    pub const PROOF: Span = Span::from_ns(1_100);
    /// A Hello that was proved, with its Cookie.
    pub const HELLO: Span = Span::from_ns(3_800);
    /// A Diffie-Hellman handshake.
    pub const HANDSHAKE: Span = Span::from_us(200);
    /// A packet of the transport, with the system call and its answer.
    pub const PACKET: Span = Span::from_ns(3_000);
    /// A packet that is sent besides.
    pub const SEND: Span = Span::from_ns(1_500);
}

/// Time from a socket to the other.
const DELAY: Span = Span::from_us(10);
/// Step of the simulation.
const TICK: Span = Span::from_us(10);
/// Datagrams that the server's socket holds: 4 MiB of small ones, as the kernel counts them (768 B each).
const SOCKET: usize = 5_461;
/// An honest peer submits a write of 64 bytes in every interval: four take 60 % of the core.
const INTERVAL: Span = Span::from_us(20);
const HONEST: usize = 4;

fn pair(n: usize) -> KeyPair {
    KeyPair::new([1 + n as u8; 32]).expect("not zeros")
}

fn address(n: usize) -> SocketAddr {
    ([10, 0, 0, 1 + n as u8], 7000).into()
}

/// The settings of host `n`: 0 is the server, the last one the abuser.
fn settings(n: usize) -> Config {
    let mut config = config();
    let own = EntryKey::Own(format!("host-{n}"), pair(n));
    let others: Vec<usize> = if n == 0 { (1..=HONEST + 1).collect() } else { vec![0] };
    let peer = |p: &usize| EntryKey::Peer(format!("host-{p}"), pair(*p).public());
    let shared = EntryKey::Shared(SharedKey::new([42; 32]));
    let keys = [shared, own].into_iter().chain(others.iter().map(peer)).map(Entry::new);
    config.keys = KeyRing::of(keys).expect("sound");
    config.listen = vec![address(n)];
    config.algorithm = Config::new(address(n), KeyRing::insecure()).expect("valid").algorithm;
    config
}

/// What the abuser does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abuse {
    Nothing,
    /// Random datagrams.
    Noise,
    /// A handshake packet under an unknown key.
    UnknownKey,
    /// The first packet of its own handshake, proved.
    Hellos,
    /// Handshakes of new processes as fast as the server answers.
    Handshakes,
    /// Its own packets damaged.
    Forged,
    /// Its own packets repeated.
    Replayed,
    /// Valid packets of ops on a region that is not its own, without congestion control.
    Refused,
    /// As before, of messages that nobody takes.
    Messages,
    /// As before, of atomic ops.
    Atomics,
    /// As before, of reads of 4096 bytes.
    Reads,
    /// As before, of acknowledgements of packets that were not sent.
    Acks,
}

/// The server and its peers.
struct World {
    now: Time,
    machines: Vec<Machine>,
    /// Datagrams to the peers and the server, with the time of their arrival.
    flights: VecDeque<(Time, usize, Received)>,
    socket: VecDeque<Received>,
    /// Kinds of the datagrams that the engine finds in its socket: at most two, so that it sees whether more wait.
    loaded: VecDeque<Option<u8>>,
    /// When the server's core is free.
    free: Time,
    counters: Counters,
}

impl World {
    fn new() -> Self {
        let now = Time::ZERO + Span::from_secs(1);
        let machine = |n| Machine::start(&settings(n), [1 + n as u8; 32], now).expect("sound");
        let machines = (0..HONEST + 2).map(machine).collect();
        let (flights, socket, loaded) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { now, machines, flights, socket, loaded, free: now, counters: Counters::default() }
    }

    fn send(&mut self, to: usize, from: usize, bytes: Vec<u8>) {
        let segment = bytes.len();
        let at = self.now + DELAY;
        let (from, stamp) = (address(from), Some(at));
        let received = Received { from, port: 0, tos: 0, ttl: Some(64), segment, stamp, bytes };
        self.flights.push_back((at, to, received));
    }

    /// Hands what a machine has sent to the network; returns the number of datagrams.
    fn collect(&mut self, n: usize) -> u64 {
        let mut count = 0;
        for burst in self.machines[n].take_sent(0) {
            let to = (0..HONEST + 2).find(|&to| address(to) == burst.to);
            for bytes in burst.datagrams {
                count += 1;
                if let Some(to) = to {
                    self.send(to, n, bytes);
                }
            }
        }
        count
    }

    /// Returns the time for the datagram that the server has just handled, by what became of it.
    fn cost(&mut self, kind: Option<u8>) -> Span {
        let after = *self.machines[0].engines[0].session_counters();
        let before = std::mem::replace(&mut self.counters, after);
        let changed = |of: fn(&Counters) -> u64| of(&after) > of(&before);
        if changed(|c| {
            c.dropped_malformed
                + c.dropped_unknown_key
                + c.dropped_rate
                + c.dropped_share
                + c.dropped_unknown
                + c.dropped_replay
                + c.dropped_other_mode
                + c.dropped_address
        }) {
            cost::CHEAP
        } else if changed(|c| c.dropped_unproven + c.dropped_forged) {
            cost::PROOF
        } else if kind == Some(0x40) {
            cost::HELLO
        } else if kind == Some(0x42) {
            cost::HANDSHAKE
        } else {
            cost::PACKET
        }
    }

    /// Lets a tick pass.
    fn tick(&mut self) {
        self.now += TICK;
        for machine in &self.machines {
            machine.set_now(self.now);
        }
        while self.flights.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, to, received)) = self.flights.pop_front() else { break };
            if to > 0 {
                self.machines[to].put(0, vec![received]);
            } else if self.socket.len() < SOCKET {
                self.socket.push_back(received);
            }
        }
        self.free = self.free.max(self.now - TICK);
        while self.free <= self.now {
            while self.loaded.len() < 2 {
                let Some(received) = self.socket.pop_front() else { break };
                let kind = (received.bytes.first() == Some(&0)).then(|| received.bytes[2]);
                self.loaded.push_back(kind);
                self.machines[0].put(0, vec![received]);
            }
            let Some(kind) = self.loaded.pop_front() else { break };
            self.machines[0].step(0);
            let sent = self.collect(0);
            let taken = self.cost(kind);
            // These costs include a packet that is sent.
            let included = [cost::PACKET, cost::HELLO, cost::HANDSHAKE].contains(&taken);
            let included = u64::from(included);
            self.free += taken + cost::SEND * sent.saturating_sub(included);
        }
        for n in 1..self.machines.len() {
            for _ in 0..8 {
                if !self.machines[n].step(0) {
                    break;
                }
            }
            self.collect(n);
        }
        // The server's timers and commands run even if no datagram comes.
        if self.loaded.is_empty() {
            self.machines[0].step(0);
            let sent = cost::SEND * self.collect(0);
            self.free += sent;
        }
    }

    fn connect(&mut self, n: usize) -> Connection {
        let connecting: Connecting = self.machines[n].connect(0, address(0), &[0]);
        for _ in 0..10_000 {
            self.tick();
            if let Some(connection) = connecting.try_take() {
                return connection.expect("listed");
            }
        }
        panic!("host {n} did not connect");
    }
}

/// A packet of the abuser's session that is valid but breaks what the transport promises.
fn packet(abuse: Abuse, number: u64, region: RegionKey) -> Header {
    let (kind, length, op_length) = match abuse {
        Abuse::Refused => (SegmentKind::Write { region, address: 0 }, 64, 64),
        Abuse::Atomics => (SegmentKind::FetchAdd { region, address: 0 }, 8, 8),
        Abuse::Reads => (SegmentKind::ReadRequest { region, address: 0 }, 0, 4096),
        _ => (SegmentKind::Message, 64, 64),
    };
    let segment =
        Segment { op: OpId::new(number), kind, offset: 0, length, op_length, attached: None };
    let ack = Ack {
        largest: PacketNumber::new(number),
        bitmap: u128::MAX,
        echo: PacketNumber::new(number),
        remote_queuing: Span::ZERO,
        hops: 1,
        marked: 0,
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    };
    let body = if abuse == Abuse::Acks { Body::Ack(ack) } else { Body::Data(segment) };
    Header { flow: FlowId::new(0), seq: PacketNumber::new(number), body }
}

impl Abuse {
    /// Valid packets that break what the transport promises.
    const VALID: [Self; 5] =
        [Self::Refused, Self::Messages, Self::Atomics, Self::Reads, Self::Acks];

    /// Datagrams per second.
    fn rate(self) -> f64 {
        match self {
            Self::Nothing | Self::Handshakes => 0.0,
            Self::Hellos | Self::Forged => 100_000.0,
            Self::Noise | Self::UnknownKey | Self::Replayed => 400_000.0,
            Self::Refused | Self::Messages | Self::Atomics | Self::Reads | Self::Acks => 250_000.0,
        }
    }
}

/// Returns the number of writes that the honest peers complete in 60 ms while the abuser sends `rate` datagrams per second.
fn goodput(abuse: Abuse, rate: f64) -> u64 {
    let mut world = World::new();
    let region = world.machines[0].register(vec![0; 4096], Access::ALL).expect("room");
    let closed = crate::Grant::nobody();
    let closed = world.machines[0].register_for(vec![0; 64], Access::ALL, closed).expect("room");
    let honest: Vec<Connection> = (1..=HONEST).map(|n| world.connect(n)).collect();
    let abuser = HONEST + 1;
    let own = world.connect(abuser);
    let accepted: Vec<Connection> = std::iter::from_fn(|| world.machines[0].try_accept()).collect();
    assert_eq!(accepted.len(), HONEST + 1);
    let (sender, ends) = async_channel::unbounded();
    let theirs = FlowId::new(HONEST as u32); // the server's flow of the last connection
    let (mut done, mut number, mut sample) = (0, 1 << 20, None);
    let (from, per_tick) = (world.now, TICK.as_ps() as f64 / 1e12);
    let (mut owed, mut process, mut next) = (0.0, 0u8, world.now);
    let warm_up = Span::from_ms(60);
    let measured = Span::from_ms(60);
    while world.now < from + warm_up + measured {
        while world.now >= next {
            next += INTERVAL;
            for connection in &honest {
                let write = Request::write(region.key(), 0, vec![1; 64]);
                // A peer whose ops do not end has no room for more.
                let _ = connection.submit_queued(0, write, &sender, 0);
            }
        }
        owed += rate * per_tick;
        while owed >= 1.0 {
            owed -= 1.0;
            number += 1;
            let target = if abuse == Abuse::Refused { closed.key() } else { region.key() };
            let header = Header { flow: theirs, ..packet(abuse, number, target) };
            let payload = vec![7; header.payload_len()];
            let mut forge = || {
                let sealed = world.machines[abuser].forge(&own, &header, &payload);
                sealed.expect("connected").1
            };
            let bytes = match abuse {
                Abuse::Noise => vec![0xa5; 200],
                Abuse::UnknownKey => {
                    let mut hello = vec![0; 64];
                    hello[..4].copy_from_slice(&[0, 1, 0x40, 0x11]);
                    hello[4] = number as u8;
                    hello
                }
                Abuse::Replayed => sample.get_or_insert_with(forge).clone(),
                Abuse::Forged => {
                    let mut bytes = forge();
                    let last = bytes.len() - 9;
                    bytes[last] ^= 1;
                    bytes
                }
                Abuse::Hellos => sample
                    .get_or_insert_with(|| {
                        let fresh = Machine::start(&settings(abuser), [99; 32], world.now);
                        let mut fresh = fresh.expect("sound");
                        let _asked = fresh.connect(0, address(0), &[0]);
                        fresh.step(0);
                        fresh.take_sent(0).remove(0).datagrams.remove(0)
                    })
                    .clone(),
                _ => forge(),
            };
            world.send(0, abuser, bytes);
        }
        if abuse == Abuse::Handshakes {
            // A new process at the same address asks again and again; the answers arrive at it.
            process = process.wrapping_add(1);
            let seed = [process; 32];
            world.machines[abuser] =
                Machine::start(&settings(abuser), seed, world.now).expect("sound");
            let asked = world.machines[abuser].connect(0, address(0), &[0]);
            for _ in 0..6 {
                world.tick();
            }
            drop(asked);
        }
        world.tick();
        while let Ok(end) = ends.try_recv() {
            done += u64::from(end.result.is_ok() && world.now >= from + warm_up);
        }
    }
    drop((accepted, own));
    done
}

#[test]
fn no_abuse_costs_other_peers_a_tenth_of_their_goodput() {
    let alone = goodput(Abuse::Nothing, 0.0);
    // Four peers, one op per 20 us each, for 60 ms.
    assert!((11_500..=12_100).contains(&alone), "{alone}");
    let others = [
        Abuse::Noise,
        Abuse::UnknownKey,
        Abuse::Hellos,
        Abuse::Handshakes,
        Abuse::Forged,
        Abuse::Replayed,
    ];
    let mut costs = Vec::new();
    for abuse in others.into_iter().chain(Abuse::VALID) {
        let beside = goodput(abuse, abuse.rate());
        if beside * 10 < alone * 9 {
            costs.push((abuse, beside));
        }
    }
    assert!(costs.is_empty(), "of {alone}: {costs:?}");
}

/// Dropping 300,000 packets takes 27 % of the core, and the honest peers need 60 %.
#[test]
fn beside_300_000_valid_packets_per_second_others_keep_three_quarters() {
    let alone = goodput(Abuse::Nothing, 0.0);
    let shares = Abuse::VALID.map(|abuse| goodput(abuse, 300_000.0) as f64 / alone as f64);
    assert!(shares.iter().all(|&share| share >= 0.75), "{shares:?}");
}

/// A peer that has a key sends on the flow of another.
#[test]
fn packets_for_flows_of_another_connection_are_dropped() {
    let mut world = World::new();
    let [first, second] = [1, 2].map(|n| world.connect(n));
    let accepted: Vec<Connection> = std::iter::from_fn(|| world.machines[0].try_accept()).collect();
    // The server's flows are numbered in the order of its connections.
    for (flow, of_second) in [(0, false), (1, true)] {
        let header =
            Header { flow: FlowId::new(flow), ..packet(Abuse::Replayed, 0, RegionKey::new(0)) };
        let (_, bytes) = world.machines[2].forge(&second, &header, &[7; 64]).expect("connected");
        world.send(0, 2, bytes);
        for _ in 0..10 {
            world.tick();
        }
        let got = accepted.iter().any(|c| c.try_receive().expect("open").is_some());
        assert_eq!(got, of_second, "flow {flow}");
    }
    drop(first);
}
