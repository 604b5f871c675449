//! The engines of one host, which share its port.
//!
//! The kernel divides peers among the sockets of a port, always in the same way, so that a connection
//! belongs to the engine that hears its peer. Which one that is shows when the peer first answers: an
//! engine that gets an answer which is not its own tells the one that asked for this peer, once per question, and that
//! one hands its question over. Nothing else that a stranger sends reaches another engine.

use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use apus_units::Time;

use super::{Command, Engine, EngineShared};
use crate::connection::Connection;
use crate::error::{ConnectError, End};
use crate::session::KeyId;

/// All engines of a host.
#[derive(Default)]
pub(crate) struct Siblings {
    engines: OnceLock<Vec<Arc<EngineShared>>>,
    /// Questions: peers that connections are being opened to, with the number of the engine that asks, and whether it
    /// was told that another engine hears the peer.
    questions: Mutex<BTreeMap<(SocketAddr, u32), bool>>,
}

impl Siblings {
    /// They are complete; nothing is handed over before.
    pub(crate) fn set(&self, engines: Vec<Arc<EngineShared>>) {
        // It is called once.
        let _ = self.engines.set(engines);
    }

    fn ask(&self, peer: SocketAddr, engine: u32) {
        self.questions().insert((peer, engine), false);
    }

    fn end(&self, peer: SocketAddr, engine: u32) {
        self.questions().remove(&(peer, engine));
    }

    /// Returns the engines other than `engine` that ask for `peer` and have not been told which engine hears it. From
    /// then on they count as told.
    fn to_tell(&self, peer: SocketAddr, engine: u32) -> Vec<u32> {
        let mut questions = self.questions();
        let asked = questions.range_mut((peer, 0)..=(peer, u32::MAX));
        let mut askers = Vec::new();
        for (&(_, asker), told) in asked.filter(|((_, asker), _)| *asker != engine) {
            if !mem::replace(told, true) {
                askers.push(asker);
            }
        }
        askers
    }

    fn questions(&self) -> MutexGuard<'_, BTreeMap<(SocketAddr, u32), bool>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engines(&self) -> &[Arc<EngineShared>] {
        self.engines.get().map_or(&[], Vec::as_slice)
    }
}

/// A connection that the application has asked for, until it is told.
pub(super) struct Asked {
    key: Option<KeyId>,
    reply: oneshot::Sender<Result<Connection, ConnectError>>,
    _asking: Asking,
}

impl Asked {
    pub(super) fn new(
        siblings: &Arc<Siblings>,
        (peer, engine): (SocketAddr, u32),
        key: Option<KeyId>,
        reply: oneshot::Sender<Result<Connection, ConnectError>>,
    ) -> Self {
        siblings.ask(peer, engine);
        let asking = Asking { siblings: Arc::clone(siblings), peer, engine };
        Self { key, reply, _asking: asking }
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

/// A question, which ends with it.
struct Asking {
    siblings: Arc<Siblings>,
    peer: SocketAddr,
    engine: u32,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.siblings.end(self.peer, self.engine);
    }
}

impl Engine {
    /// A peer that proves a key has answered something that this engine did not ask.
    #[cold]
    pub(super) fn on_stray(&self, peer: SocketAddr) {
        for asker in self.siblings.to_tell(peer, self.index) {
            if let Some(engine) = self.siblings.engines().get(asker as usize) {
                engine.submit_surely(Command::Elsewhere { peer, engine: self.index });
            }
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
        let wanted = |c: &super::connect::Connection| {
            c.peer.address == peer && c.asked.as_ref().is_some_and(which)
        };
        let connection = all.find(|connection| wanted(connection))?;
        let taken = connection.asked.take().zip(Some(connection.classes.clone()));
        let session = connection.session;
        drop(all);
        self.sessions.close(now, session);
        self.remove(now, session, End::ClosedHere);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once_and_only_for_its_peer() {
        let [peer, stranger]: [SocketAddr; 2] = [1, 2].map(|n| ([10, 0, 0, n], 7000).into());
        let siblings = Siblings::default();
        assert!(siblings.to_tell(peer, 1).is_empty(), "no engine asks");
        siblings.ask(peer, 0);
        siblings.ask(peer, 1);
        assert!(siblings.to_tell(stranger, 2).is_empty(), "no engine asks for this one");
        assert_eq!(siblings.to_tell(peer, 1), [0], "engine 1 hears the peer itself");
        // Packets may be repeated by anyone.
        assert!(siblings.to_tell(peer, 1).is_empty());
        assert_eq!(siblings.to_tell(peer, 2), [1]);
        siblings.ask(peer, 0);
        assert_eq!(siblings.to_tell(peer, 1), [0], "another question");
        siblings.end(peer, 0);
        siblings.end(peer, 1);
        assert!(siblings.to_tell(peer, 2).is_empty());
    }
}
