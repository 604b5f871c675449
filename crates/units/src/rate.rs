//! Rates in bits per second.

use core::str::FromStr;

use crate::quantity::{self, ParseQuantityError, Units, written_with_units};
use crate::{Bytes, Span};

/// A rate in bits per second, never zero when it belongs to a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// Picoseconds in a second times bits in a byte.
const BIT_PS_PER_BYTE: u64 = 8_000_000_000_000;

impl Rate {
    /// Returns a rate of `bps` bits per second.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// Returns a rate of `gbps` times 10^9 bits per second; `gbps` is at most 18,446,744,073.
    #[must_use]
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }

    /// Returns the bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the units of 10^9 bits per second, for output.
    #[must_use]
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the time to put `bytes` on a link of this rate, rounded up to the picosecond, so that a link
    /// never carries more than its rate; at most [`Span::MAX`]. Computed per packet from the whole size:
    /// a rounded time per byte would be 1 % wrong at 102 Gb/s.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    #[must_use]
    pub const fn serialization_time(self, bytes: Bytes) -> Span {
        match bytes.get().checked_mul(BIT_PS_PER_BYTE) {
            // The common case (below 2.3 MB) needs no 128-bit division; the result is the same.
            Some(bit_ps) => Span::from_ps(bit_ps.div_ceil(self.0)),
            None => {
                let ps = (bytes.get() as u128 * BIT_PS_PER_BYTE as u128).div_ceil(self.0 as u128);
                Span::from_ps(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
            }
        }
    }

    /// Returns the picoseconds per byte if that is a whole number, at most 2^31 (a rate of 4 kbit/s); otherwise 0.
    /// The serialization time of fewer than 2^32 bytes is then their product, exactly.
    #[must_use]
    pub const fn whole_byte_time(self) -> u64 {
        if !BIT_PS_PER_BYTE.is_multiple_of(self.0) || BIT_PS_PER_BYTE / self.0 > 1 << 31 {
            return 0;
        }
        BIT_PS_PER_BYTE / self.0
    }

    /// Returns the [`Rate::serialization_time`] of a packet, without a division unless `whole_byte_time` is
    /// 0. `whole_byte_time` must be this rate's [`Rate::whole_byte_time`].
    #[inline(always)]
    #[must_use]
    pub const fn packet_time(self, bytes: u32, whole_byte_time: u64) -> Span {
        if whole_byte_time > 0 {
            return Span::from_ps(bytes as u64 * whole_byte_time);
        }
        self.serialization_time(Bytes::new(bytes as u64))
    }

    /// Returns this number of times the rate, at most the largest rate.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// Returns the whole bytes that a link of this rate carries in `span`, rounded down; at most [`Bytes::MAX`].
    #[must_use]
    pub const fn bytes_in(self, span: Span) -> Bytes {
        let bytes = span.as_ps() as u128 * self.0 as u128 / BIT_PS_PER_BYTE as u128;
        if bytes > u64::MAX as u128 { Bytes::MAX } else { Bytes::new(bytes as u64) }
    }
}

const UNITS: Units = Units {
    what: "a rate",
    zero: "0bps",
    scales: &[
        ("bps", 1),
        ("kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
    ],
};

impl FromStr for Rate {
    type Err = ParseQuantityError;
    /// Parses `100Gbps`, `2.5 Gbps`, `800Mbps`; the units are bps, kbps, Mbps, Gbps and Tbps.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        quantity::parse(text, &UNITS).map(Self)
    }
}

written_with_units!(UNITS: Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_byte_time_gives_the_serialization_time() {
        assert_eq!(Rate::from_gbps(100).whole_byte_time(), 80);
        assert_eq!(Rate::from_gbps(102).whole_byte_time(), 0, "78.4 ps");
        assert_eq!(Rate::from_bps(1_000).whole_byte_time(), 0, "a large packet would overflow");
        for (rate, bytes) in [(Rate::from_gbps(40), 4001), (Rate::from_bps(4_000), u32::MAX)] {
            let whole = rate.whole_byte_time() * u64::from(bytes);
            assert_eq!(rate.serialization_time(Bytes::new(u64::from(bytes))).as_ps(), whole);
            assert_eq!(rate.packet_time(bytes, rate.whole_byte_time()).as_ps(), whole);
        }
        // 1500 B at 102 Gb/s: 117647.06 ps, rounded up.
        assert_eq!(Rate::from_gbps(102).packet_time(1500, 0), Span::from_ps(117_648));
    }

    #[test]
    fn serialization_time_is_exact_where_the_rate_divides() {
        // 1500 B at 100 Gb/s: 12000 bits at 10 ps each.
        let t = Rate::from_gbps(100).serialization_time(Bytes::new(1500));
        assert_eq!(t, Span::from_ns(120));
    }

    #[test]
    fn serialization_time_rounds_up_where_it_does_not() {
        // 1500 B at 102 Gb/s: 117647.06 ps.
        let t = Rate::from_gbps(102).serialization_time(Bytes::new(1500));
        assert_eq!(t, Span::from_ps(117_648));
    }

    #[test]
    fn serialization_time_of_terabytes_does_not_overflow() {
        let t = Rate::from_gbps(100).serialization_time(Bytes::new(1 << 40));
        assert_eq!(t, Span::from_ps((1 << 40) * 80));
    }

    #[test]
    fn bytes_in_inverts_serialization_time() {
        let rate = Rate::from_gbps(40);
        let span = rate.serialization_time(Bytes::new(123_456));
        assert_eq!(rate.bytes_in(span), Bytes::new(123_456));
    }
}
