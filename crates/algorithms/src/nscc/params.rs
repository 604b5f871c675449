//! The parameters of NSCC, each with its source.

use alloc::format;
use alloc::string::String;

use apus_cc::settings::{
    AT_LEAST_1, FRACTION, Limits, NOT_NEGATIVE, POSITIVE, ParamInfo, SettingError, Settings, count,
    flag, number, require, time,
};
use apus_cc::{Derivation, NetworkInfo};
use apus_units::Span;

/// For a network whose switches trim packets.
pub(super) const TRIMMING: &str = "trimming";
/// For a network whose switches drop packets.
pub(super) const DROP_TAIL: &str = "drop-tail";
/// With the median of delays.
pub(super) const MEDIAN: &str = "median";

const ALL: &[&str] = &[TRIMMING, DROP_TAIL, MEDIAN];
const DROPPING: &[&str] = &[DROP_TAIL, MEDIAN];

/// Limits of the number of delays whose median is taken.
const SAMPLES: Limits = Limits::new("from 1 to 4", |x| (1.0..=4.0).contains(&x));

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    time("network_rtt", POSITIVE, "RTT of a full packet and its acknowledgement over the longest \
        path without queues")
        .default("12us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: the reference network"),
    time("target_queueing", POSITIVE, "queueing delay above which marked packets shrink the window")
        .default_of(TRIMMING, "9us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: 0.75 network_rtt with trimming")
        .default_of(DROP_TAIL, "12us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: network_rtt without trimming")
        .default_of(MEDIAN, "12us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: network_rtt without trimming"),
    number("window_factor", AT_LEAST_1, "initial and largest window, as a multiple of line rate times RTT")
        .default("1.5", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("proportional", NOT_NEGATIVE, "payloads that a window of acknowledgements without queueing delay \
        adds to the window, before scaling to the network")
        .default("4", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: alpha"),
    number("fair", NOT_NEGATIVE, "payloads that a window of late but unmarked acknowledgements adds to the \
        window, before scaling to the network")
        .default("5", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: fi"),
    number("eta", NOT_NEGATIVE, "payloads added to the window once per network_rtt, before scaling to the \
        network")
        .default("0.15", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("fast", NOT_NEGATIVE, "fraction of the acknowledged bytes that is added to the window while queues \
        are empty, before scaling to the network")
        .default("0.25", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    time("fast_delay", POSITIVE, "queueing delay below which queues count as empty")
        .default("1us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("gamma", NOT_NEGATIVE, "factor of the multiplicative decrease")
        .default("0.8", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("max_decrease", FRACTION, "largest fraction by which one decrease reduces the window")
        .default("0.5", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("delay_gain", FRACTION, "weight of a new sample in the average queueing delay")
        .default("0.0125", "uet-htsim 40ccb05"),
    flag("quick_adapt", "whether the window is set to the bytes received in the last RTT if these are few, and \
        a packet was trimmed or had a delay above 4 times target_queueing")
        .default("true", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("quick_adapt_part", AT_LEAST_1, "quick adaptation needs fewer bytes received than the \
        largest window divided by this")
        .default("8", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    number("adjust_packets", NOT_NEGATIVE, "number of full packets received after which increases take effect, \
        unless network_rtt passes first")
        .default("8", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13"),
    count("median_samples", SAMPLES, "largest number of latest delays whose median is used; 1: the latest \
        delay itself")
        .default_of(TRIMMING, "1", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: the delay of each acknowledgement")
        .default_of(DROP_TAIL, "1", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: the delay of each acknowledgement")
        .default_of(MEDIAN, "4", "unverified: MSwift and MNSCC (arXiv 2509.07907): at most 4, at most half \
            a window"),
    flag("receiver_penalty", "whether the flow obeys receivers whose buffers fill: each acknowledgement then \
        shrinks the window by up to the acknowledged bytes")
        .default("false", "uet-htsim 40ccb05: `rcv_cwnd_pen` is neutral"),
    number("penalty_from", FRACTION, "filled fraction of the receiver's buffer above which the penalty begins")
        .default("0.25", "unverified: UE Specification 1.0 §3.6.13.2 leaves it open; 25 to 75 % in the manual of a \
            simulated NIC"),
    number("penalty_full", FRACTION, "filled fraction of the receiver's buffer at which the penalty is largest")
        .default("0.75", "unverified: UE Specification 1.0 §3.6.13.2 leaves it open; 25 to 75 % in the manual of a \
            simulated NIC"),
    flag("restore_window", "whether the window returns to its previous value after the penalty")
        .default("true", "unverified: UE Specification 1.0 §3.6.13.2: the receiver states it with each \
            acknowledgement; deviation: here it is a setting of the flow"),
    time("rto", POSITIVE, "retransmission timeout, without back-off")
        .default_of(TRIMMING, "100us", "uet-htsim 40ccb05: 15 us plus the drain time of 6 full queues")
        .default_of(DROP_TAIL, "450us", "uet-htsim 40ccb05: 15 us plus the drain time of 6 full queues")
        .default_of(MEDIAN, "450us", "deviation: as in profile drop-tail, so that runs are comparable"),
];

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "network_rtt",
        profiles: ALL,
        rule: "the unloaded RTT between the NICs of the longest path",
        source: "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13",
        value: |network, _| format!("{}", network.fabric_rtt + network.fabric_jitter),
    },
    Derivation {
        parameter: "target_queueing",
        profiles: &[TRIMMING],
        rule: "0.75 network_rtt",
        source: "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13",
        value: |_, settings| format!("{}", settings.time("network_rtt").mul_f64(0.75)),
    },
    Derivation {
        parameter: "target_queueing",
        profiles: DROPPING,
        rule: "network_rtt",
        source: "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13",
        value: |_, settings| format!("{}", settings.time("network_rtt")),
    },
    Derivation {
        parameter: "rto",
        profiles: &[TRIMMING],
        rule: "15 us plus 6 times the time that a BDP, rounded up to whole packets, takes on the path",
        source: "uet-htsim 40ccb05: a queue with trimming holds one BDP",
        value: |network, settings| rto(network, settings, 1),
    },
    Derivation {
        parameter: "rto",
        profiles: DROPPING,
        rule: "15 us plus 6 times the time that 5 BDPs, each rounded up to whole packets, take on the path",
        source: "uet-htsim 40ccb05: a queue without trimming holds 5 BDP",
        value: |network, settings| rto(network, settings, 5),
    },
];

/// Number of full queues that drain before the timeout expires.
const DRAINS: u64 = 6;

/// The timeout in a network whose queues trim at one bandwidth-delay product, or drop at five.
pub(crate) fn rto_of(network: &NetworkInfo, settings: &Settings) -> String {
    rto(network, settings, if network.trims { 1 } else { 5 })
}

/// 15 us and [`DRAINS`] queues of `bdps` bandwidth-delay products, each in whole packets.
fn rto(network: &NetworkInfo, settings: &Settings, bdps: u64) -> String {
    let bdp = network.line_rate.bytes_in(settings.time("network_rtt")).get();
    let packet = network.packet.get().max(1);
    let queue = apus_units::Bytes::new(DRAINS * bdps * bdp.div_ceil(packet) * packet);
    format!("{}", Span::from_us(15) + network.path_rate.serialization_time(queue))
}

/// The parameters of NSCC.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// T0: RTT of the longest path, of which gains and periods are multiples.
    pub network_rtt: Span,
    /// Target of the queueing delay.
    pub target: Span,
    /// Largest window over line rate times RTT.
    pub window_factor: f64,
    /// Payloads per window of proportional increase.
    pub proportional: f64,
    /// Payloads per window of fair increase.
    pub fair: f64,
    /// Constant increase in payloads per `network_rtt`.
    pub eta: f64,
    /// Fast increase as a part of the acknowledged bytes.
    pub fast: f64,
    /// Delay below which the fast increase applies.
    pub fast_delay: Span,
    /// Factor of the decrease.
    pub gamma: f64,
    /// Largest part of the window that a decrease removes.
    pub max_decrease: f64,
    /// Weight of a delay in the average.
    pub delay_gain: f64,
    /// Whether quick adaptation is used.
    pub quick_adapt: bool,
    /// Divisor of the largest window in the rule of quick adaptation.
    pub quick_adapt_part: f64,
    /// Number of packets after which increases take effect.
    pub adjust_packets: f64,
    /// Maximum number of delays whose median is taken, from 1 to 4.
    pub median_samples: u32,
    /// The receiver's penalty, if the sender obeys it.
    pub penalty: Option<Penalty>,
    /// The retransmission timeout.
    pub rto: Span,
}

/// When a receiver's buffer penalises a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// Filled part of the buffer without a penalty.
    pub from: f64,
    /// Filled part of the buffer with the largest penalty.
    pub full: f64,
    /// Whether the window is restored afterwards.
    pub restores: bool,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible, or has no effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let quick_adapt = settings.flag("quick_adapt");
        let quick_adapt_part = settings.number("quick_adapt_part");
        if !quick_adapt {
            settings.without_effect(&["quick_adapt_part"], "while `quick_adapt` is false")?;
        }
        let params = Self {
            network_rtt: settings.time("network_rtt"),
            target: settings.time("target_queueing"),
            window_factor: settings.number("window_factor"),
            proportional: settings.number("proportional"),
            fair: settings.number("fair"),
            eta: settings.number("eta"),
            fast: settings.number("fast"),
            fast_delay: settings.time("fast_delay"),
            gamma: settings.number("gamma"),
            max_decrease: settings.number("max_decrease"),
            delay_gain: settings.number("delay_gain"),
            quick_adapt,
            quick_adapt_part,
            adjust_packets: settings.number("adjust_packets"),
            median_samples: settings.count("median_samples"),
            penalty: Penalty::from_settings(settings)?,
            rto: settings.time("rto"),
        };
        let above = params.rto >= params.network_rtt;
        require(above, "rto", "at least network_rtt", params.rto)?;
        Ok(params)
    }
}

impl Penalty {
    fn from_settings(settings: &mut Settings) -> Result<Option<Self>, SettingError> {
        let penalty = Self {
            from: settings.number("penalty_from"),
            full: settings.number("penalty_full"),
            restores: settings.flag("restore_window"),
        };
        if !settings.flag("receiver_penalty") {
            let names = ["penalty_from", "penalty_full", "restore_window"];
            settings.without_effect(&names, "while `receiver_penalty` is false")?;
            return Ok(None);
        }
        require(penalty.full > penalty.from, "penalty_full", "above penalty_from", penalty.full)?;
        Ok(Some(penalty))
    }
}
