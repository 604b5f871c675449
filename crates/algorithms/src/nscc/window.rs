//! The window of NSCC: its equations, in whole bytes.
//!
//! `UEC` stands for the Ultra Ethernet Specification 1.0, §3.6.13, whose rules are named as in uet-htsim
//! (commit 40ccb05).

use apus_cc::FlowInfo;
use apus_units::{Bytes, Rate, Span, Time};

use super::median::{MAX_SAMPLES, Median};
use super::params::{Params, Penalty};
use super::penalty::Penalised;

/// Rate and RTT of the network for which the gains are stated (UEC, reference network).
const REFERENCE_RATE: Rate = Rate::from_gbps(100);
const REFERENCE_RTT: Span = Span::from_us(12);

/// Quick adaptation by delay needs this multiple of the target (UEC `qa_threshold`).
const QUICK_ADAPT_TARGETS: f64 = 4.0;
/// Part of the base RTT as which a late packet without a mark counts in the average: the queue has drained
/// (uet-htsim).
const DRAINED: f64 = 0.25;

/// Gains of a flow, scaled to its network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gains {
    /// Bytes of window, per byte acknowledged and picosecond below the target, times the window (UEC
    /// `alpha`).
    proportional: f64,
    /// Bytes of window per byte acknowledged, times the window (UEC `fi`).
    fair: f64,
    /// Bytes of window per RTT (UEC `eta`).
    eta: f64,
    /// Bytes of window per byte acknowledged (UEC `fi_scale`).
    fast: f64,
}

impl Gains {
    /// UEC: `a` = line rate * T0 / (100 Gb/s * 12 us), `b` = target / 12 us.
    fn new(params: &Params, flow: &FlowInfo) -> Self {
        let reference = REFERENCE_RATE.bytes_in(REFERENCE_RTT).get() as f64;
        let a = flow.line_rate.bytes_in(params.network_rtt).get() as f64 / reference;
        let b = params.target.as_ps_f64() / REFERENCE_RTT.as_ps_f64();
        let payload = flow.payload.get() as f64;
        Self {
            proportional: params.proportional * payload * a * b / params.target.as_ps_f64(),
            fair: params.fair * payload * a,
            eta: params.eta * payload * a,
            fast: params.fast * a,
        }
    }
}

/// The bytes by which an acknowledgement raised the window, before its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Raised {
    /// By the proportional and the fair increase.
    pub(super) by_share: u64,
    /// By the fast increase.
    pub(super) fast: u64,
    /// By the constant increase.
    pub(super) eta: u64,
}

/// The window of a flow, and the state from which it is computed.
#[derive(Clone, Debug)]
pub(super) struct Window {
    gains: Gains,
    line_rate: Rate,
    /// Wire bytes of a full packet and of its headers.
    pub(super) packet: u64,
    pub(super) header: u64,
    /// Wire bytes (UEC `cwnd`).
    cwnd: u64,
    max_cwnd: u64,
    /// The smallest RTT seen, initially T0 (UEC `base_rtt`).
    base: Span,
    /// Average queueing delay in picoseconds (UEC `avg_delay`).
    average: f64,
    median: Median,
    /// Bytes received since the last quick adaptation was considered (UEC `achieved_bytes`).
    achieved: u64,
    /// Bytes acknowledged or trimmed since the last quick adaptation, and the number of bytes up to which
    /// marked ones are ignored.
    ignored: u64,
    to_ignore: u64,
    /// Bytes received since the last adjustment (UEC `received_bytes`).
    received: u64,
    /// Increases that wait for the next adjustment, multiplied by the window (UEC `inc_bytes`).
    increase: f64,
    /// Bytes received without queueing (UEC `fi_count`), and whether the fast increase has begun.
    uncongested: u64,
    is_fast: bool,
    /// A packet was trimmed since the last quick adaptation (UEC `trigger_qa`).
    is_trimmed: bool,
    /// Time after which quick adaptation is considered; zero before the first time (UEC `qa_endtime`).
    quick_adapt_after: Time,
    last_adjust: Time,
    last_decrease: Time,
    penalised: Penalised,
    /// Whether the receiver penalises the flow, so that its window does not grow.
    is_penalised: bool,
}

impl Window {
    pub(super) fn new(params: &Params, flow: &FlowInfo) -> Self {
        let packet = flow.packet.get().max(1);
        let mut window = Self {
            gains: Gains::new(params, flow),
            line_rate: flow.line_rate,
            packet,
            header: packet.saturating_sub(flow.payload.get()),
            cwnd: u64::MAX,
            max_cwnd: packet,
            base: params.network_rtt,
            average: 0.0,
            median: Median::default(),
            achieved: 0,
            ignored: 0,
            to_ignore: 0,
            received: 0,
            increase: 0.0,
            uncongested: 0,
            is_fast: false,
            is_trimmed: false,
            quick_adapt_after: Time::ZERO,
            last_adjust: Time::ZERO,
            last_decrease: Time::ZERO,
            penalised: Penalised::default(),
            is_penalised: false,
        };
        window.limit(params);
        // UEC: the first window is the largest one. The flow starts at line rate, without slow start and
        // pacing.
        window.bound();
        window
    }

    /// Returns the smallest RTT seen.
    pub(super) fn base(&self) -> Span {
        self.base
    }

    /// Handles a change of the size of full packets. The window keeps its bytes.
    pub(super) fn set_packet(&mut self, params: &Params, payload: Bytes, packet: Bytes) {
        let flow = FlowInfo { line_rate: self.line_rate, payload, packet, ..FlowInfo::default() };
        self.gains = Gains::new(params, &flow);
        self.packet = packet.get().max(1);
        self.header = self.packet.saturating_sub(payload.get());
        self.limit(params);
        self.bound();
    }

    pub(super) fn packets(&self) -> f64 {
        self.cwnd as f64 / self.packet as f64
    }

    /// UEC `maxwnd`: 1.5 times the line rate times the base RTT.
    fn limit(&mut self, params: &Params) {
        let bdp = self.line_rate.bytes_in(self.base).get();
        self.max_cwnd = ((bdp as f64 * params.window_factor) as u64).max(self.packet);
    }

    /// UEC `set_cwnd_bounds`.
    fn bound(&mut self) {
        self.cwnd = self.cwnd.max(self.packet).min(self.max_cwnd);
    }

    /// UEC `updateCwndOnAck` with the steps before it: `bytes` wire bytes are newly received, and the packet
    /// that caused the acknowledgement had this RTT and mark. `in_flight` is in wire bytes.
    pub(super) fn on_ack(
        &mut self,
        params: &Params,
        now: Time,
        (rtt, marked): (Span, bool),
        (bytes, in_flight): (u64, u64),
    ) -> Raised {
        self.achieved += bytes;
        self.received += bytes;
        self.ignored += bytes;
        // A clock that was set back yields a delay of zero, which would keep the window at one packet.
        if rtt < self.base && !rtt.is_zero() {
            self.base = rtt;
            self.limit(params);
        }
        let delay = rtt.saturating_sub(self.base).as_ps_f64();
        let target = params.target.as_ps_f64();
        self.average_in(
            params,
            if !marked && delay > target { self.base.as_ps_f64() * DRAINED } else { delay },
        );
        let delay = match params.median_samples {
            1 => delay,
            most => {
                // The median covers at most half a window.
                let half = self.cwnd / (2 * self.packet);
                let count = half.clamp(1, u64::from(most)) as usize;
                self.median.add(delay, count.min(MAX_SAMPLES))
            }
        };
        if self.adapt_quickly(params, now, (delay, marked, false), in_flight) {
            return Raised::default();
        }
        let mut raised = Raised::default();
        match (marked, delay >= target) {
            // UEC `fair_increase`: the packet is late, but the queue has drained.
            (false, _) if self.is_penalised => {}
            (false, true) => self.increase += whole(self.gains.fair * bytes as f64),
            (false, false) => raised.fast = self.increase_below_target(params, bytes, delay),
            (true, true) => self.decrease(params, now),
            // The load balancer changes the path.
            (true, false) => {}
        }
        self.bound();
        let period = params.network_rtt;
        let is_due = self.received as f64 > params.adjust_packets * self.packet as f64
            || now.since(self.last_adjust) > period;
        if is_due && !self.is_penalised {
            (raised.by_share, raised.eta) = self.adjust(now, period);
        }
        self.bound();
        raised
    }

    /// UEC `apply_cwnd_penalty`: handles an acknowledgement of `bytes` with this penalty of the receiver.
    pub(super) fn penalise(
        &mut self,
        rules: &Penalty,
        penalty: u64,
        (bytes, in_flight): (u64, u64),
    ) {
        let window = (self.cwnd, self.packet);
        (self.cwnd, self.is_penalised) =
            self.penalised.apply(rules, penalty, window, (bytes, in_flight));
        if self.is_penalised {
            // The increase gathered so far would be divided by a window that is now small.
            self.increase = 0.0;
        }
    }

    /// UEC `OnNACK` for a packet of `bytes` that was trimmed at the last hop, with RCCC: the packet neither
    /// shrinks the window nor counts for quick adaptation, other than in uet-htsim 40ccb05. As there, it counts
    /// in the average delay and in the bytes to ignore.
    pub(super) fn on_trim_at_last_hop(&mut self, params: &Params, bytes: u64) {
        self.ignored += bytes;
        self.average_in(params, params.network_rtt.as_ps_f64());
    }

    /// Adds a sample to the average delay (UEC `update_delay`).
    fn average_in(&mut self, params: &Params, sample: f64) {
        self.average = params.delay_gain * sample + (1.0 - params.delay_gain) * self.average;
    }

    /// UEC `quick_adapt`: after an RTT in which far too few bytes arrived, the window becomes the number of
    /// these bytes. Marked acknowledgements of the bytes in flight at that time are then ignored. Returns
    /// `true` if the event has no other effect.
    fn adapt_quickly(
        &mut self,
        params: &Params,
        now: Time,
        (delay, marked, trimmed): (f64, bool, bool),
        in_flight: u64,
    ) -> bool {
        if !params.quick_adapt {
            return false;
        }
        let mut is_done = self.ignored < self.to_ignore && marked;
        if !is_done && now > self.quick_adapt_after {
            let is_late = delay > QUICK_ADAPT_TARGETS * params.target.as_ps_f64();
            let few = (self.max_cwnd as f64 / params.quick_adapt_part) as u64;
            if self.quick_adapt_after != Time::ZERO
                && (self.is_trimmed || trimmed || is_late)
                && self.achieved < few
            {
                self.cwnd = self.achieved.max(self.packet);
                (self.to_ignore, self.ignored) = (in_flight, 0);
                self.is_trimmed = false;
                is_done = true;
            }
            self.achieved = 0;
            self.quick_adapt_after = now + self.base + params.target;
        }
        if is_done {
            (self.increase, self.received) = (0.0, 0);
        }
        is_done
    }

    /// UEC `proportional_increase`, or `fast_increase` once a window of bytes has met no queue. Returns the
    /// bytes of the fast increase.
    fn increase_below_target(&mut self, params: &Params, bytes: u64, delay: f64) -> u64 {
        if delay < params.fast_delay.as_ps_f64() {
            self.uncongested += bytes;
            if self.is_fast || self.uncongested > self.cwnd {
                self.is_fast = true;
                let added = (bytes as f64 * self.gains.fast) as u64;
                self.cwnd += added;
                return added;
            }
        } else {
            self.uncongested = 0;
        }
        self.is_fast = false;
        let below = params.target.as_ps_f64() - delay;
        self.increase += whole(self.gains.proportional * bytes as f64 * below);
        0
    }

    /// UEC `multiplicative_decrease`, at most once per base RTT.
    fn decrease(&mut self, params: &Params, now: Time) {
        (self.is_fast, self.uncongested) = (false, 0);
        let target = params.target.as_ps_f64();
        if self.average > target && now.since(self.last_decrease) > self.base {
            let part = params.gamma * (self.average - target) / self.average;
            self.cwnd = (self.cwnd as f64 * (1.0 - part).max(1.0 - params.max_decrease)) as u64;
            self.last_decrease = now;
        }
    }

    /// UEC `fulfill_adjustment`. Returns the share of the waiting increases and the constant increase, in
    /// bytes.
    fn adjust(&mut self, now: Time, period: Span) -> (u64, u64) {
        self.cwnd += (self.increase / self.cwnd as f64) as u64;
        let by_share = (self.increase / self.cwnd as f64) as u64;
        let mut eta = 0;
        if now.since(self.last_adjust) >= period {
            eta = self.gains.eta as u64;
            self.cwnd += eta;
            self.last_adjust = now;
        }
        (self.increase, self.received) = (0.0, 0);
        (by_share, eta)
    }

    /// UEC `updateCwndOnNack`: a packet of `bytes` wire bytes was trimmed; `in_flight` includes it. The RTT of
    /// the header is not a sample, because the header overtook the queue. The average gets T0 instead, the time
    /// in a full queue.
    pub(super) fn on_trim(&mut self, params: &Params, now: Time, bytes: u64, in_flight: u64) {
        self.ignored += bytes;
        self.average_in(params, params.network_rtt.as_ps_f64());
        self.is_trimmed = true;
        if !self.adapt_quickly(params, now, (0.0, true, true), in_flight) {
            self.cwnd = self.cwnd.saturating_sub(bytes);
            self.bound();
        }
    }

    /// UEC: packets of this many wire bytes were declared lost.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.saturating_sub(bytes);
        self.bound();
    }
}

/// Truncates a number of bytes: increases are counted in whole bytes.
fn whole(bytes: f64) -> f64 {
    libm::trunc(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_cc::{Algorithm, AlgorithmFactory, AlgorithmInfo, Settings};

    /// T0 of a k = 8 fat tree of 100 Gb/s and 1 us per link, with 4160 B forward and 64 B back over 6 links.
    const T0: Span = Span::from_ps(14_027_520);

    fn params(profile: &str, settings: &[(&str, &str)]) -> Params {
        static INFO: AlgorithmInfo = <super::super::Nscc as Algorithm>::INFO;
        let mut all = alloc::vec![("network_rtt", "14027520ps")];
        if profile == "trimming" {
            all.push(("target_queueing", "10520640ps"));
        } else {
            all.push(("target_queueing", "14027520ps"));
        }
        all.extend(settings);
        let mut settings = Settings::read(&INFO, Some(profile), &all).expect("settings");
        Params::from_settings(&mut settings).expect("parameters")
    }

    fn window(params: &Params) -> Window {
        Window::new(params, &FlowInfo::default())
    }

    /// The statistics of uet-htsim (40ccb05) for a flow of 2 MB in an empty network, acknowledged with
    /// its first packet and then every fourth of 489. W0 by hand: 1.5 * 175 344 B.
    #[test]
    fn the_increases_of_one_flow_are_those_of_uet_htsim() {
        for (profile, by_share) in [("trimming", 16_020), ("drop-tail", 21_284)] {
            let params = params(profile, &[]);
            let mut window = window(&params);
            assert_eq!(window.cwnd, 263_016);
            let mut sum = Raised::default();
            for last in (1..=489_u64).step_by(4) {
                let now = Time::ZERO + T0 + Span::from_ps(332_800) * (last - 1);
                let bytes = match last {
                    1 => 4160,
                    489 => 3 * 4160 + 1152 + 64,
                    _ => 4 * 4160,
                };
                let raised = window.on_ack(&params, now, (T0, false), (bytes, 40 * 4160));
                sum.by_share += raised.by_share;
                sum.fast += raised.fast;
                sum.eta += raised.eta;
                assert_eq!(window.cwnd, 263_016, "never above the largest window");
            }
            assert_eq!(sum, Raised { by_share, fast: 519_374, eta: 8616 }, "{profile}");
        }
    }

    /// UEC: at most 0.5, once per base RTT, and only when the average is late too.
    #[test]
    fn a_marked_late_packet_shrinks_the_window_by_the_average() {
        let params = params("trimming", &[("delay_gain", "1"), ("quick_adapt", "false")]);
        let mut flow = window(&params);
        let late = T0 + params.target + params.target;
        let mut now = Time::ZERO + Span::from_us(100);
        // 1 - 0.8 (2 - 1) / 2 = 0.6, then eta of 718 B at the end of the period.
        flow.on_ack(&params, now, (late, true), (4160, 0));
        assert_eq!(flow.cwnd, (263_016.0_f64 * 0.6) as u64 + 718);
        let after = flow.cwnd;
        now += T0;
        flow.on_ack(&params, now, (late, true), (4160, 0));
        assert_eq!(flow.cwnd, after, "not before a base RTT has passed");
        // Marked but early: no change.
        now += Span::from_ns(1);
        flow.on_ack(&params, now, (T0, true), (1, 0));
        assert_eq!(flow.cwnd, after + 718, "only eta");
    }

    /// The increase gathered from late packets is void once the receiver penalises the flow: the window stays
    /// at one packet.
    #[test]
    fn a_penalised_window_does_not_grow() {
        let params = params("drop-tail", &[("quick_adapt", "false"), ("receiver_penalty", "true")]);
        let rules = params.penalty.expect("it is on");
        let mut flow = window(&params);
        let late = T0 + params.target + params.target;
        let mut now = Time::ZERO + Span::from_us(20);
        for _ in 0..7 {
            flow.on_ack(&params, now, (late, false), (4160, 4160));
        }
        assert!(flow.increase > 0.0);
        for _ in 0..20 {
            now += T0;
            flow.penalise(&rules, 127, (4160, 4160));
            flow.on_ack(&params, now, (late, false), (4160, 4160));
            assert_eq!(flow.cwnd, 4160);
        }
    }

    /// A trim removes the bytes of its packet; after an RTT with few bytes received, the window becomes these
    /// bytes.
    #[test]
    fn trims_take_their_bytes_or_adapt_quickly() {
        let params = params("trimming", &[]);
        let mut flow = window(&params);
        let start = Time::ZERO + Span::from_us(20);
        flow.on_trim(&params, start, 4160, 63 * 4160);
        assert_eq!(flow.cwnd, 263_016 - 4160);
        // Two packets received in the period of base + target = 24.5 us; then 62 packets are trimmed.
        flow.on_ack(&params, start + Span::from_us(1), (T0, false), (2 * 4160, 60 * 4160));
        let later = start + Span::from_us(25);
        flow.on_trim(&params, later, 4160, 61 * 4160);
        assert_eq!(flow.cwnd, 2 * 4160);
        // Bytes that were in flight are ignored if they are trimmed or marked.
        for _ in 0..60 {
            flow.on_trim(&params, later, 4160, 4160);
        }
        assert_eq!(flow.cwnd, 2 * 4160);
        flow.on_trim(&params, later, 4160, 4160);
        assert_eq!(flow.cwnd, 4160);
    }

    /// The RTT of a header does not lower the base. An RTT of data does, and lowers the largest window with it.
    #[test]
    fn the_base_is_the_least_rtt_of_data() {
        let params = params("trimming", &[]);
        let mut flow = window(&params);
        flow.on_trim(&params, Time::ZERO + Span::from_us(2), 4160, 4160);
        assert_eq!(flow.base, T0);
        let near = Span::from_us(4);
        flow.on_ack(&params, Time::ZERO + near, (near, false), (4160, 0));
        // 1.5 * 50 000 B.
        assert_eq!((flow.base, flow.cwnd), (near, 75_000));
        // A clock that was set back yields a delay of zero.
        flow.on_ack(&params, Time::ZERO, (Span::ZERO, false), (4160, 0));
        assert_eq!(flow.base, near);
    }

    /// A median of one delay is the delay: equal events give equal windows.
    #[test]
    fn a_median_of_one_sample_is_nscc() {
        let nscc = params("drop-tail", &[]);
        let mnscc = params("median", &[("median_samples", "1")]);
        assert_eq!(nscc, mnscc);
        let four = params("median", &[]);
        let mut flows = [window(&nscc), window(&mnscc), window(&four)];
        let mut random = apus_units::random::SplitMix64::new(5);
        let mut now = Time::ZERO;
        let mut differ = false;
        for _ in 0..2000 {
            now += Span::from_ns(700);
            let rtt = T0 + Span::from_us(36).mul_f64(random.uniform());
            let marked = random.uniform() < 0.9;
            for (flow, params) in flows.iter_mut().zip([&nscc, &mnscc, &four]) {
                flow.on_ack(params, now, (rtt, marked), (4160, 10 * 4160));
            }
            assert_eq!(flows[0].cwnd, flows[1].cwnd);
            differ |= flows[0].cwnd != flows[2].cwnd;
        }
        assert!(differ, "a median of four changes the window");
    }

    /// The rules for the example network of the specification's simulator: targets and timeouts.
    #[test]
    fn parameters_follow_the_network() {
        let network = apus_cc::NetworkInfo {
            base_rtt: T0,
            fabric_rtt: T0,
            fabric_jitter: Span::ZERO,
            hops: 5,
            line_rate: Rate::from_gbps(100),
            path_rate: Rate::from_gbps(100),
            packet: Bytes::new(4160),
            trims: true,
        };
        // 15 us and 6 * 178 880 B, or 6 * 894 400 B, at 100 Gb/s.
        for (profile, target, rto) in
            [("trimming", 10_520_640, 100_862_400), ("drop-tail", 14_027_520, 444_312_000)]
        {
            let config = crate::Registry::BUILT_IN
                .build_for("nscc", Some(profile), &[], Some(&network))
                .expect("nscc");
            let flow = config.sender(&FlowInfo::default());
            assert_eq!(apus_cc::Sender::rto(&flow), Span::from_ps(rto));
            // The target of an RTT: the base RTT plus the target of the queueing delay.
            let found = apus_cc::Sender::snapshot(&flow).target_delay;
            assert_eq!(found, Some(network.base_rtt + Span::from_ps(target)), "{profile}");
        }
    }
}
