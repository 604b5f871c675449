//! The parameters of a constant window or rate.

use apus_units::Rate;

use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{ParamDefault, ParamInfo, ParamKind, SettingError, Settings, require};
use apus_cc::{Allowance, Pacing, Range, Tunable, TunedSetting};

/// The profile of a window.
pub(super) const CONSTANT: &str = "constant";
/// The profile of a rate.
pub(super) const RATE: &str = "rate";

const fn both(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[CONSTANT, RATE], value, source }
}

/// Every parameter.
pub(super) const TABLE: &[ParamInfo] = &[
    ParamInfo {
        name: "window",
        kind: ParamKind::Number,
        doc: "window in packets",
        defaults: &[ParamDefault {
            profiles: &[CONSTANT],
            value: "1",
            source: "deviation: no paper; one packet per RTT is the smallest window",
        }],
    },
    ParamInfo {
        name: "rate",
        kind: ParamKind::Rate,
        doc: "rate of wire bytes at which the flow is paced, independent of the packets in flight",
        defaults: &[ParamDefault {
            profiles: &[RATE],
            value: "1Gbps",
            source: "deviation: no paper; Swift §3.5 takes each flow's fair share, to be set",
        }],
    },
    rtt::rto_gain(&[both("0.25", "deviation: no paper; as Swift's, so that runs compare")]),
    rtt::rto_multiplier(&[both("2", "deviation: no paper; as Swift's, so that runs compare")]),
    rtt::min_rto(&[both("1ms", "deviation: no paper; as Swift's, so that runs compare")]),
    rtt::initial_rto(&[both("1ms", "deviation: no paper; as Swift's, so that runs compare")]),
];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("window"),
    profiles: &[CONSTANT],
    range: "1 packet to 2 BDP",
    source: "deviation: no paper; below 1 BDP a flow alone idles the link, above it queues",
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
    /// Reads and checks them.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let allowance = if settings.profile() == RATE {
            let rate = settings.rate("rate");
            require(rate > Rate::from_bps(0), "rate", "above 0", rate)?;
            Allowance { window: f64::INFINITY, pacing: Pacing::Rate(rate) }
        } else {
            let window = settings.number("window");
            require(window >= 1.0, "window", "at least 1 packet", window)?;
            Allowance { window, pacing: Pacing::AckClocked }
        };
        let params = Self { allowance, rto: RtoRule::from_settings(settings) };
        params.rto.validate()?;
        Ok(params)
    }
}
