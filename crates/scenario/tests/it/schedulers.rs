//! `topology.scheduler`: how classes of the same priority share a bottleneck.

use crate::support::{assert_reads_back, good, read, run_plan};
use apus_fabric::SchedulerKind;

/// Two classes of one priority, each with one flow that always has packets at the port to host 2.
fn two_classes(scheduler: &str, weights: [u32; 2]) -> String {
    let [gold, bulk] = weights;
    format!(
        "duration = \"4ms\"\nwarmup = \"2ms\"\nalgorithm = {{ name = \"constant\", window = 100.0 }}\n\
         [packets]\npayload = \"4096B\"\nheader = \"64B\"\n\
         [topology]\nkind = \"star\"\nhosts = 3\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         buffer = \"4MB\"\n{scheduler}\n\
         [[topology.class]]\nname = \"gold\"\nweight = {gold}\n\
         [[topology.class]]\nname = \"bulk\"\nweight = {bulk}\n\
         [[workload]]\nname = \"gold\"\nkind = \"incast\"\nsenders = [0]\nreceiver = 2\n\
         size = \"1MB\"\noutstanding = 2\nclass = \"gold\"\n\
         [[workload]]\nname = \"bulk\"\nkind = \"incast\"\nsenders = [1]\nreceiver = 2\n\
         size = \"1MB\"\noutstanding = 2\nclass = \"bulk\"\n"
    )
}

/// 100 Gb/s are shared 3:1 under every scheduler by weight. In 2 ms, 25 MB, the shares are off by at
/// most three packets of each class (the bound of deficit round robin): 0.1 %.
#[test]
fn weights_of_3_and_1_give_goodputs_of_3_to_1() {
    for kind in ["stfq", "drr"] {
        let scenario = good(&two_classes(&format!("scheduler = \"{kind}\""), [3, 1]));
        assert_reads_back(&scenario);
        let summary = run_plan(&scenario.runs[0].setup.plan().expect("plan"));
        let goodput = |group: usize| summary.groups[group].share.goodput_gbps;
        let whole = 100.0 * 4096.0 / 4160.0;
        for (group, share) in [(0, 0.75), (1, 0.25)] {
            let (measured, expected) = (goodput(group), whole * share);
            let error = (measured - expected).abs() / whole;
            assert!(error < 0.001, "{kind}: {measured} Gb/s, not {expected}");
        }
    }
}

#[test]
fn a_scenario_chooses_the_scheduler_of_all_ports() {
    let chosen = |text: &str| {
        let scenario = good(&two_classes(text, [3, 1]));
        assert_reads_back(&scenario);
        let plan = scenario.runs[0].setup.plan().expect("plan");
        let schedulers = plan.topology.links.iter().map(|link| link.ba.scheduler);
        let all: Vec<SchedulerKind> = schedulers.collect();
        assert!(all.iter().all(|kind| *kind == all[0]), "{all:?}");
        all[0]
    };
    assert_eq!(chosen(""), SchedulerKind::StartTime);
    assert_eq!(chosen("scheduler = \"stfq\""), SchedulerKind::StartTime);
    assert_eq!(chosen("scheduler = \"drr\""), SchedulerKind::DeficitRoundRobin);
    let unknown = read(&two_classes("scheduler = \"ddr\"", [3, 1])).expect_err("unknown");
    let unknown = unknown.to_string();
    assert!(unknown.contains("topology.scheduler") && unknown.contains("drr"), "{unknown}");
}
