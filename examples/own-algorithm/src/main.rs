//! The command `apus` with an additional algorithm, `peak`, and an additional path policy, `second-chance`.
//! Each port that a data packet passes writes the length of its queue into the packet, unless an earlier queue
//! was longer. The receiver echoes the length. The sender keeps the longest queue of the path near a target.

mod policy;

use std::process::ExitCode;
use std::sync::Arc;

use apus_cc::settings::{POSITIVE, PROPER_FRACTION, number, size};
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, EchoNewest, FIRST_FOREIGN_ID,
    FieldLayout, Fields, FlowInfo, LossEvent, MAX_FIELD_BYTES, Pacing, PacketSizeEvent, ParamInfo,
    PortView, ProfileInfo, ReplaySender, SendInfo, Sender, SettingError, Settings, Snapshot,
    SwitchFeedback, SwitchHalf, SwitchInfo, TimeoutEvent, Verdict,
};
use apus_units::{Bytes, PacketNumber, Span};

fn main() -> ExitCode {
    let policies = [apus::foreign_balancer::<policy::SecondChance>()];
    apus::main_with_balancers([apus::foreign::<Peak>()], policies)
}

const PARAMETERS: &[ParamInfo] = &[
    size("target", POSITIVE, "length of the longest queue to aim at")
        .default("100kB", "deviation: no source; 8 us at 100 Gb/s"),
    number("beta", PROPER_FRACTION, "multiplicative decrease constant")
        .default("0.8", "deviation: no source; as Swift's beta"),
];

/// Four bytes that switches may change, and that an acknowledgement echoes.
const LAYOUT: FieldLayout =
    FieldLayout { id: FIRST_FOREIGN_ID, writable: 4, authenticated: 0, echo: 4 };

fn queue_in(&[a, b, c, d, ..]: &[u8; MAX_FIELD_BYTES]) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

#[derive(Debug)]
struct Params {
    target: Bytes,
    beta: f64,
}

/// The sender half of one flow.
#[derive(Clone, Debug)]
struct Peak {
    params: Arc<Params>,
    cwnd: f64,
    /// Packets below this number left before the latest decrease: they cause no other one.
    decreased_at: PacketNumber,
    rtt: Span,
}

impl Algorithm for Peak {
    type Params = Params;
    type Receiver = EchoNewest;
    type Switch = PeakPort;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "peak",
        summary: "AIMD on the longest queue of the path against a target",
        source: "none; the example of docs/adding-an-algorithm.md",
        profiles: &[ProfileInfo { name: "example", doc: "the only one" }],
        parameters: PARAMETERS,
    };
    const FIELDS: Option<FieldLayout> = Some(LAYOUT);
    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Ok(Params { target: settings.size("target"), beta: settings.number("beta") })
    }
    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        // 10 packets: RFC 6928 §2.
        Self { params, cwnd: 10.0, decreased_at: PacketNumber::default(), rtt: Span::ZERO }
    }
    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> EchoNewest {
        EchoNewest::new(LAYOUT)
    }
    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> PeakPort {
        PeakPort
    }
}

impl Peak {
    /// Decreases the window, once per round trip: packet `seq` met congestion, `next` leaves next.
    fn decrease(&mut self, factor: f64, seq: PacketNumber, next: PacketNumber) {
        if seq >= self.decreased_at {
            (self.cwnd, self.decreased_at) = ((self.cwnd * factor).max(1.0), next);
        }
    }
}

impl Sender for Peak {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt = event.rtt;
        let queue = f64::from(event.fields.as_echo(LAYOUT.id).map_or(0, queue_in));
        let target = self.params.target.get() as f64;
        if queue < target {
            self.cwnd += f64::from(event.acked_packets) / self.cwnd;
        } else {
            let factor = 1.0 - self.params.beta * (queue - target) / queue;
            self.decrease(factor, event.acked_seq, event.next_seq);
        }
    }
    fn on_loss(&mut self, event: &LossEvent) {
        self.decrease(0.5, event.lost_seq, event.next_seq);
    }
    fn on_timeout(&mut self, event: &TimeoutEvent) {
        (self.cwnd, self.decreased_at) = (1.0, event.next_seq);
    }
    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.cwnd = event.scaled(self.cwnd);
    }
    fn on_transmit(&mut self, header: &mut CongestionHeader, _: &SendInfo) {
        header.fields = Fields::data(LAYOUT.id, [0; MAX_FIELD_BYTES]);
    }
    fn allowance(&self) -> Allowance {
        Allowance { window: self.cwnd, pacing: Pacing::AckClocked }
    }
    fn rto(&self) -> Span {
        (self.rtt + self.rtt).max(Span::from_ms(10))
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd, ..Snapshot::default() }
    }
}

impl ReplaySender for Peak {}

/// The switch half of one class of a port; it has no state.
#[derive(Clone, Copy, Debug)]
struct PeakPort;

impl SwitchHalf for PeakPort {
    fn on_enqueue(&mut self, header: &mut CongestionHeader, _: Bytes, port: &PortView) -> Verdict {
        if let Some(field) = header.fields.as_data_mut(LAYOUT.id) {
            let queue = u32::try_from(port.queue_bytes.get()).unwrap_or(u32::MAX);
            let longest = queue.max(queue_in(field));
            field[..4].copy_from_slice(&longest.to_be_bytes());
        }
        Verdict::Forward
    }
    /// `Signals`: senders react to losses if no switch writes the field.
    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Signals
    }
}
