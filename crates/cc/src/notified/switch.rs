//! The switch half: tells of the queue, congested or not.

use apus_units::Bytes;

use crate::switch::{PortView, Signal, SwitchHalf, Verdict};
use crate::{AlgorithmFields, CongestionHeader};

/// Tells the source of every data packet of the queue that the packet joins.
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
        match header.fields {
            AlgorithmFields::Bolt(_) => {
                Verdict::Signal(Signal { queue: view.class_waiting, link_rate: view.link_rate })
            }
            _ => Verdict::Forward,
        }
    }
}
