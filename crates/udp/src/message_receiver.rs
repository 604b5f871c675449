//! Delivery of messages to code of the application as they arrive, instead of a queue.

use std::sync::Arc;

use crate::connection_state::{ConnectionState, Message};
use crate::containment::contain;
use crate::error::End;

/// Receives the messages of a connection as they arrive ([`Connection::receive_with`](crate::Connection::receive_with)).
///
/// The engine calls these functions between its other work. An implementation must return soon and must not wait for anything. It
/// may submit ops and wake futures. The engine catches its panics.
pub trait MessageReceiver: Send {
    /// Takes a message. The message no longer counts towards `max_queued_bytes` and `max_queued_messages`, so an implementation
    /// that keeps messages must bound their number itself.
    fn receive(&mut self, message: Message);

    /// Takes the end of the connection, after the last message. Outstanding ops end afterwards.
    fn ended(&mut self, end: End);

    /// Returns `true` while the receiver answers messages or waits for answers. A host that drains
    /// ([`Host::drain`](crate::Host::drain)) keeps the connection open during that time.
    fn is_busy(&self) -> bool {
        false
    }
}

/// A receiver that is attached to a connection. It is dropped when the connection has ended.
pub(crate) struct Attached {
    /// The receiver; `None` if another one has replaced it.
    receiver: Option<Box<dyn MessageReceiver>>,
    state: Arc<ConnectionState>,
}

impl Attached {
    /// Delivers a message.
    pub(crate) fn deliver(&mut self, message: Message) {
        self.state.release_message(message.bytes.len() as u64);
        if let Some(receiver) = &mut self.receiver {
            contain(|| receiver.receive(message));
        }
    }

    /// Returns `true` while the receiver answers messages, or waits for answers.
    pub(crate) fn is_busy(&self) -> bool {
        let busy = self.receiver.as_ref().and_then(|receiver| contain(|| receiver.is_busy()));
        busy.unwrap_or(false)
    }

    /// Drops the receiver without reporting an end, because the connection continues.
    pub(crate) fn forget(mut self) {
        let receiver = self.receiver.take();
        contain(|| drop(receiver));
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let Some(mut receiver) = self.receiver.take() else { return };
        let end = self.state.end();
        contain(move || receiver.ended(end));
    }
}

/// A request to deliver the messages of a connection to a receiver.
pub(crate) struct Attach {
    attached: Attached,
    /// Messages that the application has not taken.
    queued: async_channel::Receiver<Message>,
}

impl Attach {
    pub(crate) fn new(
        receiver: Box<dyn MessageReceiver>,
        state: Arc<ConnectionState>,
        queued: async_channel::Receiver<Message>,
    ) -> Self {
        Self { attached: Attached { receiver: Some(receiver), state }, queued }
    }

    /// Delivers the queued messages. Returns the receiver for further ones.
    pub(crate) fn deliver_queued(mut self) -> Attached {
        while let Ok(message) = self.queued.try_recv() {
            self.attached.deliver(message);
        }
        self.attached
    }
}
