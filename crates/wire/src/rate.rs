//! Codes of link rates.

use apus_units::Rate;

/// Rates that the 8 bits of a link rate can express, in Gb/s. Bolt Listing 1 does not give their encoding;
/// the authors' code has five of these rates.
const LINK_RATES: [u64; 10] = [1, 10, 25, 40, 50, 100, 200, 400, 800, 1600];

/// Returns the code of a link rate, from 1 upwards: that of the fastest listed rate that is not above the
/// link rate. A flow thus never underestimates its part of a queue. The code is 1 for links below 1 Gb/s.
#[must_use]
pub fn link_rate_code(rate: Rate) -> u8 {
    let below = LINK_RATES.partition_point(|&gbps| Rate::from_gbps(gbps) <= rate);
    below.max(1) as u8
}

/// Returns the rate of a code, if the code is valid.
#[must_use]
pub fn rate_of_code(code: u8) -> Option<Rate> {
    let index = usize::from(code).checked_sub(1)?;
    LINK_RATES.get(index).copied().map(Rate::from_gbps)
}
