//! Decisions on connections: which peers may connect, and which peer to connect to.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::session::{KeyId, PeerKey};

/// A connection that a peer requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Incoming<'a> {
    /// Address of the peer, which has answered at this address.
    pub from: SocketAddr,
    /// Public name of the shared key that the peer proved. With keys of hosts, the name of this shared key combined with the key
    /// of this host.
    pub key: KeyId,
    /// Key of its own that the peer proved. `None` under a shared key alone, and in the insecure mode.
    pub peer_key: Option<PeerKey>,
    /// Name of `peer_key` in the key ring. `None` if the key is not listed
    /// ([`session::Config::accept_unlisted`](crate::session::Config::accept_unlisted)).
    pub peer_name: Option<&'a str>,
    /// Number of flows that the peer requests.
    pub flows: usize,
}

type Decide = dyn Fn(&Incoming<'_>) -> Result<(), String> + Send + Sync;

/// Function of the application that decides which connections of peers to accept ([`Config::accept`](crate::Config::accept)).
#[derive(Clone)]
pub struct AcceptHook(Arc<Decide>);

impl AcceptHook {
    /// Returns a hook that calls `decide` for each request. An error refuses the connection and sends its text to the peer
    /// ([`ConnectError::RefusedBecause`](crate::ConnectError::RefusedBecause)), at most
    /// [`MAX_REASON_BYTES`](crate::session::MAX_REASON_BYTES) bytes of it.
    ///
    /// Engines call `decide`, and serve no other peer during the call. `decide` must therefore return soon and must never wait
    /// for the same host. A panic refuses the connection.
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
