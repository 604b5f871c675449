//! Reception of datagrams with their control messages, many datagrams per system call.
#![expect(unsafe_code, reason = "system calls take pointers")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;

use super::address;
use super::control::{CONTROL_BYTES, Control, int};
use super::socket::{Socket, check};
use crate::session::Peer;

/// Maximum number of datagrams, or aggregates of datagrams, per system call: the number of full aggregates that stay in
/// a core's second-level cache until they are read.
const BATCH: usize = 4;
/// Maximum length of an aggregate (UDP_GRO).
const BUFFER_BYTES: usize = 65_536;

/// The control messages of a datagram or an aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) from: SocketAddr,
    /// Destination address, if the socket is bound to all addresses.
    pub(crate) to: Option<IpAddr>,
    /// Number of the host's port at which the datagram arrived.
    pub(crate) port: u8,
    /// Total length in bytes.
    pub(crate) length: usize,
    /// Length in bytes of each datagram of the aggregate except the last.
    pub(crate) segment: usize,
    /// TTL or hop limit, if known.
    pub(crate) ttl: Option<u8>,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// When the kernel received the datagram, in nanoseconds of the real-time clock.
    pub(crate) received_at: Option<i128>,
    /// When the NIC received the datagram, in nanoseconds of the NIC's clock.
    pub(crate) nic_received_at: Option<i128>,
}

impl Meta {
    /// Returns the control messages of a single datagram, with only its sender and its length known.
    pub(crate) fn new(from: SocketAddr, length: usize) -> Self {
        Self {
            from,
            to: None,
            port: 0,
            length,
            segment: length,
            ttl: None,
            tos: 0,
            received_at: None,
            nic_received_at: None,
        }
    }

    /// Returns the sender, and the address and port of this host that the datagram was sent to.
    #[inline]
    pub(crate) fn peer(&self) -> Peer {
        Peer { address: self.from, local: self.to, port: self.port }
    }
}

/// Buffers for received datagrams, 256 KiB.
pub(crate) struct ReceiveBuffers {
    bytes: Vec<u8>,
    controls: [Control; BATCH],
    names: [libc::sockaddr_storage; BATCH],
    metas: Vec<Meta>,
    /// Number of datagrams that the next call requests. It is one while datagrams arrive one by one, so that a poll of
    /// no or one datagram is fast. It is larger while more datagrams arrive.
    batch: usize,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH * BUFFER_BYTES],
            controls: [Control::EMPTY; BATCH],
            // SAFETY: all-zero bytes are a valid sockaddr_storage (family AF_UNSPEC).
            names: [unsafe { mem::zeroed() }; BATCH],
            metas: Vec::with_capacity(BATCH),
            batch: 1,
        }
    }

    /// Returns the number of datagrams or aggregates received by the last call of [`Socket::receive`].
    pub(crate) fn len(&self) -> usize {
        self.metas.len()
    }

    /// Returns the datagrams or aggregates received by the last call of [`Socket::receive`].
    pub(crate) fn received(&mut self) -> impl Iterator<Item = (&Meta, &mut [u8])> {
        let buffers = self.bytes.chunks_exact_mut(BUFFER_BYTES);
        self.metas.iter().zip(buffers).map(|(meta, buffer)| (meta, &mut buffer[..meta.length]))
    }

    /// Replaces the content by these datagrams or aggregates.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn fill(&mut self, datagrams: &[(Meta, Vec<u8>)]) {
        self.metas.clear();
        for ((meta, bytes), space) in datagrams.iter().zip(self.bytes.chunks_mut(BUFFER_BYTES)) {
            space[..bytes.len()].copy_from_slice(bytes);
            self.metas.push(Meta { length: bytes.len(), ..*meta });
        }
    }
}

impl Socket {
    /// Receives at most a batch of datagrams. Returns `true` if there may be more.
    pub(crate) fn receive(&self, buffers: &mut ReceiveBuffers) -> io::Result<bool> {
        buffers.metas.clear();
        let batch = buffers.batch;
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
        let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        for (i, space) in buffers.bytes.chunks_exact_mut(BUFFER_BYTES).take(batch).enumerate() {
            let part = parts[i]
                .write(libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() });
            // SAFETY: all-zero bytes are a valid mmsghdr: null pointers and zero lengths.
            let header = &mut headers[i].write(unsafe { mem::zeroed() }).msg_hdr;
            header.msg_name = (&raw mut buffers.names[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = part;
            header.msg_iovlen = 1;
            header.msg_control = buffers.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: the first `batch` headers point to a name, a part and controls of the lengths given, which live until
        // the call returns and which nothing else uses.
        //
        // The system call bypasses the C library, whose wrapper is a cancellation point and costs more than an empty
        // poll.
        let received = unsafe {
            libc::syscall(
                libc::SYS_recvmmsg,
                self.raw(),
                headers.as_mut_ptr(),
                batch as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut::<libc::timespec>(),
            )
        };
        let received = match check(received as i32) {
            Ok(received) => received as usize,
            Err(error) => {
                buffers.batch = 1;
                if error.kind() == io::ErrorKind::WouldBlock {
                    return Ok(false);
                }
                return Err(error);
            }
        };
        for (i, header) in headers[..received].iter().enumerate() {
            // SAFETY: the first `batch` headers are written, and no more were used.
            let header = unsafe { header.assume_init_ref() };
            let control = &buffers.controls[i];
            let length = header.msg_hdr.msg_controllen;
            let meta = meta(&buffers.names[i], header.msg_len as usize, control, length);
            buffers.metas.push(Meta { port: self.number, ..meta });
        }
        let full = received == batch;
        buffers.batch = if full { (2 * batch).min(BATCH) } else { received.max(1) };
        Ok(full)
    }
}

fn meta(
    name: &libc::sockaddr_storage,
    length: usize,
    control: &Control,
    control_length: usize,
) -> Meta {
    let from = address::decode(name).unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
    let mut meta = Meta::new(from, length);
    for (level, kind, data) in control.messages(control_length) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                meta.ttl = int(data).and_then(|ttl| u8::try_from(ttl).ok());
            }
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                meta.tos = int(data).map_or(0, |tos| tos as u8);
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // An in_pktinfo: interface, the local address to answer from, destination.
                let local: Option<[u8; 4]> = data.get(4..).and_then(|d| d.first_chunk().copied());
                meta.to = local.map(|octets| Ipv4Addr::from(octets).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // An in6_pktinfo: destination, interface.
                let local: Option<[u8; 16]> = data.first_chunk().copied();
                meta.to = local.map(|octets| Ipv6Addr::from(octets).to_canonical());
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let segment = int(data).and_then(|s| usize::try_from(s).ok());
                meta.segment = segment.filter(|&s| s > 0).unwrap_or(length);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                // Three instants: software, one that is no longer used, raw hardware.
                meta.received_at = instant(data, 0);
                meta.nic_received_at = instant(data, 2);
            }
            _ => {}
        }
    }
    meta
}

/// Returns the instant at `index` in an array of seconds and nanoseconds. Zero means that there is none.
pub(super) fn instant(data: &[u8], index: usize) -> Option<i128> {
    let bytes = data.get(index * 16..index * 16 + 16)?;
    let seconds = i64::from_ne_bytes(*bytes.first_chunk()?);
    let nanoseconds = i64::from_ne_bytes(*bytes.last_chunk()?);
    let instant = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    (instant != 0).then_some(instant)
}
