//! To the socket: packets sealed into bursts, bursts handed to the kernel.

use std::net::{IpAddr, SocketAddr};
use std::{io, mem};

use apus_cc::{AlgorithmFields, Ecn};
use apus_transport::{OpKind, Transmit, extension_of};
use apus_units::{FlowId, PacketNumber, Time};
use apus_wire::{Body, Extension, SegmentKind};

use super::{Engine, Owner};
use crate::capture::unix_ns;
use crate::pcapng::{Captured, Direction};
use crate::session::{Extended, MAX_HANDSHAKE_BYTES, Peer, SessionId};
use crate::stats::add;
use crate::sys::{Outgoing, TTL};

/// Data packets per step at most, and bytes of data after which no further packet is begun: sealing
/// them delays the acknowledgements behind by some 10 us. deviation: no source.
const DATA_PACKETS: usize = 64;
const DATA_BYTES: usize = 128 << 10;
/// Bytes, and acknowledgements, whose sealing takes about a microsecond: then the clock is read again. deviation: no
/// source.
const STALE_BYTES: usize = 4096;
const STALE_ACKS: u32 = 8;
/// Bursts per step at most. deviation: no source; as many as data packets, if each goes to another peer.
const BURSTS: usize = 64;
/// The longest burst in bytes: what one UDP send may carry.
const BURST_BYTES: usize = 65_000;
/// Datagrams of one burst at most: UDP_MAX_SEGMENTS of the first kernels that had it.
const BURST_PACKETS: usize = 64;
/// Bytes that may be needed of a datagram: the longest packet.
const DATAGRAM_BYTES: usize = 65_507;

/// Datagrams of equal length to one peer (the last may be shorter), sent as one.
#[derive(Default)]
struct Burst {
    to: Option<Peer>,
    tos: u8,
    bytes: Vec<u8>,
    used: usize,
    segment: usize,
    packets: usize,
    /// Most packets that it takes.
    limit: usize,
    /// A shorter datagram ended it.
    closed: bool,
    /// Data packets in it, whose time of sending is noted when it goes.
    data: Vec<(FlowId, PacketNumber)>,
}

impl Burst {
    fn takes(&self, to: Peer, tos: u8, length: usize) -> bool {
        self.to == Some(to)
            && self.tos == tos
            && !self.closed
            && length <= self.segment
            && self.packets < self.limit
            && self.used + length <= BURST_BYTES
    }

    fn begin(&mut self, to: Peer, tos: u8, limit: usize) {
        self.to = Some(to);
        self.tos = tos;
        self.limit = limit;
        self.used = 0;
        self.segment = 0;
        self.packets = 0;
        self.closed = false;
        self.data.clear();
    }

    /// Whether it has several packets and takes no further one of their length.
    fn is_full(&self) -> bool {
        let more = self.used + self.segment <= BURST_BYTES && self.packets < self.limit;
        self.packets > 1 && (self.closed || !more)
    }

    /// Where the next datagram goes.
    fn space(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.used..end]
    }

    fn commit(&mut self, length: usize) {
        if self.packets == 0 {
            self.segment = length;
        }
        self.closed |= length < self.segment;
        self.used += length;
        self.packets += 1;
    }
}

/// Bursts that wait for the kernel.
#[derive(Default)]
pub(super) struct Outbox {
    bursts: Vec<Burst>,
    /// Of those, how many hold something, from the front.
    filled: usize,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The burst for a datagram of `length` bytes: the last one to that peer if it takes it, so that
    /// the order stays, otherwise a new one. `limit` counts for a new one.
    fn burst(&mut self, to: Peer, tos: u8, length: usize, limit: usize) -> &mut Burst {
        let last = self.bursts[..self.filled].iter().rposition(|burst| burst.to == Some(to));
        if let Some(last) = last.filter(|&i| self.bursts[i].takes(to, tos, length)) {
            return &mut self.bursts[last];
        }
        if self.filled == self.bursts.len() {
            self.bursts.push(Burst::default());
        }
        let burst = &mut self.bursts[self.filled];
        self.filled += 1;
        burst.begin(to, tos, limit);
        burst
    }

    /// Whether the last burst is full.
    fn ends_full(&self) -> bool {
        self.bursts[..self.filled].last().is_some_and(Burst::is_full)
    }

    /// Drops the last burst if nothing was put into it.
    fn forget_empty(&mut self) {
        if self.filled > 0 && self.bursts[self.filled - 1].packets == 0 {
            self.filled -= 1;
        }
    }
}

impl Engine {
    /// Sends what may be sent now; returns whether anything was.
    pub(super) fn send(&mut self) -> bool {
        let any =
            !self.outbox.is_empty() || self.sessions.has_transmit() || self.endpoint.has_transmit();
        any && self.send_at(self.clock.now())
    }

    /// The same where the clock was just read.
    pub(super) fn send_at(&mut self, now: Time) -> bool {
        if !self.outbox.is_empty() && !self.flush(now) {
            return false; // the kernel has no room: the NIC pulls, nothing is pushed
        }
        self.fill(now);
        let any = !self.outbox.is_empty();
        if any {
            // Sealing took its time.
            let sealed: usize =
                self.outbox.bursts[..self.outbox.filled].iter().map(|b| b.used).sum();
            let at = if sealed > STALE_BYTES { self.clock.now() } else { now };
            self.flush(at);
        }
        any
    }

    /// Seals packets into bursts: the sessions' own first, then acknowledgements, then data.
    fn fill(&mut self, mut now: Time) {
        if self.sessions.has_transmit() {
            self.fill_own();
        }
        now = self.put_acks(now);
        if !self.endpoint.has_transmit() {
            return;
        }
        let (mut packets, mut bytes) = (0, 0);
        while packets < DATA_PACKETS && bytes < DATA_BYTES && self.outbox.filled < BURSTS {
            let Some(transmit) = self.endpoint.poll_data(now) else { break };
            packets += 1;
            bytes += transmit.header.payload_len();
            self.put(now, &transmit);
            if bytes > DATA_BYTES - BURST_BYTES && self.outbox.ends_full() {
                break; // another burst would be cut short
            }
        }
    }

    /// Acknowledges what has come so far.
    pub(super) fn acknowledge(&mut self) {
        let now = self.clock.now();
        if self.outbox.is_empty() || self.flush(now) {
            let now = self.put_acks(now);
            self.flush(now);
        }
    }

    /// Seals acknowledgements, the first at `now`; returns when the last one was.
    fn put_acks(&mut self, mut now: Time) -> Time {
        let mut acks = 0;
        while self.outbox.filled < BURSTS && self.endpoint.has_ack() {
            let Some(transmit) = self.endpoint.poll_ack(now) else { break }; // at t4
            self.put(now, &transmit);
            acks += 1;
            if acks % STALE_ACKS == 0 {
                now = self.clock.now();
            }
        }
        if !self.endpoint.has_ack() {
            self.unanswered = 0;
        }
        now
    }

    /// The sessions' own packets.
    #[cold]
    fn fill_own(&mut self) {
        let now = self.clock.now();
        let mut own = [0; MAX_HANDSHAKE_BYTES];
        while self.outbox.filled < BURSTS {
            let Some((to, length)) = self.sessions.poll_transmit(now, &mut own) else { break };
            let burst = self.outbox.burst(to, 0, length, 1);
            burst.space(length).copy_from_slice(&own[..length]);
            burst.commit(length);
        }
    }

    /// Seals a packet into a burst.
    fn put(&mut self, now: Time, transmit: &Transmit) {
        let owner = self.owners.get(transmit.flow.index()).copied().flatten();
        let Some(Owner { session, place, .. }) = owner else { return };
        let Some(connection) = self.connections.get(session.index()) else { return };
        let (to, class) = (connection.peer, connection.classes[place]);
        let header = &transmit.header;
        let mut hops;
        let extension = match transmit.congestion.fields {
            AlgorithmFields::None => Extension::None,
            fields => {
                hops = [0; _];
                extension_of(fields, self.endpoint.telemetry(transmit.flow), &mut hops)
            }
        };
        let packet = Extended { header, extension };
        let start = header.encoded_len() + extension.encoded_len();
        let length = start + header.payload_len() + self.sessions.overhead();
        if length > DATAGRAM_BYTES {
            return self.on_unbuilt(now, transmit);
        }
        let tos = self.config.dscp[usize::from(class)] << 2 | ecn_bits(transmit.congestion.ecn);
        let segmentation = self.socket.segmentation && connection.segmentation;
        let limit = match header.payload_len() {
            _ if !segmentation => 1,
            0 => BURST_PACKETS,
            _ => part_of(self.endpoint.cwnd(transmit.flow).unwrap_or(1.0)),
        };
        let burst = self.outbox.burst(to, tos, length, limit);
        let space = burst.space(length);
        let sessions = &mut self.sessions;
        let sealed = match &header.body {
            Body::Data(segment) if segment.length > 0 => {
                add(&self.shared.stats.payload_sent, u64::from(segment.length));
                let source = self.endpoint.source(transmit.flow, segment);
                let seal = |payload: &[u8]| {
                    sessions.seal_from(now, session, packet, payload, space).is_ok()
                };
                let payload = header.payload_len();
                match (segment.kind, source) {
                    (SegmentKind::ReadResponse, Some(op)) => match op.kind {
                        OpKind::Read { region, address } => {
                            let region = self.last_region.get(&self.regions, region);
                            region.and_then(|r| r.look(address + segment.offset, payload, seal))
                        }
                        _ => None,
                    },
                    (_, Some(op)) => self.ops.get(op.user as usize).and_then(|entry| {
                        let from = segment.offset as usize;
                        let bytes = entry.pending.buffers.payload();
                        bytes.get(from..from + payload).map(seal)
                    }),
                    (_, None) => None,
                }
            }
            _ => Some(sessions.seal(now, session, packet, space).is_ok()),
        };
        let sealed = sealed.unwrap_or(false);
        if sealed {
            burst.commit(length);
            if matches!(header.body, Body::Data(_)) {
                burst.data.push((transmit.flow, header.seq));
            }
        }
        self.outbox.forget_empty();
        if !sealed {
            self.on_unbuilt(now, transmit);
        }
    }

    /// A packet could not be built. An acknowledgement or a refusal is made again when its packet comes again.
    #[cold]
    fn on_unbuilt(&mut self, now: Time, transmit: &Transmit) {
        if let Body::Data(segment) = &transmit.header.body {
            self.on_unsendable(now, transmit.flow, transmit.header.seq, segment);
        }
    }

    /// Sends the sessions' own packets and nothing else.
    pub(super) fn send_own(&mut self, now: Time) {
        self.fill_own();
        self.flush(now);
    }

    /// Seals a probe of the path, an IP packet of `length` bytes.
    pub(super) fn put_probe(&mut self, now: Time, session: SessionId, length: u32) {
        let Some(to) = self.connections.get(session.index()).map(|c| c.peer) else { return };
        let length = length.saturating_sub(ip_udp_bytes(to.address)) as usize;
        let burst = self.outbox.burst(to, 0, length, 1);
        if self.sessions.seal_probe(now, session, burst.space(length)) {
            burst.commit(length);
        }
        self.outbox.forget_empty();
    }

    /// Seals the answer to a probe of `length` bytes.
    pub(super) fn put_probe_answer(&mut self, now: Time, session: SessionId, length: usize) {
        let Some(to) = self.connections.get(session.index()).map(|c| c.peer) else { return };
        let mut answer = [0; MAX_HANDSHAKE_BYTES];
        let used = self.sessions.seal_probe_answer(now, session, length, &mut answer);
        let Some(used) = used.filter(|_| self.outbox.filled < BURSTS) else { return };
        let burst = self.outbox.burst(to, 0, used, 1);
        burst.space(used).copy_from_slice(&answer[..used]);
        burst.commit(used);
    }

    /// This host's address at which datagrams came to or leave from `local`.
    pub(super) fn local_address(&self, local: Option<IpAddr>) -> SocketAddr {
        let bound = self.shared.address;
        local.map_or(bound, |ip| SocketAddr::new(ip, bound.port()))
    }

    /// Hands bursts to the kernel at `at` (t1 of what is in them); returns whether all of them went.
    fn flush(&mut self, mut at: Time) -> bool {
        let mut done = 0;
        while done < self.outbox.filled {
            if done > 0 {
                at = self.clock.now();
            }
            let stamp = self.departures.is_some();
            let outgoing =
                self.outbox.bursts[done..self.outbox.filled].iter().filter_map(|burst| {
                    Some(Outgoing {
                        to: burst.to?,
                        bytes: &burst.bytes[..burst.used],
                        segment: burst.segment,
                        tos: burst.tos,
                        stamp: stamp && !burst.data.is_empty(),
                    })
                });
            add(&self.shared.stats.send_calls, 1);
            match self.socket.send(outgoing) {
                Ok(sent) => {
                    for i in done..done + sent {
                        self.on_left(at, i);
                    }
                    done += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    if !self.send_apart(at, done, &error) {
                        self.on_failure(done, &error);
                    }
                    done += 1;
                }
            }
        }
        // Those that went make room behind those that did not.
        self.outbox.bursts[..self.outbox.filled].rotate_left(done);
        self.outbox.filled -= done;
        self.outbox.filled == 0
    }

    fn on_left(&mut self, at: Time, burst: usize) {
        if self.capture.is_some() {
            self.capture_sent(burst);
        }
        let burst = &self.outbox.bursts[burst];
        if let Some(departures) = self.departures.as_mut().filter(|_| !burst.data.is_empty()) {
            departures.on_sent(at, &burst.data);
        }
        add(&self.shared.stats.datagrams_sent, burst.packets as u64);
        for &(flow, seq) in &burst.data {
            self.endpoint.on_sent(flow, seq, at);
        }
    }

    #[cold]
    fn capture_sent(&mut self, place: usize) {
        let burst = mem::take(&mut self.outbox.bursts[place]);
        for datagram in burst.bytes[..burst.used].chunks(burst.segment.max(1)) {
            let Some(to) = burst.to else { break };
            self.capture(&Captured {
                unix_ns: unix_ns(),
                direction: Direction::Out,
                from: self.local_address(to.local),
                to: to.address,
                traffic_class: burst.tos,
                ttl: TTL,
                datagram,
            });
        }
        self.outbox.bursts[place] = burst;
    }

    /// Sends the datagrams of the burst at `place` one by one, if `error` may mean that the kernel cannot split it for
    /// this peer: a device without checksum offload refuses that (EIO, EINVAL). If that succeeds, the peer gets no
    /// bursts any more. If it fails too, segmentation was not the reason. Returns whether it succeeded.
    #[cold]
    fn send_apart(&mut self, at: Time, place: usize, error: &io::Error) -> bool {
        let burst = &self.outbox.bursts[place];
        let Some(to) = burst.to.filter(|_| burst.packets > 1) else { return false };
        if !matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL)) {
            return false;
        }
        self.renumber_departures();
        let burst = &self.outbox.bursts[place];
        let mut datagrams = burst.bytes[..burst.used].chunks(burst.segment.max(1));
        let all = datagrams.all(|bytes| {
            let (segment, tos) = (bytes.len(), burst.tos);
            let outgoing = Outgoing { to, bytes, segment, tos, stamp: false };
            add(&self.shared.stats.send_calls, 1);
            // A datagram that finds no room now is lost; a timer retransmits it.
            let sent = self.socket.send(std::iter::once(outgoing));
            sent.is_ok() || sent.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
        });
        if !all {
            return false;
        }
        for connection in self.connections.values_mut().filter(|c| c.peer == to) {
            connection.segmentation = false;
        }
        self.on_left(at, place);
        true
    }

    /// A burst that the kernel does not take: its packets are lost, which timers find out.
    fn on_failure(&mut self, burst: usize, error: &io::Error) {
        self.renumber_departures();
        add(&self.shared.stats.send_failures, self.outbox.bursts[burst].packets as u64);
        if error.raw_os_error() == Some(libc::EMSGSIZE)
            && let Some(to) = self.outbox.bursts[burst].to
        {
            self.on_too_long(to.address);
        }
    }
}

/// Of a window of `cwnd` packets, so many go as one: about a quarter, so that pacing and the acknowledgements'
/// clock keep their grain (facts: fine pacing and throughput pull against each other). deviation: no source; a
/// quarter keeps a queue's swing near a quarter of the window. It is rounded to the nearest number: rounded down,
/// a window of 7 packets would leave one by one, with twice the system calls, and timers at the port behind.
fn part_of(cwnd: f64) -> usize {
    ((cwnd / 4.0).round() as usize).clamp(1, BURST_PACKETS)
}

/// Bytes of IP and UDP headers of packets to `peer`.
pub(super) fn ip_udp_bytes(peer: SocketAddr) -> u32 {
    if peer.is_ipv6() { 48 } else { 28 }
}

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0,
        Ecn::Capable => 0b10,
        Ecn::Congested => 0b11,
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::Ordering;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::session::KeyRing;
    use crate::{Access, Config, Connection, Host, Mode, RegionKey, Request};

    #[test]
    fn about_a_quarter_of_the_window_goes_as_one() {
        for (cwnd, packets) in [(0.01, 1), (5.9, 1), (6.1, 2), (7.1, 2), (31.0, 8), (1000.0, 64)] {
            assert_eq!(part_of(cwnd), packets, "{cwnd}");
        }
    }

    fn inline() -> Host {
        let address = ([127, 0, 0, 1], 0).into();
        let mut config = Config::new(address, KeyRing::insecure()).expect("defaults");
        config.mode = Mode::Inline;
        config.max_mtu = 1280; // no probes of the path
        let settings = [("window", "64"), ("min_rto", "60s"), ("initial_rto", "60s")];
        config.set_algorithm(Some("constant"), &settings).expect("constant");
        Host::start(config).expect("a host")
    }

    /// Drives inline hosts until a future is done.
    fn until<T>(hosts: &[Host], future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            for host in hosts {
                host.drive();
            }
        }
    }

    /// Writes 1 MiB from the first host; returns datagrams and system calls.
    fn write(hosts: &[Host], connection: &Connection, region: RegionKey) -> [u64; 2] {
        let counts = || {
            let stats = hosts[0].stats().next().expect("an engine");
            [&stats.datagrams_sent, &stats.send_calls].map(|count| count.load(Ordering::Relaxed))
        };
        let before = counts();
        let write = connection.submit(Request::write(region, 0, vec![1; 1 << 20])).expect("room");
        until(hosts, write).expect("written");
        let after = counts();
        [0, 1].map(|n| after[n] - before[n])
    }

    #[test]
    fn a_burst_that_the_kernel_does_not_split_goes_apart_and_only_its_peer_gets_no_more_of_them() {
        let hosts = [(); 3].map(|()| inline());
        let [client, first, second] = &hosts;
        if !client.engine().socket.segmentation {
            return; // a kernel without it
        }
        let regions = [first, second]
            .map(|host| host.register(vec![0; 1 << 20], Access::Write).expect("memory"));
        let connections = [first, second].map(|host| {
            until(&hosts, client.connect_async(host.local_addr(), 1, None)).expect("connected")
        });
        let to_first = || write(&hosts, &connections[0], regions[0].key());

        client.engine().socket.omit_checksums(true);
        to_first();
        client.engine().socket.omit_checksums(false);
        let lost = client.stats().map(|s| s.send_failures.load(Ordering::Relaxed)).sum::<u64>();
        assert_eq!(lost, 0, "each datagram went by itself");
        let gets_bursts = |host: &Host| {
            let engine = client.engine();
            let mut all = engine.connections.values();
            all.find(|c| c.peer.address == host.local_addr()).map(|c| c.segmentation)
        };
        assert_eq!((gets_bursts(first), gets_bursts(second)), (Some(false), Some(true)));
        // A quarter of the window of 64 packets goes as one.
        let [datagrams, calls] = write(&hosts, &connections[1], regions[1].key());
        assert!(calls * 4 < datagrams, "{datagrams} datagrams by {calls} calls");
    }

    #[test]
    fn a_send_that_fails_for_another_reason_leaves_segmentation_on() {
        let hosts = [(); 2].map(|()| inline());
        let [client, server] = &hosts;
        let region = server.register(vec![0; 1 << 20], Access::Write).expect("memory");
        let connecting = client.connect_async(server.local_addr(), 1, None);
        let connection = until(&hosts, connecting).expect("connected");
        {
            // A source address that is not this host's (RFC 5737): EINVAL, split or not.
            let mut engine = client.engine();
            let own = engine.connections.values_mut().next().expect("one");
            own.peer.local = Some([192, 0, 2, 1].into());
        }
        let write = Request::write(region.key(), 0, vec![1; 1 << 20]);
        let _write = connection.submit(write).expect("room");
        client.drive();
        let failures = client.stats().map(|s| s.send_failures.load(Ordering::Relaxed)).sum::<u64>();
        assert!(failures > 0);
        let engine = client.engine();
        assert!(engine.socket.segmentation && engine.connections.values().all(|c| c.segmentation));
    }
}
