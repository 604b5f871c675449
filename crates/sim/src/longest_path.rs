//! Facts about the unloaded network between the pair of hosts with the longest path. Parameters of algorithms
//! depend on them.

use apus_cc::{NetworkInfo, SwitchHalf};
use apus_fabric::{LinkSpec, Node, PortConfig, Topology};
use apus_units::{Bytes, Rate, Span};

use crate::host_model::HostModel;
use crate::packets::PacketSizes;

/// Returns the facts about the pair of hosts with the longest unloaded RTT, among all pairs of the network.
/// Returns `None` if no two hosts can reach each other, or if a link has no rate.
///
/// If a pair has several shortest paths, the slowest one counts.
#[must_use]
pub fn network_info<W: SwitchHalf>(
    topology: &Topology<W>,
    sizes: PacketSizes,
    host: &HostModel,
) -> Option<NetworkInfo> {
    // The scenario reader rejects such a link with its own error.
    let still = |link: &LinkSpec<W>| link.ab.rate.as_bps() == 0 || link.ba.rate.as_bps() == 0;
    if topology.links.iter().any(still) {
        return None;
    }
    let data = Bytes::new(u64::from(sizes.payload + sizes.header));
    let graph = Graph::new(topology, sizes);
    let longest = (0..graph.edges.len()).filter_map(|edge| graph.longest_from(edge));
    let path = longest.reduce(Path::longer)?;
    // In each direction a packet is delayed by a time that is uniform from zero to the jitter. Over both
    // directions this is the jitter on average, and twice the jitter at most.
    let fabric_rtt = path.rtt.saturating_add(host.jitter);
    let rates = topology.links.iter().filter_map(|link| match (link.a, link.b) {
        (Node::Host(_), _) => Some(link.ab.rate),
        (_, Node::Host(_)) => Some(link.ba.rate),
        _ => None,
    });
    let trims = |port: &PortConfig<W>| {
        port.classes.iter().any(|class| class.trim.is_some_and(|trim| trim.keeps_headers))
    };
    Some(NetworkInfo {
        base_rtt: fabric_rtt.saturating_add(host_time(host, sizes)),
        fabric_rtt,
        fabric_jitter: host.jitter,
        hops: u8::try_from(path.switches).unwrap_or(u8::MAX),
        line_rate: rates.max_by_key(|rate| rate.as_bps())?,
        path_rate: path.rate,
        packet: data,
        trims: topology.links.iter().flat_map(|link| [&link.ab, &link.ba]).any(trims),
    })
}

/// Returns the mean time that the engines of both hosts take for a full data packet that ends an op and for
/// its acknowledgement, without stalls and other work.
fn host_time(host: &HostModel, sizes: PacketSizes) -> Span {
    let Some(costs) = host.engine else { return Span::ZERO };
    let copy = costs.copy_kib.mul_f64(f64::from(sizes.payload) / 1024.0);
    [copy, costs.receive_op, costs.send_ack, costs.receive_ack]
        .into_iter()
        .fold(costs.receive_packet, Span::saturating_add)
}

/// A path of a full data packet and its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Total delay of links and switches, in both directions.
    rtt: Span,
    /// Rate of the slowest link in the direction of the data.
    rate: Rate,
    /// Number of switches in the direction of the data.
    switches: u32,
}

impl Path {
    /// Returns the path with the longer time. Of equally long paths, it is the one with the slower link, so
    /// that the order of links does not matter.
    fn longer(self, other: Self) -> Self {
        let key = |path: &Self| (path.rtt, core::cmp::Reverse(path.rate.as_bps()));
        if key(&other) > key(&self) { other } else { self }
    }

    fn then(self, next: Self) -> Self {
        Self {
            rtt: self.rtt.saturating_add(next.rtt),
            rate: Rate::from_bps(self.rate.as_bps().min(next.rate.as_bps())),
            switches: self.switches + next.switches,
        }
    }
}

/// An attachment of hosts. Hosts of one switch (or host) with equal links share it.
struct Edge {
    /// Node to which the links of the hosts lead.
    at: usize,
    /// Link from the host to the node.
    up: Path,
    /// Link from the node to the host.
    down: Path,
    /// Whether several hosts have this attachment.
    several: bool,
}

struct Graph {
    edges: Vec<Edge>,
    /// By node: its links to switches.
    links: Vec<Vec<(usize, Path)>>,
}

impl Graph {
    /// Builds the graph. Its nodes are the switches, then hosts to which another host's link leads.
    fn new<W: SwitchHalf>(topology: &Topology<W>, sizes: PacketSizes) -> Self {
        let switches = topology.switches.len();
        let node = |node: Node| match node {
            Node::Switch(switch) => switch.index(),
            Node::Host(host) => switches + host.index(),
        };
        let mut graph = Self { edges: Vec::new(), links: vec![Vec::new(); switches] };
        for link in &topology.links {
            for forward in [true, false] {
                let (from, to) = if forward { (link.a, link.b) } else { (link.b, link.a) };
                let path = step(topology, link, forward, sizes);
                match (from, to) {
                    (Node::Switch(from), Node::Switch(to)) => {
                        graph.links[from.index()].push((to.index(), path));
                    }
                    (Node::Host(_), _) => {
                        let down = step(topology, link, !forward, sizes);
                        graph.attach(node(to), path, down);
                    }
                    (Node::Switch(_), Node::Host(_)) => {}
                }
            }
        }
        graph
    }

    fn attach(&mut self, at: usize, up: Path, down: Path) {
        let alike =
            |edge: &&mut Edge| edge.at == at && (edge.up.rtt, edge.up.rate) == (up.rtt, up.rate);
        match self.edges.iter_mut().rev().find(alike) {
            Some(edge) => edge.several = true,
            None => self.edges.push(Edge { at, up, down, several: false }),
        }
    }

    /// Returns the longest of the shortest paths from the hosts of `source` to all others.
    fn longest_from(&self, source: usize) -> Option<Path> {
        let start = &self.edges[source];
        // By switch: its distance and longest path, if it was reached.
        let mut reached = vec![(u32::MAX, start.up); self.links.len()];
        let mut order = Vec::with_capacity(self.links.len());
        if let Some(place) = reached.get_mut(start.at) {
            place.0 = 0;
            order.push(start.at);
        }
        // The search is breadth-first: all paths to a switch are known before the switch is left.
        let mut left = 0;
        while let Some(&at) = order.get(left) {
            left += 1;
            let (distance, path) = reached[at];
            for &(to, link) in &self.links[at] {
                let known = &mut reached[to];
                if known.0 == u32::MAX {
                    *known = (distance + 1, path.then(link));
                    order.push(to);
                } else if known.0 > distance {
                    known.1 = known.1.longer(path.then(link));
                }
            }
        }
        let ends = self.edges.iter().enumerate().filter_map(|(index, edge)| {
            if index == source && !edge.several {
                return None;
            }
            let (distance, path) = *reached.get(edge.at)?;
            (distance < u32::MAX).then(|| path.then(edge.down))
        });
        ends.reduce(Path::longer).or_else(|| {
            // Two hosts are on one link.
            (start.at >= self.links.len()).then_some(start.up)
        })
    }
}

/// Returns the path over one link and the switch at its end, for data in one direction and an acknowledgement
/// in the other.
fn step<W: SwitchHalf>(
    topology: &Topology<W>,
    link: &LinkSpec<W>,
    forward: bool,
    sizes: PacketSizes,
) -> Path {
    let (there, back) = if forward { (&link.ab, &link.ba) } else { (&link.ba, &link.ab) };
    let latency = |node: Node| match node {
        Node::Switch(switch) => topology.switches[switch.index()].pipeline_latency,
        Node::Host(_) => Span::ZERO,
    };
    let (from, to) = if forward { (link.a, link.b) } else { (link.b, link.a) };
    let data = Bytes::new(u64::from(sizes.payload + sizes.header));
    let full = there.rate.serialization_time(data);
    let ack = back.rate.serialization_time(Bytes::new(u64::from(sizes.control)));
    Path {
        rtt: [ack, link.delay, link.delay, latency(to), latency(from)]
            .into_iter()
            .fold(full, Span::saturating_add),
        rate: there.rate,
        switches: u32::from(matches!(to, Node::Switch(_))),
    }
}

#[cfg(test)]
mod tests {
    use apus_fabric::Tier;

    use super::*;

    const SIZES: PacketSizes = PacketSizes { payload: 4096, header: 64, control: 84 };

    fn info(topology: &Topology<apus_cc::Plain>, host: &HostModel) -> NetworkInfo {
        network_info(topology, SIZES, host).expect("connected")
    }

    /// Four links of 5 us; 4160 B and 84 B twice each at 100 Gb/s: 332.8 and 6.72 ns.
    #[test]
    fn a_star_has_the_rtt_by_hand() {
        let tier = Tier::hosts(Rate::from_gbps(100), Span::from_us(5), Bytes::new(1 << 20));
        let star = info(&Topology::star(3, &tier), &HostModel::IDEAL);
        assert_eq!(star.base_rtt, Span::from_ps(20_679_040));
        assert_eq!((star.fabric_rtt, star.hops), (star.base_rtt, 1));
        assert_eq!(star.bdp(), Bytes::new(258_488));
        let t1 = HostModel::preset("t1").expect("a preset");
        let hosts = info(&Topology::star(3, &tier), &t1);
        // Two delays of 3 us on average; 270 + 4 * 9 + 220 + 280 + 70 ns of work.
        assert_eq!(hosts.fabric_rtt - star.fabric_rtt, Span::from_us(6));
        assert_eq!((star.fabric_jitter, hosts.fabric_jitter), (Span::ZERO, Span::from_us(6)));
        assert_eq!(hosts.base_rtt - hosts.fabric_rtt, Span::from_ns(876));
    }

    /// The pair that is farthest apart decides, wherever it is, and the slowest link on its path.
    #[test]
    fn the_farthest_pair_counts() {
        let gbps = Rate::from_gbps;
        let edge = Tier::hosts(gbps(100), Span::from_us(1), Bytes::new(1 << 20));
        let chain = Tier::switches(gbps(40), Span::from_us(10), Bytes::new(1 << 20));
        let lot = info(&Topology::parking_lot(3, 1, &edge, &chain), &HostModel::IDEAL);
        // Two host links and two of the chain, each way: 44 us. Data: 2 * 332.8 + 2 * 832 ns; ACKs:
        // 2 * 6.72 + 2 * 16.8 ns.
        assert_eq!(lot.base_rtt, Span::from_ps(44_000_000 + 2_329_600 + 47_040));
        assert_eq!((lot.path_rate, lot.line_rate, lot.hops), (gbps(40), gbps(100), 3));
        let latency = Span::from_ns(500);
        let slow = Topology::parking_lot(3, 1, &edge, &chain).with_pipeline_latency(latency);
        // Three switches, in both directions.
        let longer = info(&slow, &HostModel::IDEAL).base_rtt - lot.base_rtt;
        assert_eq!(longer, Span::from_us(3));
    }
}
