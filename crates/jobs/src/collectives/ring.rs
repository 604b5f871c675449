//! Collectives in a ring: reduce-scatter, all-gather and all-reduce.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::share;
use super::weave::Weave;

/// Adds N - 1 steps: in step k, place p sends block `first(p) - k` to the next place.
fn steps(weave: &mut Weave, bytes: u64, first: impl Fn(u32) -> u32) -> Result<(), GraphError> {
    let n = weave.ranks();
    let tag = weave.tags(n - 1);
    let block = |place: u32, k: u32| share(bytes, (first(place) + n - k) % n, n);
    for place in 0..n {
        let (before, next) = ((place + n - 1) % n, (place + 1) % n);
        let mut received = Vec::new();
        let mut after = weave.before(place).to_vec();
        for k in 0..n - 1 {
            weave.send(place, next, block(place, k), tag + k, &after)?;
            let block = weave.receive(place, before, block(before, k), tag + k)?;
            after = Vec::from([block]);
            received.push(block);
        }
        // Blocks may arrive in another order, over several paths or from ranks that are late.
        weave.set_before(place, &received);
    }
    Ok(())
}

/// Step k: block p - 1 - k to the next place, so that place p ends with block p.
pub(super) fn reduce_scatter(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    let n = weave.ranks();
    steps(weave, bytes, |place| (place + n - 1) % n)
}

/// Step k: block p - k to the next place; place p begins with block p.
pub(super) fn all_gather(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    steps(weave, bytes, |place| place)
}

pub(super) fn all_reduce(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    reduce_scatter(weave, bytes)?;
    all_gather(weave, bytes)
}
