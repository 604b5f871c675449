//! The parameters of a constant window or rate.

use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{AT_LEAST_1, POSITIVE, ParamInfo, SettingError, Settings, number, rate};
use apus_cc::{Allowance, Pacing, Range, Tunable, TunedSetting};

/// The profile with a constant window.
pub(super) const CONSTANT: &str = "constant";
/// The profile with a constant rate.
pub(super) const RATE: &str = "rate";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("window", AT_LEAST_1, "window in packets")
        .default_of(CONSTANT, "1", "deviation: no paper; one packet per RTT is the smallest \
            window"),
    rate("rate", POSITIVE, "rate of wire bytes at which the flow is paced, independent of the \
        packets in flight")
        .default_of(RATE, "1Gbps", "deviation: no paper; Swift §3.5 takes the fair share of each flow, which \
            has to be set"),
    rtt::RTO_GAIN.default("0.25", "deviation: no paper; Swift's value, so that runs are comparable"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: no paper; Swift's value, so that runs are comparable"),
    rtt::MIN_RTO.default("1ms", "deviation: no paper; Swift's value, so that runs are comparable"),
    rtt::INITIAL_RTO.default("1ms", "deviation: no paper; Swift's value, so that runs are comparable"),
    rtt::MAX_RTO,
];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("window"),
    profiles: &[CONSTANT],
    range: "1 packet to 2 BDP",
    source: "deviation: no paper; below 1 BDP, a lone flow leaves the link partly idle; above 1 BDP, its \
        packets queue",
    bounds: |network| Range::Packets(1.0, (2.0 * network.bdp_packets()).max(2.0)),
}];

/// The parameters of a constant window or rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The constant allowance of the flow.
    pub allowance: Allowance,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let allowance = if settings.profile() == RATE {
            let pacing = Pacing::Rate(settings.rate("rate"));
            Allowance { window: f64::INFINITY, pacing }
        } else {
            Allowance { window: settings.number("window"), pacing: Pacing::AckClocked }
        };
        Ok(Self { allowance, rto: RtoRule::from_settings(settings) })
    }
}
