//! Conversion of NIC time to host time.
//!
//! Swift subtracts times of two clocks: when a packet reached the NIC (t2, t5) and when the stack
//! processed it (t3, t6) (§3.1, Fig. 2). The clocks run at slightly different rates. NIC times are
//! therefore first converted, by linear extrapolation from periodic pairs of readings (App. A):
//!
//! ```text
//! host_clock = ratio * nic_clock + offset
//! ratio      = (host_clock - last_host_clock) / (nic_clock - last_nic_clock)
//! offset     = host_clock - ratio * nic_clock
//! ```

use apus_units::{Span, Time};

/// Converts times of a NIC's clock into times of the host's clock (Swift App. A).
///
/// # Accuracy
///
/// The paper's product `ratio * nic_clock` has more digits than an f64: after a day, one unit in
/// the last place of a 64-bit float is 16 ps, and a ratio rounded to 2^-53 moves the result by 10
/// ps. So the line passes through the last reading, and only the *excess* of the ratio over 1 is a
/// float: `host = last_host + d + (ratio - 1) * d` with `d = nic - last_nic`, an integer. With
/// clocks within 100 ppm of each other and readings at most an hour old, rounding costs less than 1
/// ps.
///
/// The remaining error is that of the readings. Let each pair be off by at most e (the time between
/// reading one clock and the other), let readings be T apart, and let x have passed since the last
/// one. Then the result is off by at most `e + 2 e x / T`: T should be long compared with the
/// noise. A drift that changes the ratio by r per second adds at most `r (T/2 + x/2) x`, in
/// seconds.
#[derive(Clone, Copy, Debug)]
pub struct ClockConverter {
    last_nic: Time,
    last_host: Time,
    /// Host picoseconds gained per NIC picosecond: the paper's ratio minus 1.
    excess: f64,
}

impl ClockConverter {
    /// Returns a converter after its first pair of readings, `nic` first, `host` right after it. A
    /// single pair gives no ratio: the clocks are assumed to run equally fast.
    #[must_use]
    pub const fn new(nic: Time, host: Time) -> Self {
        Self { last_nic: nic, last_host: host, excess: 0.0 }
    }

    /// Processes another pair of readings, `nic` first, `host` right after it.
    ///
    /// The ratio follows from this pair and the previous one. If either clock has not advanced in
    /// between (two readings at once, or a clock that was set back), the pairs say nothing about
    /// the ratio. The ratio is then kept, and the line passes through the new pair.
    pub fn update(&mut self, nic: Time, host: Time) {
        let nic_elapsed = nic.since(self.last_nic);
        let host_elapsed = host.since(self.last_host);
        if !nic_elapsed.is_zero() && !host_elapsed.is_zero() {
            // The difference is taken between integers, so it is exact.
            let gained = host_elapsed.saturating_sub(nic_elapsed).as_ps_f64()
                - nic_elapsed.saturating_sub(host_elapsed).as_ps_f64();
            self.excess = gained / nic_elapsed.as_ps_f64();
        }
        self.last_nic = nic;
        self.last_host = host;
    }

    /// Returns the host's time at the NIC's time `nic`. That may lie before the last reading (for a
    /// packet that has waited in the queue) or after it. Saturates at the ends of the range of
    /// times.
    #[inline]
    #[must_use]
    pub fn to_host(&self, nic: Time) -> Time {
        if nic >= self.last_nic {
            self.last_host.saturating_add(self.scale(nic.since(self.last_nic)))
        } else {
            self.last_host.saturating_sub(self.scale(self.last_nic.since(nic)))
        }
    }

    /// Converts a span of the NIC's clock into one of the host's clock.
    #[inline]
    fn scale(&self, span: Span) -> Span {
        if self.excess >= 0.0 {
            span.saturating_add(span.mul_f64(self.excess))
        } else {
            span.saturating_sub(span.mul_f64(-self.excess))
        }
    }
}
