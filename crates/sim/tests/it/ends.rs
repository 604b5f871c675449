//! The end of the measured phase of a run that ends with its jobs.

use apus_jobs::loggops::Parameters;
use apus_jobs::{Done, Graph, Op, ProgramBuilder};
use apus_sim::Simulation;
use apus_sim::host_model::HostModel;
use apus_sim::plan::{JobPlan, LocalNetwork};
use apus_sim::record::Record;
use apus_units::{Rate, Span};

use crate::jobs::{hosts, job_of, plan_on};
use crate::support::{Plan, Topology, run, tier};

/// Rank 0 sends 1 MiB to rank 1, which then computes.
fn message_then_computation(compute: Span) -> JobPlan {
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    programs[0].push(Op::send(1, 1 << 20, 7)).expect("op");
    programs[1].push(Op::receive(0, 1 << 20, 7)).expect("op");
    programs[1].push(Op::compute(compute)).expect("op");
    programs[1].requires(1, 0);
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    JobPlan::new("job", Graph::new(programs.collect()).expect("graph"), hosts(2))
}

fn on_a_star(job: JobPlan) -> Plan {
    let star = Topology::star(2, &tier(Rate::from_gbps(100), Span::from_us(1)));
    Plan { ends_with_ops: true, ..plan_on(star, vec![job], 84) }
}

/// Returns the lengths of the measured phase and of the job, in us.
fn lengths(plan: &Plan) -> (f64, f64) {
    let summary = run(plan);
    let job = job_of(&summary).completion_us.expect("it ends");
    (summary.simulated_s * 1e6, job)
}

/// The message takes 87.5296 us (two links of 1 us at 100 Gb/s, packets of 4096 B and 64 B).
#[test]
fn a_computation_after_the_last_message_counts() {
    let compute = Span::from_us(500);
    let (measured, job) = lengths(&on_a_star(message_then_computation(compute)));
    assert!((job - 587.5296).abs() < 1e-6, "{job}");
    assert!((measured - job).abs() < 1e-6, "{measured} {job}");
}

/// Samples every 100 us, with steps of the same length: the last sample is at the end of the step in which
/// the job ends.
#[test]
fn a_sample_at_the_end_of_the_last_step_does_not_prolong_the_run() {
    let mut plan = on_a_star(message_then_computation(Span::from_us(500)));
    plan.duration = Span::from_ms(20);
    let plain = run(&plan);
    let simulation = Simulation::new(&plan).expect("a plan");
    let recorded = simulation.record(Record::of_duration(plan.duration)).expect("a recording");
    let recorded = recorded.run("test", &mut |_| {}).expect("a run");
    assert_eq!(recorded.work.event_hash, plain.work.event_hash);
    let samples = recorded.recording.expect("recorded").network.times.len();
    assert!((5..=6).contains(&samples), "{samples} samples in 587 us");
}

/// The last acknowledgement arrives after the end of the job.
#[test]
fn the_acknowledgement_of_the_last_message_counts() {
    let (measured, job) = lengths(&on_a_star(message_then_computation(Span::from_ps(1))));
    assert!(measured > job + 1.0, "{measured} {job}");
}

/// The receiver handles the message for 1 s, because G is 1 us per byte: the receive ends after L + (s-1)G
/// and o at both ends. L is longer than the time that the fabric needs for a packet.
#[test]
fn the_receive_of_a_loggops_host_counts() {
    let us = Span::from_us;
    let parameters = Parameters {
        latency: us(5),
        overhead: us(3),
        gap_per_byte: us(1),
        ..Parameters::default()
    };
    let job = JobPlan { done: Done::LogGops, ..message_then_computation(us(10)) };
    let mut plan = on_a_star(job);
    plan.duration = Span::from_secs(3);
    plan.host = HostModel { loggops: Some(parameters), ..HostModel::IDEAL };
    let (measured, job) = lengths(&plan);
    let expected = 3.0 + 5.0 + f64::from((1 << 20) - 1) + 3.0 + 10.0;
    assert!((job - expected).abs() < 1e-6, "{job} {expected}");
    assert!((measured - job).abs() < 1e-6, "{measured} {job}");
}

/// No message leaves the host.
#[test]
fn a_job_within_a_host_has_a_measured_phase() {
    let job = message_then_computation(Span::from_us(500));
    let local = Some(LocalNetwork { rate: Rate::from_gbps(400), delay: Span::from_us(1) });
    let hosts = hosts(2).map(|_| apus_units::HostId::new(0)).collect();
    let (measured, job) = lengths(&on_a_star(JobPlan { hosts, local, ..job }));
    // 8 Mibit at 400 Gb/s.
    assert!((job - (1.0 + 20.971_52 + 500.0)).abs() < 1e-6, "{job}");
    assert!((measured - job).abs() < 1e-6, "{measured} {job}");
}
