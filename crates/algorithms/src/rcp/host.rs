//! RCP's sender half: paces at the rate that the receiver returned.

use alloc::sync::Arc;

use apus_units::{Rate, Span, Time};

use super::header::RcpFields;
use super::params::{self, Params};
use super::switch::RcpPort;
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation, EchoNewest,
    FieldLayout, FlowInfo, LossEvent, Pacing, ProfileInfo, ReplaySender, RttEstimator, SendInfo,
    Sender, SettingError, Settings, Snapshot, StateError, StateOverride, SwitchInfo, TimeoutEvent,
    Tunable,
};

/// The sender half of RCP.
#[derive(Clone, Debug)]
pub struct Rcp {
    params: Arc<Params>,
    /// `R_p` as the receiver returned it; `None` while the flow requests it with one packet, as
    /// RCP's SYN does.
    rate: Option<Rate>,
    /// Time at which the rate arrived.
    told_at: Time,
    rtt: RttEstimator,
}

impl Algorithm for Rcp {
    type Params = Params;
    type Receiver = EchoNewest;
    type Switch = RcpPort;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "rcp",
        summary: "paces at the smallest of the rates that the ports on its path offer to every flow",
        source: "Dukkipati et al., Processor Sharing Flows in the Internet, IWQoS 2005; ns-2 rcp.cc",
        profiles: &[ProfileInfo { name: params::PAPER, doc: "with the constants of ns-2" }],
        parameters: params::TABLE,
    };
    const FIELDS: Option<FieldLayout> = Some(super::header::LAYOUT);
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self { params, rate: None, told_at: Time::ZERO, rtt: RttEstimator::default() }
    }

    fn switch(params: &Arc<Params>, port: &SwitchInfo) -> RcpPort {
        RcpPort::new(params.port, port.packet)
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> EchoNewest {
        EchoNewest::new(super::header::LAYOUT)
    }
}

impl Rcp {
    /// The pacing rate; `None` before the first answer.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }
}

impl Sender for Rcp {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        if let Some(rate) = super::header::echoed_rate(&event.fields) {
            self.rate = Some(rate);
            self.told_at = event.now;
        }
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_timeout(&mut self, _: &TimeoutEvent) {
        // deviation: RCP does not define this. The flow requests a rate as at its start, since no answer has
        // arrived for a long time.
        self.rate = None;
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        let smoothed = self.rtt.smoothed();
        // After an idle RTT the rate is outdated: other flows may have started. RCP's flows end instead, and
        // request a rate when they begin.
        let old = info.now.since(self.told_at);
        if info.in_flight == 0 && smoothed.is_some_and(|rtt| old > rtt) {
            self.rate = None;
        }
        header.fields = RcpFields::new(smoothed).fields();
    }

    fn allowance(&self) -> Allowance {
        match self.rate {
            Some(rate) => Allowance { window: f64::INFINITY, pacing: Pacing::Rate(rate) },
            None => Allowance { window: 1.0, pacing: Pacing::AckClocked },
        }
    }

    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        let cwnd = self.allowance().window;
        Snapshot { cwnd, smoothed_rtt: self.rtt.smoothed(), ..Snapshot::default() }
    }
}

impl ReplaySender for Rcp {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
