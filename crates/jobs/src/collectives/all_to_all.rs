//! All-to-all: every rank has a block for every other rank.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::share;
use super::weave::Weave;

/// Returns the size of the block for the rank at this distance.
fn block(weave: &Weave, bytes: u64, distance: u32) -> u64 {
    share(bytes, distance, weave.ranks())
}

pub(super) fn direct(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    window(weave, bytes, u32::MAX)
}

/// Step k: to rank r + k, from rank r - k.
pub(super) fn pairwise(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let tag = weave.tags(1);
    for rank in 0..ranks {
        let mut after = weave.before(rank).to_vec();
        let mut received = Vec::new();
        for k in 1..ranks {
            let size = block(weave, bytes, k);
            weave.send(rank, (rank + k) % ranks, size, tag, &after)?;
            let block = weave.receive(rank, (rank + ranks - k) % ranks, size, tag)?;
            after = Vec::from([block]);
            received.push(block);
        }
        weave.set_before(rank, &received);
    }
    Ok(())
}

/// The i-th send follows the end of the (i - `window`)-th send.
pub(super) fn window(weave: &mut Weave, bytes: u64, window: u32) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let tag = weave.tags(1);
    for rank in 0..ranks {
        let before = weave.before(rank).to_vec();
        let mut received = Vec::new();
        let mut sent: Vec<u32> = Vec::new();
        for k in 1..ranks {
            let size = block(weave, bytes, k);
            let opener = (k - 1).checked_sub(window).and_then(|i| sent.get(i as usize).copied());
            let to = (rank + k) % ranks;
            let send = match opener {
                Some(opener) => weave.send(rank, to, size, tag, &[opener])?,
                None => weave.send(rank, to, size, tag, &before)?,
            };
            sent.push(send);
            received.push(weave.receive(rank, (rank + ranks - k) % ranks, size, tag)?);
        }
        weave.set_before(rank, &received);
    }
    Ok(())
}

/// Returns the bytes that a rank sends in step k of Bruck's algorithm.
pub(super) fn bruck_step(bytes: u64, ranks: u32, k: u32) -> u64 {
    let distances = (1..ranks).filter(|distance| distance >> k & 1 == 1);
    distances.map(|distance| share(bytes, distance, ranks)).sum()
}

/// Step k: to rank r + 2^k, all blocks whose distance has bit k.
pub(super) fn bruck(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let steps = (ranks - 1).ilog2() + 1;
    let tag = weave.tags(steps);
    let sizes: Vec<u64> = (0..steps).map(|k| bruck_step(bytes, ranks, k)).collect();
    for rank in 0..ranks {
        // A message contains blocks of all earlier receives, which may end in another order.
        let mut after = weave.before(rank).to_vec();
        for k in 0..steps {
            let (size, tag, distance) = (sizes[k as usize], tag + k, 1 << k);
            weave.send(rank, (rank + distance) % ranks, size, tag, &after)?;
            after.push(weave.receive(rank, (rank + ranks - distance) % ranks, size, tag)?);
        }
        weave.set_before(rank, &after);
    }
    Ok(())
}
