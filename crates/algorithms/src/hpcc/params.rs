//! The parameters of HPCC, each with its source.

use alloc::format;
use alloc::string::String;

use apus_units::{Rate, Span};

use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    ANY, FRACTION, POSITIVE, ParamInfo, SettingError, Settings, count, number, rate, time,
};
use apus_cc::{Derivation, NetworkInfo, ProfilePackets, Range, Tunable, TunedSetting};

/// HPCC as in its paper.
pub(super) const PAPER: &str = "paper";
/// HPCC with the settings of Bolt's authors.
pub(super) const BOLT: &str = "bolt";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    time("base_rtt", POSITIVE, "T: the largest base RTT of the network; the initial window is T times the rate \
        of the host")
        .default_of(PAPER, "13us", "HPCC §5.1: FatTree")
        .default_of(BOLT, "8us", "Bolt §2.1.1: the dumbbell"),
    number("eta", FRACTION, "target utilisation")
        .default("0.95", "HPCC §5.1; 0.95 in Bolt ns-3"),
    count("max_stage", ANY, "number of RTTs of additive increase before a multiplicative adjustment")
        .default_of(PAPER, "5", "HPCC §5.1")
        .default_of(BOLT, "0", "Bolt ns-3: multiplicative every RTT"),
    rate("additive_rate", ANY, "additive increase W_AI as a rate: W_AI is this rate times base_rtt")
        .default_of(PAPER, "50Mbps", "deviation: HPCC §5.1 gives W_AI = 80 bytes at T = 13 us, \
            which is this rate")
        .default_of(BOLT, "50Mbps", "Bolt ns-3"),
    rate("min_rate", POSITIVE, "smallest window, as a rate: the window is at least this rate times base_rtt")
        .default("100Mbps", "deviation: HPCC gives no value; 100 Mb/s in its simulator"),
    rtt::RTO_GAIN.default("0.25", "deviation: HPCC relies on PFC; Swift's value"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: HPCC relies on PFC; Swift's value"),
    rtt::MIN_RTO.default("1ms", "deviation: HPCC relies on PFC; Swift's value"),
    rtt::INITIAL_RTO.default("1ms", "deviation: HPCC relies on PFC; Swift's value"),
    rtt::MAX_RTO,
];

/// Number of flows expected to share a link, in the rule for W_AI. deviation: the paper leaves N open; its 80 B
/// at T = 13 us, 100 Gb/s and eta = 0.95 correspond to 100.
const EXPECTED_FLOWS: f64 = 100.0;

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "base_rtt",
        profiles: &[PAPER, BOLT],
        rule: "the unloaded RTT of the longest path",
        source: "unverified: HPCC §3.2, §5.1: T is the network's largest base RTT",
        value: |network, _| format!("{}", network.base_rtt),
    },
    Derivation {
        parameter: "additive_rate",
        profiles: &[PAPER],
        rule: "line rate * (1 - eta) / 100",
        source: "unverified: HPCC §3.3: W_AI = W_init * (1 - eta) / N (deviation: the paper does not give N; \
                 the 80 B of its §5.1 follow from N = 100)",
        value: additive_rate,
    },
];

fn additive_rate(network: &NetworkInfo, settings: &Settings) -> String {
    let spare = network.line_rate.as_bps() as f64 * (1.0 - settings.number("eta"));
    format!("{}", Rate::from_bps((spare / EXPECTED_FLOWS + 0.5) as u64))
}

/// Packet sizes of HPCC's own simulator (alibaba-edu/High-Precision-Congestion-Control), which Bolt's authors
/// ran: 1000 B of payload; PPP 14 B, IP 20 B, UDP 8 B and sequence 6 B are 48 B, INT of five hops adds 42 B. An
/// acknowledgement is 14 + 20 + 12 + 42 B.
pub(super) const PACKETS: &[ProfilePackets] = &[ProfilePackets {
    profile: BOLT,
    payload: 1000,
    header: 48 + 42,
    control: 88,
    source: "HPCC's simulator: packet_payload_size 1000, headers of 48 B, INT of 42 B",
}];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("eta"),
    profiles: &[PAPER, BOLT],
    range: "0.85 to 0.99",
    source: "unverified: HPCC §3.2: eta is the target utilisation, which leaves headroom (deviation: the paper \
             uses 0.95 and varies it in no figure)",
    bounds: |_| Range::Number(0.85, 0.99),
}];

/// The parameters of HPCC.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// T (HPCC Alg. 1).
    pub base_rtt: Span,
    /// Target utilisation.
    pub eta: f64,
    /// RTTs of additive increase before a multiplicative increase.
    pub max_stage: u32,
    /// W_AI over T.
    pub additive_rate: Rate,
    /// The smallest window over T.
    pub min_rate: Rate,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        Ok(Self {
            base_rtt: settings.time("base_rtt"),
            eta: settings.number("eta"),
            max_stage: settings.count("max_stage"),
            additive_rate: settings.rate("additive_rate"),
            min_rate: settings.rate("min_rate"),
            rto: RtoRule::from_settings(settings),
        })
    }
}
