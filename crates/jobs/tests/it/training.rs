//! Training steps: parameters of models, the time of the pipeline's schedule, and the bytes that each kind of
//! parallelism sends.

use apus_jobs::collectives::Algorithm;
use apus_jobs::collectives::training::{MODELS, Model, Training};
use apus_jobs::ideal::{Cost, Limits, run};
use apus_jobs::{Action, Done, Graph};
use apus_units::Span;

/// Two square matrices of attention per key, 8 h^2 in the network: 12 h^2 per layer, no embedding.
const SMALL: Model = Model {
    name: "small",
    layers: 8,
    hidden: 64,
    feed_forward: 256,
    matrices: 2,
    heads_per_key: 1,
    vocabulary: 0,
    sequence: 16,
    experts: 1,
    chosen: 1,
    tied: false,
};

const STEP: Training = Training {
    model: SMALL,
    tp: 1,
    pp: 1,
    dp: 1,
    ep: 1,
    micro_batch: 2,
    micro_batches: 6,
    element: 2,
    flops: 1e9,
    gradients: Algorithm::RingAllReduce,
    overlap: true,
    iterations: 1,
};

fn free(_: u64) -> Cost {
    Cost { occupies: Span::ZERO, latency: Span::ZERO, acknowledgement: Span::ZERO }
}

fn time(graph: &Graph, cost: fn(u64) -> Cost) -> Span {
    let outcome = run(graph, Done::Delivered, Limits::Serial, |message| cost(message.bytes));
    assert_eq!((outcome.unfinished(), outcome.unexpected()), (0, 0));
    outcome.completion
}

/// Returns the bytes that all ranks send within parts of this name.
fn sent(graph: &Graph, name: &str) -> u64 {
    let of_program = |program: &std::sync::Arc<apus_jobs::Program>| -> u64 {
        let ops = (0..).zip(program.ops());
        let within =
            |op| program.part_of(op).is_some_and(|p| graph.parts()[p as usize].name == name);
        ops.filter(|(op, _)| within(*op))
            .map(|(_, op)| if let Action::Send { bytes, .. } = op.action { bytes } else { 0 })
            .sum()
    };
    graph.programs().map(of_program).sum()
}

/// Sizes as published: 6.7, 13.0 and 65.2 billion (LLaMA, Table 2), 175 billion (GPT-3), 46.7 billion (Mixtral).
#[test]
fn models_have_their_published_numbers_of_parameters() {
    let published = [6.74e9, 13.0e9, 65.2e9, 175e9, 46.7e9];
    for (model, expected) in MODELS.iter().zip(published) {
        let ratio = model.parameters() as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.005, "{}: {}", model.name, model.parameters());
    }
}

/// Narayanan et al., §2.2.1: p - 1 of m + p - 1 rounds of a forward and a backward micro-batch are the bubble.
#[test]
fn a_pipeline_without_times_of_messages_takes_m_plus_p_minus_1_rounds() {
    // A layer has 12 h^2 parameters and 32 tokens: 24 b s h^2 + 4 b s^2 h operations forward, three times as
    // many for both directions.
    let layer = 3.0 * (24.0 * 32.0 * 4096.0 + 4.0 * 32.0 * 16.0 * 64.0);
    for (pp, micro_batches) in [(1, 6), (2, 6), (4, 6), (8, 3), (4, 1)] {
        let step = Training { pp, micro_batches, dp: 2, ..STEP };
        let rounds = f64::from(micro_batches + pp - 1);
        let expected = rounds * layer * f64::from(8 / pp) / 1e9;
        let found = time(&step.graph().expect("graph"), free).as_secs_f64();
        assert!((found / expected - 1.0).abs() < 1e-6, "{pp} {micro_batches}: {found} {expected}");
    }
}

/// Narayanan et al., §3.2: b s h per micro-batch and boundary in each direction, and 4 all-reduces of b s h
/// per layer and micro-batch, of which a rank sends 2 (t - 1) / t. Gradients once per step, of which a rank
/// sends 2 (d - 1) / d.
#[test]
fn each_parallelism_sends_what_its_paper_counts() {
    let step = Training { tp: 2, pp: 4, dp: 8, ..STEP };
    let graph = step.graph().expect("graph");
    assert_eq!(graph.ranks(), 64);
    let activations = 2 * 16 * 64 * 2;
    let (micro_batches, layers_of_ranks) = (6, 2 * 64);
    // 16 lanes, 3 boundaries.
    assert_eq!(sent(&graph, "activations"), 16 * 3 * micro_batches * activations);
    assert_eq!(sent(&graph, "activation-gradients"), 16 * 3 * micro_batches * activations);
    assert_eq!(sent(&graph, "tensors"), layers_of_ranks * micro_batches * 4 * activations);
    let gradients = 12 * 64 * 64 / 2 * 2;
    assert_eq!(sent(&graph, "gradients"), layers_of_ranks * gradients * 2 * 7 / 8);
}

/// Each layer has 4 all-to-alls, in which a rank keeps 1 / ep of b s h k / tp elements. Experts have 8 h^2
/// parameters each, with two experts on a rank and the same ones on dp / ep ranks. The attention is on all dp
/// ranks.
#[test]
fn experts_exchange_tokens_and_reduce_their_gradients_among_their_holders() {
    let model = Model { experts: 8, chosen: 2, ..SMALL };
    let step = Training { model, tp: 2, dp: 8, ep: 4, micro_batches: 3, ..STEP };
    let graph = step.graph().expect("graph");
    let tokens = 2 * 16 * 64 * 2 * 2 / 2;
    let layers_of_ranks = 8 * 16;
    let exchanged = layers_of_ranks * 3 * 2 * tokens * 3 / 4;
    assert_eq!(sent(&graph, "dispatch"), exchanged);
    assert_eq!(sent(&graph, "combine"), exchanged);
    let expert = 2 * 8 * 64 * 64 / 2 * 2;
    assert_eq!(sent(&graph, "expert-gradients"), layers_of_ranks * expert * 2 / 2);
    let dense = 4 * 64 * 64 / 2 * 2;
    assert_eq!(sent(&graph, "gradients"), layers_of_ranks * dense * 2 * 7 / 8);
    time(&graph, free);
}

/// The gradients of all layers except the first overlap with the computations of earlier layers, if they take
/// less time.
#[test]
fn overlapped_gradients_take_the_time_of_the_first_layer_and_the_others_of_all() {
    let cost = |bytes: u64| {
        let occupies = Span::from_ps(bytes);
        Cost { occupies, latency: Span::ZERO, acknowledgement: Span::ZERO }
    };
    let step = Training { dp: 2, micro_batches: 1, ..STEP };
    let computed = time(&step.graph().expect("graph"), free);
    // A ring of two ranks: two messages of half the gradients.
    let layer = Span::from_ps(12 * 64 * 64 * 2);
    assert_eq!(time(&step.graph().expect("graph"), cost), computed + layer);
    let after = Training { overlap: false, ..step };
    assert_eq!(time(&after.graph().expect("graph"), cost), computed + layer * 8);
}

#[test]
fn sizes_that_do_not_divide_are_errors() {
    for (step, part) in [
        (Training { pp: 3, ..STEP }, "pp: 3; it must be a divisor of the number of layers"),
        (Training { tp: 3, ..STEP }, "tp: 3"),
        (Training { dp: 4, ep: 2, ..STEP }, "ep: 2"),
        (Training { dp: 0, ..STEP }, "dp: 0; it must be at least 1"),
        (STEP, "ranks: 1"),
    ] {
        let error = step.graph().expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// The number of operations includes chunks: 32 layers whose gradients pass two trees in 5 million chunks.
#[test]
fn the_operations_of_gradients_are_bounded_whatever_their_algorithm() {
    let gradients = Algorithm::DoubleBinaryTree { chunks: 5_000_000 };
    let model = Model { layers: 32, hidden: 4096, ..SMALL };
    let error = Training { model, dp: 2, gradients, ..STEP }.graph().expect_err("too many");
    assert!(error.to_string().contains("operations: "), "{error}");
}

/// A token passes at least one expert, and at most all experts.
#[test]
fn experts_of_a_token_are_from_one_to_all() {
    let step = |experts, chosen| Training {
        model: Model { experts, chosen, ..SMALL },
        dp: 2,
        micro_batches: 1,
        ..STEP
    };
    for (experts, chosen) in [(1, 2), (8, 9), (8, 0)] {
        let error = step(experts, chosen).graph().expect_err("refused").to_string();
        let right = format!(
            "experts_per_token: {chosen}; it must be from 1 to the number of experts, {experts}"
        );
        assert_eq!(error, right);
    }
    assert!(step(8, 8).graph().is_ok());
}

/// The attention has 4 h^2 parameters, 2^66 with h = 2^32 - 1: more than 64 bits can represent. An activation
/// of 3 s h elements of 2 B has 1.5 TiB. A backward pass takes twice as long as a forward pass, which is
/// longer than any time here.
#[test]
fn sizes_and_times_beyond_all_bounds_are_errors_or_the_longest_time() {
    let model = Model { layers: 1, hidden: u32::MAX, ..SMALL };
    let step = Training { model, dp: 2, micro_batches: 1, ..STEP };
    let error = step.graph().expect_err("too large").to_string();
    assert!(
        error.contains("bytes of gradients: ") && error.contains("at most 1099511627776"),
        "{error}"
    );
    let wide = Model { layers: 1, sequence: u32::MAX, ..SMALL };
    let step = Training { model: wide, dp: 2, micro_batch: 3, micro_batches: 1, ..STEP };
    let error = step.graph().expect_err("too large").to_string();
    assert!(error.contains("bytes of activations: 1649267441280"), "{error}");
    let largest = Model { matrices: u32::MAX, feed_forward: u32::MAX, experts: u32::MAX, ..model };
    assert_eq!(largest.parameters(), u64::MAX);
    let slow = Training { dp: 2, micro_batches: 1, flops: 1e-9, ..STEP };
    assert!(slow.graph().is_ok());
    for flops in [0.0, -1.0, f64::NAN] {
        let error = Training { flops, ..slow }.graph().expect_err("refused").to_string();
        assert!(error.contains("flops: 0; it must be above 0"), "{error}");
    }
}

/// A group of 0 ranks and 0 chunks are rejected.
#[test]
fn gradients_of_impossible_algorithms_are_errors() {
    for (gradients, part) in [
        (Algorithm::Hierarchical { group: 0 }, "ranks of a group: 0; it must be a divisor of 4"),
        (Algorithm::DoubleBinaryTree { chunks: 0 }, "chunks: 0; it must be at least 1"),
    ] {
        let error = Training { dp: 4, gradients, ..STEP }.graph().expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}
