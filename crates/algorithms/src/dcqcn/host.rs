//! DCQCN's reaction point: the sender half (DCQCN §3.1, Fig. 7).

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::{Bytes, Rate, Span, Time};

use super::params::{self, Params};
use super::receiver::NotificationPoint;
use super::switch::RampMarker;
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, Backoff, CongestionHeader, Derivation, Ecn,
    FlowInfo, LossEvent, Pacing, PacketSizeEvent, ProfileInfo, ReplaySender, RttEstimator,
    SendInfo, Sender, SettingError, Settings, Snapshot, StateError, StateOverride, SwitchInfo,
    TimeoutEvent, Tunable,
};

/// Fraction of the line rate from which a flow counts as recovered: halving the distance to the line rate never
/// reaches it.
const RECOVERED: f64 = 0.999;

/// The sender half of DCQCN: a rate, without a window.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    params: Arc<Params>,
    /// `R_C` and `R_T`, bits per second.
    current: f64,
    target: f64,
    line_rate: f64,
    /// The estimate of congestion at the time `alpha_at`; updated when needed.
    alpha: f64,
    alpha_at: Time,
    /// Time of the next rate increase by the timer; [`Time::MAX`] while the rate is the line rate.
    timer_at: Time,
    /// Wire bytes sent since the last increase by the byte counter.
    bytes: u64,
    /// Increases by timer and by byte counter since the last notification.
    by_timer: u32,
    by_bytes: u32,
    /// Wire bytes of a packet.
    packet: u32,
    rtt: RttEstimator,
    backoff: Backoff,
}

impl Algorithm for Dcqcn {
    type Params = Params;
    type Receiver = Box<NotificationPoint>;
    type Switch = RampMarker;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "dcqcn",
        summary: "cuts a rate when the receiver reports marks, and raises it by a timer and a byte counter",
        source: "Zhu et al., DCQCN: Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
        profiles: &[ProfileInfo { name: params::PAPER, doc: "§3.1 with the values of §5" }],
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
            params,
            // DCQCN §3.1: "no slow start": flows start at line rate.
            current: line_rate,
            target: line_rate,
            line_rate,
            // DCQCN §3.1: alpha is 1 at first.
            alpha: 1.0,
            alpha_at: Time::ZERO,
            timer_at: Time::MAX,
            bytes: 0,
            by_timer: 0,
            by_bytes: 0,
            packet: u32::try_from(flow.packet.get()).unwrap_or(u32::MAX),
            rtt: RttEstimator::default(),
            backoff: Backoff::default(),
        }
    }

    fn receiver(params: &Arc<Params>, _: &FlowInfo) -> Box<NotificationPoint> {
        Box::new(NotificationPoint::new(params.cnp_interval))
    }

    fn switch(params: &Arc<Params>, port: &SwitchInfo) -> RampMarker {
        RampMarker::new(params.ramp, port.seed)
    }
}

/// `x` to the power of `n` by squaring.
fn power(mut x: f64, mut n: u64) -> f64 {
    let mut product = 1.0;
    while n > 0 {
        if n % 2 == 1 {
            product *= x;
        }
        x *= x;
        n /= 2;
    }
    product
}

impl Dcqcn {
    /// `R_C` in bits per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.current
    }

    /// `R_T` in bits per second.
    #[must_use]
    pub fn target_rate(&self) -> f64 {
        self.target
    }

    /// Alpha as of the last notification.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Applies DCQCN eq. 2: alpha falls by the fraction `g` per `alpha_timer` without a notification.
    fn decay_alpha(&mut self, now: Time) {
        let (since, every) = (now.since(self.alpha_at), self.params.alpha_timer);
        let periods = since.as_ps() / every.as_ps();
        // Before the first notification there is no estimate that could fall.
        if self.alpha_at != Time::ZERO {
            self.alpha *= power(1.0 - self.params.g, periods);
        }
        self.alpha_at = now;
    }

    /// Raises the rate (DCQCN §3.1, Fig. 7): F times towards the target (fast recovery), then with a larger
    /// target (additive increase). When both counters exceed F, the target grows much faster (hyper increase,
    /// eqs 3 and 4).
    fn rise(&mut self) {
        let params = &*self.params;
        let (least, most) = (self.by_timer.min(self.by_bytes), self.by_timer.max(self.by_bytes));
        if least > params.f {
            self.target += f64::from(least - params.f) * params.r_hai.as_bps() as f64;
        } else if most > params.f {
            self.target += params.r_ai.as_bps() as f64;
        }
        self.target = self.target.min(self.line_rate);
        self.current = (self.target + self.current) / 2.0;
        if self.current >= RECOVERED * self.line_rate {
            (self.current, self.target) = (self.line_rate, self.line_rate);
            self.timer_at = Time::MAX;
        }
    }
}

impl Sender for Dcqcn {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        self.backoff.on_ack();
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.backoff.on_timeout(event);
    }

    #[inline]
    fn on_transmit(&mut self, header: &mut CongestionHeader, _: &SendInfo) {
        header.ecn = Ecn::Capable;
        if self.timer_at == Time::MAX {
            return;
        }
        self.bytes += u64::from(self.packet);
        if self.bytes >= self.params.byte_counter.get() {
            self.bytes = 0;
            self.by_bytes = self.by_bytes.saturating_add(1);
            self.rise();
        }
    }

    /// Handles a notification (DCQCN eq. 1): the target becomes the current rate, the rate falls by half of
    /// alpha, alpha rises. Counters and timers restart.
    fn on_notification(&mut self, now: Time) {
        self.decay_alpha(now);
        let params = &*self.params;
        self.target = self.current;
        let cut = self.current * (1.0 - self.alpha / 2.0);
        self.current = cut.max(params.min_rate.as_bps() as f64).min(self.line_rate);
        self.alpha = (1.0 - params.g) * self.alpha + params.g;
        self.timer_at = now.saturating_add(params.timer);
        (self.bytes, self.by_timer, self.by_bytes) = (0, 0, 0);
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        (self.timer_at != Time::MAX).then_some(self.timer_at)
    }

    fn on_timer(&mut self, now: Time) {
        if now < self.timer_at || self.timer_at == Time::MAX {
            return;
        }
        self.by_timer = self.by_timer.saturating_add(1);
        self.timer_at = self.timer_at.saturating_add(self.params.timer);
        self.rise();
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.packet = u32::try_from(event.packet.get()).unwrap_or(u32::MAX);
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.current as u64);
        Allowance { window: f64::INFINITY, pacing: Pacing::Rate(rate) }
    }

    #[inline]
    fn rto(&self) -> Span {
        // A slow flow gets acknowledgements rarely, so the timeout includes the gap between its packets.
        let packet = Bytes::new(u64::from(self.packet));
        let gap = Rate::from_bps(self.current as u64).serialization_time(packet);
        self.backoff.applied(self.rtt.rto(&self.params.rto, gap), &self.params.rto)
    }

    fn snapshot(&self) -> Snapshot {
        let packet = Bytes::new(u64::from(self.packet));
        let gap = Rate::from_bps(self.current as u64).serialization_time(packet);
        let rtt = self.rtt.smoothed();
        let cwnd = rtt.map_or(0.0, |rtt| rtt.as_secs_f64() / gap.as_secs_f64());
        Snapshot { cwnd, pacing_delay: Some(gap), smoothed_rtt: rtt, ..Snapshot::default() }
    }
}

impl ReplaySender for Dcqcn {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
