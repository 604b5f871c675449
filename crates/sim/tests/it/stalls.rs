//! Flows without progress are reported with the reason while other flows make progress.

use crate::support::{Plan, Simulation, Tier, Topology};
use std::sync::{Arc, Mutex};

use crate::support::{connection, plan, run};
use apus_sim::plan::{Fault, FaultKind};
use apus_sim::summary::Summary;
use apus_sim::{Tell, Watch};
use apus_units::{Bytes, PortId, Rate, Span, Time};

/// Every host of a fat tree sends 64 kB at a time to the host 5 places further.
fn shifted() -> Plan {
    let tier = |of: fn(Rate, Span, Bytes) -> Tier| {
        of(Rate::from_gbps(100), Span::from_us(1), Bytes::new(1 << 20))
    };
    let topology =
        Topology::fat_tree(4, 2, &tier(Tier::hosts), &tier(Tier::switches), &tier(Tier::switches));
    let topology = topology.expect("fat tree");
    let flows = (0..16).map(|from| connection(("swift", &[]), from, (from + 5) % 16, 64_000));
    plan(topology, flows.collect(), Span::from_ms(20))
}

/// A permutation over a fat tree, with the link of host 3 down from 0.3 ms until `until`, in both directions.
fn broken(until: Time) -> Plan {
    let mut plan = shifted();
    // Host links come first, in the order of hosts; ports 2n and 2n + 1 are the ends of link n.
    let link = &mut plan.topology.links[3];
    (link.ab.variable, link.ba.variable) = (true, true);
    let at = Time::ZERO + Span::from_us(300);
    let fault = |port| Fault { port: PortId::new(port), at, until, kind: FaultKind::Down };
    plan.faults = vec![fault(6), fault(7)];
    plan
}

fn ends(summary: &Summary) -> Vec<(u32, u32)> {
    summary.stalled.flows.iter().map(|flow| (flow.host, flow.peer)).collect()
}

#[test]
fn flows_over_a_dead_link_are_named_with_it_while_others_move() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&told);
    let tell = move |run: &str, what: &str| log.lock().expect("log").push(format!("{run}: {what}"));
    let watch = Watch { tell: Some(Tell(Arc::new(tell))), ..Watch::default() };
    let simulation = Simulation::new(&broken(Time::MAX)).expect("plan").watched_by(&watch);
    let summary = simulation.run("test", &mut |_| {}).expect("run");
    assert!(summary.stop_reason.is_none(), "the others move");
    // Host 3 sends to 8, and 14 to 3.
    assert_eq!((summary.stalled.noticed, summary.stalled.at_end), (2, 2));
    assert_eq!(ends(&summary), [(3, 8), (14, 3)]);
    for flow in &summary.stalled.flows {
        assert!((200.0..=301.0).contains(&flow.since_us), "{flow:?}");
        assert_eq!(flow.until_us, None);
        assert!(
            flow.reason.contains("host 3") && flow.reason.ends_with("down since 300us"),
            "{flow:?}"
        );
    }
    let told = told.lock().expect("log");
    assert_eq!(told.len(), 2, "once per flow: {told:?}");
    assert!(told.iter().all(|line| line.starts_with("test: flow ")), "{told:?}");
}

#[test]
fn a_flow_that_continues_is_counted_apart() {
    let summary = run(&broken(Time::ZERO + Span::from_ms(10)));
    assert_eq!((summary.stalled.noticed, summary.stalled.at_end), (2, 0));
    for flow in &summary.stalled.flows {
        assert!(flow.until_us.is_some_and(|until| until > 10_000.0), "{flow:?}");
    }
}

#[test]
fn a_run_without_faults_has_no_stalled_flows() {
    let summary = run(&shifted());
    assert_eq!(summary.stalled.noticed, 0, "{:?}", summary.stalled);
}

/// A run without any progress also reports the reason.
#[test]
fn a_run_that_is_stuck_as_a_whole_names_the_link() {
    let mut plan = broken(Time::MAX);
    plan.connections.retain(|flow| flow.from.get() == 3);
    let watch = Watch { silence: Some(Span::from_ms(2)), ..Watch::default() };
    let simulation = Simulation::new(&plan).expect("plan").watched_by(&watch);
    let summary = simulation.run("test", &mut |_| {}).expect("run");
    let why = summary.stop_reason.expect("stuck");
    assert!(why.contains("has been down since 300us"), "{why}");
}
