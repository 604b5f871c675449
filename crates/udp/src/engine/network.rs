//! The seam between an engine and the operating system: socket, clocks and routes.
//!
//! The engine and its components read time and move datagrams only through [`Network`], so tests run them in virtual
//! time without sockets.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use apus_units::Time;

use crate::capture::{Capture, unix_ns};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::StartError;
use crate::stats::add;
use crate::status::EngineStatus;
use crate::sys::{Departure, Meta, Outgoing, Reach, ReceiveBuffers, Socket, SocketOptions, TTL};
use apus_traces::pcapng::{Captured, Direction};

/// What an engine needs of the operating system.
pub(crate) trait Network {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Receives a batch of datagrams. Returns whether there may be more.
    fn receive(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool>;

    /// Sends bursts until the kernel accepts no more. Returns the number of bursts sent.
    ///
    /// # Errors
    /// Why the first burst was not sent.
    fn send<'a>(&self, bursts: impl Iterator<Item = Outgoing<'a>> + Clone) -> io::Result<usize>;

    /// Returns `true` if a burst of several datagrams can be sent by one call.
    fn has_segmentation(&self) -> bool;

    /// Returns the next report of when a burst left, if one has arrived.
    fn departure(&self) -> io::Result<Option<Departure>>;

    /// Numbers the bursts whose departure is reported from 0 again.
    fn restart_departures(&self) -> io::Result<()>;

    /// Returns when a datagram was received (t2, t5); `now` if no timestamp is plausible.
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

/// The kernel's network: a UDP socket, the clocks of host and NIC, and the capture of what passes.
pub(crate) struct KernelNetwork {
    socket: Arc<Socket>,
    clock: Clock,
    /// The status of the engine that uses the socket.
    pub(super) status: Arc<EngineStatus>,
    capture: Option<Capture>,
    /// Whether a datagram could not be written to the capture, which ends it.
    capture_failed: Cell<bool>,
}

impl KernelNetwork {
    /// Opens the socket of an engine at `address`.
    ///
    /// # Errors
    /// If the address cannot be bound, or the kernel lacks something.
    pub(crate) fn open(config: &Config, address: SocketAddr) -> Result<Self, StartError> {
        let families = config.families_at(address);
        let options =
            SocketOptions { buffer: config.socket_buffer, shared: config.engines > 1, families };
        let socket =
            Socket::open(address, options).map_err(|error| StartError::Bind(address, error))?;
        // Without timestamps the clock is read after the poll, which hides the engine's own delay.
        socket
            .timestamp(config.departure_timestamps)
            .map_err(|e| StartError::System("have received datagrams timestamped", e))?;
        let local = socket.local_addr().map_err(|error| StartError::Bind(address, error))?;
        let clock = Clock::new(config.nic_clock.as_deref())
            .map_err(|e| StartError::System("read the NIC's clock", e))?;
        Ok(Self {
            socket: Arc::new(socket),
            clock,
            status: Arc::new(EngineStatus::new(local, families)),
            capture: config.capture.clone(),
            capture_failed: Cell::new(false),
        })
    }

    /// Returns the start of its clock on the monotonic clock, nanoseconds.
    pub(crate) fn epoch(&self) -> u64 {
        self.clock.epoch()
    }

    /// Returns the socket.
    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Returns the address of this host that datagrams from or to `peer` came to or left from.
    fn local_address(&self, local: Option<IpAddr>, peer: SocketAddr) -> SocketAddr {
        let bound = self.status.address;
        match local {
            Some(ip) => SocketAddr::new(ip, bound.port()),
            // There was no route to an IPv4 peer of an IPv6 socket.
            None if bound.is_ipv6() && peer.is_ipv4() => {
                (Ipv4Addr::UNSPECIFIED, bound.port()).into()
            }
            None => bound,
        }
    }

    /// Writes the datagrams of an aggregate or a burst to the capture; `first` describes the first one.
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
                to: self.local_address(meta.to, meta.from),
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
            from: self.local_address(burst.to.local, burst.to.address),
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
        let more = self.socket.receive(buffers);
        if self.capture.is_some() {
            self.capture_received(buffers);
        }
        more
    }

    #[inline]
    fn send<'a>(&self, bursts: impl Iterator<Item = Outgoing<'a>> + Clone) -> io::Result<usize> {
        if self.capture.is_none() {
            return self.socket.send(bursts);
        }
        let sent = self.socket.send(bursts.clone())?;
        bursts.take(sent).for_each(|burst| self.capture_sent(&burst));
        Ok(sent)
    }

    #[inline]
    fn has_segmentation(&self) -> bool {
        self.socket.segmentation
    }

    fn departure(&self) -> io::Result<Option<Departure>> {
        self.socket.departure()
    }

    fn restart_departures(&self) -> io::Result<()> {
        self.socket.timestamp(true)
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
        self.socket.path_mtu(peer).ok()
    }

    fn source_to(&self, peer: SocketAddr) -> Option<IpAddr> {
        self.socket.source_to(peer)
    }

    fn probe_reach(&self, peer: SocketAddr) -> Reach {
        Reach::probe(self.status.address, peer)
    }
}
