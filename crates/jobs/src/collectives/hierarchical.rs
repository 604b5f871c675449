//! All-reduce by node and rail.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::weave::Weave;
use super::{ring, share};

/// Rank `node * group + place` has this place in its node.
pub(super) fn all_reduce(weave: &mut Weave, bytes: u64, group: u32) -> Result<(), GraphError> {
    let nodes = weave.ranks() / group;
    let members = |node: u32| -> Vec<u32> { (node * group..(node + 1) * group).collect() };
    for node in 0..nodes {
        ring::reduce_scatter(weave, &members(node), bytes)?;
    }
    for place in 0..group {
        let rail: Vec<u32> = (0..nodes).map(|node| node * group + place).collect();
        ring::all_reduce(weave, &rail, share(bytes, place, group))?;
    }
    for node in 0..nodes {
        ring::all_gather(weave, &members(node), bytes)?;
    }
    Ok(())
}
