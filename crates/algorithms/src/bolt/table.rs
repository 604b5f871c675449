//! The table of Bolt's parameters: every default with its source.
//!
//! `Bolt ns-3` is the authors' simulator, serhatarslan-hub/bolt_cc_ns3.

use alloc::format;
use alloc::string::String;

use apus_units::Span;

use crate::bounds;
use crate::swift::{BASE_TARGET_RULE, BASE_TARGET_SOURCE, base_target};
use apus_cc::settings::{
    ANY, FRACTION, NOT_NEGATIVE, PROBABILITY, ParamInfo, choice, count, flag, number, time,
};
use apus_cc::{Derivation, NetworkInfo, Range, Settings, Tunable, TunedSetting, rtt};

/// The paper's rules.
pub(super) const PAPER: &str = "paper";
/// The authors' simulator.
pub(super) const CODE: &str = "code";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    bounds::INITIAL_CWND
        .default("64", "deviation: Bolt §5.1.1 starts at one BDP: 8 us at 100 Gb/s in 1.5 kB \
            packets"),
    number("min_cwnd", ANY, "smallest window in packets; below 1 only with `below_one = \"halve\"`")
        .default_of(PAPER, "1", "deviation: Bolt Alg. 2 l. 6 subtracts 1 and does not mention 0")
        .default_of(CODE, "0.01", "Bolt ns-3: 15 bytes"),
    bounds::MAX_CWND
        .default("4096", "deviation: Bolt has no upper limit; this value is far above any BDP and only guards \
            against a misbehaving peer"),
    choice("below_one", &["hold", "halve"], "effect of an SRC on a window of at most one packet. `hold`: none. \
        `halve`: every SRC halves the window, and packets are paced; a larger window then loses a whole \
        packet, so that a fraction of a packet may remain")
        .default_of(PAPER, "hold", "deviation: Bolt does not say")
        .default_of(CODE, "halve", "Bolt ns-3"),
    choice("rate", &["line", "window"], "rate of a flow in the reaction factor: the window over the latest \
        RTT, limited by the rate of the host's link (`line`) or without this limit (`window`)")
        .default_of(PAPER, "line", "deviation: Bolt Alg. 2 l. 3 does not define `flow.rate`")
        .default_of(CODE, "window", "Bolt ns-3"),
    choice("pacing", &["below-one", "rest", "always"], "which packets leave RTT/cwnd after the previous one. \
        `below-one`: packets of windows below one packet. `rest`: also packets that fit only partly into the \
        window. `always`: all packets after the first RTT")
        .default_of(PAPER, "below-one", "deviation: Bolt does not say; Swift §3.4")
        .default_of(CODE, "rest", "Bolt ns-3"),
    number("ai", NOT_NEGATIVE, "packets added to the window once per RTT")
        .default("1", "Bolt Alg. 2 l. 13"),
    flag("validate_window", "whether the window grows only while it limits the flow")
        .default_of(PAPER, "true", "deviation: Bolt does not say; RFC 9002 §7.8")
        .default_of(CODE, "false", "Bolt ns-3, whose runs cap the window at a BDP instead"),
    choice("first", &["bytes", "unacknowledged"], "which packets carry FIRST: those sent before a window of \
        bytes has been sent (`bytes`), or all until the first ACK (`unacknowledged`)")
        .default_of(PAPER, "bytes", "Bolt §4.2")
        .default_of(CODE, "unacknowledged", "Bolt ns-3"),
    choice("last", &["after", "with"], "which packets carry LAST: those after which less than a window remains \
        to be sent (`after`), or those with which at most a window remains (`with`)")
        .default_of(PAPER, "after", "Bolt §4.2: the counter, without this packet, is below the window")
        .default_of(CODE, "with", "Bolt ns-3"),
    choice("inc", &["every", "continuing"], "which packets request a larger window: all (`every`), or those \
        with neither FIRST nor LAST (`continuing`)")
        .default_of(PAPER, "every", "Bolt §3.2")
        .default_of(CODE, "continuing", "Bolt ns-3"),
    flag("idle_reset", "whether data sent after an idle RTT counts as a first window again")
        .default("true", "Bolt §4.2: resets the bytes-sent counter after an idle period"),
    number("cc_threshold", NOT_NEGATIVE, "queue at or above which a port is congested, in packets of full size")
        .default_of(PAPER, "1", "Bolt §3.1: a single MTU")
        .default_of(CODE, "2", "Bolt ns-3: 3 KB of 1500 B and 10 KB of 5000 B"),
    number("uncounted_packets", NOT_NEGATIVE, "number of packets of full size that are subtracted from the \
        queue of a port")
        .default_of(PAPER, "0", "Bolt Alg. 1 l. 4: the queue's occupancy")
        .default_of(CODE, "1", "Bolt ns-3: a device holds one packet outside the queue"),
    flag("pru", "whether switches hand out PRU tokens")
        .default("true", "Bolt §3.2"),
    flag("sm", "whether switches hand out SM tokens")
        .default("true", "Bolt §3.3"),
    choice("sm_counts", &["data", "all"], "which packets count as demand for supply matching: data packets \
        (`data`), or all packets (`all`)")
        .default_of(PAPER, "data", "Bolt Alg. 1 l. 2-3")
        .default_of(CODE, "all", "Bolt ns-3"),
    choice("sm_supply", &["weighted", "link"], "supply of a class in supply matching if several classes share \
        a port: its share of the link by weight among the classes with packets (`weighted`, Alg. 4), or the \
        whole link (`link`, Alg. 3)")
        .default("weighted", "Bolt App. B.1, Alg. 4; with one class the two are the same"),
    count("pru_cap", ANY, "largest number of PRU tokens that a port holds; 0: no limit")
        .default_of(PAPER, "0", "Bolt Alg. 1 l. 12 has no cap")
        .default_of(CODE, "256", "Bolt ns-3"),
    flag("favoured", "whether the flow has high priority; switches then send its SRCs with `src_probability`")
        .default("false", "Bolt App. B.2; the reserved bit of Listing 1 carries it"),
    number("src_probability", PROBABILITY, "probability that a congested switch sends an SRC that is due to a \
        favoured flow")
        .default("1", "Bolt Alg. 1; below 1 in App. B.2, which gives no value"),
    number("max_mdf", FRACTION, "fraction by which a loss reduces the window, once per RTT")
        .default("0.5", "Bolt §3.1: as in Swift, which gives the value"),
    choice("fallback", &["none", "swift"], "whether Swift runs in parallel and the smaller window \
        applies")
        .default("none", "Bolt §6: for fabrics in which some switches do not support Bolt"),
    time("fallback_base_target", ANY, "Swift's base target in the fallback")
        .default("25us", "Swift §5.2"),
    time("fallback_fs_range", ANY, "range of Swift's flow scaling in the fallback")
        .default("100us", "deviation: as in Swift's `paper` profile"),
    number("fallback_fs_min_cwnd", ANY, "window at or below which the flow scaling of the fallback adds all of \
        its range")
        .default("0.01", "deviation: as in Swift's `paper` profile"),
    number("fallback_fs_max_cwnd", ANY, "window at or above which the flow scaling of the fallback adds \
        nothing")
        .default("100", "deviation: as in Swift's `paper` profile"),
    rtt::RTO_GAIN.default("0.25", "Bolt §3.1: as in Swift"),
    rtt::RTO_MULTIPLIER.default("2", "Bolt §3.1: as in Swift"),
    rtt::MIN_RTO.default("1ms", "Bolt §3.1: as in Swift"),
    rtt::INITIAL_RTO.default("1ms", "Bolt §3.1: as in Swift"),
    rtt::MAX_RTO,
];

/// The fallback's target delay per switch, which cannot be set (Swift's `paper` profile).
const FALLBACK_HOP_SCALE: Span = Span::from_us(1);

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "initial_cwnd",
        profiles: &[PAPER, CODE],
        rule: "1 BDP, within min_cwnd and max_cwnd",
        source: "Bolt ns-3: the initial window is one BDP; in Bolt §5.1.1, flows start at line rate",
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
    range: "1 packet to the larger of half a BDP and 4 packets",
    source: "Bolt §3.1: CC_THRESH is one packet; §6: a higher one tolerates bursts of hosts (deviation: no \
             range is given)",
    bounds: |network| Range::Packets(1.0, (0.5 * network.bdp_packets()).max(4.0)),
}];
