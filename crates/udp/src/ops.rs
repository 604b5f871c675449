//! Submitted ops as applications see them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::connection_state::ConnectionState;
use crate::containment::ContainedWaker;
use crate::driver::Driver;
use crate::error::{Cause, End, OpError};
use crate::mailbox::{ConnectionCommand, Mailbox};
use crate::pending::OpResult;

/// Access of a connection's handle to its engine.
pub(crate) struct EngineLink {
    pub(crate) state: Arc<ConnectionState>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) driver: Driver,
}

impl EngineLink {
    /// Asks the engine to cancel an op.
    pub(crate) fn cancel(&self, ticket: u64) {
        self.ask(ConnectionCommand::Cancel { ticket });
    }

    /// Sends a command to the connection.
    pub(crate) fn ask(&self, request: ConnectionCommand) {
        self.mailbox.ask(&self.state, request);
    }
}

/// A submitted op, which is a future of its completion. Dropping it does not cancel the op.
pub struct Op {
    pub(crate) receiver: oneshot::Receiver<OpResult>,
    pub(crate) link: Arc<EngineLink>,
    pub(crate) ticket: u64,
    pub(crate) waker: ContainedWaker,
}

impl Op {
    /// Waits for the completion of the op.
    ///
    /// # Errors
    /// How the op failed; [`OpError::Unknown`] if the peer may have applied it. If the cause is [`End::WouldDeadlock`], the op
    /// continues and its completion is discarded.
    pub fn wait(self) -> OpResult {
        let Self { receiver, link, .. } = self;
        if link.driver.would_deadlock() {
            return Err(OpError::Unknown(Cause::Ended(End::WouldDeadlock)));
        }
        link.driver.wait(receiver).unwrap_or_else(|| Err(stopped(&link.state)))
    }

    /// Returns the completion if the op has ended, without waiting. Only the first call after the end returns it.
    #[must_use]
    pub fn try_take(&self) -> Option<OpResult> {
        match self.receiver.try_recv() {
            Ok(result) => Some(result),
            Err(oneshot::TryRecvError::Empty) => None,
            Err(oneshot::TryRecvError::Disconnected) => Some(Err(stopped(&self.link.state))),
        }
    }

    /// Asks the engine to cancel the op. The op then ends with [`Cause::Cancelled`], unless it has ended before.
    pub fn cancel(&self) {
        self.link.cancel(self.ticket);
    }
}

fn stopped(state: &ConnectionState) -> OpError {
    OpError::Unknown(Cause::Ended(state.end()))
}

impl Future for Op {
    type Output = OpResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<OpResult> {
        self.link.driver.drive_for(context);
        let Self { receiver, link, waker, .. } = &mut *self;
        let mut context = Context::from_waker(waker.of(context.waker()));
        let end = Pin::new(receiver).poll(&mut context);
        end.map(|end| end.unwrap_or_else(|_| Err(stopped(&link.state))))
    }
}
