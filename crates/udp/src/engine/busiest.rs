//! The peer that sends most, and a socket connected to it.
//!
//! Passing names, and looking up the route, cost a small round trip a tenth of its time (measured on loopback).
//! So while looks are plain and more than two thirds of what comes is from one peer, an engine has a second
//! socket, connected to that peer: it is looked at every time, and the first one every [`OTHERS_EVERY`] looks.
//! Once looks are detailed because much comes at a time, or the peer sends less, the socket is connected to its
//! own address, of which nothing comes, and what was in it is read.
//!
//! The first socket stays open to all: what the second one cannot send goes that way. A host of several engines
//! has no second socket: the kernel would divide peers anew.

use std::io;
use std::net::SocketAddr;

use apus_units::{Span, Time};

use super::Engine;
use crate::stats::add;
use crate::sys::{Looked, ReceiveBuffers, Socket};

/// How far a peer must be ahead to get the socket. deviation: no source; opening it takes some 20 system calls,
/// 64 datagrams bring as much back.
const LEAD: u32 = 64;
/// What a datagram of another costs the lead: whoever keeps it sends more than two thirds. deviation: no source;
/// with less the others wait longer than the peer gains.
const LOSS: u32 = 2;
/// Looks at the peer's socket per look at the first one: 16 looks take 2 us. deviation: no source.
const OTHERS_EVERY: u32 = 16;
/// How long the socket stays with nobody, once a peer has lost it. deviation: no source; long beside what
/// connecting takes.
const REST: Span = Span::from_ms(10);

/// Who sends most (the majority vote of Boyer and Moore, with a lead that ends at [`LEAD`]).
#[derive(Debug, Default)]
struct Vote {
    leader: Option<SocketAddr>,
    lead: u32,
}

impl Vote {
    fn hear(&mut self, from: SocketAddr) {
        if self.leader == Some(from) {
            self.lead = (self.lead + 1).min(LEAD);
        } else if self.lead == 0 {
            self.leader = Some(from);
            self.lead = 1;
        } else {
            self.lead = self.lead.saturating_sub(LOSS);
        }
    }

    fn winner(&self) -> Option<SocketAddr> {
        self.leader.filter(|_| self.lead == LEAD)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing comes to it, and it is empty, or there is none.
    Away,
    /// It is connected; datagrams of others may be in it.
    Joining,
    /// All that comes is from the peer.
    Connected,
    /// Nothing comes to it, but something may be in it.
    Leaving,
}

/// The second socket.
#[derive(Debug)]
pub(super) struct Busiest {
    /// Whether there may be one.
    may: bool,
    socket: Option<Socket>,
    /// Where it is bound.
    address: SocketAddr,
    /// Whom it is connected to, or was last.
    peer: SocketAddr,
    stage: Stage,
    vote: Vote,
    /// Looks since the last one at the first socket.
    looks: u32,
    not_before: Time,
}

impl Busiest {
    pub(super) fn new(may: bool, address: SocketAddr) -> Self {
        Self {
            may,
            socket: None,
            address,
            peer: address,
            stage: Stage::Away,
            vote: Vote::default(),
            looks: 0,
            not_before: Time::ZERO,
        }
    }

    /// The socket, if it must be looked at.
    #[inline]
    pub(super) fn socket(&self) -> Option<&Socket> {
        if self.stage == Stage::Away { None } else { self.socket.as_ref() }
    }

    /// Whether a peer has it.
    #[inline]
    pub(super) fn is_joined(&self) -> bool {
        matches!(self.stage, Stage::Joining | Stage::Connected)
    }

    /// Whether `peer` has it.
    pub(super) fn is_of(&self, peer: SocketAddr) -> bool {
        self.is_joined() && self.peer == peer
    }

    /// Whether something of a peer that had it may be in it.
    #[inline]
    pub(super) fn is_leaving(&self) -> bool {
        self.stage == Stage::Leaving
    }

    /// A plain look at it.
    #[inline]
    pub(super) fn look(&mut self, buffers: &mut ReceiveBuffers) -> Looked {
        self.looks += 1;
        match (&self.socket, self.stage) {
            (Some(socket), Stage::Connected) => socket.receive_connected(self.peer, buffers),
            (Some(socket), _) => {
                let looked = socket.receive_one(buffers);
                if looked == Looked::Nothing {
                    self.on_nothing();
                }
                looked
            }
            (None, _) => Looked::Nothing,
        }
    }

    /// When the kernel received the datagram that it gave last, nanoseconds of the real-time clock.
    pub(super) fn arrived_at(&self) -> io::Result<i128> {
        self.socket.as_ref().map_or(Err(io::ErrorKind::NotConnected.into()), Socket::arrived_at)
    }

    /// Whether it is the first socket's turn.
    #[inline]
    pub(super) fn others_are_due(&self) -> bool {
        self.looks >= OTHERS_EVERY
    }

    /// The first socket was looked at.
    #[inline]
    pub(super) fn on_others(&mut self, found: bool) {
        // Where there was one there may be more.
        self.looks = if found { OTHERS_EVERY } else { 0 };
    }

    /// It was found empty; looks may have been of any kind.
    pub(super) fn on_nothing(&mut self) {
        match self.stage {
            Stage::Joining => self.stage = Stage::Connected,
            Stage::Leaving => self.stage = Stage::Away,
            Stage::Connected | Stage::Away => {}
        }
    }

    /// A plain look found a datagram of `from`; whether its peer has lost it.
    #[inline]
    pub(super) fn hear(&mut self, from: SocketAddr) -> bool {
        if !self.may {
            return false;
        }
        self.vote.hear(from);
        self.is_joined() && self.vote.lead == 0
    }

    /// Whether somebody is to get it.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.vote.lead == LEAD && self.may && self.stage == Stage::Away
    }

    /// Sends a datagram to `to`, if that is its peer and the kernel takes it; otherwise the first socket does.
    #[inline]
    pub(super) fn send(&self, to: SocketAddr, bytes: &[u8]) -> bool {
        let socket = self.socket.as_ref().filter(|_| self.is_of(to));
        // Errors of the path (ICMP) come here too: the kernel tells of them once.
        socket.is_some_and(|socket| socket.send_connected(bytes).is_ok())
    }
}

impl Engine {
    /// Gives the second socket to the peer that sends most. Looks are plain.
    #[cold]
    pub(super) fn join_busiest(&mut self) {
        let now = self.clock.now();
        let busiest = &mut self.busiest;
        let winner = busiest.vote.winner();
        busiest.vote = Vote::default();
        let Some(peer) = winner.filter(|_| now >= busiest.not_before) else { return };
        // Who has proved no key gets nothing, and a host's own address is where nothing comes from.
        if !self.connections.values().any(|connection| connection.peer == peer) {
            return;
        }
        let Ok(address) = self.socket.address_beside(peer) else { return };
        if address == peer {
            return;
        }
        if busiest.address != address {
            busiest.socket = None;
        }
        if busiest.socket.is_none() {
            let opened = self.socket.open_beside(address, self.config.socket_buffer);
            let Some(socket) = opened.ok().filter(Socket::keep_arrivals) else {
                // No room for a second one: the first one does it all.
                busiest.may = false;
                return;
            };
            (busiest.socket, busiest.address) = (Some(socket), address);
        }
        let Some(socket) = &busiest.socket else { return };
        socket.aggregate(false);
        // What it holds is read in any case.
        (busiest.peer, busiest.stage) = (peer, Stage::Joining);
        busiest.vote = Vote { leader: Some(peer), lead: LEAD };
        busiest.looks = OTHERS_EVERY;
        if socket.detail(false).is_err() || socket.connect(peer).is_err() {
            return self.leave_busiest();
        }
        add(&self.shared.stats.busiest_peers, 1);
    }

    /// Takes the second socket from its peer.
    #[cold]
    pub(super) fn leave_busiest(&mut self) {
        let busiest = &mut self.busiest;
        if !busiest.is_joined() {
            return;
        }
        let Some(socket) = &busiest.socket else { return };
        busiest.vote = Vote::default();
        busiest.not_before = self.clock.now() + REST;
        if socket.connect(busiest.address).is_ok() {
            busiest.stage = Stage::Leaving;
        } else {
            // What is in it is lost, which timers find out.
            (busiest.socket, busiest.stage) = (None, Stage::Away);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// The winner after `rounds` of these datagrams, by their senders' ports.
    fn winner(rounds: u32, ports: &[u16]) -> Option<u16> {
        let mut vote = Vote::default();
        for _ in 0..rounds {
            ports.iter().for_each(|&port| vote.hear(peer(port)));
        }
        vote.winner().map(|peer| peer.port())
    }

    #[test]
    fn a_peer_that_sends_more_than_two_thirds_wins() {
        assert_eq!(winner(63, &[1]), None, "the lead is 64");
        assert_eq!(winner(64, &[1]), Some(1));
        assert_eq!(winner(1000, &[1, 2]), None);
        assert_eq!(winner(1000, &[1, 2, 1]), None, "two thirds");
        // A lead of one more per round of four.
        assert_eq!(winner(70, &[1, 2, 1, 1]), Some(1));
        assert_eq!(winner(1000, &[1, 2, 3, 1, 1, 1, 4]), None);
    }

    #[test]
    fn whoever_has_won_loses_to_one_that_sends_more_than_a_third() {
        let mut vote = Vote::default();
        (0..1000).for_each(|_| vote.hear(peer(1)));
        for n in 1..=32 {
            assert_eq!(vote.lead, LEAD - LOSS * (n - 1));
            vote.hear(peer(2));
        }
        assert_eq!((vote.leader, vote.lead), (Some(peer(1)), 0));
        (0..64).for_each(|_| vote.hear(peer(2)));
        assert_eq!(vote.winner(), Some(peer(2)));
    }
}
