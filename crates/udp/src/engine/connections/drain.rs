//! The end of an engine that accepts no new connections and ops ([`Host::drain`](crate::Host::drain)).
//!
//! At intervals, the engine asks each peer to submit no more ops. A peer answers when none of its ops is outstanding. A
//! connection closes after it was idle at two checks in a row: no op of either side outstanding, no message left for
//! the application, and no receiver of the application busy. One check is not enough, because the application may be
//! about to answer the last message.

use apus_units::Time;

use super::{Connection, Connections, Inbox, Stage};
use crate::engine::op_table::OpTable;
use crate::error::ConnectError;
use crate::session::SessionId;

/// Number of consecutive checks at which a connection must be idle before it closes.
const IDLE_INTERVALS: u8 = 2;

/// The drain of an engine.
pub(super) struct Draining {
    /// When connections are checked next.
    next_at: Time,
    /// Application waits for the end of all connections.
    done: Vec<oneshot::Sender<()>>,
}

/// The drain of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrainState {
    /// Whether the peer has answered since the last check.
    peer_idle: bool,
    /// Number of consecutive checks at which the connection was idle.
    idle: u8,
}

impl Connection {
    /// Checks a connection that is connected. Returns `true` if it has drained.
    fn check_drained(&mut self) -> bool {
        let Some(state) = self.state() else { return false };
        let busy = self.inbox.as_ref().is_some_and(Inbox::is_busy);
        let idle = state.is_idle() && !state.has_messages() && !busy;
        let drain = &mut self.drain;
        drain.idle = if idle && drain.peer_idle { drain.idle + 1 } else { 0 };
        drain.peer_idle = false;
        drain.idle >= IDLE_INTERVALS
    }
}

impl Connections {
    /// Accepts no new connections and ops from now on. Reports through `done` when every connection has ended.
    pub(in crate::engine) fn begin_drain(
        &mut self,
        now: Time,
        done: oneshot::Sender<()>,
        ops: &mut OpTable,
    ) {
        self.mailbox.status.set_draining();
        if self.draining.is_none() {
            self.log.draining(self.table.iter().flatten().count());
        }
        let draining = self.draining.get_or_insert(Draining { next_at: now, done: Vec::new() });
        draining.done.push(done);
        draining.next_at = now;
        let opening = |c: &&mut Connection| !matches!(c.stage, Stage::Connected { .. });
        let opening = self.table.iter_mut().flatten().map(|c| &mut **c).filter(opening);
        let sessions: Vec<SessionId> = opening
            .map(|connection| {
                if let Some((question, _)) = connection.take_opening() {
                    question.answer(Err(ConnectError::Draining));
                }
                connection.session
            })
            .collect();
        for session in sessions {
            self.close(now, session, ops);
        }
    }

    /// Returns when connections are checked next.
    pub(super) fn next_drain(&self) -> Time {
        self.draining.as_ref().map_or(Time::MAX, |draining| draining.next_at)
    }

    /// Closes connections that have drained, and asks the peers of all other connections.
    pub(in crate::engine) fn handle_drain(&mut self, now: Time, ops: &mut OpTable) {
        if now < self.next_drain() {
            return;
        }
        let (mut drained, mut others) = (Vec::new(), Vec::new());
        for connection in self.table.iter_mut().flatten() {
            let sessions = if connection.check_drained() { &mut drained } else { &mut others };
            sessions.push(connection.session);
        }
        for session in drained {
            self.close(now, session, ops);
        }
        for session in others {
            self.sessions.announce_draining(session);
        }
        let retry = self.config.session.retry;
        let empty = self.is_empty();
        let Some(draining) = &mut self.draining else { return };
        draining.next_at = if empty { Time::MAX } else { now + retry };
        if empty && !draining.done.is_empty() {
            for done in draining.done.drain(..) {
                // The application may have given up its wait.
                let _ = done.send(());
            }
            self.log.drained();
        }
    }

    /// Handles the peer's notice that it accepts no new ops. Answers if no op of this side is outstanding.
    pub(super) fn on_peer_draining(&mut self, session: SessionId) {
        let Some(state) = self.get(session).and_then(Connection::state) else { return };
        state.set_peer_draining();
        if state.is_idle() {
            self.sessions.announce_idle(session);
        }
    }

    /// Handles the peer's answer that it has no outstanding op.
    pub(super) fn on_peer_idle(&mut self, session: SessionId) {
        if let Some(connection) = self.get_mut(session) {
            connection.drain.peer_idle = true;
        }
    }
}
