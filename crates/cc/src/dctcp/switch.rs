//! DCTCP's switch half: mark above a threshold (RFC 8257 §3.1).

use apus_units::Bytes;

use crate::switch::{PortView, SwitchHalf, Verdict};
use crate::{CongestionHeader, Ecn};

/// Marks packets of ECN-capable senders that find more than `threshold` bytes of their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnMarker {
    /// K of RFC 8257 §3.1, in wire bytes.
    pub threshold: Bytes,
}

impl SwitchHalf for EcnMarker {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        if header.ecn == Ecn::Capable && view.class_bytes > self.threshold {
            header.ecn = Ecn::Congested;
        }
        Verdict::Forward
    }
}
