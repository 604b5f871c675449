//! HPCC's switch half: telemetry of each hop (HPCC §4.1).

use apus_units::Bytes;

use apus_cc::{
    CongestionHeader, Fields, HopTelemetry, PortView, SwitchFeedback, SwitchHalf, SwitchInfo,
    Telemetry, Verdict,
};

/// Appends the state of the port to every packet with telemetry, as the packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TelemetryStamp {
    port: u16,
}

impl TelemetryStamp {
    /// Creates a stamp with a number that identifies the port. HPCC's switches have 12 bits for it (Fig. 7),
    /// this one has 16.
    #[must_use]
    pub fn new(info: &SwitchInfo) -> Self {
        Self { port: info.seed as u16 } // the seed is the port's own
    }
}

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
        if header.fields == Fields::TELEMETRY
            && let Some(telemetry) = telemetry
        {
            let hop = HopTelemetry {
                at: view.now,
                sent: view.sent,
                queue: view.queue_bytes,
                link_rate: view.link_rate,
            };
            telemetry.push(hop, self.port);
        }
        Verdict::Forward
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Fields
    }

    fn acts_on_dequeue(&self) -> bool {
        true
    }
}
