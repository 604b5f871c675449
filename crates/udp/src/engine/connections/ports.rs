//! The source ports of this side of a connection: which of them the peer has confirmed, and which one each packet takes.

use apus_cc::Ev;
use apus_units::{Span, Time};

use crate::session::Peer;
use crate::spreading::{AckPath, Agreed};

/// Maximum number of unanswered requests to accept packets from a port. Source: RFC 8899 §5.1.2, MAX_PROBES: a request is as long
/// as full packets are.
const MAX_JOINS: u32 = 3;

/// Maximum number of requests at a time, and the time between two such times: those of many ports together would fill the buffers of
/// a path. deviation: no source; 48 Mb/s with packets of 1500 bytes, and 64 ms for 256 ports.
pub(super) const JOINS_AT_ONCE: u32 = 4;
pub(super) const BETWEEN_JOINS: Span = Span::from_ms(1);

/// The source ports of a connection.
#[derive(Debug)]
pub(in crate::engine) struct Ports {
    pub(super) agreed: Agreed,
    ack_path: AckPath,
    ports: Box<[Port]>,
    /// Numbers of the ports that packets leave by; the first port if it is empty.
    usable: Vec<u8>,
    /// Number of probes of the path's MTU, which leave by the usable ports in turn.
    probes: usize,
}

/// A source port. Packets leave by it if the peer has confirmed it, or acknowledged a packet by it, within the last
/// `session.keepalive`, and not while the last ones were lost: what a NAT or a firewall has forgotten, or a path that is cut, ends
/// its use.
#[derive(Clone, Copy, Debug)]
struct Port {
    usable: bool,
    /// When the peer was last heard by it.
    heard_at: Time,
    /// Whether the peer is to be asked to confirm it.
    wanted: bool,
    /// Number of requests since then, and when the next is due; if it is not wanted: when it may be.
    tries: u32,
    next_at: Time,
}

impl Port {
    fn want(&mut self, now: Time) {
        (self.wanted, self.tries, self.next_at) = (true, 0, now);
    }
}

/// Where a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The number of the port.
    pub(super) port: u8,
    /// The entropy value that names the port, if it is not the one that the policy has chosen.
    pub(super) replaced: Option<Ev>,
    /// Whether a request has become due.
    pub(super) due: bool,
}

impl Ports {
    /// Returns the ports of a connection that opens at `now`. All but the first are to be confirmed.
    pub(super) fn new(now: Time, agreed: Agreed, ack_path: AckPath) -> Self {
        let first = Port { usable: true, heard_at: now, wanted: false, tries: 0, next_at: now };
        let mut ports: Box<[Port]> = vec![first; usize::from(agreed.own)].into();
        for port in ports.iter_mut().skip(1) {
            (port.usable, port.wanted) = (false, true);
        }
        Self { agreed, ack_path, ports, usable: vec![0], probes: 0 }
    }

    /// Returns the port for a packet with this entropy value, of which the policy knows the path by the value modulo the number of
    /// ports.
    #[inline]
    pub(super) fn choose(&mut self, now: Time, ev: Ev, keepalive: Span) -> Chosen {
        let count = self.ports.len(); // not 0
        let number = ev.index() % count;
        let port = &self.ports[number];
        let age = now.since(port.heard_at);
        if port.usable && age.as_ps() < keepalive.as_ps() / 2 {
            return Chosen { port: number as u8, replaced: None, due: false };
        }
        self.choose_another(now, ev, keepalive)
    }

    /// As [`Ports::choose`], if the port is not usable, or was not heard of for long.
    fn choose_another(&mut self, now: Time, ev: Ev, keepalive: Span) -> Chosen {
        let mut due = false;
        for port in &mut self.ports {
            let age = now.since(port.heard_at);
            port.usable &= age < keepalive;
            let old = !port.usable || age.as_ps() >= keepalive.as_ps() / 2;
            if old && !port.wanted && port.next_at <= now {
                port.want(now);
                due = true;
            }
        }
        self.collect();
        let number = ev.index() % self.ports.len();
        if self.ports[number].usable {
            return Chosen { port: number as u8, replaced: None, due };
        }
        let turn = ev.index() / self.ports.len() + number;
        let other = turn.checked_rem(self.usable.len()).map_or(0, |place| self.usable[place]);
        let same = ev.get() - number as u16; // the value's part above the number of ports
        Chosen { port: other, replaced: Some(Ev::new(same + u16::from(other))), due }
    }

    /// Several packets that left by a port were lost in a row: it is not used until the peer has confirmed it.
    pub(super) fn suspect(&mut self, now: Time, number: u8) {
        if let Some(port) = self.ports.get_mut(usize::from(number)).filter(|port| port.usable) {
            port.usable = false;
            port.want(now);
            self.collect();
        }
    }

    fn collect(&mut self) {
        self.usable.clear();
        let usable = (0u8..=u8::MAX).zip(&*self.ports).filter(|(_, port)| port.usable);
        self.usable.extend(usable.map(|(number, _)| number));
    }

    /// Returns the port of an acknowledgement of a packet that came by the peer's port `path`; `None` if it leaves by the first
    /// port and goes to the peer's port.
    pub(super) fn back(&self, path: u8) -> Option<u8> {
        if self.ack_path == AckPath::Symmetric {
            return None;
        }
        let own = self.ports.get(usize::from(path)).filter(|port| port.usable);
        Some(own.map_or(0, |_| path))
    }

    /// The peer has acknowledged a packet that left by a port.
    #[inline]
    pub(super) fn heard(&mut self, now: Time, number: u8) {
        if let Some(port) = self.ports.get_mut(usize::from(number)).filter(|port| port.usable) {
            port.heard_at = now;
            port.wanted = false;
        }
    }

    /// The peer has confirmed a port.
    pub(super) fn on_joined(&mut self, now: Time, number: u8) {
        if let Some(port) = self.ports.get_mut(usize::from(number)) {
            *port = Port { usable: true, heard_at: now, wanted: false, tries: 0, next_at: now };
            self.collect();
        }
    }

    /// Full packets are longer than those with which the ports were confirmed.
    pub(super) fn on_longer_packets(&mut self, now: Time) {
        for port in self.ports.iter_mut().skip(1) {
            port.usable = false;
            port.want(now);
        }
        self.collect();
    }

    /// Appends the ports for which a request is due to `joins`; returns when the next one is due. Requests are repeated after
    /// `retry`, and ports that stay unconfirmed after `keepalive`.
    pub(super) fn step(
        &mut self,
        now: Time,
        retry: Span,
        keepalive: Span,
        mut join: impl FnMut(u8),
    ) -> Time {
        let mut next = Time::MAX;
        let (mut lost, mut left) = (false, JOINS_AT_ONCE);
        for (number, port) in (0u8..=u8::MAX).zip(&mut self.ports) {
            if !port.wanted {
                continue;
            }
            if port.next_at <= now && port.tries >= MAX_JOINS {
                *port = Port { usable: false, wanted: false, next_at: now + keepalive, ..*port };
                lost = true;
                continue;
            }
            if port.next_at <= now && left == 0 {
                next = now + BETWEEN_JOINS;
                continue;
            }
            if port.next_at <= now {
                left -= 1;
                join(number);
                port.next_at = now + retry * (1u64 << port.tries);
                port.tries += 1;
            }
            next = next.min(port.next_at);
        }
        if lost {
            self.collect();
        }
        next
    }

    /// Returns the port of the next probe of the path's MTU.
    pub(super) fn next_probe(&mut self) -> u8 {
        self.probes += 1;
        self.probes.checked_rem(self.usable.len()).map_or(0, |place| self.usable[place])
    }

    /// Returns whether packets leave by each port.
    pub(super) fn usable(&self) -> impl Iterator<Item = bool> {
        self.ports.iter().map(|port| port.usable)
    }
}

/// Returns the peer as it is reached from a port of this side.
pub(super) fn by_port(peer: Peer, port: u8) -> Peer {
    Peer { port, ..peer }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Span = Span::from_ms(100);
    const KEEPALIVE: Span = Span::from_secs(10);

    fn ports(own: u16) -> Ports {
        Ports::new(Time::ZERO, Agreed { own, peer: 1, range: 1024 }, AckPath::Symmetric)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn step(ports: &mut Ports, ms: u64) -> (Vec<u8>, Time) {
        let mut joins = Vec::new();
        let next = ports.step(at(ms), RETRY, KEEPALIVE, |number| joins.push(number));
        (joins, next)
    }

    /// Returns port and entropy value of a packet.
    fn choose(ports: &mut Ports, ms: u64, ev: u16) -> (u8, u16) {
        let chosen = ports.choose(at(ms), Ev::new(ev), KEEPALIVE);
        (chosen.port, chosen.replaced.map_or(ev, Ev::get))
    }

    #[test]
    fn packets_leave_by_confirmed_ports_and_the_value_says_which() {
        let mut ports = ports(4);
        assert_eq!(step(&mut ports, 0), (vec![1, 2, 3], at(100)));
        assert_eq!(choose(&mut ports, 0, 7), (0, 4), "only the first port");
        ports.on_joined(at(1), 3);
        assert_eq!(choose(&mut ports, 1, 7), (3, 7));
        // Value 4 * 4 + 1 is of port 1, which is not confirmed. It takes port 0 or 3.
        let (port, ev) = choose(&mut ports, 1, 17);
        assert_eq!((port == 0 || port == 3, ev), (true, 16 + u16::from(port)));
    }

    #[test]
    fn a_request_is_repeated_twice_and_again_after_a_keepalive_if_there_is_traffic() {
        let mut ports = ports(2);
        for (ms, next) in [(0, 100), (100, 300), (300, 700)] {
            assert_eq!(step(&mut ports, ms), (vec![1], at(next)));
        }
        assert_eq!(step(&mut ports, 700), (vec![], Time::MAX), "given up");
        ports.heard(at(10_000), 0);
        assert!(!ports.choose(at(10_699), Ev::new(1), KEEPALIVE).due);
        assert!(ports.choose(at(10_700), Ev::new(1), KEEPALIVE).due);
        assert_eq!(step(&mut ports, 10_700).0, [1]);
    }

    #[test]
    fn a_port_that_lost_packets_is_used_again_once_the_peer_confirms_it() {
        let mut ports = ports(2);
        ports.on_joined(at(0), 1);
        ports.suspect(at(5), 1);
        assert_eq!(choose(&mut ports, 5, 1).0, 0);
        assert_eq!(step(&mut ports, 5).0, [1]);
        ports.on_joined(at(6), 1);
        assert_eq!(choose(&mut ports, 6, 1), (1, 1));
    }

    #[test]
    fn requests_for_many_ports_do_not_leave_at_once() {
        let mut ports = ports(64);
        let mut joined = Vec::new();
        for ms in 0..16 {
            let (joins, next) = step(&mut ports, ms);
            assert_eq!(joins.len(), if ms < 15 { 4 } else { 3 });
            joined.extend(joins);
            assert_eq!(next, if ms < 15 { at(ms + 1) } else { at(100) });
        }
        assert_eq!(joined, (1..64).collect::<Vec<u8>>());
    }

    #[test]
    fn there_may_be_as_many_ports_as_numbers() {
        let mut ports = ports(256);
        let joined: Vec<u8> = (0..64).flat_map(|ms| step(&mut ports, ms).0).collect();
        assert_eq!(joined, (1..=255).collect::<Vec<u8>>());
        ports.on_joined(at(64), 255);
        assert_eq!(choose(&mut ports, 64, 0x1ff), (255, 0x1ff));
    }

    #[test]
    fn a_port_that_is_not_heard_of_is_asked_for_and_then_not_used() {
        let mut ports = ports(2);
        ports.on_joined(at(0), 1);
        ports.heard(at(4_000), 1);
        assert_eq!(choose(&mut ports, 8_999, 1), (1, 1));
        let chosen = ports.choose(at(9_000), Ev::new(1), KEEPALIVE);
        assert_eq!((chosen.port, chosen.due), (1, true), "asked for, and still used");
        assert!(step(&mut ports, 9_000).0.contains(&1));
        ports.on_joined(at(9_001), 0);
        assert_eq!(choose(&mut ports, 13_999, 1), (1, 1));
        assert_eq!(choose(&mut ports, 14_000, 1), (0, 0), "not heard of for a keepalive time");
        ports.on_joined(at(14_001), 1);
        assert_eq!(choose(&mut ports, 14_002, 1), (1, 1));
    }

    #[test]
    fn longer_packets_wait_for_a_confirmation_of_their_length() {
        let mut ports = ports(2);
        ports.on_joined(at(0), 1);
        ports.on_longer_packets(at(5));
        assert_eq!(choose(&mut ports, 5, 1).0, 0);
        assert_eq!(step(&mut ports, 5).0, [1]);
    }
}
