//! TIMELY's sender half (TIMELY Alg. 1, ECN or Delay Alg. 2).

use alloc::sync::Arc;

use apus_units::{Bytes, Rate, Span, Time};

use super::params::{self, Params, Variant};
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, Backoff, CongestionHeader,
    Derivation, FlowInfo, LossEvent, Pacing, PacketSizeEvent, Plain, ProfileInfo, ReplaySender,
    RttEstimator, SendInfo, Sender, SettingError, Settings, Snapshot, StateError, StateOverride,
    SwitchInfo, TimeoutEvent, Tunable,
};

/// Steps of hyperactive increase (TIMELY §4.3, Alg. 1: N = 5).
const HAI_STEPS: f64 = 5.0;

/// The sender half of TIMELY: a rate, without a window. The RTT is measured between NICs, whose
/// timestamps TIMELY reads (TIMELY §3).
#[derive(Clone, Debug)]
pub struct Timely {
    params: Arc<Params>,
    /// Bits per second.
    rate: f64,
    line_rate: f64,
    /// `prev_rtt`, seconds; NaN before the first completion event.
    prev_rtt: f64,
    /// `rtt_diff`: the average difference between successive RTTs, seconds.
    rtt_diff: f64,
    last_change: Time,
    /// Packets acknowledged since the last completion event.
    acked: u32,
    /// Number of packets of a segment.
    segment: u32,
    /// Completion events in a row without a positive gradient.
    calm: u32,
    /// Wire bytes of a packet.
    packet: u32,
    rtt: RttEstimator,
    backoff: Backoff,
}

impl Algorithm for Timely {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "timely",
        summary: "adapts a rate to the gradient of the RTT while the RTT is between two thresholds",
        source: "Mittal et al., TIMELY, SIGCOMM 2015; profile patched: Zhu et al., ECN or Delay, \
                 CoNEXT 2016",
        profiles: &[
            ProfileInfo { name: params::PAPER, doc: "TIMELY's Algorithm 1" },
            ProfileInfo {
                name: params::PATCHED,
                doc: "Patched TIMELY: the decrease depends on the distance from a target RTT",
            },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, flow: &FlowInfo) -> Self {
        let line_rate = flow.line_rate.as_bps() as f64;
        Self {
            rate: (line_rate * params.initial_share).max(params.min_rate.as_bps() as f64),
            line_rate,
            prev_rtt: f64::NAN,
            rtt_diff: 0.0,
            last_change: Time::ZERO,
            acked: 0,
            segment: packets_in(params.segment, flow.payload),
            calm: 0,
            packet: u32::try_from(flow.packet.get()).unwrap_or(u32::MAX),
            rtt: RttEstimator::default(),
            backoff: Backoff::default(),
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

/// Returns the number of packets of this payload that a segment takes.
fn packets_in(segment: Bytes, payload: Bytes) -> u32 {
    u32::try_from(segment.get().div_ceil(payload.get().max(1))).unwrap_or(u32::MAX)
}

/// ECN or Delay §4.3, `w(g)`: weight of the decrease against the increase at gradient `g`.
#[must_use]
pub fn patched_weight(gradient: f64) -> f64 {
    (2.0 * gradient + 0.5).clamp(0.0, 1.0)
}

impl Timely {
    /// The rate in bits per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Handles a completion event; `new_rtt` is in seconds.
    fn complete(&mut self, new_rtt: f64) {
        if self.prev_rtt.is_nan() {
            self.prev_rtt = new_rtt;
        }
        let params = &*self.params;
        let diff = new_rtt - self.prev_rtt;
        self.prev_rtt = new_rtt;
        self.rtt_diff = (1.0 - params.alpha) * self.rtt_diff + params.alpha * diff;
        let gradient = self.rtt_diff / params.min_rtt.as_secs_f64();
        self.calm = if gradient <= 0.0 { self.calm.saturating_add(1) } else { 0 };
        let delta = params.delta.as_bps() as f64;
        let (t_low, t_high) = (params.t_low.as_secs_f64(), params.t_high.as_secs_f64());
        let rate = if new_rtt < t_low {
            self.rate + delta
        } else if new_rtt > t_high {
            self.rate * (1.0 - params.beta * (1.0 - t_high / new_rtt))
        } else {
            match params.variant {
                Variant::Paper { hai_thresh } => {
                    if gradient <= 0.0 {
                        let steps = if self.calm >= hai_thresh { HAI_STEPS } else { 1.0 };
                        self.rate + steps * delta
                    } else {
                        self.rate * (1.0 - params.beta * gradient)
                    }
                }
                Variant::Patched { t_ref } => {
                    let t_ref = t_ref.as_secs_f64();
                    let weight = patched_weight(gradient);
                    let error = (new_rtt - t_ref) / t_ref;
                    delta * (1.0 - weight) + self.rate * (1.0 - params.beta * weight * error)
                }
            }
        };
        self.rate = rate.max(params.min_rate.as_bps() as f64).min(self.line_rate);
    }
}

impl Sender for Timely {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        self.backoff.on_ack();
        self.acked = self.acked.saturating_add(event.acked_packets);
        // ECN or Delay eq. 24: the rate changes once per segment, and at most once per D_minRTT.
        let early = event.now.since(self.last_change) < self.params.min_rtt;
        if self.acked < self.segment || early {
            return;
        }
        self.acked = 0;
        self.last_change = event.now;
        self.complete(event.fabric_delay.as_secs_f64());
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.backoff.on_timeout(event);
    }

    #[inline]
    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.segment = packets_in(self.params.segment, event.payload);
        self.packet = u32::try_from(event.packet.get()).unwrap_or(u32::MAX);
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.rate as u64);
        Allowance { window: f64::INFINITY, pacing: Pacing::Rate(rate) }
    }

    #[inline]
    fn rto(&self) -> Span {
        // A slow flow gets acknowledgements rarely, so the timeout includes the gap between its packets.
        let packet = Bytes::new(u64::from(self.packet));
        let gap = Rate::from_bps(self.rate as u64).serialization_time(packet);
        self.backoff.applied(self.rtt.rto(&self.params.rto, gap), &self.params.rto)
    }

    fn snapshot(&self) -> Snapshot {
        let packet = Bytes::new(u64::from(self.packet));
        let gap = Rate::from_bps(self.rate as u64).serialization_time(packet);
        let rtt = self.rtt.smoothed();
        let cwnd = rtt.map_or(0.0, |rtt| rtt.as_secs_f64() / gap.as_secs_f64());
        Snapshot { cwnd, pacing_delay: Some(gap), smoothed_rtt: rtt, ..Snapshot::default() }
    }
}

impl ReplaySender for Timely {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
