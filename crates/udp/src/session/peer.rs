//! The address of a session's peer.

use std::net::{IpAddr, SocketAddr};

/// A peer as seen from one of this host's addresses: the two ends between which datagrams travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The peer's address.
    pub address: SocketAddr,
    /// The address of this host to which the peer sends and from which datagrams to the peer leave.
    /// `None` if the socket has a single address, which the kernel fills in.
    pub local: Option<IpAddr>,
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self { address, local: None }
    }
}
