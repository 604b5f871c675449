//! The parameters of Bolt: every default with its source, and what the paper leaves open.
//!
//! `Bolt ns-3` is the authors' simulator, serhatarslan-hub/bolt_cc_ns3.
//!
//! Decided here once:
//! * The queue that a switch reports and compares with the threshold is what waits in the packet's
//!   class at the egress port, without the arriving packet and the one in service, as in Bolt ns-3:
//!   with the packet in service counted, a busy link without any queue would be congested.
//! * `flow.rate` (Alg. 2 l. 3) is window over the latest RTT, at most the rate of the host's link;
//!   before a sample the rate of the link. As in Bolt ns-3.
//! * The window grows only while it is what limits the flow (as RFC 9002 §7.8 has it): behind a
//!   host link as fast as the bottleneck, a lone flow's window would otherwise grow for ever.
//! * Losses and timeouts are handled as in Swift (§3.1), see `host.rs`.

use alloc::sync::Arc;

use apus_units::Span;

use crate::registry::Registered;
use crate::rtt::{self, RtoRule};
use crate::settings::{ParamDefault, ParamInfo, ParamKind, SettingError, Settings, require, row};
use crate::swift::{Config, Params as SwiftParams, Swift};

/// As the paper has it.
pub(super) const PAPER: &str = "paper";
/// As the authors' simulator has it.
pub(super) const CODE: &str = "code";

const fn both(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[PAPER, CODE], value, source }
}

const fn paper(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[PAPER], value, source }
}

const fn code(value: &'static str, source: &'static str) -> ParamDefault {
    ParamDefault { profiles: &[CODE], value, source }
}

const NUMBER: ParamKind = ParamKind::Number;
const FLAG: ParamKind = ParamKind::Flag;
const TIME: ParamKind = ParamKind::Time;

/// Every parameter.
pub(super) const TABLE: &[ParamInfo] = &[
    row(
        "initial_cwnd",
        NUMBER,
        "first window in packets",
        &[both(
            "64",
            "deviation: Bolt §5.1.1 starts at one BDP: 8 us at 100 Gb/s in 1.5 kB packets",
        )],
    ),
    row(
        "min_cwnd",
        NUMBER,
        "smallest window in packets; below 1 only with `below_one = \"halve\"`",
        &[
            paper("1", "deviation: Bolt Alg. 2 l. 6 subtracts 1 and says nothing of 0"),
            code("0.01", "Bolt ns-3: 15 bytes"),
        ],
    ),
    row(
        "max_cwnd",
        NUMBER,
        "largest window in packets",
        &[both("4096", "deviation: Bolt has no ceiling; far above any BDP, for a stray peer")],
    ),
    row(
        "below_one",
        ParamKind::Choice(&["hold", "halve"]),
        "what an SRC does to a window of one packet or less: nothing, or halve it and pace",
        &[paper("hold", "deviation: Bolt does not say"), code("halve", "Bolt ns-3")],
    ),
    row(
        "pacing",
        ParamKind::Choice(&["below-one", "rest", "always"]),
        "which packets leave RTT/cwnd behind the one before: those of windows below one packet, besides \
         those for which the window has a part of the room, or after the first RTT all",
        &[
            paper("below-one", "deviation: Bolt does not say; Swift §3.4"),
            code("rest", "Bolt ns-3"),
        ],
    ),
    row(
        "ai",
        NUMBER,
        "packets added to the window once per RTT",
        &[both("1", "Bolt Alg. 2 l. 13")],
    ),
    row(
        "validate_window",
        FLAG,
        "whether the window grows only while it is what limits the flow",
        &[
            paper("true", "deviation: Bolt does not say; RFC 9002 §7.8"),
            code("false", "Bolt ns-3, whose runs cap the window at a BDP instead"),
        ],
    ),
    row(
        "first",
        ParamKind::Choice(&["bytes", "unacknowledged"]),
        "which packets carry FIRST: bytes sent below the window, or all until the first ACK",
        &[paper("bytes", "Bolt §4.2"), code("unacknowledged", "Bolt ns-3")],
    ),
    row(
        "last",
        ParamKind::Choice(&["after", "with"]),
        "which packets carry LAST: those after which less than a window is left to send, or those with \
         which at most a window is",
        &[
            paper("after", "Bolt §4.2: the counter, this packet taken off, is below the window"),
            code("with", "Bolt ns-3"),
        ],
    ),
    row(
        "inc",
        ParamKind::Choice(&["every", "continuing"]),
        "which packets ask for a larger window: all, or those neither FIRST nor LAST",
        &[paper("every", "Bolt §3.2"), code("continuing", "Bolt ns-3")],
    ),
    row(
        "idle_reset",
        FLAG,
        "whether data after an idle RTT counts as a first window again",
        &[both("true", "Bolt §4.2: resets the bytes-sent counter after an idle period")],
    ),
    row(
        "cc_threshold",
        NUMBER,
        "queue from which on a port is congested, in packets of full size",
        &[
            paper("1", "Bolt §3.1: a single MTU"),
            code("2", "Bolt ns-3: 3 KB of 1500 B and 10 KB of 5000 B"),
        ],
    ),
    row(
        "uncounted_packets",
        NUMBER,
        "packets of full size that wait in a port and are not part of the queue that counts",
        &[
            paper("0", "Bolt Alg. 1 l. 4: the queue's occupancy"),
            code("1", "Bolt ns-3: a device holds one behind the queue"),
        ],
    ),
    row("pru", FLAG, "whether switches hand out PRU tokens", &[both("true", "Bolt §3.2")]),
    row("sm", FLAG, "whether switches hand out SM tokens", &[both("true", "Bolt §3.3")]),
    row(
        "sm_counts",
        ParamKind::Choice(&["data", "all"]),
        "which packets count as demand for supply matching",
        &[paper("data", "Bolt Alg. 1 l. 2-3"), code("all", "Bolt ns-3")],
    ),
    row(
        "sm_supply",
        ParamKind::Choice(&["weighted", "link"]),
        "what supply matching counts as a class's supply where several classes share a port: its share of \
         the link by weight among those with packets (Alg. 4), or all of the link (Alg. 3)",
        &[both("weighted", "Bolt App. B.1, Alg. 4; with one class the two are the same")],
    ),
    row(
        "pru_cap",
        ParamKind::Count,
        "most PRU tokens that a port holds; 0 for any number",
        &[paper("0", "Bolt Alg. 1 l. 12 has no cap"), code("256", "Bolt ns-3")],
    ),
    row(
        "favoured",
        FLAG,
        "whether the flow is of high priority, for which switches send SRCs with `src_probability`",
        &[both("false", "Bolt App. B.2; Listing 1's reserved bit says so")],
    ),
    row(
        "src_probability",
        NUMBER,
        "probability that a congested switch sends the SRC that is due to a favoured flow",
        &[both("1", "Bolt Alg. 1; below 1 in App. B.2, which gives no value")],
    ),
    row(
        "max_mdf",
        NUMBER,
        "fraction of the window that a loss takes away, once per RTT",
        &[both("0.5", "Bolt §3.1: as in Swift, whose value this is")],
    ),
    row(
        "fallback",
        ParamKind::Choice(&["none", "swift"]),
        "whether Swift runs beside, and the smaller window wins",
        &[both("none", "Bolt §6: for fabrics where some switches do not speak Bolt")],
    ),
    row(
        "fallback_base_target",
        TIME,
        "Swift's base target in the fallback",
        &[both("25us", "Swift §5.2")],
    ),
    row(
        "fallback_fs_range",
        TIME,
        "Swift's range of flow scaling in the fallback",
        &[both("100us", "deviation: as Swift's `paper` profile")],
    ),
    row(
        "fallback_fs_min_cwnd",
        NUMBER,
        "window at which the fallback's flow scaling adds all of its range",
        &[both("0.01", "deviation: as Swift's `paper` profile")],
    ),
    row(
        "fallback_fs_max_cwnd",
        NUMBER,
        "window from which on the fallback's flow scaling adds nothing",
        &[both("100", "deviation: as Swift's `paper` profile")],
    ),
    rtt::rto_gain(&[both("0.25", "Bolt §3.1: as in Swift")]),
    rtt::rto_multiplier(&[both("2", "Bolt §3.1: as in Swift")]),
    rtt::min_rto(&[both("1ms", "Bolt §3.1: as in Swift")]),
    rtt::initial_rto(&[both("1ms", "Bolt §3.1: as in Swift")]),
];

/// What an SRC does to a window of one packet or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowOne {
    /// Nothing.
    Hold,
    /// It halves the window, whose packets are paced (Bolt ns-3).
    Halve,
}

/// Which packets leave RTT/cwnd behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paced {
    /// Those of windows below one packet (Swift §3.4).
    BelowOne,
    /// Those for which the window has room for a part (Bolt ns-3).
    Rest,
    /// All, after the first RTT.
    Always,
}

/// Which packets carry FIRST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRule {
    /// Those sent before a window of bytes had been (§4.2).
    Bytes,
    /// Those sent before the first acknowledgement (Bolt ns-3).
    Unacknowledged,
}

/// Which packets carry LAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastRule {
    /// Those after which less than a window is left to send (§4.2).
    After,
    /// Those with which at most a window is left to send (Bolt ns-3): one packet later.
    With,
}

/// Which packets carry INC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncRule {
    /// All (§3.2).
    Every,
    /// Those that are not FIRST and have more than a window of data behind them (Bolt ns-3).
    Continuing,
}

/// The parameters of Bolt.
#[derive(Clone, Debug)]
pub struct Params {
    /// First window in packets.
    pub initial_cwnd: f64,
    /// Smallest window in packets.
    pub min_cwnd: f64,
    /// Largest window in packets.
    pub max_cwnd: f64,
    /// What an SRC does to a window of one packet or less.
    pub below_one: BelowOne,
    /// Which packets leave RTT/cwnd behind the one before.
    pub paced: Paced,
    /// Packets added once per RTT (Alg. 2 l. 13).
    pub ai: f64,
    /// The window grows only while it limits the flow.
    pub validate_window: bool,
    /// Which packets carry FIRST.
    pub first: FirstRule,
    /// Which packets carry LAST.
    pub last: LastRule,
    /// Which packets carry INC.
    pub inc: IncRule,
    /// Data after an idle RTT is a first window again (§4.2).
    pub idle_reset: bool,
    /// `CC_THRESH` in full packets (Alg. 1 l. 4).
    pub cc_threshold: f64,
    /// Of what waits in a port, full packets that are no part of the queue.
    pub uncounted_packets: f64,
    /// PRU tokens are handed out (§3.2).
    pub pru: bool,
    /// SM tokens are handed out (§3.3).
    pub sm: bool,
    /// Packets of any kind count as demand, not data alone.
    pub sm_counts_all: bool,
    /// The supply of a class is its share by weight (Alg. 4), not all of the link (Alg. 3).
    pub sm_weighted: bool,
    /// Most PRU tokens of a port; 0 for any number.
    pub pru_cap: u32,
    /// The flow is of high priority (App. B.2).
    pub favoured: bool,
    /// Probability of an SRC that is due to a favoured flow (App. B.2).
    pub src_probability: f64,
    /// Fraction of the window that a loss takes away.
    pub max_mdf: f64,
    /// Swift beside (§6).
    pub fallback: Option<Arc<SwiftParams>>,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks them.
    ///
    /// # Errors
    /// If a value is impossible or has no effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let halve = settings.choice("below_one") == "halve";
        let params = Self {
            initial_cwnd: settings.number("initial_cwnd"),
            min_cwnd: settings.number("min_cwnd"),
            max_cwnd: settings.number("max_cwnd"),
            below_one: if halve { BelowOne::Halve } else { BelowOne::Hold },
            paced: match settings.choice("pacing") {
                "always" => Paced::Always,
                "rest" => Paced::Rest,
                _ => Paced::BelowOne,
            },
            ai: settings.number("ai"),
            validate_window: settings.flag("validate_window"),
            first: match settings.choice("first") {
                "unacknowledged" => FirstRule::Unacknowledged,
                _ => FirstRule::Bytes,
            },
            last: match settings.choice("last") {
                "with" => LastRule::With,
                _ => LastRule::After,
            },
            inc: match settings.choice("inc") {
                "continuing" => IncRule::Continuing,
                _ => IncRule::Every,
            },
            idle_reset: settings.flag("idle_reset"),
            cc_threshold: settings.number("cc_threshold"),
            uncounted_packets: settings.number("uncounted_packets"),
            pru: settings.flag("pru"),
            sm: settings.flag("sm"),
            sm_counts_all: settings.choice("sm_counts") == "all",
            sm_weighted: settings.choice("sm_supply") == "weighted",
            pru_cap: settings.count("pru_cap"),
            favoured: settings.flag("favoured"),
            src_probability: settings.number("src_probability"),
            max_mdf: settings.number("max_mdf"),
            fallback: fallback(settings)?,
            rto: RtoRule::from_settings(settings),
        };
        if !params.pru {
            settings.without_effect(&["pru_cap"], "while `pru` is false")?;
        }
        if !params.sm {
            settings.without_effect(&["sm_counts", "sm_supply"], "while `sm` is false")?;
        }
        if params.favoured && params.src_probability >= 1.0 {
            settings.without_effect(&["favoured"], "while `src_probability` is 1")?;
        }
        params.validate()?;
        Ok(params)
    }

    fn validate(&self) -> Result<(), SettingError> {
        let least = match self.below_one {
            BelowOne::Hold => 1.0,
            BelowOne::Halve => 0.001,
        };
        let must = "at least 1 packet, or with `below_one = \"halve\"` at least 0.001";
        require(self.min_cwnd >= least, "min_cwnd", must, self.min_cwnd)?;
        let ordered = self.max_cwnd >= self.min_cwnd;
        require(ordered, "max_cwnd", "at least min_cwnd", self.max_cwnd)?;
        let inside = (self.min_cwnd..=self.max_cwnd).contains(&self.initial_cwnd);
        require(inside, "initial_cwnd", "between min_cwnd and max_cwnd", self.initial_cwnd)?;
        require(self.ai >= 0.0, "ai", "0 or more", self.ai)?;
        require(self.cc_threshold >= 0.0, "cc_threshold", "0 or more", self.cc_threshold)?;
        let uncounted = self.uncounted_packets;
        require(uncounted >= 0.0, "uncounted_packets", "0 or more", uncounted)?;
        let chance = self.src_probability;
        require((0.0..=1.0).contains(&chance), "src_probability", "between 0 and 1", chance)?;
        let cut = self.max_mdf > 0.0 && self.max_mdf <= 1.0;
        require(cut, "max_mdf", "above 0 and at most 1", self.max_mdf)?;
        self.rto.validate()
    }
}

/// The Swift that runs beside: the `paper` profile with the first window and the losses of Bolt.
fn fallback(settings: &mut Settings) -> Result<Option<Arc<SwiftParams>>, SettingError> {
    if settings.choice("fallback") == "none" {
        const NAMES: [&str; 4] = [
            "fallback_base_target",
            "fallback_fs_range",
            "fallback_fs_min_cwnd",
            "fallback_fs_max_cwnd",
        ];
        settings.without_effect(&NAMES, "while `fallback` is none")?;
        return Ok(None);
    }
    let mut config = Config::paper();
    config.initial_cwnd = settings.number("initial_cwnd");
    config.max_cwnd = settings.number("max_cwnd");
    config.target.base_target = settings.time("fallback_base_target");
    config.target.fs_range = settings.time("fallback_fs_range");
    config.target.fs_min_cwnd = settings.number("fallback_fs_min_cwnd");
    config.target.fs_max_cwnd = settings.number("fallback_fs_max_cwnd");
    config.rto = RtoRule::from_settings(settings);
    SwiftParams::new(config).map(|params| Some(Arc::new(params)))
}

/// A flow of Swift as the fallback runs it.
pub(super) fn fallback_flow(params: &Params, info: &crate::FlowInfo) -> Option<Swift> {
    params.fallback.as_ref().map(|params| Swift::new(Arc::clone(params), info))
}

/// Nanoseconds of a clock modulo 2^32, as `t_data_tx` carries them.
pub(crate) fn stamp(now: apus_units::Time) -> u32 {
    (now.since(apus_units::Time::ZERO).as_ps() / Span::from_ns(1).as_ps()) as u32
}
