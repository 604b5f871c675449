//! Several workloads in one run are always measured each by itself, and a trace from its first message on.

mod support;

use apus_sim::Simulation;
use apus_sim::summary::Summary;
use support::scenario::{assert_reads_back, good};

const HEAD: &str = "duration = \"2ms\"\ntopology = \"star hosts=5 100Gbps 1us\"\n";

fn run(text: &str) -> Summary {
    let scenario = good(&format!("{HEAD}{text}"));
    assert_reads_back(&scenario);
    let plan = scenario.runs[0].setup.plan().expect("plan");
    Simulation::new(&plan).expect("plan").run("groups", &mut |_| {}).expect("run")
}

/// Two algorithms to one receiver, without names: each has its own goodput, ops, latency and slowdown, and
/// the shares make up the whole.
#[test]
fn two_unnamed_workloads_are_reported_side_by_side() {
    let summary = run("[algorithm.swift]\n[algorithm.cubic]\n\
         [[workload]]\nkind = \"incast\"\nsenders = [0, 1]\nsize = \"64kB\"\n\
         algorithm = \"swift\"\n\
         [[workload]]\nkind = \"incast\"\nsenders = [2, 3]\nsize = \"64kB\"\n\
         algorithm = \"cubic\"\n");
    let names: Vec<&str> = summary.workload.keys().map(String::as_str).collect();
    assert_eq!(names, ["incast-0", "incast-1"]);
    for workload in summary.workload.values() {
        assert!(workload.ops > 0 && workload.goodput_gbps > 0.0, "{workload:?}");
        assert!(workload.op_latency_us.p99.is_some() && workload.slowdown.p99.is_some());
    }
    let ops: u64 = summary.workload.values().map(|workload| workload.ops).sum();
    assert_eq!(ops, summary.measured.ops);
    let groups: Vec<(&str, &str)> =
        summary.groups.iter().map(|g| (g.workload.as_str(), g.algorithm.as_str())).collect();
    assert_eq!(groups, [("incast-0", "swift"), ("incast-1", "cubic")]);
    let shares: f64 = summary.groups.iter().filter_map(|group| group.goodput_share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

/// One workload is the whole run: it has no accumulators of its own.
#[test]
fn one_unnamed_workload_is_not_measured_twice() {
    let algorithm = "algorithm = { name = \"swift\" }\n";
    let summary = run(&format!(
        "{algorithm}[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\nstop = \"100us\"\n\
         every = \"500us\"\n"
    ));
    assert!(summary.workload.is_empty(), "{:?}", summary.workload.keys());
    assert_eq!(summary.groups.len(), 1);
}

/// A derived name never takes that of another workload.
#[test]
fn a_derived_name_differs_from_all_given_names() {
    let algorithm = "algorithm = { name = \"swift\" }\n";
    let one = |more: &str| format!("[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n{more}");
    let summary = run(&format!("{algorithm}{}{}", one("name = \"incast\"\n"), one("")));
    let names: Vec<&str> = summary.workload.keys().map(String::as_str).collect();
    assert_eq!(names, ["incast", "incast-unnamed"]);
}

/// A trace that starts at 2 s in a run of 2.002 s: 200 kB in the 2 ms from its first message on are 0.8 Gb/s,
/// and all samples lie in that time.
#[test]
fn a_trace_is_measured_from_its_first_message_on() {
    let text = "topology = \"star hosts=5 100Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
                [[workload]]\nkind = \"trace\"\nflows = \"\"\"\nstart_us,from,to,bytes\n\
                2000000,0,1,100000\n2001000,2,3,100000\n\"\"\"\n";
    let setup = |head: &str| good(&format!("{head}{text}")).runs[0].setup.clone().recorded(true);
    let run = |head: &str| {
        let setup = setup(head);
        let simulation = Simulation::new(&setup.plan().expect("plan")).expect("plan");
        let simulation = simulation.record(setup.record().expect("recorded")).expect("record");
        simulation.run("trace", &mut |_| {}).expect("run")
    };
    let summary = run("duration = \"2002ms\"\n");
    assert!((summary.measured.seconds - 0.002).abs() < 1e-12, "{}", summary.measured.seconds);
    assert!((summary.goodput_gbps - 0.8).abs() < 1e-9, "{}", summary.goodput_gbps);
    let times = &summary.recording.as_ref().expect("recorded").times;
    assert_eq!(times.len(), 200);
    assert!(times[0].as_ps() > 2_000_000_000_000, "{}", times[0]);
    // What the scenario says counts.
    let explicit = run("duration = \"2002ms\"\nwarmup = \"1s\"\n");
    assert!((explicit.measured.seconds - 1.002).abs() < 1e-9, "{}", explicit.measured.seconds);
}
