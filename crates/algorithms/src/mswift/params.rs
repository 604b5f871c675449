//! The parameters of MSwift, each with its source.

use alloc::sync::Arc;

use crate::bounds;
use crate::swift::{BASE_TARGET_RULE, BASE_TARGET_SOURCE, Config, base_target};
use apus_cc::Derivation;
use apus_cc::derivation::whole;
use apus_cc::settings::{
    ANY, AT_LEAST_1, FRACTION, ParamInfo, SettingError, Settings, count, flag, number, time,
};

/// MSwift, with the median of the delays.
pub(super) const MSWIFT: &str = "mswift";
/// LSwift, MSwift's base, with the latest delay.
pub(super) const LSWIFT: &str = "lswift";
const ALL: &[&str] = &[MSWIFT, LSWIFT];

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    flag("median", "whether the delay is the median of the latest delays")
        .default_of(MSWIFT, "true", "unverified: MSwift (arXiv 2509.07907) §IV")
        .default_of(LSWIFT, "false", "unverified: MSwift (arXiv 2509.07907) §III: the latest delay"),
    number("history", FRACTION, "number of latest delays whose median is used, as a fraction of the window; at \
        least one delay and at most 128")
        .default_of(MSWIFT, "0.5", "unverified: MSwift (arXiv 2509.07907) §IV: H = max(cwnd/2, 1)"),
    count("late_packets", AT_LEAST_1, "number of consecutive late acknowledgements from which the window may \
        be cut")
        .default("5", "unverified: MSwift (arXiv 2509.07907) §III: LSwift waits for 5"),
    number("ai", ANY, "additive increase in packets per RTT")
        .default("1", "unverified: MSwift (arXiv 2509.07907) changes only the delay; Swift's value"),
    number("beta", ANY, "multiplicative decrease constant")
        .default("0.8", "unverified: MSwift (arXiv 2509.07907) changes only the delay; Swift's value"),
    number("max_mdf", ANY, "largest fraction by which one decrease reduces the window")
        .default("0.5", "unverified: MSwift (arXiv 2509.07907) changes only the delay; Swift's value"),
    time("base_target", ANY, "base target of the fabric delay, before hop scaling")
        .default("25us", "Swift §5.2"),
    time("hop_scale", ANY, "amount added to the target per switch on the forward path")
        .default("1us", "deviation: Swift §3.5 gives no value; 1us in Bolt ns-3"),
    bounds::INITIAL_CWND.default("16", "unverified: MSwift (arXiv 2509.07907): the initial window is a BDP; 64 \
        KiB if the network is unknown"),
    bounds::MAX_CWND.default("256", "unverified: MSwift (arXiv 2509.07907) changes only the delay; Swift's \
        value"),
];

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "base_target",
        profiles: ALL,
        rule: BASE_TARGET_RULE,
        source: BASE_TARGET_SOURCE,
        value: |network, settings| {
            base_target(network, network.fabric_rtt, settings.time("hop_scale"))
        },
    },
    bounds::max_cwnd_rule(ALL),
    Derivation {
        parameter: "initial_cwnd",
        profiles: ALL,
        rule: "the BDP in packets, at most max_cwnd",
        source: "unverified: MSwift (arXiv 2509.07907): the initial window is a BDP",
        value: |network, settings| {
            whole(network.bdp_packets().max(1.0).min(settings.number("max_cwnd")))
        },
    },
];

/// The parameters of MSwift.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The parameters of Swift, which gets the median of the delays (`history`).
    pub(super) swift: Arc<crate::swift::Params>,
    /// Part of the window whose delays give the median; `None` for the latest delay.
    pub(super) history: Option<f64>,
    pub(super) late_packets: u32,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible, or has no effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let mut config = Config::paper();
        config.ai = settings.number("ai");
        config.beta = settings.number("beta");
        config.max_mdf = settings.number("max_mdf");
        config.target.base_target = settings.time("base_target");
        config.target.hop_scale = settings.time("hop_scale");
        // deviation: flow scaling makes targets depend on the window; without it the target is [M]'s constant.
        config.target.fs_range = apus_units::Span::ZERO;
        config.initial_cwnd = settings.number("initial_cwnd");
        config.max_cwnd = settings.number("max_cwnd");
        let median = settings.flag("median");
        if !median && settings.profile() == MSWIFT {
            settings.without_effect(&["history"], "while `median` is false")?;
        }
        let history = median.then(|| settings.number("history"));
        let late_packets = settings.count("late_packets");
        let swift = Arc::new(crate::swift::Params::new(config)?);
        Ok(Self { swift, history, late_packets })
    }
}
