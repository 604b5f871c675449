//! The parameters of the study, each with its source.

use alloc::format;
use alloc::sync::Arc;

use apus_units::Span;

use crate::swift::{Config, Params as SwiftParams};
use apus_cc::Derivation;
use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    ANY, AT_LEAST_1, POSITIVE, ParamInfo, SettingError, Settings, choice, number, time,
};

/// The only profile.
pub(super) const STUDY: &str = "study";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    time("base_rtt", POSITIVE, "RTT without queues; together with the time that the reported queue takes, it \
        is the RTT that the packet will observe")
        .default("8us", "Bolt §2.1.1, footnote 1: the dumbbell"),
    time("delay", ANY, "delay of the reaction, counted from `point`")
        .default("0us", "Bolt Fig. 2: varied"),
    choice("point", &["arrival", "departure"], "whether the delay counts from the arrival of the packet at the \
        queue (`arrival`), or from the time at which the link has sent the queue in front of it (`departure`)")
        .default("arrival", "Bolt Fig. 2: Ing and Egr"),
    choice("reaction", &["swift", "ideal"], "Swift's Algorithm 1 (`swift`), or division of the window by the \
        load, once per RTT (`ideal`)")
        .default("swift", "Bolt §2.1.1: Swift; ideal: Bolt §5.1.1, Fig. 10"),
    number("initial_cwnd", AT_LEAST_1, "initial window in packets")
        .default("66", "deviation: one BDP, as in Bolt ns-3: 8 us at 100 Gb/s in 1.5 kB packets"),
    time("base_target", ANY, "Swift's base target")
        .default("6us", "deviation: Bolt ns-3 has 2us, and the sign of beta in its flow scaling is reversed; \
            6us with the correct sign has the same standing queue"),
    time("fs_range", ANY, "largest amount that Swift's flow scaling adds to the target")
        .default("100us", "Bolt ns-3"),
    number("fs_min_cwnd", ANY, "window at or below which flow scaling adds all of its range")
        .default("0.1", "Bolt ns-3"),
    number("fs_max_cwnd", ANY, "window at or above which flow scaling adds nothing")
        .default("256", "Bolt ns-3"),
    rtt::RTO_GAIN.default("0.25", "deviation: Bolt gives no value for its study; Swift's value"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: Bolt gives no value for its study; Swift's value"),
    rtt::MIN_RTO.default("1ms", "deviation: Bolt gives no value for its study; Swift's value"),
    rtt::INITIAL_RTO.default("1ms", "deviation: Bolt gives no value for its study; Swift's value"),
    rtt::MAX_RTO,
];

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "base_rtt",
        profiles: &[STUDY],
        rule: "the unloaded RTT of the longest path",
        source: "deviation: Bolt §2.1.1, footnote 1 gives the RTT of its network but no rule",
        value: |network, _| format!("{}", network.base_rtt),
    },
    Derivation {
        parameter: "initial_cwnd",
        profiles: &[STUDY],
        rule: "1 BDP",
        source: "Bolt ns-3: the initial window is one BDP; in Bolt §5.1.1, flows start at line rate",
        value: |network, _| format!("{}", network.bdp_packets().max(1.0)),
    },
];

/// The moment from which the delay counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The packet's arrival at the queue.
    Arrival,
    /// The packet's departure from the queue, after the time that the link takes for the queue.
    Departure,
}

/// Reaction to a report.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// Swift's Algorithm 1, with the expected RTT as its delay.
    Swift(Arc<SwiftParams>),
    /// Division of the window by the load, once per RTT.
    Ideal,
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// RTT without queues.
    pub base_rtt: Span,
    /// Delay until the reaction.
    pub delay: Span,
    /// The moment from which the delay counts.
    pub point: Point,
    /// Reaction to each report.
    pub reaction: Reaction,
    /// First window in packets.
    pub initial_cwnd: f64,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible or has no effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let reaction = if settings.choice("reaction") == "ideal" {
            const NAMES: [&str; 4] = ["base_target", "fs_range", "fs_min_cwnd", "fs_max_cwnd"];
            settings.without_effect(&NAMES, "while `reaction` is ideal")?;
            Reaction::Ideal
        } else {
            let mut config = Config::paper();
            config.initial_cwnd = settings.number("initial_cwnd");
            // In networks with a larger BDP, the flow starts with this window too.
            config.max_cwnd = config.max_cwnd.max(config.initial_cwnd);
            config.target.base_target = settings.time("base_target");
            config.target.fs_range = settings.time("fs_range");
            config.target.fs_min_cwnd = settings.number("fs_min_cwnd");
            config.target.fs_max_cwnd = settings.number("fs_max_cwnd");
            config.rto = RtoRule::from_settings(settings);
            Reaction::Swift(Arc::new(SwiftParams::new(config)?))
        };
        Ok(Self {
            base_rtt: settings.time("base_rtt"),
            delay: settings.time("delay"),
            point: match settings.choice("point") {
                "departure" => Point::Departure,
                _ => Point::Arrival,
            },
            reaction,
            initial_cwnd: settings.number("initial_cwnd"),
            rto: RtoRule::from_settings(settings),
        })
    }
}
