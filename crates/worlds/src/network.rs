//! The network of a world: treatment of datagrams between machines.

use std::net::SocketAddr;

use apus_udp::virtual_host::Received;
use apus_units::{Span, Time};

use crate::fault::{Trouble, affects};
use crate::machine::{MOVED, Machine};
use crate::world::{Event, World};

/// Maximum number of datagrams that adversaries record.
const MAX_CAPTURED: usize = 256;

/// A datagram in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) tos: u8,
    pub(crate) ttl: u8,
    pub(crate) bytes: Vec<u8>,
}

/// Destination of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    host: usize,
    /// Engine and number of the port, if it is not the first port.
    port: Option<(usize, u8)>,
}

impl Place {
    /// Returns the number of the port.
    fn number(self) -> u8 {
        self.port.map_or(0, |(_, number)| number)
    }
}

impl World<'_> {
    /// Returns the current destination of an address.
    fn reached(&self, address: SocketAddr) -> Option<Place> {
        if let Some(&host) = self.owners.get(&address) {
            let machine = &self.machines[host];
            let here = machine.address == address || machine.external == Some(address);
            return here.then_some(Place { host, port: None });
        }
        let here = |machine: &&Machine| machine.source().ip() == address.ip();
        let machine = self.machines.iter().find(here)?;
        let inside = machine.owner_of(address.port());
        let behind = || machine.owner_of(address.port().checked_sub(MOVED)?);
        let (engine, number) = inside.or_else(behind)?;
        // A NAT knows a port by one number only.
        let moved = self.is_moved(machine.number, number);
        (moved != inside.is_some())
            .then_some(Place { host: machine.number, port: Some((engine, number)) })
    }

    /// Returns `true` if a NAT has lost its mapping for a port of a host.
    fn is_moved(&self, host: usize, number: u8) -> bool {
        let faults = self.active.iter().zip(&self.plan.faults).filter(|(active, _)| **active);
        faults.into_iter().any(|(_, fault)| fault.what == Trouble::RebindPort(host, number))
    }

    /// Returns the source address that others see in datagrams that a host sends from one of its ports.
    pub(crate) fn seen_from(&self, host: usize, from: SocketAddr) -> SocketAddr {
        let machine = &self.machines[host];
        let Some((_, number)) = machine.owner_of(from.port()) else { return machine.source() };
        let moved = if self.is_moved(host, number) { MOVED } else { 0 };
        SocketAddr::new(machine.source().ip(), from.port() + moved)
    }

    /// Sends a datagram of a host into the network.
    pub(crate) fn send(&mut self, host: usize, mut flight: Flight) {
        self.counts.datagrams += 1;
        let Some(place) = self.reached(flight.to) else { return };
        let to = place.host;
        let port = self.reached(flight.from).map_or(0, Place::number);
        self.counts.by_ports += u64::from(port > 0);
        let at = |of: usize, number: u8| {
            of == host && number == port || of == to && number == place.number()
        };
        if self.captures && self.random.chance(250) {
            let place = self.random.index(MAX_CAPTURED);
            match self.captured.get_mut(place) {
                Some(captured) => *captured = flight.clone(),
                None => self.captured.push(flight.clone()),
            }
        }
        flight.ttl -= self.random.range(1, 3) as u8;
        let mut late = Span::ZERO;
        let mut copies = 1;
        for number in 0..self.active.len() {
            if !self.active[number] {
                continue;
            }
            match self.plan.faults[number].what {
                Trouble::Lose(links, share) if affects(links, host, to) => {
                    copies *= u32::from(!self.random.chance(share));
                }
                Trouble::Duplicate(links, share) if affects(links, host, to) => {
                    copies += u32::from(copies > 0 && self.random.chance(share));
                }
                Trouble::Delay(links, most) if affects(links, host, to) => {
                    late += self.random.below(most);
                }
                Trouble::Corrupt(links, share)
                    if affects(links, host, to) && self.random.chance(share) =>
                {
                    self.corrupt(&mut flight.bytes);
                }
                Trouble::Truncate(links, share)
                    if affects(links, host, to) && self.random.chance(share) =>
                {
                    let length = self.random.index(flight.bytes.len().max(1));
                    flight.bytes.truncate(length);
                }
                Trouble::Narrow(links, longest) if affects(links, host, to) => {
                    copies *= u32::from(flight.bytes.len() <= longest);
                }
                Trouble::LosePort(of, number, share) if at(of, number) => {
                    copies *= u32::from(!self.random.chance(share));
                }
                Trouble::DelayPort(of, number, most) if at(of, number) => {
                    late += self.random.below(most);
                }
                Trouble::NarrowPort(of, number, longest) if at(of, number) => {
                    copies *= u32::from(flight.bytes.len() <= longest);
                }
                Trouble::Cut(cut, only_sends) if cut == host || cut == to && !only_sends => {
                    copies = 0;
                }
                Trouble::Replay(share) if self.random.chance(share) => {
                    let after = self.random.span(Span::from_us(1), Span::from_secs(10));
                    self.push(self.now + after, Event::Arrive(flight.clone()));
                }
                _ => {}
            }
        }
        let [least, jitter] = self.plan.delay;
        let mut flight = Some(flight);
        for left in (0..copies).rev() {
            let at = self.now + least + self.random.below(jitter) + late;
            let copy = if left > 0 { flight.clone() } else { flight.take() };
            copy.into_iter().for_each(|flight| self.push(at, Event::Arrive(flight)));
        }
    }

    /// Flips a few bits.
    pub(crate) fn corrupt(&mut self, bytes: &mut [u8]) {
        for _ in 0..self.random.range(1, 6) {
            if !bytes.is_empty() {
                let place = self.random.index(bytes.len());
                bytes[place] ^= 1 << self.random.range(0, 7);
            }
        }
    }

    /// Delivers a datagram to its destination.
    pub(crate) fn arrive(&mut self, flight: Flight) {
        let Some(place) = self.reached(flight.to) else { return };
        let host = place.host;
        if self.machines[host].host.is_none() || flight.bytes.len() > 65_000 {
            return;
        }
        let engine = match place.port {
            Some((engine, _)) => engine,
            None => self.engine_for(host, flight.from),
        };
        let (now, error) = (self.now, self.machines[host].stamp_error);
        let wrong = self.random.below(error + error);
        let machine = &mut self.machines[host];
        let at = machine.clock.at(now);
        // Timestamps are wrong in both directions.
        let stamp = at.saturating_add(wrong).saturating_sub(error);
        let Flight { from, tos, ttl, bytes, .. } = flight;
        let received = Received {
            from,
            port: place.number(),
            tos,
            ttl: Some(ttl),
            segment: bytes.len(),
            stamp: machine.plan.stamps.then_some(stamp).filter(|&stamp| stamp > Time::ZERO),
            bytes,
        };
        if machine.put(engine, received) {
            self.schedule_run(host, engine, now + Span::from_ns(500));
        }
    }
}
