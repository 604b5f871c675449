//! Codes of link rates.

use apus_units::Rate;

/// The rates that the 8 bits of a link rate can express, in Gb/s (Bolt Listing 1 does not give
/// their encoding; the authors' code has five of these).
const LINK_RATES: [u64; 10] = [1, 10, 25, 40, 50, 100, 200, 400, 800, 1600];

/// Returns the code of a link rate, 1 and up: the fastest listed rate that is not above it, so that a flow
/// never takes its part in a queue for smaller than it is. 1 for links below 1 Gb/s.
#[must_use]
pub fn link_rate_code(rate: Rate) -> u8 {
    let below = LINK_RATES.partition_point(|&gbps| Rate::from_gbps(gbps) <= rate);
    below.max(1) as u8
}

/// Returns the rate that a code names, if it names one.
#[must_use]
pub fn rate_of_code(code: u8) -> Option<Rate> {
    let index = usize::from(code).checked_sub(1)?;
    LINK_RATES.get(index).copied().map(Rate::from_gbps)
}
