//! Several threads, each with a part of the network, in step.
//!
//! Conservative parallel simulation (Chandy and Misra 1979) with a global window: a packet that
//! crosses from one part into another takes at least the delay of the link, the *lookahead*. So all
//! parts may run every event of a window of that length that starts at the earliest pending event
//! of all, without hearing from each other; between two windows they exchange packets. What a part
//! does within a window depends on nothing of another part, and events are ordered by (time,
//! entity) within a part as in the whole, so the results are the same for any number of threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use apus_cc::Telemetry;
use apus_fabric::{Packet, RouteId};
use apus_units::{PortId, Span, Time};
use apus_wire::Header;

/// A packet on its way from one part into another.
pub(crate) struct Message {
    pub(crate) port: PortId,
    pub(crate) arrives: Time,
    pub(crate) packet: Packet<Header>,
    /// What switches noted on it.
    pub(crate) telemetry: Option<Box<Telemetry>>,
    /// Its path, if it was resolved after the parts were made and only the sender knows it.
    pub(crate) path: Option<Vec<PortId>>,
}

/// Spins before a waiting thread offers its core to others.
const SPINS: u32 = 4096;

/// Where parts meet between windows. Everything is kept twice, for windows in turn, so that one
/// meeting per window is enough: a part that is ahead writes into the other copy.
pub(crate) struct Exchange {
    parts: usize,
    lookahead: Span,
    /// By copy, by sender and receiver.
    boxes: [Vec<Mutex<Vec<Message>>>; 2],
    /// By copy and part: its earliest event, packets in its boxes included.
    next: [Vec<AtomicU64>; 2],
    arrived: AtomicUsize,
    generation: AtomicUsize,
    /// A part panicked: the others must not wait for it.
    failed: AtomicBool,
}

/// Tells the other parts if the thread of one panics while this is held.
pub(crate) struct Watch<'a>(pub(crate) &'a Exchange);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Release);
        }
    }
}

impl Exchange {
    pub(crate) fn new(parts: u32, lookahead: Span) -> Self {
        let parts = parts as usize;
        let boxes = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let next = || (0..parts).map(|_| AtomicU64::new(0)).collect();
        Self {
            parts,
            lookahead,
            boxes: [boxes(), boxes()],
            next: [next(), next()],
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Leaves the packets of part `from` for part `to`.
    pub(crate) fn post(&self, window: usize, from: u32, to: usize, messages: &mut Vec<Message>) {
        let place = from as usize * self.parts + to;
        self.open(window, place).append(messages);
    }

    /// Takes what was left for part `to`, sender by sender.
    pub(crate) fn collect(&self, window: usize, to: u32, mut take: impl FnMut(u32, Message)) {
        for from in 0..self.parts {
            let place = from * self.parts + to as usize;
            self.open(window, place).drain(..).for_each(|message| take(from as u32, message));
        }
    }

    fn open(&self, window: usize, place: usize) -> MutexGuard<'_, Vec<Message>> {
        // A part that panicked ends the run; until then what it left is whole.
        self.boxes[window % 2][place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Part `part` has run a window; its next event is at `next` (of its own or one that it sent).
    /// Waits for the others and returns the end of the next window, at most `end`.
    pub(crate) fn meet(&self, window: usize, part: u32, next: Time, end: Time) -> Time {
        self.next[window % 2][part as usize].store(next.as_ps(), Ordering::Release);
        self.wait();
        let earliest = self.next[window % 2].iter().map(|at| at.load(Ordering::Acquire)).min();
        let earliest = Time::from_ps(earliest.unwrap_or(u64::MAX));
        earliest.saturating_add(self.lookahead).min(end)
    }

    /// A barrier that spins: windows are microseconds long, and waking a thread takes as much.
    fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
            self.arrived.store(0, Ordering::Release);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            assert!(!self.failed.load(Ordering::Acquire), "another part of the network panicked");
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// Routes that other parts resolved, as this part knows them.
pub(crate) type ImportedRoutes = BTreeMap<(u32, RouteId), RouteId>;
