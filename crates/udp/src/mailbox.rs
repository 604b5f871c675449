//! Communication from applications to an engine: queues of ops and other commands, and wake-ups of a sleeping engine.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

use apus_cc::Snapshot;
use apus_transport::FlowCounters;
use apus_units::Span;
use concurrent_queue::{ConcurrentQueue, PushError};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::accept::Towards;
use crate::connection_state::{ConnectionState, Message};
use crate::driver::WokenBy;
use crate::error::ConnectError;
use crate::message_receiver::Attach;
use crate::pending::Pending;
use crate::qlog::Qlog;
use crate::report::{Paths, Report};
use crate::session::KeyRing;
use crate::sleepers::{Sleeper, Sleepers};
use crate::status::EngineStatus;

/// A connection that an application requests.
pub(crate) struct ConnectRequest {
    pub(crate) peer: SocketAddr,
    /// Traffic class of each flow.
    pub(crate) classes: Vec<u8>,
    pub(crate) towards: Towards,
    pub(crate) reply: oneshot::Sender<Result<Opened, ConnectError>>,
}

/// A request to an engine other than an op.
pub(crate) enum Command {
    /// Opens a connection.
    Connect(ConnectRequest),
    /// Replaces the key ring.
    Keys(KeyRing),
    /// Reports that another engine of the host receives the packets of this peer, to which this engine opens a
    /// connection.
    ServedBy { peer: SocketAddr, engine: u32 },
    /// Stops accepting connections and ops. Reports through `done` when every connection has ended.
    Drain { done: oneshot::Sender<()> },
    /// Reports the connections and peers, for metrics.
    Report { reply: oneshot::Sender<Report> },
    /// Sends a command to a connection. The state identifies the connection, because session numbers are reused.
    Of(Arc<ConnectionState>, ConnectionCommand),
}

/// A command from a handle to its connection.
pub(crate) enum ConnectionCommand {
    /// Cancels an op.
    Cancel { ticket: u64 },
    /// Closes the connection after its outstanding ops.
    Close { closed: Option<oneshot::Sender<()>> },
    /// Begins to record the connection.
    Record(Qlog),
    /// Delivers the messages to the application's receiver.
    Attach(Attach),
    /// Reports the state of a flow.
    Inspect { flow: usize, reply: oneshot::Sender<(Snapshot, FlowCounters)> },
    /// Reports the ports of the connection.
    Paths { reply: oneshot::Sender<Paths> },
}

/// The application's end of an open connection. Dropping it closes the connection.
pub(crate) struct Opened {
    pub(crate) state: Arc<ConnectionState>,
    pub(crate) messages: async_channel::Receiver<Message>,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.mailbox.ask(&self.state, ConnectionCommand::Close { closed: None });
    }
}

/// An engine's mailbox.
pub(crate) struct Mailbox {
    pub(crate) status: Arc<EngineStatus>,
    /// Submitted ops. The ring is bounded, and a full ring exerts back-pressure.
    ops: ConcurrentQueue<Pending>,
    /// Control commands. The limits on ops and connections bound their number.
    control: ConcurrentQueue<Command>,
    /// Wakes a call that leads. The leader and the background thread have separate descriptors: if they shared one, one
    /// thread could consume a wake-up of the other.
    leader_wakeup: OwnedFd,
    /// Wakes the background thread.
    background_wakeup: OwnedFd,
    sleepers: Sleepers,
}

/// Wakes a call that leads and sleeps, because its wait has ended.
impl Wake for Mailbox {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.sleepers.must_wake_leader() {
            self.wake_leader();
        }
    }
}

/// Converts a time limit to the system's form.
fn timespec(span: Span) -> Timespec {
    let ns = (span.as_ps() / 1_000).max(1);
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Makes an eventfd readable.
fn wake(eventfd: &OwnedFd) {
    // The write fails only if a wake-up is already pending.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Clears the pending wake-ups of an eventfd.
fn clear(eventfd: &OwnedFd) {
    // The read fails only if no wake-up is pending.
    let _ = rustix::io::read(eventfd, &mut [0; 8]);
}

impl Mailbox {
    /// Returns an empty mailbox with room for `ops` ops.
    pub(crate) fn new(ops: usize, status: Arc<EngineStatus>) -> io::Result<Self> {
        Ok(Self {
            status,
            ops: ConcurrentQueue::bounded(ops),
            control: ConcurrentQueue::unbounded(),
            leader_wakeup: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            background_wakeup: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            sleepers: Sleepers::new(),
        })
    }

    /// Puts an op into the ring. Returns the op if the ring is full or the engine has stopped. The caller must then
    /// notify the engine (`Driver::submitted`).
    #[expect(clippy::result_large_err, reason = "the refused op is returned unchanged")]
    pub(crate) fn submit(&self, op: Pending) -> Result<(), Pending> {
        if self.status.is_stopped() {
            return Err(op);
        }
        self.ops.push(op).map_err(PushError::into_inner)
    }

    /// Posts a command that is not subject to back-pressure.
    pub(crate) fn post(&self, command: Command) {
        // The queue is unbounded and never closed.
        let _ = self.control.push(command);
        self.notify();
    }

    /// Posts a command from a handle to its connection. As a control command, it bypasses a ring that is full of ops.
    pub(crate) fn ask(&self, of: &Arc<ConnectionState>, command: ConnectionCommand) {
        self.post(Command::Of(Arc::clone(of), command));
    }

    /// Returns the numbers of control commands and of ops. For every counted command, all ops that were submitted
    /// before it are counted too.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let control = self.control.len();
        (control, self.ops.len())
    }

    /// Returns the number of queued ops.
    pub(crate) fn waiting_ops(&self) -> usize {
        self.ops.len()
    }

    /// Takes the oldest op.
    pub(crate) fn take_op(&self) -> Option<Pending> {
        self.ops.pop().ok()
    }

    /// Takes the oldest control command.
    pub(crate) fn take_control(&self) -> Option<Command> {
        self.control.pop().ok()
    }

    /// Wakes the threads that sleep for the engine.
    pub(crate) fn notify(&self) {
        match self.sleepers.to_wake() {
            Some(Sleeper::Leader) => self.wake_leader(),
            Some(Sleeper::Background) => self.wake_background(),
            None => {}
        }
        if self.status.is_stopped() {
            self.drain();
        }
    }

    /// Returns `true` if a command is queued.
    #[inline]
    pub(crate) fn has_commands(&self) -> bool {
        !self.ops.is_empty() || !self.control.is_empty()
    }

    /// Sleeps until a wake-up, a datagram at `socket` (or room to send, if `sending`), or `timeout`. Does not sleep if
    /// a command is queued or `idle` returns `false`. `idle` is called last.
    pub(crate) fn sleep(
        &self,
        socket: impl AsFd,
        timeout: Option<Span>,
        sending: bool,
        idle: impl FnOnce() -> bool,
    ) {
        struct Sleeps<'a>(&'a Sleepers);
        impl Drop for Sleeps<'_> {
            fn drop(&mut self) {
                self.0.end(Sleeper::Leader);
            }
        }
        self.sleepers.begin(Sleeper::Leader);
        // Clears the flag even if `idle` panics, which polls a future of the application.
        let _sleeps = Sleeps(&self.sleepers);
        if !self.has_commands() && !self.status.is_stopped() && idle() {
            let wanted = if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let mut fds =
                [PollFd::new(&self.leader_wakeup, PollFlags::IN), PollFd::new(&socket, wanted)];
            // The next step polls the socket, whatever the result is.
            let _ = poll(&mut fds, timeout.map(timespec).as_ref());
            if !fds[0].revents().is_empty() {
                clear(&self.leader_wakeup);
            }
        }
    }

    /// Calls `sleep`, which must also sleep on [`Mailbox::background_wakeup`], unless `idle` returns `false`. `idle` is
    /// called last.
    pub(crate) fn sleep_in_background(
        &self,
        idle: impl FnOnce() -> bool,
        sleep: impl FnOnce() -> WokenBy,
    ) -> WokenBy {
        self.sleepers.begin(Sleeper::Background);
        let mut woken = WokenBy::default();
        if !self.status.is_stopped() && idle() {
            woken = sleep();
            if woken.thread {
                clear(&self.background_wakeup);
            }
        }
        self.sleepers.end(Sleeper::Background);
        woken
    }

    /// Returns `true` if a call that leads sleeps or is about to sleep.
    pub(crate) fn leader_sleeps(&self) -> bool {
        self.sleepers.sleeps(Sleeper::Leader)
    }

    /// Returns the descriptor that wakes the background thread.
    pub(crate) fn background_wakeup(&self) -> &OwnedFd {
        &self.background_wakeup
    }

    /// Wakes the call that leads.
    pub(crate) fn wake_leader(&self) {
        wake(&self.leader_wakeup);
    }

    /// Wakes the background thread.
    pub(crate) fn wake_background(&self) {
        wake(&self.background_wakeup);
    }

    /// Wakes the threads that sleep for the engine, so that they notice changes such as withdrawn regions.
    pub(crate) fn wake_sleepers(&self) {
        self.wake_leader();
        self.wake_background();
    }

    /// Stops the engine.
    pub(crate) fn stop(&self) {
        self.status.set_stopped();
        self.wake_sleepers();
    }

    /// Drops the commands of an engine that has stopped. This ends the waits for them.
    pub(crate) fn drain(&self) {
        while self.take_op().is_some() || self.take_control().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::Families;

    fn mailbox() -> Mailbox {
        let status = EngineStatus::new((Ipv4Addr::LOCALHOST, 0).into(), Families::V4, &[]);
        Mailbox::new(16, Arc::new(status)).expect("an eventfd")
    }

    #[test]
    fn a_datagram_ends_the_sleep() {
        let [socket, peer] =
            [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket"));
        let from = Instant::now();
        peer.send_to(b"hello", socket.local_addr().expect("bound")).expect("loopback");
        mailbox().sleep(&socket, Some(Span::from_secs(100)), false, || true);
        assert!(from.elapsed() < Duration::from_secs(90), "the engine slept until the timeout");
    }

    #[test]
    fn a_command_posted_before_the_sleep_prevents_it() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket");
        let mailbox = mailbox();
        mailbox.post(Command::Keys(KeyRing::insecure()));
        let from = Instant::now();
        mailbox.sleep(&socket, Some(Span::from_secs(100)), false, || true);
        assert!(from.elapsed() < Duration::from_secs(90), "the engine slept until the timeout");
        assert!(mailbox.has_commands());
    }

    #[test]
    fn a_command_to_a_stopped_engine_is_dropped_which_ends_the_wait_for_its_reply() {
        let mailbox = mailbox();
        mailbox.stop();
        let (reply, receiver) = oneshot::channel();
        let (peer, classes) = ((Ipv4Addr::LOCALHOST, 1).into(), vec![0]);
        mailbox.post(Command::Connect(ConnectRequest {
            peer,
            classes,
            towards: Towards::Any,
            reply,
        }));
        assert!(receiver.recv().is_err());
    }
}
