//! The handshake of a client, and the messages that it receives afterwards.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use apus_udp::{End, Message, MessageReceiver};
use bytes::{Buf, Bytes};

use super::table::Table;
use crate::envelope::{Header, VERSION, decode, decode_methods};
use crate::error::ConnectError;
use crate::keeper::Deadlines;
use crate::metrics::add;
use crate::outgoing::Outgoing;

/// The server's answer to the handshake.
#[derive(Debug)]
pub(super) struct Welcome {
    pub(super) calls: u16,
    pub(super) lanes: u16,
    /// Numbers and names of the methods.
    pub(super) methods: Vec<(u16, String)>,
}

#[derive(Default)]
struct State {
    answer: Option<Result<Welcome, ConnectError>>,
    /// The end of the connection, as this client sees it.
    ended: Option<End>,
    deadline: Option<Instant>,
    waker: Option<Waker>,
}

/// Destination of received messages: first the handshake, then the table of calls.
#[derive(Default)]
pub(super) struct Core {
    handshake: Mutex<State>,
    table: OnceLock<Arc<Table>>,
    outgoing: OnceLock<Weak<Outgoing>>,
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        self.handshake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, answer: Result<Welcome, ConnectError>) {
        let mut state = self.state();
        state.answer.get_or_insert(answer);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sets the time at which the handshake fails if no answer has arrived.
    pub(super) fn set_deadline(&self, deadline: Option<Instant>) {
        self.state().deadline = deadline;
    }

    /// Begins to pass messages to the table of calls. Messages to the server go through `outgoing`.
    pub(super) fn begin(&self, table: &Arc<Table>, outgoing: &Arc<Outgoing>) {
        // This function is called only once.
        let _ = self.outgoing.set(Arc::downgrade(outgoing));
        let _ = self.table.set(Arc::clone(table));
        // Either this thread sees the end, or the thread that reports the end sees the table.
        let ended = self.state().ended;
        if let Some(end) = ended {
            table.end(end);
        }
    }

    /// Ends the handshake, and all calls.
    fn end(&self, end: End) {
        self.state().ended.get_or_insert(end);
        match self.table.get() {
            Some(table) => table.end(end),
            None => self.answer(Err(ConnectError::Ended(end))),
        }
    }

    /// Polls for the end of the handshake.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Welcome, ConnectError>> {
        let mut state = self.state();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                let before = state.waker.replace(context.waker().clone());
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl Deadlines for Core {
    fn expire(&self, now: Instant) -> Option<Instant> {
        let deadline = self.state().deadline?;
        if deadline <= now {
            self.answer(Err(ConnectError::NoServer));
        }
        Some(deadline).filter(|deadline| *deadline > now)
    }
}

/// The client's end of a connection.
pub(super) struct Receiver(pub(super) Arc<Core>);

impl Receiver {
    /// Handles a message. Returns `false` if a server does not send such a message.
    fn handle(&self, mut bytes: Bytes) -> Result<bool, ConnectError> {
        let not_rpc = |error: crate::envelope::Malformed| ConnectError::NotRpc(error.to_string());
        let (header, payload) = decode(&bytes).map_err(not_rpc)?;
        let table = self.0.table.get();
        match (header, table) {
            (Header::Welcome { version, calls, lanes }, None) => {
                if version != VERSION {
                    return Err(ConnectError::NotRpc(format!("unknown version {version}")));
                }
                let methods = decode_methods(&bytes[payload..]).map_err(not_rpc)?;
                let methods = methods.into_iter().map(|(n, name)| (n, name.to_owned())).collect();
                self.0.answer(Ok(Welcome { calls, lanes, methods }));
            }
            (Header::Refusal { min, max }, None) => {
                self.0.answer(Err(ConnectError::Version { min, max }));
            }
            (Header::Response { id, status, grant }, Some(table)) => {
                bytes.advance(payload);
                return Ok(table.on_response(Instant::now(), id, status, grant, bytes));
            }
            (Header::Advance { id, position, progress }, Some(table)) => {
                table.on_advance(id, position, progress);
            }
            (Header::Consumed { id, position, end }, Some(table)) => {
                table.on_consumed(id, position, end);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl MessageReceiver for Receiver {
    fn receive(&mut self, message: Message) {
        let handled = self.handle(message.bytes);
        if matches!(handled, Ok(true)) {
            return;
        }
        match (handled, self.0.table.get()) {
            (Ok(_), Some(table)) => add(&table.metrics.malformed),
            // A peer that breaks the protocol receives no further calls.
            (Err(_), Some(table)) => {
                add(&table.metrics.malformed);
                self.0.end(End::ClosedHere);
                if let Some(outgoing) = self.0.outgoing.get().and_then(Weak::upgrade) {
                    outgoing.connection.begin_close();
                }
            }
            (Err(error), None) => self.0.answer(Err(error)),
            (Ok(_), None) => {
                let what = "its first message does not belong to the handshake".to_owned();
                self.0.answer(Err(ConnectError::NotRpc(what)));
            }
        }
    }

    fn ended(&mut self, end: End) {
        self.0.end(end);
    }

    fn is_busy(&self) -> bool {
        self.0.table.get().is_some_and(|table| table.is_busy())
    }
}

impl Drop for Receiver {
    /// The connection has ended, or another receiver took over: a second client, which the server does not serve.
    fn drop(&mut self) {
        self.0.end(End::ClosedHere);
    }
}
