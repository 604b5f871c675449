//! The scenario reader: what it accepts, what it refuses and how, and that it never panics.

use std::fs;
use std::path::Path;

use apus_fabric::Buffer;
use apus_sim::experiment;
use apus_sim::scenario::{METRICS, Options, Scenario, ScenarioError, Source};
use apus_sim::{Simulation, Watch};
use apus_transport::LocalRx;
use apus_units::{Bytes, HostId, Rate, Span, Time};
use proptest::prelude::*;

/// The ten lines of a first scenario of one's own.
const FIRST: &str = r#"
duration = "20ms"
topology = { kind = "star", hosts = 11, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift", base_target = "25us" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

const TESTBED: &str = "[topology]\nrate = \"50Gbps\"\ndelay = \"2us\"\nbuffer = \"4MB\"\n";

fn find_testbed(name: &str) -> Result<Source, String> {
    match name {
        "test" => Ok(Source { name: "test.toml".to_owned(), text: TESTBED.to_owned() }),
        _ => Err(format!("there is no testbed \"{name}\"; did you mean `test`?")),
    }
}

fn read_with(text: &str, options: &Options) -> Result<Scenario, ScenarioError> {
    let source = Source { name: "dir/first one.toml".to_owned(), text: text.to_owned() };
    Scenario::read(&source, &find_testbed, options)
}

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    read_with(text, &Options::default())
}

fn good(text: &str) -> Scenario {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn set(options: &[&str]) -> Options {
    Options { set: options.iter().map(|o| (*o).to_owned()).collect(), ..Options::default() }
}

fn with_topology(topology: &str) -> String {
    let first = FIRST.lines().filter(|line| !line.starts_with("topology")).collect::<Vec<_>>();
    format!("{}\n[topology]\n{topology}\n", first.join("\n"))
}

#[test]
fn first_scenario_resolves_every_default() {
    let scenario = good(FIRST);
    assert_eq!(scenario.name, "first-one");
    let plan = scenario.runs[0].setup.plan().expect("plan");
    assert_eq!(plan.topology.hosts, 11);
    assert_eq!(plan.topology.links[0].ab.rate, Rate::from_gbps(100));
    assert_eq!((plan.duration, plan.warmup, plan.seed), (Span::from_ms(20), Span::ZERO, 1));
    assert_eq!((plan.sizes.payload, plan.sizes.header, plan.sizes.control), (4096, 64, 84));
    assert_eq!(plan.connections.len(), 10);
    for (index, connection) in plan.connections.iter().enumerate() {
        assert_eq!(connection.from, HostId::new(index as u32));
        assert_eq!(connection.to, HostId::new(10));
        assert_eq!((connection.start, connection.stop), (Time::ZERO, Time::MAX));
    }
}

#[test]
fn a_permutation_sends_and_receives_once_per_host_and_hangs_on_the_seed() {
    let text = FIRST.replace("incast", "permutation");
    let pairs = |seed| {
        let setup = good(&text).runs[0].setup.clone().with_seed(seed);
        let plan = setup.plan().expect("plan");
        plan.connections.iter().map(|c| (c.from, c.to)).collect::<Vec<_>>()
    };
    let mut to: Vec<_> = pairs(1).iter().map(|(_, to)| *to).collect();
    assert!(pairs(1).iter().all(|(from, to)| from != to));
    to.sort();
    assert_eq!(to, (0..11).map(HostId::new).collect::<Vec<_>>());
    assert_eq!(pairs(1), pairs(1));
    assert_ne!(pairs(1), pairs(2));
}

#[test]
fn start_times_spread_within_their_bounds() {
    let text = format!("{FIRST}start = \"1ms\"\nstart_spread = \"2ms\"\nflows_per_pair = 50\n");
    let plan = good(&text).runs[0].setup.plan().expect("plan");
    let starts: Vec<_> = plan.connections.iter().map(|c| c.start.since(Time::ZERO)).collect();
    assert_eq!(starts.len(), 500);
    assert!(starts.iter().all(|s| *s >= Span::from_ms(1) && *s < Span::from_ms(3)));
    let mean = starts.iter().map(|s| s.as_us_f64()).sum::<f64>() / 500.0;
    // Standard error 2000/sqrt(12*500) = 26 us: five of them.
    assert!((mean - 2000.0).abs() < 130.0, "{mean}");
}

#[test]
fn every_topology_builds_and_reads_back() {
    let links = "rate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"unlimited\"\n";
    let upper = "rate = \"400Gbps\"\n";
    for (shape, hosts) in [
        ("kind = \"star\"\nhosts = 5\n".to_owned(), 5),
        (format!("kind = \"dumbbell\"\nleft = 3\nright = 2\nmiddle = {{ {} }}\n", upper.trim()), 5),
        ("kind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\n".to_owned(), 6),
        ("kind = \"fat-tree\"\nk = 4\n".to_owned(), 16),
    ] {
        let text = with_topology(&format!("{links}{shape}"));
        let scenario = good(&text);
        assert_eq!(scenario.runs[0].setup.plan().expect("plan").topology.hosts, hosts);
        assert_reads_back(&scenario);
    }
}

#[test]
fn switch_memory_can_be_shared_and_mark() {
    let text = with_topology(
        "kind = \"star\"\nhosts = 3\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         pipeline_latency = \"500ns\"\nshared = { size = \"12MB\", alpha = 2 }\n\
         ecn = { threshold = \"100kB\" }\n",
    )
    .replace("name = \"swift\", base_target = \"25us\"", "name = \"dctcp\"");
    let scenario = good(&text);
    let topology = scenario.runs[0].setup.plan().expect("plan").topology;
    assert_eq!(topology.switches[0].shared_buffer, Some(Bytes::new(12_000_000)));
    assert_eq!(topology.links[0].ba.buffer, Buffer::Shared { alpha: 2.0 });
    assert_reads_back(&scenario);
}

#[test]
fn hosts_and_transport_read_back() {
    let more = "[host]\nmodel = \"t1\"\njitter = \"3us\"\nclock_drift = \"40ppm\"\n\
                [host.engine]\nbatch = 16\nnoise = 0\nshared = false\n\
                [transport]\ntimer_granularity = \"1048576ps\"\nmax_ops = 3\n\
                local_rx_delay = \"ignored\"\n\
                [packets]\npayload = \"1kB\"\n\
                [measure]\ninterval = \"1ms\"\nfair_share_after = \"2ms\"\n";
    let scenario = good(&format!("{FIRST}{more}"));
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let engine = plan.host.engine.expect("engine");
    assert_eq!((engine.batch, engine.shared), (16, false));
    assert_eq!(plan.host.clock_drift_ppb, 40_000);
    assert_eq!((plan.endpoint.max_payload, plan.endpoint.max_ops), (1000, 3));
    assert_eq!(plan.endpoint.timer_granularity_log2_ps, 20);
    assert_eq!(plan.endpoint.local_rx_delay, LocalRx::Ignored);
    assert_reads_back(&scenario);
}

#[test]
fn an_engines_scale_multiplies_what_work_costs_and_nothing_else() {
    let engine = |more: &str| {
        let text = format!("{FIRST}[host]\nmodel = \"t1\"\n[host.engine]\n{more}");
        let scenario = good(&text);
        assert_reads_back(&scenario);
        scenario.runs[0].setup.plan().expect("plan").host.engine.expect("engine")
    };
    let (one, double) = (engine("scale = 1"), engine("scale = 2\nsend_ack = \"1us\""));
    assert_eq!(double.receive_packet, one.receive_packet * 2);
    assert_eq!((double.round, double.copy_kib), (one.round * 2, one.copy_kib * 2));
    assert_eq!((double.stall, double.stall_every), (one.stall, one.stall_every));
    assert_eq!(double.send_ack, Span::from_us(1));
    let text = format!("{FIRST}[host]\nmodel = \"t1\"\n[host.engine]\nscale = 0\n");
    let error = read(&text).expect_err("no engine works for nothing").to_string();
    assert!(error.contains("`host.engine.scale` must be from 0.1 to 10, but it is 0"), "{error}");
}

fn assert_reads_back(scenario: &Scenario) {
    for run in &scenario.runs {
        let text = run.setup.to_toml();
        let again = good(&text);
        assert_eq!(again.runs[0].setup.to_toml(), text);
        let plan = |scenario: &Scenario| format!("{:?}", scenario.runs[0].setup.plan());
        assert_eq!(plan(&again), format!("{:?}", run.setup.plan()), "{text}");
    }
}

#[test]
fn options_override_settings_and_are_named_in_errors() {
    let scenario = read_with(FIRST, &set(&["topology.hosts=5", "workload.size=1kB"])).expect("ok");
    assert_eq!(scenario.runs[0].setup.plan().expect("plan").topology.hosts, 5);
    for (option, message) in [
        (
            "topology.rte=5",
            "--set topology.rte=5: unknown key `topology.rte`; did you mean `rate`?",
        ),
        ("topology.hosts", "--set topology.hosts: it must be key=value"),
        ("topology.rate=5", "must be a rate with its unit, like \"100Gbps\", not the number 5"),
        ("algorithm.beta=x", "must be a number without quotes, not the text \"x\""),
        ("chekc=1", "`chekc` is no setting of a run"),
        ("workload.1.size=1kB", "there are 1 of these, numbered from 0"),
        ("..=1", "no setting of a run"),
        ("topology.=1", "is not a key"),
    ] {
        let error = read_with(FIRST, &set(&[option])).expect_err(option).to_string();
        assert!(error.contains(message), "{option}: {error}");
        assert!(error.starts_with("--set "), "{error}");
    }
}

#[test]
fn all_problems_are_reported_at_once_in_order() {
    let text = FIRST.replace("100Gbps", "100").replace("25us", "25");
    let error = read(&text).expect_err("wrong");
    let lines: Vec<_> = error.0.iter().map(|p| p.position.expect("in the file").0).collect();
    assert_eq!(lines, [3, 4], "{error}");
    assert!(error.to_string().starts_with("dir/first one.toml:3:48: `topology.rate`"), "{error}");
}

#[test]
fn a_sweep_makes_variants_with_values() {
    let more = "[sweep]\nkey = \"algorithm.base_target\"\nvalues = [\"30us\", \"40us\"]\n";
    let scenario = good(&format!("{FIRST}{more}"));
    let runs: Vec<_> = scenario.runs.iter().map(|r| (r.variant.as_deref(), r.value)).collect();
    assert_eq!(runs, [(Some("30us"), Some(30.0)), (Some("40us"), Some(40.0))]);
    assert_eq!(scenario.runs[1].setup.name(), "first-one/40us");
    assert!(scenario.runs[1].setup.to_toml().contains("base_target = \"40us\""));
    assert_reads_back(&scenario);

    let given = set(&["algorithm.base_target=50us"]);
    let error = read_with(&format!("{FIRST}{more}"), &given).expect_err("both").to_string();
    assert!(error.contains("is what the variants differ in; choose one with --variant"), "{error}");
    let one = Options { variant: Some("30us".to_owned()), ..given };
    let scenario = read_with(&format!("{FIRST}{more}"), &one).expect("one variant");
    assert!(scenario.runs[0].setup.to_toml().contains("base_target = \"50us\""));
}

#[test]
fn a_testbed_is_shared_and_overrides_have_reasons() {
    let text = "testbed = \"test\"\nduration = \"20ms\"\n[topology]\nkind = \"star\"\nhosts = 3\n\
                [algorithm]\nname = \"swift\"\n[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n\
                [[override]]\nset = { topology.rate = \"10Gbps\", algorithm.ai = 0.5 }\n\
                reason = \"a test\"\n";
    let scenario = good(text);
    let keys: Vec<_> = scenario.overrides.iter().map(|o| o.key.as_str()).collect();
    assert_eq!(keys, ["algorithm.ai", "topology.rate"]);
    let plan = scenario.runs[0].setup.plan().expect("plan");
    assert_eq!(plan.topology.links[0].ab.rate, Rate::from_gbps(10));
    assert_eq!(plan.topology.links[0].delay, Span::from_us(2));
    assert_reads_back(&scenario);
}

/// A corpus of mistakes: the first line of each file gives line and message.
#[test]
fn wrong_scenarios_are_refused_with_line_and_remedy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let (mut count, mut failures) = (0, String::new());
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let text = fs::read_to_string(&path).expect("text");
        let expected = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let (line, fragment) = expected.and_then(|e| e.split_once(": ")).expect("first line");
        let line: usize = line.parse().expect("line number");
        let name = path.display();
        let Err(error) = read(&text) else { panic!("{name} is accepted") };
        let found = error
            .0
            .iter()
            .any(|p| p.position.is_some_and(|(l, _)| l == line) && p.message.contains(fragment));
        if !found {
            failures += &format!("{name}: expected at line {line}: {fragment}\nfound: {error}\n");
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(count >= 100, "only {count} wrong scenarios");
}

/// The list of metrics is what a summary holds: all its numbers but the seed and the cost.
#[test]
fn metrics_are_the_numbers_of_a_summary() {
    fn numbers(value: &serde_json::Value, path: &str, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    let separator = if path.is_empty() { "" } else { "." };
                    numbers(value, &format!("{path}{separator}{key}"), into);
                }
            }
            serde_json::Value::Number(_) => into.push(path.to_owned()),
            // No data queue of this run has a bound.
            serde_json::Value::Null if path.starts_with("credits.bound") => {
                into.push(path.to_owned());
            }
            _ => {}
        }
    }
    let measure =
        "[measure]\ninterval = \"1ms\"\nfair_share_after = \"1ms\"\n[host]\nmodel = \"t1\"\n";
    let text = format!("warmup = \"1ms\"\n{FIRST}{measure}").replace("20ms", "5ms");
    let plan = good(&text).runs[0].setup.plan().expect("plan");
    let run = Simulation::new(&plan).expect("plan").run("metrics", &mut |_| {}).expect("run");
    let mut found = Vec::new();
    numbers(&serde_json::to_value(run).expect("json"), "", &mut found);
    found.retain(|path| path != "seed" && !path.starts_with("cost."));
    found.sort();
    let mut listed = METRICS.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn an_experiment_measures_its_checks_over_seeds_and_not_over_threads() {
    let more = r#"
        source = "a test"
        [sweep]
        key = "algorithm.base_target"
        values = ["30us", "60us"]
        [[check]]
        name = "RTT over target"
        metric = "fabric_rtt_us.mean"
        relative_to = "value"
        unit = "%"
        low = 50
        high = 150
        [[check]]
        name = "RTT grows"
        metric = "fabric_rtt_us.mean"
        variant = "60us"
        relative_to = { variant = "30us" }
        low = 1
        [[check]]
        name = "throughput over the largest"
        metric = "throughput_gbps"
        relative_to = "max"
        reduce = "max"
        paper = 1
        low = 1
        high = 1
        [[check]]
        name = "RTT follows the target"
        metric = "fabric_rtt_us.mean"
        reduce = "exponent"
        low = 0
        high = 1
        [[check]]
        name = "no loss"
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
        ("throughput over the largest", true),
        ("RTT follows the target", true),
        ("no loss", false),
    ];
    assert_eq!(results, expected, "{:?}", one.checks);
    // Through two points a power law passes exactly: twice the target, 2^b times the RTT.
    let measured = |name| {
        let check = one.checks.iter().find(|check| check.shown.name == name).expect("checked");
        check.shown.measured.expect("measured")
    };
    let off = measured("RTT follows the target") - measured("RTT grows").log2();
    assert!(off.abs() < 1e-12, "{off}");
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
fn checks_of_order_look_at_variants_in_their_order() {
    let more = r#"
        source = "a test"
        [sweep]
        key = "workload.size"
        values = ["64kB", "4kB"]
        [[check]]
        name = "latency grows with size"
        metric = "op_latency_us.p50"
        increasing = ["4kB", "64kB"]
        high = 16
        low = 1
        [[check]]
        name = "latency grows the other way"
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

#[test]
fn what_is_measured_reads_back_and_names_metrics() {
    let more = r#"
        name = "in"
        deadline = "1ms"
        [measure]
        sizes = ["1B..10kB", "10kB.."]
        queue_interval = "5us"
        [measure.ports]
        edge = ["switch 0 -> host *"]
        [[measure.settle]]
        name = "fast"
        of = { ports = "edge" }
        quantity = "throughput"
        interval = "10us"
        after = "100us"
        above = "95Gbps"
        hold = "50us"
        [[measure.settle]]
        name = "short"
        of = { ports = "edge" }
        quantity = "queue"
        interval = "10us"
        below = "1.5us"
        hold = "50us"
        [[measure.span]]
        name = "late"
        of = { workload = "in" }
        quantity = "share"
        interval = "1ms"
        from = "10ms"
        [[check]]
        name = "settles"
        source = "a test"
        metric = "settle.fast.time_us"
        high = 100
        [[check]]
        name = "shares"
        source = "a test"
        metric = "span.late.share.mean"
        unit = "%"
        low = 99
        [[check]]
        name = "queues"
        source = "a test"
        metric = "ports.edge.queue_us.p99"
        high = 100
    "#;
    assert_reads_back(&good(&format!("{FIRST}{more}")));
}

/// What a quick run sets and leaves out; the indices of checks are those of the runs that are left.
#[test]
fn a_quick_run_is_shorter_and_says_what_it_leaves_out() {
    let more = r#"
        [quick]
        set = { duration = "2ms" }
        [[variant]]
        name = "a"
        quick = false
        [[variant]]
        name = "b"
        set = { "workload.size" = "32kB" }
        [[check]]
        name = "over a"
        metric = "goodput_gbps"
        variant = "b"
        relative_to = { variant = "a" }
        low = 1
        [[check]]
        name = "each"
        metric = "goodput_gbps"
        low = 1
        [[check]]
        name = "long"
        metric = "goodput_gbps"
        variant = "b"
        low = 1
        quick = false
    "#;
    let text = format!("source = \"a test\"\n{FIRST}{more}");
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.checks.iter().map(|check| check.name.clone()).collect()
    };
    let full = good(&text);
    assert_eq!((full.runs.len(), full.quick.len()), (2, 0));
    assert_eq!(names(&full), ["over a", "each", "long"]);
    assert_eq!(full.runs[1].setup.plan().expect("plan").duration, Span::from_ms(20));
    let quick = read_with(&text, &Options { quick: true, ..Options::default() }).expect("good");
    assert_eq!(names(&quick), ["each"]);
    assert_eq!(quick.checks[0].runs, [0]);
    assert_eq!(quick.runs.len(), 1);
    assert_eq!(quick.runs[0].variant.as_deref(), Some("b"));
    assert_eq!(quick.runs[0].setup.plan().expect("plan").duration, Span::from_ms(2));
    let notes = [
        "duration = 2ms",
        "without variant a",
        "without check \"over a\"",
        "without check \"long\"",
    ];
    assert_eq!(quick.quick, notes);
}

#[test]
fn a_sweep_lists_the_values_of_quick_runs() {
    let sweep = "[sweep]\nkey = \"workload.size\"\nvalues = [\"4kB\", \"8kB\", \"16kB\"]\n\
                 quick = [\"8kB\"]\n";
    let options = Options { quick: true, ..Options::default() };
    let quick = read_with(&format!("{FIRST}{sweep}"), &options).expect("good");
    let variants: Vec<_> = quick.runs.iter().filter_map(|run| run.variant.as_deref()).collect();
    assert_eq!(variants, ["8kB"]);
}

/// Lines that scenarios are made of, for texts that come near to being one.
fn line() -> impl Strategy<Value = String> {
    let keys = [
        "duration",
        "warmup",
        "seed",
        "kind",
        "hosts",
        "rate",
        "delay",
        "buffer",
        "name",
        "size",
        "set",
        "key",
        "values",
        "workload",
        "topology.hosts",
        "algorithm",
        "shared",
        "k",
        "metric",
        "variant",
        "sweep",
        "testbed",
        "stop",
        "start",
        "senders",
        "relative_to",
        "low",
        "load",
        "sizes",
        "flows",
        "file",
        "class",
        "ack_class",
        "a",
        "b",
        "link",
        "probability",
        "until",
        "request",
        "answer",
        "topology",
    ];
    let values = [
        "\"20ms\"",
        "1",
        "-1",
        "0.5",
        "nan",
        "\"star\"",
        "\"incast\"",
        "\"100Gbps\"",
        "\"4MB\"",
        "[1, 2]",
        "{ a = 1 }",
        "[]",
        "{}",
        "true",
        "\"swift\"",
        "\"test\"",
        "\"\"",
        "\"é\"",
        "2024-01-01",
        "\"18446744073709551615ps\"",
        "[[1]]",
        "4294967295",
        "9223372036854775807",
        "\"poisson\"",
        "\"links\"",
        "\"h1\"",
        "\"web_search\"",
        "\"partition-aggregate\"",
        "\"switch 0 -> host 1\"",
        "\"star hosts=4 1us 10Gbps\"",
    ];
    let tables = [
        "[topology]",
        "[[workload]]",
        "[algorithm]",
        "[host]",
        "[host.engine]",
        "[transport]",
        "[packets]",
        "[measure]",
        "[[variant]]",
        "[sweep]",
        "[[check]]",
        "[[show]]",
        "[[override]]",
        "[[workload.flow]]",
        "[topology.uplink]",
        "[[topology.class]]",
        "[[topology.link]]",
        "[[fault]]",
        "[algorithm.a]",
    ];
    prop_oneof![
        4 => (prop::sample::select(keys.to_vec()), prop::sample::select(values.to_vec()))
            .prop_map(|(key, value)| format!("{key} = {value}")),
        2 => prop::sample::select(tables.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select(FIRST.lines().collect::<Vec<_>>()).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        if let Err(error) = read(&text) {
            prop_assert!(!error.0.is_empty());
        }
    }

    #[test]
    fn any_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..20)) {
        if let Err(error) = read(&lines.join("\n")) {
            prop_assert!(!error.0.is_empty());
        }
    }

    /// One change to a good scenario, at any place.
    #[test]
    fn any_damage_is_read_or_refused(at in 0..FIRST.len(), len in 0..20usize, new in "\\PC{0,8}") {
        let end = (at + len).min(FIRST.len());
        let text = format!("{}{new}{}", &FIRST[..at], &FIRST[end..]);
        match read(&text) {
            Ok(scenario) => assert_reads_back(&scenario),
            Err(error) => prop_assert!(!error.0.is_empty()),
        }
    }

    #[test]
    fn any_option_is_read_or_refused(option in "[a-z.]{0,20}=?\\PC{0,8}") {
        if let Ok(scenario) = read_with(FIRST, &set(&[&option])) {
            assert_reads_back(&scenario);
        }
    }

    /// The effective configuration reads back to the same plan, whatever the values.
    #[test]
    fn effective_configuration_reads_back(
        hosts in 2u32..50,
        rate in 1_000u64..1 << 50,
        delay in 0u64..1 << 34,
        beta in 0.01f64..1.0,
        target in 1u64..1 << 40,
        size in 1u64..1 << 30,
        seed in 0u64..1 << 53,
        kind in prop::sample::select(vec!["incast", "permutation", "all-to-all"]),
        spread in 0u64..1 << 34,
    ) {
        let text = format!(
            "duration = \"20ms\"\nseed = {seed}\n\
             algorithm = {{ name = \"swift\", beta = {beta:?}, base_target = \"{target}ps\" }}\n\
             [topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"{rate}bps\"\n\
             delay = \"{delay}ps\"\nbuffer = \"{}B\"\n\
             [[workload]]\nkind = \"{kind}\"\nsize = \"{size}B\"\nstart_spread = \"{spread}ps\"\n",
            4160 + size,
        );
        if let Ok(scenario) = read(&text) {
            assert_reads_back(&scenario);
        }
    }
}

/// What a scenario that looks at `other.toml` says besides.
fn view(text: &str) -> Result<Scenario, ScenarioError> {
    let other = "name = \"other\"\nduration = \"5ms\"\nsource = \"a test\"\n\
                 topology = \"star hosts=4 100Gbps 1us\"\nalgorithm = { name = \"swift\" }\n\
                 [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n\
                 [sweep]\nkey = \"algorithm.base_target\"\nvalues = [\"20us\", \"30us\", \"40us\"]\n\
                 [[check]]\nname = \"all\"\nmetric = \"jain\"\nlow = 0\n";
    let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
    let find = |name: &str| match name {
        "other.toml" => Ok(source("other.toml", other)),
        name => Err(format!("there is no {name}")),
    };
    let text = format!("name = \"view\"\nsource = \"a test\"\nruns_of = \"other.toml\"\n{text}");
    Scenario::read(&source("view.toml", &text), &find, &Options::default())
}

#[test]
fn a_scenario_may_look_at_the_runs_of_another() {
    let text = "[[check]]\nname = \"own\"\nmetric = \"fabric_rtt_us.p99\"\nvariant = \"30us\"\n\
                relative_to = { metric = \"fabric_rtt_us.p50\" }\nlow = 1\n";
    let scenario = view(text).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<_> = scenario.runs.iter().map(|run| run.setup.name()).collect();
    assert_eq!(names, ["view/30us"], "only what the check looks at");
    assert_eq!(scenario.checks.len(), 1);
    assert_eq!(scenario.checks[0].runs, [0]);
    let one = std::num::NonZeroUsize::MIN;
    let experiment = experiment::run(&scenario, 1, one, &Watch::default(), &|_| {}).expect("runs");
    let rtt = &experiment.summaries[0][0].fabric_rtt_us;
    let ratio = rtt.p99.expect("measured") / rtt.p50.expect("measured");
    assert_eq!(experiment.checks[0].shown.measured, Some(ratio), "of the same run");
}

#[test]
fn a_scenario_that_looks_at_another_has_no_settings() {
    let text = "duration = \"9ms\"\n[[check]]\nname = \"own\"\nmetric = \"jain\"\nlow = 0\n";
    let error = view(text).expect_err("refused").to_string();
    assert!(error.contains("`duration` has no effect"), "{error}");
}
