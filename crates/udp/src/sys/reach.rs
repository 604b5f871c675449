//! Probes of an address that does not answer. The kernel reports ICMP errors only to connected sockets, so each probe
//! has a socket of its own. The engine's socket must not receive these errors, because anyone on the path can forge
//! them.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use super::socket::unspecified;
use crate::session::REACH_PROBE;

/// The network's report on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// The host exists, and the port is closed.
    Port,
    /// There is no route, or the host does not answer the last router.
    Host,
}

/// A probe: a datagram of one byte, which Apus hosts count but do not answer, and the socket that receives the
/// network's report.
#[derive(Debug)]
pub(crate) struct Reach(io::Result<UdpSocket>);

impl Reach {
    /// Sends a probe to `peer` from a new port at `local`'s address.
    pub(crate) fn probe(local: SocketAddr, peer: SocketAddr) -> Self {
        let send = || {
            // A socket bound to all IPv6 addresses may also serve IPv4 peers.
            let local = if local.is_ipv6() == peer.is_ipv6() { local } else { unspecified(peer) };
            let socket = UdpSocket::bind(SocketAddr::new(local.ip(), 0))?;
            socket.set_nonblocking(true)?;
            socket.connect(peer)?;
            socket.send(&REACH_PROBE)?;
            Ok(socket)
        };
        Self(send())
    }

    /// Returns a probe that failed with this errno.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn failed(error: i32) -> Self {
        Self(Err(io::Error::from_raw_os_error(error)))
    }

    /// Returns the network's report, if there is one.
    pub(crate) fn verdict(self) -> Option<Unreachable> {
        let error = match self.0 {
            Ok(socket) => socket.take_error().ok().flatten()?,
            Err(error) => error,
        };
        match error.raw_os_error()? {
            libc::ECONNREFUSED => Some(Unreachable::Port),
            libc::EHOSTUNREACH | libc::ENETUNREACH => Some(Unreachable::Host),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_closed_port_is_reported_and_a_silent_one_is_not() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let silent = UdpSocket::bind(any).expect("a socket");
        let closed = UdpSocket::bind(any).and_then(|socket| socket.local_addr()).expect("a port");
        // The report may be late, and another process may use the port meanwhile.
        let from = Instant::now();
        while Reach::probe(any, closed).verdict() != Some(Unreachable::Port) {
            assert!(from.elapsed() < Duration::from_secs(60), "no report within a minute");
        }
        let asked = Reach::probe(any, silent.local_addr().expect("bound"));
        assert_eq!(asked.verdict(), None);
        let mut heard = [1; 2];
        assert_eq!(silent.recv(&mut heard).expect("the probe"), REACH_PROBE.len());
        assert_eq!(heard[..1], REACH_PROBE);
        let refused = |code| Reach::failed(code).verdict();
        assert_eq!(refused(libc::ENETUNREACH), Some(Unreachable::Host));
        assert_eq!(refused(libc::EACCES), None);
    }
}
