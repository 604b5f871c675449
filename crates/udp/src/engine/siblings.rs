//! The engines of one host, which share its port.
//!
//! The kernel divides peers among the sockets of a port, always in the same way, so that a connection
//! belongs to the engine that hears its peer. Which one that is shows when the peer first answers: an
//! engine that gets an answer which is not its own tells the others, and the one that asked hands its
//! question over.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use apus_units::Time;

use super::{Command, Engine, EngineShared};
use crate::connection::Connection;
use crate::error::{ConnectError, End};
use crate::session::KeyId;

/// All engines of a host.
#[derive(Default)]
pub(crate) struct Siblings {
    engines: OnceLock<Vec<Arc<EngineShared>>>,
    /// Connections that are being opened from here, by any of them.
    asking: AtomicUsize,
}

impl Siblings {
    /// They are complete; nothing is handed over before.
    pub(crate) fn set(&self, engines: Vec<Arc<EngineShared>>) {
        // It is called once.
        let _ = self.engines.set(engines);
    }

    fn engines(&self) -> &[Arc<EngineShared>] {
        self.engines.get().map_or(&[], Vec::as_slice)
    }
}

/// A connection that the application has asked for, until it is told.
pub(super) struct Asked {
    key: Option<KeyId>,
    reply: oneshot::Sender<Result<Connection, ConnectError>>,
    /// Counts it.
    _asking: Asking,
}

impl Asked {
    pub(super) fn new(
        siblings: &Arc<Siblings>,
        key: Option<KeyId>,
        reply: oneshot::Sender<Result<Connection, ConnectError>>,
    ) -> Self {
        siblings.asking.fetch_add(1, Ordering::Relaxed);
        Self { key, reply, _asking: Asking(Arc::clone(siblings)) }
    }

    /// Whether the application has given it up: its time was over.
    pub(super) fn is_unwanted(&self) -> bool {
        self.reply.is_closed()
    }

    /// Tells the application; it may not be waiting any more.
    pub(super) fn tell(self, what: Result<Connection, ConnectError>) {
        drop(self.reply.send(what));
    }
}

struct Asking(Arc<Siblings>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine {
    /// A peer that proves a key has answered something that this engine did not ask.
    #[cold]
    pub(super) fn on_stray(&self, peer: SocketAddr) {
        // Old answers come too: only while somebody asks is anyone told.
        if self.siblings.asking.load(Ordering::Relaxed) == 0 {
            return;
        }
        let others = self.siblings.engines().iter().enumerate();
        for (_, engine) in others.filter(|&(index, _)| index != self.index as usize) {
            engine.submit_surely(Command::Elsewhere { peer, engine: self.index });
        }
    }

    /// Another engine hears `peer`: connections to it are that one's to open.
    pub(super) fn on_elsewhere(&mut self, now: Time, peer: SocketAddr, engine: u32) {
        let Some((asked, classes)) = self.take_asked(now, peer, |_| true) else { return };
        let Asked { key, reply, .. } = asked;
        if let Some(engine) = self.siblings.engines().get(engine as usize) {
            engine.submit_surely(Command::Connect { peer, classes, key, reply });
        }
    }

    /// Gives up a connection to `peer` that is being opened, if it is one that `which` wants; returns who
    /// asked for it, and the traffic classes of its flows.
    pub(super) fn take_asked(
        &mut self,
        now: Time,
        peer: SocketAddr,
        which: fn(&Asked) -> bool,
    ) -> Option<(Asked, Vec<u8>)> {
        let mut all = self.connections.values_mut();
        let wanted =
            |c: &super::connect::Connection| c.peer == peer && c.asked.as_ref().is_some_and(which);
        let connection = all.find(|connection| wanted(connection))?;
        let taken = connection.asked.take().zip(Some(connection.classes.clone()));
        let session = connection.session;
        drop(all);
        self.sessions.close(now, session);
        self.remove(now, session, End::ClosedHere);
        taken
    }
}
