//! Small plans for tests, and what they share.

use apus_cc::registry::build;
use apus_fabric::{PortKind, Tier, Topology};
use apus_sim::host_model::HostModel;
use apus_sim::measure::Measures;
use apus_sim::plan::{ConnectionPlan, Load, Plan};
use apus_sim::summary::Summary;
use apus_sim::{PacketSizes, Simulation};
use apus_transport::{EndpointConfig, OpKind};
use apus_units::{Bytes, ClassId, HostId, Rate, Span, Time};
use apus_wire::RegionKey;

pub const WRITE: OpKind = OpKind::Write { region: RegionKey::new(1), address: 0 };
pub const NEVER: Time = Time::MAX;

/// A link tier whose buffers are never full.
pub fn tier(rate: Rate, delay: Span) -> Tier {
    Tier::hosts(rate, delay, Bytes::new(1 << 40))
}

/// Algorithm, profile default, with `settings`.
pub fn connection(
    algorithm: (&str, &[(&str, &str)]),
    from: u32,
    to: u32,
    size: u64,
) -> ConnectionPlan {
    ConnectionPlan {
        from: HostId::new(from),
        to: HostId::new(to),
        start: Time::ZERO,
        stop: NEVER,
        kind: WRITE,
        load: Load::Closed { size: Bytes::new(size), outstanding: 1 },
        algorithm: build(algorithm.0, None, algorithm.1).expect("algorithm"),
        class: ClassId::new(0),
        workload: None,
        service: None,
        reroute: None,
    }
}

/// Lets a closed loop have so many ops under way.
pub fn set_outstanding(connection: &mut ConnectionPlan, ops: u32) {
    if let Load::Closed { outstanding, .. } = &mut connection.load {
        *outstanding = ops;
    }
}

/// Ideal hosts, packets of 1000 + 64 B, controls of 84 B, no warm-up.
pub fn plan(topology: Topology, connections: Vec<ConnectionPlan>, duration: Span) -> Plan {
    Plan {
        credits: None,
        pfc: None,
        instant_signals: false,
        topology,
        least_ports: PortKind::Fifo,
        sizes: PacketSizes { payload: 1000, header: 64, control: 84 },
        host: HostModel::IDEAL,
        endpoint: EndpointConfig { max_payload: 1000, ..EndpointConfig::default() },
        ack_class: None,
        faults: Vec::new(),
        connections,
        demands: Vec::new(),
        duration,
        warmup: Span::ZERO,
        trace_ops: None,
        ends_with_ops: false,
        drain: Span::ZERO,
        further: None,
        sample_interval: None,
        fair_share_after: None,
        measures: Measures::default(),
        seed: 1,
    }
}

pub fn run(plan: &Plan) -> Summary {
    Simulation::new(plan).expect("plan").run("test", &mut |_| {}).expect("run")
}

/// Everything in a summary that a seed fixes, as text.
pub fn fingerprint(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("summary")
}
