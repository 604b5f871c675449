//! The example of `docs/adding-an-algorithm.md`: a complete algorithm in one file.

use std::sync::Arc;

use apus_cc::{
    AckEvent, AlgorithmInfo, Allowance, CongestionHeader, FlowInfo, LossEvent, Pacing,
    PacketSizeEvent, ParamDefault, ParamInfo, ParamKind, ProfileInfo, Registered, RtoRule,
    RttEstimator, SendInfo, Sender, SettingError, Settings, Snapshot, TimeoutEvent,
};
use apus_units::{PacketNumber, Span, Time};

/// What the user can set. Every default names its source, or says `deviation:` and why.
const PARAMETERS: &[ParamInfo] = &[ParamInfo {
    name: "decrease",
    kind: ParamKind::Number,
    doc: "factor of the window after a loss",
    defaults: &[ParamDefault {
        profiles: &["classic"],
        value: "0.5",
        source: "Chiu and Jain (1989)",
    }],
}];

/// The parameters, checked; all flows share them.
#[derive(Debug)]
pub struct Params {
    decrease: f64,
    rto: RtoRule,
}

/// The state of one flow.
#[derive(Clone, Debug)]
pub struct Aimd {
    params: Arc<Params>,
    cwnd: f64,
    rtt: RttEstimator,
}

impl Registered for Aimd {
    type Params = Params;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "aimd",
        summary: "adds a packet per RTT, cuts the window on a loss",
        source: "Chiu and Jain, Computer Networks 17 (1989)",
        profiles: &[ProfileInfo { name: "classic", doc: "halves the window" }],
        parameters: PARAMETERS,
    };

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        let decrease = settings.number("decrease");
        if !(decrease > 0.0 && decrease < 1.0) {
            let message = format!("`decrease` must be between 0 and 1, but it is {decrease}");
            return Err(SettingError::at("decrease", message));
        }
        let minimum = Span::from_ms(1);
        let rto = RtoRule { gain: 0.25, multiplier: 2.0, minimum, initial: minimum };
        Ok(Params { decrease, rto })
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self { params, cwnd: 1.0, rtt: RttEstimator::default() }
    }
}

impl Sender for Aimd {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        self.cwnd += f64::from(event.acked_packets) / self.cwnd;
    }

    fn on_loss(&mut self, _: &LossEvent) {
        self.cwnd = (self.cwnd * self.params.decrease).max(1.0);
    }

    fn on_timeout(&mut self, _: &TimeoutEvent) {
        self.cwnd = 1.0;
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.cwnd = event.scaled(self.cwnd);
    }

    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}

    fn allowance(&self) -> Allowance {
        Allowance { window: self.cwnd, pacing: Pacing::AckClocked }
    }

    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd, ..Snapshot::default() }
    }
}

fn flow(settings: &[(&str, &str)]) -> Result<Aimd, SettingError> {
    let mut settings = Settings::read(&Aimd::INFO, None, settings)?;
    Ok(Aimd::new(Arc::new(Aimd::params(&mut settings)?), &FlowInfo::default()))
}

/// Chiu and Jain: one more packet per RTT, a fraction of the window after a loss.
#[test]
fn aimd_adds_one_and_halves() {
    let mut flow = flow(&[]).expect("defaults");
    let (acked_seq, next_seq) = (PacketNumber::new(0), PacketNumber::new(1));
    let ack = AckEvent {
        now: Time::ZERO,
        rtt: Span::from_us(20),
        fabric_delay: Span::from_us(20),
        endpoint_delay: Span::ZERO,
        hops: 1,
        acked_packets: 1,
        marked_packets: 0,
        receiver_level: 0,
        acked_seq,
        next_seq,
        in_flight: 0,
        fields: apus_cc::AlgorithmFields::None,
        telemetry: None,
    };
    flow.on_ack(&ack);
    assert_eq!(flow.allowance().window, 2.0);
    let lost =
        LossEvent { now: Time::ZERO, lost_packets: 1, lost_seq: acked_seq, next_seq, in_flight: 1 };
    flow.on_loss(&lost);
    assert_eq!(flow.allowance().window, 1.0);
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    for (name, value) in [("decrease", "1.5"), ("decrease", "half"), ("decraese", "0.5")] {
        let error = flow(&[(name, value)]).expect_err("refused");
        assert_eq!(error.parameter.as_deref(), Some(name));
    }
}
