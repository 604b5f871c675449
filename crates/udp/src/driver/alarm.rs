//! A timer of the kernel that wakes a thread. Setting the timer wakes no thread, and it is set only if it would expire
//! too late.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use apus_units::{Span, Time};
use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock::{monotonic, since};

/// An alarm. Its times are those of an engine's clock.
pub(super) struct Alarm {
    timer: OwnedFd,
    /// Start of the engine's clock, in nanoseconds of the monotonic clock.
    epoch: u64,
    /// Time at which the alarm goes off, in picoseconds; `u64::MAX` for never.
    at: AtomicU64,
    /// Delay of [`Alarm::set_soon`].
    soon: Span,
    /// Whether [`Alarm::set_soon`] has set the alarm.
    is_soon: AtomicBool,
}

impl Alarm {
    /// Returns an alarm that is not set, for a clock that started at `epoch`, in nanoseconds of the monotonic clock.
    /// `soon` is the delay of [`Alarm::set_soon`].
    ///
    /// # Errors
    /// If the system cannot create a timer.
    pub(super) fn new(epoch: u64, soon: Span) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let (at, is_soon) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        Ok(Self { timer, epoch, at, soon, is_soon })
    }

    /// Ensures that the alarm goes off within the delay that was given as `soon`.
    #[inline]
    pub(super) fn set_soon(&self) {
        if !self.is_soon.swap(true, Ordering::SeqCst) {
            self.set_within(self.soon);
        }
    }

    /// Ensures that the alarm goes off within `span`.
    #[inline]
    pub(super) fn set_within(&self, span: Span) {
        self.set_by(since(self.epoch, monotonic()) + span);
    }

    /// Ensures that the alarm goes off at `at` or earlier. [`Time::MAX`] is never.
    #[inline]
    pub(super) fn set_by(&self, at: Time) {
        if !self.is_set_by(at) {
            self.set(at.as_ps());
        }
    }

    /// Returns `true` if the alarm goes off at `at` or earlier, or `at` is [`Time::MAX`].
    #[inline]
    pub(super) fn is_set_by(&self, at: Time) -> bool {
        self.at.load(Ordering::SeqCst) <= at.as_ps()
    }

    fn set(&self, at: u64) {
        if self.at.fetch_min(at, Ordering::SeqCst) <= at {
            return;
        }
        let mut set = at;
        loop {
            // Rounded up, so that the alarm does not go off before `set`. Zero would disarm the timer.
            let ns = self.epoch.saturating_add(set.div_ceil(1_000)).max(1);
            let value = Timespec {
                tv_sec: (ns / 1_000_000_000) as i64,
                tv_nsec: (ns % 1_000_000_000) as _,
            };
            let once =
                Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            // This fails only if the time is invalid.
            let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once);
            // Another thread may have set an earlier time, and its system call may have preceded this one.
            let at = self.at.load(Ordering::SeqCst);
            if at >= set {
                return;
            }
            set = at;
        }
    }

    /// Resets the alarm after it has gone off. The caller must then check for the work that the alarm was set for. Work
    /// that another thread added before it found the alarm set is visible to this check.
    pub(super) fn take(&self) {
        // The read fails if another thread has set the alarm again meanwhile. The alarm then goes off once more.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        self.at.swap(u64::MAX, Ordering::SeqCst);
        self.is_soon.swap(false, Ordering::SeqCst);
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_units::Span;
    use rustix::event::{PollFd, PollFlags, poll};

    /// Returns an alarm whose clock starts now, and the current time of that clock.
    fn alarm() -> (Alarm, impl Fn() -> Time) {
        let epoch = monotonic();
        let now = move || since(epoch, monotonic());
        (Alarm::new(epoch, Span::from_ms(1)).expect("a timer"), now)
    }

    fn goes_off(alarm: &Alarm, within: Timespec) -> bool {
        let mut fds = [PollFd::new(alarm, PollFlags::IN)];
        poll(&mut fds, Some(&within)).expect("a poll") > 0
    }

    const LONG: Timespec = Timespec { tv_sec: 100, tv_nsec: 0 };
    const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    #[test]
    fn earliest_time_counts_until_the_alarm_is_taken() {
        let (alarm, now) = alarm();
        let hour = Time::ZERO + Span::from_secs(3_600);
        alarm.set_by(Time::MAX);
        alarm.set_by(hour);
        assert!(!goes_off(&alarm, NONE));
        let soon = now() + Span::from_ms(1);
        alarm.set_by(soon);
        alarm.set_by(hour);
        assert!(goes_off(&alarm, LONG) && now() >= soon);
        alarm.take();
        assert!(!goes_off(&alarm, NONE), "it is not set");
        alarm.set_by(hour);
        assert!(!goes_off(&alarm, NONE));
        alarm.set_by(Time::ZERO);
        assert!(goes_off(&alarm, LONG), "a time that has passed");
        alarm.take();
        for _ in 0..2 {
            let before = now();
            alarm.set_soon();
            alarm.set_soon();
            assert!(goes_off(&alarm, LONG) && now() >= before + Span::from_ms(1));
            alarm.take();
        }
    }

    /// If several threads set times concurrently, the earliest time counts, whatever the order of their calls.
    #[test]
    fn earliest_of_times_set_by_several_threads_counts() {
        for _ in 0..200 {
            let (alarm, _) = alarm();
            std::thread::scope(|scope| {
                for ms in [3_600_000, 1, 1_800_000] {
                    let alarm = &alarm;
                    scope.spawn(move || alarm.set_by(Time::ZERO + Span::from_ms(ms)));
                }
            });
            assert!(goes_off(&alarm, LONG));
        }
    }
}
