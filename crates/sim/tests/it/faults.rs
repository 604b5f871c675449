//! Faults of links that overlap in time, and their results.

use apus_sim::Watch;
use apus_sim::measure::PortGroup;
use apus_sim::plan::{Fault, FaultKind};
use apus_sim::record::Record;
use apus_units::{PortId, Rate, Span, Time};

use crate::support::{Plan, Simulation, Topology, connection, fingerprint, plan, run, tier};

/// Hosts 0 to 2 send to host 3 without end, over links of 100 Gb/s, for 1 ms.
fn incast(faults: Vec<Fault>) -> Plan {
    let mut star = Topology::star(4, &tier(Rate::from_gbps(100), Span::from_us(1)));
    for link in &mut star.links {
        (link.ab.variable, link.ba.variable) = (true, true);
    }
    let flows = (0..3).map(|from| connection(("swift", &[]), from, 3, 64_000)).collect();
    Plan { faults, ..plan(star, flows, Span::from_ms(1)) }
}

/// Returns a fault of the link from the switch to host 3, between these times in microseconds.
fn fault(kind: FaultKind, from: u64, until: u64) -> Fault {
    let [at, until] = [from, until].map(|us| Time::ZERO + Span::from_us(us));
    Fault { port: PortId::new(7), at, until, kind }
}

/// A fault ends at its own end, not at the end of another fault of the same link that began before or after it.
#[test]
fn the_end_of_a_fault_does_not_end_another_one() {
    for (first, second) in [((0, 2_000), (100, 200)), ((0, 200), (100, 2_000))] {
        let both = |kind| {
            let faults = [first, second].map(|(from, until)| fault(kind, from, until));
            run(&incast(faults.into())).goodput_gbps
        };
        let slow = both(FaultKind::Slow(0.1));
        assert!((7.0..10.0).contains(&slow), "{slow} Gb/s over a link of 10 Gb/s");
        for kind in [FaultKind::Down, FaultKind::Loss(1.0), FaultKind::Corrupt(1.0)] {
            assert_eq!(both(kind), 0.0, "{kind:?}");
        }
    }
    let late = FaultKind::Slow(0.1);
    let ended = run(&incast(vec![fault(late, 0, 200), fault(late, 100, 300)])).goodput_gbps;
    assert!(ended > 50.0, "{ended} Gb/s, although both have ended after 300 us");
}

/// The last link carries 15 Gb/s throughout the measured phase, 0.15 of its rate. This does not depend on
/// whether the fault has ended when the results are computed, or on the part that has the link.
#[test]
fn utilisation_of_a_slow_link_is_that_of_its_configured_rate() {
    for until in [1_000, 2_000] {
        let mut plan = incast(vec![fault(FaultKind::Slow(0.15), 100, until)]);
        plan.warmup = Span::from_us(200);
        let ports = vec![PortId::new(7)];
        plan.measures.groups = vec![PortGroup { name: "slow".to_owned(), ports }];
        plan.measures.window = Some(Span::from_us(100));
        plan.measures.classes = vec!["all".to_owned()];
        let mut all = Vec::new();
        for threads in [1, 2, 4] {
            let simulation = Simulation::with_threads(&plan, threads).expect("a plan");
            let simulation = simulation.record(Record::of_duration(plan.duration));
            let summary = simulation.expect("a record").run("test", &mut |_| {}).expect("a run");
            assert_eq!(summary.cost.threads, threads);
            let port = &summary.recording.as_ref().expect("recorded").ports[7];
            assert_eq!(port.rate, Rate::from_gbps(100));
            let windows = &summary.ports["slow"];
            for of in [summary.busiest_port.utilisation, windows.totals.utilisation] {
                assert!((0.149..=0.151).contains(&of), "{of}, {threads} threads");
            }
            let queue = windows.totals.queue_us.max.expect("measured");
            let bytes = windows.totals.queue_bytes.max.expect("measured");
            assert!((queue - bytes * 8e-5).abs() < 1e-9, "{queue} us for {bytes} B");
            assert_eq!(windows.class["all"].by_port["10"].windows, 8);
            all.push(fingerprint(&summary));
        }
        assert!(all.iter().all(|one| *one == all[0]));
    }
}

/// The packet in service is lost even if the link is up again before its last bit would leave.
#[test]
fn a_short_failure_has_cost_the_packet_in_service_too() {
    let at = Time::ZERO + Span::from_us(100);
    let short = |from: Time| Fault {
        port: PortId::new(7),
        at: from,
        until: from + Span::from_ns(10),
        kind: FaultKind::Down,
    };
    // A packet of 1064 B takes 85 ns: the second failure begins while the first packet is still in service.
    let summary = run(&incast(vec![short(at), short(at + Span::from_ns(20))]));
    let lost: Vec<_> = summary.faults.iter().map(|fault| fault.lost_packets).collect();
    let all = summary.losses.causes.link_down;
    assert!(all > 1, "{all}");
    assert_eq!(lost.iter().map(|lost| lost.unwrap()).sum::<u64>(), all, "{lost:?}");
}

/// A run in which no more packets arrive ends at the same time whether it is recorded or not.
#[test]
fn a_recorded_run_without_progress_ends_where_others_do() {
    let mut plan = incast(vec![fault(FaultKind::Down, 130, 1_000_000)]);
    plan.duration = Span::from_ms(20);
    let watch = Watch { silence: Some(Span::from_us(300)), ..Watch::default() };
    let simulation = || Simulation::new(&plan).expect("a plan").watched_by(&watch);
    let plain = simulation().run("test", &mut |_| {}).expect("a run");
    assert!(plain.stop_reason.is_some() && plain.simulated_s < 0.002, "{}", plain.simulated_s);
    for samples in [30, 130, 1_000] {
        let record =
            Record { interval: plan.duration / samples, ..Record::of_duration(plan.duration) };
        let recorded = simulation().record(record).expect("a recording");
        let recorded = recorded.run("test", &mut |_| {}).expect("a run");
        assert_eq!(recorded.work.event_hash, plain.work.event_hash, "{samples}");
        assert_eq!(recorded.stop_reason, plain.stop_reason);
    }
}

/// A packet whose last bit leaves at the very end of a loss fault is lost, and counts for that fault.
#[test]
fn the_last_packet_of_a_loss_counts() {
    let star = Topology::star(2, &tier(Rate::from_gbps(100), Span::from_us(1)));
    let mut plan = plan(star, vec![connection(("swift", &[]), 0, 1, 1000)], Span::from_us(500));
    plan.topology.links[0].ab.variable = true;
    // The first packet, of 1064 B, leaves its host at 85.12 ns.
    let until = Time::ZERO + Span::from_ps(85_120);
    let port = PortId::new(0);
    plan.faults = vec![Fault { port, at: Time::ZERO, until, kind: FaultKind::Loss(1.0) }];
    let summary = run(&plan);
    assert_eq!(summary.losses.causes.link_loss, 1);
    assert_eq!(summary.faults[0].lost_packets, Some(1));
}
