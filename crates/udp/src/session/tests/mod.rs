//! Two or more tables, connected by a link in virtual time.

mod adversary;
mod answers;
mod ciphers;
mod identity;
mod opening;
mod ports;
mod quotas;
mod replays;
mod stolen;
mod traffic;

use std::collections::VecDeque;
use std::net::SocketAddr;

use apus_units::{FlowId, OpId, PacketNumber, Span, Time};
use apus_wire::{Body, Header, Segment, SegmentKind};

use super::*;

/// A datagram in flight.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// A process with its socket.
pub(super) struct Host {
    pub(super) address: SocketAddr,
    pub(super) table: Sessions,
    pub(super) events: Vec<Event>,
    /// Packets delivered: their number in the flow, and their payload.
    pub(super) delivered: Vec<(u64, Vec<u8>)>,
    /// Whether requested sessions are accepted at once.
    pub(super) accepts: bool,
}

/// Hosts and the link between them.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) hosts: Vec<Host>,
    pub(super) wire: VecDeque<Datagram>,
    /// All datagrams that were ever sent.
    pub(super) seen: Vec<Datagram>,
}

pub(super) fn ring() -> KeyRing {
    KeyRing::new([SharedKey::new([42; 32])]).unwrap()
}

pub(super) fn at(ms: u64) -> Time {
    Time::from_ps(0) + Span::from_ms(ms)
}

pub(super) fn host(n: u8, ring: KeyRing, config: Config) -> Host {
    Host {
        address: SocketAddr::from(([10, 0, 0, n], 7000)),
        table: Sessions::new(config, ring, [n; 32]).unwrap(),
        events: Vec::new(),
        delivered: Vec::new(),
        accepts: true,
    }
}

/// The key pair of host `n`.
pub(super) fn pair(n: u8) -> KeyPair {
    KeyPair::new([n; 32]).unwrap()
}

/// The ring of host `n` in the group of [`ring`], which lists these hosts.
pub(super) fn identified(n: u8, peers: &[u8]) -> KeyRing {
    let own = EntryKey::Own(format!("host-{n}"), pair(n));
    let peer = |&p: &u8| EntryKey::Peer(format!("host-{p}"), pair(p).public());
    let group = EntryKey::Shared(SharedKey::new([42; 32]));
    let keys = [group, own].into_iter().chain(peers.iter().map(peer));
    KeyRing::of(keys.map(Entry::new)).unwrap()
}

/// A message fragment of `length` bytes, numbered `seq` in its flow.
pub(super) fn message(seq: u64, length: usize) -> Header {
    Header {
        flow: FlowId::new(3),
        seq: PacketNumber::new(seq),
        body: Body::Data(Segment {
            op: OpId::new(0),
            kind: SegmentKind::Message,
            offset: 0,
            length: length as u32,
            op_length: length as u64,
            attached: None,
        }),
    }
}

impl World {
    /// Host 0 and host 1, with one key.
    pub(super) fn new() -> Self {
        Self::with(ring(), ring())
    }

    pub(super) fn with(a: KeyRing, b: KeyRing) -> Self {
        let config = Config::default();
        Self {
            now: at(1_000_000),
            hosts: vec![host(1, a, config.clone()), host(2, b, config)],
            wire: VecDeque::new(),
            seen: Vec::new(),
        }
    }

    pub(super) fn address(&self, host: usize) -> SocketAddr {
        self.hosts[host].address
    }

    pub(super) fn connect(&mut self, from: usize, to: usize) -> SessionId {
        let (now, to) = (self.now, self.address(to));
        let table = &mut self.hosts[from].table;
        let key = table.keys.towards(None).unwrap();
        table.connect(now, to, key, b"hello").unwrap()
    }

    /// Takes all datagrams that the hosts have to send.
    pub(super) fn transmit(&mut self) {
        let mut fresh = Vec::new();
        for host in &mut self.hosts {
            let mut out = [0; MAX_HANDSHAKE_BYTES];
            while let Some((to, length)) = host.table.poll_transmit(self.now, &mut out) {
                let bytes = out[..length].to_vec();
                fresh.push(Datagram { from: host.address, to: to.address, bytes });
            }
        }
        self.wire.extend(fresh.iter().cloned());
        self.seen.extend(fresh);
    }

    /// Delivers a datagram. Its events are taken, and requested sessions are accepted if the host accepts them.
    pub(super) fn deliver(&mut self, datagram: &Datagram) -> Option<Dropped> {
        let now = self.now;
        let host = self.hosts.iter_mut().find(|h| h.address == datagram.to)?;
        let mut bytes = datagram.bytes.clone();
        let dropped = match host.table.receive(now, datagram.from, &mut bytes) {
            Received::Packet { header, payload, .. } => {
                host.delivered.push((header.seq.get(), payload.to_vec()));
                None
            }
            Received::Own
            | Received::Signal { .. }
            | Received::Probe { .. }
            | Received::ProbeAnswer { .. }
            | Received::Joined { .. } => None,
            Received::Dropped(why) => Some(why),
        };
        host.take_events(now);
        dropped
    }

    /// Delivers `count` datagrams, each before the next is sent; returns their kinds.
    pub(super) fn deliver_next(&mut self, count: usize) -> Vec<u8> {
        let mut next = || {
            self.transmit();
            let datagram = self.wire.pop_front().expect("another datagram");
            self.deliver(&datagram);
            datagram.bytes[2]
        };
        (0..count).map(|_| next()).collect()
    }

    /// Delivers datagrams until none is in flight.
    pub(super) fn settle(&mut self) {
        loop {
            self.transmit();
            let Some(datagram) = self.wire.pop_front() else { return };
            self.deliver(&datagram);
        }
    }

    /// Lets `ms` milliseconds pass, and handles timers. All datagrams arrive.
    pub(super) fn run(&mut self, ms: u64) {
        self.run_over(ms, Self::settle);
    }

    /// Like [`World::run`], but no datagram arrives.
    pub(super) fn run_cut(&mut self, ms: u64) {
        self.run_over(ms, |world| {
            world.transmit();
            world.wire.clear();
        });
    }

    fn run_over(&mut self, ms: u64, exchange: impl Fn(&mut Self)) {
        let end = self.now + Span::from_ms(ms);
        loop {
            exchange(self);
            let next = self.hosts.iter().filter_map(|h| h.table.next_timeout()).min();
            let Some(next) = next.filter(|&at| at <= end) else { break };
            self.now = self.now.max(next);
            for host in &mut self.hosts {
                host.table.handle_timeout(self.now);
                host.take_events(self.now);
            }
        }
        self.now = end;
    }

    /// Lets `ms` milliseconds pass, and handles timers. Packets to send stay with the hosts.
    pub(super) fn pass(&mut self, ms: u64) {
        self.now += Span::from_ms(ms);
        for host in &mut self.hosts {
            host.table.handle_timeout(self.now);
            host.take_events(self.now);
        }
    }

    /// Seals a message on a session of a host, without sending it.
    pub(super) fn sealed(
        &mut self,
        from: usize,
        id: SessionId,
        seq: u64,
        payload: &[u8],
    ) -> Datagram {
        let (now, host) = (self.now, &mut self.hosts[from]);
        let header = message(seq, payload.len());
        let start = header.encoded_len();
        let mut bytes = vec![0; start + payload.len() + host.table.overhead()];
        let length = host.table.seal(now, id, &header, payload, &mut bytes).unwrap();
        assert_eq!(length, bytes.len());
        Datagram { from: host.address, to: host.table.get(id).unwrap().peer.address, bytes }
    }

    /// A world in which host 0 has connected to host 1, with both sides' sessions.
    pub(super) fn connected() -> (Self, SessionId, SessionId) {
        Self::new().join()
    }

    pub(super) fn join(mut self) -> (Self, SessionId, SessionId) {
        let ours = self.connect(0, 1);
        self.settle();
        let theirs = self.hosts[1].session().expect("connected");
        assert!(self.hosts[0].table.is_connected(ours));
        assert!(self.hosts[1].table.is_connected(theirs));
        for host in &mut self.hosts {
            host.events.clear();
        }
        (self, ours, theirs)
    }
}

impl Host {
    pub(super) fn take_events(&mut self, now: Time) {
        while let Some(event) = self.table.poll_event() {
            if let Event::Incoming { session, .. } = event
                && self.accepts
            {
                self.table.accept(now, session, b"welcome").unwrap();
            }
            self.events.push(event);
        }
    }

    /// The session of the last `Connected`.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.events.iter().rev().find_map(|e| match e {
            Event::Connected { session, .. } => Some(*session),
            _ => None,
        })
    }

    /// Reasons that peers stated in their refusals.
    pub(super) fn told(&self) -> Vec<Told> {
        let told = |e: &Event| match e {
            Event::Refused { told, .. } => Some(told.clone()),
            _ => None,
        };
        self.events.iter().filter_map(told).collect()
    }

    /// Reasons for which sessions ended, oldest first.
    pub(super) fn ends(&self) -> Vec<(SessionId, End)> {
        let end = |e: &Event| match e {
            Event::Ended { session, reason } => Some((*session, *reason)),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }
}
