//! Several workloads in one run are always measured each by itself, and a trace from its first message on.

mod support;

use apus_sim::Simulation;
use apus_sim::bounds::Bounds;
use apus_sim::summary::Summary;
use support::scenario::{assert_reads_back, good, read};

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

fn messages(rows: &str) -> String {
    format!(
        "topology = \"star hosts=5 100Gbps 1us\"\nalgorithm = {{ name = \"swift\" }}\n\
         [[workload]]\nkind = \"trace\"\nflows = \"\"\"\nstart_us,from,to,bytes\n{rows}\"\"\"\n"
    )
}

fn run_whole(text: &str, recorded: bool) -> Summary {
    let scenario = good(text);
    assert_reads_back(&scenario);
    let setup = scenario.runs[0].setup.clone().recorded(recorded);
    let mut simulation = Simulation::new(&setup.plan().expect("plan")).expect("plan");
    if let Some(record) = setup.record() {
        simulation = simulation.record(record).expect("record");
    }
    simulation.run("trace", &mut |_| {}).expect("run")
}

/// Two messages of 100 kB from 1000 us on: the rate is 1.6 Mbit over the makespan, not over the rest of
/// `duration`.
#[test]
fn a_trace_that_ends_with_its_ops_is_measured_to_the_last_end() {
    let rows = messages("1000,0,1,100000\n1100,2,3,100000\n");
    let whole = run_whole(&format!("duration = \"12ms\"\n{rows}"), false);
    let text = format!("duration = \"12ms\"\nends_with_ops = true\n{rows}");
    let summary = run_whole(&text, false);
    let makespan = summary.makespan_us.expect("all have ended");
    // 100 kB take at least 8 us at 100 Gb/s and two links of 1 us there and back.
    assert!((112.0..150.0).contains(&makespan), "{makespan}");
    assert_eq!((whole.makespan_us, whole.makespan_lower_us), (Some(makespan), Some(makespan)));
    assert_eq!(whole.measured.seconds, 0.011);
    assert!((summary.measured.seconds * 1e6 - makespan).abs() < 1e-6, "{summary:?}");
    assert!((summary.goodput_gbps * makespan - 1600.0).abs() < 1e-6, "{}", summary.goodput_gbps);
    assert!((summary.simulated_s * 1e6 - 1000.0 - makespan).abs() < 1e-6);
    assert_eq!((summary.interrupted, summary.drain.seconds), (false, 0.0));
    // Samples on the way change nothing.
    let recorded = run_whole(&text, true);
    assert_eq!(recorded.work.event_hash, summary.work.event_hash);
    assert_eq!(recorded.goodput_gbps, summary.goodput_gbps);
    assert_eq!(recorded.recording.as_ref().map(|r| r.ops.len()), Some(2));
}

/// 1 GB takes 80 ms: the run ends before, 2 ms and the drain of 1 ms less the start at 0.5 ms.
#[test]
fn a_makespan_with_an_unfinished_op_has_a_lower_bound() {
    let rows = messages("500,0,1,1000000000\n600,2,3,1000\n");
    let head = "duration = \"2ms\"\ndrain = \"1ms\"\nends_with_ops = true\n";
    let summary = run_whole(&format!("{head}{rows}"), false);
    assert_eq!(summary.makespan_us, None);
    assert_eq!(summary.makespan_lower_us, Some(2500.0));
    let json = serde_json::to_value(&summary).expect("JSON");
    let bounds = Bounds::of_metric(&json, "makespan_us").expect("bounds");
    assert_eq!((bounds.lower, bounds.upper), (2500.0, f64::INFINITY));
    assert!((summary.measured.seconds - 0.0015).abs() < 1e-12, "{}", summary.measured.seconds);
}

/// An op that ends in the drain ends the makespan: 1 MB takes at least 80 us, the measured phase 50 us.
/// The drain waits for it, whether or not another message ends in the measured phase, and also if it
/// was submitted in the warm-up.
#[test]
fn a_makespan_includes_the_drain() {
    for (warmup, more) in [("0us", "0,2,3,1000\n"), ("0us", ""), ("20us", "")] {
        let rows = messages(&format!("0,0,1,1000000\n{more}"));
        let head = format!("duration = \"50us\"\nwarmup = \"{warmup}\"\ndrain = \"1ms\"\n");
        let summary = run_whole(&(head + &rows), false);
        let makespan = summary.makespan_us.expect("ended in the drain");
        assert!((84.0..500.0).contains(&makespan), "{warmup} {more}: {makespan}");
        assert_eq!(summary.drain.ended_by, "complete");
        let measured = if warmup == "0us" { 50e-6 } else { 30e-6 };
        let seconds = summary.measured.seconds;
        assert!((seconds - measured).abs() < 1e-12, "{seconds}");
    }
}

/// Without a last op nothing ends with it, and there is no makespan.
#[test]
fn only_traces_end_with_their_ops() {
    let text = format!(
        "{HEAD}ends_with_ops = true\nalgorithm = {{ name = \"swift\" }}\n\
         [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n"
    );
    let error = read(&text).expect_err("a closed loop").to_string();
    assert!(error.contains("ends_with_ops") && error.contains("trace"), "{error}");
    let closed = run_whole(&text.replace("ends_with_ops = true\n", ""), false);
    assert_eq!((closed.makespan_us, closed.makespan_lower_us), (None, None));
}
