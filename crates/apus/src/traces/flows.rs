//! Events of flows as qlog, one file per flow.

use apus_sim::record::{FlowEvent, FlowEventKind, Recording};
use apus_traces::qlog::{Clock, Events, VantagePoint, header};
use apus_units::Time;

use super::FLOWS;
use super::packets::address;
use crate::output::OutputDir;

/// Writes a file for each traced flow.
pub(super) fn write(dir: &OutputDir, recording: &Recording) -> Result<(), String> {
    let traced = &recording.traced;
    let dir = dir.within(FLOWS)?;
    let mut events: Vec<&FlowEvent> = traced.events.iter().collect();
    // The sort is stable, so the events of a flow stay in order.
    events.sort_by_key(|event| event.connection);
    for &(connection, _) in &traced.flows {
        let name = format!("flow-{connection}.sqlog");
        let first = events.partition_point(|event| event.connection < connection);
        let end = events.partition_point(|event| event.connection <= connection);
        let text = text(recording, connection, &events[first..end]);
        dir.write_with(&name, |out| text.iter().try_for_each(|part| out.write_all(part)))?;
    }
    Ok(())
}

/// Returns the header and the events of a file.
fn text(recording: &Recording, connection: u32, events: &[&FlowEvent]) -> [Vec<u8>; 2] {
    let flow = &recording.flows[connection as usize];
    let traced = recording.traced.flows.iter().find(|(traced, _)| *traced == connection);
    let here = traced.map_or(flow.from, |(_, host)| *host);
    let (there, vantage_point) = match here == flow.from {
        true => (flow.to, VantagePoint::Client),
        false => (flow.from, VantagePoint::Server),
    };
    let title = format!("flow {connection}: {here}, {there}");
    let mut out = Events::new(Time::ZERO, 1);
    let first = events.first().map_or(Time::ZERO, |event| event.at);
    out.started(first, [address(here), address(there)], flow.algorithm);
    for FlowEvent { at, counters, state, what, connection: _ } in events {
        match what {
            FlowEventKind::Sent(header, bytes) => {
                // A timeout is visible only with the packet that it sends.
                out.flow(*at, 0, state, counters, None);
                out.packet(*at, true, 0, header, *bytes as usize, None);
            }
            FlowEventKind::Received(header, bytes, sample) => {
                out.packet(*at, false, 0, header, *bytes as usize, None);
                out.flow(*at, 0, state, counters, sample.as_ref());
            }
        }
    }
    [header(&title, Clock::Simulated, vantage_point), out.text().to_vec()]
}
