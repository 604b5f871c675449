//! The parameters of HULL, each with its source.

use apus_units::{Bytes, Span};

use crate::bounds;
use crate::dctcp;
use apus_cc::settings::{
    ANY, AT_LEAST_1, FRACTION, POSITIVE, PROBABILITY, ParamInfo, SettingError, Settings, flag,
    number, size, time,
};
use apus_cc::{Derivation, Range, Tunable, TunedSetting, rtt};

/// HULL as in its paper.
pub(super) const PAPER: &str = "paper";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("gamma", FRACTION, "rate at which a phantom queue drains, as a fraction of the rate of its link")
        .default("0.95", "HULL §3.1, §6: 950 Mb/s of 1 Gb/s"),
    size("threshold_per_gbps", ANY, "bytes in a phantom queue above which it marks packets, per Gb/s of its \
        link")
        .default("1kB", "unverified: HULL §6, about 1 kB per Gb/s"),
    flag("pacing", "whether flows that see marks are paced")
        .default("true", "HULL §4"),
    number("pacer_probability", FRACTION, "probability that an acknowledgement with a mark starts the pacing \
        of its flow")
        .default("0.125", "unverified: HULL §4.3, 1/8"),
    time("pacer_timeout", POSITIVE, "time for which the flow is then paced")
        .default("10ms", "unverified: HULL §4.3"),
    time("pacer_interval", POSITIVE, "T_r: interval at which the pacing rate is computed")
        .default("64us", "unverified: HULL §4.3"),
    number("pacer_eta", FRACTION, "weight of the newest interval in the pacing rate")
        .default("0.125", "unverified: HULL §4.3"),
    number("pacer_beta", POSITIVE, "increase of the pacing rate per backlog, in kb/s per byte")
        .default("16", "unverified: HULL §4.3 has 16; its unit is assumed to be Mb/s per kB"),
    number("g", FRACTION, "weight of the newest window of data in the estimate of the marked \
        fraction")
        .default("0.0625", "RFC 8257 §4.2: 1/16 in the implementations it describes"),
    number("initial_alpha", PROBABILITY, "estimate of the marked fraction until the first window of data has \
        been acknowledged")
        .default("1", "RFC 8257 §3.3: DCTCP.Alpha is initialized to 1"),
    bounds::INITIAL_CWND.default("10", "RFC 6928 §2"),
    number("min_cwnd", AT_LEAST_1, "smallest window in packets, and the window after a timeout")
        .default("1", "RFC 5681 §3.1: the loss window is 1 segment"),
    bounds::MAX_CWND.default("256", "deviation: DCTCP's value, so that runs are comparable"),
    rtt::RTO_GAIN.default("0.25", "deviation: DCTCP's value, so that runs are comparable"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: DCTCP's value, so that runs are comparable"),
    rtt::MIN_RTO.default("1ms", "deviation: DCTCP's value, so that runs are comparable"),
    rtt::INITIAL_RTO.default("1ms", "deviation: DCTCP's value, so that runs are comparable"),
    rtt::MAX_RTO,
];

/// The rules for the parameters that depend on the network. `threshold_per_gbps` scales with each
/// link anyway.
pub(super) const DERIVED: &[Derivation] = &[bounds::max_cwnd_rule(&[PAPER])];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("gamma"),
    profiles: &[PAPER],
    range: "0.8 to 0.99",
    source: "unverified: HULL §3.1, §6: gamma trades bandwidth for latency; the range is from there too",
    bounds: |_| Range::Number(0.8, 0.99),
}];

/// Parameters of a phantom queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhantomParams {
    /// Drained at this fraction of the link's rate, in (0, 1].
    pub gamma: f64,
    /// Marks above this, per Gb/s of the link.
    pub threshold_per_gbps: Bytes,
}

/// Parameters of a pacer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacerParams {
    /// Probability that a mark makes its flow paced, in [0, 1].
    pub probability: f64,
    /// Duration of pacing.
    pub timeout: Span,
    /// `T_r`.
    pub interval: Span,
    /// Weight of the newest interval, in (0, 1].
    pub eta: f64,
    /// Growth of the pace for a backlog, in kb/s per byte.
    pub beta: f64,
}

/// The parameters of HULL.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Parameters of the switches.
    pub phantom: PhantomParams,
    /// Parameters of the pacer, if flows are paced.
    pub pacer: Option<PacerParams>,
    /// Parameters of the reaction to marks.
    pub dctcp: alloc::sync::Arc<dctcp::Params>,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible, or a parameter of the pacer is set without the pacer.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let phantom = PhantomParams {
            gamma: settings.number("gamma"),
            threshold_per_gbps: settings.size("threshold_per_gbps"),
        };
        let pacer = PacerParams {
            probability: settings.number("pacer_probability"),
            timeout: settings.time("pacer_timeout"),
            interval: settings.time("pacer_interval"),
            eta: settings.number("pacer_eta"),
            beta: settings.number("pacer_beta"),
        };
        let dctcp = alloc::sync::Arc::new(dctcp::Params::per_window(settings)?);
        let paced = settings.flag("pacing");
        if !paced {
            let unused =
                ["pacer_probability", "pacer_timeout", "pacer_interval", "pacer_eta", "pacer_beta"];
            settings.without_effect(&unused, "without `pacing`")?;
        }
        Ok(Self { phantom, pacer: paced.then_some(pacer), dctcp })
    }
}
