//! `every` of a workload, and `ecn` with a ramp: the resulting plans, and refused settings.

use crate::support::{assert_reads_back, good, read};
use apus_algorithms::BuiltInSwitch;
use apus_scenario::{ConnectionPlan, Plan};

const HEAD: &str = "duration = \"2ms\"\nalgorithm = { name = \"swift\" }\n\
    topology = \"star hosts=5 100Gbps 1us\"\n";

fn plan(text: &str) -> Plan {
    let scenario = good(text);
    assert_reads_back(&scenario);
    scenario.runs[0].setup.plan().expect("plan")
}

fn problem(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

/// A workload with `every` equals a table per burst, to the picosecond of each start.
#[test]
fn every_is_a_table_per_burst() {
    let burst = |start: &str, stop: &str, more: &str| {
        format!(
            "[[workload]]\nname = \"bursts\"\nkind = \"incast\"\nsize = \"16kB\"\nflows_per_pair = 2\n\
             start = \"{start}\"\nstart_spread = \"50us\"\nstop = \"{stop}\"\n{more}"
        )
    };
    let other = "[[workload]]\nkind = \"poisson\"\nload = 0.1\nsize = \"1kB\"\n";
    let one = format!("{HEAD}{other}{}{other}", burst("100us", "180us", "every = \"600us\"\n"));
    // The fourth burst starts at 1.9 ms and ends at 1.98 ms; a fifth one would be beyond the end.
    let bursts =
        [("100us", "180us"), ("700us", "780us"), ("1300us", "1380us"), ("1900us", "1980us")];
    let tables: String = bursts.iter().map(|(start, stop)| burst(start, stop, "")).collect();
    let many = format!("{HEAD}{other}{tables}{other}");
    let connections = |plan: Plan| -> Vec<ConnectionPlan> { plan.connections };
    let (one, many) = (connections(plan(&one)), connections(plan(&many)));
    assert!(one.len() > 4 * 8, "{}", one.len());
    assert_eq!(format!("{one:?}"), format!("{many:?}"));
}

#[test]
fn the_last_burst_may_have_its_stop_behind_the_end() {
    let text = format!(
        "{HEAD}[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\nstart = \"900us\"\nstop = \"1100us\"\n\
         every = \"1ms\"\n"
    );
    let plan = plan(&text);
    let stops: Vec<u64> = plan.connections.iter().map(|c| c.stop.as_ps()).collect();
    assert_eq!(stops.len(), 8);
    assert!(stops[..4].iter().all(|&stop| stop == 1_100_000_000));
    assert!(stops[4..].iter().all(|&stop| stop == u64::MAX), "the run's own end");
}

#[test]
fn flows_of_a_list_repeat_with_their_own_times() {
    let text = format!(
        "{HEAD}[[workload]]\nkind = \"flows\"\nsize = \"1kB\"\nstop = \"300us\"\nevery = \"1ms\"\n\
         [[workload.flow]]\nfrom = 0\nto = 1\nstart = \"7us\"\nstop = \"9us\"\n"
    );
    let plan = plan(&text);
    let times: Vec<_> =
        plan.connections.iter().map(|c| (c.start.as_ps(), c.stop.as_ps())).collect();
    assert_eq!(times, [(7_000_000, 9_000_000), (1_007_000_000, 1_009_000_000)]);
}

#[test]
fn bursts_that_make_no_sense_are_refused() {
    let with = |keys: &str| {
        problem(&format!("{HEAD}[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n{keys}\n"))
    };
    let text = with("every = \"1ms\"");
    assert!(text.contains("`workload.every` needs `stop`"), "{text}");
    let text = with("stop = \"500us\"\nevery = \"400us\"");
    assert!(text.contains("must not be shorter"), "{text}");
    let text = with("stop = \"500us\"\nevery = \"2ms\"");
    assert!(text.contains("no effect") && text.contains("second burst"), "{text}");
    let text = with("stop = \"1ns\"\nevery = \"1ns\"");
    assert!(text.contains("more than 10000 bursts"), "{text}");
}

fn with_ecn(ecn: &str) -> String {
    format!(
        "duration = \"2ms\"\nalgorithm = {{ name = \"dctcp\" }}\n\
         topology = {{ kind = \"star\", hosts = 5, rate = \"100Gbps\", delay = \"1us\", buffer = \"1MB\", \
         ecn = {{ {ecn} }} }}\n[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n"
    )
}

/// A ramp may mark packets of any algorithm, with separate random numbers for each port.
#[test]
fn marks_by_chance_are_for_every_algorithm() {
    let plan = plan(&with_ecn("k_min = \"5kB\", k_max = \"200kB\", p_max = 0.01"));
    let halves: Vec<String> = plan
        .topology
        .links
        .iter()
        .flat_map(|link| [&link.ab, &link.ba])
        .filter_map(|port| match &port.classes[0].algorithm {
            BuiltInSwitch::Plain => None,
            half @ BuiltInSwitch::Ramp(_) => Some(format!("{half:?}")),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(halves.len(), 5, "ports of the switch only");
    assert!(halves[0].contains("k_min: 5kB, k_max: 200kB, p_max: 0.01"), "{}", halves[0]);
    assert!(halves.iter().all(|half| halves.iter().filter(|other| *other == half).count() == 1));
}

#[test]
fn ramps_that_make_no_sense_are_refused() {
    let text = problem(&with_ecn("k_min = \"9kB\", k_max = \"5kB\", p_max = 0.01"));
    assert!(text.contains("k_max") && text.contains("below `k_min`"), "{text}");
    let text = problem(&with_ecn("k_min = \"1kB\", k_max = \"5kB\", p_max = 0.0"));
    assert!(text.contains("p_max") && text.contains("above 0"), "{text}");
    let text = problem(&with_ecn("k_min = \"1kB\", k_max = \"5kB\""));
    assert!(text.contains("p_max"), "{text}");
}

/// Bolt App. B.2: flows of high and of low priority in one queue, with the same switch half.
#[test]
fn algorithms_may_share_a_class_if_their_switch_halves_are_the_same() {
    let two = |second: &str| {
        format!(
            "duration = \"2ms\"\ntopology = \"star hosts=5 100Gbps 1us\"\n\
             [algorithm.gold]\nname = \"bolt\"\nfavoured = true\nsrc_probability = 0.25\n\
             [algorithm.bronze]\nname = \"bolt\"\n{second}\n\
             [[workload]]\nkind = \"incast\"\nsize = \"1kB\"\nalgorithm = \"gold\"\n\
             [[workload]]\nkind = \"incast\"\nsize = \"1kB\"\nalgorithm = \"bronze\"\n"
        )
    };
    plan(&two("src_probability = 0.25\ninitial_cwnd = 9"));
    let text = problem(&two("src_probability = 0.5"));
    assert!(text.contains("`bronze` and `gold` in one class"), "{text}");
}
