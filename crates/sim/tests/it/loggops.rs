//! Jobs on hosts of the LogGOPS model: on a faster fabric they have the times of the model, otherwise those
//! of the fabric.

use apus_jobs::loggops::{self, Parameters};
use apus_jobs::{Action, Done, Graph, Op, ProgramBuilder};
use apus_sim::host_model::HostModel;
use apus_sim::plan::JobPlan;
use apus_units::{Rate, Span, Time};

use crate::jobs::{hosts, job_of, plan_on, random_job};
use crate::support::{Plan, Simulation, Topology, fingerprint, run, tier};

fn modelled(job: JobPlan, (rate, delay): (Rate, Span), parameters: Parameters) -> Plan {
    let ranks = job.graph.ranks();
    let job = JobPlan { done: Done::LogGops, ..job };
    let mut plan = plan_on(Topology::star(ranks, &tier(rate, delay)), vec![job], 84);
    plan.host = HostModel { loggops: Some(parameters), ..HostModel::IDEAL };
    plan.ends_with_ops = true;
    plan
}

/// Returns random ranks with a host each.
fn random(seed: u64) -> JobPlan {
    let job = random_job(seed);
    let ranks = job.graph.ranks();
    JobPlan { hosts: hosts(ranks).collect(), local: None, ..job }
}

/// The fabric carries a message in a few nanoseconds. The times of the model alone are checked against
/// LogGOPSim's own results elsewhere.
#[test]
fn random_jobs_take_the_times_of_the_model_on_a_fast_fabric_for_any_threads() {
    let fast = (Rate::from_gbps(100_000), Span::from_ns(1));
    let mut stuck = 0;
    for seed in 0..300 {
        let job = random(seed);
        let eager = [0, 20_000, u64::MAX][seed as usize % 3];
        let parameters = Parameters { eager, ..Parameters::default() };
        let expected = loggops::run(&job.graph, &parameters).expect("model");
        let plan = modelled(job, fast, parameters);
        let summary = run(&plan);
        let job = job_of(&summary);
        let left = (job.unfinished, job.unexpected);
        let lost = (expected.stuck.len() as u64, expected.unexpected.len() as u64);
        assert_eq!(left, lost, "seed {seed}: {:?} {:?}", job.stuck, job.leftover);
        assert_eq!(job.done, "loggops");
        if left != (0, 0) {
            stuck += 1;
            continue;
        }
        let (time, ideal) = (job.completion_us.expect("ends"), job.ideal_us.expect("ideal"));
        assert_eq!((time * 1e6).round() as u64, expected.completion().as_ps(), "seed {seed}");
        assert!(time >= ideal - 1e-6, "seed {seed}: {time} is below {ideal}");
        let [compute, wire, delay] =
            [job.critical_compute_us, job.critical_wire_us, job.critical_delay_us]
                .map(|us| us.expect("critical path"));
        assert!(
            (compute + wire + delay - time).abs() < 1e-6,
            "seed {seed}: {compute} {wire} {delay} {time}"
        );
        if seed % 10 == 0 {
            let both = Simulation::with_threads(&plan, 2).expect("plan").in_windows();
            let both = both.run("test", &mut |_| {}).expect("run");
            assert_eq!(fingerprint(&both), fingerprint(&summary), "seed {seed}");
        }
    }
    assert!(stuck < 150, "{stuck} of 300 jobs cannot end");
}

fn pair(bytes: u64) -> JobPlan {
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    programs[0].push(Op::compute(Span::from_us(5))).expect("op");
    programs[0].push(Op::send(1, bytes, 7)).expect("op");
    programs[0].requires(1, 0);
    programs[1].push(Op::receive(0, bytes, 7)).expect("op");
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    JobPlan::new("pair", Graph::new(programs.collect()).expect("graph"), hosts(2))
}

/// A message of 1000 B holds stream 0 of its receiver from 4 us to 11.494 us (L = 2.5 us, o = 1.5 us, G = 6
/// ns). A computation of 5 us on stream 1 ends in the meantime. The receive that depends on it ends at once,
/// so the job takes 5 us and the second computation.
#[test]
fn a_receive_of_a_message_that_is_being_taken_in_does_not_wait_for_the_stream() {
    let us = Span::from_us;
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    programs[0].push(Op::send(1, 1000, 1)).expect("op");
    let ops = [Op::compute(us(5)), Op::receive(0, 1000, 1), Op::compute(us(1000))];
    for op in ops {
        programs[1].push(op.on_cpu(1)).expect("op");
    }
    programs[1].requires(1, 0);
    programs[1].requires(2, 1);
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let job = JobPlan::new("job", graph, hosts(2));
    let fast = (Rate::from_gbps(100_000), Span::from_ns(1));
    let summary = run(&modelled(job, fast, Parameters::default()));
    let job = job_of(&summary);
    let (time, ideal) = (job.completion_us.expect("ends"), job.ideal_us.expect("ideal"));
    assert!((time - 1005.0).abs() < 1e-6, "{job:?}");
    assert!(ideal <= time + 1e-6, "{job:?}");
}

/// Messages of a Chakra trace have stream 3 to themselves. The job has one stream, and its ideal time
/// includes all costs of the host.
#[test]
fn messages_on_one_stream_have_the_ideal_time_of_one_stream_whatever_its_number() {
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    programs[0].push(Op::send(1, 60_000, 0).on_cpu(3)).expect("op");
    programs[1].push(Op::receive(0, 60_000, 0).on_cpu(3)).expect("op");
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let job = JobPlan::new("job", Graph::new(programs.collect()).expect("graph"), hosts(2));
    let fast = (Rate::from_gbps(100_000), Span::from_ns(1));
    let summary = run(&modelled(job, fast, Parameters::default()));
    let job = job_of(&summary);
    let (time, ideal) = (job.completion_us.expect("ends"), job.ideal_us.expect("ideal"));
    // 2 o + L + G (s - 1) with LogGOPSim's defaults.
    assert!((time - 365.494).abs() < 1e-6, "{job:?}");
    assert!((ideal - time).abs() < 1e-6, "{job:?}");
}

/// A message of 1 MiB takes 87.5296 us on two links of 1 us at 100 Gb/s in packets of 4096 B and 64 B, and o
/// at each end; L and G are smaller. The computation before it takes 5 us.
#[test]
fn a_fabric_that_is_slower_than_the_model_sets_the_time() {
    let us = Span::from_us;
    let parameters = Parameters {
        latency: us(1),
        overhead: us(3),
        gap: Span::ZERO,
        gap_per_byte: Span::from_ps(40),
        ..Parameters::default()
    };
    let slow = (Rate::from_gbps(100), us(1));
    let summary = run(&modelled(pair(1 << 20), slow, parameters));
    let job = job_of(&summary);
    let expected = 5.0 + 3.0 + 87.5296 + 3.0;
    assert!((job.completion_us.expect("ends") - expected).abs() < 1e-6, "{job:?}");
    assert!((job.ideal_us.expect("ideal") - expected).abs() < 1e-6, "{job:?}");
    // Rank 0 computes for 5 us; rank 1 computes nothing. Both handle the message for at least 3 us.
    assert!((job.compute_us - 2.5).abs() < 1e-6, "{job:?}");
    assert!(job.send_us >= 3.0 && job.send_us + job.compute_us <= expected, "{job:?}");
}

/// With O = 10 ns per byte the streams are slower than the NIC: 2o + L + (s-1) max(O, G), after 5 us.
#[test]
fn bytes_occupy_streams() {
    let parameters = Parameters { overhead_per_byte: Span::from_ns(10), ..Parameters::default() };
    let summary =
        run(&modelled(pair(1001), (Rate::from_gbps(400), Span::from_ns(500)), parameters));
    let time = job_of(&summary).completion_us.expect("ends");
    assert!((time - (5.0 + 1.5 + 2.5 + 1.5 + 10.0)).abs() < 1e-6, "{time}");
}

#[test]
fn jobs_and_hosts_must_have_the_same_rules() {
    let fabric = (Rate::from_gbps(100), Span::from_us(1));
    let mut plan = modelled(pair(10), fabric, Parameters::default());
    plan.host.loggops = None;
    let error = |plan: &Plan| Simulation::new(plan).err().expect("refused").to_string();
    assert!(error(&plan).contains("but the hosts have another model"), "{}", error(&plan));
}

/// The receive ends after the run, or beyond the range of times.
#[test]
fn a_job_that_takes_longer_than_its_run_has_not_ended() {
    let fabric = (Rate::from_gbps(100), Span::from_us(1));
    for long in [
        Parameters { gap_per_byte: Span::from_secs(1), ..Parameters::default() },
        Parameters { gap_per_byte: Span::from_secs(1_000_000), ..Parameters::default() },
        Parameters { latency: Span::MAX, ..Parameters::default() },
    ] {
        let summary = run(&modelled(pair(1 << 10), fabric, long));
        let job = job_of(&summary);
        assert_eq!((job.completion_us, job.unfinished), (None, 1), "{job:?}");
        assert_eq!(job.critical_steps, None, "{job:?}");
        assert!(job.iterations_us.is_empty(), "{job:?}");
        assert!(job.stuck.len() == 1 && job.stuck[0].ends_with(": started"), "{job:?}");
    }
}

/// A message to the rank itself takes no time on a fabric. A chain of four ranks with computations therefore
/// has the times of the model, and 87.5296 us (see above) for each of its three messages of 1 MiB.
#[test]
fn without_times_of_the_model_hosts_add_nothing_to_the_fabric() {
    let none = Span::ZERO;
    let zero = Parameters {
        latency: none,
        overhead: none,
        overhead_per_byte: none,
        gap: none,
        gap_per_byte: none,
        eager: 1 << 10,
    };
    let program = |rank: u32| {
        let mut program = ProgramBuilder::new(rank, 4);
        let mut ops = Vec::new();
        if rank > 0 {
            ops.push(Op::receive(rank - 1, 1 << 20, 7));
        }
        ops.push(Op::compute(Span::from_us(5 + u64::from(rank))));
        ops.extend([Op::send(rank, 1 << 20, 8), Op::receive(rank, 1 << 20, 8)]);
        if rank < 3 {
            ops.push(Op::send(rank + 1, 1 << 20, 7));
        }
        // The message to itself is larger than S, so its send does not end before its receive.
        for op in ops {
            let own_receive = matches!(op.action, Action::Receive { from, .. } if from == rank);
            let number = program.push(op).expect("op");
            match number {
                0 => {}
                _ if own_receive => program.irequires(number, number - 1),
                _ => program.requires(number, number - 1),
            }
        }
        program.finish().expect("program")
    };
    let graph = Graph::new((0..4).map(program).collect()).expect("graph");
    let model = loggops::run(&graph, &zero).expect("model");
    assert_eq!(model.completion(), Time::ZERO + Span::from_us(5 + 6 + 7 + 8));
    let job = JobPlan::new("chain", graph, hosts(4));
    let summary = run(&modelled(job, (Rate::from_gbps(100), Span::from_us(1)), zero));
    let job = job_of(&summary);
    let expected = model.completion().since(Time::ZERO).as_us_f64() + 3.0 * 87.5296;
    let found = job.completion_us.expect("ends");
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

/// Whether the message or the receive comes first, a send waits according to the size of its own message.
#[test]
fn a_receive_of_another_size_ends_once() {
    for (bytes, expected) in [(10, 100_000), (70_000, 10)] {
        for late in [Span::ZERO, Span::from_ms(1)] {
            let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
            programs[0].push(Op::send(1, bytes, 7)).expect("op");
            programs[1].push(Op::compute(late)).expect("op");
            programs[1].push(Op::receive(0, expected, 7)).expect("op");
            programs[1].requires(1, 0);
            let programs = programs.into_iter().map(|program| program.finish().expect("program"));
            let graph = Graph::new(programs.collect()).expect("graph");
            let job = JobPlan::new("pair", graph, hosts(2));
            let fabric = (Rate::from_gbps(100), Span::from_us(1));
            let summary = run(&modelled(job, fabric, Parameters::default()));
            let job = job_of(&summary);
            assert_eq!((job.unfinished, job.unexpected), (0, 0), "{bytes} B, {late}: {job:?}");
            assert!(job.completion_us.is_some_and(|us| us >= late.as_us_f64()), "{job:?}");
        }
    }
}
