//! The way from applications to an engine: queues of ops and other commands, and the wake-up of an engine that sleeps.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use apus_cc::Snapshot;
use apus_transport::FlowCounters;
use apus_units::Span;
use concurrent_queue::{ConcurrentQueue, PushError};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::connection_state::{ConnectionState, Message};
use crate::error::ConnectError;
use crate::pending::Pending;
use crate::session::{KeyId, KeyRing, SessionId};
use crate::status::EngineStatus;

/// A connection that an application asks for.
pub(crate) struct ConnectRequest {
    pub(crate) peer: SocketAddr,
    /// The traffic class of each flow.
    pub(crate) classes: Vec<u8>,
    /// The key to prove; `None` for the first of the ring.
    pub(crate) key: Option<KeyId>,
    pub(crate) reply: oneshot::Sender<Result<Opened, ConnectError>>,
}

/// A request to an engine other than an op.
pub(crate) enum Command {
    /// Gives up an op.
    Cancel { session: SessionId, ticket: u64 },
    /// Opens a connection.
    Connect(ConnectRequest),
    /// Replaces the ring of keys.
    Keys(KeyRing),
    /// Another engine of the host receives the packets of this peer, to which this engine opens a connection.
    ServedBy { peer: SocketAddr, engine: u32 },
    /// Closes a connection after its outstanding ops.
    Close { session: SessionId, closed: Option<oneshot::Sender<()>> },
    /// Reports the state of a flow.
    Inspect { session: SessionId, flow: usize, reply: oneshot::Sender<(Snapshot, FlowCounters)> },
}

/// The application's end of an open connection. Dropping it closes the connection.
pub(crate) struct Opened {
    pub(crate) state: Arc<ConnectionState>,
    pub(crate) messages: async_channel::Receiver<Message>,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.mailbox.post(Command::Close { session: self.state.session, closed: None });
    }
}

/// An engine's mailbox.
pub(crate) struct Mailbox {
    pub(crate) status: Arc<EngineStatus>,
    /// Ops. Bounded, so that a full ring is back-pressure.
    ops: ConcurrentQueue<Pending>,
    /// Their number is bounded by the numbers of ops and connections.
    control: ConcurrentQueue<Command>,
    wakeup: OwnedFd,
    /// Set while the engine sleeps or is about to.
    asleep: AtomicBool,
}

impl Mailbox {
    /// Returns an empty mailbox with room for `ops` ops.
    pub(crate) fn new(ops: usize, status: Arc<EngineStatus>) -> io::Result<Self> {
        Ok(Self {
            status,
            ops: ConcurrentQueue::bounded(ops),
            control: ConcurrentQueue::unbounded(),
            wakeup: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            asleep: AtomicBool::new(false),
        })
    }

    /// Submits an op. Returns it if the ring is full or the engine has stopped.
    #[expect(clippy::result_large_err, reason = "the refused op is returned unchanged")]
    pub(crate) fn submit(&self, op: Pending) -> Result<(), Pending> {
        if self.status.is_stopped() {
            return Err(op);
        }
        self.ops.push(op).map_err(PushError::into_inner)?;
        self.notify();
        Ok(())
    }

    /// Posts a command that back-pressure must not stop.
    pub(crate) fn post(&self, command: Command) {
        // The queue is unbounded and never closed.
        let _ = self.control.push(command);
        self.notify();
    }

    /// Returns the numbers of control commands and of ops. Every counted command was posted after ops that are counted too.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let control = self.control.len();
        (control, self.ops.len())
    }

    /// Takes the oldest op.
    pub(crate) fn take_op(&self) -> Option<Pending> {
        self.ops.pop().ok()
    }

    /// Takes the oldest control command.
    pub(crate) fn take_control(&self) -> Option<Command> {
        self.control.pop().ok()
    }

    /// Wakes the engine if it sleeps.
    fn notify(&self) {
        // Either this thread sees the flag, or the engine sees the command after it has set the flag.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
        if self.status.is_stopped() {
            self.drain();
        }
    }

    /// Returns `true` if a command waits.
    #[inline]
    pub(crate) fn has_commands(&self) -> bool {
        !self.ops.is_empty() || !self.control.is_empty()
    }

    /// Sleeps until a wake-up, a datagram at `socket` (or room to send, if `sending`), or `timeout`.
    pub(crate) fn sleep(&self, socket: impl AsFd, timeout: Option<Span>, sending: bool) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.has_commands() && !self.status.is_stopped() {
            let wanted = if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let mut fds = [PollFd::new(&self.wakeup, PollFlags::IN), PollFd::new(&socket, wanted)];
            let timeout = timeout.map(|span| {
                let ns = (span.as_ps() / 1_000).max(1);
                Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
            });
            // The next step polls the socket whatever the result is.
            let _ = poll(&mut fds, timeout.as_ref());
        }
        self.asleep.store(false, Ordering::Relaxed);
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wakeup, &mut count);
    }

    /// Wakes the engine, so that it notices changes such as withdrawn regions.
    pub(crate) fn wake(&self) {
        // The write fails only if a wake-up is pending already.
        let _ = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    /// Stops the engine.
    pub(crate) fn stop(&self) {
        self.status.set_stopped();
        self.wake();
    }

    /// Drops the commands of an engine that has stopped, which ends the waits for them.
    pub(crate) fn drain(&self) {
        while self.take_op().is_some() || self.take_control().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    use super::*;

    fn mailbox() -> Mailbox {
        let status = EngineStatus::new((Ipv4Addr::LOCALHOST, 0).into());
        Mailbox::new(16, Arc::new(status)).expect("an eventfd")
    }

    #[test]
    fn a_datagram_ends_the_sleep() {
        let [socket, peer] =
            [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket"));
        let from = Instant::now();
        peer.send_to(b"hello", socket.local_addr().expect("bound")).expect("loopback");
        mailbox().sleep(&socket, Some(Span::from_secs(100)), false);
        assert!(from.elapsed() < Duration::from_secs(90), "the engine slept until the timeout");
    }

    #[test]
    fn a_command_posted_before_the_sleep_prevents_it() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket");
        let mailbox = mailbox();
        mailbox.post(Command::Keys(KeyRing::insecure()));
        let from = Instant::now();
        mailbox.sleep(&socket, Some(Span::from_secs(100)), false);
        assert!(from.elapsed() < Duration::from_secs(90), "the engine slept until the timeout");
        assert!(mailbox.has_commands());
    }

    #[test]
    fn a_command_to_a_stopped_engine_is_dropped_which_ends_the_wait_for_its_reply() {
        let mailbox = mailbox();
        mailbox.stop();
        let (reply, receiver) = oneshot::channel();
        let (peer, classes) = ((Ipv4Addr::LOCALHOST, 1).into(), vec![0]);
        mailbox.post(Command::Connect(ConnectRequest { peer, classes, key: None, reply }));
        assert!(receiver.recv().is_err());
    }
}
