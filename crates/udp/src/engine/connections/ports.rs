//! The source ports of this side of a connection: which ports the peer has confirmed, and which port each packet uses.
//!
//! A port request asks the peer to accept packets from a port. The peer confirms the port by answering.

use apus_cc::Ev;
use apus_units::{Span, Time};

use crate::session::Peer;
use crate::spreading::{AckPath, Agreed};

/// Maximum number of port requests that are sent without a packet that needs the port. Source: RFC 8899 §5.1.2,
/// MAX_PROBES, since a request is as long as full packets. Further requests are sent only when a packet would use the
/// port.
const MAX_JOINS: u32 = 3;

/// Maximum number of port requests at a time, and the interval between such times: simultaneous requests for many ports
/// would fill the buffers of a path. deviation: no source; 48 Mb/s with packets of 1500 bytes, and 64 ms for 256 ports.
pub(super) const JOINS_AT_ONCE: u32 = 4;
pub(super) const BETWEEN_JOINS: Span = Span::from_ms(1);

/// The source ports of a connection.
#[derive(Debug)]
pub(in crate::engine) struct Ports {
    pub(super) agreed: Agreed,
    ack_path: AckPath,
    /// Time for which a port is used without an answer, and the maximum interval between requests for it.
    keepalive: Span,
    ports: Box<[Port]>,
    /// Numbers of the usable ports. If there is none, packets use the first port.
    usable: Vec<u8>,
    /// Whether a port is to be requested.
    any_wanted: bool,
    /// Whether no usable port has been left since the last one lost packets.
    lost_all: bool,
    /// When all unusable ports were last requested together.
    asked_all_at: Option<Time>,
    /// Number of probes of the path's MTU. The usable ports take turns in sending them.
    probes: usize,
}

/// A source port. It is usable if, within the last `session.keepalive`, the peer has confirmed it or acknowledged a
/// packet sent from it, and while its latest packets were not lost. A port therefore becomes unusable if a NAT or a
/// firewall has dropped its state, or if its path is cut.
#[derive(Clone, Copy, Debug)]
struct Port {
    usable: bool,
    /// Whether only a request as long as full packets can confirm the port. This is the case if the port was never
    /// confirmed, packets sent from it were lost, or full packets have become longer. If the port was only idle for
    /// long, a short request is enough.
    unproven: bool,
    /// When the peer last acknowledged a packet sent from the port, or confirmed the port.
    heard_at: Time,
    /// When the port became unusable. If no other port is usable, the first port still sends packets.
    left_at: Time,
    /// Whether the port is to be requested.
    wanted: bool,
    /// Whether a request is unanswered.
    asked: bool,
    /// Number of unanswered requests since the port was usable, and the earliest time of the next one.
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

    /// Makes the port unusable. `unproven` says that packets sent from it may not arrive.
    fn leave(&mut self, now: Time, unproven: bool) {
        (self.usable, self.left_at) = (false, now);
        self.unproven |= unproven;
    }
}

/// Source port of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Number of the port.
    pub(super) port: u8,
    /// Entropy value that names the port, if it is not the value that the policy has chosen.
    pub(super) replaced: Option<Ev>,
    /// Whether a port request has become due.
    pub(super) due: bool,
}

/// Source port of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Back {
    /// Number of the port. `None` means the first port of this side, with the acknowledged packet's source port as the
    /// destination.
    pub(super) port: Option<u8>,
    /// Whether a port request has become due.
    pub(super) due: bool,
}

impl Ports {
    /// Returns the ports of a connection that opens at `now`. All ports except the first are to be confirmed.
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

    /// Returns the port for a packet with this entropy value. For the policy, the value modulo the number of ports
    /// identifies the path.
    #[inline]
    pub(super) fn choose(&mut self, now: Time, ev: Ev) -> Chosen {
        let number = (ev.index() % self.ports.len()) as u8; // there are 1 to 256 ports
        if self.is_usable(now, number) {
            return Chosen { port: number, replaced: None, due: false };
        }
        self.choose_another(now, ev, number)
    }

    /// As [`Ports::choose`], for a port that is not usable. Requests the port, and chooses another one. A port that
    /// turns out to be unusable leaves the list, so it is checked only once.
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
        let same = ev.get() - u16::from(number); // part of the value above the port number
        let replaced = (other != number).then(|| Ev::new(same + u16::from(other)));
        Chosen { port: other, replaced, due }
    }

    /// Returns `true` if a port is usable. Makes the port unusable if it was not confirmed for the keepalive time.
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

    /// Requests a port that a packet would use, because the port is unusable or was not confirmed for long. Returns
    /// `true` if a request has become due.
    fn ask(&mut self, now: Time, number: u8) -> bool {
        let Some(port) = self.ports.get_mut(usize::from(number)) else { return false };
        if port.wanted || port.next_at > now {
            return false;
        }
        port.wanted = true;
        self.any_wanted = true;
        true
    }

    /// Requests all unusable ports, but at most once per keepalive time: each request may be as long as a full packet.
    fn ask_all(&mut self, now: Time) {
        if self.asked_all_at.is_none_or(|at| now.since(at) >= self.keepalive) {
            self.asked_all_at = Some(now);
            self.ports.iter_mut().filter(|port| !port.usable).for_each(|port| port.want(now));
            self.any_wanted = true;
        }
    }

    /// Makes a port unusable until the peer confirms it, because several consecutive packets sent from it were lost.
    /// Returns `false` if the port was not usable.
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

    /// Returns the port for the acknowledgement of a packet that came from the peer's port `path`. Since
    /// acknowledgements are not answered, their ports are requested again before their time ends.
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

    /// Handles an acknowledgement of a packet that left from a port at `sent_at`. Returns `true` if the port becomes
    /// usable again. Only the first port can: it sends packets even while it is unusable, if there is no other port.
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

    /// Handles the peer's confirmation of a port, in answer to a request of `length` bytes; full packets have `full`
    /// bytes. Returns `false`, without any effect, if the request was too short to prove the port, or if no request is
    /// unanswered: a peer may send any number of answers.
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

    /// Makes all further ports unproven, because full packets have become longer than the requests that confirmed the
    /// ports.
    pub(super) fn on_longer_packets(&mut self, now: Time) {
        for port in self.ports.iter_mut().skip(1) {
            port.leave(now, true);
            port.want(now);
        }
        self.any_wanted = true;
        self.collect();
    }

    /// Calls `join` for each port with a due request, with the port's number and whether the request is as long as full
    /// packets. Returns when the next request is due.
    ///
    /// Each request doubles the interval to the next one, from `retry` up to the keepalive time. After the third
    /// request, the next one is sent only when a packet would use the port.
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

    /// Returns the port for the next probe of the path's MTU.
    pub(super) fn next_probe(&mut self) -> u8 {
        self.probes += 1;
        self.probes.checked_rem(self.usable.len()).map_or(0, |place| self.usable[place])
    }

    /// Returns for each port whether it is usable.
    pub(super) fn usable(&self) -> impl Iterator<Item = bool> {
        self.ports.iter().map(|port| port.usable)
    }
}

/// Returns the peer as the destination of packets from a port of this side.
pub(super) fn by_port(peer: Peer, port: u8) -> Peer {
    Peer { port, ..peer }
}

#[cfg(test)]
mod tests;
