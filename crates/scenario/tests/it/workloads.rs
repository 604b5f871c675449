//! Workloads and topologies of a scenario beyond the first: the resulting plans, which read back
//! from the effective configuration.

use apus_algorithms::BuiltInSwitch;
use apus_algorithms::dctcp::switch::MarkAt;
use apus_scenario::{ConnectionPlan, Plan, Simulation};
use apus_scenario::{Options, Scenario, ScenarioError, Source};
use apus_sim::plan::{Load, OpArrival};
use apus_units::{Bytes, ClassId, HostId, Rate, Span, Time};
use proptest::prelude::*;

use crate::support::run_plan;

const HEAD: &str = "duration = \"2ms\"\nalgorithm = { name = \"swift\" }\n";
const STAR: &str = "topology = \"star hosts=8 100Gbps 1us\"\n";

/// The files that the scenarios here name.
const FILES: &[(&str, &str)] = &[
    ("two.txt", "# A step function.\n1000 50\n3000 100\n"),
    ("bad.txt", "1000 50\nx\n"),
    ("trace.csv", "start_us,from,to,bytes\n10,0,1,500\n5.5,2,1,70000\n9999,1,0,1\n"),
    ("late.csv", "start_us,from,to,bytes\n9999,1,0,1\n"),
    ("far.csv", "start_us,from,to,bytes\n1,1,9,1\n"),
    (
        "perm.cm",
        "Nodes 8\nConnections 2\n0->7 id 1 start 0 size 2000\n6->1 id 2 start 1000000 size 9\n",
    ),
    ("many.cm", "Nodes 9\nConnections 1\n0->7 id 1 start 0 size 2000\n"),
    ("tiny.topo", TINY_TOPO),
    ("topology.txt", HPCC_TOPOLOGY),
    ("flow.txt", "2\n2 0 3 100 5000 0.0001\n4 2 3 100 1 0\n"),
    ("switch.txt", "1\n2 3 3 100 5000 0.0001\n"),
];

/// A topology in the form of htsim's files: 32 hosts, 4 switches of 8 hosts and 2 uplinks, 2 switches above.
const TINY_TOPO: &str = "Nodes 32\nTiers 2\nPodsize 32\n\nTier 0\nDownlink_speed_Gbps 100\n\
    Radix_Down 8\nRadix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\nOversubscribed 2\n\n\
    Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 4\nDownlink_Latency_ns 500\nSwitch_Latency_ns 0\n";

/// A topology in the form of the HPCC simulator's files: hosts 0, 2 and 4, switches 1 and 3.
const HPCC_TOPOLOGY: &str = "5 2 4\n1 3\n0 1 100Gbps 0.001ms 0\n2 1 100Gbps 0.001ms 0\n\
                             1 3 400Gbps 0.002ms 0\n3 4 100Gbps 0.001ms 0\n";

fn find(name: &str) -> Result<Source, String> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    let source = |text: &str| Source { name: name.to_owned(), text: text.to_owned() };
    found.map(|(_, text)| source(text)).ok_or_else(|| format!("{name}: no such file"))
}

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
    Scenario::read(&source, &find, &Options::default())
}

/// Returns the plan, after checking that the effective configuration gives the same plan without any file.
fn plan(text: &str) -> Plan {
    let scenario = read(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let setup = &scenario.runs[0].setup;
    let effective = setup.to_toml();
    let source = Source { name: "effective.toml".to_owned(), text: effective.clone() };
    let again = Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default())
        .unwrap_or_else(|e| panic!("{e}\n{effective}"));
    assert_eq!(again.runs[0].setup.to_toml(), effective);
    let (plan, second) = (setup.plan().expect("plan"), again.runs[0].setup.plan().expect("plan"));
    assert_eq!(format!("{:?}", plan.connections), format!("{:?}", second.connections));
    assert_eq!(format!("{:?}", plan.topology.links), format!("{:?}", second.topology.links));
    plan
}

fn ops(plan: &Plan) -> Vec<(OpArrival, HostId, HostId)> {
    let of = |c: &ConnectionPlan| match &c.load {
        Load::Open(arrivals) => arrivals.iter().map(|a| (*a, c.from, c.to)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let mut ops: Vec<_> = plan.connections.iter().flat_map(of).collect();
    ops.sort();
    ops
}

/// Load 0.4 of 100 Gb/s in ops of 10 kB for 2 ms: 0.4 * 100e9 / 8 * 2e-3 / 10e3 = 1000 per host.
#[test]
fn a_poisson_load_is_payload_over_the_senders_link() {
    let text =
        format!("{HEAD}{STAR}[[workload]]\nkind = \"poisson\"\nload = 0.4\nsize = \"10kB\"\n");
    let plan = plan(&text);
    let ops = ops(&plan);
    // Standard deviation sqrt(8000) = 89: five of them.
    assert!((7_550..8_450).contains(&ops.len()), "{}", ops.len());
    for host in (0..8).map(HostId::new) {
        let (sent, got) = (
            ops.iter().filter(|o| o.1 == host).count(),
            ops.iter().filter(|o| o.2 == host).count(),
        );
        assert!((840..1_160).contains(&sent) && (840..1_160).contains(&got), "{sent} {got}");
    }
    assert!(ops.iter().all(|o| o.1 != o.2));
    assert!(plan.connections.len() <= 56, "one flow per pair");
    // Gaps of a Poisson process vary as much as their mean.
    let first: Vec<f64> = ops
        .iter()
        .filter(|o| o.1 == HostId::new(3))
        .map(|o| o.0.at.since(Time::ZERO).as_us_f64())
        .collect();
    let gaps: Vec<f64> = first.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.2, "{mean} {variance}");
}

/// With a fixed receiver the load is that of the receiver's link.
#[test]
fn a_poisson_load_to_one_receiver_is_over_its_link() {
    let text = format!(
        "{HEAD}{STAR}[[workload]]\nkind = \"poisson\"\nload = 0.4\nsizes = {{ file = \"two.txt\" }}\n\
         receiver = 2\nsenders = 4\nflows = \"per-op\"\n"
    );
    let plan = plan(&text);
    let ops = ops(&plan);
    assert_eq!(plan.connections.len(), ops.len());
    // 0.4 * 100e9 / 8 * 2e-3 / 2000 = 5000, standard deviation 71.
    assert!((4_650..5_350).contains(&ops.len()), "{}", ops.len());
    assert!(ops.iter().all(|o| o.2 == HostId::new(2) && [0, 1, 3, 4].contains(&o.1.get())));
    let small = ops.iter().filter(|o| o.0.size == Bytes::new(1000)).count();
    assert!(ops.iter().all(|o| [1000, 3000].contains(&o.0.size.get())));
    assert!((0.46..0.54).contains(&(small as f64 / ops.len() as f64)), "{small}");
}

/// Swift §5.2: "each client selects one machine from the remote racks at random". Host 0, alone in
/// its rack, sends to all three others, the others only to it.
#[test]
fn a_poisson_load_may_exclude_the_senders_rack() {
    let text = format!(
        "{HEAD}topology = \"leaf-spine leaves=2 hosts_per_leaf=4 spines=1 100Gbps 1us\"\n\
         [[workload]]\nkind = \"poisson\"\nload = 0.9\nsize = \"10kB\"\nhosts = [0, 4, 5, 6]\n\
         to = \"other-racks\"\n"
    );
    let ops = ops(&plan(&text));
    for (_, from, to) in &ops {
        assert!((from.get() == 0) != (to.get() == 0), "{from} to {to}");
    }
    for host in 4..7 {
        assert!(ops.iter().any(|(_, _, to)| to.get() == host), "{host}");
    }
}

#[test]
fn built_in_sizes_mix_with_other_workloads_in_separate_classes() {
    let text = format!(
        "{HEAD}[topology]\nkind = \"star\"\nhosts = 8\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         buffer = \"1MB\"\nack_class = \"fast\"\n[[topology.class]]\nname = \"fast\"\n\
         [[topology.class]]\nname = \"bulk\"\npriority = 1\nlimit = \"500kB\"\n\
         [[workload]]\nkind = \"poisson\"\nload = 0.3\nsizes = \"google_search_rpc\"\nclass = \"fast\"\n\
         stop = \"100us\"\n\
         [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\nclass = \"bulk\"\n"
    );
    let plan = plan(&text);
    assert_eq!(plan.ack_class, Some(ClassId::new(0)));
    let port = &plan.topology.links[0].ba;
    assert_eq!(port.classes.iter().map(|c| c.priority).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(plan.connections.last().map(|c| c.class), Some(ClassId::new(1)));
    let results: Vec<_> = [1, 3]
        .map(|threads| {
            let simulation = Simulation::with_threads(&plan, threads).expect("plan");
            simulation.run("mix", &mut |_| {}).expect("run").work.event_hash
        })
        .into();
    assert_eq!(results[0], results[1]);
}

#[test]
fn packets_are_marked_at_enqueue_by_default() {
    let marker = |ecn| {
        let text = format!(
            "duration = \"2ms\"\nalgorithm = {{ name = \"dctcp\" }}\n\
             topology = {{ kind = \"star\", hosts = 3, rate = \"100Gbps\", delay = \"1us\", \
             buffer = \"1MB\", ecn = {{ threshold = \"100kB\"{ecn} }} }}\n\
             [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n"
        );
        match plan(&text).topology.links[0].ba.classes[0].algorithm {
            BuiltInSwitch::Ecn(marker) => (marker.threshold, marker.at),
            ref other => panic!("{other:?}"),
        }
    };
    let threshold = Bytes::new(100_000);
    assert_eq!(marker(""), (threshold, MarkAt::Enqueue));
    assert_eq!(marker(", at = \"dequeue\""), (threshold, MarkAt::Dequeue));
}

#[test]
fn an_incast_may_have_several_receivers() {
    let text =
        |rest| format!("{HEAD}{STAR}[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n{rest}\n");
    let pairs = |rest| -> Vec<(u32, u32)> {
        plan(&text(rest)).connections.iter().map(|c| (c.from.get(), c.to.get())).collect()
    };
    assert_eq!(pairs("senders = 2\nreceiver = [7, 5]"), [(0, 7), (1, 7), (0, 5), (1, 5)]);
    assert_eq!(pairs("receiver = [0, 1, 2, 3, 4, 6, 7]"), [0, 1, 2, 3, 4, 6, 7].map(|to| (5, to)));
    for (rest, wrong) in [
        ("senders = 7\nreceiver = [6, 7]", "must be from 1 to 6: there are 8 hosts, 2 of which"),
        ("senders = [1, 6]\nreceiver = [6, 7]", "holds host 6, which is the receiver"),
        ("receiver = [0, 1, 2, 3, 4, 5, 6, 7]", "none is left to send"),
        ("receiver = []", "at least 1 hosts"),
    ] {
        let error = read(&text(rest)).expect_err(rest).to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

/// Strict priority: packets of the first class are not delayed by the bulk traffic.
#[test]
fn a_class_of_higher_priority_is_not_delayed_by_another() {
    let run = |class| {
        let text = format!(
            "duration = \"2ms\"\n[algorithm.constant]\nwindow = 100\n\
             [topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
             buffer = \"unlimited\"\nack_class = \"fast\"\n[[topology.class]]\nname = \"fast\"\n\
             [[topology.class]]\nname = \"bulk\"\npriority = 1\n\
             [[workload]]\nkind = \"partition-aggregate\"\nmaster = 3\nworkers = [0]\n\
             request = \"100B\"\nanswer = \"1kB\"\nclass = \"{class}\"\n\
             [[workload]]\nkind = \"incast\"\nsenders = [1, 2]\nsize = \"10MB\"\nclass = \"bulk\"\n"
        );
        run_plan(&plan(&text)).op_latency_us.p50.expect("ops")
    };
    // A packet of 4160 B takes 0.33 us; two windows of 100 are 67 us of queue.
    let (first, same) = (run("fast"), run("bulk"));
    assert!(first < 6.0, "{first}");
    assert!(same > 10.0 * first, "{same} {first}");
}

#[test]
fn traces_of_all_formats_become_ops() {
    let trace = |topology: &str, file: &str| {
        let workload = format!("[[workload]]\nkind = \"trace\"\nfile = \"{file}\"\n");
        ops(&plan(&format!("{HEAD}{topology}{workload}")))
            .into_iter()
            .map(|(op, from, to)| (op.at.as_ps(), op.size.get(), from.get(), to.get()))
            .collect::<Vec<_>>()
    };
    // Messages that start after the end of the run are left out.
    assert_eq!(trace(STAR, "trace.csv"), [(5_500_000, 70_000, 2, 1), (10_000_000, 500, 0, 1)]);
    assert_eq!(trace(STAR, "perm.cm"), [(0, 2000, 0, 7), (1_000_000, 9, 6, 1)]);
    let hpcc = "topology = { kind = \"links\", file = \"topology.txt\", buffer = \"1MB\" }\n";
    // Nodes 2, 4 and 0 are hosts 1, 2 and 0.
    assert_eq!(trace(hpcc, "flow.txt"), [(0, 1, 2, 1), (100_000_000, 5000, 1, 0)]);
    // Without a topology of this numbering, the numbers are those of hosts.
    assert_eq!(trace(STAR, "flow.txt"), [(0, 1, 4, 2), (100_000_000, 5000, 2, 0)]);
}

#[test]
fn imported_topologies_have_their_links() {
    let load = "[[workload]]\nkind = \"permutation\"\nsize = \"10kB\"\n";
    let htsim = plan(&format!(
        "{HEAD}topology = {{ kind = \"links\", file = \"tiny.topo\", buffer = \"1MB\" }}\n{load}"
    ));
    let links = &htsim.topology.links;
    // 32 hosts, and 4 switches with 2 links each.
    assert_eq!((htsim.topology.hosts, links.len()), (32, 40));
    assert_eq!((links[0].ab.rate, links[0].delay), (Rate::from_gbps(100), Span::from_us(1)));
    assert_eq!((links[39].ab.rate, links[39].delay), (Rate::from_gbps(200), Span::from_ns(500)));
    assert_eq!(htsim.topology.node_name(links[39].b), "agg1");
    assert!(run_plan(&htsim).measured.ops > 32);
    let hpcc = plan(&format!(
        "{HEAD}topology = {{ kind = \"links\", file = \"topology.txt\", buffer = \"1MB\" }}\n{load}"
    ));
    assert_eq!((hpcc.topology.hosts, hpcc.topology.switches.len()), (3, 2));
    assert_eq!(hpcc.topology.links[2].ab.rate, Rate::from_gbps(400));
    assert!(run_plan(&hpcc).measured.ops > 3);
}

#[test]
fn links_can_be_written_one_by_one() {
    let text = format!(
        "{HEAD}[topology]\nkind = \"links\"\nrate = \"100Gbps\"\ndelay = \"1us\"\nbuffer = \"1MB\"\n\
         [[topology.link]]\na = \"h0\"\nb = \"left\"\n\
         [[topology.link]]\na = \"left\"\nb = \"right\"\nrate = \"40Gbps\"\ndelay = \"5us\"\n\
         [[topology.link]]\na = \"h1\"\nb = \"right\"\nbuffer = \"2MB\"\n\
         [[workload]]\nkind = \"incast\"\nsize = \"1MB\"\n"
    );
    let plan = plan(&text);
    assert_eq!(plan.topology.hosts, 2);
    let throughput = run_plan(&plan).throughput_gbps;
    assert!((30.0..=40.0).contains(&throughput), "{throughput}");
}

/// The one-line form equals the table.
#[test]
fn one_line_is_a_table() {
    let load = "[[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n";
    for (line, table) in [
        ("fat-tree k=4 100Gbps 1us", "kind = \"fat-tree\"\nk = 4\nbuffer = \"4MB\"\n"),
        ("star hosts=3 buffer=1MB 100Gbps 1us", "kind = \"star\"\nhosts = 3\nbuffer = \"1MB\"\n"),
        (
            "dumbbell left=2 right=3 1us 100Gbps",
            "kind = \"dumbbell\"\nleft = 2\nright = 3\nbuffer = \"4MB\"\n",
        ),
        (
            "parking-lot switches=3 hosts_per_switch=2 100Gbps 1us unlimited",
            "kind = \"parking-lot\"\nswitches = 3\nhosts_per_switch = 2\nbuffer = \"unlimited\"\n",
        ),
        (
            "leaf-spine leaves=2 hosts_per_leaf=3 spines=2 100Gbps 1us",
            "kind = \"leaf-spine\"\nleaves = 2\nhosts_per_leaf = 3\nspines = 2\nbuffer = \"4MB\"\n",
        ),
    ] {
        let one = plan(&format!("{HEAD}topology = \"{line}\"\n{load}"));
        let table = format!("[topology]\nrate = \"100Gbps\"\ndelay = \"1us\"\n{table}");
        let other = plan(&format!("{HEAD}{table}{load}"));
        assert_eq!(format!("{:?}", one.topology), format!("{:?}", other.topology), "{line}");
    }
}

#[test]
fn mistakes_in_files_name_file_and_line() {
    let workload = |text: &str| format!("{HEAD}{STAR}[[workload]]\n{text}");
    let topology = |file: &str| {
        format!(
            "{HEAD}topology = {{ kind = \"links\", file = \"{file}\", buffer = \"1MB\" }}\n\
             [[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n"
        )
    };
    let trace = |file: &str| workload(&format!("kind = \"trace\"\nfile = \"{file}\"\n"));
    for (text, message) in [
        (
            workload("kind = \"poisson\"\nload = 0.1\nsizes = { file = \"bad.txt\" }\n"),
            "s.toml:7:18: `workload.sizes.file` bad.txt:2: `x` is not two numbers",
        ),
        (trace("none.csv"), "`workload.file` cannot be used: none.csv: no such file"),
        (trace("late.csv"), "late.csv:1: the first message starts at 9.999ms"),
        (trace("far.csv"), "far.csv:2: unknown host 9: the topology has 8, numbered from 0"),
        (trace("many.cm"), "many.cm:1: it has 9 nodes, but the topology has 8 hosts"),
        (trace("two.txt"), "two.txt:2: `1000 50` is not the number of flows"),
        (topology("trace.csv"), "trace.csv:1: `start_us,from,to,bytes` is not a key and a value"),
        (topology("flow.txt"), "flow.txt:1: the first line must be three numbers"),
        (
            format!("{}file = \"switch.txt\"\n", topology("topology.txt"))
                .replace("\"incast\"\nsize = \"1kB\"", "\"trace\""),
            "switch.txt:2: node 3 is not a host of the topology",
        ),
    ] {
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.contains(message), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_one_line_topology_is_read_or_refused(line in "(star|fat-tree|links|dumbbell)( [a-z_]{1,6}=?[0-9a-zA-Z]{0,6}){0,4}") {
        let text = format!("{HEAD}topology = \"{line}\"\n[[workload]]\nkind = \"incast\"\nsize = \"1kB\"\n");
        if let Err(error) = read(&text) {
            prop_assert!(!error.0.is_empty());
        }
    }
}
