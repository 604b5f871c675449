//! Several threads, each with a part of the network, in step.
//!
//! Conservative parallel simulation (Chandy and Misra 1979) with a global window: a packet that
//! crosses from one part into another takes at least the delay of the link, the *lookahead*. So all
//! parts may run every event of a window of that length that starts at the earliest pending event
//! of all, without hearing from each other; between two windows they exchange packets. What a part
//! does within a window depends on nothing of another part, and events are ordered by (time,
//! entity) within a part as in the whole, so the results are the same for any number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use apus_cc::Telemetry;
use apus_fabric::Transit;
use apus_units::{PortId, Span, Time};
use apus_wire::Header;

/// A packet on its way from one part into another.
pub(crate) struct Message {
    pub(crate) port: PortId,
    pub(crate) arrives: Time,
    pub(crate) packet: Transit<Header>,
}

/// What one part sends another in a window.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) messages: Vec<Message>,
    /// What switches noted on packets that carry such notes, in their order.
    pub(crate) telemetry: Vec<Telemetry>,
    /// The paths that were resolved after the parts were made, which only the sender knows, in the
    /// order of the packets that are the first to take them there.
    pub(crate) paths: Vec<Vec<PortId>>,
}

impl Parcel {
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.telemetry.clear();
        self.paths.clear();
    }
}

/// Looks at another part's window before a waiting thread sleeps: some tens of microseconds, about what
/// waking it takes. Parts that have a core each rarely wait so long. deviation: no source.
const LOOKS: u32 = 2000;

/// Where one part says how far it is, away from what others write: 128 bytes, because processors fetch
/// lines by twos.
#[repr(align(128))]
struct Seat {
    /// Windows that it has run.
    windows: AtomicUsize,
    /// By copy: its earliest event, packets in its parcels included.
    next: [AtomicU64; 2],
}

/// By copy: what lies there from one part for another. Only one of the two is ever at it, so that the
/// lock is always free; it costs two instructions a window.
#[derive(Default)]
#[repr(align(128))]
struct Place([Mutex<Parcel>; 2]);

/// Where parts meet between windows. Everything is kept twice, for windows in turn, so that one
/// meeting per window is enough: a part that is ahead writes into the other copy, and none is ahead by
/// more than one window.
pub(crate) struct Exchange {
    lookahead: Span,
    /// By sender and receiver.
    places: Vec<Place>,
    /// By part.
    seats: Vec<Seat>,
    /// Looks before a thread sleeps: none if there are fewer cores than parts, because it would keep
    /// away whom it waits for.
    looks: u32,
    /// Threads that sleep, or are about to.
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
    /// A part panicked: the others must not wait for it.
    failed: AtomicBool,
}

/// Tells the other parts if the thread of one panics while this is held.
pub(crate) struct PanicAlarm<'a>(pub(crate) &'a Exchange);

impl Drop for PanicAlarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
            self.0.ring();
        }
    }
}

impl Exchange {
    pub(crate) fn new(parts: u32, lookahead: Span) -> Self {
        let parts = parts as usize;
        let seat = || Seat { windows: AtomicUsize::new(0), next: Default::default() };
        let cores = available_parallelism().map_or(1, usize::from);
        Self {
            lookahead,
            places: (0..parts * parts).map(|_| Place::default()).collect(),
            seats: (0..parts).map(|_| seat()).collect(),
            looks: if parts <= cores { LOOKS } else { 0 },
            sleepers: AtomicUsize::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
            failed: AtomicBool::new(false),
        }
    }

    /// Leaves the parcel of part `from` for part `to`, and takes an empty one in exchange.
    pub(crate) fn post(&self, window: usize, from: u32, to: usize, parcel: &mut Parcel) {
        std::mem::swap(&mut *self.open(window, from as usize, to), parcel);
    }

    /// Takes what was left for part `to`, sender by sender, each time with an empty `parcel` in
    /// exchange; `take` must leave it empty.
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
        // A part that panicked ends the run; until then what it left is whole.
        place.0[window % 2].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Part `part` has run a window; its next event is at `next` (of its own or one that it sent).
    /// Waits for the others and returns the end of the next window, at most `end`; `None` if one of
    /// them panicked.
    pub(crate) fn meet(&self, window: usize, part: u32, next: Time, end: Time) -> Option<Time> {
        let seat = &self.seats[part as usize];
        seat.next[window % 2].store(next.as_ps(), Ordering::Relaxed);
        // In one order with `sleepers`: either this part sees who sleeps, or that one sees this.
        seat.windows.store(window + 1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.ring();
        }
        let mut earliest = u64::MAX;
        for seat in &self.seats {
            if !self.wait(seat, window + 1) {
                return None;
            }
            earliest = earliest.min(seat.next[window % 2].load(Ordering::Relaxed));
        }
        Some(Time::from_ps(earliest).saturating_add(self.lookahead).min(end))
    }

    /// Waits until a part has run so many windows; false if a part panicked first.
    #[inline]
    fn wait(&self, seat: &Seat, windows: usize) -> bool {
        for _ in 0..=self.looks {
            if seat.windows.load(Ordering::Acquire) >= windows {
                return true;
            }
            std::hint::spin_loop();
        }
        self.sleep(seat, windows)
    }

    #[cold]
    fn sleep(&self, seat: &Seat, windows: usize) -> bool {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        while seat.windows.load(Ordering::SeqCst) < windows && !self.failed.load(Ordering::SeqCst) {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        seat.windows.load(Ordering::SeqCst) >= windows
    }

    /// Wakes all that sleep, to look again.
    #[cold]
    fn ring(&self) {
        // Whoever has looked already, and does not yet sleep, holds it.
        drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of five threads sends its name and the window to every other, and the windows follow the
    /// earliest event of all, with more threads than cores or fewer, and threads that dawdle.
    #[test]
    fn parcels_come_in_the_window_after_theirs() {
        const PARTS: u32 = 5;
        const WINDOWS: usize = 500;
        let exchange = Exchange::new(PARTS, Span::from_ps(10));
        let end = Time::MAX;
        let run = |me: u32| {
            let _alarm = PanicAlarm(&exchange);
            let (mut outbox, mut inbox) = (Parcel::default(), Parcel::default());
            for window in 0..WINDOWS {
                if window % 97 == 19 * me as usize {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                for to in (0..PARTS).filter(|to| *to != me) {
                    outbox.paths.push(vec![PortId::new(me), PortId::new(window as u32)]);
                    exchange.post(window, me, to as usize, &mut outbox);
                    assert!(outbox.paths.is_empty(), "what comes back is empty");
                }
                // The earliest event is that of part `window % PARTS`.
                let ahead = (u64::from(me) + window as u64) % u64::from(PARTS);
                let next = Time::from_ps(1000 * window as u64 + ahead);
                let limit = exchange.meet(window, me, next, end);
                assert_eq!(limit, Some(Time::from_ps(1000 * window as u64 + 10)));
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
        assert_eq!(exchange.sleepers.load(Ordering::SeqCst), 0);
    }

    /// A part that panics wakes those that wait for it, and tells them.
    #[test]
    fn nobody_waits_for_a_part_that_panicked() {
        let exchange = Exchange::new(3, Span::from_ps(10));
        let wait = |part| exchange.meet(0, part, Time::ZERO, Time::MAX);
        let ends = std::thread::scope(|scope| {
            let waiting = [0, 1].map(|part| scope.spawn(move || wait(part)));
            let failing = scope.spawn(|| {
                let _alarm = PanicAlarm(&exchange);
                while exchange.sleepers.load(Ordering::SeqCst) < 2 {
                    std::thread::yield_now();
                }
                panic!("a part fails");
            });
            (waiting.map(|thread| thread.join().expect("no panic")), failing.join().is_err())
        });
        assert_eq!(ends, ([None, None], true));
    }
}
