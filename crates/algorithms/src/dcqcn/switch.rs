//! Marking with a probability that grows with the queue: DCQCN's congestion point (DCQCN §3.1, Fig. 5), also
//! available to every algorithm by `topology.ecn`.

use apus_units::Bytes;

use crate::dctcp::switch::MarkAt;
use apus_cc::{CongestionHeader, Ecn, PortView, SwitchFeedback, SwitchHalf, Telemetry, Verdict};
use apus_units::random::SplitMix64;

/// Marking probabilities from 0 to 1, as with RED on the instantaneous queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// No packet is marked up to this queue length.
    pub k_min: Bytes,
    /// Every packet is marked above this queue length.
    pub k_max: Bytes,
    /// Probability at `k_max`, in (0, 1].
    pub p_max: f64,
}

impl Ramp {
    /// Returns the ramp with this fraction of the thresholds.
    #[must_use]
    fn scaled(&self, fraction: f64) -> Self {
        let (k_min, k_max) = (self.k_min.mul_f64(fraction), self.k_max.mul_f64(fraction));
        Self { k_min, k_max, ..*self }
    }

    /// The probability of a mark at a queue of `bytes` (DCQCN Fig. 5).
    #[inline]
    #[must_use]
    pub fn probability(&self, bytes: Bytes) -> f64 {
        if bytes <= self.k_min {
            0.0
        } else if bytes > self.k_max {
            1.0
        } else {
            // The queue is above `k_min` and at most `k_max`, so the two differ.
            let width = self.k_max.saturating_sub(self.k_min).get() as f64;
            self.p_max * bytes.saturating_sub(self.k_min).get() as f64 / width
        }
    }
}

/// Marks packets of ECN-capable senders: as they join the queue, depending on the queue in front of them, or as
/// they leave it, depending on the queue behind them.
#[derive(Clone, Debug)]
pub struct RampMarker {
    ramp: Ramp,
    /// The ramp of a link with its full rate.
    configured: Ramp,
    at: MarkAt,
    random: SplitMix64,
}

impl RampMarker {
    /// Creates a marker whose random numbers follow from `seed`.
    #[must_use]
    pub fn new(ramp: Ramp, seed: u64) -> Self {
        Self { ramp, configured: ramp, at: MarkAt::Enqueue, random: SplitMix64::new(seed) }
    }

    /// Sets when the marker reads the queue.
    #[must_use]
    pub fn at(self, at: MarkAt) -> Self {
        Self { at, ..self }
    }

    #[inline]
    fn mark(&mut self, header: &mut CongestionHeader, view: &PortView<'_>) {
        if header.ecn == Ecn::Capable {
            let probability = self.ramp.probability(view.class_bytes);
            if probability > 0.0 && self.random.uniform() < probability {
                header.ecn = Ecn::Congested;
            }
        }
    }
}

impl SwitchHalf for RampMarker {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        if self.at == MarkAt::Enqueue {
            self.mark(header, view);
        }
        Verdict::Forward
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        _: Option<&mut Telemetry>,
        _: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        if self.at == MarkAt::Dequeue {
            self.mark(header, view);
        }
        Verdict::Forward
    }

    fn acts_on_dequeue(&self) -> bool {
        self.at == MarkAt::Dequeue
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Marks
    }

    fn on_capacity(&mut self, fraction: f64) {
        self.ramp = self.configured.scaled(fraction);
    }

    fn reseed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
    }
}
