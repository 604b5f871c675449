//! NSCC's sender half.

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::Span;

use super::params::{self, Params};
use super::window::Window;
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation,
    Ecn, FlowInfo, LossEvent, Pacing, PacketSizeEvent, Plain, ProfileInfo, ReplaySender, SendInfo,
    Sender, SettingError, Settings, Snapshot, SwitchInfo, TimeoutEvent, TrimEvent,
};

/// The sender half of NSCC. The RTT is that between the NICs. Packet numbers are never reused, so every
/// RTT is valid.
///
/// Losses that the transport concludes without a timeout change nothing: packets may arrive in any order
/// (uet-htsim 40ccb05, `runSleek`).
#[derive(Clone, Debug)]
pub struct Nscc {
    params: Arc<Params>,
    window: Box<Window>,
}

impl Algorithm for Nscc {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "nscc",
        summary: "starts at line rate, then reacts to marks, queueing delay and trimmed packets",
        source: "uet-htsim 40ccb05, after the Ultra Ethernet Specification 1.0 (2025) §3.6.13; profile median: \
                 MNSCC (arXiv 2509.07907)",
        profiles: &[
            ProfileInfo { name: params::TRIMMING, doc: "for switches that trim packets" },
            ProfileInfo { name: params::DROP_TAIL, doc: "for switches that drop packets" },
            ProfileInfo {
                name: params::MEDIAN,
                doc: "MNSCC: the median of the latest delays, for switches that drop packets",
            },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, flow: &FlowInfo) -> Self {
        let window = Box::new(Window::new(&params, flow));
        Self { params, window }
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> Acknowledging {
        Acknowledging
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> Plain {
        Plain
    }

    fn reads_receiver_level(params: &Params) -> bool {
        params.penalty.is_some()
    }
}

impl Nscc {
    /// Handles a packet that the receiver's last port trimmed: the receiver's credits handle that port (RCCC).
    pub(crate) fn on_trim_at_last_hop(&mut self, event: &TrimEvent) {
        let bytes = event.payload.get() + self.window.header;
        self.window.on_trim_at_last_hop(&self.params, bytes);
    }

    fn packets_to_bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * self.window.packet
    }
}

impl Sender for Nscc {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let headers = u64::from(event.acked_packets) * self.window.header;
        let bytes = event.acked_bytes.get() + headers;
        let in_flight = self.packets_to_bytes(event.in_flight);
        let drawn_by = (event.fabric_delay, event.echo_marked);
        if let Some(penalty) = &self.params.penalty {
            let level = penalty.of(event.receiver_level);
            self.window.penalise(penalty, level, (bytes, in_flight));
        }
        self.window.on_ack(&self.params, event.now, drawn_by, (bytes, in_flight));
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_trim(&mut self, event: &TrimEvent) {
        let bytes = event.payload.get() + self.window.header;
        let in_flight = self.packets_to_bytes(event.in_flight) + bytes;
        self.window.on_trim(&self.params, event.now, bytes, in_flight);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let bytes = self.packets_to_bytes(event.lost_packets);
        self.window.on_lost(bytes);
    }

    #[inline]
    fn on_transmit(&mut self, header: &mut CongestionHeader, _: &SendInfo) {
        header.ecn = Ecn::Capable;
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.window.set_packet(&self.params, event.payload, event.packet);
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window.packets(), pacing: Pacing::AckClocked }
    }

    #[inline]
    fn rto(&self) -> Span {
        self.params.rto
    }

    /// `target_delay` is the base RTT plus the target of the queueing delay.
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.window.packets(),
            // As the target of an RTT, not of the queueing delay alone.
            target_delay: Some(self.window.base() + self.params.target),
            ..Snapshot::default()
        }
    }
}

impl ReplaySender for Nscc {}
