//! HPCC's sender half (HPCC Alg. 1).

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::{PacketNumber, Rate, Span};

use super::params::{self, Params};
use super::switch::TelemetryStamp;
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation, EchoTelemetry,
    Fields, FlowInfo, HopTelemetry, LossEvent, Pacing, PacketSizeEvent, ProfileInfo,
    ProfilePackets, ReplaySender, RttEstimator, SendInfo, Sender, SettingError, Settings, Snapshot,
    StateError, StateOverride, SwitchInfo, Telemetry, TimeoutEvent, Tunable,
};

/// The sender half of HPCC. Windows are in wire bytes, since telemetry is.
#[derive(Clone, Debug)]
pub struct Hpcc {
    params: Arc<Params>,
    info: FlowInfo,
    /// `W`, bytes.
    window: f64,
    /// `Wc`, the reference window, bytes.
    reference: f64,
    /// `U`, the smoothed utilisation of the busiest link.
    utilisation: f64,
    /// `incStage`.
    stage: u32,
    last_update_seq: PacketNumber,
    /// `L`: the telemetry of the latest acknowledgement.
    last: Box<Telemetry>,
    rtt: RttEstimator,
}

impl Algorithm for Hpcc {
    type Params = Params;
    type Receiver = EchoTelemetry;
    type Switch = TelemetryStamp;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "hpcc",
        summary: "sets the window from the bytes in flight of each link, which follow from the telemetry that switches add to packets",
        source: "Li et al., HPCC, SIGCOMM 2019",
        profiles: &[
            ProfileInfo { name: params::PAPER, doc: "Algorithm 1" },
            ProfileInfo {
                name: params::BOLT,
                doc: "as the authors of Bolt ran it, with the packet sizes of HPCC's simulator",
            },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;
    const PACKETS: &'static [ProfilePackets] = params::PACKETS;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, info: &FlowInfo) -> Self {
        let first = bytes_in(info.line_rate, params.base_rtt);
        Self {
            params,
            info: *info,
            window: first,
            reference: first,
            utilisation: 1.0,
            stage: 0,
            last_update_seq: PacketNumber::new(0),
            last: Box::default(),
            rtt: RttEstimator::default(),
        }
    }

    fn switch(_: &Arc<Params>, port: &SwitchInfo) -> TelemetryStamp {
        TelemetryStamp::new(port)
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> EchoTelemetry {
        EchoTelemetry::default()
    }
}

/// Bytes that `rate` sends in `span`.
fn bytes_in(rate: Rate, span: Span) -> f64 {
    rate.as_bps() as f64 * span.as_secs_f64() / 8.0
}

impl Hpcc {
    /// HPCC Alg. 1 `MeasureInflight`; `None` if the records cannot be compared.
    fn measure_inflight(&mut self, telemetry: &Telemetry) -> Option<f64> {
        let base_rtt = self.params.base_rtt.as_secs_f64();
        let another_path = telemetry.path() != self.last.path();
        let (new, old) = (telemetry.hops(), self.last.hops());
        if new.is_empty() || new.len() != old.len() || another_path {
            // On the first acknowledgement and after a change of path, earlier telemetry is discarded (§4.1).
            return None;
        }
        let mut busiest = 0.0;
        let mut tau = 0.0;
        for (new, old) in new.iter().zip(old) {
            let Some((u, elapsed)) = link_utilisation(new, old, base_rtt) else { continue };
            if u > busiest {
                (busiest, tau) = (u, elapsed);
            }
        }
        if tau > base_rtt {
            tau = base_rtt;
        }
        let weight = tau / base_rtt;
        self.utilisation = (1.0 - weight) * self.utilisation + weight * busiest;
        Some(self.utilisation)
    }

    /// HPCC Alg. 1 `ComputeWind`.
    fn compute_window(&mut self, utilisation: f64, update_reference: bool) {
        let params = &*self.params;
        let additive = bytes_in(params.additive_rate, params.base_rtt);
        let multiplies = utilisation >= params.eta || self.stage >= params.max_stage;
        let base =
            if multiplies { self.reference / (utilisation / params.eta) } else { self.reference };
        let floor = bytes_in(params.min_rate, params.base_rtt);
        // The flow cannot send faster than its host: its window is at most the first one.
        let ceiling = bytes_in(self.info.line_rate, params.base_rtt);
        let window = base + additive;
        let window = if window > floor { window } else { floor };
        self.window = if window < ceiling { window } else { ceiling };
        if update_reference {
            self.stage = if multiplies { 0 } else { self.stage + 1 };
            self.reference = self.window;
        }
    }
}

/// Returns the normalised bytes in flight of a link between two of its telemetry records, and the time between
/// them in seconds (HPCC Alg. 1 l. 4-6). `None` if no time has passed.
fn link_utilisation(new: &HopTelemetry, old: &HopTelemetry, base_rtt: f64) -> Option<(f64, f64)> {
    let elapsed = new.elapsed_since(old)?.as_secs_f64();
    let rate = new.link_rate.as_bps() as f64;
    let sent = new.sent_since(old).get() as f64 * 8.0 / elapsed;
    let queue = new.queue.min(old.queue).get() as f64 * 8.0;
    Some((queue / (rate * base_rtt) + sent / rate, elapsed))
}

impl Sender for Hpcc {
    /// HPCC Alg. 1 `NewAck`.
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        let Some(telemetry) = event.telemetry else { return };
        if let Some(utilisation) = self.measure_inflight(telemetry) {
            let update = event.acked_seq >= self.last_update_seq;
            self.compute_window(utilisation, update);
            if update {
                self.last_update_seq = event.next_seq;
            }
        }
        *self.last = *telemetry;
    }

    /// HPCC does not react to losses: it runs with PFC (§4).
    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_timeout(&mut self, _: &TimeoutEvent) {}

    #[inline]
    fn on_transmit(&mut self, header: &mut CongestionHeader, _: &SendInfo) {
        header.fields = Fields::TELEMETRY;
    }

    /// The window counts bytes, so it stays the same. HPCC §3.2: it is a window with a pace of `W / T` within
    /// it.
    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.info.payload = event.payload;
        self.info.packet = event.packet;
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let window = self.window / self.info.packet.get() as f64;
        let bps = self.window * 8.0 / self.params.base_rtt.as_secs_f64();
        Allowance { window, pacing: Pacing::Rate(Rate::from_bps(bps as u64)) }
    }

    #[inline]
    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.window / self.info.packet.get() as f64,
            smoothed_rtt: self.rtt.smoothed(),
            ..Snapshot::default()
        }
    }
}

impl ReplaySender for Hpcc {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
