//! DX's sender half (DX §4).

use alloc::sync::Arc;

use apus_units::{PacketNumber, Span};

use super::params::{self, Params};
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, FlowInfo,
    LossEvent, Pacing, PacketSizeEvent, Plain, ProfileInfo, ReplaySender, RttEstimator, SendInfo,
    Sender, SettingError, Settings, Snapshot, StateError, StateOverride, SwitchInfo, TimeoutEvent,
    Tunable,
};

/// The sender half of DX. DX measures the one-way delay between NICs relative to its minimum; here
/// the RTT between NICs is used, since acknowledgements are small and served first if classes
/// exist. As in the paper, packet sizes are ignored: the minimum delay is that of the flow's
/// smallest packet, and the additional time of a full packet on store-and-forward links counts as
/// queueing, once it exceeds `headroom`. The minimum does not age: after a change to a longer path
/// the difference also counts as queueing.
#[derive(Clone, Debug)]
pub struct Dx {
    params: Arc<Params>,
    /// Packets.
    cwnd: f64,
    slow_start: bool,
    /// `R`: the smallest fabric delay seen, picoseconds; infinite before the first.
    base: f64,
    /// Sum of the fabric delays of this window, picoseconds, and the number of samples.
    sum: f64,
    samples: u32,
    /// The window of data that is averaged ends when this packet is acknowledged.
    window_end: PacketNumber,
    /// Losses before this one do not cut: the window was already cut in their RTT.
    cut_until: PacketNumber,
    rtt: RttEstimator,
}

impl Algorithm for Dx {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "dx",
        summary: "grows the window while queues are empty, and shrinks it in proportion to the queueing delay",
        source: "Lee et al., DX: Accurate Latency-based Congestion Feedback for Datacenters, USENIX ATC \
                 2015",
        profiles: &[ProfileInfo { name: params::PAPER, doc: "§4 of the paper" }],
        parameters: params::TABLE,
    };
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self {
            cwnd: params.initial_cwnd,
            slow_start: params.slow_start,
            base: f64::INFINITY,
            sum: 0.0,
            samples: 0,
            window_end: PacketNumber::new(0),
            cut_until: PacketNumber::new(0),
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

impl Dx {
    /// DX §4: changes the window once per window of data, by its average queueing delay `Q`.
    fn update(&mut self, queueing: f64) {
        let params = &*self.params;
        let queued = queueing > params.headroom.as_ps_f64();
        if queued {
            self.slow_start = false;
            self.cwnd *= 1.0 - decrease(queueing, self.base, self.cwnd);
        } else if !self.slow_start {
            self.cwnd += params.ai;
        }
        self.bound();
    }

    fn bound(&mut self) {
        self.cwnd = self.cwnd.max(self.params.min_cwnd).min(self.params.max_cwnd);
    }

    fn halve(&mut self) {
        self.slow_start = false;
        self.cwnd /= 2.0;
        self.bound();
    }
}

/// `Q / V`, the part of the window that queueing delay `Q` takes away. With N equal flows,
/// `N * W = C * (R + Q)`; the goal is `C * R`, so `V = N * W / C`. Before the last increase the
/// flows filled the link without a queue, `N * (W - 1) = C * R`, which gives `V = R * W / (W - 1)`
/// (DX §4).
fn decrease(queueing: f64, base: f64, cwnd: f64) -> f64 {
    let part = queueing * (cwnd - 1.0) / (base * cwnd);
    part.clamp(0.0, 1.0)
}

impl Sender for Dx {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        let delay = event.fabric_delay.as_ps_f64();
        // A clock that was set back yields a delay of zero. As the base, zero would turn the whole RTT into
        // queueing.
        if delay > 0.0 {
            self.base = self.base.min(delay);
        }
        self.sum += delay;
        self.samples += 1;
        if self.slow_start {
            self.cwnd += f64::from(event.acked_packets);
            self.bound();
        }
        if event.acked_seq >= self.window_end {
            let queueing = self.sum / f64::from(self.samples) - self.base;
            self.window_end = event.next_seq;
            (self.sum, self.samples) = (0.0, 0);
            self.update(queueing);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        // RFC 5681 §3.2 as of RFC 6675: halves the window once per window of data.
        if event.lost_seq >= self.cut_until {
            self.halve();
            self.cut_until = event.next_seq;
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        // RFC 5681 §3.1: the loss window, and slow start again.
        self.slow_start = self.params.slow_start;
        self.cwnd = self.params.min_cwnd;
        self.cut_until = event.next_seq;
    }

    #[inline]
    fn on_transmit(&mut self, _: &mut CongestionHeader, _: &SendInfo) {}

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.cwnd = event.scaled(self.cwnd);
        self.bound();
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

impl ReplaySender for Dx {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
