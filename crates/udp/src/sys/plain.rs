//! A datagram in, with nothing that the kernel could say of it but its sender: the quickest look at a
//! socket.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::mem;
use std::net::Ipv4Addr;

use super::address;
use super::receive::{Looked, Meta, ReceiveBuffers};
use super::socket::{Socket, check};

/// Asks for the time at which the kernel received the datagram that was read last (`<linux/sockios.h>`);
/// from the first time on, the kernel keeps it for every datagram that is read without timestamps.
const SIOCGSTAMPNS: libc::c_ulong = 0x8907;

impl Socket {
    /// Has the kernel keep for [`Socket::arrived_at`] when it received what is read. False if it does not.
    pub(crate) fn keep_arrivals(&self) -> bool {
        match self.arrived_at() {
            Ok(_) => true,
            Err(error) => error.raw_os_error() == Some(libc::ENOENT), // nothing was read yet
        }
    }

    /// When the kernel received the datagram that was read last, nanoseconds of the real-time clock.
    pub(crate) fn arrived_at(&self) -> io::Result<i128> {
        let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is valid for a timespec, which the kernel writes.
        let asked = unsafe { libc::ioctl(self.raw(), SIOCGSTAMPNS as _, &raw mut at) };
        check(asked)?;
        Ok(i128::from(at.tv_sec) * 1_000_000_000 + i128::from(at.tv_nsec))
    }

    /// Receives one datagram, of which nothing more is known than where it comes from.
    pub(crate) fn receive_one(&self, buffers: &mut ReceiveBuffers) -> Looked {
        // SAFETY: all-zero bytes are a valid sockaddr_storage (family AF_UNSPEC).
        let mut name: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let mut name_length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let space = buffers.first();
        // SAFETY: space, name and its length are valid for the sizes given until the call returns. It is
        // called without the C library, whose wrapper is a point of cancellation.
        let received = unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                self.raw(),
                space.as_mut_ptr(),
                space.len(),
                libc::MSG_DONTWAIT,
                &raw mut name,
                &raw mut name_length,
            )
        };
        if received < 0 {
            return buffers.set_failed();
        }
        let from = address::decode(&name).unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
        buffers.set(Meta::bare(from, received as usize));
        Looked::Datagram
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn unix_ns() -> i128 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        since.as_nanos() as i128
    }

    #[test]
    fn a_datagram_that_waited_is_known_to_have_waited() {
        let socket = Socket::open((Ipv4Addr::LOCALHOST, 0).into(), 1 << 16, false).expect("socket");
        socket.detail(false).expect("no details");
        assert!(socket.keep_arrivals());
        let mut buffers = ReceiveBuffers::new();
        assert_eq!(socket.receive_one(&mut buffers), Looked::Nothing);
        assert_eq!(buffers.len(), 0);
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket");
        let mut waits = |wait| {
            let before = unix_ns();
            peer.send_to(b"hello", socket.local_addr().expect("bound")).expect("loopback");
            let after = unix_ns();
            std::thread::sleep(wait);
            assert_eq!(socket.receive_one(&mut buffers), Looked::Datagram);
            let at = socket.arrived_at().expect("it was kept");
            let (meta, bytes) = buffers.received().next().expect("one");
            assert_eq!((meta.from, &*bytes), (peer.local_addr().expect("bound"), &b"hello"[..]));
            (before..=after).contains(&at)
        };
        // The kernel begins to stamp what comes a while after it was asked to; before, it stamps what is read.
        let begun = (0..10_000).any(|_| waits(Duration::from_millis(1)));
        assert!(begun, "nothing is stamped when it comes");
        for wait in [0, 30] {
            assert!(waits(Duration::from_millis(wait)), "after {wait} ms");
        }
    }
}
