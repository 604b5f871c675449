//! The parameters of HULL, each with its source.

use apus_units::{Bytes, Span};

use crate::bounds;
use crate::bounds::{MAX_CWND_RULE, MAX_CWND_SOURCE};
use crate::dctcp;
use apus_cc::settings::{ParamDefault, ParamInfo, ParamKind, SettingError, Settings, require, row};
use apus_cc::{Derivation, Range, Tunable, TunedSetting, rtt};

/// HULL as in its paper.
pub(super) const PAPER: &str = "paper";

const fn paper(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[PAPER], value, source }
}

/// Every parameter.
pub(super) const TABLE: &[ParamInfo] = &[
    row(
        "gamma",
        ParamKind::Number,
        "rate at which a phantom queue drains over that of its link",
        &[paper("0.95", "HULL §3.1, §6: 950 Mb/s of 1 Gb/s")],
    ),
    row(
        "threshold_per_gbps",
        ParamKind::Size,
        "bytes in a phantom queue above which it marks, per Gb/s of its link",
        &[paper("1kB", "unverified: HULL §6, about 1 kB per Gb/s")],
    ),
    row(
        "pacing",
        ParamKind::Flag,
        "whether flows that see marks are paced",
        &[paper("true", "HULL §4")],
    ),
    row(
        "pacer_probability",
        ParamKind::Number,
        "probability that an acknowledgement with a mark has its flow paced",
        &[paper("0.125", "unverified: HULL §4.3, 1/8")],
    ),
    row(
        "pacer_timeout",
        ParamKind::Time,
        "how long a flow stays paced after that",
        &[paper("10ms", "unverified: HULL §4.3")],
    ),
    row(
        "pacer_interval",
        ParamKind::Time,
        "T_r: interval at which the pacing rate is computed",
        &[paper("64us", "unverified: HULL §4.3")],
    ),
    row(
        "pacer_eta",
        ParamKind::Number,
        "weight of the newest interval in the pace",
        &[paper("0.125", "unverified: HULL §4.3")],
    ),
    row(
        "pacer_beta",
        ParamKind::Number,
        "increase of the pacing rate per backlog, in kb/s per byte",
        &[paper("16", "unverified: HULL §4.3 has 16, its unit is taken to be Mb/s per kB")],
    ),
    row(
        "g",
        ParamKind::Number,
        "weight of the newest window of data in the estimate of the marked fraction",
        &[paper("0.0625", "RFC 8257 §4.2: 1/16 in the implementations it describes")],
    ),
    row(
        "initial_alpha",
        ParamKind::Number,
        "estimate of the marked fraction before the first window of data has been acknowledged",
        &[paper("1", "RFC 8257 §3.3: DCTCP.Alpha is initialized to 1")],
    ),
    bounds::initial_cwnd(&[paper("10", "RFC 6928 §2")]),
    row(
        "min_cwnd",
        ParamKind::Number,
        "smallest window in packets, also the one after a timeout",
        &[paper("1", "RFC 5681 §3.1: the loss window is 1 segment")],
    ),
    bounds::max_cwnd(&[paper("256", "deviation: as DCTCP's, so that runs compare")]),
    rtt::rto_gain(&[paper("0.25", "deviation: as DCTCP's, so that runs compare")]),
    rtt::rto_multiplier(&[paper("2", "deviation: as DCTCP's, so that runs compare")]),
    rtt::min_rto(&[paper("1ms", "deviation: as DCTCP's, so that runs compare")]),
    rtt::initial_rto(&[paper("1ms", "deviation: as DCTCP's, so that runs compare")]),
];

/// The rules for the parameters that depend on the network. `threshold_per_gbps` scales with each
/// link anyway.
pub(super) const DERIVED: &[Derivation] = &[Derivation {
    parameter: "max_cwnd",
    profiles: &[PAPER],
    rule: MAX_CWND_RULE,
    source: MAX_CWND_SOURCE,
    value: bounds::derived_max_cwnd,
}];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("gamma"),
    profiles: &[PAPER],
    range: "0.8 to 0.99",
    source: "unverified: HULL §3.1, §6: gamma trades bandwidth for latency, and the range",
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
    /// Probability that a mark has its flow paced, in [0, 1].
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
    /// Reads and checks them.
    ///
    /// # Errors
    /// If a value is impossible, or one of the pacer's is set without it.
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
        let fraction = |name, value: f64| {
            require(value > 0.0 && value <= 1.0, name, "above 0 and at most 1", value)
        };
        fraction("gamma", phantom.gamma)?;
        fraction("pacer_probability", pacer.probability)?;
        fraction("pacer_eta", pacer.eta)?;
        let (timeout, interval) = (pacer.timeout, pacer.interval);
        require(!timeout.is_zero(), "pacer_timeout", "longer than 0", timeout)?;
        require(!interval.is_zero(), "pacer_interval", "longer than 0", interval)?;
        let positive = pacer.beta > 0.0 && pacer.beta.is_finite();
        require(positive, "pacer_beta", "above 0", pacer.beta)?;
        let dctcp = alloc::sync::Arc::new(dctcp::Params::from_settings(settings)?);
        let paced = settings.flag("pacing");
        if !paced {
            let unused =
                ["pacer_probability", "pacer_timeout", "pacer_interval", "pacer_eta", "pacer_beta"];
            settings.without_effect(&unused, "without `pacing`")?;
        }
        Ok(Self { phantom, pacer: paced.then_some(pacer), dctcp })
    }
}
