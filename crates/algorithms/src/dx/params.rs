//! The parameters of DX, each with its source.

use apus_units::Span;

use crate::bounds;
use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    ANY, AT_LEAST_1, POSITIVE, ParamInfo, SettingError, Settings, flag, number, time,
};
use apus_cc::{Range, Tunable, TunedSetting};

/// DX as in its paper.
pub(super) const PAPER: &str = "paper";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("ai", POSITIVE, "packets added to the window in an RTT without queueing")
        .default("1", "DX §4: the window grows by one"),
    time("headroom", ANY, "average queueing delay up to which the queues count as empty")
        .default("1us", "deviation: DX §3 measures to within 1 us; the delay by single packets of other flows \
            is not congestion either"),
    flag("slow_start", "whether the window doubles per RTT until the first queueing delay or loss")
        .default("true", "unverified: DX runs in TCP, which does so (RFC 5681 §3.1)"),
    bounds::INITIAL_CWND.default("10", "RFC 6928 §2"),
    number("min_cwnd", AT_LEAST_1, "smallest window in packets")
        .default("1", "RFC 5681 §3.1: the loss window is 1 segment"),
    bounds::MAX_CWND
        .default("65536", "deviation: in TCP, the receiver bounds the window; this value is large, so that \
            delay bounds it"),
    rtt::RTO_GAIN.default("0.25", "deviation: DX runs in TCP; Swift's value, so that runs are comparable"),
    rtt::RTO_MULTIPLIER
        .default("2", "deviation: DX runs in TCP; Swift's value, so that runs are comparable"),
    rtt::MIN_RTO.default("1ms", "deviation: DX runs in TCP; Swift's value, so that runs are comparable"),
    rtt::INITIAL_RTO
        .default("1ms", "deviation: DX runs in TCP; Swift's value, so that runs are comparable"),
    rtt::MAX_RTO,
];

/// The smallest headroom: the error of DX's measurements (§3).
const HEADROOM: Span = Span::from_us(1);

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("headroom"),
    profiles: &[PAPER],
    range: "1us to the larger of 10us and half the unloaded RTT of the longest path",
    source: "deviation: DX has no parameter for the queue that it leaves; the headroom takes the place of one",
    bounds: |network| Range::Time(HEADROOM, network.base_rtt.mul_f64(0.5).max(Span::from_us(10))),
}];

/// The parameters of DX.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Additive increase in packets per RTT.
    pub ai: f64,
    /// Average queueing delay up to which the queue counts as empty.
    pub headroom: Span,
    /// Whether a flow starts with slow start.
    pub slow_start: bool,
    /// First window in packets.
    pub initial_cwnd: f64,
    /// Smallest window in packets, at least 1: DX does not pace.
    pub min_cwnd: f64,
    /// Largest window in packets.
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
            ai: settings.number("ai"),
            headroom: settings.time("headroom"),
            slow_start: settings.flag("slow_start"),
            initial_cwnd: settings.number("initial_cwnd"),
            min_cwnd: settings.number("min_cwnd"),
            max_cwnd: settings.number("max_cwnd"),
            rto: RtoRule::from_settings(settings),
        };
        bounds::check(params.initial_cwnd, params.min_cwnd, params.max_cwnd)?;
        Ok(params)
    }
}
