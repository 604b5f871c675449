//! The clock of a host. It drifts, and may jump ahead, as after a suspension of the machine.

use apus_units::{Span, Time};

const MILLION: i128 = 1_000_000;

/// Converts between the time of the world and the time of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostClock {
    /// An instant of the world, and the host's time at that instant.
    world: Time,
    host: Time,
    ppm: i64,
}

impl HostClock {
    /// Returns a clock that is `ppm` parts per million fast and shows `host` at `world`.
    pub(crate) fn new(world: Time, host: Time, ppm: i64) -> Self {
        Self { world, host, ppm }
    }

    /// Returns the host's time at an instant of the world.
    pub(crate) fn at(&self, world: Time) -> Time {
        let passed = i128::from(world.since(self.world).as_ps());
        let host = passed + passed * i128::from(self.ppm) / MILLION;
        self.host.saturating_add(Span::from_ps(host as u64))
    }

    /// Returns the time of the world at which the host's clock shows at least `host`; [`Time::MAX`] if it never does.
    pub(crate) fn when(&self, host: Time) -> Time {
        if host == Time::MAX {
            return Time::MAX;
        }
        let passed = i128::from(host.as_ps().saturating_sub(self.host.as_ps()));
        let world = passed * MILLION / (MILLION + i128::from(self.ppm)) + 1;
        self.world.saturating_add(Span::from_ps(world.min(i128::from(u64::MAX)) as u64))
    }

    /// Moves the host's clock ahead.
    pub(crate) fn jump(&mut self, now: Time, by: Span) {
        *self = Self { world: now, host: self.at(now).saturating_add(by), ppm: self.ppm };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_shows_more_and_instants_convert_back() {
        let at = |s| Time::ZERO + Span::from_secs(s);
        let mut clock = HostClock::new(at(10), at(100), 200);
        // 200 ppm of 1000 s are 0.2 s.
        let shown = at(1100) + Span::from_ms(200);
        assert_eq!(clock.at(at(1010)), shown);
        let back = clock.when(shown);
        assert!(back >= at(1010) && back.since(at(1010)) < Span::from_ns(1), "{back}");
        assert_eq!(clock.when(Time::MAX), Time::MAX);
        assert!(clock.when(at(5)) >= at(10), "in the past: at once");
        clock.jump(at(1010), Span::from_secs(5));
        assert_eq!(clock.at(at(1010)), shown + Span::from_secs(5));
    }
}
