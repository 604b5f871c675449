//! Probes of a connection's path, and of an address that does not answer.

use std::net::SocketAddr;
use std::sync::Arc;

use apus_units::{Span, Time};

use super::path::{BASE, LEAST, Step, size_change};
use super::ports::{BETWEEN_JOINS, JOINS_AT_ONCE, by_port};
use super::{Connection, Connections, Stage};
use crate::config::{Config, header_bytes};
use crate::engine::endpoint::Endpoint;
use crate::engine::log::Log;
use crate::engine::network::Network;
use crate::engine::op_table::OpTable;
use crate::engine::outbox::ip_udp_bytes;
use crate::session::{Peer, SessionId};

/// Maximum number of probes of one connection at a time: one for the MTU of its path, the rest for its ports.
const MAX_PROBES_AT_ONCE: usize = 1 + JOINS_AT_ONCE as usize;

impl Connections {
    /// Returns the due probes of paths, at most `room`, and sends the due probes of addresses that do not answer.
    /// Connections without room get their turn later: probes that were returned count as sent, so they do not take the
    /// room again.
    pub(in crate::engine) fn due_probes<N: Network>(
        &mut self,
        now: Time,
        ops: &mut OpTable,
        network: &N,
        room: usize,
    ) -> Vec<Probe> {
        let mut probes = Vec::new();
        if now < self.next_probe {
            return probes;
        }
        let retry = self.config.session.retry;
        let (header_bytes, least) = (self.header_bytes(), self.sessions.least_join());
        let config = Arc::clone(&self.config);
        let kernel = |peer| path_mtu(&config, peer, network);
        let mut next = Time::MAX;
        for connection in self.table.iter_mut().flatten() {
            let due = match &mut connection.stage {
                Stage::Connected { .. } if probes.len() + MAX_PROBES_AT_ONCE > room => {
                    now + BETWEEN_JOINS
                }
                Stage::Connected { .. } => {
                    let log = &mut self.log;
                    let waits = (retry, header_bytes);
                    let path = connection.probe_path(now, waits, ops, &mut probes, (log, &kernel));
                    let (session, to) = (connection.session, connection.peer);
                    let full = connection.join_bytes();
                    path.min(connection.join_ports(now, retry, |number, is_full| {
                        let (to, length) =
                            (by_port(to, number), if is_full { full } else { least });
                        probes.push(Probe { session, to, length, joins: true });
                    }))
                }
                Stage::Opening { probes, .. } => {
                    probes.handle_timeout(now, connection.peer, retry, network)
                }
                Stage::Incoming { .. } | Stage::Ended => Time::MAX,
            };
            next = next.min(due);
        }
        self.next_probe = next;
        probes
    }

    /// Schedules the next check of the paths, because a session has an outstanding op.
    #[inline]
    pub(in crate::engine) fn watch_path(&mut self, now: Time) {
        self.next_probe = self.next_probe.min(now + self.config.session.retry);
    }

    /// Handles the answer to a probe of `length` bytes.
    #[cold]
    pub(in crate::engine) fn on_probe_answer(
        &mut self,
        now: Time,
        session: SessionId,
        length: usize,
        ops: &mut OpTable,
    ) {
        let Some(peer) = self.peer(session) else { return };
        let length = length as u32 + ip_udp_bytes(peer.address);
        let Some(path) = self.get_mut(session).and_then(Connection::path) else { return };
        // An answer without a probe must not cause a check of all paths, because a peer may send any number of such
        // answers.
        let Some(grown) = path.on_answer(now, length) else { return };
        if grown {
            self.apply_path(now, session, &mut ops.endpoint);
        }
        self.next_probe = now;
    }

    /// Handles the kernel's discovery that packets to `peer` are too long.
    pub(in crate::engine) fn on_too_long<N: Network>(
        &mut self,
        now: Time,
        peer: SocketAddr,
        ops: &mut OpTable,
        network: &N,
    ) {
        let mtu = path_mtu(&self.config, peer, network);
        let header_bytes = self.header_bytes();
        for connection in self.table.iter_mut().flatten().filter(|c| c.peer.address == peer) {
            let Some(path) = connection.path() else { continue };
            path.on_limit(now, mtu);
            connection.apply_path(now, header_bytes, &mut ops.endpoint, &mut self.log);
            self.next_probe = now;
        }
    }

    /// Returns the number of bytes of a full packet that are not payload.
    pub(super) fn header_bytes(&self) -> u32 {
        header_bytes(&self.config.algorithm, self.sessions.overhead())
    }

    /// Sets the length of full packets to the confirmed length.
    pub(super) fn apply_path(&mut self, now: Time, session: SessionId, endpoint: &mut Endpoint) {
        let header_bytes = self.header_bytes();
        let connection = self.table.get_mut(session.index()).and_then(Option::as_mut);
        if let Some(connection) = connection.filter(|c| c.session == session) {
            connection.apply_path(now, header_bytes, endpoint, &mut self.log);
        }
    }
}

impl Connection {
    /// Adds the probes of the path that are due at `now` to `probes`. Returns when the next one is due. `kernel`
    /// returns the kernel's MTU of the path to an address.
    fn probe_path(
        &mut self,
        now: Time,
        (retry, header_bytes): (Span, u32),
        ops: &mut OpTable,
        probes: &mut Vec<Probe>,
        (log, kernel): (&mut Log, &impl Fn(SocketAddr) -> u32),
    ) -> Time {
        let headers = ip_udp_bytes(self.peer.address);
        let counters = self.flows.iter().filter_map(|&flow| ops.endpoint.counters(flow));
        let timeouts = counters.map(|counters| counters.timeouts).sum();
        let busy = ops.outstanding(&self.flows) > 0;
        let (session, peer) = (self.session, self.peer.address);
        if let Some(path) = self.path() {
            path.on_timeouts(now, timeouts);
        }
        while let Some(path) = self.path() {
            match path.step(now, retry) {
                // While ops are outstanding, the path is checked as often as probes are repeated.
                Step::Wait(at) if busy => return at.min(now + retry),
                Step::Wait(at) => return at,
                Step::Probe(length) => {
                    let length = length.saturating_sub(headers) as usize;
                    let port = self.ports.as_mut().map_or(0, |ports| ports.next_probe());
                    let to = by_port(self.peer, port);
                    probes.push(Probe { session, to, length, joins: false });
                }
                Step::Ask => path.raise(now, kernel(peer)),
                Step::Shrink => self.apply_path(now, header_bytes, &mut ops.endpoint, log),
            }
        }
        Time::MAX
    }

    /// Sets the length of full packets to the confirmed length, and informs the algorithms. Reports a change in the log and
    /// in the record of the connection.
    fn apply_path(&mut self, now: Time, header_bytes: u32, endpoint: &mut Endpoint, log: &mut Log) {
        let Some(mtu) = self.path().map(|path| path.confirmed) else { return };
        let size = size_change(self.mtu, mtu, header_bytes);
        let before = std::mem::replace(&mut self.mtu, mtu);
        if let Some(ports) = self.ports.as_mut().filter(|_| mtu > before) {
            ports.on_longer_packets(now);
        }
        for &flow in &self.flows {
            endpoint.set_packet_size(flow, &size);
        }
        if before != mtu {
            log.path_changed(now, self.peer.address, before, mtu);
            if let Some(record) = &mut self.record {
                record.mtu(now, before, mtu);
            }
        }
    }
}

/// Returns the kernel's value of the maximum length of an IP packet from this side to `peer`. Anyone can forge the ICMP
/// messages from which the kernel learns it, so the value has a minimum.
pub(super) fn path_mtu<N: Network>(config: &Config, peer: SocketAddr, network: &N) -> u32 {
    // If the kernel does not know the path, assume the minimum that IPv6 requires of every link.
    let least = if peer.is_ipv6() { BASE } else { LEAST };
    network.path_mtu(peer).unwrap_or(BASE).clamp(least, config.max_mtu)
}

/// A probe of a path, a port request, or the answer to one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Probe {
    pub(in crate::engine) session: SessionId,
    /// Destination, and source port.
    pub(in crate::engine) to: Peer,
    /// Whether the probe is a port request, which asks the peer to accept packets from that port.
    pub(in crate::engine) joins: bool,
    /// Length of the UDP payload in bytes.
    pub(in crate::engine) length: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::virtual_network::VirtualNetwork;
    use crate::session::KeyRing;

    /// The kernel refuses packets that are longer than its MTU, so the minimum must not exceed what the kernel can state:
    /// 552 bytes over IPv4 by default, and 1280 over IPv6 (RFC 8201 §4).
    #[test]
    fn a_forged_mtu_is_552_bytes_at_least_over_ipv4_and_1280_over_ipv6() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let network = VirtualNetwork::new(at("10.0.0.1:7000"), &[]);
        let config = Config::new(network.local, KeyRing::insecure()).expect("valid");
        let known = |peer: &str, kernel| {
            network.mtu.set(kernel);
            path_mtu(&config, at(peer), &network)
        };
        for (kernel, v4, v6) in [
            (Some(68), 552, 1280),
            (Some(552), 552, 1280),
            (Some(576), 576, 1280),
            (Some(1500), 1500, 1500),
            (Some(65_535), config.max_mtu, config.max_mtu),
            (None, 1280, 1280),
        ] {
            let found = [known("10.0.0.2:7000", kernel), known("[2001:db8::2]:7000", kernel)];
            assert_eq!(found, [v4, v6], "{kernel:?}");
        }
    }
}
