//! Numbers and settings of the property tests.

use proptest::prelude::*;

/// Returns the settings of all property tests of this crate.
pub fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Numbers of all magnitudes: a random bit length, then random bits. A third of them are powers of
/// two with their neighbours, and the ends of the range.
pub fn number() -> impl Strategy<Value = u64> {
    let any = (0u32..=64, any::<u64>())
        .prop_map(|(bits, value)| value.checked_shr(64 - bits).unwrap_or(0));
    let power =
        (0u32..64, -1i64..=1).prop_map(|(bit, away)| (1u64 << bit).wrapping_add_signed(away));
    prop_oneof![4 => any, 1 => power, 1 => (0u64..4).prop_map(|below| u64::MAX - below)]
}

/// Returns `n`, or the largest number of 64 bits if `n` is larger.
pub fn capped(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
