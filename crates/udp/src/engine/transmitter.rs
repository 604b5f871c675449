//! The sending side of an engine: the order in which packets are sealed, and the transfer of bursts to the kernel.

use std::io;

use apus_units::Time;

use super::connections::Probe;
use super::departures::Departures;
use super::network::Network;
use super::outbox::{Burst, Envelope, MAX_BURST_BYTES, Outbox};
use super::protocol::Protocol;
use crate::session::{MAX_HANDSHAKE_BYTES, Peer};
use crate::stats::add;

/// Maximum number of data packets per step, and number of data bytes from which no further packet is begun: sealing
/// them delays the acknowledgements behind them by about 10 us. deviation: no source.
const MAX_DATA_PACKETS: usize = 64;
const MAX_DATA_BYTES: usize = 128 << 10;
/// Maximum number of packets of the session layer per step while flows have something to send: unauthenticated senders
/// can provoke answers at any rate. deviation: no source; a quarter of the bursts of a step.
const MAX_SESSION_PACKETS: usize = 16;
/// Number of bytes, and of acknowledgements, after which the clock is read again: sealing them takes about a
/// microsecond. deviation: no source.
const BYTES_PER_CLOCK_READ: usize = 4096;
const ACKS_PER_CLOCK_READ: u32 = 8;
/// Number of received datagrams after which packets are acknowledged before more are received. An acknowledgement
/// covers the newest 128 packets of its flow and declares all older ones lost. deviation: no source; an aggregate of 64
/// still fits.
const DATAGRAMS_PER_ACK: u64 = 32;

/// The bursts that are queued, and the bursts whose departure is awaited.
pub(super) struct Transmitter {
    outbox: Outbox,
    /// Awaited reports of departures, if they are requested.
    departures: Option<Departures>,
    /// Datagrams received since acknowledgements were last sealed.
    unacknowledged: u64,
}

impl Transmitter {
    /// Returns `true` if the kernel reports when bursts leave.
    pub(super) fn reports_departures(&self) -> bool {
        self.departures.is_some()
    }

    /// Returns a transmitter. With `departures`, the kernel reports the departures of bursts.
    pub(super) fn new(departures: bool) -> Self {
        Self {
            outbox: Outbox::default(),
            departures: departures.then(Departures::default),
            unacknowledged: 0,
        }
    }

    /// Returns the number of bytes that wait for room in the socket.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn unsent_bytes(&self) -> usize {
        self.outbox.bytes()
    }

    /// Returns the queued bursts, for acknowledgements that must be sent before the next packet is handled.
    #[inline]
    pub(super) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Returns `true` if the kernel had no room for all bursts.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Returns `true` if there may be something to send.
    #[inline]
    pub(super) fn has_work(&self, protocol: &Protocol) -> bool {
        self.is_blocked() || protocol.has_transmit()
    }

    /// Sends what may be sent at `now`. Returns `true` if there was anything to send.
    pub(super) fn send<N: Network>(
        &mut self,
        now: Time,
        protocol: &mut Protocol,
        network: &N,
    ) -> bool {
        if self.is_blocked() && !self.flush(now, protocol, network) {
            return false;
        }
        self.fill(now, protocol, network);
        if self.outbox.is_empty() {
            return false;
        }
        // Sealing this number of bytes takes time, so read the clock again.
        let at = if self.outbox.bytes() > BYTES_PER_CLOCK_READ { network.now() } else { now };
        self.flush(at, protocol, network);
        true
    }

    /// Counts received datagrams, and acknowledges them if there are many.
    #[inline]
    pub(super) fn on_received<N: Network>(
        &mut self,
        datagrams: u64,
        protocol: &mut Protocol,
        network: &N,
    ) {
        self.unacknowledged += datagrams;
        if self.unacknowledged >= DATAGRAMS_PER_ACK {
            self.acknowledge(protocol, network);
        }
    }

    fn acknowledge<N: Network>(&mut self, protocol: &mut Protocol, network: &N) {
        let now = network.now();
        if self.outbox.is_empty() || self.flush(now, protocol, network) {
            let now = self.seal_acks(now, protocol, network);
            self.flush(now, protocol, network);
        }
    }

    /// Seals packets into bursts: first packets of the session layer such as handshakes, then acknowledgements, then
    /// data. If flows have something to send, the number of session packets is limited.
    fn fill<N: Network>(&mut self, now: Time, protocol: &mut Protocol, network: &N) {
        if protocol.connections.sessions.has_transmit() {
            let shared = protocol.ops.endpoint.has_transmit();
            let most = if shared { MAX_SESSION_PACKETS } else { usize::MAX };
            self.put_session_packets(network.now(), protocol, most);
        }
        let now = self.seal_acks(now, protocol, network);
        if !protocol.ops.endpoint.has_transmit() {
            return;
        }
        let (mut packets, mut bytes) = (0, 0);
        while packets < MAX_DATA_PACKETS && bytes < MAX_DATA_BYTES && self.outbox.has_room() {
            let Some(transmit) = protocol.ops.endpoint.poll_data(now) else { break };
            packets += 1;
            bytes += transmit.header.payload_len();
            protocol.seal(now, &transmit, &mut self.outbox, network.has_segmentation());
            if bytes > MAX_DATA_BYTES - MAX_BURST_BYTES && self.outbox.ends_full() {
                break; // the length limit would cut the next burst short
            }
        }
    }

    /// Seals acknowledgements, the first one at `now`. Returns when the last one was sealed.
    fn seal_acks<N: Network>(
        &mut self,
        mut now: Time,
        protocol: &mut Protocol,
        network: &N,
    ) -> Time {
        let mut acks = 0;
        while self.outbox.has_room() && protocol.ops.endpoint.has_ack() {
            let Some(transmit) = protocol.ops.endpoint.poll_ack(now) else { break }; // at t4
            protocol.seal(now, &transmit, &mut self.outbox, network.has_segmentation());
            acks += 1;
            if acks % ACKS_PER_CLOCK_READ == 0 {
                now = network.now();
            }
        }
        if !protocol.ops.endpoint.has_ack() {
            self.unacknowledged = 0;
        }
        now
    }

    /// Adds at most `most` packets of the session layer to the bursts.
    #[cold]
    fn put_session_packets(&mut self, now: Time, protocol: &mut Protocol, most: usize) {
        let sessions = &mut protocol.connections.sessions;
        let mut packet = [0; MAX_HANDSHAKE_BYTES];
        for _ in 0..most {
            if !self.outbox.has_room() {
                break;
            }
            let Some((to, length)) = sessions.poll_transmit(now, &mut packet) else { break };
            self.put(to, &packet[..length]);
        }
    }

    fn put(&mut self, to: Peer, packet: &[u8]) {
        let burst = self.outbox.burst(&Envelope::plain(to, packet.len()), 1);
        burst.space(packet.len()).copy_from_slice(packet);
        burst.commit(packet.len());
    }

    /// Sends only the packets of the session layer. Drops the queued bursts, because one of them may be incomplete.
    pub(super) fn send_session_packets<N: Network>(
        &mut self,
        now: Time,
        protocol: &mut Protocol,
        network: &N,
    ) {
        self.outbox.clear();
        self.put_session_packets(now, protocol, usize::MAX);
        self.flush(now, protocol, network);
    }

    /// Returns how many further packets that need a burst of their own can be added.
    pub(super) fn room(&self) -> usize {
        self.outbox.room()
    }

    /// Seals a probe of a path.
    pub(super) fn put_probe(&mut self, now: Time, probe: Probe, protocol: &mut Protocol) {
        let Probe { session, to, joins, length } = probe;
        if !self.outbox.has_room() {
            return; // never: the caller requests probes for the available room only
        }
        let burst = self.outbox.burst(&Envelope::plain(to, length), 1);
        let (sessions, space) = (&mut protocol.connections.sessions, burst.space(length));
        let sealed = match joins {
            true => sessions.seal_join(now, session, to.port, space),
            false => sessions.seal_probe(now, session, space),
        };
        if sealed {
            burst.commit(length);
        }
        self.outbox.remove_empty();
    }

    /// Seals the answer to a probe of a path.
    #[cold]
    pub(super) fn put_probe_answer(&mut self, now: Time, probe: Probe, protocol: &mut Protocol) {
        let Probe { session, to, length, .. } = probe;
        let sessions = &mut protocol.connections.sessions;
        let mut answer = [0; MAX_HANDSHAKE_BYTES];
        let used = sessions.seal_probe_answer(now, session, length, &mut answer);
        if let Some(used) = used.filter(|_| self.outbox.has_room()) {
            self.put(to, &answer[..used]);
        }
    }

    /// Hands bursts to the kernel at `at` (t1 of their packets). Returns `true` if the kernel accepted all of them.
    fn flush<N: Network>(&mut self, mut at: Time, protocol: &mut Protocol, network: &N) -> bool {
        let mut done = 0;
        while done < self.outbox.bursts().len() {
            if done > 0 {
                at = network.now();
            }
            let stamped = self.departures.is_some();
            let bursts = &self.outbox.bursts()[done..];
            add(&protocol.status.stats.send_calls, 1);
            match network.send(bursts.iter().filter_map(|burst| burst.outgoing(stamped))) {
                Ok(sent) => {
                    for burst in &bursts[..sent] {
                        on_left(at, burst, &mut self.departures, protocol);
                    }
                    done += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.on_refused(at, done, &error, protocol, network);
                    done += 1;
                }
            }
        }
        self.outbox.remove(done);
        self.outbox.is_empty()
    }

    /// Handles a burst that the kernel refused. If its datagrams cannot be sent one by one either, its packets are
    /// lost, and timers retransmit them.
    #[cold]
    fn on_refused<N: Network>(
        &mut self,
        at: Time,
        index: usize,
        error: &io::Error,
        protocol: &mut Protocol,
        network: &N,
    ) {
        self.restart_departures(network);
        let burst = &self.outbox.bursts()[index];
        let Some(to) = burst.to else { return };
        let mut code = error.raw_os_error();
        // A device without checksum offload refuses segmentation with EIO or EINVAL. Old kernels do the same for
        // packets that are longer than the path's MTU.
        if burst.packets > 1 && matches!(code, Some(libc::EIO | libc::EINVAL)) {
            match send_apart(burst, protocol, network) {
                Ok(()) => {
                    protocol.connections.disable_segmentation(to);
                    // The kernel numbered none of these datagrams.
                    return on_left(at, burst, &mut None, protocol);
                }
                Err(error) => code = error.raw_os_error(),
            }
        }
        add(&protocol.status.stats.send_failures, burst.packets as u64);
        if code == Some(libc::EMSGSIZE) {
            let now = network.now();
            protocol.connections.on_too_long(now, to.address, &mut protocol.ops, network);
        }
    }

    /// Numbers departures from 0 again, because it is unknown whether the kernel counted a send that failed.
    fn restart_departures<N: Network>(&mut self, network: &N) {
        let Some(departures) = &mut self.departures else { return };
        departures.reset();
        // Without further reports, t1 remains the time that the engine reads.
        if network.restart_departures().is_err() {
            self.departures = None;
        }
    }

    /// Takes the reports of departures that have arrived, and corrects t1 of their packets.
    #[inline]
    pub(super) fn take_departures<N: Network>(&mut self, protocol: &mut Protocol, network: &N) {
        let Some(departures) = &mut self.departures else { return };
        let now = network.now();
        while let Ok(Some(departure)) = network.departure() {
            let Some(sent) = departures.take(departure.number) else { continue };
            // If the reported departure precedes the send, the report belongs to another burst, or its clock is wrong.
            if let Some(at) = network.departed_at(&departure, now).filter(|&at| at >= sent.at) {
                add(&protocol.status.stats.departures, 1);
                for &(flow, seq) in &sent.packets {
                    protocol.ops.endpoint.on_sent(flow, seq, at);
                }
            }
            departures.recycle(sent);
        }
    }
}

/// Records that a burst left at `at`.
#[inline]
fn on_left(at: Time, burst: &Burst, departures: &mut Option<Departures>, protocol: &mut Protocol) {
    if let Some(departures) = departures.as_mut().filter(|_| !burst.data.is_empty()) {
        departures.on_sent(at, &burst.data);
    }
    add(&protocol.status.stats.datagrams_sent, burst.packets as u64);
    for &(flow, seq) in &burst.data {
        protocol.ops.endpoint.on_sent(flow, seq, at);
    }
}

/// Sends the datagrams of a burst one by one. Returns the error of the first datagram that the kernel refuses: in this
/// case segmentation was not the reason.
fn send_apart<N: Network>(burst: &Burst, protocol: &Protocol, network: &N) -> io::Result<()> {
    burst.split().try_for_each(|datagram| {
        add(&protocol.status.stats.send_calls, 1);
        match network.send(std::iter::once(datagram)) {
            // If the kernel has no room for a datagram, the datagram is lost, and a timer retransmits it.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    })
}
