//! Times, spans and sizes: sums, differences, multiples and units.

use std::hint::black_box;
use std::panic::catch_unwind;

use apus_units::{Bytes, Span, Time};
use proptest::prelude::*;

use crate::support::{capped, config, number};

/// A constructor of spans.
type FromUnits = fn(u64) -> Span;
/// A computation whose result is beyond 64 bits.
type Compute = fn(Time, Span, Bytes);

/// Two numbers whose sum is within 64 bits.
fn addends() -> impl Strategy<Value = (u64, u64)> {
    (number(), number())
        .prop_map(|(a, b)| if a.checked_add(b).is_some() { (a, b) } else { (a, !a) })
}

/// Two numbers whose product is within 64 bits: often the largest possible second one.
fn factors() -> impl Strategy<Value = (u64, u64)> {
    (number(), number()).prop_map(|(a, b)| (a, b.min(u64::MAX / a.max(1))))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sums_within_64_bits_are_exact((a, b) in addends()) {
        let sum = u128::from(a) + u128::from(b);
        let (time, span) = (Time::from_ps(a), Span::from_ps(b));
        prop_assert_eq!(u128::from((time + span).as_ps()), sum);
        prop_assert_eq!(u128::from((Span::from_ps(a) + span).as_ps()), sum);
        prop_assert_eq!(u128::from((Bytes::new(a) + Bytes::new(b)).get()), sum);
        let mut later = time;
        later += span;
        prop_assert_eq!(later, time + span);
        // The difference is exact where the sum is.
        prop_assert_eq!(later - span, time);
        prop_assert_eq!(later.since(time), span);
        later -= span;
        prop_assert_eq!(later, time);
    }

    #[test]
    fn products_within_64_bits_are_exact((a, n) in factors()) {
        let product = u128::from(a) * u128::from(n);
        prop_assert_eq!(u128::from((Span::from_ps(a) * n).as_ps()), product);
        prop_assert_eq!(u128::from((Bytes::new(a) * n).get()), product);
    }

    /// The quotient is the largest span that fits `n` times.
    #[test]
    fn quotients_are_rounded_down(a in number(), n in number()) {
        let n = n.max(1);
        let quotient = u128::from((Span::from_ps(a) / n).as_ps());
        let n = u128::from(n);
        prop_assert!(quotient * n <= u128::from(a) && u128::from(a) < (quotient + 1) * n);
    }

    #[test]
    fn saturating_sums_and_differences_end_at_the_ends_of_time(a in number(), b in number()) {
        let sum = capped(u128::from(a) + u128::from(b));
        let difference = capped((i128::from(a) - i128::from(b)).max(0) as u128);
        let (time, span) = (Time::from_ps(a), Span::from_ps(b));
        prop_assert_eq!(time.saturating_add(span), Time::from_ps(sum));
        prop_assert_eq!(Span::from_ps(a).saturating_add(span), Span::from_ps(sum));
        prop_assert_eq!(time.saturating_sub(span), Time::from_ps(difference));
        prop_assert_eq!(Span::from_ps(a).saturating_sub(span), Span::from_ps(difference));
        prop_assert_eq!(Bytes::new(a).saturating_sub(Bytes::new(b)), Bytes::new(difference));
        prop_assert_eq!(time.since(Time::from_ps(b)), Span::from_ps(difference));
    }

    /// The documented limits of the constructors: the last whole unit within 64 bits.
    #[test]
    fn units_are_exact_up_to_their_limits(n in number()) {
        let limits: [(FromUnits, u64, u64); 4] = [
            (Span::from_ns, 1_000, 18_446_744_073_709_551),
            (Span::from_us, 1_000_000, 18_446_744_073_709),
            (Span::from_ms, 1_000_000_000, 18_446_744_073),
            (Span::from_secs, 1_000_000_000_000, 18_446_744),
        ];
        for (from, ps, limit) in limits {
            prop_assert!(u128::from(limit + 1) * u128::from(ps) > u128::from(u64::MAX));
            let n = n.min(limit);
            prop_assert_eq!(u128::from(from(n).as_ps()), u128::from(n) * u128::from(ps));
        }
    }
}

/// 64 bits hold 213 days: any sum of 213 times of at most a day, the longest time of a scenario.
#[test]
fn a_time_holds_213_days() {
    let day = Span::from_secs(86_400);
    let sum = (0..213).fold(Time::ZERO, |time, _| time + day);
    assert_eq!(u128::from(sum.as_ps()), 213 * 86_400 * 1_000_000_000_000);
    assert_eq!(day * 213, sum.since(Time::ZERO));
    assert_eq!(sum.saturating_add(day), Time::MAX, "the 214th day is beyond the end of time");
}

/// A result beyond 64 bits is a bug of the caller, which every test finds.
#[test]
fn operators_beyond_64_bits_panic_in_builds_that_check_overflow() {
    let (time, span, size) = (Time::ZERO, Span::from_ps(1), Bytes::new(1));
    let beyond: [(&str, Compute); 9] = [
        ("time + span", |_, span, _| _ = black_box(Time::MAX + span)),
        ("time - span", |time, span, _| _ = black_box(time - span)),
        ("span + span", |_, span, _| _ = black_box(Span::MAX + span)),
        ("span - span", |_, span, _| _ = black_box(Span::ZERO - span)),
        ("span * n", |_, span, _| _ = black_box((span + span) * (1 << 63))),
        ("size + size", |_, _, size| _ = black_box(Bytes::MAX + size)),
        ("size - size", |_, _, size| _ = black_box(Bytes::ZERO - size)),
        ("size * n", |_, _, size| _ = black_box((size + size) * (1 << 63))),
        ("seconds", |_, _, _| _ = black_box(Span::from_secs(18_446_745))),
    ];
    for (what, compute) in beyond {
        let ended = catch_unwind(|| compute(black_box(time), black_box(span), black_box(size)));
        assert_eq!(ended.is_err(), cfg!(debug_assertions), "{what}");
    }
}
