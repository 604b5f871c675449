//! The engine's clock, and the conversion of timestamps of the kernel and the NIC to it (Swift App. A).

use std::fs::File;
use std::io;
use std::path::Path;

use apus_transport::clock::ClockConverter;
use apus_units::{Span, Time};
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

use crate::sys::{Departure, Meta};

/// Interval of clock comparisons. deviation: App. A says "periodic"; a pair of readings errs by about 100 ns here,
/// which is 0.1 ppm over one second.
const READING_PERIOD: Span = Span::from_secs(1);
/// Number of pairs of readings per comparison, of which the fastest counts. A pair errs by the time for which its
/// thread was descheduled between the readings. deviation: no source; rationale: the thread would have to be
/// descheduled three times within a microsecond.
const PAIRS: u32 = 3;

/// Maximum plausible age of a timestamp. An older timestamp means that the clock was set. deviation: no source; longer
/// than any datagram waits in a socket.
const MAX_AGE: Span = Span::from_secs(10);

/// Maximum running time of an engine: [`Time`] ends at 2^64 ps, which is 213.5 days. Half a day is left for timers.
pub(crate) const LIFETIME: Span = Span::from_secs(213 * 86_400);

/// Clock of an engine: time since its start, on the monotonic clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Start of the engine on the monotonic clock, in nanoseconds.
    epoch: u64,
    kernel: Converted,
    nic: Option<(File, Converted)>,
    next_reading: Time,
}

/// Conversion of another clock. Its instants are represented as picoseconds since an hour before its first reading.
#[derive(Debug)]
struct Converted {
    epoch: i128,
    converter: ClockConverter,
}

impl Converted {
    fn new(reading: i128, now: Time) -> Self {
        // Makes instants up to one hour before the first reading representable.
        let epoch = reading - 3_600_000_000_000;
        let at = foreign(epoch, reading);
        Self { epoch, converter: ClockConverter::new(at, now) }
    }

    fn update(&mut self, reading: i128, now: Time) {
        match u64::try_from(reading - self.epoch).ok().and_then(|since| since.checked_mul(1_000)) {
            Some(since) => self.converter.update(Time::from_ps(since), now),
            // The clock was set by more than the representation allows.
            None => *self = Self::new(reading, now),
        }
    }

    /// Converts an instant to the engine's time. Returns `None` if the result is not plausible.
    fn convert(&self, instant: i128, now: Time) -> Option<Time> {
        plausible(self.converter.to_host(foreign(self.epoch, instant)), now)
    }
}

/// Limits the time of a timestamp to at most `now`. Returns `None` if the time is not plausible.
pub(crate) fn plausible(at: Time, now: Time) -> Option<Time> {
    let at = at.min(now);
    (now.since(at) < MAX_AGE).then_some(at)
}

fn foreign(epoch: i128, instant: i128) -> Time {
    let since = u64::try_from(instant - epoch).unwrap_or(0);
    Time::from_ps(since.saturating_mul(1_000))
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// Returns a reading of another clock, and the time of the monotonic clock at which it was taken, in nanoseconds. The
/// result is the fastest of [`PAIRS`] pairs, and errs by at most half of the pair's duration.
fn pair<E>(read: impl Fn() -> Result<i128, E>, host: impl Fn() -> u64) -> Result<(i128, u64), E> {
    let mut best: Option<(u64, i128, u64)> = None;
    for _ in 0..PAIRS {
        let before = host();
        let reading = read()?;
        let took = host().saturating_sub(before);
        if best.is_none_or(|(least, ..)| took < least) {
            best = Some((took, reading, before + took / 2));
        }
    }
    let (_, reading, at) = best.unwrap_or_default();
    Ok((reading, at))
}

/// Returns the time of the monotonic clock, which counts from the start of the machine, in nanoseconds.
#[inline]
pub(crate) fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the engine's time at instant `at` of the monotonic clock.
#[inline]
pub(crate) fn since(epoch: u64, at: u64) -> Time {
    Time::from_ps(at.saturating_sub(epoch).saturating_mul(1_000))
}

fn realtime() -> i128 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Returns a pair of readings of the real-time and the monotonic clock.
fn realtime_pair() -> (i128, u64) {
    let read = || Ok::<_, std::convert::Infallible>(realtime());
    let Ok(pair) = pair(read, monotonic);
    pair
}

impl Clock {
    /// Returns a clock that starts now. `nic` is the device of the NIC's clock (`/dev/ptp0`), if there is one.
    pub(crate) fn new(nic: Option<&Path>) -> io::Result<Self> {
        let (reading, epoch) = realtime_pair();
        let kernel = Converted::new(reading, Time::ZERO);
        let nic = match nic {
            None => None,
            Some(path) => {
                let file = File::open(path)?;
                let (reading, at) = pair(|| read_nic(&file), monotonic)?;
                Some((file, Converted::new(reading, since(epoch, at))))
            }
        };
        Ok(Self { epoch, kernel, nic, next_reading: Time::ZERO + READING_PERIOD })
    }

    /// Returns the start of the engine on the monotonic clock, in nanoseconds.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the current time.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        since(self.epoch, monotonic())
    }

    /// Compares the clocks if that is due.
    pub(crate) fn compare(&mut self, now: Time) {
        if now >= self.next_reading {
            self.next_reading = now + READING_PERIOD;
            if let Some((file, nic)) = &mut self.nic
                && let Ok((reading, at)) = pair(|| read_nic(file), monotonic)
            {
                nic.update(reading, since(self.epoch, at));
            }
            let (reading, at) = realtime_pair();
            self.kernel.update(reading, since(self.epoch, at));
        }
    }

    /// Returns when a datagram was received (t2, t5): the NIC's timestamp if it is plausible, otherwise the kernel's,
    /// otherwise `now`.
    #[inline]
    pub(crate) fn received(&self, meta: &Meta, now: Time) -> Time {
        self.convert(meta.nic_received_at, meta.received_at, now).unwrap_or(now)
    }

    /// Returns when a datagram left (t1): the NIC's timestamp if it is plausible, otherwise the kernel's, otherwise
    /// `None`.
    pub(crate) fn sent(&self, departure: &Departure, now: Time) -> Option<Time> {
        self.convert(departure.nic_left_at, departure.left_at, now)
    }

    #[inline]
    fn convert(&self, nic_instant: Option<i128>, instant: Option<i128>, now: Time) -> Option<Time> {
        let by_nic = match (&self.nic, nic_instant) {
            (Some((_, nic)), Some(instant)) => nic.convert(instant, now),
            _ => None,
        };
        by_nic.or_else(|| self.kernel.convert(instant?, now))
    }
}

fn read_nic(file: &File) -> io::Result<i128> {
    use std::os::fd::AsFd;
    Ok(nanoseconds(clock_gettime_dynamic(DynamicClockId::Dynamic(file.as_fd()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(received_at: Option<i128>) -> Meta {
        Meta { received_at, ..Meta::new(([127, 0, 0, 1], 1).into(), 0) }
    }

    #[test]
    fn a_kernel_timestamp_lies_between_the_readings_around_it() {
        let mut clock = Clock::new(None).expect("clock");
        let slack = Span::from_us(50);
        let mut lies_between = || {
            clock.compare(Time::from_ps(u64::MAX / 2));
            let before = clock.now();
            let stamp = realtime();
            let after = clock.now();
            let received = clock.received(&meta(Some(stamp)), clock.now());
            received + slack >= before && received <= after + slack
        };
        // The error is larger if the thread is descheduled during the comparison, but that does not happen in every
        // attempt.
        assert!((0..10_000).any(|_| lies_between()), "never within {slack}");
    }

    /// Readings that took 9, 3 and 20 ns: the second pair counts, with its middle.
    #[test]
    fn the_fastest_pair_of_readings_counts() {
        let host = std::cell::RefCell::new([100, 109, 200, 203, 300, 320].into_iter());
        let foreign = std::cell::RefCell::new([1000, 1100, 1200].into_iter());
        let read = || foreign.borrow_mut().next().ok_or(());
        let now = || host.borrow_mut().next().expect("two readings for each pair");
        assert_eq!(pair(read, now), Ok((1100, 201)));
    }

    /// Swift App. A: the NIC's clock has an offset and a drift of its own; two readings give both.
    #[test]
    fn swift_appendix_a_the_nics_timestamp_is_converted_and_preferred_to_the_kernels() {
        let mut clock = Clock::new(None).expect("clock");
        let at = |s| Time::ZERO + Span::from_secs(s);
        // The NIC's clock began a day earlier and gains 50 ppm.
        let nic = |host: Time| {
            let ns = i128::from(host.since(Time::ZERO).as_ps() / 1_000);
            86_400_000_000_000 + ns + ns * 50 / 1_000_000
        };
        let mut converted = Converted::new(nic(at(0)), at(0));
        for s in 1..=3 {
            converted.update(nic(at(s)), at(s));
        }
        let device = File::open("/dev/null").expect("a file that is never read");
        clock.nic = Some((device, converted));
        let (received, now) = (at(3) + Span::from_ms(700), at(4));
        let meta =
            |nic_received_at| Meta { nic_received_at, ..meta(Some(realtime() - 1_000_000_000)) };
        let by_nic = clock.received(&meta(Some(nic(received))), now);
        // Without the drift, the error would be 35 us in 700 ms.
        let error = by_nic.max(received).since(by_nic.min(received));
        assert!(error < Span::from_ns(100), "{error}");
        let departure = Departure { number: 0, left_at: None, nic_left_at: Some(nic(received)) };
        assert_eq!(clock.sent(&departure, now), Some(by_nic), "departures by the same conversion");
        // If the NIC's timestamp is not plausible, the kernel's timestamp counts.
        assert_ne!(clock.received(&meta(Some(nic(at(3)) - 60_000_000_000)), now), by_nic);
    }

    /// A clock that was set back by two hours, and a clock that was set from 1970 to the present, are converted
    /// correctly after the next comparison.
    #[test]
    fn a_clock_that_was_set_is_converted_again() {
        let at = |s| Time::ZERO + Span::from_secs(s);
        let hours = |n: i128| n * 3_600_000_000_000;
        let now = hours(500_000);
        for (before, after) in [(now, now - hours(2)), (0, now), (now, 0)] {
            let mut clock = Converted::new(before, at(0));
            clock.update(before + 1_000_000_000, at(1));
            clock.update(after, at(2));
            clock.update(after + 1_000_000_000, at(3));
            let stamp = after + 1_500_000_000;
            let converted = clock.convert(stamp, at(4)).expect("plausible");
            let error = converted
                .max(at(3) + Span::from_ms(500))
                .since(converted.min(at(3) + Span::from_ms(500)));
            assert!(error < Span::from_us(1), "{error}");
        }
    }

    #[test]
    fn an_implausible_timestamp_is_replaced_by_now() {
        let clock = Clock::new(None).expect("clock");
        let now = Time::ZERO + Span::from_secs(60);
        let stamp = realtime();
        assert_eq!(clock.received(&meta(Some(stamp - 3_000_000_000_000)), now), now);
        assert_eq!(clock.received(&meta(Some(stamp + 3_000_000_000_000)), now), now);
        assert_eq!(clock.received(&meta(None), now), now);
    }
}
