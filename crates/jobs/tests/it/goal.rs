//! GOAL files: samples byte for byte, round trips, and errors.

use apus_jobs::goal::{BinaryReader, TextReader, read, read_binary, write_binary, write_text};
use apus_jobs::{ANY, Action, Graph, Op, ProgramBuilder};
use apus_units::Span;
use proptest::prelude::*;

use crate::random_graphs::any_graph;
use crate::samples::{SAMPLES, content};

fn text_of(graph: &Graph) -> String {
    let mut text = String::new();
    write_text(graph, &mut text).expect("text").expect("writable");
    text
}

/// `txt2bin` made the binary files from the texts.
#[test]
fn the_binary_form_of_samples_is_that_of_txt2bin_byte_for_byte() {
    for (name, _) in SAMPLES {
        let (text, binary) = (content(name, "goal"), content(name, "bin"));
        let graph = read(&text).expect(name);
        assert!(write_binary(&graph).expect(name) == binary, "{name}");
        let again = read(&binary).expect(name);
        assert!(write_binary(&again).expect(name) == binary, "{name}");
        let text = text_of(&graph);
        assert_eq!(read(text.as_bytes()).expect(name), graph, "{name}: labels included");
    }
}

/// Text that `txt2bin` accepts, and blanks that its scanner does not.
#[test]
fn the_grammar_is_read_with_comments_blanks_and_any_line_ends() {
    let text = b"// first\r\nnum_ranks 2 /* of\r\n two */\n rank 0 { // 1\n\ta : send 5 b to 1 tag 7 cpu 2 nic 3\n\
                 b1: calc 40 cpu 1\n /* x */ b1 irequires a\nsend 1b to 1\n}rank 1 {\nrecv 5b from -1 tag -1\n\
                 r_: recv 0b from 0 nic 9\n}";
    let graph = read(text).expect("graph");
    let ops: Vec<Op> = graph.program(0).ops().collect();
    assert_eq!(ops[0], Op::send(1, 5, 7).on_cpu(2).on_nic(3));
    assert_eq!(ops[1], Op::compute(Span::from_ns(40)).on_cpu(1));
    assert_eq!(ops[2], Op::send(1, 1, 0));
    assert_eq!(graph.program(0).after_start(0), [1]);
    assert_eq!(graph.program(0).label(1), Some("b1"));
    assert_eq!(graph.program(0).label(2), None);
    let ops: Vec<Op> = graph.program(1).ops().collect();
    assert_eq!(ops, [Op::receive(ANY, 5, ANY), Op::receive(0, 0, 0).on_nic(9)]);
    // The text in pieces of every length gives the same result.
    for length in 1..text.len() {
        let mut reader = TextReader::new();
        for piece in text.chunks(length) {
            reader.feed(piece).expect("piece");
        }
        assert_eq!(reader.finish().expect("graph"), graph, "pieces of {length}");
    }
}

#[test]
fn mistakes_in_a_text_are_named_with_line_rank_and_op() {
    for (text, message) in [
        ("", "line 0: `num_ranks N` is missing"),
        ("num_ranks 0", "line 1: the number of ranks is 0; it must be at least 1"),
        ("num_ranks 1\nnum_ranks 1", "line 2: `num_ranks` stands here a second time"),
        ("rank 0 {", "line 1: `num_ranks N` must precede the first rank"),
        ("num_ranks 2\nrank 0 {\n}\n", "line 3: the file ends after 1 of 2 ranks"),
        ("num_ranks 2\nrank 1 {", "line 2: rank 1 stands here; ranks must be in order, next is 0"),
        ("num_ranks 1\nrank 0 {\n}\nrank 1 {", "line 4: the file has more than 1 ranks"),
        ("num_ranks 1\nrank 0\n{", "line 2: expected `{`, found the end of the line"),
        (
            "num_ranks 1\nrank 0 {\ncalc 1",
            "line 3: rank 0: the file ends within the rank of line 2; `}` is missing",
        ),
        ("num_ranks 1\n/* x", "line 2: the file ends within a comment; `*/` is missing"),
        ("num_ranks 1\n}", "line 2: `}` closes no rank"),
        ("num_ranks 1\ncalc 1", "line 2: `calc` stands outside of a rank"),
        (
            "num_ranks 1\nrank 0 {\nsend 5b to 1\n}",
            "line 3: rank 0, op 0: the peer is rank 1; it must be below 1",
        ),
        ("num_ranks 1\nrank 0 {\nsend 5b to -1\n}", "line 3: rank 0: the rank cannot be -1"),
        ("num_ranks 1\nrank 0 {\nsend 5 to 0\n}", "line 3: rank 0: expected `b`, found `to`"),
        (
            "num_ranks 1\nrank 0 {\nsend 99999999999999999999b to 0\n}",
            "line 3: rank 0: the size is 99999999999999999999; it must be at most 18446744073709551615",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 5 nic 1\n}",
            "line 3: rank 0: after the time may follow only `cpu C`",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 5b to 0 cpu 1 tag 1\n}",
            "line 3: rank 0: after the rank may follow `tag T`, `cpu C` and `nic I`, in this order",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 5 cpu 256\n}",
            "line 3: rank 0: the cpu is 256; it must be at most 255",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 5\na: calc 6\n}",
            "line 4: rank 0: label `a` is that of op 0 already",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 5\na requires b\n}",
            "line 4: rank 0: no operation before has the label `b`",
        ),
        ("num_ranks 1\nrank 0 {\nsend: calc 5\n}", "line 3: rank 0: expected the size, found `:`"),
        (
            "num_ranks 1\nrank 0 {\na: wait 5\n}",
            "line 3: rank 0: expected `send`, `recv` or `calc`, found `wait`",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\na requires b\nb irequires a\n}",
            "line 7: rank 0, op 0: it waits for itself, through 2 dependencies",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 5 // no\n}",
            "line 3: rank 0: after the time may follow only `cpu C`",
        ),
        ("num_ranks 1\nrank 0 {\n%\n}", "line 3: rank 0: `%` has no meaning here"),
    ] {
        assert_eq!(read(text.as_bytes()).expect_err(text).to_string(), message, "{text}");
    }
}

/// Replaces bytes of a binary sample.
fn damaged(offset: usize, bytes: &[u8]) -> String {
    let mut file = content("bcast_16", "bin");
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    read_binary(&file).expect_err("damaged").to_string()
}

/// The block of rank 0 begins at 270 (0x10e): 4 ops, 4 roots, and nodes of 39 bytes from 294 onwards.
#[test]
fn mistakes_in_a_binary_file_are_named_with_offset_rank_and_op() {
    let two = 2u32.to_le_bytes();
    assert_eq!(
        damaged(0, &2342u64.to_le_bytes()),
        "offset 0: LogGOPSim with --save-mem has used this file up; convert its text again"
    );
    assert!(damaged(0, &[1]).starts_with("offset 0: a binary GOAL file begins with"));
    assert!(damaged(8, &[0; 4]).starts_with("offset 8: the number of ranks is 0"));
    assert!(damaged(14, &[0; 8]).starts_with("offset 14: rank 0: its block begins at 8; it must"));
    assert!(damaged(22, &[0xff; 8]).starts_with("offset 22: rank 0: its block of 270 to"));
    assert!(damaged(270, &two).starts_with("offset 270: rank 0: "));
    assert!(damaged(278, &two).starts_with("offset 278: rank 0: the roots must be"));
    assert_eq!(
        damaged(294 + 39, &two),
        "offset 333: rank 0, op 1: it states 2 dependencies, but has 0"
    );
    assert_eq!(
        damaged(298, &[9]),
        "offset 298: rank 0, op 0: its type is 9; it must be 1 (send), 2 (recv) or 3 (calc)"
    );
    assert_eq!(
        damaged(299, &99u32.to_le_bytes()),
        "offset 299: rank 0, op 0: the peer is rank 99; it must be below 16"
    );
    assert_eq!(damaged(294 + 23, &two), "offset 317: rank 0, op 0: dependencies 0 to 2 of 0");
    // Files that are truncated at every length.
    let file = content("incast_9", "bin");
    for length in 0..file.len() {
        read_binary(&file[..length]).expect_err("cut short");
    }
}

#[test]
fn a_binary_file_can_be_read_rank_by_rank() {
    let file = content("allreduce_ring_8", "bin");
    let table = BinaryReader::table_bytes(&file[..14]).expect("head") as usize;
    let mut reader = BinaryReader::new(&file[..table], file.len() as u64).expect("table");
    while let Some(block) = reader.next_block() {
        reader.read_block(&file[block.start as usize..block.end as usize]).expect("block");
    }
    assert_eq!(reader.finish().expect("graph"), read(&file).expect("graph"));
}

#[test]
fn a_time_below_a_nanosecond_cannot_be_written() {
    let mut builder = ProgramBuilder::new(0, 1);
    builder.push(Op::compute(Span::from_ps(1500))).expect("op");
    let graph = Graph::new(vec![builder.finish().expect("program")]).expect("graph");
    let message =
        "rank 0, op 0: a computation of 1.5ns cannot be written; GOAL counts whole nanoseconds";
    assert_eq!(write_binary(&graph).expect_err("binary").to_string(), message);
    let error = write_text(&graph, &mut String::new()).expect("text").expect_err("text");
    assert_eq!(error.to_string(), message);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_forms_of_any_graph_are_read_back(graph in any_graph()) {
        let text = text_of(&graph);
        let from_text = read(text.as_bytes()).expect("text");
        let binary = write_binary(&graph).expect("binary");
        let from_binary = read(&binary).expect("binary");
        prop_assert_eq!(&from_binary, &graph);
        // The text assigns labels to all operations.
        prop_assert_eq!(write_binary(&from_text).expect("binary"), binary);
        prop_assert!(from_text.programs().all(|program| program.is_labelled()));
        let sends = |graph: &Graph| -> usize {
            let send = |op: &Op| matches!(op.action, Action::Send { .. });
            graph.programs().map(|p| p.ops().filter(|op| send(op)).count()).sum()
        };
        prop_assert_eq!(sends(&from_text), sends(&graph));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn damaged_files_never_panic(
        sample in 0..SAMPLES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        is_text in any::<bool>(),
    ) {
        let mut file = content(SAMPLES[sample].0, if is_text { "goal" } else { "bin" });
        for (index, byte) in damage {
            let index = index.index(file.len());
            file[index] = byte;
        }
        if let Ok(graph) = read(&file) {
            let _ = apus_jobs::loggops::run(&graph, &apus_jobs::loggops::Parameters::default());
        }
    }
}
