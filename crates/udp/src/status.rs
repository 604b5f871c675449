//! The state of an engine that any thread may read: its address, its counters, and whether it runs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use concurrent_queue::ConcurrentQueue;

use crate::error::DroppedHandshake;
use crate::stats::Stats;
use crate::sys::Families;

/// Maximum number of notes on dropped handshakes that wait for the application. deviation: no source; enough to tell
/// peers apart.
const MAX_NOTES: usize = 64;

/// The state of an engine.
pub(crate) struct EngineStatus {
    /// Address at which the engine's socket is bound.
    pub(crate) address: SocketAddr,
    /// Address families that the socket serves.
    pub(crate) families: Families,
    /// Ports of the engine's sockets, by number.
    ports: Box<[u16]>,
    pub(crate) stats: Stats,
    stopped: AtomicBool,
    failed: AtomicBool,
    draining: AtomicBool,
    /// Notes on dropped handshakes for the application's log. A full queue drops new notes.
    notes: ConcurrentQueue<DroppedHandshake>,
}

impl EngineStatus {
    /// Returns the status of a running engine.
    pub(crate) fn new(address: SocketAddr, families: Families, ports: &[u16]) -> Self {
        Self {
            address,
            families,
            ports: ports.into(),
            stats: Stats::default(),
            stopped: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            notes: ConcurrentQueue::bounded(MAX_NOTES),
        }
    }

    /// Returns the port of a socket, or the port of the engine's address if there is no such socket.
    pub(crate) fn port(&self, number: u8) -> u16 {
        self.ports.get(usize::from(number)).copied().unwrap_or(self.address.port())
    }

    /// Returns the ports of the engine's sockets, by number.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Returns `true` if the engine has stopped, is about to stop, or has failed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Marks the engine as stopped. To wake it too, use [`Mailbox::stop`](crate::mailbox::Mailbox::stop).
    pub(crate) fn set_stopped(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Returns `true` if the engine panicked.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Marks the engine as failed.
    pub(crate) fn set_failed(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Returns `true` if the engine drains: it accepts no new connections and ops.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Marks the engine as draining.
    pub(crate) fn set_draining(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Adds a note on a dropped handshake.
    pub(crate) fn note(&self, dropped: DroppedHandshake) {
        let _ = self.notes.push(dropped);
    }

    /// Takes the oldest note on a dropped handshake.
    pub(crate) fn take_note(&self) -> Option<DroppedHandshake> {
        self.notes.pop().ok()
    }
}
