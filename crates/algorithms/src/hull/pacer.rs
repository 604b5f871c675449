//! HULL's pacer: a token bucket whose rate follows its input (NSDI 2012 §4.3).

use apus_units::{Rate, Time};

use super::params::PacerParams;
use apus_units::random::SplitMix64;

/// The pacer of one flow.
///
/// deviation: a NIC of the paper has one token bucket for all its paced flows. Sender halves of
/// several flows share nothing, so each has a separate bucket.
#[derive(Clone, Debug)]
pub struct Pacer {
    random: SplitMix64,
    /// `R_tb`, bit/s of wire bytes.
    rate: f64,
    line_rate: f64,
    /// End of pacing; in the past if the flow is not paced.
    until: Time,
    /// Time at which `R_tb` was last computed.
    computed_at: Time,
    /// `M_tb`: wire bytes sent since then.
    arrived: f64,
    /// `Q_tb`: wire bytes that the window admitted and the pacer delayed, at that time.
    backlog: f64,
}

impl Pacer {
    /// Creates the pacer of a flow that is not paced.
    #[must_use]
    pub fn new(line_rate: Rate, seed: u64) -> Self {
        let line_rate = line_rate.as_bps() as f64;
        Self {
            random: SplitMix64::new(seed),
            rate: line_rate,
            line_rate,
            until: Time::ZERO,
            computed_at: Time::ZERO,
            arrived: 0.0,
            backlog: 0.0,
        }
    }

    /// Returns the pace if the flow is paced.
    #[must_use]
    pub fn rate(&self, now: Time) -> Option<Rate> {
        (now < self.until).then(|| Rate::from_bps(self.rate as u64))
    }

    /// Handles an acknowledgement with marks: with a small probability the flow is paced from now
    /// on, "so that only flows that see many marks are", the large ones.
    pub fn on_mark(&mut self, params: &PacerParams, now: Time) {
        if self.random.uniform() >= params.probability {
            return;
        }
        if now >= self.until {
            // The first rate is the line rate; after some intervals the rate has adapted to the input.
            self.rate = self.line_rate;
            (self.computed_at, self.arrived, self.backlog) = (now, 0.0, 0.0);
        }
        self.until = now.saturating_add(params.timeout);
    }

    /// Handles a packet of `bytes` wire bytes that leaves. Without the pace, `backlog` more bytes could leave.
    ///
    /// Every `T_r`: `R_tb <- (1 - eta) * R_tb + eta * M_tb / T_r + beta * Q_tb`.
    pub fn on_transmit(&mut self, params: &PacerParams, now: Time, bytes: f64, backlog: f64) {
        if now >= self.until {
            return;
        }
        self.arrived += bytes;
        let elapsed = now.since(self.computed_at);
        if elapsed < params.interval {
            return;
        }
        // The input is the bytes sent plus the growth of the backlog.
        let came = self.arrived + backlog - self.backlog;
        let input = if came > 0.0 { came * 8.0 / elapsed.as_secs_f64() } else { 0.0 };
        let eta = params.eta;
        let rate = (1.0 - eta) * self.rate + eta * input + params.beta * 1e3 * backlog;
        // deviation: the paper names no minimum rate. At a rate of 0 no packet would leave. One packet per
        // `timeout`, which is also the duration of pacing, is practically zero.
        let least = bytes * 8.0 / params.timeout.as_secs_f64();
        let rate = if rate > least { rate } else { least };
        self.rate = if rate < self.line_rate { rate } else { self.line_rate };
        (self.computed_at, self.arrived, self.backlog) = (now, 0.0, backlog);
    }
}
