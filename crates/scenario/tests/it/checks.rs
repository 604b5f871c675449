//! Checks of a scenario: measured over seeds, in an order, and of the runs of another scenario.

use crate::support::{FIRST, good};
use apus_scenario::experiment;
use apus_scenario::{Options, Scenario, ScenarioError, Source};
use apus_sim::Watch;

#[test]
fn an_experiment_measures_its_checks_over_seeds_and_not_over_threads() {
    let more = r#"
        source = "a test"
        [sweep]
        key = "algorithm.base_target"
        values = ["30us", "60us"]
        [[check]]
        name = "RTT over target"
        kind = "shape"
        metric = "fabric_rtt_us.mean"
        relative_to = "value"
        unit = "%"
        low = 50
        high = 150
        [[check]]
        name = "RTT grows"
        kind = "shape"
        metric = "fabric_rtt_us.mean"
        variant = "60us"
        relative_to = { variant = "30us" }
        low = 1
        [[check]]
        name = "gain of RTT"
        kind = "shape"
        metric = "fabric_rtt_us.mean"
        variant = "60us"
        relative_to = { variant = "30us", gain = true }
        unit = "%"
        low = 0
        [[check]]
        name = "each RTT over the other's"
        kind = "shape"
        metric = "fabric_rtt_us.mean"
        variant = ["30us", "60us"]
        relative_to = { variant = ["60us", "30us"] }
        low = 1
        [[check]]
        name = "throughput over the largest"
        kind = "reproduction"
        metric = "throughput_gbps"
        relative_to = "max"
        reduce = "max"
        paper = 1
        low = 1
        high = 1
        [[check]]
        name = "RTT follows the target"
        kind = "shape"
        metric = "fabric_rtt_us.mean"
        reduce = "exponent"
        low = 0
        high = 1
        [[check]]
        name = "no loss"
        kind = "shape"
        metric = "loss_rate"
        variant = "30us"
        unit = "%"
        low = 1
        [[show]]
        name = "deviation"
        metric = "fair_share_deviation"
        variant = "30us"
    "#;
    let (head, tail) = FIRST.split_once("[[").expect("workload");
    let (top, tables) = more.split_once("[sweep]").expect("sweep");
    let text =
        format!("{head}warmup = \"2ms\"\n{top}\n[[{tail}start_spread = \"100us\"\n[sweep]{tables}")
            .replace("20ms", "5ms");
    let scenario = good(&text);
    let run = |threads| {
        let threads = std::num::NonZeroUsize::new(threads).expect("above 0");
        experiment::run(&scenario, 3, threads, &Watch::default(), &|_| {}).expect("runs")
    };
    let one = run(1);
    let results: Vec<_> = one.checks.iter().map(|c| (c.shown.name.as_str(), c.pass)).collect();
    let expected = [
        ("RTT over target, 30us", true),
        ("RTT over target, 60us", true),
        ("RTT grows", true),
        ("gain of RTT", true),
        ("each RTT over the other's, 30us", false),
        ("each RTT over the other's, 60us", true),
        ("throughput over the largest", true),
        ("RTT follows the target", true),
        ("no loss", false),
    ];
    assert_eq!(results, expected, "{:?}", one.checks);
    // A power law passes through two points exactly: twice the target, 2^b times the RTT.
    let measured = |name| {
        let check = one.checks.iter().find(|check| check.shown.name == name).expect("checked");
        check.shown.measured.expect("measured")
    };
    let off = measured("RTT follows the target") - measured("RTT grows").log2();
    assert!(off.abs() < 1e-12, "{off}");
    let off = measured("gain of RTT") - (measured("RTT grows") - 1.0) * 100.0;
    assert!(off.abs() < 1e-9, "{off}");
    assert!(!one.passes());
    assert_eq!(one.shown[0].measured, None, "not measured without [measure]");
    assert_eq!(one.summaries.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(one.summaries[1].iter().map(|s| s.seed).collect::<Vec<_>>(), [1, 2, 3]);
    let (low, high) = one.checks[0].shown.spread.expect("spread");
    assert!(low < high, "seeds differ");
    assert_eq!(format!("{:?}", one.checks), format!("{:?}", run(4).checks));
}

/// An op of 64 kB takes longer than one of 4 kB, and less than 16 times as long: the base RTT.
#[test]
fn checks_of_order_compare_variants_in_their_order() {
    let more = r#"
        source = "a test"
        [sweep]
        key = "workload.size"
        values = ["64kB", "4kB"]
        [[check]]
        name = "latency grows with size"
        kind = "shape"
        metric = "op_latency_us.p50"
        increasing = ["4kB", "64kB"]
        high = 16
        low = 1
        [[check]]
        name = "latency grows the other way"
        kind = "shape"
        metric = "op_latency_us.p50"
        increasing = ["64kB", "4kB"]
    "#;
    let (head, tail) = FIRST.split_once("[[").expect("workload");
    let (top, tables) = more.split_once("[sweep]").expect("sweep");
    let text = format!("{head}{top}\n[[{tail}[sweep]{tables}").replace("20ms", "2ms");
    let scenario = good(&text);
    let one = std::num::NonZeroUsize::MIN;
    let experiment = experiment::run(&scenario, 1, one, &Watch::default(), &|_| {}).expect("runs");
    let passes: Vec<bool> = experiment.checks.iter().map(|check| check.pass).collect();
    assert_eq!(passes, [true, false], "{:?}", experiment.checks);
    let rise = |index: usize| experiment.checks[index].shown.measured.expect("measured");
    assert!((rise(0) * rise(1) - 1.0).abs() < 1e-12, "one is the other's inverse");
    assert_eq!(experiment.checks[1].shown.low, Some(1.0), "unless given");
}

/// Reads a scenario with the runs of `other.toml` and the settings of `text`.
fn view(text: &str) -> Result<Scenario, ScenarioError> {
    let other = "name = \"other\"\nduration = \"5ms\"\nsource = \"a test\"\n\
                 topology = \"star hosts=4 100Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
                 [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n\
                 [sweep]\nkey = \"algorithm.base_target\"\nvalues = [\"20us\", \"30us\", \"40us\"]\n\
                 [[check]]\nname = \"all\"\nkind = \"shape\"\nmetric = \"jain\"\nlow = 0\n";
    let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
    let find = |name: &str| match name {
        "other.toml" => Ok(source("other.toml", other)),
        name => Err(format!("unknown scenario {name}")),
    };
    let text = format!("name = \"view\"\nsource = \"a test\"\nruns_of = \"other.toml\"\n{text}");
    Scenario::read(&source("view.toml", &text), &find, &Options::default())
}

#[test]
fn a_scenario_may_check_the_runs_of_another() {
    let text = "[[check]]\nname = \"own\"\nkind = \"shape\"\nmetric = \"fabric_rtt_us.p99\"\nvariant = \"30us\"\n\
                relative_to = { metric = \"fabric_rtt_us.p50\" }\nlow = 1\n";
    let scenario = view(text).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<_> = scenario.runs.iter().map(|run| run.setup.name()).collect();
    assert_eq!(names, ["view/30us"], "only the run that the check uses");
    assert_eq!(scenario.checks.len(), 1);
    assert_eq!(scenario.checks[0].runs, [0]);
    let one = std::num::NonZeroUsize::MIN;
    let experiment = experiment::run(&scenario, 1, one, &Watch::default(), &|_| {}).expect("runs");
    let rtt = &experiment.summaries[0][0].fabric_rtt_us;
    let ratio = rtt.p99.expect("measured") / rtt.p50.expect("measured");
    assert_eq!(experiment.checks[0].shown.measured, Some(ratio), "of the same run");
}

#[test]
fn a_scenario_with_runs_of_another_has_no_settings() {
    let text = "duration = \"9ms\"\n[[check]]\nname = \"own\"\nkind = \"shape\"\nmetric = \"jain\"\nlow = 0\n";
    let error = view(text).expect_err("refused").to_string();
    assert!(error.contains("`duration` has no effect"), "{error}");
}
