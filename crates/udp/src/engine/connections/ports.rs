//! The source ports of this side of a connection: which of them the peer has confirmed, and which one each packet takes.

use apus_cc::Ev;
use apus_units::{Span, Time};

use crate::session::Peer;
use crate::spreading::{AckPath, Agreed};

/// Number of requests to accept packets from a port that are repeated by themselves. Source: RFC 8899 §5.1.2, MAX_PROBES: a request
/// is as long as full packets are. Further ones need a packet that would leave by the port.
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
    /// How long a port is used without an answer, and the longest time between requests for it.
    keepalive: Span,
    ports: Box<[Port]>,
    /// Numbers of the ports that packets leave by; the first port if it is empty.
    usable: Vec<u8>,
    /// Whether a port is wanted.
    any_wanted: bool,
    /// Whether none is left since the last one lost packets.
    lost_all: bool,
    /// When all ports were asked for together.
    asked_all_at: Option<Time>,
    /// Number of probes of the path's MTU, which leave by the usable ports in turn.
    probes: usize,
}

/// A source port. Packets leave by it if the peer has confirmed it, or acknowledged a packet by it, within the last
/// `session.keepalive`, and not while the last ones were lost: what a NAT or a firewall has forgotten, or a path that is cut, ends
/// its use.
#[derive(Clone, Copy, Debug)]
struct Port {
    usable: bool,
    /// Whether only a request as long as full packets confirms it: it has not been confirmed, packets by it were lost, or they have
    /// become longer. One that nothing was sent by for long needs a short request.
    unproven: bool,
    /// When the peer was last heard by it.
    heard_at: Time,
    /// When packets stopped leaving by it; they still leave by the first port if there is no other.
    left_at: Time,
    /// Whether the peer is to be asked to confirm it.
    wanted: bool,
    /// Whether a request has been sent that was not answered.
    asked: bool,
    /// Number of unanswered requests since it was usable, and when the next may be sent.
    tries: u32,
    next_at: Time,
}

impl Port {
    /// Returns a port that the peer has confirmed at `now`.
    fn confirmed(now: Time) -> Self {
        let (heard_at, left_at, next_at) = (now, now, now);
        Self {
            usable: true,
            unproven: false,
            heard_at,
            left_at,
            wanted: false,
            asked: false,
            tries: 0,
            next_at,
        }
    }

    fn want(&mut self, now: Time) {
        (self.wanted, self.tries, self.next_at) = (true, 0, now);
    }

    /// Packets are not to leave by it; `unproven`: because they may not arrive.
    fn leave(&mut self, now: Time, unproven: bool) {
        (self.usable, self.left_at) = (false, now);
        self.unproven |= unproven;
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

/// Where an acknowledgement leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Back {
    /// The number of the port; `None`: by the first port, and to the port of the peer that the packet came from.
    pub(super) port: Option<u8>,
    /// Whether a request has become due.
    pub(super) due: bool,
}

impl Ports {
    /// Returns the ports of a connection that opens at `now`. All but the first are to be confirmed.
    pub(super) fn new(now: Time, agreed: Agreed, ack_path: AckPath, keepalive: Span) -> Self {
        let mut ports: Box<[Port]> = vec![Port::confirmed(now); usize::from(agreed.own)].into();
        for port in ports.iter_mut().skip(1) {
            port.leave(now, true);
            port.wanted = true;
        }
        let any_wanted = ports.len() > 1;
        let usable = vec![0];
        Self {
            agreed,
            ack_path,
            keepalive,
            ports,
            usable,
            any_wanted,
            lost_all: false,
            asked_all_at: None,
            probes: 0,
        }
    }

    /// Returns the port for a packet with this entropy value, of which the policy knows the path by the value modulo the number of
    /// ports.
    #[inline]
    pub(super) fn choose(&mut self, now: Time, ev: Ev) -> Chosen {
        let number = (ev.index() % self.ports.len()) as u8; // there are 1 to 256 ports
        if self.is_usable(now, number) {
            return Chosen { port: number, replaced: None, due: false };
        }
        self.choose_another(now, ev, number)
    }

    /// As [`Ports::choose`], if the port is not usable: asks for it, and chooses among the others, each of which is looked at once
    /// while it stays unusable.
    fn choose_another(&mut self, now: Time, ev: Ev, number: u8) -> Chosen {
        let due = self.ask(now, number);
        let turn = ev.index() / self.ports.len() + usize::from(number);
        let other = loop {
            let Some(place) = turn.checked_rem(self.usable.len()) else { break 0 };
            let other = self.usable[place];
            if self.is_usable(now, other) {
                break other;
            }
        };
        let same = ev.get() - u16::from(number); // the value's part above the number of ports
        let replaced = (other != number).then(|| Ev::new(same + u16::from(other)));
        Chosen { port: other, replaced, due }
    }

    /// Returns whether packets leave by a port; ends its use if nothing was heard by it for long.
    #[inline]
    fn is_usable(&mut self, now: Time, number: u8) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(number)) else { return false };
        if port.usable && now.since(port.heard_at) >= self.keepalive {
            port.leave(now, false);
            port.next_at = now;
            self.collect();
            return false;
        }
        port.usable
    }

    /// A packet would leave by a port that is not usable, or was not heard of for long. Returns whether a request has become due.
    fn ask(&mut self, now: Time, number: u8) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(number)) else { return false };
        if port.wanted || port.next_at > now {
            return false;
        }
        port.wanted = true;
        self.any_wanted = true;
        true
    }

    /// Asks for all ports that are not usable, but seldom: each request may be as long as a packet.
    fn ask_all(&mut self, now: Time) {
        if self.asked_all_at.is_none_or(|at| now.since(at) >= self.keepalive) {
            self.asked_all_at = Some(now);
            self.ports.iter_mut().filter(|port| !port.usable).for_each(|port| port.want(now));
            self.any_wanted = true;
        }
    }

    /// Several packets that left by a port were lost in a row: it is not used until the peer has confirmed it. Returns `false` if it
    /// was not used before.
    pub(super) fn suspect(&mut self, now: Time, number: u8) -> bool {
        let port = self.ports.get_mut(usize::from(number)).filter(|port| port.usable);
        let Some(port) = port else { return false };
        port.leave(now, true);
        port.want(now);
        self.any_wanted = true;
        self.collect();
        if self.usable.is_empty() {
            self.lost_all = true;
        }
        true
    }

    fn collect(&mut self) {
        self.usable.clear();
        let usable = (0u8..=u8::MAX).zip(&*self.ports).filter(|(_, port)| port.usable);
        self.usable.extend(usable.map(|(number, _)| number));
    }

    /// Returns the port of an acknowledgement of a packet that came by the peer's port `path`. Acknowledgements draw no answer, so
    /// that their ports are asked for in time.
    pub(super) fn back(&mut self, now: Time, path: u8) -> Back {
        if self.ack_path == AckPath::Symmetric {
            return Back { port: None, due: false };
        }
        let Some(port) = self.ports.get(usize::from(path)) else {
            return Back { port: Some(0), due: false };
        };
        let age = now.since(port.heard_at);
        let old = !port.usable || age.as_ps() >= self.keepalive.as_ps() / 2;
        let due = old && self.ask(now, path);
        let usable = path == 0 || self.is_usable(now, path);
        Back { port: Some(if usable { path } else { 0 }), due }
    }

    /// The peer has acknowledged a packet that left by a port at `sent_at`. Returns `true` if it is used again: the first port is
    /// used without being usable if there is no other.
    #[inline]
    pub(super) fn heard(&mut self, now: Time, number: u8, sent_at: Time) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(number)) else { return false };
        if port.usable {
            port.heard_at = now;
            port.wanted = false;
            return false;
        }
        let again = sent_at >= port.left_at && number == 0;
        if again {
            self.confirm(now, number);
        }
        again
    }

    /// The peer has confirmed a port by a request of `length` bytes; full packets have `full`. Returns `false`, without any change,
    /// if that says nothing of full packets, or if no request is open: a peer may send any number of answers.
    pub(super) fn on_joined(
        &mut self,
        now: Time,
        number: u8,
        (length, full): (usize, usize),
    ) -> bool {
        let port = self.ports.get(usize::from(number));
        let counts = port.is_some_and(|port| port.asked && (!port.unproven || length >= full));
        if counts {
            self.confirm(now, number);
        }
        counts
    }

    fn confirm(&mut self, now: Time, number: u8) {
        if let Some(port) = self.ports.get_mut(usize::from(number)) {
            *port = Port::confirmed(now);
        }
        self.collect();
        if std::mem::take(&mut self.lost_all) {
            self.ask_all(now);
        }
    }

    /// Full packets are longer than those with which the ports were confirmed.
    pub(super) fn on_longer_packets(&mut self, now: Time) {
        for port in self.ports.iter_mut().skip(1) {
            port.leave(now, true);
            port.want(now);
        }
        self.any_wanted = true;
        self.collect();
    }

    /// Calls `join` for the ports for which a request is due, with the port's number and whether the request is as long as full
    /// packets; returns when the next one is due. Each request doubles the time to the next one, from `retry` up to the keepalive
    /// time; after the third one the next needs a packet that would leave by the port.
    pub(super) fn step(&mut self, now: Time, retry: Span, mut join: impl FnMut(u8, bool)) -> Time {
        let mut next = Time::MAX;
        if !self.any_wanted {
            return next;
        }
        let mut left = JOINS_AT_ONCE;
        for (number, port) in (0u8..=u8::MAX).zip(&mut self.ports) {
            if !port.wanted {
                continue;
            }
            if port.next_at <= now && left == 0 {
                next = now + BETWEEN_JOINS;
                continue;
            }
            if port.next_at <= now {
                left -= 1;
                port.asked = true;
                join(number, port.unproven);
                let wait = retry.as_ps().saturating_mul(1 << port.tries.min(20));
                port.next_at = now + Span::from_ps(wait).min(self.keepalive);
                port.tries += 1;
                port.wanted = port.tries < MAX_JOINS;
                if !port.wanted {
                    continue;
                }
            }
            next = next.min(port.next_at);
        }
        self.any_wanted = next < Time::MAX;
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
mod tests;
