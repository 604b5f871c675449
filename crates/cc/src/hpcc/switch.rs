//! HPCC's switch half: telemetry of each hop (HPCC §4.1).

use apus_units::Bytes;

use crate::switch::{PortView, SwitchHalf, Verdict};
use crate::{AlgorithmFields, CongestionHeader, HopTelemetry, Telemetry};

/// Notes the state of the port on every packet that asks for it, as it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TelemetryStamp;

impl SwitchHalf for TelemetryStamp {
    #[inline]
    fn on_enqueue(&mut self, _: &mut CongestionHeader, _: Bytes, _: &PortView<'_>) -> Verdict {
        Verdict::Forward
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        telemetry: Option<&mut Telemetry>,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        if header.fields == AlgorithmFields::Telemetry
            && let Some(telemetry) = telemetry
        {
            telemetry.push(HopTelemetry {
                at: view.now,
                sent: view.sent,
                queue: view.queue_bytes,
                link_rate: view.link_rate,
            });
        }
        Verdict::Forward
    }
}
