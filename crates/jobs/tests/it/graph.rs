//! Construction of graphs.

use apus_jobs::{ANY, Graph, Op, ProgramBuilder};
use apus_units::Span;

fn computations(count: u32) -> ProgramBuilder {
    let mut builder = ProgramBuilder::new(3, 4);
    for _ in 0..count {
        builder.push(Op::compute(Span::from_ns(1))).expect("op");
    }
    builder
}

#[test]
fn cycles_are_named_with_their_lowest_op_and_their_length() {
    // Operation 0 waits for the cycle 2 -> 1 -> 4 -> 2, on which operation 3 depends.
    let mut builder = computations(5);
    for (op, awaited) in [(0, 2), (2, 1), (1, 4), (3, 4)] {
        builder.requires(op, awaited);
    }
    builder.irequires(4, 2);
    let message = "rank 3, op 1: it waits for itself, through 3 dependencies";
    assert_eq!(builder.finish().expect_err("cycle").to_string(), message);
    let mut builder = computations(1);
    builder.requires(0, 0);
    let message = "rank 3, op 0: it waits for itself, through 1 dependencies";
    assert_eq!(builder.finish().expect_err("cycle").to_string(), message);
}

#[test]
fn peers_and_dependencies_must_exist() {
    let mut builder = computations(1);
    let error = builder.push(Op::send(4, 1, 0)).expect_err("peer").to_string();
    assert_eq!(error, "rank 3, op 1: the peer is rank 4; it must be below 4");
    let error = builder.push(Op::send(ANY, 1, 0)).expect_err("peer").to_string();
    assert_eq!(error, "rank 3, op 1: the peer is rank 4294967295; it must be below 4");
    assert_eq!(builder.push(Op::receive(ANY, 1, ANY)), Ok(1));
    builder.requires(1, 7);
    let error = builder.finish().expect_err("dependency").to_string();
    assert_eq!(error, "rank 3, op 1: it waits for op 7, which does not exist");
    // All programs of a job have the same number of ranks.
    let mut builder = ProgramBuilder::new(0, 9);
    builder.push(Op::send(8, 1, 0)).expect("op");
    let error = Graph::new(vec![builder.finish().expect("program")]).expect_err("peer");
    assert_eq!(error.to_string(), "rank 0, op 0: the peer is rank 8; it must be below 1");
}

#[test]
fn dependencies_and_labels_are_kept_in_order() {
    let mut builder = computations(4);
    builder.requires(3, 0);
    builder.requires(1, 0);
    builder.requires(2, 1);
    let program = builder.finish().expect("program");
    assert_eq!((program.after_end(0), program.after_end(1)), (&[3, 1][..], &[2][..]));
    assert_eq!((program.after_end(2), program.after_start(0)), (&[][..], &[][..]));
    assert_eq!((program.dependencies(3), program.edges()), (1, 3));
    let mut builder = ProgramBuilder::new(0, 1);
    for label in [None, Some("a"), None, Some("bc")] {
        builder.push(Op::compute(Span::ZERO)).expect("op");
        if let Some(label) = label {
            builder.label(label).expect("label");
        }
    }
    let program = builder.finish().expect("program");
    let labels: Vec<_> = (0..5).map(|op| program.label(op)).collect();
    assert_eq!(labels, [None, Some("a"), None, Some("bc"), None]);
    assert!(!program.is_labelled());
}
