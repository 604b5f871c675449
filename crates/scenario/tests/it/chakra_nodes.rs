//! Conversion of the nodes of Chakra traces.

use apus_jobs::ideal::{Cost, Limits, run};
use apus_jobs::{Done, Graph};
use apus_scenario::import::chakra::{Groups, RankTrace, compose};
use apus_units::Span;

use crate::chakra_groups::{attribute, bytes, group_of, message, metadata, number};

/// Types of nodes.
const METADATA: u64 = 1;
const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

fn integer(name: &str, value: u64) -> Vec<u8> {
    attribute(name, &number(9, value))
}

fn node(id: u64, kind: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    message(&[vec![number(1, id), number(3, kind)], fields.to_vec()].concat())
}

fn computation(id: u64, micros: u64) -> Vec<u8> {
    node(id, COMPUTE, &[number(7, micros)])
}

fn collective(id: u64, kind: u64, bytes: u64, group: &str) -> Vec<u8> {
    let fields = [integer("comm_type", kind), integer("comm_size", bytes), group_of(group)];
    node(id, COLLECTIVE, &fields)
}

/// The job of ranks with these nodes.
fn job(ranks: &[Vec<Vec<u8>>]) -> Result<Graph, String> {
    let trace = |(rank, nodes): (u32, &Vec<Vec<u8>>)| {
        RankTrace::parse(rank, &[metadata(), nodes.concat()].concat()).expect("trace")
    };
    let traces: Vec<_> = (0..).zip(ranks).map(trace).collect();
    let imported = compose(&traces, &Groups::new(), false).map_err(|error| error.to_string());
    imported.map(|imported| imported.graph)
}

/// The time of a job whose messages take 4 us.
fn time(graph: &Graph) -> Span {
    let cost =
        Cost { occupies: Span::ZERO, latency: Span::from_us(4), acknowledgement: Span::ZERO };
    let outcome = run(graph, Done::Delivered, Limits::Serial, |_| cost);
    assert_eq!((outcome.unfinished(), outcome.unexpected()), (0, 0));
    outcome.completion
}

/// A ring of two takes two messages. In parallel with a computation of 8 us, which ASTRA-sim's
/// `HardwareResource` runs in another slot, the ring takes 8 us too. So does a computation in parallel with a
/// message. A computation on the CPU does not change this.
#[test]
fn messages_do_not_wait_for_computations_that_they_do_not_depend_on() {
    let rank = vec![collective(1, 0, 64, ""), computation(2, 8)];
    assert_eq!(time(&job(&[rank.clone(), rank]).expect("job")), Span::from_us(8));
    let message = [integer("comm_size", 64), integer("comm_dst", 1)];
    let first = vec![computation(1, 8), node(2, SEND, &message)];
    let second = vec![node(1, RECEIVE, &[integer("comm_size", 64), integer("comm_src", 0)])];
    assert_eq!(time(&job(&[first, second]).expect("job")), Span::from_us(8));
}

/// Rank 0 names the group of all ranks first "" and then "0", rank 1 the other way round.
#[test]
fn both_names_of_the_group_of_all_ranks_count_its_collectives_together() {
    let rank =
        |names: [&str; 2]| vec![collective(1, 0, 64, names[0]), collective(2, 5, 32, names[1])];
    let graph = job(&[rank(["", "0"]), rank(["0", ""])]).expect("job");
    // Two halves of 64 B each way, twice, and 32 B one way.
    assert_eq!(graph.bytes(), 4 * 32 + 32);
}

/// 13 broadcasts among 1024 ranks are 13 times 1023 messages, not 13 times the square of 1024.
#[test]
fn the_operations_of_a_broadcast_are_those_of_its_messages() {
    let rank: Vec<Vec<u8>> = (1..=13).map(|id| collective(id, 5, 2048, "")).collect();
    let graph = job(&vec![rank; 1024]).expect("job");
    assert_eq!(graph.bytes(), 13 * 1023 * 2048);
}

/// 2^32 - 1 means any tag.
#[test]
fn numbers_that_would_change_their_meaning_are_errors() {
    let receive = |tag| {
        let source = [integer("comm_size", 64), integer("comm_src", 1), integer("comm_tag", tag)];
        job(&[vec![node(1, RECEIVE, &source)], vec![]])
    };
    assert!(receive(4_294_967_294).is_ok());
    let error = receive(4_294_967_295).expect_err("any");
    assert!(error.contains("comm_tag is 4294967295; it must be from 0 to 2^32 - 2"), "{error}");
    // Four shards of 2^62 B are 2^64 B.
    let error = job(&vec![vec![collective(1, 2, 1 << 62, "")]; 4]).expect_err("too large");
    assert!(error.contains("of each of 4 ranks; all of them must be below 2^64 B"), "{error}");
}

/// Ranks 2^32 and -1 of a group are not ranks: the first one is not rank 0, and the second one is not left out.
#[test]
fn a_group_of_pytorch_with_what_is_no_rank_has_no_members() {
    for ranks in ["[4294967296, 1]", "[0, -1, 1]"] {
        let text = format!("[{{\"pg_name\": \"5\", \"ranks\": {ranks}}}]");
        let values = bytes(&[1 << 3 | 2], text.as_bytes());
        let name = bytes(&[2 << 3 | 2], b"## process_group:init ##");
        let groups = node(1, METADATA, &[name, bytes(&[8 << 3 | 2], &values)]);
        let rank = vec![groups, collective(2, 0, 64, "5")];
        let error = job(&[rank.clone(), rank]).expect_err(ranks);
        let part = "its group `5` does not have rank 0, or has ranks without a trace";
        assert!(error.contains(part), "{error}");
    }
}
