//! Broadcasts from rank 0.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::share;
use super::weave::Weave;

/// Step k: every rank below 2^k sends all data to rank r + 2^k.
pub(super) fn binomial(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let tag = weave.tags(1);
    for rank in 0..ranks {
        let mut ends = weave.before(rank).to_vec();
        if rank > 0 {
            let from = rank ^ 1 << rank.ilog2();
            ends = Vec::from([weave.receive(rank, from, bytes, tag)?]);
        }
        let first = if rank == 0 { 0 } else { rank.ilog2() + 1 };
        let mut sends = Vec::new();
        for to in (first..32).map_while(|k| rank.checked_add(1 << k)).take_while(|to| *to < ranks) {
            sends.push(weave.send(rank, to, bytes, tag, &ends)?);
        }
        // Rank 0 receives nothing, so its part ends with its sends.
        weave.set_before(rank, if rank == 0 { &sends } else { &ends });
    }
    Ok(())
}

/// Rank r passes a chunk on to rank r + 1 when it has received the chunk.
pub(super) fn chain(weave: &mut Weave, bytes: u64, chunks: u32) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let tag = weave.tags(chunks);
    for rank in 0..ranks {
        let before = weave.before(rank).to_vec();
        let (mut received, mut sent) = (Vec::new(), Vec::new());
        for chunk in 0..chunks {
            let size = share(bytes, chunk, chunks);
            let after = if rank == 0 {
                before.clone()
            } else {
                received.push(weave.receive(rank, rank - 1, size, tag + chunk)?);
                received[chunk as usize..].to_vec()
            };
            if rank + 1 < ranks {
                sent.push(weave.send(rank, rank + 1, size, tag + chunk, &after)?);
            }
        }
        weave.set_before(rank, if rank == 0 { &sent } else { &received });
    }
    Ok(())
}
