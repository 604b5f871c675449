//! Arbitrary bytes as a job: a text (.cm, SimAI, GOAL) or a Chakra trace of one rank. There is no panic. An accepted
//! job has messages between its own ranks only, and a written trace is read back with as many operations.
#![no_main]

use apus_jobs::collectives::JOINS;
use apus_jobs::{Action, Graph, Op};
use apus_scenario::import::chakra::{Groups, RankTrace, Traces, compose};
use apus_scenario::import::parse_job;
use libfuzzer_sys::fuzz_target;

/// Returns the number of operations except those that only join others, which have no node in a trace.
fn others(graph: &Graph) -> usize {
    let is_join = |op: &Op| {
        op.cpu == JOINS && matches!(op.action, Action::Compute { time } if time.is_zero())
    };
    graph.program(0).ops().filter(|op| !is_join(op)).count()
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = core::str::from_utf8(bytes) {
        match parse_job(text) {
            Ok(graph) => assert!(graph.ranks() > 0 || graph.ops() == 0),
            Err(why) => assert!(!why.is_empty()),
        }
    }
    let Ok(trace) = RankTrace::parse(0, bytes) else { return };
    let traces = [trace];
    let _ = compose(&traces, &Groups::new(), false);
    let Ok(imported) = compose(&traces, &Groups::new(), true) else { return };
    let graph = imported.graph;
    let Ok(written) = Traces::new(&graph).write(0, true) else { return };
    let Ok(again) = RankTrace::parse(0, &written.bytes) else { return };
    let again = compose(&[again], &Groups::new(), false).expect("a written trace");
    assert_eq!(others(&again.graph), others(&graph));
});
