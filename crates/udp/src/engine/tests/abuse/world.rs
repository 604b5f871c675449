//! A server and its peers in virtual time. The server's core takes a given time per packet.

use std::collections::VecDeque;
use std::net::SocketAddr;

use apus_wire::decode_extended;

use super::super::*;
use super::greedy::Greedy;
use crate::connection::Connection;
use crate::engine::connections::COMPARED;
use crate::session::{Counters, Entry, EntryKey, KeyPair, SessionId, SharedKey};
use crate::virtual_host::{Connecting, Received, VirtualHost as Machine};

/// Time that the server's core takes for a datagram, including the kernel's work for its socket. Source: docs/security.md
/// ("Costs") and docs/performance.md, rounded up.
mod cost {
    use apus_units::Span;

    /// Datagram dropped after its first bytes, because of its key's name, or because it exceeds a share.
    pub const CHEAP: Span = Span::from_ns(900);
    /// Packet that was not authentic: a proof was computed, or the packet was opened. Also an Init, whose proof and cookie are
    /// checked before its rate.
    pub const PROOF: Span = Span::from_ns(1_100);
    /// Proved Hello, with its Cookie.
    pub const HELLO: Span = Span::from_ns(3_800);
    /// Diffie-Hellman handshake.
    pub const HANDSHAKE: Span = Span::from_us(200);
    /// Packet of the transport, with the system call and its answer.
    pub const PACKET: Span = Span::from_ns(3_000);
    /// Additional packet that is sent.
    pub const SEND: Span = Span::from_ns(1_500);
    /// Replacement of a key, in one direction.
    pub const NEW_KEY: Span = Span::from_ns(1_500);
    /// Comparison of the flow number of a signal with a run of flow numbers. deviation: not measured; as long as one access
    /// to the second-level cache.
    pub const COMPARED: Span = Span::from_ns(5);
}

/// Kind of a switch's signal.
const SIGNAL: u8 = 12;
/// Kinds of the first three packets of a handshake, as in `session::packet::kind`.
const HELLO: u8 = 0x40;
const COOKIE: u8 = 0x41;
const INIT: u8 = 0x42;
/// Delay from one socket to the other.
const DELAY: Span = Span::from_us(10);
/// Step of the simulation.
pub(super) const TICK: Span = Span::from_us(10);
/// Number of datagrams that the server's socket holds: 4 MiB of small ones, as the kernel counts them (768 B each).
const SOCKET: usize = 5_461;
/// Number of honest peers.
pub(super) const HONEST: usize = 4;

fn pair(n: usize) -> KeyPair {
    KeyPair::new([1 + n as u8; 32]).expect("not zeros")
}

pub(super) fn address(n: usize) -> SocketAddr {
    ([10, 0, 0, 1 + n as u8], 7000).into()
}

/// Returns the settings of host `n`: host 0 is the server, and the last host is the abuser.
pub(super) fn settings(n: usize) -> Config {
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

/// The server and its peers.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) machines: Vec<Machine>,
    /// Datagrams in flight to the peers and the server, with the time of their arrival.
    flights: VecDeque<(Time, usize, Received)>,
    socket: VecDeque<Received>,
    /// Kinds of the datagrams in the socket of the server's engine, and whether the abuser has sent them: at most two, so that
    /// the engine sees whether more wait.
    loaded: VecDeque<(Option<u8>, bool)>,
    /// Time at which the server's core is free.
    free: Time,
    counters: Counters,
    /// Number of Diffie-Hellman handshakes that the server has computed.
    pub(super) handshakes: u64,
    /// Number of Cookies that the server has sent.
    pub(super) cookies: u64,
    /// Number of packets of the abuser that the server has opened.
    pub(super) opened: u64,
    /// Number of runs of flow numbers that the server has compared with those of signals.
    pub(super) compared: u64,
    /// The abuser's and the server's number of the session whose key the abuser replaces with each packet that the server
    /// receives.
    pub(super) new_keys: Option<[SessionId; 2]>,
    /// The abuser, if it sends valid packets. It reads the datagrams that arrive for it.
    pub(super) greedy: Option<Greedy>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(settings)
    }

    /// Returns the server and its peers with these settings.
    pub(super) fn with(settings: impl Fn(usize) -> Config) -> Self {
        let now = Time::ZERO + Span::from_secs(1);
        let machine = |n| Machine::start(&settings(n), [1 + n as u8; 32], now).expect("sound");
        let machines = (0..HONEST + 2).map(machine).collect();
        let (flights, socket, loaded) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let counters = Counters::default();
        Self {
            now,
            machines,
            flights,
            socket,
            loaded,
            free: now,
            counters,
            handshakes: 0,
            cookies: 0,
            opened: 0,
            compared: 0,
            new_keys: None,
            greedy: None,
        }
    }

    pub(super) fn send(&mut self, to: usize, from: usize, bytes: Vec<u8>) {
        let segment = bytes.len();
        let at = self.now + DELAY;
        let (from, stamp) = (address(from), Some(at));
        let received = Received { from, port: 0, tos: 0, ttl: Some(64), segment, stamp, bytes };
        self.flights.push_back((at, to, received));
    }

    /// Passes the datagrams that a machine has sent to the network; returns their number.
    fn collect(&mut self, n: usize) -> u64 {
        let mut count = 0;
        for burst in self.machines[n].take_sent(0) {
            let to = (0..self.machines.len()).find(|&to| address(to) == burst.to);
            for bytes in burst.datagrams {
                count += 1;
                self.cookies +=
                    u64::from(n == 0 && bytes.first() == Some(&0) && bytes[2] == COOKIE);
                if let Some(to) = to {
                    self.send(to, n, bytes);
                }
            }
        }
        count
    }

    /// Returns the time for the datagram that the server has just handled, according to its outcome.
    fn cost(&mut self, (kind, is_abusers): (Option<u8>, bool)) -> Span {
        let after = self.server_counters();
        let before = std::mem::replace(&mut self.counters, after);
        if is_abusers {
            self.opened += after.opened - before.opened;
        }
        let changed = |of: fn(&Counters) -> u64| of(&after) > of(&before);
        if changed(|c| {
            c.dropped_malformed
                + c.dropped_unknown_key
                + c.dropped_share
                + c.dropped_unknown
                + c.dropped_replay
                + c.dropped_other_mode
                + c.dropped_address
        }) {
            cost::CHEAP
        } else if changed(|c| c.dropped_unproven + c.dropped_forged + c.dropped_rate)
            || kind == Some(INIT)
            || kind == Some(SIGNAL)
        {
            // The handshake itself is counted when it has its turn, and comparisons are counted too.
            cost::PROOF
        } else if kind == Some(HELLO) {
            cost::HELLO
        } else {
            cost::PACKET
        }
    }

    /// Returns the counters of the server's sessions.
    pub(super) fn server_counters(&mut self) -> Counters {
        *self.machines[0].engines[0].sessions().counters()
    }

    /// Returns the number of handshakes that the server has computed since the last call.
    fn handshakes(&mut self) -> u64 {
        let taken = self.machines[0].engines[0].sessions().turns.taken;
        taken - std::mem::replace(&mut self.handshakes, taken)
    }

    /// Returns the number of times that either key of the abuser's session has been replaced at the server.
    fn keys_replaced(&mut self) -> u64 {
        let Some([_, theirs]) = self.new_keys else { return 0 };
        let epochs = self.machines[0].engines[0].sessions().epochs(theirs);
        epochs.map_or(0, |epochs| epochs.iter().sum())
    }

    /// Seals the abuser's next received packet again, under a key that the server does not have yet. An abuser cannot do
    /// more: after a lost packet, the server does not know the key of the next one.
    fn seal_under_new_key(&mut self) {
        let Some([ours, theirs]) = self.new_keys else { return };
        let (servers, others) = self.machines.split_at_mut(1);
        let (server, abuser) = (&mut servers[0].engines[0], &mut others[HONEST].engines[0]);
        let known = server.sessions().epochs(theirs);
        server.network.change_next(|from, bytes| {
            let Some(decoded) = decode_extended(bytes).ok().filter(|_| from == address(HONEST + 1))
            else {
                return;
            };
            let epoch = abuser.sessions().epochs(ours).map(|[sending, _]| sending);
            if epoch == known.map(|[_, receiving]| receiving) {
                abuser.sessions().skip_key(ours);
            }
            let payload = vec![7; decoded.header.payload_len()];
            *bytes = abuser.seal(ours, (&decoded.header).into(), &payload).expect("connected");
        });
    }

    /// Advances time by one tick.
    pub(super) fn tick(&mut self) {
        self.now += TICK;
        for machine in &self.machines {
            machine.set_now(self.now);
        }
        while self.flights.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, to, received)) = self.flights.pop_front() else { break };
            if to > 0 {
                if let Some(greedy) = self.greedy.as_mut().filter(|_| to == HONEST + 1) {
                    greedy.hear(&received.bytes);
                }
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
                self.loaded.push_back((kind, received.from == address(HONEST + 1)));
                self.machines[0].put(0, vec![received]);
            }
            let Some(loaded) = self.loaded.pop_front() else { break };
            self.seal_under_new_key();
            let before = self.keys_replaced();
            let compared = COMPARED.get();
            self.machines[0].step(0);
            let compared = COMPARED.get() - compared;
            self.compared += compared;
            self.free += cost::COMPARED * compared;
            let sent = self.collect(0);
            let taken = self.cost(loaded);
            let replaced = self.keys_replaced() - before;
            self.free += cost::NEW_KEY * replaced;
            // These costs include one packet that is sent.
            let handshakes = self.handshakes();
            let included = [cost::PACKET, cost::HELLO].contains(&taken);
            let included = u64::from(included) + handshakes;
            let sent = cost::SEND * sent.saturating_sub(included);
            self.free += taken + cost::HANDSHAKE * handshakes + sent;
        }
        for n in 1..self.machines.len() {
            for _ in 0..8 {
                if !self.machines[n].step(0) {
                    break;
                }
            }
            self.collect(n);
        }
        // The server's timers and commands run even if no datagram arrives.
        if self.loaded.is_empty() {
            self.machines[0].step(0);
            let sent = self.collect(0);
            let handshakes = self.handshakes();
            let sent = cost::SEND * sent.saturating_sub(handshakes);
            self.free = self.free.max(self.now - TICK) + cost::HANDSHAKE * handshakes + sent;
        }
    }

    pub(super) fn connect(&mut self, n: usize) -> Connection {
        self.connect_by(n, 1)
    }

    /// As [`World::connect`], with this number of flows.
    pub(super) fn connect_by(&mut self, n: usize, flows: usize) -> Connection {
        let connecting: Connecting = self.machines[n].connect(0, address(0), &vec![0; flows]);
        for _ in 0..10_000 {
            self.tick();
            if let Some(connection) = connecting.try_take() {
                return connection.expect("listed");
            }
        }
        panic!("host {n} did not connect");
    }
}
