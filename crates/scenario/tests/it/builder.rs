//! A plan from the builder equals the plan of the equivalent scenario.

use apus_algorithms::registry::build;
use apus_scenario::{ConnectionPlan, Plan, Tier, Topology};
use apus_units::{Bytes, HostId, Rate, Span};

use crate::support::good;

/// Algorithms without a switch half, with one, and with credits.
#[test]
fn builder_and_scenario_make_the_same_ports_and_endpoints() {
    for name in ["swift", "bolt", "expresspass"] {
        let scenario = good(&format!(
            "duration = \"1ms\"\nseed = 7\ntopology = \"star hosts=3 100Gbps 1us\"\n\
             algorithm = {{ name = \"{name}\" }}\n\
             [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n"
        ));
        let expected = scenario.runs[0].setup.plan().expect("a plan");
        let algorithm = expected.connections[0].algorithm.clone();
        assert_eq!(algorithm.info().name, build(name, None, &[]).expect("known").info().name);
        let tier = Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(4_000_000));
        let write = |from| {
            let (from, to) = (HostId::new(from), HostId::new(2));
            ConnectionPlan::closed(from, to, &algorithm, Bytes::new(64_000))
        };
        let plan = Plan::builder(Topology::star(3, &tier), Span::from_ms(1)).seed(7);
        let plan = plan.connections([0, 1].map(write)).build().expect("a plan");
        let parts = |plan: &Plan| {
            let Plan { topology, sizes, host, endpoint, credits, .. } = plan;
            let connections: Vec<_> = plan
                .connections
                .iter()
                .map(|c| (c.from, c.to, c.start, c.stop, c.kind, c.load.clone(), c.class))
                .collect();
            format!("{topology:?} {sizes:?} {host:?} {endpoint:?} {credits:?} {connections:?}")
        };
        assert_eq!(parts(&plan), parts(&expected), "{name}");
    }
}
