//! All-reduce over two binary trees, as NCCL builds them (`src/graph/trees.cc`): each rank is an inner node
//! of at most one tree, except rank 0 if the number of ranks is odd.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::share;
use super::weave::Weave;

/// Neighbours of a rank in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tree {
    /// `None` at the root.
    pub parent: Option<u32>,
    /// At most two children.
    pub children: Vec<u32>,
}

/// Returns the neighbours of a node in the first tree.
fn first_tree(ranks: u32, rank: u32) -> Tree {
    if rank == 0 {
        // The largest power of two below the number of ranks.
        let child = (ranks > 1).then(|| 1 << (ranks - 1).ilog2());
        return Tree { parent: None, children: child.into_iter().collect() };
    }
    let bit = rank & rank.wrapping_neg();
    let up = (rank ^ bit) | bit << 1;
    let parent = Some(if up < ranks { up } else { rank ^ bit });
    let mut children = Vec::new();
    let mut below = bit >> 1;
    if below > 0 {
        children.push(rank - below);
        while below > 0 && rank + below >= ranks {
            below >>= 1;
        }
        if below > 0 {
            children.push(rank + below);
        }
    }
    Tree { parent, children }
}

/// Returns the neighbours of a rank in both trees of `ranks` ranks. The second tree is the first one mirrored
/// if the number of ranks is even, otherwise shifted by one.
#[must_use]
pub fn trees(ranks: u32, rank: u32) -> [Tree; 2] {
    let map =
        |other: u32| if ranks.is_multiple_of(2) { ranks - 1 - other } else { (other + 1) % ranks };
    let place = if ranks.is_multiple_of(2) { ranks - 1 - rank } else { (rank + ranks - 1) % ranks };
    let Tree { parent, children } = first_tree(ranks, place);
    let second =
        Tree { parent: parent.map(map), children: children.into_iter().map(map).collect() };
    [first_tree(ranks, rank), second]
}

pub(super) fn all_reduce(weave: &mut Weave, bytes: u64, chunks: u32) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let tag = weave.tags(4 * chunks);
    for rank in 0..ranks {
        let before = weave.before(rank).to_vec();
        let mut ends = Vec::new();
        let both = trees(ranks, rank);
        for chunk in 0..chunks {
            for (tree, Tree { parent, children }) in both.iter().enumerate() {
                let size = share(share(bytes, tree as u32, 2), chunk, chunks);
                let up = tag + 2 * (2 * chunk + tree as u32);
                let down = up + 1;
                let mut reduced = before.clone();
                for child in children {
                    reduced.push(weave.receive(rank, *child, size, up)?);
                }
                let whole = match parent {
                    Some(parent) => {
                        weave.send(rank, *parent, size, up, &reduced)?;
                        Vec::from([weave.receive(rank, *parent, size, down)?])
                    }
                    None => reduced,
                };
                for child in children {
                    weave.send(rank, *child, size, down, &whole)?;
                }
                ends.extend(whole);
            }
        }
        weave.set_before(rank, &ends);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::trees;

    /// Properties of NCCL's trees: a rank has at most 4 edges, and is an inner node of one tree only.
    #[test]
    fn every_rank_is_inner_in_one_tree_and_the_depth_is_the_logarithm() {
        for ranks in 2..300u32 {
            let all: Vec<_> = (0..ranks).map(|rank| trees(ranks, rank)).collect();
            for tree in 0..2 {
                let roots = all.iter().filter(|both| both[tree].parent.is_none()).count();
                assert_eq!(roots, 1, "{ranks} ranks");
                for rank in 0..ranks {
                    let Some(parent) = all[rank as usize][tree].parent else { continue };
                    let siblings = &all[parent as usize][tree].children;
                    assert!(siblings.contains(&rank), "{ranks} ranks, {rank}");
                    let mut depth = 0;
                    let mut at = Some(rank);
                    while let Some(above) = at.and_then(|at| all[at as usize][tree].parent) {
                        (at, depth) = (Some(above), depth + 1);
                        assert!(depth <= (ranks - 1).ilog2() + 1, "{ranks} ranks: too deep");
                    }
                }
            }
            for (rank, both) in all.iter().enumerate() {
                let edges = |tree: usize| {
                    both[tree].children.len() + usize::from(both[tree].parent.is_some())
                };
                assert!(edges(0) + edges(1) <= 4, "{ranks} ranks, {rank}");
                let inner = both.iter().filter(|tree| !tree.children.is_empty()).count();
                let odd_root = rank == 0 && ranks % 2 == 1;
                assert!(inner <= 1 || odd_root, "{ranks} ranks, {rank}: {both:?}");
            }
        }
    }
}
