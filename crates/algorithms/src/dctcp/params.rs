//! The parameters of DCTCP, each with its source.

use apus_units::Bytes;

use crate::bounds;
use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    AT_LEAST_1, FRACTION, PROBABILITY, ParamInfo, SettingError, Settings, choice, number,
};
use apus_cc::{Derivation, NetworkInfo, Range, Tunable, TunedSetting};

/// DCTCP as specified in its RFC.
pub(super) const RFC8257: &str = "rfc8257";
/// Google's variant that Swift was compared with.
pub(super) const GCN: &str = "gcn";

/// The window reacts to marks, losses and timeouts as in the RFC.
const PER_WINDOW: &str = "per-window";
/// Each packet changes the window.
const PER_PACKET: &str = "per-packet";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    number("g", FRACTION, "weight of the newest window of data in the estimate of the marked \
        fraction")
        .default_of(RFC8257, "0.0625", "RFC 8257 §4.2: 1/16 in the implementations it describes")
        .default_of(GCN, "1", "Swift §4.1: the current mark rate rather than an EWMA"),
    number("initial_alpha", PROBABILITY, "estimate of the marked fraction until the first window of data has \
        been acknowledged")
        .default("1", "RFC 8257 §3.3: DCTCP.Alpha is initialized to 1"),
    choice("reaction", &[PER_WINDOW, PER_PACKET], "\"per-window\": as in RFC 8257. \"per-packet\": each marked \
        packet reduces the window by a quarter of a packet, and each trimmed, lost or timed-out packet by a \
        whole one; a window of unmarked packets increases it by one")
        .default("per-window", "RFC 8257 §3.3; \"per-packet\" is REPS's artifact b751588, `updateCwndOnAck_MPRDMA`"),
    bounds::INITIAL_CWND.default("10", "RFC 6928 §2"),
    number("min_cwnd", AT_LEAST_1, "smallest window in packets, and the window after a timeout")
        .default("1", "RFC 5681 §3.1: the loss window is 1 segment; RFC 3168 §6.1.2 allows cuts down to it"),
    bounds::MAX_CWND
        .default("256", "deviation: in the RFCs, the receiver bounds the window; here Swift's limit, so that \
            runs are comparable"),
    rtt::RTO_GAIN
        .default("0.25", "deviation: RFC 6298 adds the variance; here Swift's rule, so that runs are \
            comparable"),
    rtt::RTO_MULTIPLIER
        .default("2", "deviation: RFC 6298 adds the variance; here Swift's rule, so that runs are comparable"),
    rtt::MIN_RTO
        .default("1ms", "deviation: RFC 6298 §2.4 says 1 s, far too long in a datacenter; with 1 ms and a \
            buffer of 3.4 MB, GCN has the loss of Swift §5.3 (5.1 %)"),
    rtt::INITIAL_RTO.default("1ms", "deviation: RFC 6298 §2.1 says 1 s; here as min_rto"),
    rtt::MAX_RTO,
];

/// The rules for the parameters that depend on the network. The marking threshold belongs to the
/// switches: [`marking_threshold`].
pub(super) const DERIVED: &[Derivation] = &[bounds::max_cwnd_rule(&[RFC8257, GCN])];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::MarkingThreshold,
    profiles: &[RFC8257, GCN],
    range: "C * RTT / 7 (at least 2 packets) to the larger of C * RTT and twice the threshold of the rule",
    source: "unverified: Alizadeh et al., DCTCP, SIGCOMM 2010, §3.4: K is DCTCP's only parameter at switches; \
             eq. 13 is its lower bound (deviation: no upper bound is given; a queue of C * RTT doubles the \
             RTT)",
    bounds: |network| {
        let bdp = network.path_rate.bytes_in(network.base_rtt).get();
        let low = (bdp / BDP_PARTS).max(2 * network.packet.get());
        let high = bdp.max(2 * marking_threshold(network).get()).max(low);
        Range::Size(Bytes::new(low), Bytes::new(high))
    },
}];

/// Marks begin at a seventh of the bandwidth-delay product. unverified: DCTCP eq. 13.
const BDP_PARTS: u64 = 7;
/// Wire bytes of the packets in which DCTCP's paper counts thresholds.
const ETHERNET_PACKET: u64 = 1538;

/// The rule of [`marking_threshold`] in words.
pub const MARKING_RULE: &str =
    "the larger of C * RTT / 7 and 65 packets of 1538 B (20 packets up to 1 Gb/s)";
/// Its source.
pub const MARKING_SOURCE: &str = "unverified: Alizadeh et al., DCTCP, SIGCOMM 2010, §3.4, eq. 13; for the \
     bursts of hosts, 20 packets at 1 Gb/s and 65 at 10 Gb/s, as in the DCTCP documentation of Linux \
     (deviation: 65 above 10 Gb/s too)";

/// The queue length from which switches mark packets for DCTCP: enough to keep the slowest link of the
/// longest path busy, and for the bursts of hosts.
#[must_use]
pub fn marking_threshold(network: &NetworkInfo) -> Bytes {
    let bdp = network.path_rate.bytes_in(network.base_rtt).get();
    let burst = if network.path_rate.as_bps() <= 1_000_000_000 { 20 } else { 65 };
    Bytes::new((bdp / BDP_PARTS).max(burst * ETHERNET_PACKET))
}

/// The parameters of DCTCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Weight of the newest window of data in the marked fraction, in (0, 1] (RFC 8257 §3.3).
    pub g: f64,
    /// First estimate of the marked fraction (RFC 8257 §3.3).
    pub initial_alpha: f64,
    /// Each marked, lost or timed-out packet shrinks the window, whatever the fraction of marked ones.
    pub per_packet: bool,
    /// First window in packets (RFC 6928 §2).
    pub initial_cwnd: f64,
    /// Smallest window in packets, at least 1: DCTCP does not pace.
    pub min_cwnd: f64,
    /// Largest window in packets.
    pub max_cwnd: f64,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible, or has no effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let per_packet = settings.choice("reaction") == PER_PACKET;
        if !per_packet {
            return Self::per_window(settings);
        }
        settings.without_effect(&["g", "initial_alpha"], "if `reaction` is \"per-packet\"")?;
        Self::with(settings, (0.0, 0.0), per_packet)
    }

    /// Reads and checks the parameters of an algorithm that reacts to marks as in the RFC.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn per_window(settings: &Settings) -> Result<Self, SettingError> {
        let estimate = (settings.number("g"), settings.number("initial_alpha"));
        Self::with(settings, estimate, false)
    }

    fn with(
        settings: &Settings,
        (g, initial_alpha): (f64, f64),
        per_packet: bool,
    ) -> Result<Self, SettingError> {
        let params = Self {
            per_packet,
            g,
            initial_alpha,
            initial_cwnd: settings.number("initial_cwnd"),
            min_cwnd: settings.number("min_cwnd"),
            max_cwnd: settings.number("max_cwnd"),
            rto: RtoRule::from_settings(settings),
        };
        bounds::check(params.initial_cwnd, params.min_cwnd, params.max_cwnd)?;
        Ok(params)
    }
}
