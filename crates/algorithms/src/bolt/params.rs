//! The parameters of Bolt, and decisions on details that the paper leaves open. `table.rs` has the
//! defaults.
//!
//! `Bolt ns-3` is the authors' simulator, serhatarslan-hub/bolt_cc_ns3.
//!
//! Decisions:
//! * The queue that a switch reports and compares with the threshold consists of the queued bytes
//!   of the packet's class at the egress port, without the arriving packet and the one in service,
//!   as in Bolt ns-3: with the packet in service counted, a busy link without any queue would be
//!   congested.
//! * `flow.rate` (Alg. 2 l. 3) is window over the latest RTT, at most the rate of the host's link;
//!   before a sample, the rate of the link. As in Bolt ns-3.
//! * The window grows only while it limits the flow (RFC 9002 §7.8). Otherwise a lone flow's window would grow
//!   without limit behind a host link as fast as the bottleneck.
//! * Without supply matching, a sender's own NIC clears no INC, as in Bolt ns-3. That NIC collects no tokens
//!   unless the sender is its own bottleneck, so no INC would reach the ports that have PRU tokens. The paper
//!   defines this for switches only (Alg. 1).
//! * Losses and timeouts are handled as in Swift (§3.1), see `host.rs`.

use alloc::sync::Arc;

use apus_units::Span;

use crate::bounds;
use crate::swift::{Config, Params as SwiftParams, Swift};
use apus_cc::Algorithm;
use apus_cc::rtt::RtoRule;
use apus_cc::settings::{SettingError, Settings, require};

/// Effect of an SRC on a window of one packet or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowOne {
    /// Nothing.
    Hold,
    /// Every SRC halves the window, whose packets are paced; a larger window loses a whole packet (Bolt ns-3).
    Halve,
}

/// Which packets leave RTT/cwnd after the previous packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paced {
    /// Packets of windows below one packet (Swift §3.4).
    BelowOne,
    /// Packets for which the window has only partial room (Bolt ns-3).
    Rest,
    /// All packets, after the first RTT.
    Always,
}

/// Which packets carry FIRST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRule {
    /// Packets sent before the flow has sent a window of bytes (§4.2).
    Bytes,
    /// Packets sent before the first acknowledgement (Bolt ns-3).
    Unacknowledged,
}

/// Which packets carry LAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastRule {
    /// Packets after which less than a window remains to be sent (§4.2).
    After,
    /// Packets with which at most a window remains to be sent (Bolt ns-3): one packet later.
    With,
}

/// Which packets carry INC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncRule {
    /// All packets (§3.2).
    Every,
    /// Packets without FIRST that have more than a window of data behind them (Bolt ns-3).
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
    /// Effect of an SRC on a window of one packet or less.
    pub below_one: BelowOne,
    /// The rate of a flow is at most that of its host's link (Alg. 2 l. 3).
    pub rate_of_line: bool,
    /// Which packets leave RTT/cwnd after the previous packet.
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
    /// Full packets to subtract from the bytes queued in a port when measuring the queue.
    pub uncounted_packets: f64,
    /// PRU tokens are handed out (§3.2).
    pub pru: bool,
    /// SM tokens are handed out (§3.3).
    pub sm: bool,
    /// Packets of any kind count as demand, not data alone.
    pub sm_counts_all: bool,
    /// The supply of a class is its share by weight (Alg. 4), not all of the link (Alg. 3).
    pub sm_weighted: bool,
    /// Maximum number of PRU tokens of a port; 0 for any number.
    pub pru_cap: u32,
    /// The flow is of high priority (App. B.2).
    pub favoured: bool,
    /// Probability of sending an SRC that is due to a favoured flow (App. B.2).
    pub src_probability: f64,
    /// Fraction of the window that a loss removes.
    pub max_mdf: f64,
    /// Swift in parallel (§6).
    pub fallback: Option<Arc<SwiftParams>>,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
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
            rate_of_line: settings.choice("rate") == "line",
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
        let least = match params.below_one {
            BelowOne::Hold => 1.0,
            BelowOne::Halve => 0.001,
        };
        let must = "at least 1 packet, or with `below_one = \"halve\"` at least 0.001";
        require(params.min_cwnd >= least, "min_cwnd", must, params.min_cwnd)?;
        bounds::check(params.initial_cwnd, params.min_cwnd, params.max_cwnd)?;
        Ok(params)
    }
}

/// Parameters of the Swift that runs in parallel: the `paper` profile with Bolt's first window and loss
/// reaction.
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
pub(super) fn fallback_flow(params: &Params, info: &apus_cc::FlowInfo) -> Option<Swift> {
    params.fallback.as_ref().map(|params| Swift::new(Arc::clone(params), info))
}

/// Nanoseconds of a clock modulo 2^32, as `t_data_tx` carries them.
pub(crate) fn stamp(now: apus_units::Time) -> u32 {
    (now.since(apus_units::Time::ZERO).as_ps() / Span::from_ns(1).as_ps()) as u32
}
