//! A UDP socket with the options that the engine needs.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// TTL and hop limit of everything sent, from which the receiver counts hops.
pub(crate) const TTL: u8 = 64;

/// The socket option that returns a socket's use of memory, since Linux 4.12 (asm-generic/socket.h); libc has only the
/// positions of its values.
const SO_MEMINFO: i32 = 55;

/// A non-blocking UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    /// Whether its addresses are IPv6.
    pub(super) v6: bool,
    /// Whether it is bound to all addresses, so that each datagram comes with its destination address.
    any: bool,
    /// Whether the kernel segments large sends (UDP_SEGMENT).
    pub(crate) segmentation: bool,
}

impl Socket {
    /// Opens a socket at `address`, with kernel buffers of `buffer` bytes if the system allows that many. With `shared`, several
    /// sockets may have the same address, and peers are divided among them.
    pub(crate) fn open(address: SocketAddr, buffer: u32, shared: bool) -> io::Result<Self> {
        let (v6, any) = (address.is_ipv6(), address.ip().is_unspecified());
        let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::DGRAM, flags, None)?;
        let mut socket = Self { socket: fd.into(), v6, any, segmentation: false };
        let options: &[(i32, i32)] = if v6 {
            &[
                (libc::IPV6_V6ONLY, 1),
                (libc::IPV6_UNICAST_HOPS, TTL as i32),
                (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
                (libc::IPV6_RECVHOPLIMIT, 1),
                (libc::IPV6_RECVTCLASS, 1),
            ]
        } else {
            &[
                (libc::IP_TTL, TTL as i32),
                (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
                (libc::IP_RECVTTL, 1),
                (libc::IP_RECVTOS, 1),
            ]
        };
        let level = if v6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
        for &(option, value) in options {
            socket.set(level, option, value)?;
        }
        let buffer = i32::try_from(buffer).unwrap_or(i32::MAX);
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, buffer)?;
        socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, buffer)?;
        // Kernels before 4.18 lack it. It is optional.
        socket.segmentation = socket.set(libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        // Kernels before 5.0 do not aggregate. It is optional.
        let _ = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
        if any {
            let option = if v6 { libc::IPV6_RECVPKTINFO } else { libc::IP_PKTINFO };
            socket.set(level, option, 1)?;
        }
        if shared {
            socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        bind(&socket.socket, &address)?;
        Ok(socket)
    }

    /// Requests the time at which the kernel, and the NIC if it can, received each datagram. With `departures`, also
    /// requests reports of when stamped sends left, which are numbered from 0 from now on.
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
        Some(probe(peer).ok()?.local_addr().ok()?.ip())
    }

    /// Returns the kernel's MTU of the path to `peer`, in bytes of an IP packet.
    pub(crate) fn path_mtu(&self, peer: SocketAddr) -> io::Result<u32> {
        // The kernel reports it for connected sockets only, and this socket serves many peers.
        let probe = probe(peer)?;
        Ok(if self.v6 { ipv6_mtu(probe) } else { ip_mtu(probe) }?)
    }

    /// Sets the TTL or hop limit of everything sent from now on.
    pub(crate) fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        if self.v6 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, i32::from(ttl))
        } else {
            self.set(libc::IPPROTO_IP, libc::IP_TTL, i32::from(ttl))
        }
    }

    /// Returns how many datagrams the kernel has dropped because the socket had no room for them, modulo 2^32.
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

    /// Sends without UDP checksums, if `on`: the kernel then refuses segmentation (EINVAL).
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

/// Returns a socket connected to `peer`, which shows the kernel's route. Nothing is sent.
fn probe(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind((any, 0))?;
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
