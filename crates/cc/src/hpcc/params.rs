//! The parameters of HPCC, each with its source.

use apus_units::{Rate, Span};

use crate::rtt::{self, RtoRule};
use crate::settings::{ParamDefault, ParamInfo, ParamKind, SettingError, Settings, require};

/// HPCC as its paper has it.
pub(super) const PAPER: &str = "paper";
/// As the authors of Bolt ran it.
pub(super) const BOLT: &str = "bolt";

const fn both(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[PAPER, BOLT], value, source }
}

/// Every parameter.
pub(super) const TABLE: &[ParamInfo] = &[
    ParamInfo {
        name: "base_rtt",
        kind: ParamKind::Time,
        doc: "T: the largest base RTT of the network; the first window is T at the host's rate",
        defaults: &[
            ParamDefault { profiles: &[PAPER], value: "13us", source: "HPCC §5.1: FatTree" },
            ParamDefault { profiles: &[BOLT], value: "8us", source: "Bolt §2.1.1: the dumbbell" },
        ],
    },
    ParamInfo {
        name: "eta",
        kind: ParamKind::Number,
        doc: "utilisation aimed at",
        defaults: &[both("0.95", "HPCC §5.1; 0.95 in Bolt ns-3")],
    },
    ParamInfo {
        name: "max_stage",
        kind: ParamKind::Count,
        doc: "RTTs of additive increase before a multiplicative one",
        defaults: &[
            ParamDefault { profiles: &[PAPER], value: "5", source: "HPCC §5.1" },
            ParamDefault {
                profiles: &[BOLT],
                value: "0",
                source: "Bolt ns-3: multiplicative every RTT",
            },
        ],
    },
    ParamInfo {
        name: "additive_rate",
        kind: ParamKind::Rate,
        doc: "additive increase W_AI as a rate: W_AI is what it sends in base_rtt",
        defaults: &[
            ParamDefault {
                profiles: &[PAPER],
                value: "50Mbps",
                source: "deviation: HPCC §5.1 gives W_AI = 80 bytes at T = 13 us, which is this rate",
            },
            ParamDefault { profiles: &[BOLT], value: "50Mbps", source: "Bolt ns-3" },
        ],
    },
    ParamInfo {
        name: "min_rate",
        kind: ParamKind::Rate,
        doc: "the window is never below what this rate sends in base_rtt",
        defaults: &[both("100Mbps", "deviation: HPCC gives none; 100 Mb/s in its simulator")],
    },
    rtt::rto_gain(&[both("0.25", "deviation: HPCC relies on PFC; as Swift's")]),
    rtt::rto_multiplier(&[both("2", "deviation: HPCC relies on PFC; as Swift's")]),
    rtt::min_rto(&[both("1ms", "deviation: HPCC relies on PFC; as Swift's")]),
    rtt::initial_rto(&[both("1ms", "deviation: HPCC relies on PFC; as Swift's")]),
];

/// The parameters of HPCC.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// T (HPCC Alg. 1).
    pub base_rtt: Span,
    /// Target utilisation.
    pub eta: f64,
    /// RTTs of additive increase before a multiplicative one.
    pub max_stage: u32,
    /// W_AI over T.
    pub additive_rate: Rate,
    /// The smallest window over T.
    pub min_rate: Rate,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks them.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let params = Self {
            base_rtt: settings.time("base_rtt"),
            eta: settings.number("eta"),
            max_stage: settings.count("max_stage"),
            additive_rate: settings.rate("additive_rate"),
            min_rate: settings.rate("min_rate"),
            rto: RtoRule::from_settings(settings),
        };
        require(!params.base_rtt.is_zero(), "base_rtt", "longer than 0", params.base_rtt)?;
        let eta = params.eta > 0.0 && params.eta <= 1.0;
        require(eta, "eta", "above 0 and at most 1", params.eta)?;
        let moves = params.min_rate.as_bps() > 0;
        require(moves, "min_rate", "above 0", params.min_rate)?;
        params.rto.validate()?;
        Ok(params)
    }
}
