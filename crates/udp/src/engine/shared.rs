//! What applications see of an engine: its rings, its bell and its counters.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use apus_cc::Snapshot;
use apus_transport::FlowCounters;
use apus_units::Span;
use concurrent_queue::ConcurrentQueue;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::connection::Connection;
use crate::error::{ConnectError, DroppedHandshake};
use crate::ops::Pending;
use crate::session::{KeyId, KeyRing, SessionId};
use crate::stats::Stats;
use crate::sys::Socket;

/// What an application asks of an engine.
pub(crate) enum Command {
    Op(Pending),
    Cancel {
        session: SessionId,
        ticket: u64,
    },
    Connect {
        peer: SocketAddr,
        /// The traffic class of each flow.
        classes: Vec<u8>,
        key: Option<KeyId>,
        reply: oneshot::Sender<Result<Connection, ConnectError>>,
    },
    /// Another ring of keys.
    Keys(KeyRing),
    /// A sibling hears this peer, which some engine asked for a connection.
    Elsewhere {
        peer: SocketAddr,
        engine: u32,
    },
    Close {
        session: SessionId,
        closed: Option<oneshot::Sender<()>>,
    },
    Inspect {
        session: SessionId,
        flow: usize,
        reply: oneshot::Sender<(Snapshot, FlowCounters)>,
    },
}

pub(crate) struct EngineShared {
    pub(crate) address: SocketAddr,
    pub(crate) stats: Stats,
    /// Ops and cancellations: bounded, so that a full ring is back-pressure.
    ring: ConcurrentQueue<Command>,
    /// Connections to open and close: as many as there are connections.
    rare: ConcurrentQueue<Command>,
    bell: OwnedFd,
    asleep: AtomicBool,
    stopped: AtomicBool,
    failed: AtomicBool,
    /// Handshakes that were dropped, for the application's log: the oldest few that it has not taken.
    dropped: ConcurrentQueue<DroppedHandshake>,
}

/// Dropped handshakes that are kept for the application. deviation: no source; enough to tell peers apart.
const DROPPED: usize = 64;

impl EngineShared {
    pub(super) fn new(ring: usize, address: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            address,
            stats: Stats::default(),
            ring: ConcurrentQueue::bounded(ring),
            rare: ConcurrentQueue::unbounded(),
            bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            asleep: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            dropped: ConcurrentQueue::bounded(DROPPED),
        })
    }

    /// Hands in a command; gives it back if the ring is full or the engine has stopped.
    #[expect(clippy::result_large_err, reason = "the command goes back as it came")]
    pub(crate) fn submit(&self, command: Command) -> Result<(), Command> {
        if self.is_stopped() {
            return Err(command);
        }
        self.ring.push(command).map_err(|refused| refused.into_inner())?;
        self.ring_bell();
        Ok(())
    }

    /// Hands in a command that must not be lost to back-pressure.
    pub(crate) fn submit_surely(&self, command: Command) {
        // An unbounded queue that nobody closes takes everything.
        let _ = self.rare.push(command);
        self.ring_bell();
    }

    /// How many commands are there now: of the rare ones, and of the ring. A rare one that is counted
    /// came after no op that is not.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let rare = self.rare.len();
        (rare, self.ring.len())
    }

    /// The next op or cancellation.
    pub(super) fn take(&self) -> Option<Command> {
        self.ring.pop().ok()
    }

    /// The next connection to open or close.
    pub(super) fn take_rare(&self) -> Option<Command> {
        self.rare.pop().ok()
    }

    fn ring_bell(&self) {
        // Either this sees the flag, or the engine sees the command after it has set the flag.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
        if self.is_stopped() {
            self.drain();
        }
    }

    /// Whether there are commands.
    #[inline]
    pub(super) fn has_commands(&self) -> bool {
        !self.ring.is_empty() || !self.rare.is_empty()
    }

    /// Sleeps until the bell, a datagram (or room to send, if `sending`), or `timeout`.
    pub(super) fn sleep(&self, socket: &Socket, timeout: Option<Span>, sending: bool) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.has_commands() && !self.is_stopped() {
            let wanted = if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let mut fds = [PollFd::new(&self.bell, PollFlags::IN), PollFd::new(socket, wanted)];
            let timeout = timeout.map(|span| {
                let ns = (span.as_ps() / 1_000).max(1);
                Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
            });
            // Whatever it says, the next step polls the socket.
            let _ = poll(&mut fds, timeout.as_ref());
        }
        self.asleep.store(false, Ordering::Relaxed);
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
    }

    /// Has the engine look at what has changed.
    pub(crate) fn wake(&self) {
        // It fails only if the bell rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// Notes a dropped handshake, unless many wait.
    pub(super) fn note(&self, dropped: DroppedHandshake) {
        let _ = self.dropped.push(dropped);
    }

    /// The oldest dropped handshake that was not taken.
    pub(crate) fn dropped_handshake(&self) -> Option<DroppedHandshake> {
        self.dropped.pop().ok()
    }

    /// Whether the engine panicked.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The engine panicked, and runs no more.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.stop();
    }

    /// Drops what is in the rings of an engine that has stopped: whoever waits hears of it.
    pub(super) fn drain(&self) {
        while self.take().or_else(|| self.take_rare()).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_datagram_ends_the_sleep() {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let socket = Socket::open(any, 1 << 16, false).expect("socket");
        let shared = EngineShared::new(16, any).expect("an eventfd");
        let peer = UdpSocket::bind(any).expect("socket");
        let from = Instant::now();
        peer.send_to(b"hello", socket.local_addr().expect("bound")).expect("loopback");
        shared.sleep(&socket, Some(Span::from_secs(100)), false);
        assert!(from.elapsed() < Duration::from_secs(90), "it slept until the timer");
    }
}
