//! DCTCP's sender half (RFC 8257 §3.3-3.5).

use alloc::sync::Arc;

use apus_units::{PacketNumber, Span};

use super::params::{self, Params};
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation,
    Ecn, FlowInfo, LossEvent, Pacing, PacketSizeEvent, Plain, ProfileInfo, ReplaySender,
    RttEstimator, SendInfo, Sender, SettingError, Settings, Snapshot, StateError, StateOverride,
    SwitchInfo, TimeoutEvent, Tunable,
};

/// Smallest slow-start threshold in packets (RFC 5681 §3.1, equation 4).
const MIN_SSTHRESH: f64 = 2.0;

/// Packets by which each marked packet shrinks the window, if each packet counts (REPS's artifact b751588,
/// `updateCwndOnAck_MPRDMA`).
const CUT_PER_MARK: f64 = 0.25;

/// The sender half of DCTCP. Bytes of the RFC are packets here, and its sequence numbers are packet numbers:
/// every packet of a flow except the last one of an op has full size.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: Arc<Params>,
    /// Packets.
    cwnd: f64,
    /// Slow-start threshold in packets (RFC 5681 §3.1).
    ssthresh: f64,
    /// DCTCP.Alpha, the estimated fraction of marked packets (RFC 8257 §3.3).
    alpha: f64,
    /// DCTCP.WindowEnd: the observation window ends when this packet is acknowledged.
    window_end: PacketNumber,
    /// Marks on packets before this one do not cut: the window was already cut in their RTT.
    cut_until: PacketNumber,
    /// Losses before this one do not cut: the window was already halved in their RTT.
    halved_until: PacketNumber,
    /// DCTCP.BytesAcked in packets.
    acked: u32,
    /// DCTCP.BytesMarked in packets.
    marked: u32,
    /// Whether the last event was a timeout: another one keeps ssthresh (RFC 5681 §3.1).
    timed_out: bool,
    rtt: RttEstimator,
}

impl Algorithm for Dctcp {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = Plain;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "dctcp",
        summary: "cuts the window once per RTT by half the fraction of ECN-marked packets",
        source: "RFC 8257: Data Center TCP (2017); GCN: Swift (SIGCOMM 2020) §4.1",
        profiles: &[
            ProfileInfo { name: params::RFC8257, doc: "as in RFC 8257" },
            ProfileInfo {
                name: params::GCN,
                doc: "Google's variant, which cuts by the mark rate of the current window",
            },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, _: &FlowInfo) -> Self {
        Self {
            cwnd: params.initial_cwnd,
            // RFC 5681 §3.1: "the initial value of ssthresh SHOULD be set arbitrarily high".
            ssthresh: params.max_cwnd,
            alpha: params.initial_alpha,
            window_end: PacketNumber::new(0),
            cut_until: PacketNumber::new(0),
            halved_until: PacketNumber::new(0),
            acked: 0,
            marked: 0,
            timed_out: false,
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

impl Dctcp {
    /// The estimated fraction of marked packets, DCTCP.Alpha (RFC 8257 §3.3).
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The slow-start threshold in packets (RFC 5681 §3.1).
    #[must_use]
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// RFC 8257 §3.3 steps 1-8: once per window of data, by sequence.
    #[inline]
    fn estimate(&mut self, event: &AckEvent<'_>) {
        self.acked += event.acked_packets;
        self.marked += event.marked_packets;
        if event.acked_seq < self.window_end || self.acked == 0 {
            return;
        }
        let fraction = f64::from(self.marked) / f64::from(self.acked);
        self.alpha = self.alpha * (1.0 - self.params.g) + self.params.g * fraction;
        self.window_end = event.next_seq;
        (self.acked, self.marked) = (0, 0);
    }

    /// Implements `updateCwndOnAck_MPRDMA` of REPS's artifact b751588, where each acknowledgement is for one
    /// packet. deviation: the artifact's `fast_increase` is left out. It adds half of the acknowledged bytes
    /// once a window of bytes has met delays below 1 us. It is off there without `-enable_fi`, which
    /// `run_failures_test.py` sets.
    #[inline(never)] // only with `reaction = "per-packet"`
    fn count(&mut self, event: &AckEvent<'_>) {
        let marked = event.marked_packets.min(event.acked_packets);
        let grown = self.cwnd + f64::from(event.acked_packets - marked) / self.cwnd;
        self.cwnd = grown.min(self.params.max_cwnd);
        self.shrink(CUT_PER_MARK * f64::from(marked));
    }

    fn shrink(&mut self, packets: f64) {
        self.cwnd = (self.cwnd - packets).max(self.params.min_cwnd);
    }

    /// RFC 8257 §3.4: slow start and congestion avoidance as in RFC 5681 §3.1. Every acknowledged packet
    /// counts, since ACKs are not delayed but may be coalesced.
    #[inline]
    fn grow(&mut self, acked: u32) {
        let acked = f64::from(acked);
        let step = if self.cwnd < self.ssthresh { acked } else { acked / self.cwnd };
        self.cwnd = (self.cwnd + step).min(self.params.max_cwnd);
    }
}

impl Sender for Dctcp {
    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rtt.update(&self.params.rto, event.rtt);
        if self.params.per_packet {
            return self.count(event);
        }
        self.estimate(event);
        if event.acked_packets > 0 {
            self.timed_out = false;
        }
        if event.marked_packets == 0 {
            self.grow(event.acked_packets);
        } else if event.acked_seq >= self.cut_until {
            // RFC 8257 §3.3 step 9, at most once per window of data (RFC 3168 §6.1.2, which also forbids growth
            // on a marked ACK). Alpha covers the last completed window of data, also for GCN (g = 1). The first
            // mark after a window without marks therefore cuts by nothing.
            let cut = self.cwnd * (1.0 - self.alpha / 2.0);
            self.cwnd = cut.max(self.params.min_cwnd);
            self.ssthresh = self.cwnd.max(MIN_SSTHRESH);
            self.cut_until = event.next_seq;
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        if self.params.per_packet {
            return self.shrink(f64::from(event.lost_packets));
        }
        // RFC 8257 §3.5: a loss halves the window as in conventional TCP, once per window of data. A cut by
        // marks in the same window does not replace this, because it may have been tiny.
        if event.lost_seq < self.halved_until {
            return;
        }
        self.ssthresh = (self.cwnd / 2.0).max(MIN_SSTHRESH);
        self.cwnd = (self.cwnd / 2.0).max(self.params.min_cwnd);
        self.cut_until = event.next_seq;
        self.halved_until = event.next_seq;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if self.params.per_packet {
            return self.shrink(f64::from(event.lost_packets));
        }
        // RFC 5681 §3.1: ssthresh follows equation 4, but stays when the same data times out again. The window
        // falls to the loss window.
        if !self.timed_out {
            self.ssthresh = (self.cwnd / 2.0).max(MIN_SSTHRESH);
        }
        self.timed_out = true;
        self.cwnd = self.params.min_cwnd;
        self.cut_until = event.next_seq;
        self.halved_until = event.next_seq;
    }

    #[inline]
    fn on_transmit(&mut self, header: &mut CongestionHeader, _: &SendInfo) {
        header.ecn = Ecn::Capable;
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        let Params { min_cwnd, max_cwnd, .. } = *self.params;
        self.cwnd = event.scaled(self.cwnd).max(min_cwnd).min(max_cwnd);
        self.ssthresh = event.scaled_threshold(self.ssthresh, max_cwnd).max(MIN_SSTHRESH);
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

impl ReplaySender for Dctcp {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.rtt.set_state(state)
    }
}
