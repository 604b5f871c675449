//! A second socket at the same address that is connected to one peer: neither it nor its datagrams are named
//! from call to call, and the kernel keeps the route.
//!
//! The kernel hands such a socket the datagrams of its peer, and those of all others to the first one. Whatever
//! was in it before it was connected stays, so that names are asked for until it has been empty once.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::net::SocketAddr;
use std::ptr;

use super::address;
use super::receive::{Looked, Meta, ReceiveBuffers};
use super::socket::{Socket, check, probe};

impl Socket {
    /// Where a socket beside this one that is to be connected to `peer` must be bound.
    pub(crate) fn address_beside(&self, peer: SocketAddr) -> io::Result<SocketAddr> {
        let mut address = self.local_addr()?;
        if address.ip().is_unspecified() {
            let port = address.port();
            address = probe(peer)?.local_addr()?;
            address.set_port(port);
        }
        Ok(address)
    }

    /// Opens another socket at this one's port, with the options that this one began with but
    /// without aggregation. Until it is connected
    /// it may take what is for this one.
    pub(crate) fn open_beside(&self, address: SocketAddr, buffer: u32) -> io::Result<Self> {
        let beside = Self::unbound(self.v6, buffer)?;
        // What comes before it is connected is read by looks that cannot tell aggregates.
        beside.aggregate(false);
        // For as long as it takes to bind it, and for sockets of the same user only.
        beside.share_port(true)?;
        self.share_port(true)?;
        let bound = beside.bind(address);
        self.share_port(false)?;
        beside.share_port(false)?;
        bound.map(|()| beside)
    }

    /// From now on it receives datagrams of `peer` only; those that are in it stay.
    pub(crate) fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        let (raw, length) = address::encode(peer);
        // SAFETY: the address is valid for `length` bytes for the duration of the call.
        check(unsafe { libc::connect(self.raw(), (&raw const raw).cast(), length) }).map(drop)
    }

    /// As [`Socket::receive_one`] of a socket that is connected to `peer` and has been empty since: all that comes
    /// is from there.
    pub(crate) fn receive_connected(
        &self,
        peer: SocketAddr,
        buffers: &mut ReceiveBuffers,
    ) -> Looked {
        let space = buffers.first();
        // SAFETY: space is valid for the size given until the call returns. It is called without the C library,
        // whose wrapper is a point of cancellation.
        let received = unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                self.raw(),
                space.as_mut_ptr(),
                space.len(),
                libc::MSG_DONTWAIT,
                ptr::null_mut::<libc::sockaddr>(),
                ptr::null_mut::<libc::socklen_t>(),
            )
        };
        if received < 0 {
            return buffers.set_failed();
        }
        buffers.set(Meta::bare(peer, received as usize));
        Looked::Datagram
    }

    /// Sends a datagram without control messages to the peer that it is connected to.
    pub(crate) fn send_connected(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the bytes are valid for the length given and are only read. It is called without the C
        // library, whose wrapper is a point of cancellation.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                self.raw(),
                bytes.as_ptr(),
                bytes.len(),
                0,
                ptr::null::<libc::sockaddr>(),
                0,
            )
        };
        check(sent as i32).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
    use std::time::{Duration, Instant};

    use super::*;

    const BUFFER: u32 = 1 << 16;

    /// What a look finds first, within a time that a busy machine needs.
    #[track_caller]
    fn until(mut look: impl FnMut() -> Looked) -> Looked {
        let from = Instant::now();
        loop {
            let looked = look();
            if looked != Looked::Nothing {
                return looked;
            }
            assert!(from.elapsed() < Duration::from_secs(30), "nothing comes");
        }
    }

    fn first(buffers: &mut ReceiveBuffers) -> (SocketAddr, Vec<u8>) {
        let (meta, bytes) = buffers.received().next().expect("one");
        (meta.from, bytes.to_vec())
    }

    /// A socket at `bind`, one beside it for a peer at `host`, that peer, and another one.
    fn sockets(bind: SocketAddr, host: SocketAddr) -> (Socket, Socket, [UdpSocket; 2]) {
        let socket = Socket::open(bind, BUFFER, false).expect("socket");
        let peers = [(); 2].map(|()| UdpSocket::bind(host).expect("peer"));
        let peer = peers[0].local_addr().expect("bound");
        let at = socket.address_beside(peer).expect("an address");
        let port = socket.local_addr().expect("bound").port();
        assert_eq!(at, SocketAddr::new(host.ip(), port));
        let beside = socket.open_beside(at, BUFFER).expect("a second socket");
        for socket in [&socket, &beside] {
            socket.aggregate(false);
            socket.detail(false).expect("no details");
        }
        for (n, from) in peers.iter().enumerate() {
            from.send_to(&[n as u8], at).expect("loopback"); // before it is connected
        }
        beside.connect(peer).expect("connected");
        (socket, beside, peers)
    }

    #[test]
    fn it_hears_its_peer_and_the_first_socket_hears_all_others() {
        let v4: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let v6: SocketAddr = (Ipv6Addr::LOCALHOST, 0).into();
        for (bind, host) in [
            (v4, v4),
            ((Ipv4Addr::UNSPECIFIED, 0).into(), v4),
            (v6, v6),
            ((Ipv6Addr::UNSPECIFIED, 0).into(), v6),
        ] {
            let (socket, beside, peers) = sockets(bind, host);
            let names = [0, 1].map(|n: usize| peers[n].local_addr().expect("bound"));
            let mut buffers = ReceiveBuffers::new();
            // What came before it was connected is in either.
            for (n, &name) in names.iter().enumerate() {
                let looked = until(|| match beside.receive_one(&mut buffers) {
                    Looked::Nothing => socket.receive_one(&mut buffers),
                    looked => looked,
                });
                let found = (looked, first(&mut buffers));
                assert_eq!(found, (Looked::Datagram, (name, vec![n as u8])), "with its name");
            }
            assert_eq!(beside.receive_one(&mut buffers), Looked::Nothing);
            let at = beside.local_addr().expect("bound");
            for (n, from) in peers.iter().enumerate() {
                from.send_to(&[n as u8 + 2], at).expect("loopback");
            }
            let looked = until(|| beside.receive_connected(names[0], &mut buffers));
            assert_eq!(looked, Looked::Datagram);
            assert_eq!(first(&mut buffers), (names[0], vec![2]));
            assert_eq!(until(|| socket.receive_one(&mut buffers)), Looked::Datagram);
            assert_eq!(first(&mut buffers), (names[1], vec![3]));
            // Answers come from the same address, whichever socket sends them.
            beside.send_connected(b"answer").expect("sent");
            let mut answer = [0; 16];
            assert_eq!(peers[0].recv_from(&mut answer).expect("an answer"), (6, at));
            // Another peer, and then nobody.
            beside.connect(names[1]).expect("connected");
            peers[1].send_to(&[4], at).expect("loopback");
            let looked = until(|| beside.receive_connected(names[1], &mut buffers));
            assert_eq!((looked, first(&mut buffers)), (Looked::Datagram, (names[1], vec![4])));
            beside.connect(at).expect("its own address");
            peers[1].send_to(&[5], at).expect("loopback");
            assert_eq!(until(|| socket.receive_one(&mut buffers)), Looked::Datagram);
            assert_eq!(first(&mut buffers), (names[1], vec![5]));
            assert_eq!(beside.receive_one(&mut buffers), Looked::Nothing);
        }
    }

    #[test]
    fn the_port_is_the_hosts_own_once_the_second_socket_is_bound() {
        let v4: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let (socket, _beside, _peers) = sockets(v4, v4);
        let at = socket.local_addr().expect("bound");
        for shared in [false, true] {
            let third = Socket::open(at, BUFFER, shared);
            assert_eq!(third.expect_err("taken").kind(), io::ErrorKind::AddrInUse);
        }
    }

    #[test]
    fn that_the_peer_is_gone_is_told_once_and_nothing_is_lost_behind_it() {
        let v4: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let (_socket, beside, [peer, _other]) = sockets(v4, v4);
        let name = peer.local_addr().expect("bound");
        let mut buffers = ReceiveBuffers::new();
        while beside.receive_one(&mut buffers) != Looked::Nothing {}
        peer.send_to(b"last", beside.local_addr().expect("bound")).expect("loopback");
        drop(peer);
        beside.send_connected(b"hello").expect("the kernel does not know yet");
        // The answer of ICMP comes at once on loopback.
        let refused = beside.send_connected(b"hello").expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        beside.send_connected(b"hello").expect("told once");
        assert_eq!(until(|| beside.receive_connected(name, &mut buffers)), Looked::Error);
        assert_eq!(until(|| beside.receive_connected(name, &mut buffers)), Looked::Datagram);
        assert_eq!(first(&mut buffers), (name, b"last".to_vec()));
    }
}
