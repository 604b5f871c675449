//! Positions of the endpoints of flows in a divided network.

use apus_cc::AlgorithmFactory;
use apus_transport::{Endpoint, FlowCounters};
use apus_units::FlowId;

use crate::part::Part;
use crate::plan::Plan;

/// Position of a flow's endpoint: part, host of the part, flow of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    part: u32,
    host: u32,
    pub(super) flow: u32,
}

/// Returns, by connection, the end that submits ops and the end that sends the data.
pub(super) fn find_seats<F: AlgorithmFactory>(
    plan: &Plan<F>,
    parts: &[Part<F>],
) -> Vec<(Seat, Seat)> {
    let mut seats = vec![(Seat::default(), Seat::default()); plan.connections.len()];
    for (part, in_part) in (0..).zip(parts) {
        for (host, of_host) in (0..).zip(&in_part.hosts) {
            for (flow, of_flow) in (0..).zip(&of_host.flows) {
                let connection = &plan.connections[of_flow.connection as usize];
                let place = &mut seats[of_flow.connection as usize];
                let seat = Seat { part, host, flow };
                if of_host.id == connection.from {
                    place.0 = seat;
                }
                if of_host.id == connection.data_ends().0 {
                    place.1 = seat;
                }
            }
        }
    }
    seats
}

/// Returns the endpoint of a seat.
pub(super) fn endpoint<F: AlgorithmFactory>(parts: &[Part<F>], seat: Seat) -> &Endpoint<F> {
    &parts[seat.part as usize].hosts[seat.host as usize].endpoint
}

/// Returns the counters of a seat's flow.
pub(super) fn flow_counters<F: AlgorithmFactory>(parts: &[Part<F>], seat: Seat) -> FlowCounters {
    let flow = FlowId::new(seat.flow);
    endpoint(parts, seat).counters(flow).unwrap_or_default()
}

/// Returns the payload bytes that a connection has delivered once since the metrics last restarted.
pub(super) fn delivered<F: AlgorithmFactory>(parts: &[Part<F>], connection: usize) -> u64 {
    parts.iter().map(|part| part.world.metrics.connections[connection].new_bytes).sum()
}
