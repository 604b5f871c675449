//! The interface between an engine and the operating system: socket, clocks and routes.
//!
//! The engine and its components read time and move datagrams only through [`Network`], so tests run them in virtual
//! time without sockets.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use apus_units::Time;

use crate::capture::{Capture, unix_ns};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::StartError;
use crate::session::Peer;
use crate::stats::add;
use crate::status::EngineStatus;
use crate::sys::{Departure, Meta, Outgoing, Reach, ReceiveBuffers, SocketOptions, Sockets, TTL};
use apus_traces::pcapng::{Captured, Direction};

/// Services that an engine needs from the operating system.
pub(crate) trait Network {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Receives a batch of datagrams. Returns `true` if there may be more.
    fn receive(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool>;

    /// Sends bursts until the kernel accepts no more. Returns the number of bursts sent.
    ///
    /// # Errors
    /// The reason why the first burst was not sent.
    fn send<'a>(&self, bursts: impl Iterator<Item = Outgoing<'a>> + Clone) -> io::Result<usize>;

    /// Returns `true` if one call can send a burst of several datagrams.
    fn has_segmentation(&self) -> bool;

    /// Returns the next report of a departure, if one has arrived.
    fn departure(&self) -> io::Result<Option<Departure>>;

    /// Restarts the numbers of bursts with reported departures from 0.
    fn restart_departures(&self) -> io::Result<()>;

    /// Returns when a datagram was received (t2, t5), or `now` if no timestamp is plausible.
    fn received_at(&self, meta: &Meta, now: Time) -> Time;

    /// Returns when a burst left (t1), if a timestamp is plausible.
    fn departed_at(&self, departure: &Departure, now: Time) -> Option<Time>;

    /// Compares the clocks if that is due.
    fn compare_clocks(&mut self, now: Time);

    /// Returns the MTU of the path to `peer` in bytes, as far as the kernel knows it.
    fn path_mtu(&self, peer: SocketAddr) -> Option<u32>;

    /// Returns the source address of packets to `peer`, if this host has several.
    fn source_to(&self, peer: SocketAddr) -> Option<IpAddr>;

    /// Sends a probe that shows whether a port is open at `peer`.
    fn probe_reach(&self, peer: SocketAddr) -> Reach;
}

/// The kernel's network: UDP sockets, the clocks of host and NIC, and the capture of all datagrams.
pub(crate) struct KernelNetwork {
    sockets: Arc<Sockets>,
    /// Numbers of further sockets that have datagrams.
    ready: RefCell<Vec<u8>>,
    /// Number of the socket that had no room to send, if there are several sockets.
    full: Cell<Option<u8>>,
    clock: Clock,
    /// The status of the engine that uses the socket.
    pub(super) status: Arc<EngineStatus>,
    capture: Option<Capture>,
    /// Whether writing a datagram to the capture has failed, which ends the capture.
    capture_failed: Cell<bool>,
}

impl KernelNetwork {
    /// Opens the sockets of an engine at `address`. Further ports are numbered from `next` upwards, or chosen by the
    /// system.
    ///
    /// # Errors
    /// If the address cannot be bound, or the kernel lacks a required option.
    pub(crate) fn open(
        config: &Config,
        address: SocketAddr,
        next: Option<u16>,
    ) -> Result<Self, StartError> {
        let families = config.families_at(address);
        let options =
            SocketOptions { buffer: config.socket_buffer, shared: config.engines > 1, families };
        let ports = config.own_ports();
        let sockets = Sockets::open(address, ports, next, options)
            .map_err(|(address, error)| StartError::Bind(address, error))?;
        let mut ports = Vec::new();
        for socket in sockets.iter() {
            // Without timestamps, the engine would read the clock after the poll, which hides its own delay.
            socket
                .timestamp(config.departure_timestamps)
                .map_err(|e| StartError::System("have received datagrams timestamped", e))?;
            let local = socket.local_addr().map_err(|error| StartError::Bind(address, error))?;
            ports.push(local.port());
        }
        let local = sockets.first().local_addr();
        let local = local.map_err(|error| StartError::Bind(address, error))?;
        let clock = Clock::new(config.nic_clock.as_deref())
            .map_err(|e| StartError::System("read the NIC's clock", e))?;
        Ok(Self {
            sockets: Arc::new(sockets),
            ready: RefCell::default(),
            full: Cell::new(None),
            clock,
            status: Arc::new(EngineStatus::new(local, families, &ports)),
            capture: config.capture.clone(),
            capture_failed: Cell::new(false),
        })
    }

    /// Returns the start of the engine's clock, in nanoseconds of the monotonic clock.
    pub(crate) fn epoch(&self) -> u64 {
        self.clock.epoch()
    }

    /// Returns the sockets.
    pub(crate) fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }

    /// Returns the address of this host that datagrams to or from `peer` use.
    fn local_address(&self, peer: Peer) -> SocketAddr {
        let (bound, port) = (self.status.address, self.status.port(peer.port));
        match peer.local {
            Some(ip) => SocketAddr::new(ip, port),
            // An IPv6 socket had no route to this IPv4 peer.
            None if bound.is_ipv6() && peer.address.is_ipv4() => {
                (Ipv4Addr::UNSPECIFIED, port).into()
            }
            None => SocketAddr::new(bound.ip(), port),
        }
    }

    /// Receives from a further socket that is known to have datagrams. If there is none, receives from the first socket
    /// and finds out which further sockets have datagrams.
    fn receive_from_all(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool> {
        let mut ready = self.ready.borrow_mut();
        if let Some(number) = ready.pop() {
            let more = self.sockets.get(number).receive(buffers)?;
            return Ok(more || !ready.is_empty());
        }
        let more = self.sockets.first().receive(buffers)?;
        self.sockets.poll(&mut ready);
        Ok(more || !ready.is_empty())
    }

    /// Sends bursts from several sockets, in the order of the bursts.
    fn send_from_all<'a>(
        &self,
        mut bursts: impl Iterator<Item = Outgoing<'a>> + Clone,
    ) -> io::Result<usize> {
        if let Some(number) = self.full.take() {
            self.sockets.watch_room(number, false);
        }
        let mut sent = 0;
        while let Some(first) = bursts.clone().next() {
            let number = first.to.port;
            let of_socket = bursts.clone().take_while(|burst| burst.to.port == number);
            match self.sockets.get(number).send(of_socket) {
                Ok(count) => {
                    sent += count;
                    bursts.by_ref().take(count).for_each(drop);
                }
                // The next call returns this error, because it begins with this burst.
                Err(_) if sent > 0 => break,
                Err(error) => {
                    if error.kind() == io::ErrorKind::WouldBlock {
                        self.full.set(Some(number));
                        self.sockets.watch_room(number, true);
                    }
                    return Err(error);
                }
            }
        }
        Ok(sent)
    }

    #[inline]
    fn receive_any(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool> {
        if self.sockets.are_many() {
            return self.receive_from_all(buffers);
        }
        self.sockets.first().receive(buffers)
    }

    #[inline]
    fn send_any<'a>(
        &self,
        bursts: impl Iterator<Item = Outgoing<'a>> + Clone,
    ) -> io::Result<usize> {
        if self.sockets.are_many() {
            return self.send_from_all(bursts);
        }
        self.sockets.first().send(bursts)
    }

    /// Writes the datagrams of an aggregate or a burst to the capture. `first` describes the first of them.
    fn write_capture(&self, first: Captured<'_>, segment: usize) {
        for datagram in first.datagram.chunks(segment.max(1)) {
            let capture = self.capture.as_ref().filter(|_| !self.capture_failed.get());
            let Some(capture) = capture else { return };
            if capture.write(&Captured { datagram, ..first }).is_err() {
                self.capture_failed.set(true);
                add(&self.status.stats.capture_failures, 1);
            }
        }
    }

    #[cold]
    fn capture_received(&self, buffers: &mut ReceiveBuffers) {
        for (meta, datagram) in buffers.received() {
            let at = meta.received_at.and_then(|ns| u64::try_from(ns).ok());
            let packets = Captured {
                interface: 0,
                unix_ns: at.unwrap_or_else(unix_ns),
                direction: Direction::In,
                from: meta.from,
                to: self.local_address(meta.peer()),
                traffic_class: meta.tos,
                ttl: meta.ttl.unwrap_or(0),
                datagram,
                kept: usize::MAX,
            };
            self.write_capture(packets, meta.segment);
        }
    }

    #[cold]
    fn capture_sent(&self, burst: &Outgoing<'_>) {
        let packets = Captured {
            interface: 0,
            unix_ns: unix_ns(),
            direction: Direction::Out,
            from: self.local_address(burst.to),
            to: burst.to.address,
            traffic_class: burst.tos,
            ttl: TTL,
            datagram: burst.bytes,
            kept: usize::MAX,
        };
        self.write_capture(packets, burst.segment);
    }
}

impl Network for KernelNetwork {
    #[inline]
    fn now(&self) -> Time {
        self.clock.now()
    }

    #[inline]
    fn receive(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool> {
        let more = self.receive_any(buffers);
        if self.capture.is_some() {
            self.capture_received(buffers);
        }
        more
    }

    #[inline]
    fn send<'a>(&self, bursts: impl Iterator<Item = Outgoing<'a>> + Clone) -> io::Result<usize> {
        if self.capture.is_none() {
            return self.send_any(bursts);
        }
        let sent = self.send_any(bursts.clone())?;
        bursts.take(sent).for_each(|burst| self.capture_sent(&burst));
        Ok(sent)
    }

    #[inline]
    fn has_segmentation(&self) -> bool {
        self.sockets.first().segmentation
    }

    fn departure(&self) -> io::Result<Option<Departure>> {
        self.sockets.first().departure()
    }

    fn restart_departures(&self) -> io::Result<()> {
        self.sockets.first().timestamp(true)
    }

    #[inline]
    fn received_at(&self, meta: &Meta, now: Time) -> Time {
        self.clock.received(meta, now)
    }

    fn departed_at(&self, departure: &Departure, now: Time) -> Option<Time> {
        self.clock.sent(departure, now)
    }

    fn compare_clocks(&mut self, now: Time) {
        self.clock.compare(now);
    }

    fn path_mtu(&self, peer: SocketAddr) -> Option<u32> {
        self.sockets.first().path_mtu(peer).ok()
    }

    fn source_to(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.sockets.first().source_to(peer)
    }

    fn probe_reach(&self, peer: SocketAddr) -> Reach {
        Reach::probe(self.status.address, peer)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::session::KeyRing;

    const FLOOD: usize = 300;

    /// Sends 300 datagrams to port 1 and one to each of the ports 0, 2 and 3. Returns the ports of the datagrams
    /// received in five rounds. A round is one call per port with datagrams, and one call that finds out which ports
    /// have some. Finally all datagrams are received.
    fn five_rounds(network: &KernelNetwork) -> Vec<u8> {
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let to = |port: u8| network.local_address(Peer { port, ..from.into() });
        for _ in 0..FLOOD {
            sender.send_to(&[1; 100], to(1)).expect("sent");
        }
        for port in [0, 2, 3] {
            sender.send_to(&[2; 100], to(port)).expect("sent");
        }
        let (mut buffers, mut seen) = (ReceiveBuffers::new(), Vec::new());
        let mut round = |seen: &mut Vec<u8>| {
            network.receive(&mut buffers).expect("received");
            seen.extend(buffers.received().map(|(meta, _)| meta.port));
        };
        (0..5).for_each(|_| round(&mut seen));
        let first = seen.clone();
        let begin = Instant::now();
        while seen.len() < FLOOD + 3 && begin.elapsed() < Duration::from_secs(60) {
            round(&mut seen);
        }
        assert_eq!(seen.iter().filter(|&&port| port == 1).count(), FLOOD, "none is forgotten");
        first
    }

    #[test]
    fn each_port_has_its_turn_while_another_is_flooded() {
        let mut config =
            Config::new(([127, 0, 0, 1], 0).into(), KeyRing::insecure()).expect("valid");
        config.set_balancer(Some("oblivious"), Some(4)).expect("a policy");
        let network = KernelNetwork::open(&config, config.listen[0], None).expect("sockets");
        // A busy kernel may deliver datagrams only after the first rounds; then the test is repeated.
        let has_turns = (0..20).any(|_| {
            let seen = five_rounds(&network);
            assert!(seen.len() <= 5 * 4, "four datagrams at a time: {seen:?}");
            [0, 2, 3].iter().all(|port| seen.contains(port)) && seen.contains(&1)
        });
        assert!(has_turns, "ports with one datagram wait behind the flood");
    }
}
