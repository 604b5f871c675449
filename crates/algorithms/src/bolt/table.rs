//! The table of Bolt's parameters: every default with its source.
//!
//! `Bolt ns-3` is the authors' simulator, serhatarslan-hub/bolt_cc_ns3.

use alloc::format;
use alloc::string::String;

use apus_units::Span;

use crate::bounds;
use crate::swift::{BASE_TARGET_RULE, BASE_TARGET_SOURCE, base_target};
use apus_cc::settings::{ParamDefault, ParamInfo, ParamKind, row};
use apus_cc::{Derivation, NetworkInfo, Range, Settings, Tunable, TunedSetting, rtt};

/// The paper's rules.
pub(super) const PAPER: &str = "paper";
/// The authors' simulator.
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
    bounds::initial_cwnd(&[both(
        "64",
        "deviation: Bolt §5.1.1 starts at one BDP: 8 us at 100 Gb/s in 1.5 kB packets",
    )]),
    row(
        "min_cwnd",
        NUMBER,
        "smallest window in packets; below 1 only with `below_one = \"halve\"`",
        &[
            paper("1", "deviation: Bolt Alg. 2 l. 6 subtracts 1 and says nothing of 0"),
            code("0.01", "Bolt ns-3: 15 bytes"),
        ],
    ),
    bounds::max_cwnd(&[both(
        "4096",
        "deviation: Bolt has no ceiling; far above any BDP, for a stray peer",
    )]),
    row(
        "below_one",
        ParamKind::Choice(&["hold", "halve"]),
        "effect of an SRC on a window of at most one packet: none, or halve it and pace",
        &[paper("hold", "deviation: Bolt does not say"), code("halve", "Bolt ns-3")],
    ),
    row(
        "pacing",
        ParamKind::Choice(&["below-one", "rest", "always"]),
        "packets that leave RTT/cwnd after the previous one: with windows below one packet; also packets that fit only partly into the window; or all packets after the first RTT",
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
        "whether the window grows only while it limits the flow",
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
        "which packets request a larger window: all, or those neither FIRST nor LAST",
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
        "supply of a class in supply matching if several classes share a port: its share of the link by weight among classes with packets (Alg. 4), or the whole link (Alg. 3)",
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
        &[both("0.5", "Bolt §3.1: as in Swift, which gives the value")],
    ),
    row(
        "fallback",
        ParamKind::Choice(&["none", "swift"]),
        "whether Swift runs in parallel and the smaller window applies",
        &[both("none", "Bolt §6: for fabrics in which some switches do not support Bolt")],
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

/// The fallback's target per switch, which cannot be set (Swift's `paper` profile).
const FALLBACK_HOP_SCALE: Span = Span::from_us(1);

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "initial_cwnd",
        profiles: &[PAPER, CODE],
        rule: "1 BDP, within min_cwnd and max_cwnd",
        source: "Bolt ns-3: the first window is one BDP; Bolt §5.1.1 has flows start at line rate",
        value: initial_cwnd,
    },
    Derivation {
        parameter: "fallback_base_target",
        profiles: &[PAPER, CODE],
        rule: BASE_TARGET_RULE,
        source: BASE_TARGET_SOURCE,
        value: |network, _| base_target(network, network.fabric_rtt, FALLBACK_HOP_SCALE),
    },
];

fn initial_cwnd(network: &NetworkInfo, settings: &Settings) -> String {
    let (least, most) = (settings.number("min_cwnd").max(1.0), settings.number("max_cwnd"));
    format!("{}", network.bdp_packets().max(least).min(most))
}

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("cc_threshold"),
    profiles: &[PAPER, CODE],
    range: "1 packet to half a BDP, at least 4 packets",
    source: "Bolt §3.1: CC_THRESH is one packet; §6: a higher one tolerates bursts of hosts (deviation: no \
             range is given)",
    bounds: |network| Range::Packets(1.0, (0.5 * network.bdp_packets()).max(4.0)),
}];
