//! Grants of a receiving host: the total rate at which its receiver halves let their peers send.

use apus_units::{Bytes, Rate, Span, Time};

/// Kind of turn that a receiver half waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// No turn.
    #[default]
    None,
    /// A turn to grant what the sender has requested.
    Asked,
    /// A turn that no half needs for a requested grant.
    Unasked,
}

/// The pace of the grants of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantPace {
    /// Rate of the granted bytes.
    pub rate: Rate,
    /// Minimum number of bytes whose time one turn takes.
    pub least: Bytes,
    /// Maximum time for which a host catches up after late turns.
    pub most_late: Span,
    /// Rules that lower the rate while the inside of the network is congested, if any.
    pub regulation: Option<Regulation>,
}

/// The rules of a [`Regulator`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regulation {
    /// Time between two updates of the fraction of the rate.
    pub period: Span,
    /// Weight of the newest share of marked packets in the average.
    pub weight: f64,
    /// Average share of marked packets above which the fraction falls.
    pub target: f64,
    /// Relative decrease of the fraction, as a multiple of the amount by which the average exceeds the
    /// target.
    pub decrease: f64,
    /// Increase of the fraction per period. While no packet is marked, each increase is twice the previous
    /// one.
    pub increase: f64,
    /// Minimum of the fraction.
    pub least: f64,
}

/// State in which a data packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivedAs {
    /// With its payload.
    Whole {
        /// Whether the packet carried an ECN mark.
        marked: bool,
    },
    /// Without its payload.
    Trimmed {
        /// Whether the port to this host removed the payload.
        last_hop: bool,
    },
}

/// Fraction of a host's line rate at which it grants, adjusted by the congestion that arriving packets have
/// encountered.
#[derive(Clone, Debug)]
pub struct Regulator {
    rules: Regulation,
    part: f64,
    average: f64,
    /// Periods without congestion in a row.
    rises: u32,
    period_ends: Time,
    whole: u32,
    marked: u32,
    trimmed_within: u32,
    trimmed_at_last_hop: u32,
}

/// Number of periods without any packet after which the fraction is 1 from any value: 0.01 * (2^k - 1) > 1
/// for k = 7. deviation: no source; later periods change nothing.
const ENOUGH_PERIODS: u64 = 128;

impl Regulator {
    /// Creates a regulator that grants the whole rate from `now`.
    #[must_use]
    pub fn new(rules: Regulation, now: Time) -> Self {
        Self {
            rules,
            part: 1.0,
            average: 0.0,
            rises: 0,
            period_ends: now.saturating_add(rules.period),
            whole: 0,
            marked: 0,
            trimmed_within: 0,
            trimmed_at_last_hop: 0,
        }
    }

    /// Processes the arrival of a data packet.
    pub fn on_packet(&mut self, now: Time, arrived: ArrivedAs) {
        self.pass(now);
        match arrived {
            ArrivedAs::Whole { marked } => {
                self.whole += 1;
                self.marked += u32::from(marked);
            }
            ArrivedAs::Trimmed { last_hop: true } => self.trimmed_at_last_hop += 1,
            ArrivedAs::Trimmed { last_hop: false } => self.trimmed_within += 1,
        }
    }

    /// Returns the current fraction of the rate.
    pub fn part(&mut self, now: Time) -> f64 {
        self.pass(now);
        self.part
    }

    /// Closes the periods that have ended.
    fn pass(&mut self, now: Time) {
        if now < self.period_ends {
            return;
        }
        let period = self.rules.period.as_ps().max(1);
        let ended = now.since(self.period_ends).as_ps() / period + 1;
        for _ in 0..ended.min(ENOUGH_PERIODS) {
            self.close();
        }
        self.period_ends = self.period_ends.saturating_add(self.rules.period * ended);
    }

    /// uet-htsim 40ccb05, `OversubscribedCC::doCongestionControl`.
    fn close(&mut self) {
        let rules = self.rules;
        let all = self.whole + self.trimmed_within + self.trimmed_at_last_hop;
        let share = f64::from(self.marked) / f64::from(self.whole.max(1));
        let mut falls = self.trimmed_within > 0;
        if falls {
            self.part -= f64::from(self.trimmed_within) / f64::from(all);
        }
        self.average = self.average * (1.0 - rules.weight) + rules.weight * share;
        if self.average > rules.target {
            self.part *= 1.0 - (self.average - rules.target) * rules.decrease;
            falls = true;
        }
        if falls {
            self.rises = 0;
        } else {
            let times = if self.marked == 0 { f64::from(1_u32 << self.rises.min(31)) } else { 1.0 };
            self.part += rules.increase * times;
            self.rises = self.rises.saturating_add(1);
        }
        self.part = self.part.clamp(rules.least, 1.0);
        (self.whole, self.marked, self.trimmed_within, self.trimmed_at_last_hop) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Regulation = Regulation {
        period: Span::from_us(12),
        weight: 0.5,
        target: 0.3,
        decrease: 0.5,
        increase: 0.01,
        least: 0.01,
    };

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// By hand. Period 1: 10 packets, 1 of them trimmed within and 3 at the last hop: 1 - 0.1. Period 2: 8 of 10 marked: g = 0.4,
    /// 0.9 * (1 - 0.1 / 2) = 0.855. Then nothing: g = 0.2, and 0.01, 0.02, 0.04, ... more.
    #[test]
    fn the_part_follows_trims_and_marks_within_the_network() {
        let mut regulator = Regulator::new(RULES, at(0));
        for _ in 0..6 {
            regulator.on_packet(at(1), ArrivedAs::Whole { marked: false });
        }
        for last_hop in [true, true, true, false] {
            regulator.on_packet(at(2), ArrivedAs::Trimmed { last_hop });
        }
        assert_eq!(regulator.part(at(11)), 1.0);
        assert!((regulator.part(at(12)) - 0.9).abs() < 1e-12);
        for number in 0..10 {
            regulator.on_packet(at(13), ArrivedAs::Whole { marked: number < 8 });
        }
        assert!((regulator.part(at(24)) - 0.855).abs() < 1e-12);
        assert!((regulator.part(at(36)) - 0.865).abs() < 1e-12);
        assert!((regulator.part(at(60)) - 0.925).abs() < 1e-12);
        assert_eq!(regulator.part(at(100_000_000)), 1.0);
    }

    /// With marks below the target the fraction grows by the same amount each time; it never falls below its
    /// minimum.
    #[test]
    fn marks_slow_the_rise_and_the_part_has_a_least_value() {
        let mut regulator = Regulator::new(RULES, at(0));
        for _ in 0..4 {
            regulator.on_packet(at(1), ArrivedAs::Trimmed { last_hop: false });
        }
        assert_eq!(regulator.part(at(12)), 0.01);
        for period in 1..=3_u32 {
            let now = at(12 * u64::from(period) + 1);
            for number in 0..10 {
                regulator.on_packet(now, ArrivedAs::Whole { marked: number == 0 });
            }
        }
        assert!((regulator.part(at(48)) - 0.04).abs() < 1e-12);
    }
}
