//! Who may connect: the application's decision on the connections that peers open, and the peer to connect to.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::session::{KeyId, PeerKey};

/// A connection that a peer requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Incoming<'a> {
    /// The peer's address, which has answered.
    pub from: SocketAddr,
    /// The shared key that the peer proved; with keys of its own, the name of the shared key with this host's.
    pub key: KeyId,
    /// The key of its own that the peer proved; `None` under a shared key alone, and in the insecure mode.
    pub peer_key: Option<PeerKey>,
    /// The name of this key in the ring; `None` if it is not listed
    /// ([`session::Config::accept_unlisted`](crate::session::Config::accept_unlisted)).
    pub peer_name: Option<&'a str>,
    /// Number of flows that it requests.
    pub flows: usize,
}

type Decide = dyn Fn(&Incoming<'_>) -> Result<(), String> + Send + Sync;

/// Decides which connections of peers to accept ([`Config::accept`](crate::Config::accept)).
#[derive(Clone)]
pub struct AcceptHook(Arc<Decide>);

impl AcceptHook {
    /// Returns a hook that calls `decide` for each request. An error refuses the connection, and the peer is told its text
    /// ([`ConnectError::RefusedBecause`](crate::ConnectError::RefusedBecause)); at most
    /// [`MAX_REASON_BYTES`](crate::session::MAX_REASON_BYTES).
    ///
    /// Engines call it, and serve nobody else meanwhile, so it must return soon and never wait for the same host. A panic
    /// refuses the connection.
    pub fn new(
        decide: impl Fn(&Incoming<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(decide))
    }

    pub(crate) fn decide(&self, incoming: &Incoming<'_>) -> Result<(), String> {
        (self.0)(incoming)
    }
}

impl fmt::Debug for AcceptHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcceptHook")
    }
}

/// The peer to connect to, by what it proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Towards {
    /// Any holder of the first shared key, or the only peer that the ring lists.
    Any,
    /// By the public name of a credential.
    Key(KeyId),
    /// By its name in the ring.
    Named(String),
}
