//! Collectives: `kind = "all-reduce"` and so on.

use apus_jobs::collectives::{Algorithm, Collective};
use apus_units::Bytes;

use crate::section::Section;

/// Reads the collective of a kind of workload.
pub(super) fn read(
    section: &Section<'_>,
    kind: &str,
    room: u32,
    node_ranks: u32,
) -> Option<Collective> {
    let algorithm = algorithm(section, kind, node_ranks);
    let size: Option<Bytes> = section.require("size");
    let ranks: u32 = section.get_or("ranks", room);
    let mut collective = Collective::new(algorithm?, ranks, size?.get());
    if kind != "pipeline" {
        collective.channels = section.get_or_default("channels");
        collective.compute = section.get_or_default("compute");
    }
    collective.iterations = section.get_or_default("iterations");
    Some(collective)
}

fn algorithm(section: &Section<'_>, kind: &str, node_ranks: u32) -> Option<Algorithm> {
    match kind {
        "all-reduce" => all_reduce(section, node_ranks),
        "reduce-scatter" => Some(Algorithm::RingReduceScatter),
        "all-gather" => Some(Algorithm::RingAllGather),
        "broadcast" => {
            let is_chain = section.word("pattern")? == "chain";
            let chunks = chunks(section, is_chain);
            Some(chunks.map_or(Algorithm::BroadcastBinomial, |chunks| Algorithm::BroadcastChain {
                chunks,
            }))
        }
        "pipeline" => Some(Algorithm::Pipeline {
            micro_batches: section.get_or_default("micro_batches"),
            forward: section.require("forward")?,
            backward: section.require("backward")?,
        }),
        _ => {
            let pattern = section.word("pattern")?;
            let group = group(section, pattern == "rail", node_ranks);
            let window: Option<u32> = match pattern {
                "window" => Some(section.get_or_default("window")),
                _ => {
                    section.no_effect("window", "without the pattern `window`");
                    None
                }
            };
            Some(match pattern {
                "direct" => Algorithm::AllToAllDirect,
                "pairwise" => Algorithm::AllToAllPairwise,
                "window" => Algorithm::AllToAllWindow { window: window? },
                "bruck" => Algorithm::AllToAllBruck,
                _ => Algorithm::AllToAllRail { group: group? },
            })
        }
    }
}

/// Reads the algorithm of an all-reduce.
pub(super) fn all_reduce(section: &Section<'_>, node_ranks: u32) -> Option<Algorithm> {
    let pattern = section.word("pattern")?;
    let chunks = chunks(section, pattern == "double-binary-tree");
    let group = group(section, pattern == "hierarchical", node_ranks);
    Some(match pattern {
        "ring" => Algorithm::RingAllReduce,
        "halving-doubling" => Algorithm::HalvingDoubling,
        "double-binary-tree" => Algorithm::DoubleBinaryTree { chunks: chunks? },
        _ => Algorithm::Hierarchical { group: group? },
    })
}

fn chunks(section: &Section<'_>, is_used: bool) -> Option<u32> {
    if !is_used {
        section.no_effect("chunks", "on this pattern, which sends whole blocks");
        return None;
    }
    Some(section.get_or_default("chunks"))
}

fn group(section: &Section<'_>, is_used: bool, node_ranks: u32) -> Option<u32> {
    if !is_used {
        section.no_effect("group", "on this pattern, which knows no nodes");
        return None;
    }
    if section.node("group").is_none() && node_ranks < 2 {
        let what = "the number of consecutive ranks of a node, and has a default only if all hosts have as many ranks, at least 2, \
                    and consecutive ones";
        section.missing("group", what);
        return None;
    }
    Some(section.get_or("group", node_ranks))
}
