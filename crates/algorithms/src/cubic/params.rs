//! The parameters of CUBIC, each with its source.

use crate::bounds;
use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    POSITIVE, PROPER_FRACTION, ParamInfo, SettingError, Settings, flag, number, require,
};
use apus_cc::{Range, Tunable, TunedSetting};

/// CUBIC as specified in its RFC.
pub(super) const RFC9438: &str = "rfc9438";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("c", POSITIVE, "C: growth of the curve, in packets per cubic second")
        .default("0.4", "RFC 9438 §5: C SHOULD be set to 0.4"),
    number("beta", PROPER_FRACTION, "beta_cubic: factor by which a congestion event multiplies the window")
        .default("0.7", "RFC 9438 §4.6: beta_cubic SHOULD be set to 0.7"),
    flag("fast_convergence", "whether the flow leaves room for new flows when its window at losses decreases")
        .default("true", "RFC 9438 §4.7: SHOULD be implemented"),
    flag("ecn", "whether packets are ECN-capable; a mark then counts as a congestion event")
        .default("false", "deviation: RFC 9438 §4.6 reacts to marks if ECN is in use, which the hosts decide; \
            here off, so that CUBIC reacts to losses alone, as in the experiments in which it is compared"),
    bounds::INITIAL_CWND.default("10", "RFC 6928 §2"),
    bounds::MAX_CWND
        .default("65536", "deviation: in the RFCs, the receiver bounds the window; this value is large, so \
            that losses bound it"),
    rtt::RTO_GAIN
        .default("0.25", "deviation: RFC 6298 adds the variance; here Swift's rule, so that runs are \
            comparable"),
    rtt::RTO_MULTIPLIER
        .default("2", "deviation: RFC 6298 adds the variance; here Swift's rule, so that runs are comparable"),
    rtt::MIN_RTO
        .default("1ms", "deviation: RFC 6298 §2.4 says 1 s, far too long in a datacenter; DCTCP's value"),
    rtt::INITIAL_RTO.default("1ms", "deviation: RFC 6298 §2.1 says 1 s; here as min_rto"),
    rtt::MAX_RTO,
];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("beta"),
    profiles: &[RFC9438],
    range: "0.5 to 0.9",
    source: "RFC 9438 §4.6: beta_cubic trades convergence for utilisation; 0.5 is Reno's value (RFC 5681); \
             deviation: 0.9 is as far above 0.7 as 0.5 is below it",
    bounds: |_| Range::Number(0.5, 0.9),
}];

/// The parameters of CUBIC.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// C, packets per cubic second (RFC 9438 §5).
    pub c: f64,
    /// beta_cubic, in (0, 1) (RFC 9438 §4.6).
    pub beta: f64,
    /// Whether fast convergence is used (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether packets are ECN-capable.
    pub ecn: bool,
    /// First window in packets, at least 1 (RFC 6928 §2).
    pub initial_cwnd: f64,
    /// Largest window in packets, at least 2.
    pub max_cwnd: f64,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let params = Self {
            c: settings.number("c"),
            beta: settings.number("beta"),
            fast_convergence: settings.flag("fast_convergence"),
            ecn: settings.flag("ecn"),
            initial_cwnd: settings.number("initial_cwnd"),
            max_cwnd: settings.number("max_cwnd"),
            rto: RtoRule::from_settings(settings),
        };
        require(params.max_cwnd >= 2.0, "max_cwnd", "at least 2 packets", params.max_cwnd)?;
        let inside = (1.0..=params.max_cwnd).contains(&params.initial_cwnd);
        require(inside, "initial_cwnd", "between 1 and max_cwnd", params.initial_cwnd)?;
        Ok(params)
    }
}
