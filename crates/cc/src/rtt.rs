//! The smoothed RTT and the retransmission timeout that follows from it.

use alloc::format;

use apus_units::Span;

use crate::settings::{
    AT_LEAST_1, FRACTION, POSITIVE, ParamInfo, SettingError, Settings, number, require, time,
};
use crate::{StateError, StateField, StateOverride, TimeoutEvent};

/// Rule by which the retransmission timeout follows from the RTT: `multiplier * smoothed`, within `minimum`
/// and `maximum`. An EWMA smooths the end-to-end RTT (Swift §3.6). The rule has no variance term, as in the published Falcon
/// simulator and unlike RFC 6298 §2: the paper names only the average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtoRule {
    /// Weight of a new sample in the smoothed RTT, in (0, 1].
    pub gain: f64,
    /// Timeout over smoothed RTT, at least 1.
    pub multiplier: f64,
    /// The shortest timeout.
    pub minimum: Span,
    /// The longest timeout that follows from an RTT, without the time for pacing.
    pub maximum: Span,
    /// The timeout before any RTT sample.
    pub initial: Span,
}

impl RtoRule {
    /// Returns the rule in `settings`, from the parameters `rto_gain`, `rto_multiplier`, `min_rto`,
    /// `max_rto` and `initial_rto`.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            gain: settings.number("rto_gain"),
            multiplier: settings.number("rto_multiplier"),
            minimum: settings.time("min_rto"),
            maximum: settings.time("max_rto"),
            initial: settings.time("initial_rto"),
        }
    }

    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// If a value is out of its range; the error names the parameter.
    pub fn validate(&self) -> Result<(), SettingError> {
        let in_unit = self.gain > 0.0 && self.gain <= 1.0;
        require(in_unit, "rto_gain", "above 0 and at most 1", self.gain)?;
        let multiplies = self.multiplier >= 1.0 && self.multiplier.is_finite();
        require(multiplies, "rto_multiplier", "at least 1", self.multiplier)?;
        require(!self.minimum.is_zero(), "min_rto", "longer than 0", self.minimum)?;
        let ordered = self.minimum <= self.maximum;
        let limit = format!("at most `max_rto`, which is {}", self.maximum);
        require(ordered, "min_rto", &limit, self.minimum)?;
        require(!self.initial.is_zero(), "initial_rto", "longer than 0", self.initial)
    }
}

/// The parameter `rto_gain`, without a default.
pub const RTO_GAIN: ParamInfo =
    number("rto_gain", FRACTION, "weight of a new sample in the smoothed end-to-end RTT");
/// The parameter `rto_multiplier`, without a default.
pub const RTO_MULTIPLIER: ParamInfo =
    number("rto_multiplier", AT_LEAST_1, "retransmission timeout over smoothed RTT");
/// The parameter `min_rto`, without a default.
pub const MIN_RTO: ParamInfo = time("min_rto", POSITIVE, "shortest retransmission timeout");
/// The parameter `initial_rto`, without a default.
pub const INITIAL_RTO: ParamInfo =
    time("initial_rto", POSITIVE, "retransmission timeout before the first RTT sample");

/// The parameter `max_rto`. While a peer pauses, the RTT of the packets in flight grows by the pause, and the
/// timeouts that follow would last as long as the pause for many round trips.
pub const MAX_RTO: ParamInfo = time(
    "max_rto",
    POSITIVE,
    "longest retransmission timeout that follows from the RTT; pacing below one packet adds its delay",
)
.default(
    "1s",
    "deviation: the papers have no limit, and RFC 6298 §2.5 asks for 60 s or more; 1 s is the shortest that Linux \
        accepts (TCP_RTO_MAX_MS), and far above the RTT of any datacenter",
);

/// Returns `true` if the parameter `name` is a retransmission timeout, which may be longer than other
/// times.
pub fn is_timeout(name: &str) -> bool {
    [MIN_RTO.name, MAX_RTO.name, INITIAL_RTO.name].contains(&name)
}

/// The smoothed end-to-end RTT of one flow: 8 bytes; the rule is shared between flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttEstimator {
    /// Picoseconds; NaN before the first sample.
    smoothed: f64,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self { smoothed: f64::NAN }
    }
}

impl RttEstimator {
    /// Updates the average: `smoothed += gain * (sample - smoothed)`; the first sample becomes the
    /// average.
    #[inline]
    pub fn update(&mut self, rule: &RtoRule, sample: Span) {
        self.smoothed = ewma(self.smoothed, rule.gain, sample.as_ps_f64());
    }

    /// Overwrites the smoothed RTT with `ps` picoseconds.
    pub fn set_ps(&mut self, ps: f64) {
        self.smoothed = ps;
    }

    /// Sets the state of an algorithm of which only the smoothed RTT can be set.
    pub fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        state.check(&[StateField::SmoothedRtt])?;
        if let Some(ps) = state.smoothed_rtt_ps {
            self.set_ps(ps);
        }
        Ok(())
    }

    /// Returns the smoothed RTT; `None` before the first sample.
    #[inline]
    #[must_use]
    pub fn smoothed(&self) -> Option<Span> {
        (!self.smoothed.is_nan()).then(|| Span::from_ps_f64(self.smoothed))
    }

    /// Returns the retransmission timeout: `max(minimum, min(multiplier * smoothed, maximum) + gap)`, or
    /// `initial + gap` before the first sample. `gap` is the time that the algorithm adds for its
    /// pacing.
    #[inline]
    #[must_use]
    pub fn rto(&self, rule: &RtoRule, gap: Span) -> Span {
        if self.smoothed.is_nan() {
            return rule.initial.saturating_add(gap);
        }
        let follows = Span::from_ps_f64(self.smoothed * rule.multiplier).min(rule.maximum);
        follows.saturating_add(gap).max(rule.minimum)
    }
}

/// Number of doublings of the timeout since the last acknowledgement (RFC 6298 §5.5 and §5.7).
/// Algorithms with a window need none, because their window falls to its minimum. An algorithm
/// without a window keeps sending at its rate, and a timeout shorter than the RTT would expire
/// repeatedly before anything can be acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    doublings: u8,
}

impl Backoff {
    /// Maximum number of doublings. deviation: RFC 6298 §5.5 lets a maximum be 60 s or more; 64
    /// times a timeout of 1 ms or more is beyond any datacenter's RTT.
    const MAX_DOUBLINGS: u8 = 6;

    /// Processes the expiry of a timeout. The timeouts of one flight of packets double the timeout once.
    pub fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.is_same_flight {
            return;
        }
        self.doublings = (self.doublings + 1).min(Self::MAX_DOUBLINGS);
    }

    /// Resets the doublings because data was acknowledged.
    #[inline]
    pub fn on_ack(&mut self) {
        self.doublings = 0;
    }

    /// Returns the timeout with its doublings, at most 64 times the longer of `rule`'s shortest and initial
    /// timeouts. A timeout above this limit is not doubled. deviation: a maximum by RFC 6298 §2.5 is 60 s or
    /// more. After a pause of the peer the timeout may be `maximum`, and its doublings a minute.
    #[inline]
    #[must_use]
    pub fn applied(self, rto: Span, rule: &RtoRule) -> Span {
        let double =
            |rto: Span, doublings| (0..doublings).fold(rto, |rto, _| rto.saturating_add(rto));
        let longest = double(rule.minimum.max(rule.initial), Self::MAX_DOUBLINGS);
        double(rto, self.doublings).min(longest).max(rto)
    }
}

/// Returns an exponentially weighted moving average after one more sample; a NaN average becomes the sample.
#[inline]
pub fn ewma(average: f64, gain: f64, sample: f64) -> f64 {
    if average.is_nan() { sample } else { average + gain * (sample - average) }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, RtoRule, Span, TimeoutEvent};
    use apus_units::Time;

    /// By hand, with an initial timeout of 1 ms: 1 ms doubles six times, to 64 ms; 20 ms doubles to 40 and then reaches 64 ms; 4 s stay 4 s.
    #[test]
    fn timeouts_double_up_to_64_times_the_initial_one() {
        let ms = Span::from_ms;
        let rule = RtoRule {
            gain: 0.1,
            multiplier: 2.0,
            minimum: Span::from_us(500),
            maximum: ms(8000),
            initial: ms(1),
        };
        let mut backoff = Backoff::default();
        let timeout = TimeoutEvent::new(Time::ZERO);
        for (shortest, longer, longest) in [(2, 40, 4000), (4, 64, 4000), (8, 64, 4000)] {
            backoff.on_timeout(&timeout);
            let applied = [1, 20, 4000].map(|rto| backoff.applied(ms(rto), &rule));
            assert_eq!(applied, [ms(shortest), ms(longer), ms(longest)]);
        }
        for _ in 0..9 {
            backoff.on_timeout(&timeout);
        }
        assert_eq!(backoff.applied(ms(1), &rule), ms(64));
        let mut of_same = timeout;
        of_same.is_same_flight = true;
        backoff.on_ack();
        backoff.on_timeout(&of_same);
        assert_eq!(backoff.applied(ms(1), &rule), ms(1));
    }
}
