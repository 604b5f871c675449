//! The parameters of RCP, each with its source.

use alloc::format;

use apus_units::Span;

use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    FRACTION, Limits, POSITIVE, ParamInfo, SettingError, Settings, number, time,
};
use apus_cc::{Derivation, Range, Tunable, TunedSetting};

/// RCP as in its papers, with the constants of its authors' simulator.
pub(super) const PAPER: &str = "paper";

/// The gains of RCP's control equation.
const GAIN: Limits = Limits::new("above 0 and below 2", |x| x > 0.0 && x < 2.0);

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("alpha", GAIN, "gain of the spare capacity")
        .default("0.4", "ns-2 rcp.cc (Zhang and Dukkipati); stable for all loads"),
    number("beta", GAIN, "gain of the queue")
        .default("0.4", "ns-2 rcp.cc (Zhang and Dukkipati)"),
    number("initial_rate", FRACTION, "initial rate of a port as a fraction of the rate of its link")
        .default("0.05", "ns-2 rcp.cc: INIT_RATE_FACT"),
    number("rtt_gain", FRACTION, "weight of the RTT of a packet in the average RTT of a port")
        .default("0.02", "deviation: RTT_GAIN of ns-2 rcp.cc, where it is the weight of the mean of an \
            interval, weighted by bytes, once per interval; a weight per packet needs no sums"),
    time("initial_rtt", POSITIVE, "average RTT of a port before any packet has stated its RTT")
        .default("50us", "deviation: 200 ms in ns-2 rcp.cc, for the Internet"),
    rtt::RTO_GAIN.default("0.25", "deviation: RCP gives no value; Swift's value, so that runs are comparable"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: RCP gives no value; Swift's value, so that runs are \
        comparable"),
    rtt::MIN_RTO.default("1ms", "deviation: RCP gives no value; DCTCP's value, so that runs are comparable"),
    rtt::INITIAL_RTO.default("1ms", "deviation: the value of min_rto, for the same reason"),
    rtt::MAX_RTO,
];

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[Derivation {
    parameter: "initial_rtt",
    profiles: &[PAPER],
    rule: "the unloaded RTT of the longest path",
    source: "deviation: no rule is published; d_0 is the average RTT of the flows (RCP's control equation), \
             which without queues is at most this RTT",
    value: |network, _| format!("{}", network.base_rtt),
}];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("alpha"),
    profiles: &[PAPER],
    range: "0.1 to 1",
    source: "deviation: RCP's papers choose alpha within the region of stability and give no range",
    bounds: |_| Range::Number(0.1, 1.0),
}];

/// Parameters of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortParams {
    /// Gain of the spare capacity.
    pub alpha: f64,
    /// Gain of the queue.
    pub beta: f64,
    /// First rate over the link's, in (0, 1].
    pub initial_rate: f64,
    /// Weight of a packet's RTT in the average, in (0, 1].
    pub rtt_gain: f64,
    /// The initial average RTT.
    pub initial_rtt: Span,
}

/// The parameters of RCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Parameters of the switches.
    pub port: PortParams,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let port = PortParams {
            alpha: settings.number("alpha"),
            beta: settings.number("beta"),
            initial_rate: settings.number("initial_rate"),
            rtt_gain: settings.number("rtt_gain"),
            initial_rtt: settings.time("initial_rtt"),
        };
        Ok(Self { port, rto: RtoRule::from_settings(settings) })
    }
}
