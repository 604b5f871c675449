//! The parameters of RCCC, each with its source.

use alloc::format;
use alloc::sync::Arc;

use apus_cc::settings::{
    AT_LEAST_1, FRACTION, POSITIVE, ParamInfo, SettingError, Settings, choice, count, flag, number,
    require, time,
};
use apus_cc::{Algorithm, AlgorithmInfo, Derivation, FlowInfo};
use apus_units::Span;

use crate::nscc::{self, Nscc};

/// Credits alone.
pub(super) const CREDITS: &str = "credits";
/// Credits, and NSCC's window.
pub(super) const BOTH: &str = "nscc";

const NO_WINDOW: &str = "none";
const NSCC: &str = "nscc";

/// Every parameter.
#[rustfmt::skip]
pub(super) const TABLE: &[ParamInfo] = &[
    time("network_rtt", POSITIVE, "RTT of a full packet and its acknowledgement over the longest \
        path without queues")
        .default("12us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: the reference network"),
    number("window_factor", AT_LEAST_1, "largest credit of a flow, which is also its initial credit, as a \
        multiple of line rate times RTT")
        .default("1.5", "uet-htsim 40ccb05, `maxwnd`"),
    number("pace", FRACTION, "fraction of its line rate at which a host grants credit")
        .default("0.99", "uet-htsim 40ccb05, `main_uec.cpp`"),
    count("grant_packets", AT_LEAST_1, "credit granted per turn, in payloads of full packets")
        .default("4", "uet-htsim 40ccb05, `_mtus_per_pull`"),
    choice("window", &[NO_WINDOW, NSCC], "\"nscc\": the congestion window of NSCC limits the packets in flight \
        too; packets trimmed at the last hop do not reduce this window")
        .default_of(CREDITS, "none", "uet-htsim 40ccb05, `-receiver_cc_only`")
        .default_of(BOTH, "nscc", "uet-htsim 40ccb05, `-sender_cc -receiver_cc`; unverified: UE Specification 1.0 \
            §3.6.13.5"),
    time("target_queueing", POSITIVE, "with `window = \"nscc\"`: queueing delay above which marked packets shrink the window")
        .default("9us", "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13: 0.75 network_rtt with trimming"),
    flag("regulated", "whether marks, and trims before the last hop, lower the rate of grants: for networks \
        with less capacity inside than at hosts")
        .default("false", "uet-htsim 40ccb05, `_oversubscribed_cc`"),
    time("rto", POSITIVE, "retransmission timeout, without back-off; after this time, a sender without credit \
        requests credit")
        .default("100us", "uet-htsim 40ccb05: 15 us plus the drain time of 6 full queues"),
];

/// The rules for the parameters that depend on the network.
pub(super) const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "network_rtt",
        profiles: &[CREDITS, BOTH],
        rule: "the unloaded RTT between the NICs of the longest path",
        source: "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13",
        value: |network, _| format!("{}", network.fabric_rtt + network.fabric_jitter),
    },
    Derivation {
        parameter: "target_queueing",
        profiles: &[BOTH],
        rule: "0.75 network_rtt if switches trim, otherwise network_rtt",
        source: "uet-htsim 40ccb05; unverified: UE Specification 1.0 §3.6.13",
        value: |network, settings| {
            let part = if network.trims { 0.75 } else { 1.0 };
            format!("{}", settings.time("network_rtt").mul_f64(part))
        },
    },
    Derivation {
        parameter: "rto",
        profiles: &[CREDITS, BOTH],
        rule: "15 us plus 6 times the time that a BDP, rounded up to whole packets, takes on the path; 5 BDPs \
            if switches do not trim",
        source: "uet-htsim 40ccb05: a queue with trimming holds one BDP, a queue without trimming holds 5 BDP",
        value: |network, settings| nscc::rto_of(network, settings),
    },
];

/// The parameters of RCCC.
#[derive(Clone, Debug)]
pub struct Params {
    /// RTT of the longest path.
    pub network_rtt: Span,
    /// Maximum credit over line rate times RTT.
    pub window_factor: f64,
    /// Fraction of the line rate at which a host grants.
    pub pace: f64,
    /// Payloads per turn.
    pub grant_packets: u32,
    /// The parameters of NSCC's window, if it limits the flow too.
    pub(super) window: Option<Arc<nscc::Params>>,
    /// Whether congestion within the network lowers the rate of grants.
    pub regulated: bool,
    /// The retransmission timeout.
    pub rto: Span,
}

impl Params {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// If a value is impossible, or has no effect.
    pub fn from_settings(settings: &mut Settings) -> Result<Self, SettingError> {
        let network_rtt = settings.time("network_rtt");
        let window_factor = settings.number("window_factor");
        let rto = settings.time("rto");
        let window = if settings.choice("window") == NSCC {
            let target = settings.time("target_queueing");
            Some(Arc::new(window_params(network_rtt, target, window_factor, rto)?))
        } else {
            settings.without_effect(&["target_queueing"], "unless `window` is \"nscc\"")?;
            None
        };
        require(rto >= network_rtt, "rto", "at least network_rtt", rto)?;
        Ok(Self {
            network_rtt,
            window_factor,
            pace: settings.number("pace"),
            grant_packets: settings.count("grant_packets"),
            window,
            regulated: settings.flag("regulated"),
            rto,
        })
    }

    /// Returns the maximum credit of a flow, in wire bytes (uet-htsim, `maxwnd`).
    pub(super) fn most(&self, flow: &FlowInfo) -> u64 {
        let bdp = flow.line_rate.bytes_in(self.network_rtt).get();
        ((bdp as f64 * self.window_factor) as u64).max(flow.packet.get())
    }
}

/// NSCC's parameters for switches that trim, with its other defaults.
fn window_params(
    network_rtt: Span,
    target: Span,
    window_factor: f64,
    rto: Span,
) -> Result<nscc::Params, SettingError> {
    static INFO: AlgorithmInfo = <Nscc as Algorithm>::INFO;
    let values = [
        ("network_rtt", format!("{network_rtt}")),
        ("target_queueing", format!("{target}")),
        ("window_factor", format!("{window_factor}")),
        ("rto", format!("{rto}")),
    ];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    nscc::Params::from_settings(&mut Settings::read(&INFO, None, &values)?)
}
