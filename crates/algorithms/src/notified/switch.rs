//! The switch half: reports the queue length, with or without congestion.

use apus_units::Bytes;

use crate::bolt::BoltFields;

use apus_cc::{CongestionHeader, PortView, Signal, SwitchFeedback, SwitchHalf, Verdict};

/// Sends the length of the queue that a data packet joins to the packet's source, for every data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReport;

impl SwitchHalf for QueueReport {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        match BoltFields::of(&header.fields) {
            Some(fields) => Verdict::Signal(Signal {
                queue: view.class_waiting,
                link_rate: view.link_rate,
                sent: fields.sent(),
            }),
            None => Verdict::Forward,
        }
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Fields
    }

    fn signals(&self) -> bool {
        true
    }
}
