//! The curve of a congestion avoidance stage (RFC 9438 §4.2).

/// `W_cubic(t) = C * (t - K)^3 + W_max`, in segments and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    c: f64,
    k: f64,
    w_max: f64,
}

impl Curve {
    /// The curve that starts at `cwnd_epoch` and reaches its plateau at `w_max`: `K` is the cube
    /// root of `(w_max - cwnd_epoch) / c` (RFC 9438 Fig. 2). A stage that starts above `w_max`
    /// starts at its plateau.
    #[must_use]
    pub fn new(c: f64, w_max: f64, cwnd_epoch: f64) -> Self {
        if cwnd_epoch >= w_max {
            return Self { c, k: 0.0, w_max: cwnd_epoch };
        }
        Self { c, k: libm::cbrt((w_max - cwnd_epoch) / c), w_max }
    }

    /// `K`: seconds from the start of the stage to the plateau.
    #[must_use]
    pub fn k(&self) -> f64 {
        self.k
    }

    /// The window `t` seconds after the start of the stage (RFC 9438 Fig. 1).
    #[inline]
    #[must_use]
    pub fn window(&self, t: f64) -> f64 {
        let d = t - self.k;
        self.c * d * d * d + self.w_max
    }
}
