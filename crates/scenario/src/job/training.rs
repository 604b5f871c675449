//! `kind = "training"`: steps of a transformer.

use apus_jobs::Graph;
use apus_jobs::collectives::training::{MODELS, Model, Training};
use apus_units::Bytes;

use super::collective::all_reduce;
use crate::declared::{Key, Kind, key, words_of};
use crate::section::Section;

/// The models with their names.
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
        "The transformer. The sizes below replace those of the model",
    )
    .or(NAMED[0].0),
    size(
        "layers",
        "Number of layers. Default for this size, and for all sizes down to `experts_per_token`: that of the model",
    ),
    size("hidden", "Hidden size: number of elements of an activation per token"),
    size("feed_forward", "Inner size of a feed-forward network"),
    key("vocabulary", Kind::Count, "Number of tokens in the vocabulary"),
    size("sequence", "Number of tokens of a sequence"),
    size(
        "experts",
        "Number of experts: feed-forward networks of a layer, of which a token passes some",
    ),
    size("experts_per_token", "Number of experts that a token passes"),
];

/// Keys of the step.
pub(crate) const STEP_KEYS: [Key; 9] = [
    size("tp", "Tensor parallelism: number of consecutive ranks that divide each layer").or("1"),
    size("pp", "Pipeline parallelism: number of stages of layers").or("1"),
    size("dp", "Data parallelism: number of copies of the model. Default: as many as the hosts have room for"),
    size("ep", "Expert parallelism: number of copies of the model that divide the experts").or("1"),
    size("micro_batch", "Number of sequences of a micro-batch").or("1"),
    size("micro_batches", "Number of micro-batches of each copy of the model per step").or("8"),
    key("element", Kind::Size, "Size of one element of an activation or a gradient. The default is that of bfloat16")
        .at_least(1)
        .or("2B"),
    key(
        "tflops",
        Kind::Number,
        "Floating-point operations of a rank, in units of 10^12 per second. deviation: the default is about 40 % of \
         the 989 of an H100 in bfloat16; this is the utilisation in the training of Llama 3 (Dubey et al., arXiv \
         2407.21783, Table 4)",
    )
    .above_0_to(100_000.0)
    .or("400"),
    key(
        "overlap",
        Kind::Flag,
        "`true`: the gradients of a layer are reduced in parallel with the computations of earlier layers. `false`: all gradients are reduced after the computations",
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
