//! Transmission of datagrams: many sends per system call, and many datagrams per send.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::IpAddr;

use super::address;
use super::control::Control;
use super::socket::{Socket, check};
use crate::session::Peer;

/// Maximum number of sends per system call.
const BATCH: usize = 32;

/// One send: a datagram, or several of equal length (the last may be shorter) to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: Peer,
    pub(crate) bytes: &'a [u8],
    /// Length of each datagram except the last.
    pub(crate) segment: usize,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// Whether the kernel or the NIC must report the departure.
    pub(crate) stamp: bool,
}

impl Outgoing<'_> {
    /// Returns `true` if the send needs no control message.
    fn is_plain(&self) -> bool {
        self.tos == 0 && self.to.local.is_none() && self.segment >= self.bytes.len() && !self.stamp
    }
}

impl Socket {
    /// Sends the first sends for which the kernel has room. Returns their number.
    ///
    /// # Errors
    /// The reason why the first send failed.
    pub(crate) fn send<'a>(&self, sends: impl Iterator<Item = Outgoing<'a>>) -> io::Result<usize> {
        let mut sends = sends.peekable();
        let Some(first) = sends.next() else { return Ok(0) };
        if sends.peek().is_none() && first.is_plain() {
            return self.send_one(&first).map(|()| 1);
        }
        let sends = std::iter::once(first).chain(sends);
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
        let mut names = [const { MaybeUninit::<libc::sockaddr_storage>::uninit() }; BATCH];
        let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH];
        let mut count = 0;
        for (i, send) in sends.take(BATCH).enumerate() {
            let (name, name_length) = address::encode(send.to.address);
            let part = parts[i].write(libc::iovec {
                iov_base: send.bytes.as_ptr().cast_mut().cast(),
                iov_len: send.bytes.len(),
            });
            // SAFETY: all-zero bytes are a valid mmsghdr: null pointers and zero lengths.
            let header = &mut headers[i].write(unsafe { mem::zeroed() }).msg_hdr;
            header.msg_name = (names[i].write(name) as *mut libc::sockaddr_storage).cast();
            header.msg_namelen = name_length;
            header.msg_iov = part;
            header.msg_iovlen = 1;
            if !send.is_plain() {
                let control = controls[i].write(Control::EMPTY);
                header.msg_controllen = put_controls(control, &send) as _;
                header.msg_control = control.0.as_mut_ptr().cast();
            }
            count += 1;
        }
        // SAFETY: the first `count` headers point to a name, a part and controls that live until the call returns; the
        // parts' bytes are only read.
        //
        // The system call bypasses the C library, whose wrapper is a cancellation point.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendmmsg,
                self.raw(),
                headers.as_mut_ptr(),
                count as libc::c_uint,
                0,
            )
        };
        check(sent as i32).map(|sent| sent as usize)
    }

    /// Sends a datagram without control messages. Rationale: message headers take a seventh of the time of a small send
    /// (measured on loopback).
    fn send_one(&self, send: &Outgoing<'_>) -> io::Result<()> {
        let (name, name_length) = address::encode(send.to.address);
        // SAFETY: bytes and name are valid for the lengths given and are only read.
        //
        // The system call bypasses the C library, whose wrapper is a cancellation point.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                self.raw(),
                send.bytes.as_ptr(),
                send.bytes.len(),
                0,
                &raw const name,
                name_length,
            )
        };
        check(sent as i32).map(drop)
    }
}

fn put_controls(control: &mut Control, send: &Outgoing<'_>) -> usize {
    // Datagrams to IPv4 addresses need the options of IPv4, even on an IPv6 socket.
    let (level, kind) = if send.to.address.is_ipv6() {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    } else {
        (libc::IPPROTO_IP, libc::IP_TOS)
    };
    let mut end = 0;
    match send.to.local {
        None => {}
        Some(IpAddr::V4(local)) => {
            // An in_pktinfo: interface (any), source address, an address that is not read.
            let mut info = [0; 12];
            info[4..8].copy_from_slice(&local.octets());
            end = control.put(end, libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
        }
        Some(IpAddr::V6(local)) => {
            // An in6_pktinfo: source address, interface (any).
            let mut info = [0; 20];
            info[..16].copy_from_slice(&local.octets());
            end = control.put(end, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
    }
    if send.tos != 0 {
        end = control.put(end, level, kind, &i32::from(send.tos).to_ne_bytes());
    }
    if send.segment < send.bytes.len() {
        // A datagram is shorter than 2^16 bytes.
        let segment = (send.segment as u16).to_ne_bytes();
        end = control.put(end, libc::SOL_UDP, libc::UDP_SEGMENT, &segment);
    }
    if send.stamp {
        let asked = super::departures::ASKED.to_ne_bytes();
        end = control.put(end, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &asked);
    }
    end
}
