//! Marking next to the switch half of an algorithm that does not mark, for path policies that read marks.

use apus_units::Bytes;

use crate::set::BuiltInSwitch;
use apus_cc::{CongestionHeader, PortView, SwitchFeedback, SwitchHalf, Telemetry, Verdict};

/// A marker and a switch half at one port; each acts as if it were alone.
#[derive(Clone, Debug)]
pub struct Marking {
    marker: BuiltInSwitch,
    half: BuiltInSwitch,
}

impl Marking {
    /// Combines a marker and a switch half.
    pub(crate) fn new(marker: BuiltInSwitch, half: BuiltInSwitch) -> Self {
        Self { marker, half }
    }
}

impl SwitchHalf for Marking {
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        // Markers forward every packet.
        self.marker.on_enqueue(header, bytes, view);
        self.half.on_enqueue(header, bytes, view)
    }

    fn on_refused(&mut self, bytes: Bytes) {
        self.half.on_refused(bytes);
    }

    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        telemetry: Option<&mut Telemetry>,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        self.marker.on_dequeue(header, None, bytes, view);
        match self.half.acts_on_dequeue() {
            true => self.half.on_dequeue(header, telemetry, bytes, view),
            false => Verdict::Forward,
        }
    }

    fn feedback(&self) -> SwitchFeedback {
        self.half.feedback()
    }

    fn signals(&self) -> bool {
        self.half.signals()
    }

    fn acts_on_dequeue(&self) -> bool {
        self.marker.acts_on_dequeue() || self.half.acts_on_dequeue()
    }

    fn on_capacity(&mut self, fraction: f64) {
        self.marker.on_capacity(fraction);
        self.half.on_capacity(fraction);
    }

    fn reseed(&mut self, seed: u64) {
        self.marker.reseed(seed);
    }
}
