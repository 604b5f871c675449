//! Whether anything listens at an address that does not answer. The kernel hears of it by ICMP and tells
//! connected sockets only, so it is asked by a socket of its own: what anybody on the way can forge must not
//! reach the socket of the engine.

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// What the network said of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// The host is there and has no such port open.
    Port,
    /// No route leads there, or the host does not answer the last router.
    Host,
}

/// A datagram of one byte, which no Apus host answers, and what the network says of it.
#[derive(Debug)]
pub(crate) struct Reach(io::Result<UdpSocket>);

impl Reach {
    /// Sends it to `peer`, from a port of its own at `local`'s address.
    pub(crate) fn probe(local: SocketAddr, peer: SocketAddr) -> Self {
        let send = || {
            let socket = UdpSocket::bind(SocketAddr::new(local.ip(), 0))?;
            socket.set_nonblocking(true)?;
            socket.connect(peer)?;
            socket.send(&[0])?;
            Ok(socket)
        };
        Self(send())
    }

    /// What the network has said of it, if anything; asked once.
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
    fn a_closed_port_is_told_from_a_silent_one() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let silent = UdpSocket::bind(any).expect("a socket");
        let closed = UdpSocket::bind(any).and_then(|socket| socket.local_addr()).expect("a port");
        // ICMP may take its time, and the port may be taken by others meanwhile.
        let from = Instant::now();
        while Reach::probe(any, closed).verdict() != Some(Unreachable::Port) {
            assert!(from.elapsed() < Duration::from_secs(60), "the kernel says nothing");
        }
        let asked = Reach::probe(any, silent.local_addr().expect("bound"));
        assert_eq!(asked.verdict(), None);
        let refused = |code| Reach(Err(io::Error::from_raw_os_error(code))).verdict();
        assert_eq!(refused(libc::ENETUNREACH), Some(Unreachable::Host));
        assert_eq!(refused(libc::EACCES), None);
    }
}
