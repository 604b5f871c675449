//! Translates the connections of a run to the flows of a host's process.

use apus_scenario::{ConnectionPlan, Plan};
use apus_sim::plan::{Load, OpType};
use apus_units::Time;

use super::spec::{FlowSpec, LoadSpec, OpName};

/// Returns the payload of a connection's largest op.
pub(super) fn largest_op(connection: &ConnectionPlan) -> u64 {
    load(connection).map_or(0, |load| load.largest())
}

/// Returns a time in nanoseconds after the start.
fn ns(time: Time) -> u64 {
    time.since(Time::ZERO).as_ps() / 1_000
}

/// Returns the load of a connection, if it can be emulated.
fn load(connection: &ConnectionPlan) -> Option<LoadSpec> {
    match &connection.load {
        Load::Closed { size, outstanding } => {
            Some(LoadSpec::Closed { size: size.get(), outstanding: *outstanding })
        }
        Load::Open(arrivals) => {
            let ops = arrivals.iter().map(|op| (ns(op.at), op.size.get()));
            Some(LoadSpec::Open(ops.collect()))
        }
        Load::Round { .. } | Load::Job { .. } => None,
    }
}

/// Returns the flows that a host starts.
pub(super) fn flows(plan: &Plan, host: u32) -> Vec<FlowSpec> {
    let own = plan.connections.iter().enumerate().filter(|(_, c)| c.from.get() == host);
    let flow = |(index, connection): (usize, &ConnectionPlan)| {
        Some(FlowSpec {
            index,
            to: connection.to.get(),
            op: match connection.kind {
                OpType::Write => OpName::Write,
                OpType::Read => OpName::Read,
                OpType::Message => OpName::Message,
            },
            load: load(connection)?,
            start_ns: ns(connection.start),
            stop_ns: ns(connection.stop),
        })
    };
    own.filter_map(flow).collect()
}
