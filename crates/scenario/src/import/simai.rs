//! SimAI's workload.txt as a job.
//!
//! The first line is a policy and pairs of keys and numbers, the second line the number of layers. Each layer
//! then has 12 words: name; dependency (without meaning); for the forward pass, the gradient of the input and
//! the gradient of the weights each the time, the communication and the bytes; and at the end the time of an
//! update. Times are in ns.
//!
//! * Forward, layer by layer: computation, then communication. Backward, from the last layer: computation of
//!   the input's gradient, its communication, computation of the weights' gradient. The communication of the
//!   weights' gradient runs in parallel with the following steps. After each communication the rank computes
//!   for the time of an update.
//! * Rank `t + tp * (d + dp * p)` has index t in its tensor group, index d in its data group, and stage p. An
//!   expert group has `ep` consecutive places of a data group. Ranks at the same place of their expert groups
//!   hold the same experts.
//! * A word without suffix is a collective of the tensor group, or of the data group for the weights. `_EP`
//!   means the expert group, `_DP_EP` the ranks with the same experts. All are rings, or direct all-to-alls.
//! * deviation: an unknown word is an error; SimAI reads it as no communication. Checkpoints are errors too;
//!   SimAI recomputes activations before their gradients.
//! * Messages between stages are not simulated, as in SimAI: each stage runs all layers.

use apus_jobs::collectives::{Algorithm, CollectiveError, Composer};
use apus_jobs::{Graph, Op};
use apus_units::{Span, shorten, suggestion};

use super::text::{ImportError, MAX_RANKS, number, time, wrong};

/// Policies of SimAI that can be read.
pub(super) const POLICIES: [&str; 2] = ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "MICRO"];
/// Maximum number of operations of a job. Rationale: about 100 B each.
const MAX_OPS: u64 = 20_000_000;
/// Minimum size of a message of the forward pass, as SimAI sets it.
const MIN_FORWARD: u64 = 4096;
/// Number of words of a layer.
const WORDS: usize = 12;
/// Stream of communication in parallel with computations.
const ASIDE: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    Tensors,
    Data,
    Experts,
    Holders,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Communication {
    algorithm: Algorithm,
    among: Among,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    time: Span,
    communication: Option<Communication>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layer {
    forward: Pass,
    input: Pass,
    weights: Pass,
    update: Span,
}

/// Numbers of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    ranks: u32,
    tp: u32,
    dp: u32,
    ep: u32,
}

/// A word with its line.
type Word<'a> = (usize, &'a str);

/// Reads a workload.
///
/// # Errors
/// An error with line and remedy.
pub fn parse_job(text: &str) -> Result<Graph, ImportError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (head_line, head) = lines.next().unwrap_or((1, ""));
    let mut words = head.split_whitespace();
    let policy = words.next().unwrap_or_default();
    if !POLICIES.contains(&policy) {
        let hint = suggestion(policy, POLICIES.into_iter());
        let why =
            format!("unknown policy `{}`{hint}; write {}", shorten(policy), POLICIES.join(" or "));
        return wrong(head_line, why);
    }
    let sizes = Sizes::read(head_line, words)?;
    let mut words = lines.flat_map(|(n, line)| line.split_whitespace().map(move |word| (n, word)));
    let Some((line, count)) = words.next() else {
        return wrong(head_line, "the number of layers must follow in the second line");
    };
    let count: usize = number(line, count, "the number of layers")?;
    if count == 0 {
        return wrong(line, "there are 0 layers, so the job has nothing to do; write at least 1");
    }
    let mut layers = Vec::new();
    let mut last = line;
    while layers.len() < count {
        let row: Vec<Word<'_>> = words.by_ref().take(WORDS).collect();
        last = row.first().map_or(last, |(line, _)| *line);
        let Ok(row) = <[Word<'_>; WORDS]>::try_from(row) else {
            let found = layers.len();
            let why = format!("the file ends in layer {found} of {count}; each has {WORDS} words");
            return wrong(last, why);
        };
        layers.push(Layer::read(&row)?);
    }
    if let Some((line, word)) = words.next() {
        let word = shorten(word);
        return wrong(line, format!("`{word}` follows the {count} layers that line 2 announces"));
    }
    if policy == "MICRO" {
        layers.truncate(1);
        for layer in &mut layers {
            let none = Pass { time: Span::ZERO, communication: None };
            (layer.forward, layer.input) = (none, none);
            (layer.weights.time, layer.update) = (Span::ZERO, Span::ZERO);
        }
    }
    let ops = sizes.ops_of(&layers);
    if ops > MAX_OPS.into() {
        let why = format!(
            "the job has about {ops} operations; at most {MAX_OPS} are possible: use fewer GPUs or layers"
        );
        return wrong(head_line, why);
    }
    compose(&sizes, &layers).map_err(|why| ImportError { line, message: why.to_string() })
}

impl Sizes {
    /// Reads `key: value` and `key value` at any position; other keys are ignored.
    fn read<'a>(line: usize, words: impl Iterator<Item = &'a str>) -> Result<Self, ImportError> {
        let words: Vec<&str> = words.collect();
        let get = |key: &str| -> Result<u32, ImportError> {
            let place = words.iter().position(|word| word.trim_end_matches(':') == key);
            let Some(value) = place.and_then(|place| words.get(place + 1)) else {
                return wrong(line, format!("`{key}: N` is missing"));
            };
            let value: u32 = number(line, value, "a number of ranks")?;
            if value == 0 {
                return wrong(line, format!("`{key}` is 0; it must be at least 1"));
            }
            Ok(value)
        };
        let (ranks, tp) = (get("all_gpus")?, get("model_parallel_NPU_group")?);
        if ranks > MAX_RANKS {
            let why = format!("`all_gpus` is {ranks}; a job has at most {MAX_RANKS} GPUs");
            return wrong(line, why);
        }
        let (pp, ep) = (get("pp")?, get("ep")?);
        for key in ["checkpoints", "checkpoint_initiates"] {
            let place = words.iter().position(|word| word.trim_end_matches(':') == key);
            let count = place.and_then(|place| words.get(place + 1));
            if count.is_some_and(|count| *count != "0") {
                let why = format!(
                    "`{key}` names layers, whose forward pass SimAI repeats before their gradients; this is not simulated: write `{key}: 0`"
                );
                return wrong(line, why);
            }
        }
        let stage = u64::from(tp) * u64::from(pp);
        if !u64::from(ranks).is_multiple_of(stage) {
            return wrong(
                line,
                format!("{ranks} GPUs cannot be divided by {tp} * {pp} (tensors, stages)"),
            );
        }
        let dp = (u64::from(ranks) / stage) as u32;
        if !dp.is_multiple_of(ep) {
            return wrong(line, format!("{dp} data-parallel ranks cannot be divided by ep = {ep}"));
        }
        if ranks < 2 {
            return wrong(line, "a job has at least 2 GPUs");
        }
        Ok(Self { ranks, tp, dp, ep })
    }

    fn size(&self, among: Among) -> u32 {
        match among {
            Among::Tensors => self.tp,
            Among::Data => self.dp,
            Among::Experts => self.ep,
            Among::Holders => self.dp / self.ep,
        }
    }

    /// Returns the groups of the kind `among`.
    fn groups(&self, among: Among) -> Vec<Vec<u32>> {
        let Self { ranks, tp, dp, ep } = *self;
        let (stride, size) = match among {
            Among::Tensors => (1, tp),
            Among::Data => (tp, dp),
            Among::Experts => (tp, ep),
            Among::Holders => (tp * ep, dp / ep),
        };
        let is_first = |rank: &u32| (rank / stride).is_multiple_of(size);
        let group = |first: u32| (0..size).map(|place| first + place * stride).collect();
        (0..ranks).filter(is_first).map(group).collect()
    }

    /// Returns the number of operations of some layers.
    fn ops_of<'a>(&self, layers: impl IntoIterator<Item = &'a Layer>) -> u128 {
        layers.into_iter().map(|layer| u128::from(self.ops(layer))).sum()
    }

    /// Returns the number of operations of a layer.
    fn ops(&self, layer: &Layer) -> u64 {
        let passes = [layer.forward, layer.input, layer.weights];
        let messages = |pass: &Pass| {
            pass.communication.map_or(0, |communication| {
                let peers = u64::from(self.size(communication.among)) - 1;
                if communication.algorithm == Algorithm::RingAllReduce { 2 * peers } else { peers }
            })
        };
        let each = passes.iter().map(|pass| 2 + 2 * messages(pass)).sum::<u64>();
        u64::from(self.ranks) * each
    }
}

impl Layer {
    fn read(row: &[Word<'_>; WORDS]) -> Result<Self, ImportError> {
        let time = |(line, word): Word<'_>| {
            let ns = number(line, word, "a time in nanoseconds")?;
            time(line, ns, Span::from_ns(1), "ns")
        };
        let pass = |at: usize, plain: Among, least: u64| {
            let communication = communication(row[at + 1], row[at + 2], plain, least)?;
            Ok(Pass { time: time(row[at])?, communication })
        };
        Ok(Self {
            forward: pass(2, Among::Tensors, MIN_FORWARD)?,
            input: pass(5, Among::Tensors, 0)?,
            weights: pass(8, Among::Data, 0)?,
            update: time(row[11])?,
        })
    }
}

fn communication(
    (line, word): Word<'_>,
    (size_line, size): Word<'_>,
    plain: Among,
    least: u64,
) -> Result<Option<Communication>, ImportError> {
    let bytes: u64 = number(size_line, size, "a size in bytes")?;
    if word == "NONE" {
        return Ok(None);
    }
    let (name, among) = match word.strip_suffix("_DP_EP") {
        Some(name) => (name, Among::Holders),
        None => word.strip_suffix("_EP").map_or((word, plain), |name| (name, Among::Experts)),
    };
    let algorithm = match name {
        "ALLREDUCE" => Algorithm::RingAllReduce,
        "ALLGATHER" => Algorithm::RingAllGather,
        "REDUCESCATTER" => Algorithm::RingReduceScatter,
        "ALLTOALL" => Algorithm::AllToAllDirect,
        _ => {
            let why = "is no communication; write NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, each plain or \
                       with _EP or _DP_EP";
            return wrong(line, format!("`{}` {why}", shorten(word)));
        }
    };
    Ok((bytes > 0).then_some(Communication { algorithm, among, bytes: bytes.max(least) }))
}

/// A job in progress: the operations for which the next operation of each rank waits.
struct Chains<'a> {
    composer: Composer,
    sizes: &'a Sizes,
    last: Vec<Vec<u32>>,
}

impl Chains<'_> {
    fn compute(&mut self, time: Span) -> Result<(), CollectiveError> {
        if time.is_zero() {
            return Ok(());
        }
        for (rank, last) in (0..).zip(&mut self.last) {
            *last = vec![self.composer.op(rank, Op::compute(time), last)?];
        }
        Ok(())
    }

    /// Adds a communication on stream `cpu`, and the update that follows it.
    fn communicate(&mut self, pass: &Pass, update: Span, cpu: u8) -> Result<(), CollectiveError> {
        let Some(Communication { algorithm, among, bytes }) = pass.communication else {
            return Ok(());
        };
        for group in self.sizes.groups(among).iter().filter(|group| group.len() > 1) {
            let mut after: Vec<Vec<u32>> =
                group.iter().map(|rank| self.last[*rank as usize].clone()).collect();
            // Sizes below one byte per message, which occur only in tests, are rounded up.
            let bytes = bytes.max(group.len() as u64);
            self.composer.collective(group, algorithm, bytes, cpu, &mut after)?;
            for (rank, after) in group.iter().zip(after) {
                self.last[*rank as usize] = after;
            }
        }
        if update.is_zero() {
            return Ok(());
        }
        for (rank, last) in (0..).zip(&mut self.last) {
            *last = vec![self.composer.op(rank, Op::compute(update).on_cpu(cpu), last)?];
        }
        Ok(())
    }
}

fn compose(sizes: &Sizes, layers: &[Layer]) -> Result<Graph, CollectiveError> {
    let last = vec![Vec::new(); sizes.ranks as usize];
    let mut chains = Chains { composer: Composer::new(sizes.ranks), sizes, last };
    for layer in layers {
        chains.compute(layer.forward.time)?;
        chains.communicate(&layer.forward, layer.update, 0)?;
    }
    for layer in layers.iter().rev() {
        chains.compute(layer.input.time)?;
        chains.communicate(&layer.input, layer.update, 0)?;
        chains.compute(layer.weights.time)?;
        let kept = chains.last.clone();
        chains.communicate(&layer.weights, layer.update, ASIDE)?;
        chains.last = kept;
    }
    Ok(chains.composer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000,000 ranks with 3 all-reduces of 2 * 999,999 messages among them in each layer: the operations of 2,000,000
    /// layers are more than 64 bits can count.
    #[test]
    fn the_number_of_operations_does_not_wrap() {
        let sizes = Sizes { ranks: MAX_RANKS, tp: 1, dp: MAX_RANKS, ep: 1 };
        let communication =
            Communication { algorithm: Algorithm::RingAllReduce, among: Among::Data, bytes: 1 };
        let pass = Pass { time: Span::ZERO, communication: Some(communication) };
        let layer = Layer { forward: pass, input: pass, weights: pass, update: Span::ZERO };
        let ops = sizes.ops_of(std::iter::repeat_n(&layer, 2_000_000));
        assert_eq!(ops, 2_000_000 * 1_000_000 * 3 * (2 + 4 * 999_999));
        assert!(ops > u64::MAX.into());
    }
}
