//! The engines of a host that share an address.
//!
//! The kernel divides peers among the sockets of a port by a fixed hash, so a connection belongs to the engine that
//! receives its peer's packets. The peer's first answer shows which engine that is. If an engine receives an answer to
//! a handshake of another engine, it informs that engine, once per request. The informed engine then hands over its
//! request. No other packet of an unauthenticated sender reaches another engine.

use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::ConnectError;
use crate::mailbox::{Command, ConnectRequest, Mailbox, Opened};

/// An open request: an engine opens a connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asker {
    peer: SocketAddr,
    engine: u32,
}

/// State that the engines of one address share.
#[derive(Default)]
struct Group {
    /// All engines of the host, by number.
    engines: OnceLock<Vec<Arc<Mailbox>>>,
    /// The open requests, each with whether its engine was informed that another engine receives the peer's packets.
    askers: Mutex<BTreeMap<Asker, bool>>,
}

impl Group {
    fn askers(&self) -> MutexGuard<'_, BTreeMap<Asker, bool>> {
        self.askers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the engines other than `engine` with an open request for `peer` that were not informed which engine
    /// receives the peer's packets. Marks them as informed.
    fn untold(&self, peer: SocketAddr, engine: u32) -> Vec<u32> {
        let mut askers = self.askers();
        let range = Asker { peer, engine: 0 }..=Asker { peer, engine: u32::MAX };
        let others = askers.range_mut(range).filter(|(asker, _)| asker.engine != engine);
        let untold = others.filter_map(|(asker, told)| {
            let before = mem::replace(told, true);
            (!before).then_some(asker.engine)
        });
        untold.collect()
    }
}

/// The engines of an address from the view of one of them.
#[derive(Clone)]
pub(crate) struct Siblings {
    /// Number of this engine within its host.
    pub(crate) engine: u32,
    group: Arc<Group>,
}

impl Siblings {
    /// Returns handles for the engines of an address, by their numbers within the host. The handles share their state.
    pub(crate) fn group(engines: Range<u32>) -> impl Iterator<Item = Self> {
        let group = Arc::<Group>::default();
        engines.map(move |engine| Self { engine, group: Arc::clone(&group) })
    }

    /// Sets the mailboxes of all engines of the host. Until this call, no request is handed over.
    pub(crate) fn set_mailboxes(&self, engines: Vec<Arc<Mailbox>>) {
        // Only the first call has an effect.
        let _ = self.group.engines.set(engines);
    }

    fn post(&self, engine: u32, command: Command) {
        let engines = self.group.engines.get().map_or(&[][..], Vec::as_slice);
        if let Some(mailbox) = engines.get(engine as usize) {
            mailbox.post(command);
        }
    }

    /// Registers a request for a connection.
    pub(super) fn ask(&self, request: ConnectRequest) -> Question {
        let asker = Asker { peer: request.peer, engine: self.engine };
        self.group.askers().insert(asker, false);
        Question { request, _registered: Registered { asker, group: Arc::clone(&self.group) } }
    }

    /// Handles a handshake packet of a peer that proves a key but answers no handshake of this engine.
    pub(super) fn on_stray(&self, peer: SocketAddr) {
        for asker in self.group.untold(peer, self.engine) {
            self.post(asker, Command::ServedBy { peer, engine: self.engine });
        }
    }

    /// Hands a request to another engine.
    pub(super) fn hand_over(&self, engine: u32, request: ConnectRequest) {
        self.post(engine, Command::Connect(request));
    }
}

/// A request for a connection that has not been answered.
pub(super) struct Question {
    request: ConnectRequest,
    _registered: Registered,
}

impl Question {
    /// Returns `true` if the application has given up its wait.
    pub(super) fn is_abandoned(&self) -> bool {
        self.request.reply.is_closed()
    }

    /// Answers the request. The application may have given up its wait.
    pub(super) fn answer(self, answer: Result<Opened, ConnectError>) {
        drop(self.request.reply.send(answer));
    }

    pub(super) fn into_request(self) -> ConnectRequest {
        self.request
    }
}

/// The registration of an open request. Dropping it removes the request.
struct Registered {
    asker: Asker,
    group: Arc<Group>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.group.askers().remove(&self.asker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::Towards;

    fn request(peer: SocketAddr) -> ConnectRequest {
        let (reply, _) = oneshot::channel();
        ConnectRequest { peer, classes: vec![0], towards: Towards::Any, reply }
    }

    #[test]
    fn an_engine_is_told_once_per_request_and_only_of_its_own_peer() {
        let [peer, stranger]: [SocketAddr; 2] = [1, 2].map(|n| ([10, 0, 0, n], 7000).into());
        let siblings: Vec<_> = Siblings::group(0..3).collect();
        let untold = |peer, engine| siblings[0].group.untold(peer, engine);
        assert!(untold(peer, 1).is_empty(), "no open request");
        let first = siblings[0].ask(request(peer));
        let second = siblings[1].ask(request(peer));
        assert!(untold(stranger, 2).is_empty(), "no open request for this peer");
        assert_eq!(untold(peer, 1), [0], "engine 1 receives the packets itself");
        // Anyone may repeat packets, so further packets have no effect.
        assert!(untold(peer, 1).is_empty());
        assert_eq!(untold(peer, 2), [1]);
        drop(first);
        let first = siblings[0].ask(request(peer));
        assert_eq!(untold(peer, 1), [0], "a new request");
        drop((first, second));
        assert!(untold(peer, 2).is_empty());
    }
}
