//! The address of a session's peer.

use std::net::{IpAddr, SocketAddr};

/// A peer as seen from one of this host's addresses: the two addresses between which datagrams travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Address of the peer.
    pub address: SocketAddr,
    /// Address of this host to which the peer sends, and from which datagrams to the peer leave. `None` if the socket has a
    /// single address, which the kernel fills in.
    pub local: Option<IpAddr>,
    /// Number of the port of this host at which datagrams arrive or from which they leave. Port 0 is the one at which the
    /// host listens; the further ports are those of [`Config::spreading`](crate::Config::spreading).
    pub port: u8,
}

impl Peer {
    /// Returns the peer as seen from the port at which this host listens.
    #[must_use]
    pub fn at_first_port(self) -> Self {
        Self { port: 0, ..self }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self { address, local: None, port: 0 }
    }
}
