//! The end of an engine by a panic. Every wait for it ends, and no op reports more than is certain.

use std::mem;

use slab::Slab;

use super::places::Places;
use super::send::Outbox;
use super::{Engine, OpEntry};
use crate::containment::contain;
use crate::error::{Cause, ConnectError, End, OpError};
use crate::session::SessionId;

/// The end of the ops that a failed engine had.
const UNKNOWN: OpError = OpError::Unknown(Cause::Ended(End::EngineFailed));

impl Engine {
    /// Ends everything after a panic. The state of the transport may be inconsistent, so it is not used: all ops end as
    /// unknown, all connections as [`End::EngineFailed`], and all waits end.
    #[cold]
    pub(super) fn fail(&mut self) {
        // Ops that are dropped from now on end as unknown too.
        self.shared.fail();
        for shared in self.connections.values().filter_map(|c| c.shared.as_ref()) {
            // It may have ended before.
            let _ = shared.ended.set(End::EngineFailed);
            super::connect::add_connections(self, -1);
        }
        contain(|| self.tell_peers());
        for (_, OpEntry { pending, .. }) in mem::replace(&mut self.ops, Slab::new()) {
            contain(|| pending.end(Err(UNKNOWN)));
        }
        for connection in mem::replace(&mut self.connections, Places::new()).into_values() {
            contain(|| connection.fail());
        }
        self.deadlines.clear();
        if self.inline.is_some() {
            // The engine stays where it is, so its end of the channel would stay open.
            self.backlog.close();
        }
        contain(|| self.leave_regions());
        contain(|| self.shared.drain());
    }

    /// Closes all sessions, as far as the socket takes it.
    fn tell_peers(&mut self) {
        // A packet may be half built.
        self.outbox = Outbox::new();
        let now = self.clock.now();
        let sessions: Vec<SessionId> = self.sessions.ids().collect();
        for session in sessions {
            self.sessions.close(now, session);
        }
        self.send_own(now);
    }

    /// Uses no region from now on.
    pub(super) fn leave_regions(&mut self) {
        self.last_region.forget();
        self.regions.leave(self.index);
    }
}

impl super::connect::Connection {
    /// Ends what waits for it.
    fn fail(self) {
        for pending in self.waiting.into_iter().flatten() {
            pending.end(Err(UNKNOWN));
        }
        drop(self.incoming);
        if let Some(asked) = self.asked {
            asked.tell(Err(ConnectError::EngineFailed));
        }
        for closed in self.closing.into_iter().flatten() {
            // Nobody may be waiting any more.
            let _ = closed.send(());
        }
    }
}
