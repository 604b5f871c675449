//! The resources that an engine holds, each of which is bounded.

use apus_units::{FlowId, Time};
use apus_wire::MAX_EXTENSION_BYTES;

use super::Engine;
use super::network::Network;
use crate::session::{Extended, SessionId};

/// Resources that an engine holds at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Sessions, including those being opened or closed.
    pub sessions: usize,
    /// Sessions that peers have requested and not confirmed.
    pub pending: usize,
    /// Answers of sessions that are queued for sending.
    pub replies: usize,
    /// Connections.
    pub connections: usize,
    /// Flows of the transport.
    pub flows: usize,
    /// Ops that the transport has accepted.
    pub ops: usize,
    /// Ops that are queued behind older ones.
    pub waiting_ops: usize,
    /// Deadlines of ops.
    pub deadlines: usize,
    /// Messages that have arrived in part.
    pub partial_messages: usize,
    /// Messages that the application has not taken, including partial ones, of the connection that has most of them.
    pub queued_messages: usize,
    /// Bytes of these messages, of the connection that has most of them.
    pub queued_bytes: u64,
    /// Bytes of messages that the application has not taken: those of the peer with a key of its own that has most of them.
    pub queued_by_key: u64,
    /// Refusals that are being repeated.
    pub refusals: usize,
    /// Bytes of bursts that wait for room in the socket.
    pub unsent_bytes: usize,
    /// Time at which the next timer is due; [`Time::MAX`] if there is none.
    pub next_timer: Time,
}

impl Usage {
    /// Returns `true` if no resource of any connection is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let sessions = self.sessions + self.pending + self.replies + self.connections;
        let ops = self.flows + self.ops + self.waiting_ops + self.deadlines;
        sessions + ops + self.partial_messages + self.refusals + self.unsent_bytes == 0
    }
}

impl<N: Network> Engine<N> {
    /// Returns a fingerprint of the key under which a sent datagram was sealed, and the number of its packet.
    pub(crate) fn nonce_of(&self, datagram: &[u8]) -> Option<(u64, u64)> {
        self.protocol.connections.sessions.nonce_of(datagram)
    }

    /// Seals a packet of any content under the keys of a session. Returns `None` if the packet cannot be sealed.
    pub(crate) fn seal(
        &mut self,
        session: SessionId,
        packet: Extended<'_>,
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        let now = self.network.now();
        let sessions = &mut self.protocol.connections.sessions;
        let headers = packet.header.encoded_len() + MAX_EXTENSION_BYTES;
        let mut datagram = vec![0; headers + payload.len() + sessions.overhead()];
        let length = sessions.seal(now, session, packet, payload, &mut datagram).ok()?;
        datagram.truncate(length);
        Some(datagram)
    }

    /// Seals a command of the session layer, given by its number, with any content. Returns `None` if there is no such command,
    /// or it cannot be sealed.
    pub(crate) fn seal_command(
        &mut self,
        session: SessionId,
        command: u8,
        content: &[u8],
    ) -> Option<Vec<u8>> {
        let now = self.network.now();
        self.protocol.connections.sessions.seal_command(now, session, command, content)
    }

    /// Returns the peer's numbers of the flows of a session; empty if the session is not connected.
    pub(crate) fn flows_at_peer(&self, session: SessionId) -> Vec<FlowId> {
        self.protocol.connections.flows_at_peer(session)
    }

    /// Returns the sessions.
    #[cfg(test)]
    pub(crate) fn sessions(&mut self) -> &mut crate::session::Sessions {
        &mut self.protocol.connections.sessions
    }

    /// Returns the resources that the engine holds.
    pub(crate) fn usage(&self) -> Usage {
        let connections = &self.protocol.connections;
        let [ops, waiting_ops, deadlines, refusals] = self.protocol.ops.usage();
        let (queued_messages, queued_bytes) = connections.queued();
        Usage {
            sessions: connections.sessions.len(),
            pending: connections.sessions.pending.len(),
            replies: connections.sessions.waiting_replies(),
            connections: connections.len(),
            flows: self.protocol.ops.endpoint.flows(),
            ops,
            waiting_ops,
            deadlines,
            partial_messages: connections.partial_messages(),
            queued_messages,
            queued_bytes,
            queued_by_key: connections.queued_by_key(),
            refusals,
            unsent_bytes: self.transmitter.unsent_bytes(),
            next_timer: self.next_due(),
        }
    }
}
