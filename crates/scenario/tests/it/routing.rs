//! Path policies in whole runs. Expected values are closed forms of the load of links.

use apus_scenario::Simulation;
use apus_scenario::{Options, Scenario, Source};
use apus_sim::summary::Summary;

fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "s.toml".to_owned(), text: text.to_owned() };
    Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default()).map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(why) => why,
    }
}

/// Runs a scenario and its written form, which must give equal settings.
fn run(text: &str, threads: u32) -> Summary {
    let scenario = read(text).unwrap_or_else(|e| panic!("{e}"));
    let setup = &scenario.runs[0].setup;
    let effective = setup.to_toml();
    let again = read(&effective).unwrap_or_else(|e| panic!("{e}\n{effective}"));
    assert_eq!(again.runs[0].setup.to_toml(), effective);
    let simulation = Simulation::with_threads(&setup.plan().expect("plan"), threads).expect("plan");
    simulation.run("s", &mut |_| {}).expect("packets are conserved")
}

/// Eight hosts on each of two leaves, eight spines of the hosts' rate. Each host of leaf 0 sends to one host of
/// leaf 1 in a closed loop.
fn pairs(balancer: &str, more: &str) -> String {
    let flow = |host| format!("[[workload.flow]]\nfrom = {host}\nto = {}\n", host + 8);
    let flows: String = (0..8).map(flow).collect();
    format!(
        r#"
duration = "1ms"
warmup = "200us"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 8
hosts_per_leaf = 8
rate = "100Gbps"
delay = "1us"
buffer = "unlimited"
[routing]
balancer = "{balancer}"
{more}
[algorithm]
name = "constant"
window = 64.0
[[workload]]
kind = "flows"
size = "10MB"
{flows}"#
    )
}

/// Goodput of all flows over the payload that their links carry.
fn share(summary: &Summary) -> f64 {
    summary.goodput_gbps / (8.0 * 100.0 * 4096.0 / 4160.0)
}

/// An entropy value that is the number of a path loads all eight spines alike. One path per flow gives a
/// mean of 1 - (1 - 1/8)^8 = 0.656 for random choices, and 1 only without any collision (probability
/// 8!/8^8 = 0.0024).
#[test]
fn spraying_fills_all_links_where_one_path_per_flow_collides() {
    for (balancer, more) in [
        ("oblivious form=round-robin evs=8", "ev = \"indexed\""),
        ("oblivious form=random evs=65536", "loss = \"timeout\""),
        ("reps", "ack_path = \"own\""),
        ("mixed", "range = 256"),
        ("oblivious form=round-robin evs=8", "ev = \"indexed\"\nack_bytes = \"16KiB\""),
        ("round-robin", "loss = \"timeout\""),
    ] {
        let share = share(&run(&pairs(balancer, more), 1));
        assert!(share > 0.9, "{balancer}: {share}");
    }
    let one_path = share(&run(&pairs("ecmp", ""), 1));
    assert!(one_path < 0.9, "{one_path}");
}

/// 64 hashed values of each of 8 flows load a spine with a relative deviation of sqrt(7 / 512) = 0.117. All
/// windows wait at the spine with the largest load, so its load limits the goodput: with four deviations to 1 /
/// 1.47 = 0.68. Without marks the bitmap has nothing to avoid.
#[test]
fn hashed_values_are_limited_by_the_link_that_most_of_them_share() {
    let goodput = |balancer: &str| share(&run(&pairs(balancer, "loss = \"timeout\""), 1));
    let oblivious = goodput("oblivious");
    assert!((0.68..0.97).contains(&oblivious), "{oblivious}");
    assert_eq!(goodput("bitmap"), oblivious);
}

/// The queue of that spine holds up to 8 windows of 64 packets, 170 us; the rule by time waits one base RTT.
#[test]
fn loss_by_time_is_wrong_where_queues_of_paths_differ_by_more_than_its_delay() {
    let by_time = run(&pairs("oblivious", ""), 1);
    assert!(by_time.duplicate_gbps > 0.0);
    let by_timeout = run(&pairs("oblivious", "loss = \"timeout\""), 1);
    assert_eq!(by_timeout.duplicate_gbps, 0.0);
}

#[test]
fn a_sprayed_run_is_equal_for_every_number_of_threads() {
    let at_hosts = ["reps", "mixed", "plb", "flowlet", "ecmp profile=prr"];
    let at_switches = ["adaptive", "round-robin", "switch-flowlet next=least-loaded"];
    for balancer in at_hosts.into_iter().chain(at_switches) {
        let text = pairs(balancer, "").replace("unlimited", "2MB");
        let (one, two) = (run(&text, 1), run(&text, 2));
        assert_eq!(one.work.event_hash, two.work.event_hash, "{balancer}");
    }
}

#[test]
fn settings_without_effect_and_contradictions_are_errors() {
    let why = refused(&pairs("ecmp", "loss = \"timeout\""));
    assert!(why.contains("every flow keeps one path"), "{why}");
    let why = refused(&pairs("rep", ""));
    assert!(why.contains("did you mean `reps`"), "{why}");
    let why = refused(&pairs("reps", "range = 300"));
    assert!(why.contains("power of two"), "{why}");
    let why = refused(&pairs("reps", "loss = \"count\"\nloss_delay = \"5us\""));
    assert!(why.contains("no effect"), "{why}");
    let why = refused(&pairs("adaptive", ""));
    assert!(why.contains("limit the buffer or the class"), "{why}");
    // Policies that read marks use them with any algorithm.
    let marked = |balancer: &str| {
        let unlimited = "buffer = \"unlimited\"";
        pairs(balancer, "")
            .replace(unlimited, &format!("{unlimited}\necn = {{ threshold = \"40kB\" }}"))
    };
    assert!(refused(&marked("oblivious")).contains("no algorithm or balancer here looks at"));
    let hull = marked("reps").replace("\"constant\"\nwindow = 64.0", "\"hull\"");
    assert!(refused(&hull).contains("mark packets as `hull` needs it"), "{}", refused(&hull));
    let events = |text: &str| run(text, 1).work.event_hash;
    assert_ne!(events(&marked("reps")), events(&pairs("reps", "")), "REPS obeys the marks");
    let go_back =
        pairs("reps", "").replace("[routing]", "[transport]\nrecovery = \"go-back-n\"\n[routing]");
    assert!(refused(&go_back).contains("needs packets in order"));
    let falcon = pairs("reps", "")
        .replace("name = \"constant\"\nwindow = 64.0", "name = \"swift\"\nprofile = \"falcon\"");
    assert!(refused(&falcon).contains("changes the path itself"));
}

/// Four classes of one port: a class names the policy of its workloads, and a workload's own policy takes
/// precedence.
#[test]
fn a_class_has_its_own_balancer() {
    // Acknowledgements use the other class.
    let of = |class: &str, own: &str| {
        let policy = format!("{class} = \"{own}\"\n");
        let text = pairs("ecmp", "")
            .replace(
                "[routing]",
                &format!(
                    "ack_class = \"acks\"\n[[topology.class]]\nname = \"acks\"\n[[topology.class]]\nname = \"b\"\n\
                     priority = 1\n{}[routing]",
                    if class == "balancer" { policy.as_str() } else { "" }
                ),
            )
            .replace("kind = \"flows\"\n", "kind = \"flows\"\nclass = \"b\"\n");
        share(&run(&text, 1))
    };
    assert!(of("", "") < 0.9, "one path per flow");
    assert!(of("balancer", "round-robin") > 0.9);
}

/// `apus compare` lets switches mark for REPS with any algorithm, unless the algorithm's own switches mark.
#[test]
fn under_another_algorithm_switches_mark_for_policies_that_look_at_marks() {
    let marks = |balancer: &str, algorithm: &str| {
        let scenario = read(&pairs(balancer, "")).unwrap_or_else(|e| panic!("{e}"));
        let setup = &scenario.runs[0].setup;
        let config = setup.rival(algorithm, None).expect("an algorithm");
        let under = setup.under(&config).unwrap_or_else(|e| panic!("{e}"));
        under.marking.map(|rule| rule.threshold.get())
    };
    for algorithm in ["swift", "bolt", "hpcc", "dctcp"] {
        assert_eq!(marks("reps", algorithm), marks("oblivious", "dctcp"), "{algorithm}");
    }
    assert!(marks("reps", "swift").is_some_and(|threshold| threshold > 0));
    for (balancer, algorithm) in [("oblivious", "swift"), ("oblivious", "bolt"), ("reps", "hull")] {
        assert_eq!(marks(balancer, algorithm), None, "{balancer}, {algorithm}");
    }
}
