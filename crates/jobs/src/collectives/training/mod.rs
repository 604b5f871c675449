//! A training step of a transformer by tensor, pipeline, data and expert parallelism.
//!
//! The model is that of Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
//! Using Megatron-LM", SC 2021:
//! * Rank `t + tp * (d + dp * p)` has place t of its tensor group, place d of its data group and stage p of the
//!   pipeline, so a tensor group consists of consecutive ranks. An expert group has `ep` consecutive places of a data
//!   group.
//! * A stage has `layers / pp` layers. Micro-batches follow the schedule 1F1B with a flush (§2.2.1): stage p first runs
//!   `pp - 1 - p` of them forward, then alternates between one forward and one backward.
//! * A layer computes its attention and its feed-forward network. After each, forward and backward, the tensor group
//!   reduces b * s * h elements (§2.3), in a ring. Between stages each rank sends b * s * h elements (§3.2), without
//!   the scatter/gather optimisation of §4.1.
//! * With experts, tokens go to their experts and back by two direct all-to-alls per layer and direction, of
//!   b * s * h * k / tp elements (Fedus et al., "Switch Transformers", JMLR 2022, §2 and §5).
//! * When the last micro-batch has passed a layer backward, the data group reduces the gradients of the layer, either in
//!   parallel with the computations that follow or after all of them. Parameters of experts are reduced among the ranks
//!   that hold the same experts. The embedding belongs to the first stage, the output layer to the last one.
//! * Forward takes 2 FLOP per parameter and token, and 4 b s^2 h for the attention; backward takes twice as long
//!   (§5.1, without activation recomputation). All other work takes no time: norms, optimiser, embedding.

mod model;
mod sizes;

use alloc::string::String;
use alloc::vec::Vec;

use apus_units::Span;

use super::weave::Weave;
use super::{Algorithm, Collective, CollectiveError, MAX_OPS};
use crate::graph::Graph;
pub use model::{MODELS, Model};
use sizes::checked;

/// Training steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// The model.
    pub model: Model,
    /// Number of ranks of a tensor group.
    pub tp: u32,
    /// Number of stages of the pipeline.
    pub pp: u32,
    /// Number of ranks of a data group.
    pub dp: u32,
    /// Number of ranks of an expert group. It divides `dp` and the number of experts; a token passes at least
    /// one expert.
    pub ep: u32,
    /// Number of sequences of a micro-batch (b).
    pub micro_batch: u32,
    /// Number of micro-batches of a data-parallel rank per step.
    pub micro_batches: u32,
    /// Bytes of an activation and of a gradient.
    pub element: u32,
    /// Floating point operations of a rank per second, greater than 0.
    pub flops: f64,
    /// Algorithm of the all-reduce of gradients.
    pub gradients: Algorithm,
    /// Whether gradients are reduced in parallel with computations.
    pub overlap: bool,
    /// Number of steps.
    pub iterations: u32,
}

/// Stream of gradients that are reduced in parallel with computations.
const ASIDE: u8 = 1;

impl Training {
    /// Returns the number of ranks; `None` if it is too large.
    #[must_use]
    pub fn ranks(&self) -> Option<u32> {
        self.tp.checked_mul(self.pp)?.checked_mul(self.dp)
    }

    /// Returns the graph of the training steps.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn graph(&self) -> Result<Graph, CollectiveError> {
        let ranks = self.check()?;
        let mut weave = Weave::new(ranks);
        for iteration in 0..self.iterations {
            weave.begin_iteration(iteration, Span::ZERO)?;
            let step = Step { of: self, weave: &mut weave, sends: [0, 0] };
            step.weave()?;
        }
        Ok(weave.finish()?)
    }

    fn check(&self) -> Result<u32, CollectiveError> {
        let bad = |what, value: u32, range: &str| {
            let (value, range) = (u64::from(value), String::from(range));
            Err(CollectiveError::Range { what, value, range })
        };
        let Self { model, tp, pp, dp, ep, .. } = *self;
        let positive = [
            ("tp", tp),
            ("pp", pp),
            ("dp", dp),
            ("ep", ep),
            ("micro_batch", self.micro_batch),
            ("micro_batches", self.micro_batches),
            ("element", self.element),
            ("iterations", self.iterations),
            ("layers", model.layers),
            ("experts", model.experts),
            ("heads_per_key", model.heads_per_key),
        ];
        if let Some((what, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return bad(what, 0, "at least 1");
        }
        if !model.layers.is_multiple_of(pp) {
            return bad("pp", pp, "a divisor of the number of layers");
        }
        if !model.hidden.is_multiple_of(tp) {
            return bad("tp", tp, "a divisor of the hidden size");
        }
        if !dp.is_multiple_of(ep) || !model.experts.is_multiple_of(ep) {
            return bad("ep", ep, "a divisor of dp and of the number of experts");
        }
        if !(1..=model.experts).contains(&model.chosen) {
            let range = alloc::format!("from 1 to the number of experts, {}", model.experts);
            return bad("experts_per_token", model.chosen, &range);
        }
        if self.flops.is_nan() || self.flops <= 0.0 {
            return bad("flops", 0, "above 0");
        }
        if self.gradients.name() != "all-reduce" {
            return bad("pattern", 0, "an all-reduce");
        }
        for ranks in [dp, dp / ep].into_iter().filter(|ranks| *ranks > 1) {
            self.gradients.check(ranks)?;
        }
        self.check_sizes()?;
        let (tensors, experts) = (u64::from(tp - 1), u64::from(ep - 1));
        let batch = u64::from(model.layers / pp) * (8 + 16 * tensors + 8 * experts) + 4;
        let step = u64::from(self.micro_batches).saturating_mul(batch);
        // Messages for the gradients of parameters and of experts. Each follows an operation that waits for
        // all previous operations.
        let messages = [dp, dp / ep].map(|ranks| match ranks {
            1 => 0,
            ranks => self.gradients.messages(ranks).saturating_mul(2).saturating_add(1),
        });
        let reduced = messages[0].saturating_add(messages[1]);
        let reduced = u64::from(model.layers / pp).saturating_mul(reduced);
        let all = step.saturating_add(reduced).saturating_mul(u64::from(self.iterations));
        let all = all.saturating_mul(u64::from(self.ranks().unwrap_or(u32::MAX)));
        if all > MAX_OPS {
            let range = alloc::format!("at most {MAX_OPS}");
            return Err(CollectiveError::Range { what: "operations", value: all, range });
        }
        match self.ranks() {
            Some(ranks) if ranks >= 2 => Ok(ranks),
            Some(ranks) => bad("ranks", ranks, "at least 2"),
            None => bad("ranks", u32::MAX, "below 2^32"),
        }
    }
}

/// Returns the micro-batches of a stage in the order of 1F1B: whether each is forward, and its number.
fn schedule(stages: u32, stage: u32, micro_batches: u32) -> Vec<(bool, u32)> {
    let first = (stages - 1 - stage).min(micro_batches);
    let mut all: Vec<_> = (0..first).map(|batch| (true, batch)).collect();
    for batch in 0..micro_batches {
        if first + batch < micro_batches {
            all.push((true, first + batch));
        }
        all.push((false, batch));
    }
    all
}

/// A step under construction.
struct Step<'a> {
    of: &'a Training,
    weave: &'a mut Weave,
    /// First tags of activations and of their gradients.
    sends: [u32; 2],
}

type Added = Result<(), CollectiveError>;

impl Step<'_> {
    fn weave(mut self) -> Added {
        let Training { pp, micro_batches, .. } = *self.of;
        // Starts the chains of all ranks.
        self.weave.begin_channel(0);
        self.sends = [(); 2].map(|()| self.weave.tags(micro_batches));
        let mut parts = Vec::new();
        for _ in 1..pp {
            for _ in 0..micro_batches {
                let bytes = checked(self.of.activations());
                let ranks = 2 * self.of.tp * self.of.dp;
                let forward = self.weave.add_part("activations", bytes, ranks);
                let backward = self.weave.add_part("activation-gradients", bytes, ranks);
                parts.push([forward, backward]);
            }
        }
        for stage in 0..pp {
            for (is_forward, batch) in schedule(pp, stage, micro_batches) {
                let passes = |boundary: u32| {
                    let part = parts.get((boundary * micro_batches + batch) as usize)?;
                    Some(part[usize::from(!is_forward)])
                };
                let (before, after) = (stage.checked_sub(1).and_then(passes), passes(stage));
                let after = after.filter(|_| stage + 1 < pp);
                let (from, to) = if is_forward { (before, after) } else { (after, before) };
                self.batch(stage, is_forward, batch, from, to)?;
            }
            if !self.of.overlap {
                let layers = self.of.model.layers / pp;
                for layer in (0..layers).rev() {
                    self.gradients(stage, layer)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the ranks of a stage.
    fn stage(&self, stage: u32) -> Vec<u32> {
        let ranks = self.of.tp * self.of.dp;
        (stage * ranks..(stage + 1) * ranks).collect()
    }

    /// Adds a micro-batch in a stage. `from` and `to` are the parts of the messages for which it waits and
    /// which it sends.
    fn batch(
        &mut self,
        stage: u32,
        is_forward: bool,
        batch: u32,
        from: Option<u32>,
        to: Option<u32>,
    ) -> Added {
        let Training { pp, micro_batches, model, overlap, .. } = *self.of;
        let tag = self.sends[usize::from(!is_forward)] + batch;
        let lanes = self.of.tp * self.of.dp;
        // The chains of this stage and of its neighbour have the same place.
        let neighbour = |is_next: bool| if is_next { stage + 1 } else { stage.wrapping_sub(1) };
        let both = |step: &Self, other: u32| [step.stage(stage), step.stage(other)].concat();
        if let Some(part) = from {
            let pairs = both(self, neighbour(!is_forward));
            let bytes = checked(self.of.activations());
            self.weave.within(&pairs, |weave| {
                for lane in 0..lanes {
                    weave.set_part_of(lane, Some(part));
                    let received = weave.receive(lane, lanes + lane, bytes, tag)?;
                    weave.set_part_of(lane, None);
                    weave.also_after(lane, received);
                }
                Added::Ok(())
            })?;
        }
        let layers = model.layers / pp;
        let ordered: Vec<u32> =
            if is_forward { (0..layers).collect() } else { (0..layers).rev().collect() };
        let is_last = !is_forward && batch + 1 == micro_batches;
        let output = stage + 1 == pp;
        let scale = |span: Span| if is_forward { span } else { span.saturating_add(span) };
        if output && !is_forward {
            self.compute(stage, scale(self.of.output_time()))?;
        }
        for layer in ordered {
            if is_forward {
                self.attention(stage, scale(self.of.attention_time()))?;
                self.network(stage, scale(self.of.network_time()))?;
            } else {
                self.network(stage, scale(self.of.network_time()))?;
                self.attention(stage, scale(self.of.attention_time()))?;
            }
            if is_last && overlap {
                self.gradients(stage, layer)?;
            }
        }
        if output && is_forward {
            self.compute(stage, self.of.output_time())?;
        }
        let Some(part) = to else { return Ok(()) };
        let pairs = both(self, neighbour(is_forward));
        let bytes = checked(self.of.activations());
        self.weave.within(&pairs, |weave| {
            for lane in 0..lanes {
                let after = weave.before(lane).to_vec();
                weave.set_part_of(lane, Some(part));
                weave.send(lane, lanes + lane, bytes, tag, &after)?;
                weave.set_part_of(lane, None);
            }
            Ok(())
        })
    }

    fn compute(&mut self, stage: u32, time: Span) -> Added {
        let ranks = self.stage(stage);
        self.weave.within(&ranks, |weave| {
            (0..weave.ranks()).try_for_each(|place| weave.then_compute(place, time))
        })?;
        Ok(())
    }

    fn attention(&mut self, stage: u32, time: Span) -> Added {
        self.compute(stage, time)?;
        self.reduce_tensors(stage)
    }

    fn network(&mut self, stage: u32, time: Span) -> Added {
        self.exchange(stage, "dispatch")?;
        self.compute(stage, time)?;
        self.reduce_tensors(stage)?;
        self.exchange(stage, "combine")
    }

    /// Adds a collective in a group.
    fn collective(
        &mut self,
        name: &'static str,
        group: &[u32],
        algorithm: Algorithm,
        bytes: u64,
    ) -> Added {
        let ranks = group.len() as u32;
        if ranks < 2 {
            return Ok(());
        }
        Collective::new(algorithm, ranks, bytes).check()?;
        self.weave.within(group, |weave| weave.collective(name, algorithm, bytes))
    }

    fn reduce_tensors(&mut self, stage: u32) -> Added {
        let bytes = checked(self.of.activations());
        for group in self.stage(stage).chunks(self.of.tp as usize) {
            self.collective("tensors", group, Algorithm::RingAllReduce, bytes)?;
        }
        Ok(())
    }

    /// Adds the transfer of tokens to their experts, or back.
    fn exchange(&mut self, stage: u32, name: &'static str) -> Added {
        let Training { tp, dp, ep, .. } = *self.of;
        if ep < 2 {
            return Ok(());
        }
        let bytes = checked(self.of.exchanged());
        let first = stage * tp * dp;
        for block in (0..dp).step_by(ep as usize) {
            for place in 0..tp {
                let group: Vec<u32> = (block..block + ep).map(|d| first + place + tp * d).collect();
                self.collective(name, &group, Algorithm::AllToAllDirect, bytes)?;
            }
        }
        Ok(())
    }

    /// Adds the reduction of the gradients of a layer.
    fn gradients(&mut self, stage: u32, layer: u32) -> Added {
        let Training { pp, tp, dp, ep, model, gradients, overlap, .. } = *self.of;
        let bytes = |parameters: u128| checked(self.of.bytes_of(parameters));
        let layers = model.layers / pp;
        let (is_first, is_last) =
            (stage == 0 && layer == 0, stage + 1 == pp && layer + 1 == layers);
        let shares = model.tied && pp == 1;
        let embeddings = u32::from(is_first) + u32::from(is_last && !shares);
        let (dense, experts) = (self.of.dense(embeddings), self.of.experts());
        let first = stage * tp * dp;
        let rank = |place: u32, d: u32| first + place + tp * d;
        let stream = if overlap { ASIDE } else { 0 };
        let ranks = self.stage(stage);
        let mut groups: Vec<(&'static str, Vec<u32>, u64)> = Vec::new();
        for place in 0..tp {
            groups.push(("gradients", (0..dp).map(|d| rank(place, d)).collect(), bytes(dense)));
            for expert in (0..ep).filter(|_| experts > 0) {
                let holders = (expert..dp).step_by(ep as usize).map(|d| rank(place, d));
                groups.push(("expert-gradients", holders.collect(), bytes(experts)));
            }
        }
        let weave = |step: &mut Self| {
            for (name, group, bytes) in &groups {
                step.collective(name, group, gradients, *bytes)?;
            }
            Added::Ok(())
        };
        if !overlap {
            return weave(self);
        }
        let kept = self.weave.leave(&ranks, stream);
        let added = weave(self);
        self.weave.come_back(&ranks, kept);
        added
    }
}
