//! ExpressPass in the network: calculated times and rates, and no data loss.

use apus_cc::CreditLimit;
use apus_scenario::{Options, Scenario, Source};
use apus_scenario::{Plan, Simulation};
use apus_sim::summary::Summary;

const ETHERNET: &str = "[packets]\npayload = \"1460B\"\nheader = \"78B\"\n";

fn plan(text: &str) -> Plan {
    let source = Source { name: "s.toml".to_owned(), text: format!("{text}\n{ETHERNET}") };
    let scenario = Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    scenario.runs[0].setup.plan().expect("plan")
}

fn run(text: &str, threads: u32) -> Summary {
    let plan = plan(text);
    let simulation = Simulation::with_threads(&plan, threads).expect("plan");
    simulation.run("expresspass", &mut |_| {}).expect("data queues are bounded")
}

/// A 1000 B op over one link of 10 Gb/s and 10 us: request 84 B (67.2 ns), credit 84 B, data 1078 B (862.4 ns)
/// and directly after it the stop (67.2 ns), with three times 10 us. The stop arrives at 31.064 us. The op ends
/// with the acknowledgement of the stop, 84 B and 10 us later.
#[test]
fn a_small_op_takes_31_us_from_request_to_stop() {
    let summary = run(
        "duration = \"100us\"\n\
         algorithm = { name = \"expresspass\", profile = \"code\", random_sizes = false }\n\
         [topology]\nkind = \"links\"\nrate = \"10Gbps\"\ndelay = \"10us\"\nbuffer = \"1MB\"\n\
         [[topology.link]]\na = \"h0\"\nb = \"h1\"\n\
         [[workload]]\nkind = \"flows\"\nsize = \"1000B\"\nstop = \"30us\"\n\
         [[workload.flow]]\nfrom = 0\nto = 1\n",
        1,
    );
    let latency = summary.op_latency_us.max.expect("it ends");
    let stop_received = latency - (10.0 + 84.0 * 8.0 / 1e4);
    assert!((stop_received - 31.064).abs() < 1e-6, "{stop_received}");
}

/// The queue of a port, in credits or in bytes: eight credits of 84 B.
#[test]
fn ports_limit_the_queue_of_credits_in_credits_or_in_bytes() {
    let class = |counts: &str| {
        let algorithm = format!(
            "{{ name = \"expresspass\", credit_queue = 8, credit_queue_counts = \"{counts}\" }}"
        );
        let plan = plan(&long_flows(1, &algorithm));
        let class = &plan.topology.links[0].ba.classes[0];
        (class.limit_packets, class.limit.get())
    };
    assert_eq!(class("credits"), (8, u64::MAX));
    assert_eq!(class("bytes"), (u32::MAX, 672));
}

const DUMBBELL: &str = "[topology]\nkind = \"dumbbell\"\nleft = 8\nright = 8\nrate = \"10Gbps\"\n\
                        delay = \"4us\"\nbuffer = \"unlimited\"\n";

fn long_flows(n: u32, algorithm: &str) -> String {
    let flows: String = (0..n)
        .map(|i| format!("[[workload.flow]]\nfrom = {}\nto = {}\n", i % 8, 8 + i % 8))
        .collect();
    format!(
        "duration = \"6ms\"\nwarmup = \"3ms\"\nalgorithm = {algorithm}\n{DUMBBELL}\
         [[workload]]\nkind = \"flows\"\nsize = \"1MB\"\noutstanding = 4\n{flows}"
    )
}

/// Data gets 1538 of 1622 bytes of a link, of which 1460 are payload: 9.00 Gb/s of 10.
#[test]
fn a_long_flow_fills_the_link_except_for_credits() {
    for profile in ["paper", "code"] {
        let algorithm = format!("{{ name = \"expresspass\", profile = \"{profile}\" }}");
        let summary = run(&long_flows(1, &algorithm), 1);
        assert!((summary.goodput_gbps - 9.00).abs() < 0.05, "{profile}: {}", summary.goodput_gbps);
        assert_eq!(summary.credits.data_drops, 0);
    }
}

#[test]
fn naive_credits_share_a_link_and_excess_credits_are_dropped() {
    let summary = run(&long_flows(8, "{ name = \"expresspass\", feedback = false }"), 1);
    assert!((summary.goodput_gbps - 9.00).abs() < 0.05, "{}", summary.goodput_gbps);
    assert!(summary.jain > 0.95, "{}", summary.jain);
    // Eight receivers send at the line rate, so one of eight credits passes.
    let passed = summary.credits.received as f64 / summary.credits.sent as f64;
    assert!((passed - 0.125).abs() < 0.005, "{passed}");
    assert_eq!((summary.credits.data_drops, summary.packets.dropped_at_nic), (0, 0));
    assert!(summary.credits.bound_used.expect("bounded") < 1.0);
}

/// A port drops nearly all of the credits of 400 flows that leave one host at the line's rate. A
/// credit's chance to pass must not depend on the flow's number. In 20 ms 15 400 pass, 38.5 per
/// flow; drawn at random they would vary by the root of that, which makes Jain's index 1 / (1 + 1 /
/// 38.5) = 0.975.
#[test]
fn credits_of_many_flows_of_one_host_have_equal_chances() {
    let text = "duration = \"30ms\"\nwarmup = \"10ms\"\n\
                algorithm = { name = \"expresspass\", feedback = false }\n\
                [topology]\nkind = \"star\"\nhosts = 41\nrate = \"10Gbps\"\ndelay = \"4us\"\n\
                buffer = \"unlimited\"\n\
                [[workload]]\nkind = \"incast\"\nsenders = 40\nreceiver = 40\nflows_per_pair = 10\n\
                size = \"1MB\"\noutstanding = 2\nstart_spread = \"100us\"\n";
    let summary = run(text, 1);
    assert!(summary.jain > 0.9, "{}", summary.jain);
    // Credits were dropped, data was not.
    assert!(summary.credits.sent > 100 * summary.credits.received);
    assert_eq!((summary.loss_rate, summary.measured.drops), (0.0, 0));
}

/// The gap between credits of 100 Gb/s, 130 ns, is below the transport's usual timer. Two flows must
/// nevertheless share the link, and not keep the phase with which they began.
#[test]
fn two_flows_share_a_fast_link() {
    let fast = DUMBBELL.replace("10Gbps", "100Gbps");
    for profile in ["paper", "code"] {
        let algorithm = format!("{{ name = \"expresspass\", profile = \"{profile}\" }}");
        let text = long_flows(2, &algorithm).replace(DUMBBELL, &fast);
        let summary = run(&text, 1);
        assert!(summary.jain > 0.99, "{profile}: {}", summary.jain);
    }
}

/// Requests, stops and acknowledgements that coincide add to the bound of the data queue, and are reported.
#[test]
fn packets_without_credits_add_to_the_bound() {
    let text = "duration = \"2ms\"\nalgorithm = { name = \"expresspass\" }\n\
                [topology]\nkind = \"star\"\nhosts = 51\nrate = \"10Gbps\"\ndelay = \"4us\"\n\
                buffer = \"unlimited\"\n\
                [[workload]]\nkind = \"incast\"\nsenders = 50\nreceiver = 50\nsize = \"100kB\"\n";
    let credits = run(text, 1).credits;
    // 50 requests of 84 B arrive at one port at once.
    assert!(credits.unscheduled_bytes >= 50 * 84, "{}", credits.unscheduled_bytes);
    let (longest, bound) = (credits.max_data_queue_bytes, credits.bound_bytes.expect("bounded"));
    assert!(longest <= bound + credits.unscheduled_bytes, "{longest} of {bound}");
    assert!(credits.bound_used.expect("bounded") <= 1.0);
}

/// Flow 0 takes a detour of 2 ms in each direction from 1 ms. When four flows join at 10 ms, its share of
/// credits falls from a half to a sixth, but for 4 ms its data still arrives at half of the rate. The queue
/// grows by a third of the bytes that the link carries in this time, 1.6 MB. No bound by the paths at the start
/// covers this.
#[test]
fn a_flow_that_changes_its_path_leaves_no_bound() {
    let text = "duration = \"20ms\"\nalgorithm = { name = \"expresspass\", feedback = false }\n\
                [topology]\nkind = \"links\"\nrate = \"10Gbps\"\ndelay = \"4us\"\nbuffer = \"unlimited\"\n\
                link = [{ a = \"h0\", b = \"s0\" }, { a = \"h1\", b = \"s0\" }, { a = \"s0\", b = \"s1\" },\n\
                { a = \"s1\", b = \"h2\" }, { a = \"s0\", b = \"s2\", delay = \"1ms\" },\n\
                { a = \"s2\", b = \"s1\", delay = \"1ms\" }]\n\
                [[workload]]\nkind = \"flows\"\nsize = \"1MB\"\noutstanding = 4\nflow = [\n\
                { from = 0, to = 2, reroute = { at = \"1ms\", through = [\"s0\", \"s2\", \"s1\"] } },\n\
                { from = 1, to = 2 }, FURTHER]\n";
    let further = "{ from = 1, to = 2, start = \"10ms\" },".repeat(4);
    let credits = run(&text.replace("FURTHER", &further), 1).credits;
    assert!(credits.max_data_queue_bytes > 1_000_000, "{}", credits.max_data_queue_bytes);
    assert_eq!((credits.bound_bytes, credits.bound_used), (None, None));
}

/// Queues of credits with more than 2^32 bytes.
#[test]
fn the_bound_counts_the_longest_queues_of_credits() {
    let bound = |queue: u32| {
        let text = long_flows(1, "{ name = \"expresspass\" }").replace("6ms", "200us");
        let mut plan = plan(&text.replace("3ms", "100us"));
        plan.credits = plan.credits.map(|limit| CreditLimit { queue, ..limit });
        let simulation = Simulation::new(&plan).expect("plan");
        let summary = simulation.run("expresspass", &mut |_| {}).expect("bounded");
        summary.credits.bound_bytes.expect("bounded")
    };
    // The wait for credits is nearly all of the bound, and grows with their queue.
    let ratio = bound(60_000_000) as f64 / bound(6_000_000) as f64;
    assert!((ratio - 10.0).abs() < 0.01, "{ratio}");
}

#[test]
fn runs_with_credits_are_the_same_for_any_number_of_threads() {
    let text = long_flows(8, "{ name = \"expresspass\" }");
    let hash = |threads| run(&text, threads).work.event_hash;
    assert_eq!(hash(1), hash(3));
}
