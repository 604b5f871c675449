//! The clocks of a host. Its own clock and that of its NIC differ and drift (Swift App. A).

use apus_transport::clock::ClockConverter;
use apus_units::{Span, Time};

/// A clock with an offset and a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Reading at the start of the simulation.
    pub offset: Span,
    /// Rate relative to true time, in parts per billion; negative is slower.
    pub drift_ppb: i32,
}

impl Clock {
    /// A clock that shows simulation time.
    pub const TRUE: Self = Self { offset: Span::ZERO, drift_ppb: 0 };
    const BILLION: i128 = 1_000_000_000;

    /// Returns the reading at the true time `now`.
    #[inline]
    pub(crate) fn read(self, now: Time) -> Time {
        if self.drift_ppb == 0 {
            return now + self.offset;
        }
        let drift = i128::from(now.as_ps()) * i128::from(self.drift_ppb) / Self::BILLION;
        Time::from_ps((i128::from(now.as_ps()) + drift + i128::from(self.offset.as_ps())) as u64)
    }

    /// Returns the first true time at which the reading is `reading` or later.
    #[inline]
    pub(crate) fn when_it_shows(self, reading: Time) -> Time {
        if reading == Time::MAX {
            return reading;
        }
        if self.drift_ppb == 0 {
            return reading.saturating_sub(self.offset);
        }
        let elapsed = i128::from(reading.as_ps()) - i128::from(self.offset.as_ps());
        let scaled = elapsed * Self::BILLION / (Self::BILLION + i128::from(self.drift_ppb));
        // The divisions here and in `read` round by less than a picosecond each.
        let mut now = Time::from_ps(u64::try_from(scaled - 2).unwrap_or(0));
        while self.read(now) < reading {
            now += Span::from_ps(1);
        }
        now
    }
}

/// The two clocks of a host and the conversion that its stack keeps between them.
#[derive(Clone, Debug)]
pub(crate) struct HostClocks {
    pub(crate) host: Clock,
    nic: Clock,
    /// Whether both clocks always show the same time.
    alike: bool,
    /// Conversion from NIC to host time, available from the first reading onwards.
    converter: Option<ClockConverter>,
    next_reading: Time,
    interval: Span,
}

impl HostClocks {
    /// Returns clocks whose stack reads both every `interval` (Swift App. A: "periodically").
    pub(crate) fn new(host: Clock, nic: Clock, interval: Span) -> Self {
        Self { host, nic, alike: host == nic, converter: None, next_reading: Time::ZERO, interval }
    }

    /// Returns a NIC timestamp taken at the true time `taken`, as the stack converts it to the
    /// host's clock at the true time `now`.
    #[inline]
    pub(crate) fn nic_timestamp(&mut self, taken: Time, now: Time) -> Time {
        if self.alike { self.host.read(taken) } else { self.converted(taken, now) }
    }

    /// Returns a NIC timestamp as the stack converts it ([`HostClocks::nic_timestamp`]).
    #[inline(never)] // the clocks of most runs are alike
    fn converted(&mut self, taken: Time, now: Time) -> Time {
        let (nic, host) = (self.nic.read(now), self.host.read(now));
        let converter = self.converter.get_or_insert_with(|| ClockConverter::new(nic, host));
        if now >= self.next_reading {
            converter.update(nic, host);
            self.next_reading = now + self.interval;
        }
        converter.to_host(self.nic.read(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_it_shows_inverts_read() {
        for drift_ppb in [-50_000, 0, 1, 37_000] {
            let clock = Clock { offset: Span::from_us(123), drift_ppb };
            for ps in [0, 1, 999_999_999, 123_456_789_012_345] {
                let reading = clock.read(Time::from_ps(ps));
                let back = clock.when_it_shows(reading);
                assert_eq!(clock.read(back), reading, "{clock:?} {ps}");
                assert!(back.as_ps() <= ps && ps - back.as_ps() <= 1);
            }
        }
    }

    /// Linear extrapolation (Swift App. A) follows a NIC clock that drifts by 40 ppm against the host's
    /// clock: after two readings only the rounding error remains.
    #[test]
    fn nic_timestamps_convert_despite_skew_and_drift() {
        let host = Clock { offset: Span::from_ms(5), drift_ppb: 15_000 };
        let nic = Clock { offset: Span::from_secs(9), drift_ppb: -25_000 };
        let mut clocks = HostClocks::new(host, nic, Span::from_ms(1));
        for ms in 0..100 {
            let taken = Time::from_ps(ms * 1_000_000_000 + 17);
            let processed = taken + Span::from_us(30);
            let converted = clocks.nic_timestamp(taken, processed);
            let error = converted.as_ps().abs_diff(host.read(taken).as_ps());
            if ms >= 2 {
                assert!(error < 1_000, "{error} ps at {ms} ms");
            }
        }
    }
}
