//! Messages to a peer, which are queued while the connection has no room for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use apus_udp::{Connection, End, Request, SubmitError};

use crate::envelope::{Header, encode};
use crate::keeper::Keeper;

/// Time after which messages that found no room on the connection are submitted again. deviation: no source; a connection
/// without room has 1024 ops outstanding by default, which take about as long.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// Messages that found no room on the connection.
#[derive(Default)]
struct Backlog {
    /// The messages in the order of sending.
    messages: VecDeque<Waiting>,
    /// Number of responses among them.
    responses: usize,
}

struct Waiting {
    bytes: Vec<u8>,
    is_response: bool,
}

/// Messages that must not be lost: responses, cancellations and positions of bodies. Their number is bounded by the number of
/// calls, provided that the peer reuses the slot of a call only after its answer ([`Outgoing::waits_for_more_than`]).
pub(crate) struct Outgoing {
    pub(crate) connection: Connection,
    keeper: Arc<Keeper>,
    backlog: Mutex<Backlog>,
    has_backlog: AtomicBool,
    /// Wakers of readers of bodies that found no room on the connection; `None` if all bodies have ended.
    waiters: Mutex<Option<Vec<Waker>>>,
}

impl Outgoing {
    pub(crate) fn new(connection: Connection, keeper: Arc<Keeper>) -> Self {
        let (backlog, has_backlog) = (Mutex::default(), AtomicBool::new(false));
        let waiters = Mutex::new(Some(Vec::new()));
        Self { connection, keeper, backlog, has_backlog, waiters }
    }

    /// Returns the reason why [`Connection::block_on`] ended without a result before its deadline.
    pub(crate) fn end_of_wait(&self) -> End {
        if self.connection.would_deadlock() {
            return End::WouldDeadlock;
        }
        self.connection.ended().unwrap_or(End::Stopped)
    }

    /// Returns the maximum number of bytes of a message to the peer.
    pub(crate) fn max_message(&self) -> usize {
        usize::try_from(self.connection.max_message()).unwrap_or(usize::MAX)
    }

    fn submit(&self, message: Vec<u8>) -> Result<(), SubmitError> {
        self.connection.submit_unreported(0, Request::message(message).answers()).map(drop)
    }

    /// Returns `true` if more than `responses` responses wait for room, or more than `messages` messages of any kind. A
    /// response may have the maximum length of a message; other messages have about 20 bytes.
    pub(crate) fn waits_for_more_than(&self, responses: usize, messages: usize) -> bool {
        if !self.has_backlog.load(Ordering::Acquire) {
            return false;
        }
        let backlog = self.backlog();
        backlog.responses > responses || backlog.messages.len() > messages
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message now, or as soon as the connection has room. A message to an ended connection is dropped.
    pub(crate) fn post(&self, header: &Header, payload: &[u8]) {
        if !self.has_backlog.load(Ordering::Acquire) {
            match self.submit(encode(header, payload)) {
                Err(SubmitError::Full) => {}
                // Callers check lengths, so any other error is the end of the connection.
                _ => return,
            }
        }
        let bytes = encode(header, payload);
        let is_response = matches!(header, Header::Response { .. });
        let mut backlog = self.backlog();
        backlog.responses += usize::from(is_response);
        backlog.messages.push_back(Waiting { bytes, is_response });
        self.has_backlog.store(true, Ordering::Release);
        drop(backlog);
        self.keeper.wake_by(Instant::now() + RETRY_AFTER);
    }

    fn waiters(&self) -> MutexGuard<'_, Option<Vec<Waker>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the caller when it should try again to submit ops that found no room on the connection.
    pub(crate) fn wait_for_room(&self, waker: &Waker) {
        let mut waiters = self.waiters();
        match waiters.as_mut() {
            Some(waiters) if waiters.iter().any(|other| other.will_wake(waker)) => {}
            Some(waiters) => waiters.push(waker.clone()),
            None => {
                drop(waiters);
                return waker.wake_by_ref();
            }
        }
        drop(waiters);
        self.keeper.wake_by(Instant::now() + RETRY_AFTER);
    }

    /// Wakes all tasks that wait for room, because all bodies have ended, and drops their wakers: the task of a waker may keep
    /// this object alive. Later waits are woken at once.
    pub(crate) fn end_waits(&self) {
        let waiters = self.waiters().take();
        waiters.into_iter().flatten().for_each(Waker::wake);
    }

    /// Submits messages again that found no room on the connection, and wakes the tasks that wait for room. Returns the time
    /// of the next call.
    pub(crate) fn retry(&self, now: Instant) -> Option<Instant> {
        let waiters = self.waiters().as_mut().map(std::mem::take);
        waiters.into_iter().flatten().for_each(Waker::wake);
        if !self.has_backlog.load(Ordering::Acquire) {
            return None;
        }
        loop {
            let mut backlog = self.backlog();
            let Some(message) = backlog.messages.pop_front() else {
                self.has_backlog.store(false, Ordering::Release);
                return None;
            };
            backlog.responses -= usize::from(message.is_response);
            // Submitting may run the engine, which may post messages.
            drop(backlog);
            if let Err(SubmitError::Full) = self.submit(message.bytes.clone()) {
                let mut backlog = self.backlog();
                backlog.responses += usize::from(message.is_response);
                backlog.messages.push_front(message);
                return Some(now + RETRY_AFTER);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::task::Wake;

    use apus_udp::session::{KeyRing, SharedKey};
    use apus_udp::{Config, Host};
    use apus_units::Span;

    use super::*;

    /// The waker of a task that runs within the wake-up and waits for room again.
    struct Inline(Weak<Outgoing>, AtomicBool);

    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let outgoing = self.0.upgrade().expect("the test has it");
            assert!(outgoing.waiters.try_lock().is_ok(), "the wakers are locked");
            self.1.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn task_that_asks_for_room_after_the_end_is_woken_while_the_wakers_are_unlocked() {
        let keys = KeyRing::new([SharedKey::new([7; 32])]).expect("a key");
        let mut config = Config::new(([127, 0, 0, 1], 0).into(), keys).expect("defaults");
        config.session.handshake_timeout = Span::from_secs(60);
        let [server, client] = [(); 2].map(|()| Host::start(config.clone()).expect("a host"));
        let connection = client.connect(server.local_addr()).expect("connected");
        let outgoing = Arc::new(Outgoing::new(connection, Keeper::new()));
        outgoing.end_waits();
        let task = Arc::new(Inline(Arc::downgrade(&outgoing), AtomicBool::new(false)));
        outgoing.wait_for_room(&Waker::from(Arc::clone(&task)));
        assert!(task.1.load(Ordering::SeqCst));
    }
}
