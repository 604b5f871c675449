//! Adversaries: outsiders, which replay, forge and flood. Insiders have a file of their own.

use std::net::SocketAddr;

use apus_units::Span;

use crate::fault::Trouble;
use crate::network::Flight;
use crate::world::{Event, World};

/// Maximum number of actions per fault.
const MAX_ACTS: u32 = 300;

/// Packet kinds that sessions use themselves (`apus_udp::session`). Outsiders imitate them.
const OWN_KINDS: [u8; 7] = [0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46];

impl World<'_> {
    /// Performs one action of a fault's adversary and schedules the next one.
    pub(crate) fn act(&mut self, number: usize) {
        if !self.active[number] || self.acts[number] >= MAX_ACTS {
            return;
        }
        self.acts[number] += 1;
        let pause = match self.plan.faults[number].what {
            Trouble::Forge(every) => {
                self.forge();
                every
            }
            Trouble::Flood(host, datagrams) => {
                (0..datagrams).for_each(|_| self.flood(host));
                Span::from_ms(20)
            }
            Trouble::Insider(from, to) => {
                self.betray(from, to);
                self.random.span(Span::from_us(20), Span::from_ms(10))
            }
            Trouble::InformedInsider(from, to) => {
                self.betray_informed(from, to);
                self.random.span(Span::from_us(20), Span::from_ms(10))
            }
            _ => return,
        };
        self.push(self.now + pause, Event::Act(number));
    }

    /// Sends a datagram with the address of a host: a recorded datagram, a modified one, or one with the end
    /// of another datagram.
    fn forge(&mut self) {
        if self.captured.is_empty() {
            return;
        }
        let count = self.captured.len();
        let mut flight = self.captured[self.random.index(count)].clone();
        let other = self.captured[self.random.index(count)].clone();
        match self.random.range(0, 5) {
            0 => self.corrupt(&mut flight.bytes),
            1 => {
                let length = self.random.index(flight.bytes.len().max(1));
                flight.bytes.truncate(length);
            }
            2 => {
                let end = flight.bytes.len().min(other.bytes.len()).min(8);
                let (to, from) = (flight.bytes.len() - end, other.bytes.len() - end);
                flight.bytes[to..].copy_from_slice(&other.bytes[from..]);
            }
            // Unmodified, but to another host or from another host.
            3 => flight.to = other.to,
            4 => flight.from = other.from,
            // A claim that the session of a recorded packet is unknown.
            _ => {
                let numbers = flight.bytes.len().saturating_sub(8);
                let mut bytes = vec![0, 1, 0x45, u8::from(self.plan.sealed)];
                bytes.extend(flight.bytes.get(numbers..).unwrap_or_default());
                bytes.extend([0; 4]);
                std::mem::swap(&mut flight.from, &mut flight.to);
                flight.bytes = bytes;
            }
        }
        self.push(self.now + Span::from_us(5), Event::Arrive(flight));
    }

    /// Sends a handshake request, or a datagram that resembles one, from a random address.
    fn flood(&mut self, host: usize) {
        let bits = self.random.bits().to_be_bytes();
        let from: SocketAddr = ([192, 168, bits[0], bits[1]], 1024).into();
        let own =
            |flight: &&Flight| flight.bytes.get(2).is_some_and(|kind| OWN_KINDS.contains(kind));
        let recorded: Vec<&Flight> = self.captured.iter().filter(own).collect();
        let bytes = if recorded.is_empty() || self.random.chance(300) {
            let mut bytes = vec![0, 1, self.random.pick(&OWN_KINDS), 1];
            let length = self.random.range(0, 100);
            bytes.extend((0..length).map(|_| self.random.bits() as u8));
            bytes
        } else {
            let place = self.random.index(recorded.len());
            recorded[place].bytes.clone()
        };
        let to = self.machines[host].address;
        self.push(self.now, Event::Arrive(Flight { from, to, tos: 0, ttl: 60, bytes }));
    }
}
