//! Links that fail, lose, corrupt and reorder on a schedule.

use apus_scenario::Simulation;
use std::collections::BTreeSet;

use apus_scenario::{Options, Scenario, Source};
use apus_sim::summary::Summary;

/// Two leaves and two spines; host 0 of leaf 0 sends to host 2 of leaf 1.
const HEAD: &str = "duration = \"10ms\"\nalgorithm = { name = \"swift\" }\n\
    topology = \"leaf-spine leaves=2 hosts_per_leaf=2 spines=2 100Gbps 1us\"\n\
    [[workload]]\nkind = \"flows\"\nsize = \"64kB\"\noutstanding = 8\n\
    [[workload.flow]]\nfrom = 0\nto = 2\n";

fn run(faults: &str, threads: u32) -> Summary {
    let source = Source { name: "s.toml".to_owned(), text: format!("{HEAD}{faults}") };
    let read = |source| Scenario::read(source, &|n| Err(n.to_owned()), &Options::default());
    let scenario = read(&source).unwrap_or_else(|e| panic!("{e}"));
    let setup = &scenario.runs[0].setup;
    let effective = Source { name: "e.toml".to_owned(), text: setup.to_toml() };
    let again = read(&effective).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.runs[0].setup.to_toml(), effective.text);
    let plan = setup.plan().expect("plan");
    let simulation = Simulation::with_threads(&plan, threads).expect("plan");
    simulation.run("faults", &mut |_| {}).expect("packets are conserved")
}

#[test]
fn a_link_that_is_down_carries_nothing_until_it_is_up() {
    let whole = run("", 1);
    let fault = |until: &str| {
        format!("[[fault]]\nlink = \"leaf 1 <-> host 2\"\nkind = \"down\"\nat = \"2ms\"\n{until}")
    };
    let never = run(&fault(""), 1);
    assert!(never.packets.dropped > 0);
    // A fifth of the time and no more, except for packets in flight.
    let share = never.goodput_gbps / whole.goodput_gbps;
    assert!((0.17..0.21).contains(&share), "{share}");
    let again = run(&fault("until = \"2.5ms\"\n"), 1);
    assert!(again.goodput_gbps > never.goodput_gbps * 1.5, "{}", again.goodput_gbps);
    assert!(again.goodput_gbps < whole.goodput_gbps);
}

/// The measured phase ends at 10 ms, and the drain at 20 ms if an op has not ended.
#[test]
fn a_fault_that_ends_in_the_drain_lets_ops_end() {
    let fault = |until: &str| {
        format!("[[fault]]\nlink = \"leaf 1 <-> host 2\"\nkind = \"down\"\nat = \"9ms\"\n{until}")
    };
    let ended = run(&fault("until = \"11ms\"\n"), 1);
    assert_eq!((ended.measured.unfinished_ops, ended.drain.ended_by), (0, "complete"));
    assert!(ended.drain.seconds > 1e-3 && ended.drain.seconds < 9e-3, "{:?}", ended.drain);
    assert!(
        ended.faults.iter().all(|fault| fault.until_us == Some(11_000.0)),
        "{:?}",
        ended.faults
    );
    let never = run(&fault(""), 1);
    assert_eq!((never.measured.unfinished_ops, never.drain.ended_by), (8, "limit"));
}

#[test]
fn a_link_loses_as_many_packets_as_it_should() {
    for kind in ["loss", "corrupt"] {
        let fault = format!(
            "[[fault]]\nlink = \"host 0 -> leaf 0\"\nkind = \"{kind}\"\nprobability = 0.01\n"
        );
        let lossy = run(&fault, 1);
        let sent = lossy.measured.data_packets_sent as f64;
        let dropped = lossy.packets.dropped as f64;
        // Five standard deviations of the binomial distribution.
        assert!((dropped - sent * 0.01).abs() < 5.0 * (sent * 0.01).sqrt(), "{dropped} of {sent}");
        assert!(sent > 3_000.0, "{sent}");
    }
}

/// The losses of the whole run are listed by cause and port, even if another port is the busiest.
#[test]
fn losses_are_attributed_to_their_causes_and_ports() {
    let faults = "[[fault]]\nlink = \"host 0 -> leaf 0\"\nkind = \"loss\"\nprobability = 0.02\n\
                  until = \"5ms\"\n\
                  [[fault]]\nlink = \"leaf 1 -> host 2\"\nkind = \"corrupt\"\n\
                  probability = 0.01\nuntil = \"6ms\"\n\
                  [[fault]]\nlink = \"leaf 1 <-> host 2\"\nkind = \"down\"\nat = \"8ms\"\n";
    for threads in [1, 2] {
        let run = run(faults, threads);
        let losses = &run.losses;
        let causes = losses.causes;
        assert!(
            causes.link_loss > 10 && causes.corruption > 5 && causes.link_down > 0,
            "{losses:?}"
        );
        assert_eq!(causes.link_loss + causes.corruption + causes.link_down, losses.packets);
        assert_eq!(losses.packets, run.packets.dropped);
        let rate = losses.packets as f64 / run.packets.sent as f64;
        assert!((losses.loss_rate - rate).abs() < 1e-12);
        let at = |name: &str| {
            let found = losses.ports.iter().find(|port| port.port == name);
            found.unwrap_or_else(|| panic!("{name}: {losses:?}")).causes
        };
        assert_eq!(at("host 0 -> leaf 0").link_loss, causes.link_loss);
        assert_eq!(at("leaf 1 -> host 2").corruption, causes.corruption);
        let down = at("leaf 1 -> host 2").link_down + at("host 2 -> leaf 1").link_down;
        assert_eq!(down, causes.link_down);
        assert_eq!(losses.lossy_ports, 3);
        let kinds: Vec<_> = run.faults.iter().map(|f| (f.kind, f.at_us, f.until_us)).collect();
        let down = ("down", 8000.0, None);
        assert_eq!(
            kinds,
            [("loss", 0.0, Some(5000.0)), ("corrupt", 0.0, Some(6000.0)), down, down]
        );
        // Both directions of a link, in the order of their ports.
        let subjects: BTreeSet<_> = run.faults[2..].iter().map(|f| f.subject.as_str()).collect();
        assert_eq!(subjects, BTreeSet::from(["leaf 1 -> host 2", "host 2 -> leaf 1"]));
    }
}

/// Packets delayed by less than three packet times are overtaken by at most two packets and are not lost (the
/// transport waits for three). Packets delayed by more are retransmitted although none was lost.
#[test]
fn a_reordering_link_loses_nothing_but_may_cause_retransmissions() {
    let reorder = |delay: &str| {
        let fault = format!(
            "[[fault]]\nlink = \"leaf 1 -> host 2\"\nkind = \"reorder\"\nprobability = 0.05\n\
             delay = \"{delay}\"\n"
        );
        run(&fault, 1)
    };
    // 4160 B at 100 Gb/s take 333 ns.
    let (slight, much) = (reorder("600ns"), reorder("20us"));
    assert_eq!((slight.packets.dropped, much.packets.dropped), (0, 0));
    assert_eq!(slight.measured.duplicates_delivered, 0);
    assert!(much.measured.duplicates_delivered > 10, "{}", much.measured.duplicates_delivered);
    assert!(slight.measured.ops > 0 && much.measured.ops > 0);
}

#[test]
fn faults_are_the_same_on_any_number_of_threads() {
    let faults = "[[fault]]\nlink = \"leaf 0 -> spine 0\"\nkind = \"loss\"\nprobability = 0.02\n\
                  [[fault]]\nlink = \"spine 1 -> leaf 1\"\nkind = \"corrupt\"\nprobability = 0.02\n\
                  [[fault]]\nlink = \"leaf 1 -> host 2\"\nkind = \"reorder\"\n\
                  probability = 0.1\ndelay = \"5us\"\n\
                  [[fault]]\nlink = \"leaf 0 <-> host 0\"\nkind = \"down\"\nat = \"1ms\"\n\
                  until = \"1.3ms\"\n";
    let results = [1, 2, 4].map(|threads| {
        let summary = run(faults, threads);
        (summary.work.event_hash, summary.packets.dropped, summary.packets.delivered)
    });
    assert!(results[0].1 > 0);
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}
