//! Reports of an engine on its connections and peers, for metrics.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use apus_cc::Snapshot;
use apus_transport::{EvCounters, FlowCounters};
use apus_units::{Span, Time};

use crate::op_counters::OpCounts;
use crate::spreading::OnePort;

/// The connections and peers of an engine.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Connections, at most [`Config::metrics_limit`](crate::Config::metrics_limit), the oldest first.
    pub(crate) connections: Vec<ConnectionReport>,
    /// Number of further connections, which are not listed.
    pub(crate) unlisted: u64,
    /// Peers by IP address.
    pub(crate) peers: Vec<(IpAddr, PeerReport)>,
    /// All other peers together.
    pub(crate) other: PeerReport,
}

/// Source ports by which a connection sends, with the counters of their packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Payload of a full data packet in bytes, as far as probes have confirmed the path.
    pub payload: u64,
    /// Reason why all packets leave by one port; `None` if they do not.
    pub one_port: Option<OnePort>,
    /// Number of ports of the peer from which packets are accepted.
    pub peer_ports: u16,
    /// Length of the range of packet numbers that flows remember; `None` unless this side or the peer has several ports.
    pub range: Option<u32>,
    /// Ports of this side, by number.
    pub ports: Vec<PortPaths>,
}

/// A source port of a connection. Its number is that of the entropy values that name it, modulo the number of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPaths {
    /// The UDP port.
    pub port: u16,
    /// Whether packets leave by this port.
    pub usable: bool,
    /// Packet counters over all flows. They are 0 if both sides of the connection use one port; the counters of the flows then
    /// apply.
    pub counters: EvCounters,
}

/// A connection, over all its flows.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionReport {
    /// Number of the connection, unique within the engine.
    pub(crate) number: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) flows: usize,
    /// Maximum length of IP packets of the connection in bytes.
    pub(crate) mtu: u32,
    pub(crate) windows: Windows,
    pub(crate) totals: Totals,
    pub(crate) paths: Paths,
}

/// A peer, with counters over all its connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PeerReport {
    /// Number of open connections.
    pub(crate) open: u64,
    pub(crate) totals: Totals,
}

/// The state of an algorithm over the flows of a connection: sums of windows, means of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Windows {
    /// Sum of the congestion windows, in packets.
    pub(crate) cwnd: f64,
    /// Sums of Swift's fabric windows and endpoint windows (§3.3).
    pub(crate) fabric_cwnd: Option<f64>,
    pub(crate) endpoint_cwnd: Option<f64>,
    target_delay: Mean,
    smoothed_rtt: Mean,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mean {
    seconds: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<Span>) {
        if let Some(value) = value {
            self.seconds += value.as_secs_f64();
            self.count += 1;
        }
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / f64::from(self.count))
    }
}

impl Windows {
    /// Adds a flow.
    pub(crate) fn add(&mut self, flow: &Snapshot) {
        let sum = |sum: Option<f64>, more: Option<f64>| match (sum, more) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
        self.cwnd += flow.cwnd;
        self.fabric_cwnd = sum(self.fabric_cwnd, flow.fabric_cwnd);
        self.endpoint_cwnd = sum(self.endpoint_cwnd, flow.endpoint_cwnd);
        self.target_delay.add(flow.target_delay);
        self.smoothed_rtt.add(flow.smoothed_rtt);
    }

    /// Returns the mean target delay in seconds.
    pub(crate) fn target_delay(&self) -> Option<f64> {
        self.target_delay.get()
    }

    /// Returns the mean smoothed RTT in seconds.
    pub(crate) fn smoothed_rtt(&self) -> Option<f64> {
        self.smoothed_rtt.get()
    }
}

/// Counters of one or more connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// Data packets sent, retransmissions included.
    pub(crate) packets_sent: u64,
    /// Data packets declared lost from the SACK bitmap, and by a timeout. Each of them is retransmitted.
    pub(crate) fast_losses: u64,
    pub(crate) timeout_losses: u64,
    /// Retransmission timeouts that expired.
    pub(crate) timeouts: u64,
    pub(crate) ops: OpCounts,
}

impl Totals {
    /// Adds the counters of a flow.
    pub(crate) fn add_flow(&mut self, flow: &FlowCounters) {
        self.packets_sent += flow.packets_sent;
        self.fast_losses += flow.fast_losses;
        self.timeout_losses += flow.timeout_losses;
        self.timeouts += flow.timeouts;
    }

    fn add(&mut self, other: &Self) {
        self.packets_sent += other.packets_sent;
        self.fast_losses += other.fast_losses;
        self.timeout_losses += other.timeout_losses;
        self.timeouts += other.timeouts;
        self.ops.add(&other.ops);
    }
}

impl PeerReport {
    /// Adds an open connection.
    fn add(&mut self, totals: &Totals) {
        self.open += 1;
        self.totals.add(totals);
    }
}

/// The peers of an engine, by IP address, and the counters of their connections that have ended. The number of listed
/// peers is limited, and all further peers are counted together. Every sum stays monotonic: if a peer is replaced in
/// the list, its counters are added to those of the further peers.
#[derive(Debug)]
pub(crate) struct Peers {
    limit: usize,
    listed: BTreeMap<IpAddr, Entry>,
    other: Totals,
}

#[derive(Debug)]
struct Entry {
    /// Number of open connections.
    open: u64,
    /// When the last connection ended, if no connection is open.
    idle_since: Time,
    ended: Totals,
}

impl Peers {
    /// Returns an empty table of at most `limit` peers.
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit: limit as usize, listed: BTreeMap::new(), other: Totals::default() }
    }

    /// Counts a new connection of a peer. Returns whether the peer is listed; the connection must remember the result.
    pub(crate) fn open(&mut self, peer: IpAddr) -> bool {
        if !self.listed.contains_key(&peer) {
            if self.listed.len() >= self.limit && !self.replace() {
                return false;
            }
            let entry = Entry { open: 0, idle_since: Time::ZERO, ended: Totals::default() };
            self.listed.insert(peer, entry);
        }
        if let Some(entry) = self.listed.get_mut(&peer) {
            entry.open += 1;
        }
        true
    }

    /// Removes the listed peer whose last connection ended earliest. Returns `false` if all listed peers have open
    /// connections.
    fn replace(&mut self) -> bool {
        let idle = self.listed.iter().filter(|(_, entry)| entry.open == 0);
        let first = idle.min_by_key(|(_, entry)| entry.idle_since).map(|(&peer, _)| peer);
        let Some(entry) = first.and_then(|peer| self.listed.remove(&peer)) else { return false };
        self.other.add(&entry.ended);
        true
    }

    /// Counts the end of a connection. `listed` is the result of [`Peers::open`] for it.
    pub(crate) fn close(&mut self, now: Time, peer: IpAddr, listed: bool, totals: &Totals) {
        match self.listed.get_mut(&peer).filter(|_| listed) {
            Some(entry) => {
                entry.open -= 1;
                entry.idle_since = now;
                entry.ended.add(totals);
            }
            None => self.other.add(totals),
        }
    }

    /// Returns the listed peers, and the further peers together. `connections` are the open ones: peer, whether the
    /// peer is listed, and totals.
    pub(crate) fn report(
        &self,
        connections: impl Iterator<Item = (IpAddr, bool, Totals)>,
    ) -> (Vec<(IpAddr, PeerReport)>, PeerReport) {
        let of_ended = |totals: Totals| PeerReport { open: 0, totals };
        let entries = self.listed.iter().map(|(&peer, entry)| (peer, of_ended(entry.ended)));
        let mut peers: BTreeMap<IpAddr, PeerReport> = entries.collect();
        let mut other = of_ended(self.other);
        for (peer, listed, totals) in connections {
            let entry = peers.get_mut(&peer).filter(|_| listed);
            entry.unwrap_or(&mut other).add(&totals);
        }
        (peers.into_iter().collect(), other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn totals(packets_sent: u64) -> Totals {
        Totals { packets_sent, ..Totals::default() }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    /// A peer, the number of its open connections, and the number of its packets.
    type Listed = (IpAddr, u64, u64);

    /// Returns the listed peers, and the numbers of connections and packets of the further peers.
    fn seen(peers: &Peers, open: &[(u8, bool, u64)]) -> (Vec<Listed>, (u64, u64)) {
        let open = open.iter().map(|&(n, listed, packets)| (ip(n), listed, totals(packets)));
        let (listed, other) = peers.report(open);
        let listed = listed.into_iter().map(|(ip, p)| (ip, p.open, p.totals.packets_sent));
        (listed.collect(), (other.open, other.totals.packets_sent))
    }

    #[test]
    fn a_peer_sums_its_open_and_ended_connections_and_peers_beyond_the_limit_are_one() {
        let mut peers = Peers::new(2);
        assert!(peers.open(ip(1)) && peers.open(ip(1)) && peers.open(ip(2)));
        assert!(!peers.open(ip(3)), "both places are taken");
        peers.close(at(1), ip(1), true, &totals(100));
        let (listed, other) = seen(&peers, &[(1, true, 7), (2, true, 1), (3, false, 50)]);
        assert_eq!(listed, [(ip(1), 1, 107), (ip(2), 1, 1)]);
        assert_eq!(other, (1, 50));
        peers.close(at(2), ip(3), false, &totals(60));
        assert_eq!(seen(&peers, &[]).1, (0, 60));
    }

    #[test]
    fn a_new_peer_takes_the_place_of_the_one_that_has_been_idle_longest_and_no_count_is_lost() {
        let mut peers = Peers::new(2);
        for (n, seconds) in [(1, 5), (2, 3)] {
            assert!(peers.open(ip(n)));
            peers.close(at(seconds), ip(n), true, &totals(u64::from(n)));
        }
        assert!(peers.open(ip(3)));
        let (listed, other) = seen(&peers, &[(3, true, 10)]);
        assert_eq!(listed, [(ip(1), 0, 1), (ip(3), 1, 10)]);
        assert_eq!(other, (0, 2), "the second peer ended first");
        let mut none = Peers::new(0);
        assert!(!none.open(ip(1)));
    }

    #[test]
    fn windows_of_flows_are_added_and_their_delays_averaged() {
        let flow = |cwnd, rtt: u64, fabric| Snapshot {
            cwnd,
            fabric_cwnd: fabric,
            smoothed_rtt: (rtt > 0).then(|| Span::from_us(rtt)),
            ..Snapshot::default()
        };
        let mut windows = Windows::default();
        windows.add(&flow(2.0, 100, Some(3.0)));
        windows.add(&flow(0.5, 300, Some(4.0)));
        windows.add(&flow(1.0, 0, None));
        assert_eq!((windows.cwnd, windows.fabric_cwnd), (3.5, Some(7.0)));
        assert_eq!((windows.endpoint_cwnd, windows.target_delay()), (None, None));
        assert!((windows.smoothed_rtt().expect("two samples") - 200e-6).abs() < 1e-12);
    }
}
