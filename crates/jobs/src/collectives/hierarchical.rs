//! All-reduce and all-to-all by node and rail. Rank `node * group + place` has this place in its node; all
//! ranks with the same place form a rail.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::weave::Weave;
use super::{ring, share};

fn node_members(node: u32, group: u32) -> Vec<u32> {
    (node * group..(node + 1) * group).collect()
}

/// All-reduce: reduce-scatter in the node, all-reduce along the rail, all-gather in the node.
pub(super) fn all_reduce(weave: &mut Weave, bytes: u64, group: u32) -> Result<(), GraphError> {
    let outer = weave.members().to_vec();
    let ranks = |places: Vec<u32>| -> Vec<u32> {
        places.into_iter().map(|place| outer[place as usize]).collect()
    };
    let nodes = weave.ranks() / group;
    for node in 0..nodes {
        let members = ranks(node_members(node, group));
        weave.within(&members, |weave| ring::reduce_scatter(weave, bytes))?;
    }
    for place in 0..group {
        let rail = ranks((0..nodes).map(|node| node * group + place).collect());
        let block = share(bytes, place, group);
        weave.within(&rail, |weave| ring::all_reduce(weave, block))?;
    }
    for node in 0..nodes {
        let members = ranks(node_members(node, group));
        weave.within(&members, |weave| ring::all_gather(weave, bytes))?;
    }
    Ok(())
}

/// All-to-all with PXN: the blocks for a rank of another node first go to the rank of the own node that is on
/// the receiver's rail. That rank sends the blocks of its whole node in one message. Nodes follow in the
/// order node + 1, node + 2 and so on, and a message leaves when its blocks have arrived.
pub(super) fn all_to_all(weave: &mut Weave, bytes: u64, group: u32) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let nodes = ranks / group;
    let block = |from: u32, to: u32| share(bytes, (to + ranks - from) % ranks, ranks);
    let tag = weave.tags(2 * nodes);
    for rank in 0..ranks {
        let (node, place) = (rank / group, rank % group);
        let before = weave.before(rank).to_vec();
        let peers = || (1..group).map(|k| node * group + (place + k) % group);
        let mut ended = Vec::new();
        for distance in 1..=nodes {
            // The own node comes last.
            let to = (node + distance) % nodes;
            let mut gathered = before.clone();
            for peer in peers() {
                let last = to * group + peer % group;
                weave.send(rank, peer, block(rank, last), tag + distance - 1, &before)?;
            }
            for peer in peers() {
                let size = block(peer, to * group + place);
                gathered.push(weave.receive(rank, peer, size, tag + distance - 1)?);
            }
            if to == node {
                ended.append(&mut gathered);
                continue;
            }
            let target = to * group + place;
            let size = (node * group..(node + 1) * group).map(|from| block(from, target)).sum();
            weave.send(rank, target, size, tag + nodes + distance - 1, &gathered)?;
            let from = (node + nodes - distance) % nodes;
            let whole = (from * group..(from + 1) * group).map(|from| block(from, rank)).sum();
            let source = from * group + place;
            ended.push(weave.receive(rank, source, whole, tag + nodes + distance - 1)?);
        }
        weave.set_before(rank, &ended);
    }
    Ok(())
}
