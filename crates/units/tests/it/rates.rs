//! Rates: the time of bytes, the bytes of a time, and multiples.

use apus_units::{Bytes, Rate, Span};
use proptest::prelude::*;

use crate::support::{capped, config, number};

/// Picoseconds in a second times bits in a byte.
const BIT_PS_PER_BYTE: u128 = 8 * 1_000_000_000_000;

/// Rates above 0. Every second one divides 8 * 10^12 = 2^15 * 5^12, so that a byte takes a whole
/// number of picoseconds.
fn rate() -> impl Strategy<Value = u64> {
    let whole = (0u32..=15, 0u32..=12).prop_map(|(two, five)| 2u64.pow(two) * 5u64.pow(five));
    prop_oneof![number().prop_map(|bps| bps.max(1)), whole]
}

proptest! {
    #![proptest_config(config())]

    /// The least time in which the link can carry the bytes. Time times rate, both below 2^64, is
    /// what the link carries, in 8 * 10^12ths of a byte.
    #[test]
    fn serialization_time_is_the_shortest_that_is_long_enough(bps in rate(), bytes in number()) {
        let time = Rate::from_bps(bps).serialization_time(Bytes::new(bytes));
        let needed = u128::from(bytes) * BIT_PS_PER_BYTE;
        let carried = |ps: u64| u128::from(ps) * u128::from(bps);
        if time < Span::MAX {
            prop_assert!(carried(time.as_ps()) >= needed);
        }
        if time > Span::ZERO {
            prop_assert!(carried(time.as_ps() - 1) < needed);
        }
    }

    /// The most bytes that the link can carry in the time.
    #[test]
    fn bytes_in_is_the_largest_size_that_fits(bps in prop_oneof![Just(0), rate()], ps in number()) {
        let bytes = Rate::from_bps(bps).bytes_in(Span::from_ps(ps)).get();
        let carried = u128::from(ps) * u128::from(bps);
        prop_assert!(u128::from(bytes) * BIT_PS_PER_BYTE <= carried);
        if bytes < u64::MAX {
            prop_assert!((u128::from(bytes) + 1) * BIT_PS_PER_BYTE > carried);
        }
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate(bps in rate(), bytes in number(), ps in number()) {
        let (rate, size, span) = (Rate::from_bps(bps), Bytes::new(bytes), Span::from_ps(ps));
        let time = rate.serialization_time(size);
        prop_assert!(time == Span::MAX || rate.bytes_in(time) >= size);
        prop_assert!(rate.serialization_time(rate.bytes_in(span)) <= span);
    }

    /// The time of a packet without a division equals the one with a division.
    #[test]
    fn a_whole_byte_time_changes_no_time_of_a_packet(bps in rate(), bytes in number()) {
        let (rate, bytes) = (Rate::from_bps(bps), bytes as u32);
        let whole = rate.whole_byte_time();
        let divides = BIT_PS_PER_BYTE.is_multiple_of(u128::from(bps));
        let quotient = BIT_PS_PER_BYTE / u128::from(bps);
        let expected = if divides && quotient <= 1 << 31 { quotient } else { 0 };
        prop_assert_eq!(u128::from(whole), expected);
        let time = rate.serialization_time(Bytes::new(bytes.into()));
        prop_assert_eq!(rate.packet_time(bytes, whole), time);
    }

    #[test]
    fn a_multiple_of_a_rate_is_exact_or_the_largest_rate(bps in number(), times in number()) {
        let product = Rate::from_bps(bps).saturating_mul(times);
        prop_assert_eq!(product.as_bps(), capped(u128::from(bps) * u128::from(times)));
    }

    #[test]
    fn gigabits_are_exact_up_to_the_largest_rate(gbps in 0..=u64::MAX / 1_000_000_000) {
        let bps = u128::from(Rate::from_gbps(gbps).as_bps());
        prop_assert_eq!(bps, u128::from(gbps) * 1_000_000_000);
    }
}

/// The slowest and the fastest rate, and no time, one picosecond and all time.
#[test]
fn conversions_are_exact_at_the_ends_of_their_ranges() {
    let (slowest, fastest) = (Rate::from_bps(1), Rate::from_bps(u64::MAX));
    // A byte takes 8 s at 1 bit/s. 2^64 ps are 18,446,744.07 s, in which 2,305,843 B fit.
    assert_eq!(slowest.serialization_time(Bytes::new(1)), Span::from_secs(8));
    assert_eq!(slowest.serialization_time(Bytes::new(2_305_843)), Span::from_secs(18_446_744));
    assert_eq!(slowest.serialization_time(Bytes::new(2_305_844)), Span::MAX);
    assert_eq!(slowest.serialization_time(Bytes::MAX), Span::MAX);
    assert_eq!(slowest.bytes_in(Span::MAX), Bytes::new(2_305_843));
    // At 2^64 - 1 bit/s, a picosecond carries 18,446,744.07 bits: 2,305,843 B.
    assert_eq!(fastest.serialization_time(Bytes::new(2_305_843)), Span::from_ps(1));
    assert_eq!(fastest.serialization_time(Bytes::new(2_305_844)), Span::from_ps(2));
    assert_eq!(fastest.bytes_in(Span::from_ps(1)), Bytes::new(2_305_843));
    // In 2^64 - 1 ps, it carries 2^125 bits, more than any size.
    assert_eq!(fastest.bytes_in(Span::MAX), Bytes::MAX);
    // 8 * 10^12 bit/s carry a byte per picosecond, so all time is exactly the largest size.
    let byte_per_ps = Rate::from_bps(8_000_000_000_000);
    assert_eq!(byte_per_ps.bytes_in(Span::MAX), Bytes::MAX);
    assert_eq!(byte_per_ps.serialization_time(Bytes::MAX), Span::MAX);
    assert_eq!(Rate::from_bps(8_000_000_000_001).bytes_in(Span::MAX), Bytes::MAX);
    for rate in [slowest, fastest, byte_per_ps] {
        assert_eq!(rate.serialization_time(Bytes::ZERO), Span::ZERO);
        assert_eq!(rate.bytes_in(Span::ZERO), Bytes::ZERO);
    }
    assert_eq!(Rate::from_bps(0).whole_byte_time(), 0, "a link without a rate");
}
