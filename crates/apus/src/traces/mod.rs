//! Traces of a run: packets for Wireshark, flow events for qlog viewers, and a timeline for Perfetto.

mod flows;
mod packets;
mod timeline;

use apus_sim::record::Recording;

use crate::output::OutputDir;

/// Name of the packet capture in a directory of results.
const PACKETS: &str = "packets.pcapng";
/// Name of the folder with flow events.
const FLOWS: &str = "qlog";
/// Name of the timeline file.
const TIMELINE: &str = "timeline.perfetto-trace";

/// Writes the traces that the scenario and the options request.
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
