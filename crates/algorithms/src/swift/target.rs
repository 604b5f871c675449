//! The target of the fabric delay (Swift §3.5).

use apus_units::Span;

/// The parameters of the target (Swift Table 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetConfig {
    /// Target before hop scaling and flow scaling.
    pub base_target: Span,
    /// Added per switch on the forward path.
    pub hop_scale: Span,
    /// Maximum that flow scaling adds; zero turns flow scaling off.
    pub fs_range: Span,
    /// Window in packets at which flow scaling adds all of `fs_range`.
    pub fs_min_cwnd: f64,
    /// Window in packets at which flow scaling adds nothing.
    pub fs_max_cwnd: f64,
}

/// The target formula with its constants computed, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetRule {
    base: f64,
    hop_scale: f64,
    fs_range: f64,
    alpha: f64,
    beta: f64,
}

impl TargetRule {
    /// Computes alpha and beta of Swift §3.5. Without flow scaling both are zero.
    #[must_use]
    pub fn new(config: &TargetConfig) -> Self {
        let fs_range = config.fs_range.as_ps_f64();
        let (mut alpha, mut beta) = (0.0, 0.0);
        if fs_range > 0.0 {
            let at_max = 1.0 / libm::sqrt(config.fs_max_cwnd);
            alpha = fs_range / (1.0 / libm::sqrt(config.fs_min_cwnd) - at_max);
            beta = -alpha * at_max;
        }
        let base = config.base_target.as_ps_f64();
        Self { base, hop_scale: config.hop_scale.as_ps_f64(), fs_range, alpha, beta }
    }

    /// `base_target + hops * hop_scale + max(0, min(alpha / sqrt(fabric_cwnd) + beta, fs_range))`
    /// in picoseconds, with the window before this acknowledgement's update (Swift §3.5).
    ///
    /// The square root is `libm::sqrt`: `f64::sqrt` is only in `std` on Rust 1.95 (`core::f64::math` is
    /// unstable). With its default feature `arch`, libm 0.2 is the instruction itself on x86-64 (`sqrtsd`,
    /// inlined here) and AArch64 (`fsqrt`). Elsewhere it computes in software. Both round correctly, so the
    /// results are equal.
    #[inline]
    #[must_use]
    pub fn delay_ps(&self, fabric_cwnd: f64, hops: u8) -> f64 {
        let scaling = self.alpha / libm::sqrt(fabric_cwnd) + self.beta;
        let scaling = if scaling < self.fs_range { scaling } else { self.fs_range };
        let scaling = if scaling > 0.0 { scaling } else { 0.0 };
        self.base + f64::from(hops) * self.hop_scale + scaling
    }
}
