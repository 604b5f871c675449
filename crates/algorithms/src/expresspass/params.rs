//! The parameters of ExpressPass, each with its source.

use alloc::format;

use apus_units::Span;

use apus_cc::rtt::{self, RtoRule};
use apus_cc::settings::{
    ANY, AT_LEAST_1, FRACTION, Limits, POSITIVE, ParamInfo, SettingError, Settings, choice, count,
    flag, number, require, time,
};
use apus_cc::{CreditLimit, Derivation, Range, Tunable, TunedSetting};

/// The feedback control of the paper.
pub(super) const PAPER: &str = "paper";
/// The authors' simulator as of the paper.
pub(super) const CODE: &str = "code";
/// The authors' simulator since April 2018: an aggressive first rate and an early stop.
pub(super) const CODE_2018: &str = "code-2018";

const AT_LAST_DATA: &str = "last-data";
const AT_WASTED_CREDIT: &str = "wasted-credit";
const EARLY: &str = "early";
const CREDITS: &str = "credits";
const BYTES: &str = "bytes";

/// Limits of a fraction that may be 0.
const BELOW_ONE: Limits = Limits::new("at least 0 and below 1", |x| (0.0..1.0).contains(&x));

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    flag("feedback", "whether the credit rate follows the loss of credits; if not, the receiver sends credits \
        at the rate at which their data fills the line")
        .default("true", "ExpressPass §1: \"(iii) credit feedback control\""),
    number("alpha", FRACTION, "initial credit rate as a fraction of the largest rate")
        .default("0.5", "unverified: ExpressPass §6.1, 1/2 in its micro-benchmarks, 1/16 in \
            workloads (ns2-xpass before April 2018 agrees)"),
    count("alpha_packets", ANY, "number of packets to send from which the initial credit rate is `alpha`; with \
        fewer packets, it is proportionally lower. 0: always `alpha`")
        .default_of(PAPER, "0", "unverified: ExpressPass Alg. 1 has no such rule")
        .default_of(CODE, "0", "ns2-xpass before April 2018")
        .default_of(CODE_2018, "40", "ns2-xpass since April 2018: \"AIR\""),
    number("w_init", ANY, "initial aggressiveness factor")
        .default_of(PAPER, "0.5", "unverified: ExpressPass §6.1, as alpha")
        .default_of(CODE, "0.5", "ns2-xpass")
        .default_of(CODE_2018, "0.0625", "ns2-xpass since April 2018, large-scale-fattree.tcl"),
    number("w_min", FRACTION, "smallest aggressiveness factor")
        .default("0.01", "unverified: ExpressPass Alg. 1; ns2-xpass"),
    number("w_max", FRACTION, "largest aggressiveness factor")
        .default("0.5", "unverified: ExpressPass Alg. 1; ns2-xpass"),
    number("target_loss", BELOW_ONE, "target of the credit loss; in `code` and `code-2018`, the largest value \
        of this target")
        .default_of(PAPER, "0.1", "unverified: ExpressPass Alg. 1")
        .default_of(CODE, "0.125", "ns2-xpass: the target falls to 0 as the rate approaches its largest value")
        .default_of(CODE_2018, "0.125", "ns2-xpass, as `code`"),
    number("jitter", BELOW_ONE, "random variation of the gap between two credits: up to this fraction of the \
        gap, in either direction")
        .default("0.1", "ns2-xpass; ExpressPass §1: \"(iv) random jitter\""),
    flag("random_sizes", "whether the sizes of credits vary, by up to 8 B around the nominal size")
        .default("true", "ns2-xpass: 76 to 92 B on the wire, to break synchronisation"),
    count("credit_burst", AT_LEAST_1, "number of credits that a port forwards at once: the size of its token \
        bucket")
        .default("2", "ns2-xpass"),
    count("credit_queue", AT_LEAST_1, "largest number of credits in the queue of a port")
        .default("8", "unverified: ExpressPass §3.2; ns2-xpass"),
    choice("credit_queue_counts", &[CREDITS, BYTES], "unit in which a port limits its queue of credits; \
        \"bytes\": the limit is the size of `credit_queue` credits of nominal size")
        .default("credits", "deviation: ns2-xpass counts bytes. Ports then drop long credits more often than \
            short ones, so that 1 to 2 % more credits pass than the limit intends, and their data overloads a \
            link that is full in both directions"),
    choice("stop", &[AT_LAST_DATA, AT_WASTED_CREDIT, EARLY], "when the sender stops the credits. \
        \"last-data\": after its last packet. \"wasted-credit\": when a credit finds no data. \"early\": when \
        at least as many credits arrived in the last RTT as packets remain, since as many credits may be in \
        flight")
        .default_of(PAPER, "wasted-credit", "unverified: ExpressPass §4, when a credit finds no \
            data")
        .default_of(CODE, "last-data", "ns2-xpass before April 2018: right after the last packet")
        .default_of(CODE_2018, "early", "ns2-xpass since April 2018: \"ECS\""),
    time("request_timeout", POSITIVE, "time after which a sender with data and without credit requests credit \
        again, and a sender whose stop is not answered sends the stop again")
        .default("10ms", "deviation: the excerpt of the paper gives no value; this one is above the gap \
            between the credits of one of 2048 flows over 10 Gb/s, 2.7 ms"),
    time("idle_timeout", POSITIVE, "time without data after which a receiver stops sending credits")
        .default("100ms", "deviation: the excerpt of the paper gives no value; this one limits the cost of a \
            lost stop or a forged request"),
    rtt::RTO_GAIN.default("0.25", "deviation: no paper; Swift's value, so that runs are comparable"),
    rtt::RTO_MULTIPLIER.default("2", "deviation: no paper; Swift's value, so that runs are comparable"),
    rtt::MIN_RTO
        .default("100ms", "deviation: ExpressPass loses no data; this value is above the gap between credits, \
            which acknowledge data"),
    rtt::INITIAL_RTO.default("100ms", "deviation: the value of min_rto, for the same reason"),
    rtt::MAX_RTO,
];

/// The default of `request_timeout`.
const REQUEST_TIMEOUT: Span = Span::from_ms(10);
/// Maximum number of flows whose credits are expected to share one link.
const FLOWS: f64 = 2048.0;

/// The rules for the parameters that depend on the network. All others are relative to the line's rate.
pub(super) const DERIVED: &[Derivation] = &[Derivation {
    parameter: "request_timeout",
    profiles: &[PAPER, CODE, CODE_2018],
    rule: "the larger of 10ms and twice the time of 2048 full packets on the slowest link of the longest path",
    source: "deviation: no rule is published; the timeout must be above the gap between the credits of a flow",
    value: |network, _| {
        let gap = network.path_rate.serialization_time(network.packet).mul_f64(FLOWS);
        format!("{}", gap.mul_f64(2.0).max(REQUEST_TIMEOUT))
    },
}];

/// Settings that a search for the best operating point varies.
pub(super) const TUNED: &[Tunable] = &[Tunable {
    setting: TunedSetting::Parameter("alpha"),
    profiles: &[PAPER, CODE, CODE_2018],
    range: "1/32 to 1",
    source: "unverified: ExpressPass §6.1 trades convergence time for wasted credits by alpha, from 1/2 to \
             1/32",
    bounds: |_| Range::Factor(1.0 / 32.0, 1.0),
}];

/// The rule of feedback control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As in the paper.
    Paper,
    /// As in the authors' simulator.
    Code,
}

/// The moment at which a sender stops the credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Directly after its last packet.
    AtLastData,
    /// When a credit arrives and there is no data to send.
    AtWastedCredit,
    /// When as many credits arrived in the last RTT as packets are left, so that the credits in flight may
    /// suffice.
    Early,
}

/// The parameters of ExpressPass.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The rule of feedback control.
    pub variant: Variant,
    /// Whether the credit rate is controlled by feedback.
    pub feedback: bool,
    /// First credit rate over the largest.
    pub alpha: f64,
    /// Number of packets to send from which the first credit rate is `alpha`; 0 for any number.
    pub alpha_packets: u32,
    /// First aggressiveness factor.
    pub w_init: f64,
    /// Smallest aggressiveness factor.
    pub w_min: f64,
    /// Largest aggressiveness factor.
    pub w_max: f64,
    /// Target of the credit loss.
    pub target_loss: f64,
    /// Variation of the gap between credits, as a fraction either way.
    pub jitter: f64,
    /// Whether sizes of credits vary.
    pub random_sizes: bool,
    /// Limit of ports to credits.
    pub limit: CreditLimit,
    /// When the sender stops the credits.
    pub stop: Stop,
    /// Interval of repeated requests and stops.
    pub request_timeout: Span,
    /// Time without data after which a receiver stops.
    pub idle_timeout: Span,
    /// The retransmission timeout.
    pub rto: RtoRule,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible or was set without effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let params = Self {
            variant: if settings.profile() == PAPER { Variant::Paper } else { Variant::Code },
            feedback: settings.flag("feedback"),
            alpha: settings.number("alpha"),
            alpha_packets: settings.count("alpha_packets"),
            w_init: settings.number("w_init"),
            w_min: settings.number("w_min"),
            w_max: settings.number("w_max"),
            target_loss: settings.number("target_loss"),
            jitter: settings.number("jitter"),
            random_sizes: settings.flag("random_sizes"),
            limit: CreditLimit {
                burst: settings.count("credit_burst"),
                queue: settings.count("credit_queue"),
                queue_in_bytes: settings.choice("credit_queue_counts") == BYTES,
            },
            stop: match settings.choice("stop") {
                AT_LAST_DATA => Stop::AtLastData,
                EARLY => Stop::Early,
                _ => Stop::AtWastedCredit,
            },
            request_timeout: settings.time("request_timeout"),
            idle_timeout: settings.time("idle_timeout"),
            rto: RtoRule::from_settings(settings),
        };
        require(params.w_min <= params.w_max, "w_min", "at most w_max", params.w_min)?;
        let inside = (params.w_min..=params.w_max).contains(&params.w_init);
        require(inside, "w_init", "between w_min and w_max", params.w_init)?;
        if !params.feedback {
            let unused = ["alpha", "alpha_packets", "w_init", "w_min", "w_max", "target_loss"];
            settings.without_effect(&unused, "without `feedback`")?;
        }
        if !params.random_sizes {
            settings.without_effect(&["credit_queue_counts"], "without `random_sizes`")?;
        }
        Ok(params)
    }

    /// Returns the first credit rate over the largest, for a flow of this number of packets.
    pub(super) fn first_share(&self, packets: u32) -> f64 {
        if packets >= self.alpha_packets {
            return self.alpha;
        }
        // A request without a number has at least one packet to send.
        self.alpha * f64::from(packets.max(1)) / f64::from(self.alpha_packets)
    }
}
