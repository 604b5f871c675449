//! Ports and nodes of a recording: the sampled ports, their counters and drops, and their indices.

use apus_cc::{AlgorithmFactory, SwitchHalf};
use apus_fabric::{Drops, Network, Node, PortCounters};
use apus_units::{HostId, PortId, Span, SwitchId};
use apus_wire::Header;

use super::{NodeRecord, PortRecord, Record};
use crate::losses::Causes;
use crate::part::Part;
use crate::plan::Plan;

/// Maximum number of port samples in memory: about 160 MB.
const MAX_PORT_SAMPLES: u64 = 4_000_000;

/// Returns all switch ports and, on request, those of NICs; ports to hosts come first. Their number is
/// limited by the memory reserved for samples.
pub(super) fn choose_ports<F: AlgorithmFactory>(
    network: &Network<Header, F::Switch>,
    plan: &Plan<F>,
    record: Record,
    notes: &mut Vec<String>,
) -> Vec<PortId> {
    let is_host = |node| matches!(node, Node::Host(_));
    let mut ports: Vec<PortId> = network
        .ports()
        .filter(|&port| record.nics || !is_host(network.port_ends(port).0))
        .collect();
    ports.sort_by_key(|&port| (!is_host(network.port_ends(port).1), port));
    let samples = plan.duration.as_ps() / record.interval.as_ps().max(1);
    let room = (MAX_PORT_SAMPLES / samples.max(1)) as usize;
    if ports.len() > room {
        notes.push(format!(
            "{room} of {} ports were sampled, those to hosts first: {MAX_PORT_SAMPLES} samples are \
             held at most (fewer with a longer `interval` in `[record]`)",
            ports.len()
        ));
        ports.truncate(room);
    }
    ports
}

/// Returns the traffic of each port in the measured phase, from the counters of all ports before
/// and after it.
pub(super) fn port_records<W: SwitchHalf>(
    network: &Network<Header, W>,
    measured: Span,
    before: &[PortCounters],
    after: &[PortCounters],
) -> Vec<PortRecord> {
    network
        .ports()
        .map(|port| {
            let (old, new) = (&before[port.index()], &after[port.index()]);
            let (from, to) = ends(network, port);
            PortRecord {
                port,
                from,
                to,
                rate: network.configured_rate(port),
                offered_packets: new.offered.packets - old.offered.packets,
                sent_packets: new.sent.packets - old.sent.packets,
                sent_bytes: new.sent.bytes - old.sent.bytes,
                drops: new.dropped.packets - old.dropped.packets,
                causes: Causes::default(),
                marked: new.marked - old.marked,
                trimmed: new.trimmed - old.trimmed,
                headers_lost: new.headers_lost - old.headers_lost,
                mean_queue_bytes: (new.byte_time - old.byte_time) as f64
                    / measured.as_ps_f64().max(1.0),
                max_queue: new.max_queue,
            }
        })
        .collect()
}

/// Returns the packets dropped at a port, over all parts: a packet whose TTL reaches 0 may be
/// dropped in a part other than that of the port.
pub(crate) fn drops_at<F: AlgorithmFactory>(parts: &[Part<F>], port: PortId) -> Drops {
    let mut sum = Drops::default();
    for part in parts {
        let more = part.world.network.drops(port);
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sum
}

/// Returns the node of a port and the node at the other end of its link, as indices of nodes: hosts, then switches.
pub(super) fn ends<W: SwitchHalf>(network: &Network<Header, W>, port: PortId) -> (usize, usize) {
    let hosts = network.hosts() as usize;
    let place = |node| match node {
        Node::Host(host) => host.index(),
        Node::Switch(switch) => hosts + switch.index(),
    };
    let (from, to) = network.port_ends(port);
    (place(from), place(to))
}

/// Returns hosts, then switches, each with its distance from the nearest host.
pub(super) fn nodes<W: SwitchHalf>(
    network: &Network<Header, W>,
    switches: usize,
) -> Vec<NodeRecord> {
    let hosts = network.hosts() as usize;
    let mut tiers = vec![u32::MAX; hosts + switches];
    tiers[..hosts].fill(0);
    let mut changed = true;
    while changed {
        changed = false;
        for port in network.ports() {
            let (from, to) = ends(network, port);
            let further = tiers[from].saturating_add(1);
            if further < tiers[to] {
                tiers[to] = further;
                changed = true;
            }
        }
    }
    let name = |index: usize| {
        network.node_name(match index.checked_sub(hosts) {
            None => Node::Host(HostId::new(index as u32)),
            Some(switch) => Node::Switch(SwitchId::new(switch as u32)),
        })
    };
    let all = tiers.iter().enumerate();
    all.map(|(index, &tier)| NodeRecord { name: name(index), tier }).collect()
}
