//! Results of jobs: the critical path, parts, and the table of operations.

use apus_jobs::collectives::training::{MODELS, Training};
use apus_jobs::collectives::{Algorithm, Collective};
use apus_jobs::{Graph, Op, ProgramBuilder};
use apus_sim::plan::{JobPlan, LocalNetwork};
use apus_sim::record::Record;
use apus_units::{HostId, Rate, Span};

use crate::jobs::{collective, hosts, job_of, near, star};
use crate::support::{Simulation, run};

/// The chain that determines the end of a ring has 14 messages, one after the other, each of 87.5296 us
/// without other traffic.
#[test]
fn the_critical_path_of_a_ring_is_its_messages_one_after_the_other() {
    let summary = run(&star(collective(Algorithm::RingAllReduce, 8, 8 << 20), 8, 0));
    let job = job_of(&summary);
    assert!(near(job.critical_wire_us.expect("path"), 1225.4144), "{job:?}");
    assert!(near(job.critical_delay_us.expect("path"), 0.0));
    assert_eq!(job.critical_messages.len(), 14);
    for message in &job.critical_messages {
        assert_eq!(message.to, (message.from + 1) % 8);
        assert!(near(message.end_us - message.start_us, 87.5296), "{message:?}");
    }
}

/// Computations of a stream run one after the other, independent of their dependencies.
#[test]
fn the_computations_of_the_busiest_stream_are_a_lower_bound() {
    let us = Span::from_us;
    let mut program = ProgramBuilder::new(0, 1);
    for (time, cpu) in [(3, 0), (4, 0), (5, 1)] {
        program.push(Op::compute(us(time)).on_cpu(cpu)).expect("op");
    }
    let graph = Graph::new(vec![program.finish().expect("program")]).expect("graph");
    let summary = run(&star(JobPlan::new("compute", graph, hosts(1)), 2, 0));
    let job = job_of(&summary);
    assert!(near(job.ideal_us.expect("ideal"), 7.0), "{job:?}");
    assert_eq!(job.ideal_source, Some("computations of the busiest stream"));
    assert!(near(job.slowdown.expect("slowdown"), 1.0), "{job:?}");
}

/// Each of four ranks of a host sends 1 MiB to every other rank: three times 20.97152 us at 400 Gb/s, and a
/// delay of 1 us.
#[test]
fn the_bytes_of_the_busiest_rank_within_its_host_are_a_lower_bound() {
    let job = collective(Algorithm::AllToAllDirect, 4, 4 << 20);
    let local = Some(LocalNetwork { rate: Rate::from_gbps(400), delay: Span::from_us(1) });
    let hosts = (0..4).map(|_| HostId::new(0)).collect();
    let summary = run(&star(JobPlan { hosts, local, ..job }, 2, 0));
    let job = job_of(&summary);
    assert!(near(job.ideal_us.expect("ideal"), 3.0 * 20.971_52), "{job:?}");
    assert_eq!(job.ideal_source, Some("bytes of the busiest rank within its host"));
    assert!(near(job.completion_us.expect("ends"), 3.0 * 20.971_52 + 1.0), "{job:?}");
}

/// Ranks 1 and 2 send 1 MiB each to rank 0 at the same time. The link of rank 0 delays both: one message
/// alone takes 87.5296 us, and the other one has 1 MiB with 256 headers, 85.1968 us at 100 Gb/s. Rank 0
/// computes for 3 us when both have arrived.
#[test]
fn a_message_that_is_held_up_is_named_with_the_link_that_did_it() {
    let mut programs: Vec<_> = (0..3).map(|rank| ProgramBuilder::new(rank, 3)).collect();
    for from in [1, 2] {
        programs[from as usize].push(Op::send(0, 1 << 20, from)).expect("op");
        programs[0].push(Op::receive(from, 1 << 20, from)).expect("op");
    }
    let last = programs[0].push(Op::compute(Span::from_us(3))).expect("op");
    (0..2).for_each(|receive| programs[0].requires(last, receive));
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let plan = star(JobPlan::new("incast", graph, hosts(3)), 3, 0);
    let summary = run(&plan);
    let job = job_of(&summary);
    assert!(near(job.completion_us.expect("ends"), 87.5296 + 85.1968 + 3.0), "{job:?}");
    assert!(near(job.critical_compute_us.expect("path"), 3.0));
    assert!(near(job.critical_wire_us.expect("path"), 87.5296));
    assert!(near(job.critical_delay_us.expect("path"), 85.1968));
    let [message] = &job.critical_messages[..] else { panic!("{:?}", job.critical_messages) };
    assert_eq!((message.to, message.bytes), (0, 1 << 20));
    assert_eq!(message.link.as_deref(), Some("switch 0 -> host 0"));
}

/// Each of three iterations is a part: two ranks exchange a packet in 2.6656 us after 5 us of computation.
#[test]
fn parts_have_the_time_from_their_first_send_to_their_last_receive() {
    let mut collective = Collective::new(Algorithm::AllToAllDirect, 2, 2 * 4096);
    (collective.iterations, collective.compute) = (3, Span::from_us(5));
    let job = JobPlan::new("steps", collective.graph().expect("graph"), hosts(2));
    let summary = run(&star(job, 2, 0));
    let [part] = &job_of(&summary).parts[..] else { panic!("{summary:?}") };
    assert_eq!(
        (part.name, part.count, part.unfinished, part.bytes),
        ("all-to-all", 3, 0, 3 * 8192)
    );
    assert!(near(part.mean_us, 2.6656) && near(part.max_us, 2.6656), "{part:?}");
    assert!(near(part.first_us, 5.0) && near(part.last_us, 3.0 * 7.6656), "{part:?}");
}

/// The operations of a packet from rank 0 to rank 1 after 5 us: 2.6656 us for two links.
#[test]
fn the_table_of_operations_has_peers_sizes_and_times_and_a_note_of_what_it_omits() {
    let mut collective = Collective::new(Algorithm::BroadcastBinomial, 2, 4096);
    collective.compute = Span::from_us(5);
    let plan = star(JobPlan::new("pair", collective.graph().expect("graph"), hosts(2)), 2, 0);
    let rows = |ops: u64| {
        let record = Record { ops, ..Record::of_duration(plan.duration) };
        let simulation = Simulation::new(&plan).expect("plan").record(record).expect("record");
        let summary = simulation.run("test", &mut |_| {}).expect("run");
        let recording = summary.recording.clone().expect("recorded");
        (recording.job_op_rows().collect::<Vec<_>>(), summary.notes)
    };
    let (all, _) = rows(100);
    let cells: Vec<_> = all
        .iter()
        .map(|row| (row.rank, row.op, row.label.as_deref(), row.kind, row.peer, row.bytes))
        .collect();
    let part = Some("broadcast");
    assert_eq!(
        cells,
        [
            (0, 0, None, "compute", None, None),
            (0, 1, part, "send", Some(1), Some(4096)),
            (1, 0, None, "compute", None, None),
            (1, 1, part, "receive", Some(0), Some(4096)),
        ]
    );
    let times = |row: usize| (all[row].start_us.expect("start"), all[row].end_us.expect("end"));
    let ((start, _), (posted, end)) = (times(1), times(3));
    assert!(near(start, 5.0) && near(posted, 5.0) && near(end, 7.6656), "{all:?}");
    assert!(all.iter().all(|row| row.job == "pair"));
    let (some, notes) = rows(3);
    assert_eq!(some.len(), 3);
    assert!(
        notes.iter().any(|note| note.contains("job_ops.csv holds 3 of the 4 operations")),
        "{notes:?}"
    );
}

/// A step of two copies of a small model ends at the same time in the simulator as in the model without a
/// fabric, if packets never delay each other. The last part is the gradients of the first layer.
#[test]
fn a_training_step_ends_with_the_gradients_of_its_first_layer() {
    let mut model = MODELS[0];
    (model.layers, model.hidden, model.feed_forward) = (2, 64, 128);
    (model.vocabulary, model.sequence) = (0, 16);
    let step = Training {
        model,
        tp: 1,
        pp: 1,
        dp: 2,
        ep: 1,
        micro_batch: 1,
        micro_batches: 2,
        element: 2,
        flops: 1e11,
        gradients: Algorithm::RingAllReduce,
        overlap: true,
        iterations: 1,
    };
    let graph = step.graph().expect("graph");
    let summary = run(&star(JobPlan::new("step", graph, hosts(2)), 2, 0));
    let job = job_of(&summary);
    let [part] = &job.parts[..] else { panic!("{:?}", job.parts) };
    assert_eq!((part.name, part.count, part.unfinished), ("gradients", 2, 0));
    // 4 h^2 + 3 h f parameters of 2 B; each of two messages is half of them: 10 packets of 4096 B.
    let bytes = 2 * (4 * 64 * 64 + 3 * 64 * 128);
    assert_eq!(part.bytes, 2 * bytes);
    let message = 2.0 + (bytes as f64 / 2.0 + 10.0 * 64.0) * 8e-5 + 0.3328;
    assert!(near(part.max_us, 2.0 * message), "{} {}", part.max_us, message);
    assert!(near(part.last_us, job.completion_us.expect("ends")));
}
