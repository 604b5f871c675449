//! The sender half of the constant window or rate.

use alloc::sync::Arc;

use apus_units::Span;

use super::params::{self, Params};
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, FlowInfo,
    LossEvent, Plain, ProfileInfo, ReplaySender, RttEstimator, SendInfo, Sender, SettingError,
    Settings, Snapshot, StateError, StateOverride, SwitchInfo, TimeoutEvent, Tunable,
};

/// A sender with a constant window or rate.
#[derive(Clone, Debug)]
pub struct Constant {
    params: Arc<Params>,
    rtt: RttEstimator,
}

impl Algorithm for Constant {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "constant",
        summary: "a constant window or rate, without congestion control, for tests and as a baseline",
        source: "none",
        profiles: &[
            ProfileInfo { name: params::CONSTANT, doc: "a window of packets, clocked by ACKs" },
            ProfileInfo { name: params::RATE, doc: "a rate, independent of the packets in flight" },
        ],
        parameters: params::TABLE,
    };
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self { params, rtt: RttEstimator::default() }
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> Acknowledging {
        Acknowledging
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> Plain {
        Plain
    }
}

impl Sender for Constant {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_timeout(&mut self, _: &TimeoutEvent) {}

    #[inline]
    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}

    #[inline]
    fn allowance(&self) -> Allowance {
        self.params.allowance
    }

    #[inline]
    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.params.allowance.window,
            smoothed_rtt: self.rtt.smoothed(),
            ..Snapshot::default()
        }
    }
}

impl ReplaySender for Constant {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
