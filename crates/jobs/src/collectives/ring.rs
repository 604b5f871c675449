//! Collectives in a ring: reduce-scatter, all-gather and all-reduce.

use crate::graph::GraphError;

use super::share;
use super::weave::Weave;

/// N - 1 steps in which the member at place p sends block `first(p) - k` in step k to the next place.
fn steps(
    weave: &mut Weave,
    members: &[u32],
    bytes: u64,
    first: impl Fn(u32) -> u32,
) -> Result<(), GraphError> {
    let n = members.len() as u32;
    let tag = weave.tags(n - 1);
    let block = |place: u32, k: u32| share(bytes, (first(place) + n - k) % n, n);
    for place in 0..n {
        let (before, next) = ((place + n - 1) % n, (place + 1) % n);
        let [before_rank, rank, next_rank] = [before, place, next].map(|p| members[p as usize]);
        let mut last = None;
        for k in 0..n - 1 {
            let size = block(place, k);
            match last {
                Some(received) => weave.send(rank, next_rank, size, tag + k, &[received])?,
                None => {
                    let after = weave.before(rank).to_vec();
                    weave.send(rank, next_rank, size, tag + k, &after)?
                }
            };
            last = Some(weave.receive(rank, before_rank, block(before, k), tag + k)?);
        }
        weave.set_before(rank, last.as_slice());
    }
    Ok(())
}

/// Step k: block p - 1 - k to the next place, so that place p ends with block p.
pub(super) fn reduce_scatter(
    weave: &mut Weave,
    members: &[u32],
    bytes: u64,
) -> Result<(), GraphError> {
    let n = members.len() as u32;
    steps(weave, members, bytes, |place| (place + n - 1) % n)
}

/// Step k: block p - k to the next place; place p begins with block p.
pub(super) fn all_gather(weave: &mut Weave, members: &[u32], bytes: u64) -> Result<(), GraphError> {
    steps(weave, members, bytes, |place| place)
}

pub(super) fn all_reduce(weave: &mut Weave, members: &[u32], bytes: u64) -> Result<(), GraphError> {
    reduce_scatter(weave, members, bytes)?;
    all_gather(weave, members, bytes)
}
