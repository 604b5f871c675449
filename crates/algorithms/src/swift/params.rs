//! The parameters of Swift: every default with its source, and decisions on details that the paper
//! leaves open.
//!
//! `Falcon` is falcon-transport/isekai v1.1, Google's published simulator of Falcon; `Bolt ns-3` is
//! serhatarslan-hub/bolt_cc_ns3, the Swift of the authors of Bolt.
//!
//! Decisions, for both profiles unless said otherwise:
//! * The guard of decreases ("once per RTT", Alg. 1 l. 3) uses the latest raw RTT, not a smoothed one; on an
//!   acknowledgement that is the acknowledgement's own RTT. Retransmissions bring no RTT: `paper` uses the
//!   latest raw one, `falcon` the smoothed one.
//! * Pacing (Alg. 1 l. 30) uses the latest raw end-to-end RTT. Before any sample it uses
//!   `base_target` as the RTT.
//! * The pacing delay has a bound, `max_pacing_delay`. A flow at its smallest window sends one packet per
//!   bound, so it soon learns the present RTT after a very long one.
//! * The window and the transport: see [`Allowance::packets`](apus_cc::Allowance::packets).
//! * Both windows start at `initial_cwnd`, and the first decrease is never blocked.
//! * A fast recovery or a timeout moves both windows of the `paper` profile, since a loss does not show where
//!   it happened. One counter of retransmissions serves both. `falcon` moves the fabric window only.
//! * An RTT sample of a packet that had been declared lost acknowledges no new packet
//!   (`acked_packets` is 0). The sample is a delay like any other: it feeds the RTT and the
//!   endpoint average, resets the counter of retransmissions and may decrease a window, but
//!   `ai * 0` packets is zero, and Falcon's increase per ACK also needs an acknowledged packet.
//! * With `decompose = false` (Swift-v0, §5.4) topology scaling and flow scaling still apply, to the single
//!   target; settings of 0 turn them off.

use alloc::format;
use alloc::string::String;

use apus_units::{Bytes, Span};

use crate::bounds;
use apus_cc::settings::{ANY, ParamInfo, ProfileInfo, choice, count, flag, number, time};
use apus_cc::{Derivation, NetworkInfo, Range, Tunable, TunedSetting, rtt};

/// The profile of Algorithm 1.
pub(super) const PAPER: &str = "paper";
/// The profile of the Falcon simulator.
pub(super) const FALCON: &str = "falcon";

/// The profiles; the first one is the default.
pub(super) const PROFILES: &[ProfileInfo] = &[
    ProfileInfo { name: PAPER, doc: "Algorithm 1 with a fabric and an endpoint window" },
    ProfileInfo {
        name: FALCON,
        doc: "as in Google's Falcon simulator, with a receiver-buffer window and changes of the path",
    },
];

/// The word for pacing at every window (§3.4).
pub(super) const PACE_ALWAYS: &str = "always";
/// The word for pacing below one packet (Alg. 1 l. 29).
const PACE_BELOW_ONE: &str = "below-one";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("ai", ANY, "additive increase in packets per RTT")
        .default("1", "deviation: Swift §3.2 gives the unit but no value; 1 in Falcon and Bolt ns-3, and the \
            value that fits Table 3, Table 4 and Fig. 21 (only Fig. 17 is closer with 0.25)"),
    number("beta", ANY, "multiplicative decrease constant")
        .default("0.8", "deviation: Swift gives no value; 0.8 in Falcon and Bolt ns-3"),
    number("max_mdf", ANY, "largest fraction by which one decrease reduces the window")
        .default("0.5", "deviation: the text of Swift gives no value, its talk says at most half; 0.5 in \
            Falcon and Bolt ns-3"),
    time("base_target", ANY, "base target of the fabric delay, before hop and flow scaling; of the end-to-end \
        delay if `decompose` is false")
        .default("25us", "Swift §5.2; 25us in Falcon"),
    time("hop_scale", ANY, "amount added to the target per switch on the forward path")
        .default_of(PAPER, "1us", "deviation: Swift §3.5 gives no value; 1us in Bolt ns-3")
        .default_of(FALCON, "1.05us", "Falcon default"),
    time("fs_range", ANY, "largest amount that flow scaling adds to the target; `0us` turns flow scaling off")
        .default("100us", "deviation: Swift §3.5 gives no value; 100us in Falcon and Bolt ns-3"),
    number("fs_min_cwnd", ANY, "window in packets at or below which flow scaling adds all of fs_range")
        .default_of(PAPER, "0.01", "deviation: Swift §3.5 gives no value; with 0.1, all 5000 flows of Table 3 \
            are on the flat end of the curve, and Jain's index is 0.61 instead of 0.91")
        .default_of(FALCON, "0.1", "Falcon default"),
    number("fs_max_cwnd", ANY, "window in packets at or above which flow scaling adds nothing")
        .default_of(PAPER, "100", "deviation: Swift §3.5 gives no value; this value reproduces Table 3")
        .default_of(FALCON, "256", "Falcon default"),
    number("min_cwnd", ANY, "smallest window in packets")
        .default_of(PAPER, "0.001", "Swift §3.4")
        .default_of(FALCON, "0.01", "Falcon default"),
    number("max_cwnd", ANY, "largest value of each window, in packets; it bounds the window that is not the \
        bottleneck")
        .default("256", "deviation: Swift §3.3 footnote 3 gives no upper limit; 256 in Falcon"),
    number("initial_cwnd", ANY, "initial window in packets")
        .default("1", "deviation: Swift §3.2 says that it has little effect and gives no value; this is the \
            smallest window that is not paced"),
    flag("decompose", "whether there are two windows, for the fabric and the endpoint delay; `false` is \
        Swift-v0, with one window for the end-to-end delay")
        .default_of(PAPER, "true", "Swift §3.3, and §5.4 for Swift-v0"),
    time("endpoint_target", ANY, "target of the endpoint delay")
        .default_of(PAPER, "100us", "Swift §5.4, Table 4"),
    number("endpoint_min_cwnd", ANY, "smallest endpoint window in packets, if larger than min_cwnd; 0: \
        min_cwnd applies")
        .default_of(PAPER, "0", "Swift §3.4 has one minimum for both windows"),
    number("endpoint_gain", ANY, "weight of a new sample in the average of the endpoint delay")
        .default_of(PAPER, "0.5", "deviation: Swift §3.3 names an EWMA but gives no gain; 0.5 fits Table 4, \
            and so does 0.125"),
    count("buffer_target", ANY, "target fill level of the receiver's buffer, in 32nds")
        .default_of(FALCON, "15", "Falcon default"),
    number("buffer_increase", ANY, "packets added to the receiver-buffer window per ACK with a fill level \
        below the target")
        .default_of(FALCON, "1", "Falcon default"),
    choice("pacing", &[PACE_BELOW_ONE, PACE_ALWAYS], "when packets leave RTT/cwnd apart: with windows below \
        one packet, or always")
        .default("below-one", "Swift §3.4, Alg. 1 l. 29-32"),
    time("max_pacing_delay", ANY, "longest delay between two packets of a paced flow")
        .default("1s", "deviation: Alg. 1 l. 30 has no bound, so that one RTT of 4 s stops a flow with a \
            window of 0.001 packets for over an hour; this is the delay at that window and an RTT of 1ms, ten \
            times Swift's targets"),
    count("retx_reset_threshold", ANY, "number of consecutive timeouts from which the window falls to its \
        minimum")
        .default("3", "deviation: Swift Alg. 1 l. 17 names it but gives no value; 3 in Falcon"),
    flag("max_decrease_on_loss", "whether a loss detected by SACK cuts the window by max_mdf")
        .default_of(PAPER, "true", "Swift Alg. 1 l. 22-25")
        .default_of(FALCON, "false", "Falcon default"),
    number("plb_delay_factor", ANY, "multiple of the target delay; a packet with a longer delay counts as \
        delayed")
        .default_of(FALCON, "1.01", "Falcon default"),
    number("plb_delayed_fraction", ANY, "fraction of delayed packets at or above which a round counts as \
        delayed")
        .default_of(FALCON, "0.5", "Falcon default"),
    count("plb_rounds", ANY, "number of consecutive delayed rounds after which the flow changes its path")
        .default_of(FALCON, "5", "Falcon default"),
    rtt::RTO_GAIN
        .default_of(PAPER, "0.25", "deviation: Swift §3.6 names an EWMA but gives no gain; 1/4 in Falcon")
        .default_of(FALCON, "0.25", "Falcon default: 3/4 of the old value is kept"),
    rtt::RTO_MULTIPLIER
        .default_of(PAPER, "2", "deviation: Swift §3.6 gives no value; 2 in Falcon")
        .default_of(FALCON, "2", "Falcon default"),
    rtt::MIN_RTO
        .default_of(PAPER, "1ms", "deviation: Swift §3.6 gives no value; with this one, GCN in the same stack \
            loses the 5.1 % of Swift §5.3")
        .default_of(FALCON, "250us", "Falcon default"),
    rtt::INITIAL_RTO
        .default_of(PAPER, "1ms", "deviation: Swift §3.6 gives no value; as min_rto")
        .default_of(FALCON, "250us", "deviation: Falcon states no value; its rule while the RTT is unknown, as \
            min_rto"),
    rtt::MAX_RTO,
];

/// The default of `base_target` (§5.2).
const BASE_TARGET: Span = Span::from_us(25);
/// Full packets that the base target leaves for the queue of a small number of flows (§3.5). At a target equal
/// to the unloaded RTT no delay is below the target. A window of `fs_max_cwnd` packets or more, to which flow
/// scaling adds nothing, would then never grow.
const BASE_TARGET_PACKETS: u64 = 3;
/// The name of the rule for `base_target`, for all algorithms with Swift's target.
pub(crate) const BASE_TARGET_RULE: &str = "the larger of 25us and the following value for the longest path: the unloaded RTT, plus the hosts' jitter \
     above its mean, plus the time of 3 packets on the slowest link, minus the hop scaling";
/// Its source.
pub(crate) const BASE_TARGET_SOURCE: &str = "Swift §3.3, §3.5: the smallest target for 100 % utilisation with \
     a small number of flows. It covers propagation, serialisation, queueing of a small number of flows, and \
     measurement errors (deviation: the paper gives no numbers; with 1 to 8 flows at 10 Gb/s and RTTs of 27 to \
     607 us, a queue of 3 packets gives 99.96 % of the link; 25us is the value of §5.2)";

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "base_target",
        profiles: &[PAPER, FALCON],
        rule: BASE_TARGET_RULE,
        source: BASE_TARGET_SOURCE,
        value: |network, settings| {
            // Swift-v0 compares the target with the end-to-end delay (§5.4).
            let decomposed = settings.profile() == FALCON || settings.flag("decompose");
            let rtt = if decomposed { network.fabric_rtt } else { network.base_rtt };
            base_target(network, rtt, settings.time("hop_scale"))
        },
    },
    bounds::max_cwnd_rule(&[PAPER, FALCON]),
];

/// The base target for paths with an unloaded RTT of `rtt`, and with `hop_scale` per switch.
pub(crate) fn base_target(network: &NetworkInfo, rtt: Span, hop_scale: Span) -> String {
    let queue = Bytes::new(BASE_TARGET_PACKETS * network.packet.get());
    let needed = rtt
        .saturating_add(network.fabric_jitter)
        .saturating_add(network.path_rate.serialization_time(queue));
    let scaled = hop_scale.mul_f64(f64::from(network.hops));
    format!("{}", needed.saturating_sub(scaled).max(BASE_TARGET))
}

/// The fabric target on the longest path of a network with the default rules, hop scaling included.
pub(crate) fn fabric_target(network: &NetworkInfo) -> Span {
    let queue = Bytes::new(BASE_TARGET_PACKETS * network.packet.get());
    let needed = network.fabric_rtt.saturating_add(network.fabric_jitter);
    needed.saturating_add(network.path_rate.serialization_time(queue)).max(BASE_TARGET)
}

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("base_target"),
    profiles: &[PAPER, FALCON],
    range: "1 to 5.4 times the unloaded RTT of the longest path",
    source: "Swift §5.1: the target sets the trade-off between throughput and latency; Fig. 17 varies it from \
             15 to 70 us (deviation: for a base RTT of about 13 us, which the paper does not give)",
    bounds: |network| Range::Time(network.fabric_rtt, network.fabric_rtt.mul_f64(5.4)),
}];
