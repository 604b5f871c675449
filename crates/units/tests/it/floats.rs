//! Spans and sizes times floating-point numbers: rounding and saturation.

use apus_units::{Bytes, Span};
use proptest::prelude::*;

use crate::support::{capped, config, number};

/// Bits of the fraction of an f64, and the bias of its exponent with a whole number as fraction.
const FRACTION_BITS: u32 = 52;
const BIAS: i32 = 1075;

/// Returns the whole number nearest to `x`, halves upwards, read from the bits of `x`.
fn nearest(x: f64) -> u64 {
    if x.is_nan() || x <= 0.0 {
        return 0;
    }
    let fraction = u128::from(x.to_bits() & ((1 << FRACTION_BITS) - 1));
    let (number, power) = match (x.to_bits() >> FRACTION_BITS) as i32 {
        0 => (fraction, 1 - BIAS),
        exponent => (fraction | 1 << FRACTION_BITS, exponent - BIAS),
    };
    // `x` is `number` times 2^`power`; `number` is below 2^53.
    match power {
        12.. => u64::MAX,
        0..12 => capped(number << power),
        -54..0 => capped((number + (1 << (-power - 1))) >> -power),
        _ => 0, // below 2^53 / 2^55, a quarter
    }
}

/// Floating-point numbers at which rounding could fail: near halves and whole numbers of all
/// magnitudes, and any bits.
fn float() -> impl Strategy<Value = f64> {
    let near = (number(), 0u32..4, -2i32..=2).prop_map(|(n, quarters, steps)| {
        let mut x = n as f64 + f64::from(quarters) * 0.25;
        for _ in 0..steps.abs() {
            x = if steps > 0 { x.next_up() } else { x.next_down() };
        }
        x
    });
    prop_oneof![2 => near, 1 => any::<u64>().prop_map(f64::from_bits)]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_span_is_nearest_to_its_floating_point_number(x in float()) {
        prop_assert_eq!(Span::from_ps_f64(x).as_ps(), nearest(x), "{:e}", x);
    }

    /// Whole numbers below 2^53 are floating-point numbers themselves.
    #[test]
    fn spans_below_2_to_the_53_survive_floating_point(n in number()) {
        let span = Span::from_ps(n % (1 << 53));
        prop_assert_eq!(Span::from_ps_f64(span.as_ps_f64()), span);
        prop_assert_eq!(span.mul_f64(1.0), span);
    }

    /// A factor `n` / 2^`k`, which is a floating-point number if `n` is below 2^53. The span as
    /// floating-point number and the product are each rounded by at most 1 in 2^53.
    #[test]
    fn products_with_fractions_are_exact_or_within_the_rounding_of_floats(
        a in number(), n in number(), k in 0u32..=60,
    ) {
        let n = n % (1 << 53);
        let factor = n as f64 / (1u64 << k) as f64;
        let exact = u128::from(a) * u128::from(n);
        let (span, size) = (Span::from_ps(a).mul_f64(factor), Bytes::new(a).mul_f64(factor));
        let half = (1u128 << k) >> 1;
        let (nearest, below) = (capped((exact + half) >> k), capped(exact >> k));
        if a < 1 << 53 && exact < 1 << 53 {
            prop_assert_eq!((span.as_ps(), size.get()), (nearest, below));
        }
        let tolerance = (below >> 52) + 1;
        prop_assert!(span.as_ps().abs_diff(nearest) <= tolerance, "{} is not {}", span, nearest);
        prop_assert!(size.get().abs_diff(below) <= tolerance, "{} is not {}", size, below);
    }
}

#[test]
fn rounding_is_exact_where_adding_a_half_is_not() {
    // 0.5 - 2^-54 plus 0.5 lies between two floating-point numbers, of which 1 is the even one.
    assert_eq!(Span::from_ps_f64(0.5_f64.next_down()), Span::ZERO);
    assert_eq!(Span::from_ps_f64(0.5), Span::from_ps(1));
    // 2^52 + 1 plus 0.5 lies between two floating-point numbers, of which 2^52 + 2 is the even one.
    let odd = (1u64 << 52) + 1;
    assert_eq!(Span::from_ps_f64(odd as f64), Span::from_ps(odd));
}

#[test]
fn products_saturate_and_a_negative_one_is_zero() {
    for factor in [2.0, 1e300, f64::INFINITY] {
        assert_eq!(Span::MAX.mul_f64(factor), Span::MAX);
        assert_eq!(Bytes::MAX.mul_f64(factor), Bytes::MAX);
    }
    for factor in [0.0, -1.0, f64::NEG_INFINITY, f64::NAN] {
        assert_eq!(Span::MAX.mul_f64(factor), Span::ZERO);
        assert_eq!(Bytes::MAX.mul_f64(factor), Bytes::ZERO);
    }
    assert_eq!(Span::ZERO.mul_f64(f64::INFINITY), Span::ZERO, "0 times infinity is no number");
}
