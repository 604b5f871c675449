//! RCP's switch half: one rate per port for all flows (IWQoS 2005 §2, equation 1).

use apus_units::{Bytes, Rate, Span, Time};

use super::header::RcpFields;
use super::params::PortParams;
use apus_cc::{CongestionHeader, PortView, SwitchFeedback, SwitchHalf, Verdict};

/// The smallest rate of a port: this many packets per average RTT. deviation: 0.01 in ns-2 rcp.cc, whose flows
/// can request a new rate by packets without data. Here a flow learns the rate with its next packet, after at
/// most ten RTTs.
const MIN_PACKETS_PER_RTT: f64 = 0.1;
/// Number of empty intervals after which nothing changes any more: with alpha = 0.4 the rate grows by 1.4 in
/// each, and 1.4^64 is far above the ratio of the largest rate to the smallest.
const MAX_INTERVALS: u64 = 64;

/// The rate of a port and the measurements from which it is computed.
///
/// Once per average RTT `d` of the flows, so that the factor T/d of the equation is 1, the port computes:
///
/// ```text
/// R <- R * (1 + (alpha * (C - y) - beta * q / d) / C)
/// ```
///
/// with the link's rate `C`, the rate `y` of all arriving bytes in the interval, dropped ones included (as in
/// ns-2's rcp.cc), and the queue `q` of all classes of the port. deviation: dropped bytes are those of the
/// half's own class, since each class has a half. A port computes when packets arrive; intervals without
/// packets are computed then.
#[derive(Clone, Copy, Debug)]
pub struct RcpPort {
    params: PortParams,
    /// Wire bytes of a full data packet.
    packet: Bytes,
    /// `R` in bit/s; 0 before the first packet, when the rate of the link becomes known.
    rate: f64,
    /// `d` in seconds.
    rtt: f64,
    /// Bytes of the half's class that the port refused in this interval.
    refused: u64,
    /// Bytes of all classes that the port had accepted when this interval began.
    taken: u64,
    began: Time,
}

impl RcpPort {
    /// Creates a port before its first packet.
    #[must_use]
    pub fn new(params: PortParams, packet: Bytes) -> Self {
        let rtt = params.initial_rtt.as_secs_f64();
        Self { params, packet, rate: 0.0, rtt, refused: 0, taken: 0, began: Time::ZERO }
    }

    /// `R`, after the first packet.
    #[must_use]
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate as u64)
    }

    /// `d`, the average RTT of the packets that stated one.
    #[must_use]
    pub fn rtt(&self) -> Span {
        Span::from_ps_f64(self.rtt * 1e12)
    }

    /// Ends the interval if an average RTT has passed.
    fn update(&mut self, view: &PortView<'_>) {
        let elapsed = view.now.since(self.began).as_secs_f64();
        if elapsed < self.rtt {
            return;
        }
        let capacity = view.link_rate.as_bps() as f64;
        let taken = taken(view);
        let arrived = taken.saturating_sub(self.taken) + self.refused;
        let input = arrived as f64 * 8.0 / elapsed;
        let queue = view.queue_bytes.get() as f64 * 8.0;
        let (alpha, beta) = (self.params.alpha, self.params.beta);
        let change = (alpha * (capacity - input) - beta * queue / self.rtt) / capacity;
        let least = MIN_PACKETS_PER_RTT * self.packet.get() as f64 * 8.0 / self.rtt;
        for _ in 0..((elapsed / self.rtt) as u64).min(MAX_INTERVALS) {
            let rate = self.rate * (1.0 + change);
            let rate = if rate > least { rate } else { least };
            self.rate = if rate < capacity { rate } else { capacity };
        }
        (self.refused, self.taken, self.began) = (0, taken, view.now);
    }
}

/// Returns the bytes of all classes that the port has accepted since the start.
fn taken(view: &PortView<'_>) -> u64 {
    (view.sent + view.queue_bytes).get()
}

impl SwitchHalf for RcpPort {
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        _bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        if self.rate == 0.0 {
            self.rate = self.params.initial_rate * view.link_rate.as_bps() as f64;
            (self.taken, self.began) = (taken(view), view.now);
        }
        self.update(view);
        if let Some(mut fields) = RcpFields::of(&header.fields) {
            if let Some(rtt) = fields.rtt() {
                self.rtt += self.params.rtt_gain * (rtt.as_secs_f64() - self.rtt);
            }
            fields.limit(Rate::from_bps(self.rate as u64));
            header.fields = fields.fields();
        }
        Verdict::Forward
    }

    fn on_refused(&mut self, bytes: Bytes) {
        self.refused += bytes.get();
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Fields
    }
}
