//! The parameters of the constant window.

use crate::rtt::{self, RtoRule};
use crate::settings::{ParamDefault, ParamInfo, ParamKind, SettingError, Settings, require};

/// The only profile.
pub(super) const CONSTANT: &str = "constant";

const fn only(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[CONSTANT], value, source }
}

/// Every parameter.
pub(super) const TABLE: &[ParamInfo] = &[
    ParamInfo {
        name: "window",
        kind: ParamKind::Number,
        doc: "window in packets",
        defaults: &[only("1", "deviation: no paper; one packet per RTT is the smallest window")],
    },
    rtt::rto_gain(&[only("0.25", "deviation: no paper; as Swift's, so that runs compare")]),
    rtt::rto_multiplier(&[only("2", "deviation: no paper; as Swift's, so that runs compare")]),
    rtt::min_rto(&[only("1ms", "deviation: no paper; as Swift's, so that runs compare")]),
    rtt::initial_rto(&[only("1ms", "deviation: no paper; as Swift's, so that runs compare")]),
];

/// The parameters of a constant window.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Window in packets, at least 1.
    pub window: f64,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks them.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let params =
            Self { window: settings.number("window"), rto: RtoRule::from_settings(settings) };
        require(params.window >= 1.0, "window", "at least 1 packet", params.window)?;
        params.rto.validate()?;
        Ok(params)
    }
}
