//! Jobs in the formats of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use apus_jobs::collectives::{Algorithm, Collective, JOINS, closed};
use apus_jobs::ideal::{Cost, Limits, run};
use apus_jobs::{Action, Done, Graph, Op, ProgramBuilder};
use apus_scenario::import::chakra::{ChakraError, Groups, RankTrace, Traces, Written, compose};
use apus_scenario::import::parse_job;
use apus_units::Span;

/// Stream of the messages of Chakra traces.
const MESSAGES: u8 = 3;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(data(name)).expect(name)
}

fn job(name: &str) -> Graph {
    parse_job(&text(name)).unwrap_or_else(|why| panic!("{name}:{why}"))
}

/// Returns a cost of 8 ps per byte and 700 ns.
fn cost(bytes: u64) -> Cost {
    let occupies = Span::from_ps(8 * bytes);
    Cost { occupies, latency: Span::from_ns(700), acknowledgement: Span::ZERO }
}

fn time(graph: &Graph) -> Span {
    let outcome = run(graph, Done::Delivered, Limits::Serial, |message| cost(message.bytes));
    assert_eq!((outcome.unfinished(), outcome.unexpected()), (0, 0));
    outcome.completion
}

fn alone(bytes: u64) -> Span {
    cost(bytes).alone()
}

/// 8 chunks go around the ring, each in 15 hops of 1 MiB (README.md of csg-htsim's generators: 2G - 1).
#[test]
fn oneshots_of_a_connection_matrix_start_each_hop_when_the_one_before_has_arrived() {
    let graph = job("gen_ring_allreduce_8.cm");
    assert_eq!((graph.ranks(), graph.ops(), graph.bytes()), (8, 240, 120 << 20));
    assert_eq!(time(&graph), alone(1 << 20) * 15);
}

/// The job has three rounds of full size.
#[test]
fn recv_done_triggers_start_the_next_round_and_a_missing_trigger_is_an_error() {
    let graph = job("gen_butterfly_8_fixed.cm");
    assert_eq!(time(&graph), alone(1 << 20) * 3);
    let error = parse_job(&text("gen_butterfly_8_as_printed.cm")).expect_err("refused");
    assert!(error.contains("16 triggers are announced, but there are 15"), "{error}");
}

fn dependencies_of_sends(graph: &Graph, rank: u32) -> Vec<u32> {
    let program = graph.program(rank);
    let is_send = |op: &u32| matches!(program.op(*op).action, Action::Send { .. });
    (0..program.len() as u32).filter(is_send).map(|op| program.dependencies(op)).collect()
}

/// A window of 3: the 4th message of a rank waits for its first, the 5th for its second and so on.
#[test]
fn a_multishot_starts_one_flow_per_activation() {
    let graph = job("gen_alltoall_8_window3.cm");
    for rank in 0..8 {
        assert_eq!(dependencies_of_sends(&graph, rank), [0, 0, 0, 1, 1, 1, 1], "rank {rank}");
    }
    assert_eq!(dependencies_of_sends(&job("gen_alltoall_8_serial.cm"), 5), [0, 1, 1, 1, 1, 1, 1]);
    assert_eq!(dependencies_of_sends(&job("uet_msg_reuse_1f10m.cm"), 0), [0; 10]);
    time(&graph);
}

/// Two messages of 1000 B start at 5 us and 9 us. A third one starts when both have arrived at rank 2, which
/// informs rank 3 by a message of 1 B.
#[test]
fn a_barrier_waits_for_all_activations_and_start_times_count_from_the_start() {
    let graph = parse_job(
        "Nodes 4\nConnections 3\nTriggers 1\n0->2 id 1 start 5000000 size 1000 recv_done_trigger 1\n\
         1->2 id 2 start 9000000 size 1000 recv_done_trigger 1\n3->0 id 3 trigger 1 size 1000\n\
         trigger id 1 barrier count 2\n",
    );
    let expected = Span::from_us(9) + alone(1000) + alone(1) + alone(1000);
    assert_eq!(time(&graph.expect("job")), expected);
}

#[test]
fn mistakes_of_connection_matrices_name_the_line() {
    for (rest, part) in [
        ("0->1 id 1 trigger 1 size 5\n", "2: trigger 1 is defined nowhere"),
        ("0->1 trigger 1 size 5\ntrigger id 1 oneshot\n", "3: nothing activates trigger 1"),
        (
            "0->1 start 0 size 5 send_done_trigger 1\n1->0 start 0 size 5 send_done_trigger 1\n1->2 trigger 1 size 5\ntrigger id 1 oneshot\n",
            "5: 2 flows activate the oneshot 1",
        ),
        (
            "0->1 start 0 size 5 send_done_trigger 1\n1->2 trigger 1 size 5\ntrigger id 1 barrier count 2\n",
            "4: the barrier 1 waits for 2 activations, but 1 flows activate it",
        ),
        (
            "0->1 start 0 size 5 send_done_trigger 1\n1->2 trigger 1 size 5\n1->0 trigger 1 size 5\ntrigger id 1 multishot\n",
            "5: the multishot 1 starts 2 flows, but is activated 1 times",
        ),
        (
            "0->1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot\n",
            "2: the flow 0->1 waits for itself",
        ),
        ("0->1 start 0 size 5\ntrigger id 1 barrier\n", "3: a barrier needs `count N`"),
        ("0->1 start 0 size 5\ntrigger id 1 oneshot\n", "3: trigger 1 starts no flow: remove it"),
        (
            "0->1 start 0 size 5 send_done_trigger 1\ntrigger id 1 multishot\n",
            "3: trigger 1 starts no flow: remove it, and what activates it",
        ),
        ("0->3 start 0 size 5\n", "2: unknown node 3"),
        (
            "0->1 msg 1 start 18446744073710 size 5\n",
            "2: the time is 18446744073710 us; it must be at most 18446744073709",
        ),
        ("0->1 start 0\n", "2: the size is missing"),
        ("2->0 id 1 start 0 size 5\nNodes 2\n", "3: `Nodes` stands twice"),
        ("Connections 1\nConnections 1\n0->1 start 0 size 5\n", "3: `Connections` stands twice"),
        ("0->1 size 5\n", "2: it needs either `start TIME` or `trigger K`"),
    ] {
        let error = parse_job(&format!("Nodes 3\n{rest}")).expect_err(part);
        assert!(error.contains(part), "{rest}: {error}");
    }
}

/// 4000 flows before a barrier and 4000 after it are 16 million waits, each of which may be two operations.
#[test]
fn the_waits_at_barriers_are_bounded() {
    let job = |flows: usize| {
        let before = "0->1 start 0 size 5 send_done_trigger 1\n".repeat(flows);
        let after = "0->1 trigger 1 size 5\n".repeat(flows);
        parse_job(&format!("Nodes 2\n{before}{after}trigger id 1 barrier count {flows}\n"))
    };
    assert_eq!(job(100).expect("a job").ops(), 400);
    let error = job(4000).expect_err("too many");
    assert!(error.starts_with("8002: with trigger 1, whose 4000 flows wait for 4000"), "{error}");
    assert!(error.contains("wait for 16000000; a file has at most 10000000"), "{error}");
}

/// Two layers. Forward: 556,000 ns and an all-reduce of 16 and 64 MiB each, then an update of 1 ns. Backward: 1
/// ns for each of two gradients.
#[test]
fn a_workload_of_simai_takes_the_sum_of_its_layers() {
    let graph = job("microAllReduce.txt");
    assert_eq!(graph.ranks(), 8);
    let ring = |bytes: u64| alone(bytes / 8) * 14;
    let computed = Span::from_ns(2 * (556_000 + 1) + 4);
    assert_eq!(time(&graph), computed + ring(16 << 20) + ring(64 << 20));
    let names: Vec<_> = graph.parts().iter().map(|part| (part.name, part.bytes)).collect();
    assert_eq!(names, [("all-reduce", 16 << 20), ("all-reduce", 64 << 20)]);
}

#[test]
fn mistakes_of_workloads_of_simai_name_the_line() {
    let head =
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4";
    for (text, part) in [
        (
            format!("{head}\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "3: the file ends in layer 1 of 2",
        ),
        (format!("{head}\n1\na -1 1 SUM 5 1 NONE 0 1 NONE 0 1\n"), "3: `SUM` is no communication"),
        (format!("{head}\n1\na -1 x NONE 0 1 NONE 0 1 NONE 0 1\n"), "3: `x` is not a time"),
        (
            format!("{head}\n1\na -1 18446744073709552 NONE 0 1 NONE 0 1 NONE 0 1\n"),
            "3: the time is 18446744073709552 ns; it must be at most 18446744073709551",
        ),
        (format!("{head}\n0\n"), "2: there are 0 layers"),
        (
            head.replace("all_gpus: 4", "all_gpus: 4000000000") + "\n0\n",
            "1: `all_gpus` is 4000000000; a job has at most 1000000 GPUs",
        ),
        (head.replace("all_gpus: 4", "all_gpus: 3"), "1: 3 GPUs cannot be divided"),
        (head.replace(" ep: 1", ""), "1: `ep: N` is missing"),
        (format!("{head} checkpoints: 1 0\n1\n"), "1: `checkpoints` names layers"),
        (
            head.replace("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DATA"),
            "1: unknown policy `HYBRID_DATA`",
        ),
    ] {
        let error = parse_job(&text).expect_err(part);
        assert!(error.contains(part), "{text}: {error}");
    }
}

fn traces(folder: &str) -> Vec<RankTrace> {
    let parse = |rank: u32| {
        let name = format!("{folder}/{folder}.{rank}.et");
        RankTrace::parse(rank, &fs::read(data(&name)).expect(&name)).expect(&name)
    };
    (0..8).map(parse).collect()
}

fn composed(folder: &str) -> Graph {
    compose(&traces(folder), &Groups::new(), false).unwrap_or_else(|error| panic!("{error}")).graph
}

/// Files of ASTRA-sim: a collective of 8 ranks and 1 MiB each; an all-gather of shards of 1 MiB.
#[test]
fn collectives_of_chakra_take_their_closed_forms() {
    for (folder, algorithm, bytes) in [
        ("all_reduce", Algorithm::RingAllReduce, 1 << 20),
        ("reduce_scatter", Algorithm::RingReduceScatter, 1 << 20),
        ("all_to_all", Algorithm::AllToAllDirect, 1 << 20),
        ("all_gather", Algorithm::RingAllGather, 8 << 20),
    ] {
        let graph = composed(folder);
        let form = closed::time(&Collective::new(algorithm, 8, bytes), cost).expect("form");
        assert_eq!((graph.ranks(), time(&graph)), (8, form.span()), "{folder}");
    }
}

#[test]
fn a_trace_that_is_cut_short_or_damaged_names_rank_message_and_offset() {
    let bytes = fs::read(data("all_reduce/all_reduce.3.et")).expect("file");
    let fails = |bytes: &[u8]| -> ChakraError { RankTrace::parse(3, bytes).expect_err("refused") };
    let error = fails(&bytes[..bytes.len() - 1]).to_string();
    assert!(error.starts_with("rank 3, offset ") && error.contains("cut short"), "{error}");
    let error = fails(&[0xff; 9]).to_string();
    assert!(error.contains("offset 0: message 0: its length is no varint"), "{error}");
    for cut in 0..bytes.len() {
        let _ = RankTrace::parse(3, &bytes[..cut]);
    }
}

/// One rank has one collective less than the others.
#[test]
fn collectives_that_a_rank_never_reaches_are_an_error_that_names_them() {
    let mut all = traces("all_reduce");
    let mut builder = ProgramBuilder::new(0, 1);
    builder.push(Op::compute(Span::from_us(3))).expect("op");
    let lone = Graph::new(vec![builder.finish().expect("program")]).expect("graph");
    all[5] =
        RankTrace::parse(5, &write_trace(&lone, 0, false).expect("trace").bytes).expect("trace");
    let error = compose(&all, &Groups::new(), false).expect_err("refused").to_string();
    assert!(
        error.contains("rank 0, node 0") && error.contains("which rank 5 never reaches"),
        "{error}"
    );
}

/// The reader reads a written trace back: operations and dependencies are the same.
#[test]
fn a_job_of_messages_and_computations_survives_chakra() {
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    for (rank, program) in programs.iter_mut().enumerate() {
        let other = 1 - rank as u32;
        let compute = program.push(Op::compute(Span::from_us(7)).on_cpu(rank as u8)).expect("op");
        let send = program.push(Op::send(other, 5000, 9).on_cpu(MESSAGES)).expect("op");
        let receive = program.push(Op::receive(other, 5000, 9).on_cpu(MESSAGES)).expect("op");
        program.requires(send, compute);
        program.requires(receive, compute);
    }
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let trace = |rank| {
        let written = write_trace(&graph, rank, false).expect("trace");
        RankTrace::parse(rank, &written.bytes)
    };
    let traces: Vec<_> = (0..2).map(|rank| trace(rank).expect("trace")).collect();
    let again = compose(&traces, &Groups::new(), false).expect("job").graph;
    assert_eq!(again, graph);
}

fn write_trace(graph: &Graph, rank: u32, rounds: bool) -> Result<Written, ChakraError> {
    Traces::new(graph).write(rank, rounds)
}

/// Two receives, an operation without time that joins them, and a computation after the join. ASTRA-sim ends a
/// node of metadata at once, and starts the following node at the rank's next event, of which there is none
/// here.
#[test]
fn what_waits_for_a_join_waits_for_what_it_joins_in_a_trace() {
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    for tag in [1, 2] {
        programs[0].push(Op::receive(1, 5, tag).on_cpu(MESSAGES)).expect("op");
        programs[1].push(Op::send(0, 5, tag).on_cpu(MESSAGES)).expect("op");
    }
    for op in [Op::compute(Span::ZERO).on_cpu(JOINS), Op::compute(Span::from_us(5))] {
        programs[0].push(op).expect("op");
    }
    for (op, first) in [(2, 0), (2, 1), (3, 2)] {
        programs[0].requires(op, first);
    }
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let again = compose(&rewritten(&graph).expect("traces"), &Groups::new(), false);
    let again = again.expect("job").graph;
    let program = again.program(0);
    assert_eq!(program.len(), 3);
    assert_eq!([0, 1, 2].map(|op| program.after_end(op).to_vec()), [vec![2], vec![2], vec![]]);
    assert_eq!(time(&again), time(&graph));
}

/// Returns the traces of all ranks, written and read again.
fn rewritten(graph: &Graph) -> Result<Vec<RankTrace>, ChakraError> {
    let trace = |rank| RankTrace::parse(rank, &write_trace(graph, rank, false)?.bytes);
    (0..graph.ranks()).map(trace).collect()
}

/// Collectives of several ranks have operations that only join others.
#[test]
fn jobs_of_collectives_survive_chakra() {
    for (name, graph) in [
        ("all_reduce", composed("all_reduce")),
        ("all_to_all", composed("all_to_all")),
        ("microAllReduce.txt", job("microAllReduce.txt")),
    ] {
        let traces = rewritten(&graph).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = compose(&traces, &Groups::new(), false).expect(name).graph;
        assert_eq!((again.bytes(), time(&again)), (graph.bytes(), time(&graph)), "{name}");
    }
}

/// A computation, a send after it, and another computation in parallel with the send.
#[test]
fn what_chakra_has_not_of_messages_is_an_error_or_counted() {
    let written = |send: Op, streams: [u8; 2]| {
        let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
        let us = |cpu| Op::compute(Span::from_us(1)).on_cpu(cpu);
        let first = programs[0].push(us(streams[0])).expect("op");
        let send = programs[0].push(send).expect("op");
        programs[0].push(us(streams[1])).expect("op");
        programs[0].requires(send, first);
        programs[1].push(Op::receive(0, 5, 0)).expect("op");
        let programs = programs.into_iter().map(|program| program.finish().expect("program"));
        write_trace(&Graph::new(programs.collect()).expect("graph"), 0, false)
    };
    let send = Op::send(1, 5, 0);
    for (op, streams, part) in [
        (Op::send(1, 0, 0), [0, 0], "node 1 (op 1: send 0 B to rank 1, tag 0): messages of a"),
        (send.on_nic(1), [0, 0], "messages of a Chakra trace have no NIC"),
        (send, [0, 2], "two streams of computations only"),
    ] {
        let error = written(op, streams).expect_err(part).to_string();
        assert!(error.starts_with("rank 0, node ") && error.contains(part), "{part}: {error}");
    }
    for (cpu, freed) in [(0, 1), (1, 1), (2, 0), (MESSAGES, 0)] {
        let changes = written(send.on_cpu(cpu), [0, 1]).expect("trace").changes;
        assert_eq!((changes.freed, changes.rounded), (freed, 0), "{cpu}");
    }
    // A send on the stream of a computation of the receiver, and sends on two streams.
    let freed = |sends: &[u8], computes: Option<u8>| {
        let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
        for cpu in sends {
            programs[0].push(Op::send(1, 5, 0).on_cpu(*cpu)).expect("op");
            programs[1].push(Op::receive(0, 5, 0).on_cpu(*cpu)).expect("op");
        }
        if let Some(cpu) = computes {
            programs[1].push(Op::compute(Span::from_us(1)).on_cpu(cpu)).expect("op");
        }
        let programs = programs.into_iter().map(|program| program.finish().expect("program"));
        let graph = Graph::new(programs.collect()).expect("graph");
        write_trace(&graph, 0, false).expect("trace").changes.freed
    };
    assert_eq!([freed(&[0], Some(0)), freed(&[0], Some(1))], [1, 0]);
    assert_eq!([freed(&[0, 0], None), freed(&[0, 1, 1], None)], [0, 2]);
}

/// Rank 2 of three takes no part; its trace has no node.
#[test]
fn a_rank_without_operations_survives_chakra() {
    let mut programs: Vec<_> = (0..3).map(|rank| ProgramBuilder::new(rank, 3)).collect();
    programs[0].push(Op::send(1, 5000, 9).on_cpu(MESSAGES)).expect("op");
    programs[1].push(Op::receive(0, 5000, 9).on_cpu(MESSAGES)).expect("op");
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let trace = |rank| {
        let written = write_trace(&graph, rank, false).expect("trace");
        RankTrace::parse(rank, &written.bytes).expect("trace")
    };
    let traces: Vec<_> = (0..3).map(trace).collect();
    assert_eq!(traces[2].nodes(), 0);
    assert_eq!(compose(&traces, &Groups::new(), false).expect("job").graph, graph);
    let error = RankTrace::parse(2, &[]).expect_err("no file").to_string();
    assert!(error.contains("rank 2, offset 0") && error.contains("is empty"), "{error}");
}

/// Chakra has whole microseconds, and 1 ns as 0: other times are rounded on demand only.
#[test]
fn times_that_chakra_has_not_are_an_error_or_rounded_and_counted() {
    let times =
        [Span::from_ns(1), Span::from_us(2), Span::ZERO, Span::from_ns(499), Span::from_ns(2500)];
    let graph = |times: &[Span]| {
        let mut program = ProgramBuilder::new(0, 1);
        for time in times {
            program.push(Op::compute(*time)).expect("op");
        }
        Graph::new(vec![program.finish().expect("program")]).expect("graph")
    };
    let exact = write_trace(&graph(&times[..2]), 0, false).expect("whole microseconds, and 1 ns");
    assert_eq!(exact.changes.rounded, 0);
    let error = write_trace(&graph(&times), 0, false).expect_err("0 s").to_string();
    assert!(error.contains("rank 0, node 2") && error.contains("--round"), "{error}");
    let rounded = write_trace(&graph(&times), 0, true).expect("rounded");
    assert_eq!(rounded.changes.rounded, 3);
    let traces = [RankTrace::parse(0, &rounded.bytes).expect("trace")];
    let again = compose(&traces, &Groups::new(), false).expect("job").graph;
    let read: Vec<Span> = again
        .program(0)
        .ops()
        .filter_map(|op| match op.action {
            Action::Compute { time } => Some(time),
            Action::Send { .. } | Action::Receive { .. } => None,
        })
        .collect();
    let (ns, us) = (Span::from_ns, Span::from_us);
    assert_eq!(read, [ns(1), us(2), ns(1), ns(1), us(3)]);
}
