//! All-reduce by recursive halving and doubling (Rabenseifner), for any number of ranks.

use alloc::vec::Vec;

use crate::graph::GraphError;

use super::weave::Weave;

pub(super) fn all_reduce(weave: &mut Weave, bytes: u64) -> Result<(), GraphError> {
    let ranks = weave.ranks();
    let steps = ranks.ilog2();
    let paired = 1 << steps;
    let tag = weave.tags(2 * steps + 2);
    // The ranks beyond the power of two send all their data.
    for rank in paired..ranks {
        let after = weave.before(rank).to_vec();
        weave.send(rank, rank - paired, bytes, tag, &after)?;
        let given = weave.receive(rank - paired, rank, bytes, tag)?;
        weave.set_before(rank - paired, &[given]);
    }
    for rank in 0..paired {
        // A message contains the data of all earlier receives, which may end in another order.
        let mut after = weave.before(rank).to_vec();
        // The bytes `from..to` that the rank reduces, and the sizes of the halves that it has sent.
        let (mut from, mut to) = (0, bytes);
        let mut given = Vec::new();
        for k in 0..steps {
            let middle = from + (to - from) / 2;
            let (lower, upper) = (middle - from, to - middle);
            let keeps_lower = rank & 1 << k == 0;
            let (mine, others) = if keeps_lower { (lower, upper) } else { (upper, lower) };
            let (peer, tag) = (rank ^ 1 << k, tag + 1 + k);
            weave.send(rank, peer, others, tag, &after)?;
            after.push(weave.receive(rank, peer, mine, tag)?);
            (from, to) = if keeps_lower { (from, middle) } else { (middle, to) };
            given.push(others);
        }
        for k in (0..steps).rev() {
            let (peer, tag) = (rank ^ 1 << k, tag + 1 + 2 * steps - 1 - k);
            weave.send(rank, peer, to - from, tag, &after)?;
            let back = given[k as usize];
            after.push(weave.receive(rank, peer, back, tag)?);
            if rank & 1 << k == 0 {
                to += back;
            } else {
                from -= back;
            }
        }
        weave.set_before(rank, &after);
    }
    let tag = tag + 1 + 2 * steps;
    for rank in paired..ranks {
        let after = weave.before(rank - paired).to_vec();
        weave.send(rank - paired, rank, bytes, tag, &after)?;
        let got = weave.receive(rank, rank - paired, bytes, tag)?;
        weave.set_before(rank, &[got]);
    }
    Ok(())
}
