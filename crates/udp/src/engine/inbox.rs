//! Messages of a peer: reservation of room, assembly of their parts, and delivery to the application.

use std::collections::BTreeMap;
use std::sync::Arc;

use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, OpId};
use apus_wire::{RejectReason, Segment};
use bytes::Bytes;

use crate::connection_state::{ConnectionState, InboxLimits, Message};
use crate::message_receiver::{Attach, Attached};

/// Decision whether a data packet may be handed to the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The packet may be handed over.
    Yes,
    /// The packet may be handed over, and room for its message has been reserved.
    Reserved,
    /// There is no room for the message of the packet now.
    NotReady,
    /// The op is not allowed.
    Refused(RejectReason),
}

/// The messages of one connection.
pub(super) struct Inbox {
    state: Arc<ConnectionState>,
    sender: async_channel::Sender<Message>,
    /// Receiver that the application has attached. It gets the messages instead of `sender`.
    attached: Option<Attached>,
    limits: InboxLimits,
    /// Messages that have arrived in part.
    partial: BTreeMap<(FlowId, OpId), Vec<u8>>,
}

impl Inbox {
    /// Returns an empty inbox that delivers to `sender`.
    pub(super) fn new(
        state: Arc<ConnectionState>,
        sender: async_channel::Sender<Message>,
        limits: InboxLimits,
    ) -> Self {
        Self { state, sender, attached: None, limits, partial: BTreeMap::new() }
    }

    /// Checks a message of `bytes` bytes, and reserves room for the message when its first packet arrives.
    pub(super) fn admit(&mut self, flow: FlowId, op: OpId, bytes: u64) -> Admission {
        if bytes > self.limits.max_message {
            return Admission::Refused(RejectReason::TooLong);
        }
        if self.partial.contains_key(&key(flow, op)) {
            return Admission::Yes;
        }
        let reserved = self.state.reserve_message(bytes, &self.limits);
        if reserved { Admission::Reserved } else { Admission::NotReady }
    }

    /// Releases room that was reserved for a message and is not needed.
    pub(super) fn release(&self, bytes: u64) {
        self.state.release_message(bytes);
    }

    /// Stores a part of a message. Delivers the message if this part completes it. `index` is the flow's index within
    /// the connection.
    pub(super) fn store(
        &mut self,
        index: usize,
        flow: FlowId,
        segment: &Segment,
        payload: &[u8],
        finished: bool,
    ) {
        let key = key(flow, segment.op);
        let last = segment.offset + payload.len() as u64 == segment.op_length;
        let finished = finished || last && is_planted(Bug::EarlyMessage);
        let bytes = if payload.len() as u64 == segment.op_length {
            Bytes::copy_from_slice(payload)
        } else {
            let message =
                self.partial.entry(key).or_insert_with(|| vec![0; segment.op_length as usize]);
            let range = message.get_mut(segment.offset as usize..);
            if let Some(range) = range.and_then(|r| r.get_mut(..payload.len())) {
                range.copy_from_slice(payload);
            }
            if !finished {
                return;
            }
            Bytes::from(std::mem::take(message))
        };
        self.partial.remove(&key);
        let message = Message { flow: index, bytes };
        match &mut self.attached {
            Some(attached) => attached.deliver(message),
            // Room was reserved, so the send fails only if the channel is closed. No application reads the message
            // then.
            None => drop(self.sender.try_send(message)),
        }
    }

    /// Attaches a receiver of the application. It gets the messages that the application has not taken, then each
    /// message that arrives.
    pub(super) fn attach(&mut self, attach: Attach) {
        if let Some(before) = self.attached.replace(attach.deliver_queued()) {
            before.forget();
        }
    }

    /// Returns the number of messages that have arrived in part.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn partial(&self) -> usize {
        self.partial.len()
    }

    /// Returns the number of messages that the application has not taken, including those that have arrived in part.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn queued_messages(&self) -> usize {
        self.partial.len() + self.sender.len()
    }

    /// Returns the number of bytes that are reserved for these messages, or that the partial ones use, if that is more.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn queued_bytes(&self) -> u64 {
        let partial = self.partial.values().map(|message| message.len() as u64).sum();
        self.state.queued_bytes().max(partial)
    }

    /// Returns `true` while the application's receiver answers messages or waits for answers.
    pub(super) fn is_busy(&self) -> bool {
        self.attached.as_ref().is_some_and(Attached::is_busy)
    }

    /// Drops the parts of a message that its sender has cancelled.
    pub(super) fn discard(&mut self, flow: FlowId, op: OpId) {
        if let Some(message) = self.partial.remove(&key(flow, op))
            && !is_planted(Bug::RoomLeak)
        {
            self.release(message.len() as u64);
        }
    }
}

/// Returns the key of a message in `partial`.
fn key(flow: FlowId, op: OpId) -> (FlowId, OpId) {
    if is_planted(Bug::InboxByOp) { (FlowId::new(0), op) } else { (flow, op) }
}

#[cfg(test)]
mod tests {
    use apus_wire::SegmentKind;

    use super::*;
    use crate::connection_state::{ConnectionLimits, PeerIdentity};
    use crate::key_use::{KeyLimit, KeyUse};
    use crate::session::SessionId;
    use crate::status::EngineStatus;

    /// Returns an inbox for messages of at most 100 bytes each, and of at most 150 bytes and 3 messages in total.
    fn inbox() -> (Inbox, async_channel::Receiver<Message>) {
        inbox_of(None)
    }

    /// As [`inbox`], for a peer whose connections occupy `used`, with a quota of 200 bytes.
    fn inbox_of(used: Option<Arc<KeyUse>>) -> (Inbox, async_channel::Receiver<Message>) {
        let address = ([127, 0, 0, 1], 1).into();
        let engine = Arc::new(EngineStatus::new(address, crate::sys::Families::V4, &[]));
        let limits = ConnectionLimits { max_ops: 1, max_message: 0 };
        let state = ConnectionState::new(
            SessionId(1),
            address,
            PeerIdentity::default(),
            engine,
            limits,
            1,
            used,
        );
        let (sender, receiver) = async_channel::unbounded();
        let limits = InboxLimits {
            max_message: 100,
            max_queued_bytes: 150,
            max_queued_messages: 3,
            quota_queued_bytes: KeyLimit::new(Some(200), 0),
        };
        (Inbox::new(Arc::new(state), sender, limits), receiver)
    }

    const FLOW: FlowId = FlowId::new(5);

    fn op(n: u64) -> OpId {
        OpId::new(n)
    }

    fn part(n: u64, offset: u64, length: u32, op_length: u64) -> Segment {
        Segment { op: op(n), kind: SegmentKind::Message, offset, length, op_length, attached: None }
    }

    #[test]
    fn a_message_longer_than_the_limit_is_refused() {
        let (mut inbox, _receiver) = inbox();
        assert_eq!(inbox.admit(FLOW, op(1), 101), Admission::Refused(RejectReason::TooLong));
        assert_eq!(inbox.admit(FLOW, op(1), 100), Admission::Reserved);
    }

    #[test]
    fn a_message_waits_until_there_is_room_in_bytes_and_in_messages() {
        let (mut inbox, _receiver) = inbox();
        assert_eq!(inbox.admit(FLOW, op(1), 100), Admission::Reserved);
        assert_eq!(inbox.admit(FLOW, op(2), 51), Admission::NotReady, "150 bytes in all");
        assert_eq!(inbox.admit(FLOW, op(3), 25), Admission::Reserved);
        assert_eq!(inbox.admit(FLOW, op(4), 25), Admission::Reserved);
        assert_eq!(inbox.admit(FLOW, op(5), 0), Admission::NotReady, "3 messages in all");
        inbox.release(25);
        assert_eq!(inbox.admit(FLOW, op(5), 0), Admission::Reserved);
    }

    #[test]
    fn messages_of_one_peer_have_room_together_until_their_connections_are_dropped() {
        let used = Arc::default();
        let (mut one, messages) = inbox_of(Some(Arc::clone(&used)));
        let (mut other, _receiver) = inbox_of(Some(used));
        assert_eq!(one.admit(FLOW, op(1), 100), Admission::Reserved);
        assert_eq!(other.admit(FLOW, op(1), 100), Admission::Reserved);
        assert_eq!(other.admit(FLOW, op(2), 1), Admission::NotReady, "200 bytes in all");
        one.release(100);
        assert_eq!(other.admit(FLOW, op(2), 50), Admission::Reserved);
        assert_eq!(one.admit(FLOW, op(2), 50), Admission::Reserved);
        assert_eq!(one.admit(FLOW, op(3), 1), Admission::NotReady);
        // Drops messages that the application has not taken.
        drop((other, messages));
        assert_eq!(one.admit(FLOW, op(3), 100), Admission::Reserved);
    }

    #[test]
    fn parts_in_any_order_make_a_message_and_room_is_reserved_once() {
        let (mut inbox, receiver) = inbox();
        assert_eq!(inbox.admit(FLOW, op(1), 5), Admission::Reserved);
        inbox.store(2, FLOW, &part(1, 3, 2, 5), &[4, 5], false);
        assert_eq!(inbox.admit(FLOW, op(1), 5), Admission::Yes);
        assert!(receiver.is_empty());
        inbox.store(2, FLOW, &part(1, 0, 3, 5), &[1, 2, 3], true);
        let message = receiver.try_recv().expect("a whole message");
        assert_eq!((message.flow, &message.bytes[..]), (2, &[1, 2, 3, 4, 5][..]));
    }

    #[test]
    fn discarded_parts_release_their_room() {
        let (mut inbox, receiver) = inbox();
        assert_eq!(inbox.admit(FLOW, op(1), 100), Admission::Reserved);
        inbox.store(0, FLOW, &part(1, 0, 50, 100), &[1; 50], false);
        assert_eq!(inbox.admit(FLOW, op(2), 100), Admission::NotReady);
        inbox.discard(FLOW, op(1));
        inbox.discard(FLOW, op(1));
        assert_eq!(inbox.admit(FLOW, op(2), 100), Admission::Reserved);
        assert!(receiver.is_empty());
    }
}
