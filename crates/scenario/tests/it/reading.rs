//! The scenario reader: accepted settings, and refused ones with their errors.

use std::fs;
use std::path::Path;

use crate::support::{FIRST, assert_reads_back, good, read, read_with, set};
use apus_fabric::Buffer;
use apus_scenario::{MemoryLimit, Options};
use apus_transport::LocalRx;
use apus_units::{Bytes, HostId, Rate, Span, Time};

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

/// Offsets and read intervals of clocks are not delays: they may be hours.
#[test]
fn clocks_may_differ_by_more_than_the_longest_delay() {
    let host = "[host]\nclock_offset = \"2000s\"\nclock_reading_interval = \"1000s\"\n";
    let scenario = good(&format!("{FIRST}{host}"));
    assert_reads_back(&scenario);
    let host = scenario.runs[0].setup.plan().expect("plan").host;
    assert_eq!(host.clock_offset, Span::from_secs(2000));
    assert_eq!(host.clock_reading_interval, Span::from_secs(1000));
}

#[test]
fn a_permutation_sends_and_receives_once_per_host_and_depends_on_the_seed() {
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

/// HPCC's own simulator: 1000 B of payload, 48 B of headers and 42 B of INT, which acknowledgements of 46 B
/// return.
#[test]
fn packets_are_those_of_the_profile_unless_the_scenario_sets_them() {
    let hpcc = FIRST.replace("\"swift\", base_target = \"25us\"", "\"hpcc\", profile = \"bolt\"");
    let sizes = |text: &str| {
        let scenario = good(text);
        assert_reads_back(&scenario);
        let plan = scenario.runs[0].setup.plan().expect("plan");
        assert_eq!(plan.endpoint.max_payload, plan.sizes.payload);
        (plan.sizes.payload, plan.sizes.header, plan.sizes.control)
    };
    assert_eq!(sizes(&hpcc), (1000, 48 + 42, 46 + 42));
    assert_eq!(sizes(&format!("{hpcc}\n[packets]\npayload = \"2kB\"\n")), (2000, 90, 88));
    assert_eq!(sizes(&hpcc.replace(", profile = \"bolt\"", "")), (4096, 64, 84));
}

#[test]
fn an_engines_scale_multiplies_only_the_costs_of_work() {
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
        ("chekc=1", "`chekc` is not a setting of a run"),
        ("workload.1.size=1kB", "there are 1 of these, numbered from 0"),
        ("..=1", "not a setting of a run"),
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
    assert!(error.contains("choose one with --variant"), "{error}");
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

#[test]
fn an_option_that_a_later_one_replaces_is_refused() {
    let refused = |options: &[&str]| {
        let error = read_with(FIRST, &set(options)).expect_err("an option without effect");
        error.to_string()
    };
    let twice = refused(&["seed=2", "seed=3"]);
    assert!(twice.contains("--set seed=2: `seed` has no effect: `seed` replaces it"), "{twice}");
    let numbered = refused(&["workload.size=1kB", "workload.0.size=2kB"]);
    assert!(numbered.contains("`workload.size` has no effect"), "{numbered}");
    let whole = refused(&["topology.rate=10Gbps", "topology=star hosts=11 100Gbps 1us"]);
    assert!(whole.contains("`topology.rate` has no effect: `topology` replaces it"), "{whole}");
    // In the opposite order the second setting refines the first.
    let refined = ["topology=star hosts=11 100Gbps 1us", "topology.rate=10Gbps"];
    assert!(read_with(FIRST, &set(&refined)).is_ok());
    let seed = Options { seed: Some(3), ..set(&["seed=2"]) };
    let seed = read_with(FIRST, &seed).expect_err("two seeds").to_string();
    assert!(seed.contains("--seed replaces it"), "{seed}");
}

#[test]
fn connections_beyond_the_memory_limit_are_refused_with_estimate_and_limit() {
    let text = FIRST.replace("incast", "all-to-all").replace("hosts = 11", "hosts = 1024");
    let limited = |gigabytes: u64| {
        let limit = MemoryLimit {
            bytes: Bytes::new(gigabytes * 1_000_000_000),
            reason: format!("there are {gigabytes}GB"),
        };
        read_with(&text, &Options { memory: Some(limit), ..Options::default() })
    };
    let error = limited(1).expect_err("too little memory").to_string();
    for part in ["opens 1047552 connections", "GB of memory, but there are 1GB", "--max-memory"] {
        assert!(error.contains(part), "{error}");
    }
    // The limit decides only whether the run is refused.
    let enough = limited(16).expect("enough memory");
    assert_eq!(enough.runs[0].setup.to_toml(), good(&text).runs[0].setup.to_toml());
}

/// Headroom for acknowledgements alone need not hold a packet of data.
#[test]
fn pauses_of_a_class_need_room_for_its_own_packets() {
    let text = "duration = \"1ms\"\nalgorithm = { name = \"swift\" }\n[topology]\nkind = \"star\"\nhosts = 4\n\
                rate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"4MB\"\nack_class = \"acks\"\n\
                pfc = { classes = [\"acks\"], pause = \"1kB\", resume = \"500B\", headroom = \"1kB\" }\n\
                [[topology.class]]\nname = \"data\"\n[[topology.class]]\nname = \"acks\"\n\
                [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\nclass = \"data\"\n";
    good(text);
}

/// Routes of a pair of hosts over 16 spines: 4 egress ports and their number, in both directions, in words of 4
/// B with room to grow; and the positions and lists by which switches choose.
#[test]
fn sets_of_paths_count_as_memory() {
    let leaf_spine = |spines: u32, balancer: &str| {
        format!(
            "duration = \"1ms\"\nalgorithm = {{ name = \"swift\" }}\nrouting = {{ balancer = \"{balancer}\" }}\n\
             topology = {{ kind = \"leaf-spine\", leaves = 16, spines = {spines}, hosts_per_leaf = 8, \
             rate = \"100Gbps\", delay = \"1us\", buffer = \"4MB\" }}\n\
             workload = [{{ kind = \"all-to-all\", size = \"64kB\" }}]\n"
        )
    };
    let of = |text: &str| good(text).runs[0].setup.estimated_memory().get();
    let pairs = 128 * 127 / 2;
    let one = |spines| of(&leaf_spine(spines, "oblivious"));
    assert_eq!(one(16) - one(1), 15 * pairs * 2 * 5 * 4 * 2);
    let chosen = |spines| of(&leaf_spine(spines, "round-robin"));
    assert_eq!(chosen(16) - chosen(1), 3 * (one(16) - one(1)));
    let ecmp = |spines| of(&leaf_spine(spines, "ecmp"));
    assert_eq!(ecmp(16), ecmp(1));
    // A list of links: 16 paths between the leaves too.
    let mut links: String = (0..2)
        .flat_map(|leaf| {
            (0..16).map(move |spine| format!("{{ a = \"l{leaf}\", b = \"s{spine}\" }}, "))
        })
        .collect();
    links += "{ a = \"h0\", b = \"l0\" }, { a = \"h1\", b = \"l1\" }";
    let list = |balancer: &str| {
        format!(
            "duration = \"1ms\"\nalgorithm = {{ name = \"swift\" }}\nrouting = {{ balancer = \"{balancer}\" }}\n\
             topology = {{ kind = \"links\", rate = \"100Gbps\", delay = \"1us\", buffer = \"4MB\", link = [{links}] }}\n\
             workload = [{{ kind = \"permutation\", size = \"64kB\" }}]\n"
        )
    };
    // Estimated with the same longest path for both.
    let spread = of(&list("oblivious")) - of(&list("ecmp"));
    assert_eq!(spread % 16, 0);
    assert!((16 * 2 * 5 * 4 * 2..=16 * 2 * 7 * 4 * 2).contains(&spread), "{spread}");
}

#[test]
fn sets_of_paths_beyond_the_table_of_routes_are_refused() {
    let text = "duration = \"1ms\"\nalgorithm = { name = \"swift\" }\nrouting = { balancer = \"oblivious\" }\n\
                topology = { kind = \"fat-tree\", k = 32, rate = \"100Gbps\", delay = \"1us\", buffer = \"4MB\" }\n\
                workload = [{ kind = \"all-to-all\", size = \"64kB\" }]\n";
    let error = read(text).expect_err("2^25 pairs with 256 paths").to_string();
    let part = "spreads packets over about 256 paths between two hosts, but all routes together";
    assert!(error.contains(part), "{error}");
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

#[test]
fn measurements_read_back_and_name_metrics() {
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
        [[measure.settle]]
        name = "over"
        of = { ports = "edge" }
        quantity = "throughput"
        interval = "10us"
        after = "first end of in"
        below = "1Gbps"
        hold = "50us"
        [[measure.span]]
        name = "ends"
        of = { ports = "edge" }
        quantity = "throughput"
        interval = "10us"
        from = "first end of in"
        to = "last end of in"
        lead = "3us"
        [[check]]
        name = "settles"
        kind = "shape"
        source = "a test"
        metric = "settle.fast.time_us"
        high = 100
        [[check]]
        name = "shares"
        kind = "shape"
        source = "a test"
        metric = "span.late.share.mean"
        unit = "%"
        low = 99
        [[check]]
        name = "queues"
        kind = "shape"
        source = "a test"
        metric = "ports.edge.queue_us.p99"
        high = 100
    "#;
    assert_reads_back(&good(&format!("{FIRST}{more}")));
}
