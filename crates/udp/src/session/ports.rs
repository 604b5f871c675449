//! Further ports of a session: source ports that the peer has proved, and source ports of this side that the peer has
//! confirmed.
//!
//! ```text
//! sender, from port n                          receiver
//!     | Join n (sealed, as long as packets)  ----> |  the address is not proven
//!     | <---------------- Challenge n, token       |  to where the Join came from; no longer than it
//!     | Prove n, token                     ------> |  the address is proven: packets from it are accepted
//!     | <------------------------- Joined n        |
//! the port is confirmed                            |
//! ```
//!
//! Packets of a session come from the address of its handshake, or from a proven port at the same IP address. All other
//! packets are dropped before a cipher is run, except Join and Prove from the same IP address. An unproven port receives only
//! answers to packets from it. A NAT may have changed the port, so the source address of the received packet counts.

use std::collections::VecDeque;

use apus_units::Time;

use super::event::{Received, SessionId};
use super::packet::Command;
use super::peer::Peer;
use super::state::{Session, want};
use super::table::Sessions;

/// Maximum number of ports of one side of a session. Rationale: MRC and Ultra Ethernet use up to 256 entropy values per flow.
pub const MAX_PORTS: u16 = 256;

/// Bytes of a token.
pub(super) const TOKEN_BYTES: usize = 8;
/// Bytes of Joined: the port's number, and the length of the Join.
pub(super) const JOINED_BYTES: usize = 3;
/// Bytes of Challenge and Prove: the port's number and the token. A Join has at least this many bytes.
pub(super) const PROOF_BYTES: usize = 1 + TOKEN_BYTES;

/// Random bytes that reach only the owner of an address.
type Token = [u8; TOKEN_BYTES];

/// An answer that leaves by the port at which the request arrived.
type Answer = (Peer, Command, [u8; PROOF_BYTES]);

/// A port of the peer.
#[derive(Clone, Copy, Debug, Default)]
struct PeerPort {
    proven: Option<u16>,
    /// The port from which a token is expected, and the length of the Join.
    candidate: Option<(u16, Token, u16)>,
}

/// The further ports of a session.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    /// Number of ports of this side at which packets of the session may arrive, and the ports that the peer has confirmed.
    own: u16,
    confirmed: Vec<u8>,
    /// The peer's ports, indexed by number.
    peer: Box<[PeerPort]>,
    /// The peer's proven ports (UDP ports) and their numbers, in ascending order.
    proven: Vec<(u16, u8)>,
    answers: VecDeque<Answer>,
}

impl Ports {
    /// Records that the peer has proved port `number` at UDP port `port`. Removes the earlier entries with this number or UDP
    /// port.
    fn prove(&mut self, number: u8, port: u16) {
        for (other, known) in (0u8..=u8::MAX).zip(&mut self.peer) {
            if other == number || known.proven == Some(port) {
                known.proven = None;
            }
        }
        if let Some(known) = self.peer.get_mut(usize::from(number)) {
            *known = PeerPort { proven: Some(port), candidate: None };
        }
        let all = (0u8..=u8::MAX).zip(&*self.peer);
        self.proven = all.filter_map(|(number, known)| Some((known.proven?, number))).collect();
        self.proven.sort_unstable();
    }
}

impl Session {
    /// Returns the number of the peer's port from which a packet comes; `None` if it is not proven.
    #[inline(never)] // sessions without further ports do not need it
    pub(super) fn path_of(&self, from: Peer) -> Option<u8> {
        let ports = self.ports.as_ref().filter(|_| self.is_beside(from))?;
        if from.address == self.peer.address {
            return Some(0);
        }
        let place = ports.proven.binary_search_by_key(&from.address.port(), |&(port, _)| port);
        place.ok().map(|place| ports.proven[place].1)
    }

    /// Returns `true` if a packet comes from an address at which the peer may prove a port.
    pub(super) fn may_prove(&self, from: Peer) -> bool {
        self.ports.as_ref().is_some_and(|ports| ports.peer.len() > 1) && self.is_beside(from)
    }

    /// Returns `true` if a packet comes from the peer's IP address to a port that the session uses.
    fn is_beside(&self, from: Peer) -> bool {
        let own = self.ports.as_ref().map_or(1, |ports| ports.own);
        (from.address.ip(), from.local) == (self.peer.address.ip(), self.peer.local)
            && u16::from(from.port) < own
    }

    /// Returns the address of a port of the peer. If the port is not proven, this is the address of the handshake.
    pub(super) fn at_port(&self, number: u8) -> Peer {
        let ports = self.ports.as_ref().filter(|_| number > 0);
        let known = ports.and_then(|ports| ports.peer.get(usize::from(number)));
        let Some(port) = known.and_then(|known| known.proven) else { return self.peer };
        let mut peer = self.peer;
        peer.address.set_port(port);
        peer
    }

    /// Returns the source and destination of ping number `tries`: first the first port, then each confirmed port in turn.
    pub(super) fn pinged_at(&self, tries: u32) -> Peer {
        let confirmed = self.ports.as_ref().map_or(&[][..], |ports| &ports.confirmed);
        let turn = (tries as usize).checked_rem(confirmed.len() + 1).unwrap_or(0);
        let port = turn.checked_sub(1).map_or(0, |turn| confirmed[turn]);
        Peer { port, ..self.peer }
    }
}

impl Sessions {
    /// Allows a connected session to use `own` ports of this side, and the peer to prove `peer` ports. Both numbers include the
    /// first port and are at most [`MAX_PORTS`].
    pub fn use_ports(&mut self, id: SessionId, own: u16, peer: u16) {
        let Some(session) = self.get_mut(id) else { return };
        session.window.widen();
        let peer = usize::from(peer.clamp(1, MAX_PORTS));
        let peer = vec![PeerPort::default(); peer].into();
        let own = own.clamp(1, MAX_PORTS);
        session.ports = Some(Box::new(Ports { own, peer, ..Ports::default() }));
    }

    /// Returns the destination of packets to port `number` of the peer of a session. If that port is not proven, this is the
    /// peer's first port.
    #[must_use]
    pub fn at_port(&self, id: SessionId, number: u8) -> Option<Peer> {
        self.get(id).map(|session| session.at_port(number))
    }

    /// Returns the UDP payload in bytes of the shortest request to accept packets from a port.
    #[must_use]
    pub fn least_join(&self) -> usize {
        super::packet::CONTROL_BYTES + self.overhead() + PROOF_BYTES
    }

    /// Fills `packet` with a request to accept packets from port `number` of this side; the request is as long as `packet`.
    /// Returns `false` if `packet` is too short or the session is not connected.
    pub fn seal_join(&mut self, now: Time, id: SessionId, number: u8, packet: &mut [u8]) -> bool {
        let Some(more) = packet.len().checked_sub(self.least_join()) else { return false };
        let mut payload = vec![0; PROOF_BYTES + more];
        payload[0] = number;
        self.seal_control(now, id, Command::Join, &payload, packet).is_some()
    }

    /// Handles the peer's request to accept packets from the address from which this packet came.
    pub(super) fn on_join(&mut self, id: SessionId, from: Peer, number: u8, length: usize) {
        let length = length as u16; // datagrams are shorter
        let token = self.random.bytes().and_then(|bytes| bytes.first_chunk().copied());
        let Some(session) = self.get_mut(id) else { return };
        let first = session.peer.address;
        let Some(ports) = &mut session.ports else { return };
        let place = usize::from(number);
        let Some(known) = ports.peer.get_mut(place) else { return };
        let mut payload = [number; PROOF_BYTES];
        let proven = if number == 0 { Some(first.port()) } else { known.proven };
        let command = match token {
            _ if proven == Some(from.address.port()) => {
                payload[1..JOINED_BYTES].copy_from_slice(&length.to_be_bytes());
                Command::Joined
            }
            Some(token) if number > 0 => {
                known.candidate = Some((from.address.port(), token, length));
                payload[1..].copy_from_slice(&token);
                Command::Challenge
            }
            _ => return,
        };
        self.answer(id, (from, command, payload));
    }

    /// Handles the peer's question whether this side is the source of packets from this address.
    pub(super) fn on_challenge(&mut self, id: SessionId, from: Peer, payload: [u8; PROOF_BYTES]) {
        if payload[0] == from.port {
            self.answer(id, (from, Command::Prove, payload));
        }
    }

    /// Handles the peer's proof of the address of a port.
    pub(super) fn on_prove(&mut self, id: SessionId, from: Peer, payload: [u8; PROOF_BYTES]) {
        let [number, token @ ..] = payload;
        let Some(ports) = self.get_mut(id).and_then(|session| session.ports.as_mut()) else {
            return;
        };
        let Some(known) = ports.peer.get(usize::from(number)) else { return };
        let port = from.address.port();
        let Some((_, _, length)) = known.candidate.filter(|&(p, t, _)| (p, t) == (port, token))
        else {
            return;
        };
        ports.prove(number, port);
        let mut payload = [number; PROOF_BYTES];
        payload[1..JOINED_BYTES].copy_from_slice(&length.to_be_bytes());
        self.answer(id, (from, Command::Joined, payload));
    }

    /// Handles the peer's confirmation of a port of this side.
    pub(super) fn on_joined(
        &mut self,
        id: SessionId,
        from: Peer,
        [number, length @ ..]: [u8; JOINED_BYTES],
    ) -> Received<'static> {
        if number != from.port {
            return Received::Own;
        }
        let ports = self.get_mut(id).and_then(|session| session.ports.as_mut());
        if let Some(ports) = ports.filter(|ports| !ports.confirmed.contains(&number))
            && number > 0
        {
            ports.confirmed.push(number);
        }
        Received::Joined { session: id, number, length: u16::from_be_bytes(length).into() }
    }

    fn answer(&mut self, id: SessionId, answer: Answer) {
        let Some(ports) = self.get_mut(id).and_then(|session| session.ports.as_mut()) else {
            return;
        };
        if ports.answers.len() < usize::from(MAX_PORTS) {
            ports.answers.push_back(answer);
            self.want(id, want::PORTS);
        }
    }

    /// Writes the oldest answer about a port to `out`; returns its destination and length.
    pub(super) fn write_answer(
        &mut self,
        now: Time,
        id: SessionId,
        out: &mut [u8],
    ) -> Option<(Peer, usize)> {
        let ports = self.get_mut(id)?.ports.as_mut()?;
        let (to, command, payload) = ports.answers.pop_front()?;
        let more = !ports.answers.is_empty();
        if more {
            self.want(id, want::PORTS);
        }
        let payload =
            if command == Command::Joined { &payload[..JOINED_BYTES] } else { &payload[..] };
        self.seal_control(now, id, command, payload, out).map(|length| (to, length))
    }
}
