//! `kind = "training"`: steps of a transformer.

use apus_jobs::Graph;
use apus_jobs::collectives::training::{MODELS, Model, Training};
use apus_units::Bytes;

use super::collective::all_reduce;
use crate::declared::{Key, Kind, key, words_of};
use crate::section::Section;

/// Names of the models with the models.
const NAMED: [(&str, Model); MODELS.len()] = {
    let mut named = [("", MODELS[0]); MODELS.len()];
    let mut index = 0;
    while index < MODELS.len() {
        named[index] = (MODELS[index].name, MODELS[index]);
        index += 1;
    }
    named
};

const fn size(name: &'static str, doc: &'static str) -> Key {
    key(name, Kind::Count, doc).at_least(1)
}

/// Keys of the model.
pub(crate) const MODEL_KEYS: [Key; 8] = [
    key(
        "model",
        Kind::Word(&words_of(&NAMED)),
        "The transformer; the sizes below replace those of the model",
    )
    .or(NAMED[0].0),
    size("layers", "Layers; of the model if not given, as all sizes down to `experts_per_token`"),
    size("hidden", "Size of an activation"),
    size("feed_forward", "Size within a feed-forward network"),
    key("vocabulary", Kind::Count, "Words of the vocabulary"),
    size("sequence", "Tokens of a sequence"),
    size("experts", "Feed-forward networks of a layer, of which a token passes some"),
    size("experts_per_token", "How many of these a token passes, at most all"),
];

/// Keys of the step.
pub(crate) const STEP_KEYS: [Key; 9] = [
    size("tp", "Tensor parallelism: ranks that divide each layer, consecutive ones").or("1"),
    size("pp", "Pipeline parallelism: stages of layers").or("1"),
    size("dp", "Data parallelism: copies of the model; as many as there is room for if not given"),
    size("ep", "Expert parallelism: copies of the model that divide the experts").or("1"),
    size("micro_batch", "Sequences of a micro-batch").or("1"),
    size("micro_batches", "Micro-batches of a copy of the model per step").or("8"),
    key("element", Kind::Size, "Size of an activation and of a gradient; bfloat16 by default")
        .at_least(1)
        .or("2B"),
    key(
        "tflops",
        Kind::Number,
        "Floating point operations of a rank, 10^12 per second. deviation: the default is about 40 % of an H100's 989 in \
         bfloat16, the utilisation of Llama 3's training (Dubey et al., arXiv 2407.21783, Table 4)",
    )
    .above_0_to(100_000.0)
    .or("400"),
    key(
        "overlap",
        Kind::Flag,
        "The gradients of a layer are reduced beside the computations of earlier layers",
    )
    .or("true"),
];

/// Reads the steps.
pub(super) fn read(section: &Section<'_>, room: u32) -> Option<Graph> {
    let model = section.meaning("model", &NAMED);
    let gradients = all_reduce(section, 1);
    let (tp, pp) = (section.get_or_default::<u32>("tp"), section.get_or_default::<u32>("pp"));
    let copies = room / tp.saturating_mul(pp).max(1);
    let model = model?;
    let experts = section.get_or("experts", model.experts);
    let model = Model {
        layers: section.get_or("layers", model.layers),
        hidden: section.get_or("hidden", model.hidden),
        feed_forward: section.get_or("feed_forward", model.feed_forward),
        vocabulary: section.get_or("vocabulary", model.vocabulary),
        sequence: section.get_or("sequence", model.sequence),
        experts,
        chosen: section.get_or("experts_per_token", model.chosen.min(experts)),
        ..model
    };
    let element: Bytes = section.get_or_default("element");
    let training = Training {
        model,
        tp,
        pp,
        dp: section.get_or("dp", copies.max(1)),
        ep: section.get_or_default("ep"),
        micro_batch: section.get_or_default("micro_batch"),
        micro_batches: section.get_or_default("micro_batches"),
        element: u32::try_from(element.get()).unwrap_or(u32::MAX),
        flops: section.get_or_default::<f64>("tflops") * 1e12,
        gradients: gradients?,
        overlap: section.get_or_default("overlap"),
        iterations: section.get_or_default("iterations"),
    };
    let problem =
        |error| section.problem("kind", format_args!("\"training\" is impossible: {error}"));
    training.graph().map_err(problem).ok()
}
