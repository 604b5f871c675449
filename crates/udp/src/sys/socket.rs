//! A UDP socket with the options that the engine needs.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// TTL and hop limit of all datagrams sent. The receiver counts hops from this value.
pub(crate) const TTL: u8 = 64;

/// The socket option that returns a socket's memory usage, since Linux 4.12 (asm-generic/socket.h). The crate libc
/// defines only the positions of its values.
const SO_MEMINFO: i32 = 55;

/// The address families of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Families {
    V4,
    V6,
    /// An IPv6 socket that also serves IPv4 peers. Their addresses appear as IPv4 addresses in this crate.
    Both,
}

impl Families {
    /// Returns the family of an address.
    pub(crate) fn of(address: SocketAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::V4 }
    }

    /// Returns `true` if a socket of these families can reach the address.
    pub(crate) fn reaches(self, peer: SocketAddr) -> bool {
        self == Self::Both || self == Self::of(peer)
    }
}

/// Options for opening a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketOptions {
    /// Bytes of each kernel buffer, if the system allows that many.
    pub(crate) buffer: u32,
    /// Whether several sockets may have the same address, so that the kernel divides peers among them.
    pub(crate) shared: bool,
    /// The families to serve; `Both` needs an IPv6 address.
    pub(crate) families: Families,
}

/// A non-blocking UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    /// Address families that the socket serves.
    families: Families,
    /// Whether the socket is bound to all addresses. Each datagram is then received with its destination address.
    any: bool,
    /// Number of the socket among the sockets of an engine.
    pub(super) number: u8,
    /// Whether the kernel segments large sends (UDP_SEGMENT).
    pub(crate) segmentation: bool,
}

impl Socket {
    /// Opens a socket at `address`.
    pub(crate) fn open(address: SocketAddr, options: SocketOptions) -> io::Result<Self> {
        let SocketOptions { buffer, shared, families } = options;
        let any = address.ip().is_unspecified();
        let v4 = families != Families::V6;
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::DGRAM, flags, None)?;
        let mut socket = Self { socket: fd.into(), families, any, number: 0, segmentation: false };
        if address.is_ipv6() {
            for (option, value) in [
                (libc::IPV6_V6ONLY, i32::from(families == Families::V6)),
                (libc::IPV6_UNICAST_HOPS, i32::from(TTL)),
                (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
                (libc::IPV6_RECVHOPLIMIT, 1),
                (libc::IPV6_RECVTCLASS, 1),
                // This option also reports the destination of IPv4 datagrams.
                (libc::IPV6_RECVPKTINFO, i32::from(any)),
            ] {
                socket.set(libc::IPPROTO_IPV6, option, value)?;
            }
        }
        if v4 {
            for (option, value) in [
                (libc::IP_TTL, i32::from(TTL)),
                (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
                (libc::IP_RECVTTL, 1),
                (libc::IP_RECVTOS, 1),
                (libc::IP_PKTINFO, i32::from(any && !address.is_ipv6())),
            ] {
                socket.set(libc::IPPROTO_IP, option, value)?;
            }
        }
        let buffer = i32::try_from(buffer).unwrap_or(i32::MAX);
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, buffer)?;
        socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, buffer)?;
        // Kernels before 4.18 lack this option. It is not required.
        socket.segmentation = socket.set(libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        // Kernels before 5.0 do not aggregate. The option is not required.
        let _ = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
        if shared {
            socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        bind(&socket.socket, &address)?;
        Ok(socket)
    }

    /// Requests the time at which the kernel, and if possible the NIC, received each datagram. With `departures`, also
    /// requests reports of the departures of stamped sends. These sends are numbered from 0 from now on.
    pub(crate) fn timestamp(&self, departures: bool) -> io::Result<()> {
        let flags = libc::SOF_TIMESTAMPING_RX_SOFTWARE
            | libc::SOF_TIMESTAMPING_SOFTWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)?;
        if departures {
            let flags = flags | super::departures::REPORTED;
            self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)?;
        }
        Ok(())
    }

    /// Returns the address at which the socket is bound.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the address from which the kernel would send to `peer`; `None` if the socket has a single address, or if
    /// there is no route.
    pub(crate) fn source_to(&self, peer: SocketAddr) -> Option<IpAddr> {
        if !self.any {
            return None;
        }
        source_to(peer)
    }

    /// Returns the kernel's MTU of the path to `peer`, in bytes of an IP packet.
    pub(crate) fn path_mtu(&self, peer: SocketAddr) -> io::Result<u32> {
        // The kernel reports the MTU for connected sockets only, and this socket serves many peers.
        let probe = probe(peer)?;
        Ok(if peer.is_ipv6() { ipv6_mtu(probe) } else { ip_mtu(probe) }?)
    }

    /// Sets the TTL or hop limit of all datagrams sent from now on.
    pub(crate) fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        if self.families != Families::V4 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, i32::from(ttl))?;
        }
        if self.families != Families::V6 {
            self.set(libc::IPPROTO_IP, libc::IP_TTL, i32::from(ttl))?;
        }
        Ok(())
    }

    /// Returns the number of datagrams that the kernel has dropped because the socket had no room, modulo 2^32.
    pub(crate) fn dropped(&self) -> io::Result<u32> {
        let mut info = [0u32; libc::SK_MEMINFO_DROPS as usize + 1];
        let mut length = size_of_val(&info) as libc::socklen_t;
        // SAFETY: both pointers are valid for the sizes given.
        check(unsafe {
            libc::getsockopt(
                self.raw(),
                libc::SOL_SOCKET,
                SO_MEMINFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        })?;
        Ok(info[libc::SK_MEMINFO_DROPS as usize])
    }

    /// Sets whether to send without UDP checksums. If so, the kernel refuses segmentation (EINVAL).
    #[cfg(test)]
    pub(crate) fn omit_checksums(&self, on: bool) {
        self.set(libc::SOL_SOCKET, libc::SO_NO_CHECK, i32::from(on)).expect("an option of Linux");
    }

    fn set(&self, level: i32, option: i32, value: i32) -> io::Result<()> {
        let length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: the value is valid for the size of an int.
        let result = unsafe {
            libc::setsockopt(self.raw(), level, option, (&raw const value).cast(), length)
        };
        check(result).map(drop)
    }

    pub(super) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Returns the unspecified address of the family of `address`.
pub(super) fn unspecified(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr =
        if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    (ip, 0).into()
}

/// Returns the source address that the kernel chooses for packets to `peer` by default; `None` if there is no route.
pub(crate) fn source_to(peer: SocketAddr) -> Option<IpAddr> {
    Some(probe(peer).ok()?.local_addr().ok()?.ip())
}

/// Returns `true` if the system has IPv6.
pub(crate) fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

/// Returns a socket connected to `peer`, which shows the kernel's route. Nothing is sent.
fn probe(peer: SocketAddr) -> io::Result<UdpSocket> {
    let probe = UdpSocket::bind(unspecified(peer))?;
    probe.connect(peer)?;
    Ok(probe)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Converts the result of a system call that returns -1 and sets errno on failure.
pub(super) fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::session::Peer;
    use crate::sys::{Meta, Outgoing, ReceiveBuffers};

    fn open(address: &str, families: Families) -> Option<(Socket, SocketAddr)> {
        let options = SocketOptions { buffer: 65_536, shared: false, families };
        let socket = Socket::open(address.parse().expect("an address"), options).ok()?;
        let address = socket.local_addr().expect("bound");
        Some((socket, address))
    }

    fn receive(socket: &Socket) -> (Meta, Vec<u8>) {
        let (mut buffers, from) = (ReceiveBuffers::new(), Instant::now());
        loop {
            socket.receive(&mut buffers).expect("a poll");
            if let Some((meta, bytes)) = buffers.received().next() {
                return (*meta, bytes.to_vec());
            }
            assert!(from.elapsed() < Duration::from_secs(60), "nothing within a minute");
        }
    }

    fn send(socket: &Socket, to: Peer, bytes: &[u8], segment: usize, tos: u8) {
        let outgoing = Outgoing { to, bytes, segment, tos, stamp: false };
        assert_eq!(socket.send(std::iter::once(outgoing)).expect("sent"), 1);
    }

    /// A datagram of each family reaches a socket for both families with its TTL, DSCP and ECN (0xb9: EF and ECT(1)),
    /// and destination. The answer leaves from this destination, with header values of its own.
    #[test]
    fn a_socket_for_both_families_reads_and_writes_the_headers_of_either() {
        let Some((server, at)) = open("[::]:0", Families::Both) else {
            let _ = writeln!(io::stderr(), "skipped: the system has no IPv6");
            return;
        };
        for (own, asked) in [("127.0.0.1:0", "127.0.0.2"), ("[::1]:0", "::1")] {
            let own_families = Families::of(own.parse().expect("an address"));
            let (client, from) = open(own, own_families).expect("loopback");
            client.set_ttl(60).expect("a TTL");
            let asked: IpAddr = asked.parse().expect("an address");
            let to = Peer::from(SocketAddr::new(asked, at.port()));
            send(&client, to, b"question", 8, 0xb9);
            let (meta, bytes) = receive(&server);
            assert_eq!(bytes, b"question");
            assert_eq!((meta.from, meta.to), (from, Some(asked)));
            assert_eq!((meta.ttl, meta.tos), (Some(60), 0xb9), "{own}");
            server.set_ttl(61).expect("a TTL");
            // Sends a burst if the kernel can segment it, and a single datagram otherwise.
            let segment = if server.segmentation { 4 } else { 8 };
            send(&server, meta.peer(), b"answered", segment, 0x2a);
            let (meta, _) = receive(&client);
            assert_eq!(meta.from, SocketAddr::new(asked, at.port()), "the address that was asked");
            assert_eq!((meta.ttl, meta.tos), (Some(61), 0x2a), "{own}");
        }
        let (ipv6_only, at) = open("[::]:0", Families::V6).expect("IPv6");
        // The port must still be free for IPv4.
        let v4 = format!("0.0.0.0:{}", at.port());
        assert!(open(&v4, Families::V4).is_some(), "{ipv6_only:?} took IPv4 too");
    }
}
