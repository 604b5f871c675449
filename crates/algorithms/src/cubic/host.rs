//! CUBIC's sender half (RFC 9438 §4).

use alloc::sync::Arc;

use apus_units::{PacketNumber, Span, Time};

use super::curve::Curve;
use super::params::{self, Params};
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Ecn, FlowInfo,
    LossEvent, Pacing, PacketSizeEvent, Plain, ProfileInfo, ReplaySender, RttEstimator, SendInfo,
    Sender, SettingError, Settings, Snapshot, StateError, StateOverride, SwitchInfo, TimeoutEvent,
    Tunable,
};

/// Smallest slow-start threshold, and smallest window after a loss, in packets (RFC 9438 Fig. 5).
const MIN_SSTHRESH: f64 = 2.0;
/// The window after a timeout (RFC 5681 §3.1), and the smallest after a mark (RFC 9438 Fig. 5).
const LOSS_WINDOW: f64 = 1.0;
/// Maximum growth factor of the window per window of data (RFC 9438 §4.2, `target`).
const MAX_GROWTH: f64 = 1.5;

/// The sender half of CUBIC. Segments of the RFC are packets here, and its sequence numbers are packet
/// numbers.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: Arc<Params>,
    /// Packets.
    cwnd: f64,
    /// Slow-start threshold in packets (RFC 5681 §3.1).
    ssthresh: f64,
    /// `W_max`: the window before the latest reduction, or less by fast convergence; 0 if the next
    /// stage is to start at its plateau.
    w_max: f64,
    /// `cwnd_prior`: the window before the latest reduction.
    cwnd_prior: f64,
    stage: Stage,
    /// Time up to which time has been counted on the curve: the latest acknowledgement, or the end of an idle
    /// period.
    counted_to: Time,
    /// Losses and marks of packets before this one belong to the congestion event already answered.
    recover: PacketNumber,
    rtt: RttEstimator,
}

/// The growth of the window.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Slow start, recovery, or congestion avoidance that has not begun.
    None,
    /// Congestion avoidance.
    Avoidance {
        curve: Curve,
        /// `t` in seconds: time since the stage began during which the window limited the flow.
        t: f64,
        /// `W_est`: the window of a Reno flow.
        w_est: f64,
    },
}

impl Algorithm for Cubic {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "cubic",
        summary: "grows the window along a cubic curve of the time since the last loss",
        source: "RFC 9438: CUBIC for Fast and Long-Distance Networks (2023)",
        profiles: &[ProfileInfo { name: params::RFC9438, doc: "as in RFC 9438" }],
        parameters: params::TABLE,
    };
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self {
            cwnd: params.initial_cwnd,
            // RFC 5681 §3.1: "the initial value of ssthresh SHOULD be set arbitrarily high".
            ssthresh: params.max_cwnd,
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: Stage::None,
            counted_to: Time::ZERO,
            recover: PacketNumber::new(0),
            rtt: RttEstimator::default(),
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

impl Cubic {
    /// The slow-start threshold in packets (RFC 5681 §3.1).
    #[must_use]
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// The curve that congestion avoidance follows, once it has begun.
    #[must_use]
    pub fn curve(&self) -> Option<Curve> {
        match self.stage {
            Stage::None => None,
            Stage::Avoidance { curve, .. } => Some(curve),
        }
    }

    /// `W_max` in packets (RFC 9438 §4.1.2).
    #[must_use]
    pub fn w_max(&self) -> f64 {
        self.w_max
    }

    /// Handles a congestion event (RFC 9438 §4.6). Cuts the window, not the number of packets in flight: §4.6
    /// allows this if a window that is not full does not grow (§5.8).
    fn reduce(&mut self, floor: f64, next: PacketNumber) {
        self.remember();
        let cut = self.cwnd * self.params.beta;
        self.ssthresh = cut.max(MIN_SSTHRESH);
        self.cwnd = cut.max(floor);
        self.stage = Stage::None;
        self.recover = next;
    }

    /// RFC 9438 §4.6 `cwnd_prior`, and §4.7: fast convergence.
    fn remember(&mut self) {
        self.cwnd_prior = self.cwnd;
        let shrinks = self.cwnd < self.w_max && self.params.fast_convergence;
        self.w_max = if shrinks { self.cwnd * (1.0 + self.params.beta) / 2.0 } else { self.cwnd };
    }

    /// RFC 9438 §4.10: slow start as in RFC 5681 §3.1; every acknowledged packet counts.
    fn slow_start(&mut self, acked: f64) {
        self.cwnd = (self.cwnd + acked).min(self.ssthresh);
    }

    /// RFC 9438 §4.2-4.5: congestion avoidance; `passed` seconds count on the curve.
    fn avoid(&mut self, acked: f64, passed: f64) {
        let params = &*self.params;
        let rtt = self.rtt.smoothed().unwrap_or_default().as_secs_f64();
        let (curve, t, w_est) = match self.stage {
            Stage::None => (Curve::new(params.c, self.w_max, self.cwnd), 0.0, self.cwnd),
            Stage::Avoidance { curve, t, w_est } => (curve, t + passed, w_est),
        };
        // §4.3: alpha_cubic gives the average window of Reno, until the window has reached
        // `cwnd_prior`.
        let slower = 3.0 * (1.0 - params.beta) / (1.0 + params.beta);
        let alpha = if w_est < self.cwnd_prior { slower } else { 1.0 };
        let w_est = w_est + alpha * acked / self.cwnd;
        self.cwnd = if curve.window(t) < w_est {
            w_est.max(self.cwnd)
        } else {
            // §4.4 and §4.5: (target - cwnd) / cwnd per packet acknowledged.
            let target = curve.window(t + rtt).max(self.cwnd).min(MAX_GROWTH * self.cwnd);
            (self.cwnd + acked * (target - self.cwnd) / self.cwnd).min(target)
        }
        .min(params.max_cwnd);
        self.stage = Stage::Avoidance { curve, t, w_est };
    }

    /// Increases the window on an acknowledgement, if the window limits the flow (RFC 9438 §5.8).
    fn grow(&mut self, event: &AckEvent<'_>, passed: Span) {
        let flight = f64::from(event.in_flight + event.acked_packets);
        let acked = f64::from(event.acked_packets);
        if self.cwnd < self.ssthresh {
            // The window doubles in an RTT, so it cannot be full all the time.
            if 2.0 * flight >= self.cwnd {
                self.slow_start(acked);
            }
        } else if flight + 1.0 > self.cwnd {
            self.avoid(acked, passed.as_secs_f64());
        }
    }
}

impl Sender for Cubic {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        let passed = event.now.since(self.counted_to);
        self.counted_to = event.now;
        // RFC 3168 §6.1.2: one reduction per window of data for marks.
        let answered = event.acked_seq < self.recover;
        if event.marked_packets > 0 && !answered {
            self.reduce(LOSS_WINDOW, event.next_seq);
        } else if event.acked_packets > 0 && event.marked_packets == 0 && !answered {
            self.grow(event, passed);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        // RFC 9438 §4.6 with RFC 6675 §5: further losses of the same window of data belong to the
        // current fast recovery.
        if event.lost_seq >= self.recover {
            self.reduce(MIN_SSTHRESH, event.next_seq);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        // RFC 9438 §4.8: the window becomes the loss window of RFC 5681, ssthresh follows from beta_cubic, and
        // the next stage starts at its plateau. RFC 5681 §3.1: ssthresh stays when the same data times out
        // again, which the loss window shows.
        if self.cwnd > LOSS_WINDOW {
            self.ssthresh = (self.cwnd * self.params.beta).max(MIN_SSTHRESH);
            self.cwnd_prior = self.cwnd;
        }
        self.w_max = 0.0;
        self.cwnd = LOSS_WINDOW;
        self.stage = Stage::None;
        self.recover = event.next_seq;
    }

    #[inline]
    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        if self.params.ecn {
            header.ecn = Ecn::Capable;
        }
        if info.in_flight == 0 {
            // RFC 9438 §5.8: idle time does not count on the curve.
            self.counted_to = info.now;
        }
    }

    /// The curve counts packets, so a new stage begins, towards the same plateau in bytes.
    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        let most = self.params.max_cwnd;
        self.cwnd = event.scaled(self.cwnd).max(LOSS_WINDOW).min(most);
        self.ssthresh = event.scaled_threshold(self.ssthresh, most).max(MIN_SSTHRESH);
        self.w_max = event.scaled(self.w_max);
        self.cwnd_prior = event.scaled(self.cwnd_prior);
        self.stage = Stage::None;
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.cwnd, pacing: Pacing::AckClocked }
    }

    #[inline]
    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd, smoothed_rtt: self.rtt.smoothed(), ..Snapshot::default() }
    }
}

impl ReplaySender for Cubic {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
