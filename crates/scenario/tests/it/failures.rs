//! Links and switches that fail, and paths that change. Expected values are closed forms.

use apus_scenario::{Options, Scenario, Simulation, Source};
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
    let plan = |scenario: &Scenario| format!("{:?}", scenario.runs[0].setup.plan());
    assert_eq!(plan(&again), plan(&scenario), "{effective}");
    let simulation = Simulation::with_threads(&setup.plan().expect("plan"), threads).expect("plan");
    simulation.run("s", &mut |_| {}).expect("packets are conserved")
}

/// The ports with faults, and their times in microseconds.
fn faults(text: &str) -> Vec<(u32, f64, f64)> {
    let scenario = read(text).unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let us = |time: apus_units::Time| time.as_ps() as f64 * 1e-6;
    plan.faults.iter().map(|fault| (fault.port.get(), us(fault.at), us(fault.until))).collect()
}

/// Four hosts on each of two leaves, four spines of the hosts' rate. Each host of leaf 0 sends to one host of
/// leaf 1 in a closed loop, over paths by `routing`.
fn pairs(routing: &str, fault: &str) -> String {
    let flow = |host| format!("[[workload.flow]]\nfrom = {host}\nto = {}\n", host + 4);
    let flows: String = (0..4).map(flow).collect();
    format!(
        r#"
duration = "2ms"
warmup = "500us"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
rate = "100Gbps"
delay = "1us"
buffer = "4MB"
[routing]
{routing}
[algorithm]
name = "constant"
window = 64.0
min_rto = "100us"
[[workload]]
kind = "flows"
size = "1MB"
outstanding = 4
{flows}
{fault}"#
    )
}

const SPRAY: &str = "balancer = \"oblivious form=round-robin evs=64\"\nev = \"indexed\"\n";
const CUT: &str = "[[fault]]\nlink = \"leaf 0 <-> spine 1\"\nkind = \"down\"\nat = \"100us\"\n";

/// Goodput of all flows over the payload that their links carry.
fn share(summary: &Summary) -> f64 {
    summary.goodput_gbps / (4.0 * 100.0 * 4096.0 / 4160.0)
}

/// Round robin over four spines, one of which has the fraction f of its rate: all links run at f (C5 of the
/// facts), because all windows wait at the slow port. An adaptive policy would get (3 + f) / 4.
#[test]
fn oblivious_spraying_goes_at_the_rate_of_the_slowest_link() {
    for fraction in [0.25, 0.5] {
        let slow = format!(
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"slow\"\nfraction = {fraction}\n"
        );
        // Without timeouts, which would retransmit the packets in the slow queue over other links.
        let patient = pairs(&format!("{SPRAY}loss = \"timeout\""), &slow);
        let summary = run(&patient.replace("min_rto = \"100us\"", "min_rto = \"10ms\""), 1);
        let share = share(&summary);
        assert!((share / fraction - 1.0).abs() < 0.02, "{fraction}: {share}");
        assert_eq!(summary.faults[0].rate_fraction, Some(fraction));
    }
}

/// REPS leaves the slow spine because of its marks with any algorithm, also next to switch halves that do not
/// mark. It gets more than half of the rate of an adaptive policy, (3 + f) / 4 (C5 of the facts); oblivious
/// spraying gets f.
#[test]
fn reps_leaves_a_slow_link_by_marks_beside_the_switch_half_of_the_algorithm() {
    let slow = "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"slow\"\nfraction = 0.125\n";
    for at in ["enqueue", "dequeue"] {
        for algorithm in ["bolt", "hpcc"] {
            let marks =
                format!("buffer = \"4MB\"\necn = {{ threshold = \"40kB\", at = \"{at}\" }}");
            let text = |policy: &str| {
                pairs(&format!("balancer = \"{policy}\"\nloss = \"timeout\""), slow).replace(
                    "\"constant\"\nwindow = 64.0\nmin_rto = \"100us\"",
                    &format!("\"{algorithm}\""),
                )
            };
            let marked = share(&run(&text("reps").replace("buffer = \"4MB\"", &marks), 1));
            let blind = share(&run(&text("oblivious"), 1));
            let most = (3.0 + 0.125) / 4.0;
            assert!(marked > 0.5 * most && marked <= most, "{algorithm}, {at}: {marked}, {blind}");
            assert!(marked > 1.5 * blind, "{algorithm}, {at}: {marked}, {blind}");
        }
    }
}

/// Without rerouting each flow permanently loses a quarter of its packets; with rerouting the three remaining
/// links carry three quarters. 64 values select 4 paths: the 16 values of the dead path spread over three paths
/// as 16 draws, so that the fullest link has a little more than a third.
#[test]
fn rerouting_brings_the_load_to_the_links_that_are_left() {
    let routing = |more: &str| format!("{SPRAY}loss = \"ev-order\"\n{more}");
    let never = run(&pairs(&routing(""), CUT), 1);
    let after =
        run(&pairs(&routing("reroute_local = \"20us\"\nreroute_global = \"50us\""), CUT), 1);
    // Little's law: 64 packets of the window, of which a lost packet, one of four, stays for a timeout of 100
    // us, and the others for an RTT of 8.7 us. Links are half full and serve packets of the hosts in turn. An
    // RTT therefore includes at most three packets of the other hosts in each of two queues, and a new packet
    // waits for at most half the window to leave before it.
    let (packet, timeout, rtt) = (0.3328, 100.0, 8.7);
    let arriving = |rtt: f64, wait: f64| 0.75 * 64.0 / (0.25 * timeout + 0.75 * rtt + wait);
    let bounds = arriving(rtt + 6.0 * packet, 32.0 * packet)..arriving(rtt, 0.0);
    let arrived = share(&never) / packet; // packets per microsecond and host, 1.10 to 1.52 of 3.0
    assert!(bounds.contains(&arrived), "{arrived} of {bounds:?}");
    assert!((0.6..0.75).contains(&share(&after)), "{}", share(&after));
    let kinds: Vec<_> = after.faults.iter().map(|f| (f.kind, f.at_us, f.until_us)).collect();
    let down = ("down", 100.0, None);
    assert_eq!(
        kinds,
        [down, down, ("avoided-local", 120.0, None), ("avoided-global", 150.0, None)]
    );
    // Afterwards nothing is lost. The spine at the link's end continues to send acknowledgements into the link
    // until leaf 1 knows, at 150 us. In 50 us a port accepts at most 50 us * 100 Gb/s / 4160 B = 150 packets,
    // and as many are queued.
    let lost = after.faults[0].lost_packets.expect("counted");
    assert_eq!(
        lost + after.faults[1].lost_packets.expect("counted"),
        after.losses.causes.link_down
    );
    assert!(lost > 16 && lost < 150 + 4 * 64, "{lost}");
    assert!(never.faults[0].lost_packets > Some(2 * lost));
}

/// Without rerouting the flows of three dead links of four stand still; with it all flows share the remaining
/// link.
#[test]
fn one_path_per_flow_stands_still_until_it_is_rerouted() {
    let all = "[[fault]]\nlink = \"leaf 0 <-> spine *\"\nkind = \"down\"\nat = \"600us\"\ncount = 3\nkeep_paths = true\n";
    let never = run(&pairs("", all), 1);
    let after = run(&pairs("reroute_local = \"10us\"\nreroute_global = \"10us\"", all), 1);
    // From 600 us to 2000 us of the 1500 us that count, except for one or two RTOs, and up to the full rate
    // before.
    assert!((0.19..0.31).contains(&share(&after)), "{}", share(&after));
    assert!(share(&never) < share(&after), "{} {}", share(&never), share(&after));
}

/// The link into host 4 loses every packet. If only one spine of four is cut off, that is not the reason why
/// flow 0 stands still, whichever spine it is. If all four are cut off, it is the reason.
#[test]
fn a_flow_that_spreads_its_packets_is_cut_off_only_without_a_path() {
    let lossy = "[[fault]]\nlink = \"leaf 1 -> host 4\"\nkind = \"loss\"\nprobability = 1\nat = \"100us\"\n";
    let reason = |spine: &str| {
        let faults = format!("{lossy}{}", CUT.replace("spine 1", spine));
        let summary = run(&pairs(SPRAY, &faults), 1);
        let flow = summary.stalled.flows.into_iter().find(|flow| flow.flow == 0).expect("stalled");
        flow.reason
    };
    for spine in 0..4 {
        let reason = reason(&format!("spine {spine}"));
        assert!(!reason.contains("down"), "spine {spine}: {reason}");
    }
    let reason = reason("spine *");
    assert!(reason.contains("leaf 0 -> spine") && reason.ends_with("down since 100us"), "{reason}");
}

/// Random faults, switches, flaps, rerouting and every policy give the same results on any number of threads.
#[test]
fn failures_are_the_same_on_any_number_of_threads() {
    let flap = "[[fault]]\nlink = \"leaf * <-> spine *\"\nkind = \"down\"\ncount = 3\nkeep_paths = true\n\
                at = \"50us\"\nlasts = \"80us\"\nevery = \"300us\"\nspacing = \"random\"\n\
                [[fault]]\nswitch = \"spine 2\"\nkind = \"down\"\nat = \"700us\"\nuntil = \"900us\"\n\
                [[fault]]\nlink = \"spine 0 -> leaf 1\"\nkind = \"slow\"\nfraction = 0.3\nuntil = \"1ms\"\n\
                [[fault]]\nlink = \"host 1 -> leaf 0\"\nkind = \"slow\"\nfraction = 0.5\nat = \"1ms\"\n\
                [[fault]]\nlink = \"leaf 0 -> spine *\"\nkind = \"loss\"\nprobability = 0.001\n\
                [[fault]]\nlink = \"spine 3 -> leaf 1\"\nkind = \"reorder\"\nprobability = 0.1\ndelay = \"5us\"\n";
    let reroute = "reroute_local = \"15us\"\nreroute_global = \"60us\"\n";
    for routing in
        ["", "rehash = \"modulo\"\n", "balancer = \"reps\"\n", "balancer = \"plb\"\n", SPRAY]
    {
        let text = pairs(&format!("{reroute}{routing}"), flap);
        let of = |threads| {
            let summary = run(&text, threads);
            let lost: Vec<_> = summary.faults.iter().map(|fault| fault.lost_packets).collect();
            (summary.work.event_hash, summary.packets.dropped, summary.packets.delivered, lost)
        };
        let one = of(1);
        assert!(one.1 > 0);
        assert_eq!(one, of(2), "{routing}");
        assert_eq!(one, of(3), "{routing}");
    }
}

/// A run in time windows loses the same packets as one event by event.
#[test]
fn failures_are_the_same_in_time_windows() {
    let text = pairs(&format!("{SPRAY}reroute_local = \"20us\""), CUT);
    let scenario = read(&text).unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let windows = Simulation::with_threads(&plan, 1).expect("plan").in_windows();
    let windows = windows.run("s", &mut |_| {}).expect("packets are conserved");
    let events = run(&text, 1);
    assert_eq!(windows.work.event_hash, events.work.event_hash);
    assert_eq!(windows.losses, events.losses);
}

/// The seed chooses links and times; a share of 16 links is rounded; the last path of a pair stays.
#[test]
fn random_faults_follow_the_seed_and_keep_paths() {
    let of = |seed: u64, fault: &str| faults(&format!("seed = {seed}\n{}", pairs("", fault)));
    let third = "[[fault]]\nlink = \"leaf * -> spine *\"\nkind = \"down\"\nshare = 0.3\n";
    assert_eq!(of(1, third).len(), 2);
    assert_eq!(of(1, third), of(1, third));
    assert!((2..12).any(|seed| of(seed, third) != of(1, third)));
    // 7 of the 8 links between 2 leaves and 4 spines are to fail, but a path must stay: exactly one spine keeps
    // both of its links.
    let most =
        "[[fault]]\nlink = \"leaf * <-> spine *\"\nkind = \"down\"\ncount = 7\nkeep_paths = true\n";
    for seed in 1..20 {
        let links: Vec<u32> = of(seed, most).iter().map(|fault| fault.0 / 2).collect();
        // Links 8 to 11 are leaf 0's, 12 to 15 leaf 1's.
        let path = |spine: u32| !links.contains(&(8 + spine)) && !links.contains(&(12 + spine));
        assert_eq!((0..4).filter(|spine| path(*spine)).count(), 1, "{links:?}");
    }
    let flap = "[[fault]]\nlink = \"leaf 0 -> spine 0\"\nkind = \"down\"\nat = \"100us\"\nlasts = \"50us\"\n\
                every = \"400us\"\nuntil = \"1ms\"\n";
    let times = |faults: &[(u32, f64, f64)]| -> Vec<(f64, f64)> {
        faults.iter().map(|fault| (fault.1, fault.2)).collect()
    };
    assert_eq!(times(&of(1, flap)), [(100.0, 150.0), (500.0, 550.0), (900.0, 950.0)]);
    let random = of(1, &flap.replace("until = \"1ms\"", "spacing = \"random\""));
    // 2 ms and a drain of 1.5 ms: a mean of 8.5 faults.
    assert!((2..20).contains(&random.len()), "{random:?}");
    assert!(random.windows(2).all(|pair| pair[0].2 <= pair[1].1), "{random:?}");
    assert!(random[..random.len() - 1].iter().all(|fault| (fault.2 - fault.1 - 50.0).abs() < 1e-6));
    let switch = of(1, "[[fault]]\nswitch = \"spine 3\"\nkind = \"down\"\n");
    let ports: Vec<u32> = switch.iter().map(|fault| fault.0).collect();
    assert_eq!(ports, [22, 23, 30, 31]);
}

#[test]
fn settings_without_effect_are_errors() {
    for (routing, fault, expected) in [
        ("reroute_local = \"1ms\"", "", "no `[[fault]]` has `kind = \"down\"`"),
        ("reroute_global = \"10ms\"", CUT, "which has no effect: the first fault is at 100us"),
        ("rehash = \"modulo\"", CUT, "without `reroute_local` or `reroute_global`"),
        ("", "[[fault]]\nswitch = \"spine 9\"\nkind = \"down\"", "not a switch of the topology"),
        (
            "",
            "[[fault]]\nswitch = \"spine 1\"\nlink = \"leaf 0 -> spine 1\"\nkind = \"down\"",
            "with a `switch`",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"slow\"",
            "`fault.fraction` is missing",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"slow\"\nfraction = 1",
            "must be below 1",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"slow\"\nfraction = 0.0001",
            "does not hold one packet",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"down\"\nfraction = 0.5",
            "unless the link is slow",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"down\"\nlasts = \"5us\"",
            "without `every`",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"down\"\nevery = \"5us\"\nlasts = \"5us\"",
            "more than `lasts`",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"down\"\nevery = \"5us\"",
            "`fault.lasts` is missing",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf * -> spine *\"\nkind = \"down\"\nevery = \"100ns\"\nlasts = \"50ns\"",
            "at most 100000",
        ),
        ("", "[[fault]]\nlink = \"leaf * -> spine *\"\nkind = \"down\"\ncount = 8", "but 8 match"),
        (
            "",
            "[[fault]]\nlink = \"leaf * -> spine *\"\nkind = \"down\"\ncount = 2\nshare = 0.5",
            "with a `share`",
        ),
        (
            "",
            "[[fault]]\nlink = \"leaf 0 -> spine 1\"\nkind = \"down\"\nkeep_paths = true",
            "without `share` or `count`",
        ),
    ] {
        let why = refused(&pairs(routing, fault));
        assert!(why.contains(expected), "{fault}: {why}");
    }
}
