//! HULL's switch half: the phantom queue (NSDI 2012 §3.1).

use apus_units::{Bytes, Time};

use super::params::PhantomParams;
use apus_cc::{CongestionHeader, Ecn, PortView, SwitchFeedback, SwitchHalf, Verdict};

/// "A simulated queue, associated with each switch egress port, that sets ECN marks based on link
/// utilisation rather than queue occupancy": a counter that grows by each packet and is drained at a
/// fraction of the link's rate.
#[derive(Clone, Copy, Debug)]
pub struct PhantomQueue {
    params: PhantomParams,
    /// Wire bytes of the phantom queue.
    bytes: f64,
    /// Bytes of all classes that the port had accepted after the last packet.
    taken: u64,
    /// Time up to which the phantom queue has been drained.
    drained_to: Time,
}

impl PhantomQueue {
    /// Creates an empty queue.
    #[must_use]
    pub const fn new(params: PhantomParams) -> Self {
        Self { params, bytes: 0.0, taken: 0, drained_to: Time::ZERO }
    }

    /// The wire bytes of the queue after the arrival of the last packet.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.bytes
    }
}

impl SwitchHalf for PhantomQueue {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        let link = view.link_rate.as_bps() as f64;
        let seconds = view.now.since(self.drained_to).as_secs_f64();
        // Each class has a separate half, but the phantom queue is that of the port, so bytes of other classes
        // since the last packet count. Their arrival times are unknown. Bytes still in the real queue are in
        // the phantom queue too, which drains more slowly.
        let taken = (view.sent + view.queue_bytes).get();
        let others = taken.saturating_sub(self.taken) as f64;
        let least = if others > 0.0 { view.queue_bytes.get() as f64 } else { 0.0 };
        self.taken = taken + bytes.get();
        let left = self.bytes + others - self.params.gamma * link / 8.0 * seconds;
        self.drained_to = view.now;
        self.bytes = if left > least { left } else { least } + bytes.get() as f64;
        let threshold = self.params.threshold_per_gbps.get() as f64 * link / 1e9;
        if self.bytes > threshold && header.ecn == Ecn::Capable {
            header.ecn = Ecn::Congested;
        }
        Verdict::Forward
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Marks
    }
}
