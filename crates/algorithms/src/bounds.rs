//! Bounds of windows: the parameters shared by all algorithms with one window in packets.

use alloc::string::String;

use apus_cc::NetworkInfo;
use apus_cc::derivation::whole;
use apus_cc::settings::{ParamDefault, ParamInfo, SettingError, Settings, number, require};

/// The row `initial_cwnd` of a table of parameters.
pub(crate) const fn initial_cwnd(defaults: &'static [ParamDefault]) -> ParamInfo {
    number("initial_cwnd", "first window in packets", defaults)
}

/// The row `max_cwnd` of a table of parameters.
pub(crate) const fn max_cwnd(defaults: &'static [ParamDefault]) -> ParamInfo {
    number("max_cwnd", "largest window in packets", defaults)
}

/// Checks that the bounds are in order, and the first window within them. The lower limit of the
/// smallest window is the algorithm's rule: at least 1 for those without pacing.
///
/// # Errors
/// If a value is impossible.
pub(crate) fn check(initial_cwnd: f64, min_cwnd: f64, max_cwnd: f64) -> Result<(), SettingError> {
    require(max_cwnd >= min_cwnd, "max_cwnd", "at least min_cwnd", max_cwnd)?;
    let inside = (min_cwnd..=max_cwnd).contains(&initial_cwnd);
    require(inside, "initial_cwnd", "between min_cwnd and max_cwnd", initial_cwnd)
}

/// Checks the bounds of an algorithm without pacing, whose window must hold a packet.
///
/// # Errors
/// If a value is impossible.
pub(crate) fn check_unpaced(
    initial_cwnd: f64,
    min_cwnd: f64,
    max_cwnd: f64,
) -> Result<(), SettingError> {
    require(min_cwnd >= 1.0, "min_cwnd", "at least 1 packet", min_cwnd)?;
    check(initial_cwnd, min_cwnd, max_cwnd)
}

/// Rule for the largest window of algorithms whose papers give no value.
pub(crate) const MAX_CWND_RULE: &str = "the larger of 256 packets and 2 BDP";
/// Source of [`MAX_CWND_RULE`].
pub(crate) const MAX_CWND_SOURCE: &str = "deviation: the paper gives no value; 256 as in Falcon, and 2 BDP so that it never limits a lone flow on \
     a long path";

/// Value of [`MAX_CWND_RULE`].
pub(crate) fn derived_max_cwnd(network: &NetworkInfo, _: &Settings) -> String {
    whole((2.0 * network.bdp_packets()).max(256.0))
}
