//! Traces of a run: packets for Wireshark, events of flows for viewers of qlog, and a timeline for Perfetto.

mod flows;
mod packets;
mod timeline;

use apus_sim::record::Recording;

use crate::output::OutputDir;

/// Name of the capture in a directory of results.
const PACKETS: &str = "packets.pcapng";
/// Name of the folder of events of flows.
const FLOWS: &str = "qlog";
/// Name of the timeline.
const TIMELINE: &str = "timeline.perfetto-trace";

/// Writes the traces that the scenario and the options ask for.
pub fn write(dir: &OutputDir, recording: &Recording, timeline: bool) -> Result<(), String> {
    let traced = &recording.traced;
    if !traced.packets.is_empty() {
        dir.write_with(PACKETS, |out| packets::write(out, recording))?;
    }
    if !traced.flows.is_empty() {
        flows::write(dir, recording)?;
    }
    if timeline {
        dir.write_with(TIMELINE, |out| timeline::write(out, recording))?;
    }
    Ok(())
}
