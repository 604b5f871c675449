//! Swift's sender half (Swift Alg. 1, §3.2-3.6).

use alloc::sync::Arc;

use apus_units::{Span, Time};

use super::config::{Config, HostSignal, Params, Rules, WhenToPace};
use super::params;
use super::path::Path;
use super::window::Window;
use apus_cc::rtt::ewma;
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation,
    FlowInfo, LossEvent, Pacing, PacketSizeEvent, Plain, ReplaySender, RttEstimator, SendInfo,
    Sender, SettingError, Settings, Snapshot, StateError, StateField, StateOverride, SwitchInfo,
    TimeoutEvent, Tunable,
};

/// The sender half of Swift: one per flow, 96 bytes on a 64-bit machine; the parameters are
/// shared.
#[derive(Clone, Debug)]
pub struct Swift {
    params: Arc<Params>,
    /// Swift §3.3 `fcwnd`; the only window if delays are not decomposed.
    fabric: Window,
    /// Swift §3.3 `ecwnd`, or Falcon's receiver-buffer window; otherwise always at its ceiling.
    endpoint: Window,
    /// Average of the endpoint delay in picoseconds; NaN before a sample.
    endpoint_delay: f64,
    /// Target delay at the latest acknowledgement in picoseconds; NaN before the first one.
    target: f64,
    /// The latest raw end-to-end RTT; `base_target` before a sample.
    last_rtt: Span,
    smoothed_rtt: RttEstimator,
    path: Path,
    /// Alg. 1 `retransmit_cnt`: timeouts since the last sign of progress, shared by the windows.
    retransmit_cnt: u32,
}

impl Algorithm for Swift {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "swift",
        summary: "AIMD on the delay, relative to a target that scales with hops and flows",
        source: "Kumar et al., Swift, SIGCOMM 2020; profile falcon: falcon-transport/isekai v1.1",
        profiles: params::PROFILES,
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::new(Config::from_settings(settings)?)
    }

    fn reads_receiver_level(params: &Params) -> bool {
        matches!(params.config.host, HostSignal::ReceiverBuffer { .. })
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        let config = &params.config;
        let endpoint = match config.host {
            HostSignal::EndToEnd => config.max_cwnd,
            HostSignal::EndpointDelay { .. } | HostSignal::ReceiverBuffer { .. } => {
                config.initial_cwnd
            }
        };
        Self {
            fabric: Window::new(config.initial_cwnd),
            endpoint: Window::new(endpoint),
            endpoint_delay: f64::NAN,
            target: f64::NAN,
            last_rtt: config.target.base_target,
            smoothed_rtt: RttEstimator::default(),
            path: Path::default(),
            retransmit_cnt: 0,
            params,
        }
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> Acknowledging {
        Acknowledging
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> Plain {
        Plain
    }
}

impl Swift {
    /// The smaller of the two windows (Swift §3.3).
    #[inline]
    fn cwnd(&self) -> f64 {
        let (fabric, endpoint) = (self.fabric.packets(), self.endpoint.packets());
        if fabric < endpoint { fabric } else { endpoint }
    }

    /// Alg. 1 l. 29-32: the delay between two packets, if they are paced.
    #[inline]
    fn pacing_delay(&self) -> Option<Span> {
        let (cwnd, config) = (self.cwnd(), &self.params.config);
        let paced = cwnd < 1.0 || config.pacing == WhenToPace::Always;
        paced.then(|| {
            Span::from_ps_f64(self.last_rtt.as_ps_f64() / cwnd).min(config.max_pacing_delay)
        })
    }

    /// The RTT of the guard when a retransmission causes a decrease, and not an acknowledgement.
    fn guard_rtt(&self) -> Span {
        match self.params.config.rules {
            Rules::Paper => self.last_rtt,
            Rules::Falcon => self.smoothed_rtt.smoothed().unwrap_or(self.last_rtt),
        }
    }

    /// Cuts or collapses the windows that react to losses.
    fn reduce(&mut self, now: Time, by: fn(&mut Window, &super::window::Aimd, Time, Span)) {
        let rtt = self.guard_rtt();
        by(&mut self.fabric, &self.params.aimd, now, rtt);
        if let HostSignal::EndpointDelay { .. } = self.params.config.host {
            by(&mut self.endpoint, &self.params.endpoint_aimd, now, rtt);
        }
    }
}

impl Sender for Swift {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let params = &*self.params;
        let (config, aimd) = (&params.config, &params.aimd);
        let at = (event.now, event.rtt);
        let acked = f64::from(event.acked_packets);
        self.last_rtt = event.rtt;
        self.smoothed_rtt.update(&config.rto, event.rtt);
        // Alg. 1 l. 5-6; the target follows the window before this update (§3.5).
        self.retransmit_cnt = 0;
        let target = params.target.delay_ps(self.fabric.packets(), event.hops);
        self.target = target;
        let delay = match config.host {
            HostSignal::EndToEnd => event.rtt,
            HostSignal::EndpointDelay { .. } | HostSignal::ReceiverBuffer { .. } => {
                event.fabric_delay
            }
        };
        let delay = delay.as_ps_f64();
        if let Some(change) = &config.path_change {
            let (fabric, endpoint) = (self.fabric.packets(), self.endpoint.packets());
            let cwnd = if fabric < endpoint { fabric } else { endpoint };
            self.path.on_ack(change, (delay, target), event.acked_packets, cwnd);
        }
        self.fabric.on_delay(aimd, at, (delay, target), acked);
        match config.host {
            HostSignal::EndToEnd => {}
            HostSignal::EndpointDelay { target, gain, .. } => {
                let sample = event.endpoint_delay.as_ps_f64();
                self.endpoint_delay = ewma(self.endpoint_delay, gain, sample);
                let signal = (self.endpoint_delay, target.as_ps_f64());
                self.endpoint.on_delay(&params.endpoint_aimd, at, signal, acked);
            }
            HostSignal::ReceiverBuffer { target_level, increase } => {
                let signal = (f64::from(event.receiver_level), f64::from(target_level));
                let increase = if event.acked_packets == 0 { 0.0 } else { increase };
                self.endpoint.on_level(aimd, at, signal, increase);
            }
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        // Alg. 1 l. 22-25.
        self.retransmit_cnt = 0;
        if self.params.config.max_decrease_on_loss {
            self.reduce(event.now, Window::cut);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        // §3.6: the timeout is that of the flow. If each packet has its own, the timeouts of one flight count
        // once.
        if event.is_same_flight && self.params.config.rules == Rules::Paper {
            return;
        }
        // Alg. 1 l. 15-21.
        self.retransmit_cnt = self.retransmit_cnt.saturating_add(1);
        let last_resort = self.retransmit_cnt >= self.params.config.retx_reset_threshold;
        match self.params.config.rules {
            Rules::Paper if last_resort => self.reduce(event.now, Window::collapse),
            Rules::Paper => self.reduce(event.now, Window::cut),
            Rules::Falcon => {
                // The guard covers the collapse as well. Timeouts between the first one and the collapse do not
                // change the window.
                if !self.fabric.can_decrease(event.now, self.guard_rtt()) {
                    return;
                }
                if self.retransmit_cnt == 1 {
                    self.reduce(event.now, Window::cut);
                } else if last_resort {
                    self.reduce(event.now, Window::collapse);
                }
            }
        }
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.fabric.scale(&self.params.aimd, event);
        if self.params.config.host != HostSignal::EndToEnd {
            self.endpoint.scale(&self.params.endpoint_aimd, event);
        }
    }

    #[inline]
    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}

    #[inline]
    fn allowance(&self) -> Allowance {
        let pacing = self.pacing_delay().map_or(Pacing::AckClocked, Pacing::Delay);
        Allowance { window: self.cwnd(), pacing }
    }

    #[inline]
    fn rto(&self) -> Span {
        let gap = match self.params.config.rules {
            Rules::Paper => Span::ZERO,
            Rules::Falcon => self.pacing_delay().unwrap_or(Span::ZERO),
        };
        self.smoothed_rtt.rto(&self.params.config.rto, gap)
    }

    fn path_label(&self) -> u32 {
        self.path.label()
    }

    /// `endpoint_cwnd` is the receiver-buffer window in the profile `falcon`.
    fn snapshot(&self) -> Snapshot {
        let decomposed = self.params.config.host != HostSignal::EndToEnd;
        Snapshot {
            cwnd: self.cwnd(),
            fabric_cwnd: Some(self.fabric.packets()),
            endpoint_cwnd: decomposed.then(|| self.endpoint.packets()),
            target_delay: (!self.target.is_nan()).then(|| Span::from_ps_f64(self.target)),
            pacing_delay: self.pacing_delay(),
            smoothed_rtt: self.smoothed_rtt.smoothed(),
        }
    }
}

impl ReplaySender for Swift {
    fn target_delay(&self, hops: u8) -> Option<Span> {
        Some(Span::from_ps_f64(self.params.target.delay_ps(self.fabric.packets(), hops)))
    }

    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        state.check(&[
            StateField::FabricCwnd,
            StateField::EndpointCwnd,
            StateField::LastDecrease,
            StateField::SmoothedRtt,
            StateField::Timeouts,
        ])?;
        if state.endpoint_cwnd.is_some() && self.params.config.host == HostSignal::EndToEnd {
            let reason = "is not part of the state while `decompose` is false";
            return Err(StateError { field: StateField::EndpointCwnd, reason });
        }
        self.fabric.set(state.fabric_cwnd, state.last_decrease);
        self.endpoint.set(state.endpoint_cwnd, state.last_decrease);
        if let Some(ps) = state.smoothed_rtt_ps {
            self.smoothed_rtt.set_ps(ps);
        }
        self.retransmit_cnt = state.timeouts.unwrap_or(self.retransmit_cnt);
        Ok(())
    }

    fn set_latest_rtt(&mut self, rtt: Span) {
        self.last_rtt = rtt;
    }
}
