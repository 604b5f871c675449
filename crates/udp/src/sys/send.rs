//! Datagrams out, many per system call and many per datagram.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::mem;
use std::net::SocketAddr;

use super::address;
use super::control::Control;
use super::socket::{Socket, check};

/// Sends of one system call at most.
const BATCH: usize = 32;

/// One send: a datagram, or several of equal length (the last may be shorter) to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: &'a [u8],
    /// Length of each datagram but the last.
    pub(crate) segment: usize,
    /// DSCP and ECN.
    pub(crate) tos: u8,
}

impl Socket {
    /// Sends as many as the kernel takes now; returns how many of `sends` went.
    ///
    /// # Errors
    /// What the first send that did not go failed with, if it was the first of all.
    pub(crate) fn send(&self, sends: &[Outgoing<'_>]) -> io::Result<usize> {
        let sends = &sends[..sends.len().min(BATCH)];
        // SAFETY: all-zero bytes are valid values of these three: null pointers and zero lengths.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut parts: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
        let mut controls = [Control::EMPTY; BATCH];
        for (i, send) in sends.iter().enumerate() {
            let (name, name_length) = address::encode(send.to);
            names[i] = name;
            parts[i] = libc::iovec {
                iov_base: send.bytes.as_ptr().cast_mut().cast(),
                iov_len: send.bytes.len(),
            };
            let header = &mut headers[i].msg_hdr;
            header.msg_name = (&raw mut names[i]).cast();
            header.msg_namelen = name_length;
            header.msg_iov = &raw mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = self.put_controls(&mut controls[i], send) as _;
        }
        // SAFETY: every header points to a name, a part and controls that live until the call
        // returns; the parts' bytes are only read.
        let sent =
            unsafe { libc::sendmmsg(self.raw(), headers.as_mut_ptr(), sends.len() as u32, 0) };
        check(sent).map(|sent| sent as usize)
    }

    fn put_controls(&self, control: &mut Control, send: &Outgoing<'_>) -> usize {
        let (level, kind) = if self.v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
        } else {
            (libc::IPPROTO_IP, libc::IP_TOS)
        };
        let mut end = 0;
        if send.tos != 0 {
            end = control.put(end, level, kind, &i32::from(send.tos).to_ne_bytes());
        }
        if send.segment < send.bytes.len() {
            // A datagram is shorter than 2^16 bytes.
            let segment = (send.segment as u16).to_ne_bytes();
            end = control.put(end, libc::SOL_UDP, libc::UDP_SEGMENT, &segment);
        }
        end
    }
}
