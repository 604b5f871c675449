//! Synchronisation of several threads, each with a part of the network.
//!
//! Conservative parallel simulation (Chandy and Misra 1979) with a global window: a packet that crosses from
//! one part into another takes at least the delay of the link, the *lookahead*. Therefore all parts can run
//! the events of a window of that length, starting at the earliest pending event of all parts, without data
//! from each other. Between two windows they exchange packets. Within a window no part depends on another
//! part, and the events of a part are ordered by (time, entity), as in the whole network. Therefore the
//! results are the same for any number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use apus_cc::Telemetry;
use apus_fabric::Transit;
use apus_units::{PortId, Span, Time};
use apus_wire::Header;

use crate::jobs::Notice;
use crate::waiters::Waiters;

/// A packet in transit from one part to another.
pub(crate) struct Message {
    pub(crate) port: PortId,
    pub(crate) arrives: Time,
    pub(crate) packet: Transit<Header>,
}

/// Packets that one part sends to another in a window.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) messages: Vec<Message>,
    /// Telemetry of the packets that carry it, in the order of the packets.
    pub(crate) telemetry: Vec<Telemetry>,
    /// Paths that were resolved after the parts were built, and that only the sender knows, in the order of
    /// the first packets on them.
    pub(crate) paths: Vec<Vec<PortId>>,
    /// Notices for senders of messages of jobs.
    pub(crate) notices: Vec<Notice>,
}

impl Parcel {
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.telemetry.clear();
        self.paths.clear();
        self.notices.clear();
    }
}

/// Number of checks of another part's window before a waiting thread sleeps: some tens of
/// microseconds, about the time of a wake-up. Parts with their own core rarely wait for that long.
/// deviation: no source.
const LOOKS: u32 = 2000;

/// Progress of one part. It has its own 128 bytes, because processors fetch pairs of cache lines.
#[repr(align(128))]
struct Seat {
    /// Number of windows that the part has run.
    windows: AtomicUsize,
    /// By copy: time of the part's earliest event, including packets in its parcels.
    next: [AtomicU64; 2],
    /// By copy: whether all parts must stop after the window.
    stop: [AtomicBool; 2],
    /// Nanoseconds that the part's thread has waited for other threads.
    waited: AtomicU64,
}

/// Data that a part passes to the other parts between two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// Time of the part's earliest event or of the earliest packet that it sent.
    pub(crate) next: Time,
    /// Whether all parts must stop after the window.
    pub(crate) stop: bool,
}

/// By copy: the parcel from one part to another. Sender and receiver never use the same copy at the same
/// time, so the lock is never contended; it costs two instructions per window.
#[derive(Default)]
#[repr(align(128))]
struct Place([Mutex<Parcel>; 2]);

/// Synchronisation of the parts between windows. All data exists in two copies for alternating windows.
/// Therefore one synchronisation per window is enough: a part that is ahead writes into the other copy, and
/// no part is ahead by more than one window.
pub(crate) struct Exchange {
    lookahead: Span,
    /// By sender and receiver: their parcels.
    places: Vec<Place>,
    /// By part: its progress.
    seats: Vec<Seat>,
    /// Number of checks before a thread sleeps. It is 0 with fewer cores than parts, because a checking
    /// thread would occupy the core of the thread that it waits for.
    looks: u32,
    /// Threads that sleep until a part has run a window.
    waiters: Waiters,
    /// A part panicked: the other parts must not wait for it.
    failed: AtomicBool,
}

/// Guard that reports a panic of its thread to the other parts.
pub(crate) struct PanicAlarm<'a>(pub(crate) &'a Exchange);

impl Drop for PanicAlarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Release);
            self.0.waiters.wake();
        }
    }
}

impl Exchange {
    pub(crate) fn new(parts: u32, lookahead: Span) -> Self {
        let parts = parts as usize;
        let seat = || Seat {
            windows: AtomicUsize::new(0),
            next: Default::default(),
            stop: Default::default(),
            waited: AtomicU64::new(0),
        };
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            lookahead,
            places: (0..parts * parts).map(|_| Place::default()).collect(),
            seats: (0..parts).map(|_| seat()).collect(),
            looks: if parts <= cores { LOOKS } else { 0 },
            waiters: Waiters::new(),
            failed: AtomicBool::new(false),
        }
    }

    /// Swaps `parcel` with the empty parcel from part `from` to part `to`.
    pub(crate) fn post(&self, window: usize, from: u32, to: usize, parcel: &mut Parcel) {
        std::mem::swap(&mut *self.open(window, from as usize, to), parcel);
    }

    /// Takes the parcels for part `to`, one per sender, each in exchange for the empty `parcel`; `take` must
    /// leave it empty.
    pub(crate) fn collect(
        &self,
        window: usize,
        to: u32,
        parcel: &mut Parcel,
        mut take: impl FnMut(u32, &mut Parcel),
    ) {
        for from in 0..self.seats.len() {
            if from != to as usize {
                std::mem::swap(&mut *self.open(window, from, to as usize), parcel);
                take(from as u32, parcel);
            }
        }
    }

    fn open(&self, window: usize, from: usize, to: usize) -> MutexGuard<'_, Parcel> {
        let place = &self.places[from * self.seats.len() + to];
        // A panic of a part ends the run; until then its parcel is complete.
        place.0[window % 2].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the end of the window whose first event is at `next`, at most `end`.
    pub(crate) fn limit(&self, next: Time, end: Time) -> Time {
        next.saturating_add(self.lookahead).min(end)
    }

    /// Returns the total time that the threads of all parts have waited for each other.
    pub(crate) fn waited(&self) -> Duration {
        let all = self.seats.iter().map(|seat| seat.waited.load(Ordering::Relaxed));
        Duration::from_nanos(all.sum())
    }

    /// Ends a window of part `part`: waits for the other parts and returns the combined news of all, namely
    /// the earliest event and whether any part must stop. Returns `None` if a part panicked.
    pub(crate) fn meet(&self, window: usize, part: u32, news: News) -> Option<News> {
        let seat = &self.seats[part as usize];
        seat.next[window % 2].store(news.next.as_ps(), Ordering::Relaxed);
        seat.stop[window % 2].store(news.stop, Ordering::Relaxed);
        seat.windows.store(window + 1, Ordering::Release);
        self.waiters.wake();
        let began = Instant::now();
        let mut all = News { next: Time::MAX, stop: false };
        for seat in &self.seats {
            if !self.wait(seat, window + 1) {
                return None;
            }
            let next = Time::from_ps(seat.next[window % 2].load(Ordering::Relaxed));
            all.next = all.next.min(next);
            all.stop |= seat.stop[window % 2].load(Ordering::Relaxed);
        }
        // Only this thread writes the counter, so a load and a store are enough. 2^64 ns are 584 years.
        let waited = seat.waited.load(Ordering::Relaxed) + began.elapsed().as_nanos() as u64;
        seat.waited.store(waited, Ordering::Relaxed);
        Some(all)
    }

    /// Waits until a part has run this number of windows. Returns `false` if a part panicked first.
    #[inline]
    fn wait(&self, seat: &Seat, windows: usize) -> bool {
        let has_run = || seat.windows.load(Ordering::Acquire) >= windows;
        for _ in 0..=self.looks {
            if has_run() {
                return true;
            }
            std::hint::spin_loop();
        }
        self.waiters.sleep_until(|| has_run() || self.failed.load(Ordering::Acquire));
        has_run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of five threads sends its name and the window to every other thread. The windows follow the
    /// earliest event of all threads, with more threads than cores and with fewer, and with threads that are
    /// sometimes slow.
    #[test]
    fn parcels_come_in_the_window_after_theirs() {
        const PARTS: u32 = 5;
        const WINDOWS: usize = 500;
        let exchange = Exchange::new(PARTS, Span::from_ps(10));
        let run = |me: u32| {
            let _alarm = PanicAlarm(&exchange);
            let (mut outbox, mut inbox) = (Parcel::default(), Parcel::default());
            for window in 0..WINDOWS {
                if window % 97 == 19 * me as usize {
                    std::thread::sleep(Duration::from_millis(2));
                }
                for to in (0..PARTS).filter(|to| *to != me) {
                    outbox.paths.push(vec![PortId::new(me), PortId::new(window as u32)]);
                    exchange.post(window, me, to as usize, &mut outbox);
                    assert!(outbox.paths.is_empty(), "what comes back is empty");
                }
                // The earliest event is that of part `window % PARTS`.
                let ahead = (u64::from(me) + window as u64) % u64::from(PARTS);
                let next = Time::from_ps(1000 * window as u64 + ahead);
                // In some windows part 3 asks the other parts to stop; all of them learn it in the same window.
                let stop = window % 7 == 3;
                let news = exchange.meet(window, me, News { next, stop: stop && me == 3 });
                let first = Time::from_ps(1000 * window as u64);
                assert_eq!(news, Some(News { next: first, stop }));
                assert_eq!(exchange.limit(first, Time::MAX), first + Span::from_ps(10));
                let mut senders = Vec::new();
                exchange.collect(window, me, &mut inbox, |from, parcel| {
                    let sent = [PortId::new(from), PortId::new(window as u32)];
                    assert_eq!(parcel.paths, [sent]);
                    senders.push(from);
                    parcel.clear();
                });
                let others: Vec<u32> = (0..PARTS).filter(|from| *from != me).collect();
                assert_eq!(senders, others);
            }
        };
        std::thread::scope(|scope| {
            for part in 0..PARTS {
                scope.spawn(move || run(part));
            }
        });
        assert_eq!(exchange.waiters.count(), 0);
        assert!(exchange.waited() > Duration::ZERO);
    }

    /// A part that panics wakes the parts that wait for it and reports the panic to them.
    #[test]
    fn nobody_waits_for_a_part_that_panicked() {
        let exchange = Exchange::new(3, Span::from_ps(10));
        let news = News { next: Time::ZERO, stop: false };
        let wait = |part| exchange.meet(0, part, news);
        let ends = std::thread::scope(|scope| {
            let waiting = [0, 1].map(|part| scope.spawn(move || wait(part)));
            let failing = scope.spawn(|| {
                let _alarm = PanicAlarm(&exchange);
                while exchange.waiters.count() < 2 {
                    std::thread::yield_now();
                }
                panic!("a part fails");
            });
            (waiting.map(|thread| thread.join().expect("no panic")), failing.join().is_err())
        });
        assert_eq!(ends, ([None, None], true));
    }
}
