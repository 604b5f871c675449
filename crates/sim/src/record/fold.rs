//! The links over time: folded by pod and tier, so that a network of any size has few rows, and the most
//! interesting links individually.

use std::collections::BTreeMap;
use std::mem::{replace, take};

use apus_cc::SwitchHalf;
use apus_fabric::{Network, PortCounters};
use apus_units::{PortId, Rate, Span, Time};
use apus_wire::Header;

use super::ports::ends;
use super::{NodeRecord, PortRecord, PortSample};

/// Maximum number of points in time. Rationale: a screen does not show more columns of a heat map.
const MAX_TIMES: u64 = 400;
/// Maximum number of links that are kept individually.
const MAX_LINKS: usize = 512;
/// Maximum number of pods; if there are more, neighbouring pods are joined.
const MAX_PODS: usize = 64;

/// Nodes of one tier within a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of links to the nearest host; 0 is a host.
    pub tier: u32,
    /// First and last pod; `None` for the highest tier of switches, which belongs to no pod.
    pub pods: Option<(u32, u32)>,
}

/// Ports that lead from one place to another.
#[derive(Clone, Debug, PartialEq)]
pub struct PortGroup {
    /// Place of the nodes of the ports.
    pub from: Place,
    /// Place of the nodes at the other ends.
    pub to: Place,
    /// Number of ports.
    pub ports: u32,
    /// Sum of the rates of all links.
    pub rate_gbps: f64,
}

/// Links over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Wire bytes sent / bytes that the links could have sent.
    pub utilisation: f32,
    /// Utilisation of the busiest link.
    pub busiest: f32,
    /// Time average of the wire bytes in a port, for the port with the largest average.
    pub queue_bytes: f32,
    /// Packets dropped.
    pub drops: u32,
    /// Packets marked.
    pub marks: u32,
    /// Number of times that a port was paused.
    pub pauses: u32,
}

/// The links of a network over time.
#[derive(Clone, Debug, Default)]
pub struct NetworkOverTime {
    /// Ends of the intervals.
    pub times: Vec<Time>,
    /// Groups of ports.
    pub groups: Vec<PortGroup>,
    /// By port: its group.
    pub group_of: Vec<u32>,
    /// By time and group.
    pub group_cells: Vec<Vec<Cell>>,
    /// Ports that are kept individually: those with the most drops, then those with the longest queues.
    pub links: Vec<PortId>,
    /// Number of ports from which they were chosen.
    pub candidates: usize,
    /// By link and time.
    pub link_cells: Vec<Vec<Cell>>,
}

/// Counters of a port at the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    sent: u64,
    drops: u64,
    marks: u64,
    pauses: u64,
    byte_time: u128,
}

/// Samples the groups.
#[derive(Debug)]
pub(super) struct Fold {
    groups: Vec<PortGroup>,
    /// By port.
    of: Vec<u32>,
    rates: Vec<Rate>,
    before: Vec<Before>,
    /// Start of the first interval.
    begin: Time,
    last: Time,
    /// Number of samples of the recording per sample of the groups.
    stride: u64,
    seen: u64,
    times: Vec<Time>,
    cells: Vec<Vec<Cell>>,
}

impl Fold {
    /// Folds a network that is sampled this many times from `begin` onwards.
    pub(super) fn new<W: SwitchHalf>(
        network: &Network<Header, W>,
        nodes: &[NodeRecord],
        begin: Time,
        samples: u64,
    ) -> Self {
        let links: Vec<(usize, usize)> = network.ports().map(|port| ends(network, port)).collect();
        let tiers: Vec<u32> = nodes.iter().map(|node| node.tier).collect();
        let places = places(&tiers, &links);
        // Tiers come first in the order, so that rows of equal meaning are adjacent.
        let mut known: BTreeMap<([u32; 2], Place, Place), Vec<usize>> = BTreeMap::new();
        for (port, &(from, to)) in links.iter().enumerate() {
            let tiers = [places[from].tier, places[to].tier];
            known.entry((tiers, places[from], places[to])).or_default().push(port);
        }
        let rates: Vec<Rate> = network.ports().map(|port| network.rate(port)).collect();
        let mut of = vec![0; links.len()];
        let groups = known.into_iter().enumerate().map(|(index, ((_, from, to), ports))| {
            ports.iter().for_each(|&port| of[port] = index as u32);
            let rate_gbps = ports.iter().map(|&port| rates[port].as_gbps_f64()).sum();
            PortGroup { from, to, ports: ports.len() as u32, rate_gbps }
        });
        Self {
            groups: groups.collect(),
            before: vec![Before::default(); links.len()],
            of,
            rates,
            begin,
            last: begin,
            stride: samples.div_ceil(MAX_TIMES).max(1),
            seen: 0,
            times: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Stops sampling groups.
    pub(super) fn turn_off(&mut self) {
        self.of.clear();
    }

    /// Samples the counters of all ports.
    pub(super) fn sample(&mut self, now: Time, counters: impl Fn(PortId) -> PortCounters) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.stride) {
            return;
        }
        let interval = now.since(self.last).max(Span::from_ps(1));
        let mut cells = vec![Cell::default(); self.groups.len()];
        for (port, &group) in self.of.iter().enumerate() {
            let now = counters(PortId::new(port as u32));
            let now = Before {
                sent: now.sent.bytes,
                drops: now.dropped.packets,
                marks: now.marked,
                pauses: now.pauses,
                byte_time: now.byte_time,
            };
            let before = replace(&mut self.before[port], now);
            let cell = &mut cells[group as usize];
            let room = self.rates[port].as_gbps_f64() * interval.as_ps_f64() / 8e3;
            let used = (now.sent - before.sent) as f64;
            let queue = (now.byte_time - before.byte_time) as f64 / interval.as_ps_f64();
            let all = self.groups[group as usize].rate_gbps * interval.as_ps_f64() / 8e3;
            cell.utilisation += (used / all) as f32;
            cell.busiest = cell.busiest.max((used / room) as f32);
            cell.queue_bytes = cell.queue_bytes.max(queue as f32);
            cell.drops = cell.drops.saturating_add((now.drops - before.drops) as u32);
            cell.marks = cell.marks.saturating_add((now.marks - before.marks) as u32);
            cell.pauses = cell.pauses.saturating_add((now.pauses - before.pauses) as u32);
        }
        self.last = now;
        self.times.push(now);
        self.cells.push(cells);
    }

    /// Returns the links over time: the groups, and the `ports` that were sampled individually.
    pub(super) fn finish(
        &mut self,
        times: &[Time],
        ports: &[PortId],
        samples: &[Vec<PortSample>],
        records: &[PortRecord],
    ) -> NetworkOverTime {
        let stride = self.stride as usize;
        let largest = |place: usize, of: fn(&PortSample) -> f64| {
            samples.iter().map(|row| of(&row[place])).fold(0.0, f64::max)
        };
        let mut order: Vec<(f64, f64, usize)> = (0..ports.len())
            .map(|place| {
                let drops = samples.iter().map(|row| row[place].drops as f64).sum();
                (drops, largest(place, |sample| sample.mean_queue_bytes), place)
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        order.truncate(MAX_LINKS);
        let mut chosen: Vec<usize> = order.into_iter().map(|(_, _, place)| place).collect();
        chosen.sort_by_key(|&place| ports[place]);
        let link = |&place: &usize| {
            let rate = records[ports[place].index()].rate.as_gbps_f64();
            let mut last = self.begin;
            let cells = samples.chunks(stride).zip(times.chunks(stride));
            let cells = cells.map(|(rows, times)| {
                let end = times.last().copied().unwrap_or(last);
                let seconds = end.since(replace(&mut last, end)).as_secs_f64();
                let sum = |of: fn(&PortSample) -> u64| {
                    rows.iter().map(|row| of(&row[place])).sum::<u64>()
                };
                let sent = sum(|sample| sample.sent_bytes) as f64;
                let use_of = (sent * 8e-9 / seconds.max(1e-12) / rate) as f32;
                let queue: f64 = rows.iter().map(|row| row[place].mean_queue_bytes).sum();
                Cell {
                    utilisation: use_of,
                    busiest: use_of,
                    queue_bytes: (queue / rows.len() as f64) as f32,
                    drops: sum(|sample| sample.drops) as u32,
                    marks: sum(|sample| sample.marked) as u32,
                    pauses: sum(|sample| sample.pauses) as u32,
                }
            });
            // Same number of cells as the groups have: the last interval may be incomplete.
            cells.take(self.times.len()).collect::<Vec<_>>()
        };
        NetworkOverTime {
            link_cells: chosen.iter().map(link).collect(),
            links: chosen.iter().map(|&place| ports[place]).collect(),
            candidates: ports.len(),
            times: take(&mut self.times),
            groups: take(&mut self.groups),
            group_of: take(&mut self.of),
            group_cells: take(&mut self.cells),
        }
    }
}

/// Returns the place of each node. A pod consists of the nodes that are connected below the highest tier of
/// switches. With a single tier of switches, each switch and its hosts are a pod.
fn places(tiers: &[u32], links: &[(usize, usize)]) -> Vec<Place> {
    let top = tiers.iter().copied().filter(|&tier| tier < u32::MAX).max().unwrap_or(0);
    let in_pod = |node: usize| top <= 1 || tiers[node] < top;
    let mut parent: Vec<usize> = (0..tiers.len()).collect();
    let find = |parent: &mut Vec<usize>, mut node: usize| {
        while parent[node] != node {
            parent[node] = parent[parent[node]];
            node = parent[node];
        }
        node
    };
    for &(a, b) in links {
        if in_pod(a) && in_pod(b) && tiers[a] != tiers[b] {
            let (a, b) = (find(&mut parent, a), find(&mut parent, b));
            parent[a.max(b)] = a.min(b);
        }
    }
    // Pods are in the order of their first nodes, and thus of their hosts.
    let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
    let roots: Vec<usize> = (0..tiers.len()).map(|node| find(&mut parent, node)).collect();
    for (node, &root) in roots.iter().enumerate().filter(|(node, _)| in_pod(*node)) {
        let next = numbers.len() as u32;
        numbers.entry(root).or_insert(next);
        debug_assert!(root <= node);
    }
    let joined = numbers.len().div_ceil(MAX_PODS).max(1) as u32;
    let last = numbers.len().saturating_sub(1) as u32;
    let place = |(node, root): (usize, &usize)| {
        let pod = numbers.get(root).filter(|_| in_pod(node));
        let pods = pod.map(|pod| {
            let first = pod / joined * joined;
            (first, (first + joined - 1).min(last))
        });
        Place { tier: tiers[node], pods }
    };
    roots.iter().enumerate().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::{Place, places};

    fn place(tier: u32, pod: Option<u32>) -> Place {
        Place { tier, pods: pod.map(|pod| (pod, pod)) }
    }

    /// Two leaves with two hosts each and a spine: nodes 0 to 3 are hosts.
    #[test]
    fn leaves_are_pods_and_spines_belong_to_none() {
        let links = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)];
        let found = places(&[0, 0, 0, 0, 1, 1, 2], &links);
        let of = |tier, pod| place(tier, Some(pod));
        let expected = [of(0, 0), of(0, 0), of(0, 1), of(0, 1), of(1, 0), of(1, 1), place(2, None)];
        assert_eq!(found, expected);
    }

    /// A dumbbell: both switches have hosts, so each of them forms a pod.
    #[test]
    fn a_single_tier_of_switches_has_a_pod_per_switch() {
        let found = places(&[0, 0, 1, 1], &[(0, 2), (1, 3), (2, 3)]);
        let of = |tier, pod| place(tier, Some(pod));
        assert_eq!(found, [of(0, 0), of(0, 1), of(1, 0), of(1, 1)]);
    }

    /// 130 leaves of one host each: 64 rows at most mean 3 leaves per row, which gives 44 rows.
    #[test]
    fn many_pods_are_joined_with_their_neighbours() {
        let leaves = 130;
        let tiers: Vec<u32> =
            (0..leaves).map(|_| 0).chain((0..leaves).map(|_| 1)).chain([2]).collect();
        let mut links: Vec<(usize, usize)> =
            (0..leaves).map(|leaf| (leaf, leaves + leaf)).collect();
        links.extend((0..leaves).map(|leaf| (leaves + leaf, 2 * leaves)));
        let found = places(&tiers, &links);
        assert_eq!(found[0].pods, Some((0, 2)));
        assert_eq!(found[129].pods, Some((129, 129)));
        let mut rows: Vec<_> = found[..leaves].to_vec();
        rows.dedup();
        assert_eq!(rows.len(), 44);
    }
}
