//! A pipeline of stages (GPipe): all micro-batches forward, then all backward.

use alloc::vec::Vec;

use apus_units::Span;

use crate::graph::GraphError;

use super::weave::Weave;

pub(super) fn steps(
    weave: &mut Weave,
    bytes: u64,
    micro_batches: u32,
    forward: Span,
    backward: Span,
) -> Result<(), GraphError> {
    let stages = weave.ranks();
    let tag = weave.tags(2);
    for stage in 0..stages {
        let mut last = weave.before(stage).to_vec();
        for (time, tag, is_forward) in [(forward, tag, true), (backward, tag + 1, false)] {
            let earlier = if is_forward { stage.checked_sub(1) } else { Some(stage + 1) };
            let later = if is_forward { Some(stage + 1) } else { stage.checked_sub(1) };
            for _ in 0..micro_batches {
                if let Some(earlier) = earlier.filter(|earlier| *earlier < stages) {
                    last.push(weave.receive(stage, earlier, bytes, tag)?);
                }
                last = Vec::from([weave.compute(stage, time, &last)?]);
                if let Some(later) = later.filter(|later| *later < stages) {
                    weave.send(stage, later, bytes, tag, &last)?;
                }
            }
        }
        weave.set_before(stage, &last);
    }
    Ok(())
}
