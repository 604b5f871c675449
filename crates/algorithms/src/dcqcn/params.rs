//! The parameters of DCQCN, each with its source.

use alloc::format;
use alloc::string::String;

use apus_units::{Bytes, Rate, Span};

use super::switch::Ramp;
use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    ANY, FRACTION, POSITIVE, ParamInfo, SettingError, Settings, count, number, rate, require, size,
    time,
};
use apus_cc::{Derivation, NetworkInfo, Range, Tunable, TunedSetting};

/// DCQCN as in its paper.
pub(super) const PAPER: &str = "paper";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("g", FRACTION, "weight of a notification in alpha, the estimate of congestion")
        .default("0.00390625", "DCQCN §5, Fig. 14: 1/256"),
    time("alpha_timer", POSITIVE, "alpha falls once in each period of this length without a notification")
        .default("55us", "DCQCN §3.1: K = 55 us, above the interval of notifications"),
    time("timer", POSITIVE, "T: period of the timer; the rate rises once per period")
        .default("55us", "DCQCN §5, Fig. 14"),
    size("byte_counter", POSITIVE, "B: period of the byte counter, in wire bytes sent; the rate rises once per \
        period")
        .default("10MB", "DCQCN §5, Fig. 14"),
    count("f", ANY, "F: number of increases by fast recovery. If the timer or the byte counter has caused more \
        than F increases, the next one is additive; if both have, it is a hyper increase")
        .default("5", "DCQCN §3.1"),
    rate("r_ai", POSITIVE, "additive increase of the target rate")
        .default("40Mbps", "DCQCN §4"),
    rate("r_hai", ANY, "hyper increase of the target rate")
        .default("400Mbps", "unverified: DCQCN §3.1 names it; this value is ten times r_ai"),
    rate("min_rate", POSITIVE, "smallest rate")
        .default("10Mbps", "deviation: DCQCN gives no value, but a rate limiter has one"),
    time("cnp_interval", ANY, "N: minimum time between two notifications of a receiver to the sender of a flow")
        .default("50us", "DCQCN §3.1: N = 50 us"),
    size("k_min", ANY, "queue of a switch port above which packets are marked, with a rising probability")
        .default("5kB", "DCQCN §5, Fig. 14, for 40 Gb/s"),
    size("k_max", ANY, "queue of a switch port above which every packet is marked")
        .default("200kB", "DCQCN §5, Fig. 14, for 40 Gb/s"),
    number("p_max", FRACTION, "probability of a mark if the queue is k_max")
        .default("0.01", "DCQCN §5, Fig. 14"),
    rtt::RTO_GAIN.default("0.25", "deviation: DCQCN relies on PFC; Swift's value"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: DCQCN relies on PFC; Swift's value"),
    rtt::MIN_RTO.default("1ms", "deviation: DCQCN relies on PFC; Swift's value"),
    rtt::INITIAL_RTO.default("1ms", "deviation: DCQCN relies on PFC; Swift's value"),
    rtt::MAX_RTO,
];

/// The rate for which DCQCN §5 gives its thresholds.
const PAPER_RATE: f64 = 40e9;
/// Why thresholds grow with the rate.
const SCALING: &str = "deviation: DCQCN §5, Fig. 14 (unverified) gives the value for 40 Gb/s but no rule; HPCC \
     §5.1 (unverified) scales both thresholds with the rate of the link";

fn scaled(network: &NetworkInfo, bytes: f64) -> Bytes {
    Bytes::new((bytes * network.line_rate.as_bps() as f64 / PAPER_RATE + 0.5) as u64)
}

fn k_min(network: &NetworkInfo, settings: &Settings) -> String {
    let k_min = scaled(network, 5_000.0);
    let set = settings.is_set("k_max");
    format!("{}", if set { k_min.min(settings.size("k_max")) } else { k_min })
}

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "k_min",
        profiles: &[PAPER],
        rule: "5kB * line rate / 40Gbps, at most k_max",
        source: SCALING,
        value: k_min,
    },
    Derivation {
        parameter: "k_max",
        profiles: &[PAPER],
        rule: "200kB * line rate / 40Gbps, at least k_min",
        source: SCALING,
        value: |network, settings| {
            format!("{}", scaled(network, 200_000.0).max(settings.size("k_min")))
        },
    },
];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("k_max"),
    profiles: &[PAPER],
    range: "40kB to 400kB, both times line rate / 40Gbps",
    source: "unverified: DCQCN §5: K_max of 40 and 200 KB at 40 Gb/s (deviation: the range ends at twice the \
        larger one)",
    bounds: |network| Range::Size(scaled(network, 40_000.0), scaled(network, 400_000.0)),
}];

/// The parameters of DCQCN.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Weight of a notification in alpha, in (0, 1].
    pub g: f64,
    /// `K`.
    pub alpha_timer: Span,
    /// `T`.
    pub timer: Span,
    /// `B`, wire bytes.
    pub byte_counter: Bytes,
    /// `F`.
    pub f: u32,
    /// `R_AI`.
    pub r_ai: Rate,
    /// `R_HAI`.
    pub r_hai: Rate,
    /// Smallest rate.
    pub min_rate: Rate,
    /// `N`.
    pub cnp_interval: Span,
    /// `K_min`, `K_max`, `P_max`.
    pub ramp: Ramp,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let ramp = Ramp {
            k_min: settings.size("k_min"),
            k_max: settings.size("k_max"),
            p_max: settings.number("p_max"),
        };
        require(ramp.k_max >= ramp.k_min, "k_max", "at least k_min", ramp.k_max)?;
        let (r_ai, r_hai) = (settings.rate("r_ai"), settings.rate("r_hai"));
        require(r_hai >= r_ai, "r_hai", "at least r_ai", r_hai)?;
        Ok(Self {
            g: settings.number("g"),
            alpha_timer: settings.time("alpha_timer"),
            timer: settings.time("timer"),
            byte_counter: settings.size("byte_counter"),
            f: settings.count("f"),
            r_ai,
            r_hai,
            min_rate: settings.rate("min_rate"),
            cnp_interval: settings.time("cnp_interval"),
            ramp,
            rto: RtoRule::from_settings(settings),
        })
    }
}
