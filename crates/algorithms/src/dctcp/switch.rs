//! DCTCP's switch half: mark above a threshold (RFC 8257 §3.1).

use apus_units::Bytes;

use apus_cc::{CongestionHeader, Ecn, PortView, SwitchFeedback, SwitchHalf, Telemetry, Verdict};

/// The moment at which a packet is compared with the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAt {
    /// As the packet joins the queue, depending on the queue before it (DCTCP §3.1: "upon its
    /// arrival").
    Enqueue,
    /// As the packet leaves the queue, depending on the queue behind it: the mark is then only as
    /// old as the path from the switch to the receiver ("modern switches mark ECN at
    /// packet-egress", Swift App. E).
    Dequeue,
}

impl MarkAt {
    /// Words in scenarios.
    pub const WORDS: [(&str, Self); 2] = [("enqueue", Self::Enqueue), ("dequeue", Self::Dequeue)];
}

/// Marks packets of ECN-capable senders if the port has more than `threshold` bytes of their class
/// in addition to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnMarker {
    /// K of RFC 8257 §3.1, in wire bytes.
    pub threshold: Bytes,
    /// The threshold of a link with its full rate.
    configured: Bytes,
    /// When the marker reads the queue.
    pub at: MarkAt,
}

impl EcnMarker {
    /// Marks packets that arrive, as DCTCP has it.
    #[must_use]
    pub const fn new(threshold: Bytes) -> Self {
        Self { threshold, configured: threshold, at: MarkAt::Enqueue }
    }

    /// Sets when the marker reads the queue.
    #[must_use]
    pub const fn at(self, at: MarkAt) -> Self {
        Self { at, ..self }
    }

    #[inline]
    fn mark(&self, at: MarkAt, header: &mut CongestionHeader, view: &PortView<'_>) -> Verdict {
        let looks = self.at == at && header.ecn == Ecn::Capable;
        if looks && view.class_bytes > self.threshold {
            header.ecn = Ecn::Congested;
        }
        Verdict::Forward
    }
}

impl SwitchHalf for EcnMarker {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        self.mark(MarkAt::Enqueue, header, view)
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        _: Option<&mut Telemetry>,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        self.mark(MarkAt::Dequeue, header, view)
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Marks
    }

    fn on_capacity(&mut self, fraction: f64) {
        self.threshold = self.configured.mul_f64(fraction);
    }

    fn acts_on_dequeue(&self) -> bool {
        self.at == MarkAt::Dequeue
    }
}
