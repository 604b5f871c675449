//! The parameters of TIMELY, each with its source.

use alloc::format;

use apus_units::{Bytes, Rate, Span};

use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    ANY, AT_LEAST_1, FRACTION, POSITIVE, ParamInfo, SettingError, Settings, count, number, rate,
    require, size, time,
};
use apus_cc::{Derivation, Range, Tunable, TunedSetting};

/// TIMELY as in its paper.
pub(super) const PAPER: &str = "paper";
/// Patched TIMELY.
pub(super) const PATCHED: &str = "patched";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    time("t_low", ANY, "RTT below which the rate grows, whatever the gradient")
        .default("50us", "ECN or Delay §4: as TIMELY's authors recommend"),
    time("t_high", ANY, "RTT above which the rate falls, whatever the gradient")
        .default("500us", "ECN or Delay §4: as TIMELY's authors recommend"),
    time("t_ref", POSITIVE, "reference RTT of the patched decrease")
        .default_of(PATCHED, "50us", "ECN or Delay Alg. 2, §4.3: q' is C * T_low"),
    time("min_rtt", POSITIVE, "D_minRTT: divisor of the gradient, and minimum time between two \
        changes of the rate")
        .default("20us", "ECN or Delay §4"),
    rate("delta", POSITIVE, "additive increase of the rate")
        .default("10Mbps", "TIMELY §4.3; ECN or Delay §4"),
    number("alpha", FRACTION, "weight of a new RTT difference in the average difference")
        .default("0.875", "ECN or Delay §4"),
    number("beta", FRACTION, "multiplicative decrease factor")
        .default_of(PAPER, "0.8", "TIMELY §4.3")
        .default_of(PATCHED, "0.008", "ECN or Delay §4.3: for its stability"),
    count("hai_thresh", AT_LEAST_1, "number of consecutive rate changes without a positive gradient after \
        which the increase is five times as large")
        .default_of(PAPER, "5", "TIMELY §4.3, Alg. 1: N = 5 if gradient <= 0 for five completion \
            events"),
    size("segment", POSITIVE, "payload bytes whose acknowledgement is a completion event")
        .default("16KiB", "ECN or Delay §4; TIMELY §5 uses 16 to 64 KB"),
    number("initial_share", FRACTION, "initial rate as a fraction of the line rate of the host")
        .default("0.1", "deviation: TIMELY §4 starts at C/(N+1) with N flows of the host, a number that a flow \
            does not know; this is the value for N = 9"),
    rate("min_rate", POSITIVE, "smallest rate")
        .default("10Mbps", "deviation: TIMELY gives no value; this is one additive step"),
    rtt::RTO_GAIN.default("0.25", "deviation: TIMELY runs on a lossless network; Swift's value"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: TIMELY runs on a lossless network; Swift's value"),
    rtt::MIN_RTO.default("1ms", "deviation: TIMELY runs on a lossless network; Swift's value"),
    rtt::INITIAL_RTO.default("1ms", "deviation: TIMELY runs on a lossless network; Swift's value"),
    rtt::MAX_RTO,
];

/// `T_low` over `D_minRTT` in ECN or Delay §4: 50 us over 20 us.
const LOW: f64 = 2.5;
/// `T_high` over `D_minRTT` in ECN or Delay §4: 500 us over 20 us.
const HIGH: f64 = 25.0;

/// The rules for the parameters that depend on the network, each after the rules whose results it uses.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "min_rtt",
        profiles: &[PAPER, PATCHED],
        rule: "the unloaded RTT of the longest path",
        source: "unverified: TIMELY §4.3: the gradient is normalised by the minimum RTT of the network",
        value: |network, _| format!("{}", network.base_rtt),
    },
    Derivation {
        parameter: "t_low",
        profiles: &[PAPER, PATCHED],
        rule: "2.5 times min_rtt, at most t_high",
        source: "deviation: no rule is published; this is the ratio to min_rtt in ECN or Delay §4 (50us, 20us; \
                 unverified)",
        value: |_, settings| {
            let low = settings.time("min_rtt").mul_f64(LOW);
            let set = settings.is_set("t_high");
            format!("{}", if set { low.min(settings.time("t_high")) } else { low })
        },
    },
    Derivation {
        parameter: "t_high",
        profiles: &[PAPER, PATCHED],
        rule: "25 times min_rtt, at least t_low",
        source: "deviation: no rule is published; this is the ratio to min_rtt in ECN or Delay §4 (500us, \
                 20us; unverified)",
        value: |_, settings| {
            let high = settings.time("min_rtt").mul_f64(HIGH);
            format!("{}", high.max(settings.time("t_low")))
        },
    },
    Derivation {
        parameter: "t_ref",
        profiles: &[PATCHED],
        rule: "t_low",
        source: "unverified: ECN or Delay Alg. 2, §4.3: q' is C * T_low",
        value: |_, settings| format!("{}", settings.time("t_low")),
    },
];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("t_low"),
    profiles: &[PAPER, PATCHED],
    range: "1 to 10 times the unloaded RTT of the longest path",
    source: "unverified: TIMELY §4.3: below T_low, the rate grows whatever the gradient (deviation: no range \
             is given; the upper end is four times the ratio of T_low to min_rtt in ECN or Delay §4)",
    bounds: |network| Range::Time(network.base_rtt, network.base_rtt.mul_f64(10.0)),
}];

/// The parameters of TIMELY.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// `T_low`.
    pub t_low: Span,
    /// `T_high`, not below `T_low`.
    pub t_high: Span,
    /// Settings of the variant.
    pub variant: Variant,
    /// `D_minRTT`.
    pub min_rtt: Span,
    /// Additive increase.
    pub delta: Rate,
    /// Weight of a new difference of RTTs, in (0, 1].
    pub alpha: f64,
    /// Multiplicative decrease, in (0, 1].
    pub beta: f64,
    /// Payload bytes of a completion event.
    pub segment: Bytes,
    /// First rate over the line's, in (0, 1].
    pub initial_share: f64,
    /// Smallest rate.
    pub min_rate: Rate,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

/// The reaction of the rate to the gradient between the thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variant {
    /// TIMELY §4.3.
    Paper {
        /// Number of changes of rate without a positive gradient until hyperactive increase.
        hai_thresh: u32,
    },
    /// ECN or Delay Alg. 2.
    Patched {
        /// `RTT_ref`.
        t_ref: Span,
    },
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let variant = if settings.profile() == PATCHED {
            Variant::Patched { t_ref: settings.time("t_ref") }
        } else {
            Variant::Paper { hai_thresh: settings.count("hai_thresh") }
        };
        let (t_low, t_high) = (settings.time("t_low"), settings.time("t_high"));
        require(t_high >= t_low, "t_high", "at least t_low", t_high)?;
        Ok(Self {
            t_low,
            t_high,
            variant,
            min_rtt: settings.time("min_rtt"),
            delta: settings.rate("delta"),
            alpha: settings.number("alpha"),
            beta: settings.number("beta"),
            segment: settings.size("segment"),
            initial_share: settings.number("initial_share"),
            min_rate: settings.rate("min_rate"),
            rto: RtoRule::from_settings(settings),
        })
    }
}
