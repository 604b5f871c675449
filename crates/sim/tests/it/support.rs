//! Small plans and helper functions for tests.

use apus_algorithms::{AlgorithmConfig, BuiltInSwitch, build};
use apus_sim::PacketSizes;
use apus_sim::plan::Load;
use apus_sim::summary::Summary;
use apus_units::{Bytes, HostId, Rate, Span};

/// The simulator with the algorithms of Apus.
pub type Plan = apus_sim::plan::Plan<AlgorithmConfig>;
pub type ConnectionPlan = apus_sim::plan::ConnectionPlan<AlgorithmConfig>;
pub type Simulation = apus_sim::Simulation<AlgorithmConfig>;
pub type Topology = apus_fabric::Topology<BuiltInSwitch>;
pub type Tier = apus_fabric::Tier<BuiltInSwitch>;
pub type ClassConfig = apus_fabric::ClassConfig<BuiltInSwitch>;
pub type Network<P> = apus_fabric::Network<P, BuiltInSwitch>;

/// Returns a tier of links whose buffers are never full.
pub fn tier(rate: Rate, delay: Span) -> Tier {
    Tier::hosts(rate, delay, Bytes::new(1 << 40))
}

/// Returns a connection with this algorithm, its default profile and `settings`.
pub fn connection(
    algorithm: (&str, &[(&str, &str)]),
    from: u32,
    to: u32,
    size: u64,
) -> ConnectionPlan {
    let algorithm = build(algorithm.0, None, algorithm.1).expect("algorithm");
    let (from, to) = (HostId::new(from), HostId::new(to));
    ConnectionPlan::closed(from, to, &algorithm, Bytes::new(size))
}

/// Sets the number of outstanding ops of a closed loop.
pub fn set_outstanding(connection: &mut ConnectionPlan, ops: u32) {
    if let Load::Closed { outstanding, .. } = &mut connection.load {
        *outstanding = ops;
    }
}

/// Returns a plan with ideal hosts, packets of 1000 + 64 B, control packets of 84 B and no warm-up.
pub fn plan(topology: Topology, connections: Vec<ConnectionPlan>, duration: Span) -> Plan {
    let sizes = PacketSizes { payload: 1000, header: 64, control: 84 };
    let plan = Plan::builder(topology, duration).packets(sizes).connections(connections);
    plan.build().expect("a plan")
}

pub fn run(plan: &Plan) -> Summary {
    Simulation::new(plan).expect("plan").run("test", &mut |_| {}).expect("run")
}

/// Returns everything in a summary that the seed determines, as text.
pub fn fingerprint(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("summary")
}
