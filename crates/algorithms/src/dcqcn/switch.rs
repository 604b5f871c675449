//! Marks with a probability that grows with the queue: DCQCN's congestion point (DCQCN §3.1, Fig.
//! 5), also available to every algorithm by `topology.ecn`.

use apus_units::Bytes;

use apus_cc::{CongestionHeader, Ecn, PortView, SwitchFeedback, SwitchHalf, Verdict};
use apus_units::random::SplitMix64;

/// From no mark to every packet marked, as RED does on the queue of the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Up to this queue no packet is marked.
    pub k_min: Bytes,
    /// Above this queue every packet is.
    pub k_max: Bytes,
    /// Probability at `k_max`, in (0, 1].
    pub p_max: f64,
}

impl Ramp {
    /// The probability of a mark at a queue of `bytes` (DCQCN Fig. 5).
    #[inline]
    #[must_use]
    pub fn probability(&self, bytes: Bytes) -> f64 {
        if bytes <= self.k_min {
            0.0
        } else if bytes > self.k_max {
            1.0
        } else {
            // Above `k_min` and at most `k_max`, so the two differ.
            let width = self.k_max.saturating_sub(self.k_min).get() as f64;
            self.p_max * bytes.saturating_sub(self.k_min).get() as f64 / width
        }
    }
}

/// Marks packets of ECN-capable senders as they join the queue, depending on the queue before them.
#[derive(Clone, Debug)]
pub struct RampMarker {
    ramp: Ramp,
    random: SplitMix64,
}

impl RampMarker {
    /// Creates a marker whose random numbers follow from `seed`.
    #[must_use]
    pub fn new(ramp: Ramp, seed: u64) -> Self {
        Self { ramp, random: SplitMix64::new(seed) }
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
        if header.ecn == Ecn::Capable {
            let probability = self.ramp.probability(view.class_bytes);
            if probability > 0.0 && self.random.uniform() < probability {
                header.ecn = Ecn::Congested;
            }
        }
        Verdict::Forward
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Marks
    }

    fn reseed(&mut self, seed: u64) {
        *self = Self::new(self.ramp, seed);
    }
}
