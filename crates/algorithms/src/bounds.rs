//! Bounds of windows: the parameters shared by all algorithms with one window in packets.

use apus_cc::Derivation;
use apus_cc::derivation::whole;
use apus_cc::settings::{ANY, ParamInfo, SettingError, number, require};

/// The parameter `initial_cwnd`, without a default.
pub(crate) const INITIAL_CWND: ParamInfo = number("initial_cwnd", ANY, "initial window in packets");
/// The parameter `max_cwnd`, without a default.
pub(crate) const MAX_CWND: ParamInfo = number("max_cwnd", ANY, "largest window in packets");

/// Checks that the bounds are in order and contain the first window.
///
/// # Errors
/// If a value is impossible.
pub(crate) fn check(initial_cwnd: f64, min_cwnd: f64, max_cwnd: f64) -> Result<(), SettingError> {
    require(max_cwnd >= min_cwnd, "max_cwnd", "at least min_cwnd", max_cwnd)?;
    let inside = (min_cwnd..=max_cwnd).contains(&initial_cwnd);
    require(inside, "initial_cwnd", "between min_cwnd and max_cwnd", initial_cwnd)
}

/// The rule for the largest window, for algorithms whose papers give no value.
pub(crate) const fn max_cwnd_rule(profiles: &'static [&'static str]) -> Derivation {
    Derivation {
        parameter: MAX_CWND.name,
        profiles,
        rule: "the larger of 256 packets and 2 BDP",
        source: "deviation: the paper gives no value; 256 as in Falcon, and 2 BDP so that this limit never affects a \
                 lone flow on a long path",
        value: |network, _| whole((2.0 * network.bdp_packets()).max(256.0)),
    }
}
