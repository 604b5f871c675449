//! Several workloads in one run are always measured separately, and a trace from its first message.

use crate::support::{assert_reads_back, good, read};
use apus_scenario::Simulation;
use apus_sim::bounds::Bounds;
use apus_sim::groups::{Common, Share};
use apus_sim::summary::Summary;

const HEAD: &str = "duration = \"2ms\"\ntopology = \"star hosts=5 100Gbps 1us\"\n";

fn run(text: &str) -> Summary {
    let scenario = good(&format!("{HEAD}{text}"));
    assert_reads_back(&scenario);
    let plan = scenario.runs[0].setup.plan().expect("plan");
    Simulation::new(&plan).expect("plan").run("groups", &mut |_| {}).expect("run")
}

/// The groups make up the whole run.
#[track_caller]
fn assert_adds_up(summary: &Summary) {
    let sum =
        |of: fn(&Share) -> f64| summary.groups.iter().map(|group| of(&group.share)).sum::<f64>();
    assert!((sum(|share| share.goodput_share.expect("goodput")) - 1.0).abs() < 1e-9);
    assert!((sum(|share| share.goodput_gbps) - summary.goodput_gbps).abs() < 1e-9);
    let ops: u64 = summary.groups.iter().map(|group| group.share.ops).sum();
    let unfinished: u64 = summary.groups.iter().map(|group| group.share.unfinished_ops).sum();
    assert_eq!((ops, unfinished), (summary.measured.ops, summary.measured.unfinished_ops));
}

/// Compares the total of two groups with sums calculated here.
#[track_caller]
fn assert_total(summary: &Summary, by: Common, name: &str, groups: &[usize]) {
    let total = summary.totals.iter().find(|total| (total.by, total.name.as_str()) == (by, name));
    let total = total.unwrap_or_else(|| panic!("{name}: {:?}", summary.totals));
    let own = || groups.iter().map(|&index| &summary.groups[index].share);
    assert_eq!(total.groups, groups.len() as u64);
    assert_eq!(total.share.ops, own().map(|share| share.ops).sum::<u64>());
    assert_eq!(total.share.unfinished_ops, own().map(|share| share.unfinished_ops).sum::<u64>());
    let goodput: f64 = own().map(|share| share.goodput_gbps).sum();
    assert!((total.share.goodput_gbps - goodput).abs() < 1e-9, "{total:?}");
    let share = goodput / summary.goodput_gbps;
    assert!((total.share.goodput_share.expect("goodput") - share).abs() < 1e-9, "{total:?}");
}

/// Incasts of one sender each, by algorithm, class and more lines.
fn incasts(workloads: &[(&str, &str, &str)]) -> String {
    let mut text = "duration = \"1ms\"\n[algorithm.swift]\n[algorithm.cubic]\n\
         [topology]\nkind = \"star\"\nhosts = 7\nrate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"1MB\"\n\
         [[topology.class]]\nname = \"gold\"\n[[topology.class]]\nname = \"bulk\"\npriority = 1\n"
        .to_owned();
    for (sender, (algorithm, class, more)) in workloads.iter().enumerate() {
        text += &format!(
            "[[workload]]\nkind = \"incast\"\nsenders = [{sender}]\nalgorithm = \"{algorithm}\"\n\
             class = \"{class}\"\n{more}\n"
        );
    }
    text
}

/// Two of three workloads share an algorithm, another two a class: both pairs have totals, and no other pair
/// has. An op of 1 GB takes 80 ms and has not ended after 1 ms.
#[test]
fn workloads_that_share_an_algorithm_or_a_class_have_a_total() {
    let text = incasts(&[
        ("swift", "gold", "size = \"64kB\""),
        ("swift", "bulk", "size = \"64kB\""),
        ("cubic", "bulk", "size = \"1GB\""),
    ]);
    let summary = run_whole(&text, false);
    assert_adds_up(&summary);
    assert_eq!(summary.totals.len(), 2, "{:?}", summary.totals);
    assert_total(&summary, Common::Algorithm, "swift", &[0, 1]);
    assert_total(&summary, Common::Class, "bulk", &[1, 2]);
    let long = &summary.groups[2];
    assert_eq!((long.share.ops, long.share.unfinished_ops), (0, 1));
    assert!(long.share.oldest_unfinished_us >= 1000.0, "{long:?}");
    let latency = summary.times_of_group(long).op_latency_us.expect("measured");
    assert_eq!((latency.p50, latency.unfinished()), (None, 1));
}

/// Workloads of one name are measured together: ops and goodput are reported per workload,
/// latencies per name.
#[test]
fn workloads_of_one_name_with_two_algorithms_are_two_groups() {
    let named = "size = \"64kB\"\nname = \"web\"";
    let text = incasts(&[("swift", "gold", named), ("cubic", "bulk", named)]);
    let summary = run_whole(&text, false);
    assert_adds_up(&summary);
    assert_total(&summary, Common::Workload, "web", &[0, 1]);
    let web = &summary.workload["web"];
    let ops = |index: usize| summary.groups[index].share.ops;
    assert!(ops(0) > 0 && ops(1) > 0 && ops(0) + ops(1) == web.ops, "{:?}", summary.groups);
    assert!(summary.times_of_group(&summary.groups[0]).op_latency_us.is_none());
    assert!(summary.times_of("web").op_latency_us.is_some_and(|d| d.count >= web.ops));
}

/// 65 workloads without names have ops and goodput but no separate latencies, and their algorithms
/// have totals.
#[test]
fn many_unnamed_workloads_have_shares_and_totals() {
    let mut text = format!("{HEAD}[algorithm.swift]\n[algorithm.cubic]\n");
    for index in 0..65 {
        let algorithm = if index < 40 { "swift" } else { "cubic" };
        let sender = index % 4;
        text += &format!(
            "[[workload]]\nkind = \"incast\"\nsenders = [{sender}]\nsize = \"16kB\"\nalgorithm = \
             \"{algorithm}\"\n"
        );
    }
    let summary = run_whole(&text, false);
    assert!(summary.workload.is_empty());
    assert_eq!(summary.groups.len(), 65);
    assert_adds_up(&summary);
    assert_total(&summary, Common::Algorithm, "swift", &(0..40).collect::<Vec<_>>());
    assert_total(&summary, Common::Algorithm, "cubic", &(40..65).collect::<Vec<_>>());
    assert!(summary.times_of_group(&summary.groups[0]).op_latency_us.is_none());
}

/// Two algorithms to one receiver, without names: each has separate goodput, ops, latency and
/// slowdown, and the shares add up to the whole.
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
    for group in &summary.groups {
        let (own, share) = (&summary.workload[&group.workload], &group.share);
        assert_eq!((share.ops, share.unfinished_ops), (own.ops, own.op_latency_us.unfinished()));
        assert!((share.goodput_gbps - own.goodput_gbps).abs() < 1e-9, "{group:?}");
    }
    assert_adds_up(&summary);
    assert!(summary.totals.is_empty(), "{:?}", summary.totals);
}

/// A single workload is the whole run: it has no separate accumulators.
#[test]
fn one_unnamed_workload_is_not_measured_twice() {
    let algorithm = "algorithm = { name = \"swift\" }\n";
    let summary = run(&format!(
        "{algorithm}[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\nstop = \"100us\"\n\
         every = \"500us\"\n"
    ));
    assert!(summary.workload.is_empty(), "{:?}", summary.workload.keys());
    let [group] = &summary.groups[..] else { panic!("{:?}", summary.groups) };
    assert_adds_up(&summary);
    let times = summary.times_of_group(group);
    assert_eq!(times.op_latency_us.and_then(|d| d.p99), summary.op_latency_us.p99);
    assert!(times.slowdown.is_none());
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

/// A trace that starts at 2 s in a run of 2.002 s: 200 kB in the 2 ms from its first message are 0.8 Gb/s, and
/// all samples are in that time.
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
    // A setting of the scenario takes precedence.
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

/// Two messages of 100 kB from 1000 us: the rate is 1.6 Mbit over the makespan, not over the rest of
/// `duration`.
#[test]
fn a_trace_that_ends_with_its_ops_is_measured_to_the_last_end() {
    let rows = messages("1000,0,1,100000\n1100,2,3,100000\n");
    let whole = run_whole(&format!("duration = \"12ms\"\n{rows}"), false);
    let text = format!("duration = \"12ms\"\nends_with_ops = true\n{rows}");
    let summary = run_whole(&text, false);
    let makespan = summary.makespan_us.expect("all have ended");
    // 100 kB take at least 8 us at 100 Gb/s, and two links of 1 us in each direction.
    assert!((112.0..150.0).contains(&makespan), "{makespan}");
    assert_eq!((whole.makespan_us, whole.makespan_lower_us), (Some(makespan), Some(makespan)));
    assert_eq!(whole.measured.seconds, 0.011);
    assert!((summary.measured.seconds * 1e6 - makespan).abs() < 1e-6, "{summary:?}");
    assert!((summary.goodput_gbps * makespan - 1600.0).abs() < 1e-6, "{}", summary.goodput_gbps);
    assert!((summary.simulated_s * 1e6 - 1000.0 - makespan).abs() < 1e-6);
    assert_eq!((summary.interrupted, summary.drain.seconds), (false, 0.0));
    // Samples during the run have no effect.
    let recorded = run_whole(&text, true);
    assert_eq!(recorded.work.event_hash, summary.work.event_hash);
    assert_eq!(recorded.goodput_gbps, summary.goodput_gbps);
    assert_eq!(recorded.recording.as_ref().map(|r| r.ops.len()), Some(2));
}

/// 1 GB takes 80 ms. The run ends earlier: after 2 ms and the drain of 1 ms, less the start at 0.5 ms.
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

/// An op that ends in the drain ends the makespan: 1 MB takes at least 80 us, the measured phase 50 us. The
/// drain waits for the op, whether or not another message ends in the measured phase, and also if the op was
/// submitted in the warm-up.
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

/// Without a last op the end of the run is not the end of an op, and there is no makespan.
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
