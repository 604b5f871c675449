//! Bolt's sender half (Bolt Alg. 2, §3.2, §4.2).

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

use super::header::{BoltFields, GrantCounter};
use super::params::{self, BelowOne, FirstRule, IncRule, LastRule, Paced, Params};
use super::switch::BoltPort;
use super::table;
use crate::swift::Swift;
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Departure, Derivation,
    FieldLayout, FlowInfo, LossEvent, Pacing, PacketSizeEvent, ProfileInfo, ReplaySender,
    RttEstimator, SendInfo, Sender, SettingError, Settings, SignalEvent, Snapshot, StateError,
    StateOverride, SwitchInfo, TimeoutEvent, Tunable,
};

/// Timeouts in a row after which the window falls to its minimum, as in Swift (Alg. 1 l. 17).
const RETX_RESET_THRESHOLD: u32 = 3;

/// The sender half of Bolt.
#[derive(Clone, Debug)]
pub struct Bolt {
    params: Arc<Params>,
    /// Rate of the host's link.
    line_rate: Rate,
    /// Payload bytes and wire bytes of a full data packet.
    payload: u32,
    packet: u32,
    /// Packets.
    cwnd: f64,
    /// Payload bytes sent since the start or since the flow was idle (§4.2).
    bytes_sent: u64,
    /// Departure of the latest packet; zero before the first.
    last_sent: Time,
    /// Alg. 2 `last_dec_time`; `None` before the first.
    last_dec_time: Option<Time>,
    /// Alg. 2 `seq_no_at_last_ai`.
    seq_no_at_last_ai: PacketNumber,
    /// The receiver's count of packets with INC at the last acknowledgement.
    granted: u32,
    /// The latest raw RTT.
    last_rtt: Option<Span>,
    rtt: RttEstimator,
    /// Losses before this packet do not cut: the window was already cut in their RTT.
    cut_until: PacketNumber,
    timeouts: u32,
    /// With [`Paced::Rest`]: end of the current rest; zero without a rest.
    rests_until: Time,
    /// Boxed, so that flows without a fallback stay small.
    fallback: Option<Box<Swift>>,
}

impl Algorithm for Bolt {
    type Params = Params;
    type Receiver = GrantCounter;
    type Switch = BoltPort;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "bolt",
        summary: "switches signal queues to the source at once, and hand out bandwidth that is about to become free",
        source: "Arslan et al., Bolt, NSDI 2023",
        profiles: &[
            ProfileInfo { name: table::PAPER, doc: "Algorithms 1 to 4" },
            ProfileInfo {
                name: table::CODE,
                doc: "as in the authors' simulator, which produced the figures",
            },
        ],
        parameters: table::TABLE,
    };
    const FIELDS: Option<FieldLayout> = Some(super::header::LAYOUT);
    const DERIVED: &'static [Derivation] = table::DERIVED;
    const TUNED: &'static [Tunable] = table::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, info: &FlowInfo) -> Self {
        Self {
            line_rate: info.line_rate,
            payload: info.payload.get() as u32,
            packet: info.packet.get() as u32,
            cwnd: params.initial_cwnd,
            bytes_sent: 0,
            last_sent: Time::ZERO,
            last_dec_time: None,
            seq_no_at_last_ai: PacketNumber::new(0),
            granted: 0,
            last_rtt: None,
            rtt: RttEstimator::default(),
            cut_until: PacketNumber::new(0),
            timeouts: 0,
            rests_until: Time::ZERO,
            fallback: params::fallback_flow(&params, info).map(Box::new),
            params,
        }
    }

    fn switch(params: &Arc<Params>, port: &SwitchInfo) -> BoltPort {
        BoltPort::new(params, port)
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> GrantCounter {
        GrantCounter::default()
    }
}

impl Bolt {
    /// `flow.rate` of Alg. 2 l. 3, bit/s: the window in force over the latest RTT, by the paper's profile at most the host's
    /// link.
    fn rate_bps(&self) -> f64 {
        let line = self.line_rate.as_bps() as f64;
        let Some(rtt) = self.last_rtt.filter(|rtt| !rtt.is_zero()) else { return line };
        let bits = self.window() * f64::from(self.packet) * 8.0;
        let rate = bits / rtt.as_secs_f64();
        if rate > line && self.params.rate_of_line { line } else { rate }
    }

    /// Alg. 2 l. 6 and 11, within bounds.
    #[inline]
    fn change(&mut self, packets: f64) {
        self.cwnd = (self.cwnd + packets).clamp(self.params.min_cwnd, self.params.max_cwnd);
    }

    /// Alg. 2 l. 6. The paper does not define the effect on a window of one packet. In Bolt ns-3 a larger
    /// window loses a whole packet, so that less than one packet may be left.
    fn decrease(&mut self) {
        let least = match self.params.below_one {
            BelowOne::Hold => self.params.min_cwnd.max(1.0),
            BelowOne::Halve => self.params.min_cwnd,
        };
        self.cwnd = (self.cwnd - 1.0).max(least);
    }

    /// The window in payload bytes, for comparison with the byte counters of §4.2.
    fn window_bytes(&self) -> f64 {
        self.window() * f64::from(self.payload)
    }

    /// The window in force: the smaller one if Swift runs in parallel (§6).
    #[inline]
    fn window(&self) -> f64 {
        match &self.fallback {
            None => self.cwnd,
            Some(swift) => {
                let other = swift.allowance().window;
                if other < self.cwnd { other } else { self.cwnd }
            }
        }
    }

    /// §4.2: a new RPC after an idle period begins a first window.
    fn note_idle(&mut self, info: &SendInfo) {
        if info.in_flight > 0 {
            return;
        }
        let last = self.last_sent;
        let idle = self.rtt.smoothed().unwrap_or(Span::ZERO);
        if self.params.idle_reset && info.now.since(last) > idle {
            self.bytes_sent = 0;
        }
    }

    /// The flags of the next packet (§3.2, §4.2).
    fn flags(&self, pending: Bytes) -> u8 {
        let window = self.window_bytes();
        let first = match self.params.first {
            FirstRule::Bytes => (self.bytes_sent as f64) < window,
            FirstRule::Unacknowledged => self.last_rtt.is_none(),
        };
        let pending = pending.get() as f64;
        let last = match self.params.last {
            // §4.2: the counter of pending bytes, without this packet, is below the window.
            LastRule::After => pending < window,
            LastRule::With => pending + f64::from(self.payload) <= window,
        };
        let inc = match self.params.inc {
            IncRule::Every => true,
            IncRule::Continuing => !first && !last,
        };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(first, BoltFields::FIRST)
            | flag(last, BoltFields::LAST)
            | flag(inc, BoltFields::INC)
            | flag(self.params.favoured, BoltFields::FAVOURED)
    }

    /// The time from one packet to the next at the pace of RTT / window; zero before the first RTT.
    #[inline]
    fn rest(&self) -> Span {
        let gap = |rtt: Span| Span::from_ps_f64(rtt.as_ps_f64() / self.window());
        self.last_rtt.map_or(Span::ZERO, gap)
    }

    /// Returns the packets that arrived with INC since the latest acknowledgement.
    fn newly_granted(&mut self, event: &AckEvent<'_>) -> u32 {
        let Some(granted) = super::header::granted(&event.fields) else { return 0 };
        let new = granted.wrapping_sub(self.granted);
        // An acknowledgement that was overtaken has a smaller count than its successor.
        if new > u32::MAX / 2 {
            return 0;
        }
        self.granted = granted;
        // At most the acknowledged packets, so that a forged count moves the window no further.
        new.min(event.acked_packets)
    }

    /// Handles losses as in Swift (§3.1): cuts the window by a fraction once per RTT.
    fn cut(&mut self, next: PacketNumber) {
        let cut = self.cwnd * (1.0 - self.params.max_mdf);
        self.cwnd = if cut > self.params.min_cwnd { cut } else { self.params.min_cwnd };
        self.cut_until = next;
    }
}

impl Sender for Bolt {
    /// Alg. 2 `HandleAck`.
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.timeouts = 0;
        self.last_rtt = Some(event.rtt);
        self.rtt.update(&self.params.rto, event.rtt);
        let outstanding = f64::from(event.in_flight) + f64::from(event.acked_packets);
        // With pacing, up to an eighth of the window may not be due yet.
        let waiting = if self.params.paced == Paced::Always { self.cwnd / 8.0 } else { 0.0 };
        let limited = !self.params.validate_window || outstanding + 1.0 + waiting > self.cwnd;
        let granted = self.newly_granted(event);
        if limited {
            self.change(f64::from(granted)); // l. 10-11
        }
        if event.acked_seq >= self.seq_no_at_last_ai {
            // l. 12-14
            if limited {
                self.change(self.params.ai);
            }
            self.seq_no_at_last_ai = event.next_seq;
        }
        if let Some(swift) = &mut self.fallback {
            swift.on_ack(event);
        }
    }

    /// Alg. 2 `HandleSrc`.
    fn on_signal(&mut self, event: &SignalEvent) {
        if self.cwnd <= 1.0 && self.params.below_one == BelowOne::Halve {
            // Bolt ns-3: by every SRC, whatever the time since the last.
            self.cwnd = (self.cwnd / 2.0).max(self.params.min_cwnd);
            return;
        }
        let reaction_factor = self.rate_bps() / event.link_rate.as_bps() as f64; // l. 3
        let packets = event.queue.get() as f64 / f64::from(self.packet);
        let target_q = packets * reaction_factor; // l. 4
        // l. 5, without the division: rtt_src / target_q <= now - last_dec_time
        let since = self.last_dec_time.map(|last| event.now.since(last));
        let due = since.is_none_or(|since| event.rtt.as_ps_f64() <= target_q * since.as_ps_f64());
        if due {
            self.decrease(); // l. 6
            self.last_dec_time = Some(event.now); // l. 7
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        if event.lost_seq >= self.cut_until {
            self.cut(event.next_seq);
        }
        if let Some(swift) = &mut self.fallback {
            swift.on_loss(event);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        // As in Swift (§3.1), where the timeout belongs to the flow.
        if event.is_same_flight {
            return;
        }
        self.timeouts = self.timeouts.saturating_add(1);
        if self.timeouts >= RETX_RESET_THRESHOLD {
            self.cwnd = self.params.min_cwnd;
        } else {
            self.cut(event.next_seq);
        }
        if let Some(swift) = &mut self.fallback {
            swift.on_timeout(event);
        }
    }

    #[inline]
    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        if info.is_windowed && self.rests_until > Time::ZERO {
            // After a packet that ended a rest the next packet rests too, unless the window has room for it.
            let has_room = self.window() - f64::from(info.in_flight) >= 1.0;
            let next = info.now.saturating_add(self.rest());
            self.rests_until = if has_room { Time::ZERO } else { next };
        }
        self.note_idle(info);
        let flags = self.flags(info.pending);
        header.fields = BoltFields::new(flags, params::stamp(info.now)).fields();
        self.bytes_sent = self.bytes_sent.saturating_add(info.payload.get());
        self.last_sent = info.now;
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.payload = event.payload.get() as u32;
        self.packet = event.packet.get() as u32;
        self.cwnd = event.scaled(self.cwnd).clamp(self.params.min_cwnd, self.params.max_cwnd);
        if let Some(fallback) = &mut self.fallback {
            fallback.on_packet_size(event);
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let window = self.window();
        let gap = |rtt: Span| Span::from_ps_f64(rtt.as_ps_f64() / window);
        match self.params.paced {
            Paced::Rest => {
                let gap = self.rest();
                return Allowance { window, pacing: Pacing::Own { gap } };
            }
            Paced::Always if window >= 1.0 => {
                let pacing =
                    self.last_rtt.map_or(Pacing::AckClocked, |rtt| Pacing::Delay(gap(rtt)));
                return Allowance { window, pacing };
            }
            Paced::BelowOne if window >= 1.0 => {
                return Allowance { window, pacing: Pacing::AckClocked };
            }
            Paced::BelowOne | Paced::Always => {}
        }
        // A window below one packet is a pace, as in Swift §3.4.
        if let Some(swift) =
            self.fallback.as_ref().filter(|swift| swift.allowance().window <= window)
        {
            return swift.allowance();
        }
        let rtt = self.last_rtt.or(self.rtt.smoothed()).unwrap_or(self.params.rto.initial);
        Allowance { window, pacing: Pacing::Delay(gap(rtt)) }
    }

    /// A packet for which the window has room leaves at once. With room for part of a packet only, the flow
    /// rests for RTT / window, regardless of acknowledgements in the meantime, and then sends one packet (Bolt
    /// ns-3). Without an RTT sample that packet also leaves at once.
    #[inline]
    fn departure(&mut self, now: Time, in_flight: u32) -> Departure {
        if now < self.rests_until {
            return Departure::At(self.rests_until);
        }
        let room = self.window() - f64::from(in_flight);
        if room <= 0.0 {
            self.rests_until = Time::ZERO;
            return Departure::Blocked;
        }
        let gap = self.rest();
        if room >= 1.0 || self.rests_until > Time::ZERO || gap.is_zero() {
            return Departure::Now;
        }
        self.rests_until = now.saturating_add(gap);
        Departure::At(self.rests_until)
    }

    #[inline]
    fn on_idle(&mut self, now: Time) {
        if self.rests_until <= now {
            self.rests_until = Time::ZERO;
        }
    }

    #[inline]
    fn rto(&self) -> Span {
        self.rtt.rto(&self.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.window(),
            fabric_cwnd: self.fallback.as_ref().map(|swift| swift.allowance().window),
            smoothed_rtt: self.rtt.smoothed(),
            ..Snapshot::default()
        }
    }
}

impl ReplaySender for Bolt {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }

    fn set_latest_rtt(&mut self, rtt: Span) {
        self.last_rtt = Some(rtt);
    }
}
