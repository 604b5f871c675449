//! Credit feedback control: how fast a receiver sends credits.

use apus_units::{Span, Time};

use super::params::{Params, Variant};
use apus_cc::CreditEcho;
use apus_cc::rtt::ewma;

/// Weight of a new sample in the receiver's RTT (ns2-xpass: 0.8 of the old, 0.2 of the new).
const RTT_GAIN: f64 = 0.2;
/// How much `w` grows in a period without congestion (ns2-xpass).
const W_STEP: f64 = 0.05;

/// The credit rate of one flow, in credits per second, computed once per RTT from the fraction of
/// credits lost.
#[derive(Clone, Debug)]
pub struct Feedback {
    rate: f64,
    /// The rate of credits at which the line is full.
    max_rate: f64,
    w: f64,
    /// The last period increased the rate.
    increased: bool,
    /// Picoseconds; NaN before the first sample.
    rtt: f64,
    period_began: Time,
    /// Credits of this period known to be used or lost; `lost` counts the lost ones.
    total: u32,
    lost: u32,
    /// Number of the next credit to be echoed if none is lost.
    expected: u32,
}

impl Feedback {
    /// Creates the control of a flow whose line carries `max_rate` credits per second. `first` is the number of
    /// its first credit, and `packets` the number of packets to send.
    #[must_use]
    pub fn new(params: &Params, max_rate: f64, now: Time, first: u32, packets: u32) -> Self {
        let rate = if params.feedback { params.first_share(packets) * max_rate } else { max_rate };
        Self {
            rate,
            max_rate,
            w: params.w_init,
            increased: false,
            rtt: f64::NAN,
            period_began: now,
            total: 0,
            lost: 0,
            expected: first,
        }
    }

    /// Credits per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The aggressiveness factor.
    #[must_use]
    pub fn w(&self) -> f64 {
        self.w
    }

    /// The smoothed RTT, once there is a sample.
    #[must_use]
    pub fn rtt(&self) -> Option<Span> {
        (!self.rtt.is_nan()).then(|| Span::from_ps_f64(self.rtt))
    }

    /// Handles a data packet that arrived for this credit. Ends the period if an RTT has passed.
    pub fn on_echo(&mut self, params: &Params, now: Time, echo: &CreditEcho) {
        self.rtt = ewma(self.rtt, RTT_GAIN, echo.rtt.as_ps_f64());
        // Serial number arithmetic: an echo before the expected one was overtaken, and was counted as lost.
        let gap = echo.number.wrapping_sub(self.expected);
        if gap > u32::MAX / 2 {
            self.lost = self.lost.saturating_sub(1);
        } else {
            // A peer may echo any number, so the sums saturate.
            self.lost = self.lost.saturating_add(gap);
            self.total = self.total.saturating_add(gap).saturating_add(1);
            self.expected = echo.number.wrapping_add(1);
        }
        let period = now.since(self.period_began);
        if params.feedback && period.as_ps_f64() >= self.rtt && self.total > 0 {
            self.adjust(params, period);
            (self.total, self.lost, self.period_began) = (0, 0, now);
        }
    }

    /// Once per RTT.
    fn adjust(&mut self, params: &Params, period: Span) {
        let loss = f64::from(self.lost) / f64::from(self.total);
        match params.variant {
            Variant::Paper => self.adjust_paper(params, loss),
            Variant::Code => self.adjust_code(params, loss, period),
        }
        // At least one credit per RTT (ns2-xpass).
        self.rate = self.rate.max(1e12 / self.rtt.max(1.0));
    }

    /// ExpressPass Alg. 1, as written. Two of its properties show in the experiments:
    ///
    /// * A loss shows one RTT after its credits were sent. The period after a cut therefore still counts
    ///   credits from before the cut, and each cut is made twice. A few flows leave part of the link unused: 4
    ///   flows use 83 % instead of 95 %. If a cut starts from the rate of one RTT earlier, they use 95 %. At
    ///   100 Gb/s, however, a second flow then needs 1.1 ms and more to reach its share instead of 0.7.
    /// * Every flow accepts the same loss. A flow over six full links meets a loss of 1 - 0.9^6 where
    ///   the others meet 0.1, reduces its rate each time, and starves.
    fn adjust_paper(&mut self, params: &Params, loss: f64) {
        let target = params.target_loss;
        if loss <= target {
            if self.increased {
                self.w = f64::midpoint(self.w, params.w_max);
            }
            self.increased = true;
            self.rate = (1.0 - self.w) * self.rate + self.w * self.max_rate * (1.0 + target);
        } else {
            self.rate *= (1.0 - loss) * (1.0 + target);
            self.w = (self.w / 2.0).max(params.w_min);
            self.increased = false;
        }
    }

    /// The rule of the authors' simulator. A cut leads to the delivered rate, which a second cut does not
    /// reduce. The accepted loss falls as the rate grows, so that slow flows gain.
    fn adjust_code(&mut self, params: &Params, loss: f64, period: Span) {
        let target = params.target_loss * (1.0 - self.rate / self.max_rate);
        if loss > target {
            let delivered = f64::from(self.total - self.lost) / period.as_secs_f64();
            self.rate = self.rate.min(delivered * (1.0 + target));
            self.w = (self.w / 2.0).max(params.w_min);
            self.increased = false;
        } else {
            if self.increased {
                self.w = (self.w + W_STEP).min(params.w_max);
            }
            self.increased = true;
            self.rate = self.w * self.max_rate + (1.0 - self.w) * self.rate;
        }
        self.rate = self.rate.min(self.max_rate);
    }
}
