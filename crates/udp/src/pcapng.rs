//! Packet captures in the pcapng format, with nanoseconds, for Wireshark and others.
//!
//! The engine sees datagrams, not frames: each is written as a raw IP packet whose IP and UDP headers
//! are rebuilt from what the socket says (addresses, traffic class, TTL). Format: IETF
//! draft-ietf-opsawg-pcapng, §4; link type 101 (LINKTYPE_RAW). `tools/wireshark/apus.lua` shows the
//! contents.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_RAW: u16 = 101;

const OPTION_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

const UDP: u8 = 17;

/// Which way a datagram went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    In,
    /// Sent.
    Out,
}

/// A datagram and what the socket says about it.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When, in nanoseconds since 1970 (UTC).
    pub unix_ns: u64,
    /// Which way.
    pub direction: Direction,
    /// Where it came from.
    pub from: SocketAddr,
    /// Where it went.
    pub to: SocketAddr,
    /// DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Time to live, or hop limit; 0 if not known.
    pub ttl: u8,
    /// Its bytes.
    pub datagram: &'a [u8],
}

/// Writes a capture file. Dropping it does not flush: call [`Pcapng::finish`].
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    snap: usize,
    /// The block being made; reused.
    block: Vec<u8>,
}

impl<W: Write> Pcapng<W> {
    /// Starts a file for an interface of this name, of which at most `snap` bytes of each IP packet
    /// are kept (0: all).
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(out: W, interface: &str, snap: u32) -> io::Result<Self> {
        let snap_bytes = if snap == 0 { usize::MAX } else { snap as usize };
        let mut file = Self { out, snap: snap_bytes, block: Vec::with_capacity(2048) };
        file.begin(SECTION_HEADER);
        file.put(&0x1a2b_3c4d_u32.to_le_bytes());
        file.put(&1u16.to_le_bytes());
        file.put(&0u16.to_le_bytes());
        file.put(&(-1i64).to_le_bytes());
        file.option(SHB_USERAPPL, concat!("apus ", env!("CARGO_PKG_VERSION")).as_bytes());
        file.option(OPTION_END, &[]);
        file.end()?;
        file.begin(INTERFACE);
        file.put(&LINKTYPE_RAW.to_le_bytes());
        file.put(&[0; 2]);
        file.put(&snap.to_le_bytes());
        file.option(IF_NAME, interface.as_bytes());
        file.option(IF_TSRESOL, &[9]);
        file.option(OPTION_END, &[]);
        file.end()?;
        Ok(file)
    }

    /// Adds a datagram.
    ///
    /// # Errors
    /// If the addresses are of different families, the datagram is longer than UDP allows, or the
    /// writer fails.
    pub fn write(&mut self, packet: &Captured<'_>) -> io::Result<()> {
        let udp_bytes = 8 + packet.datagram.len();
        let Ok(udp_length) = u16::try_from(udp_bytes + 20) else {
            return Err(invalid("a datagram longer than UDP over IP allows"));
        };
        let udp_length = udp_length - 20;
        self.begin(ENHANCED_PACKET);
        self.put(&0u32.to_le_bytes());
        self.put(&((packet.unix_ns >> 32) as u32).to_le_bytes());
        self.put(&(packet.unix_ns as u32).to_le_bytes());
        let lengths = self.block.len();
        self.put(&[0; 8]);
        let start = self.block.len();
        match (packet.from.ip(), packet.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => self.ipv4(packet, from, to, udp_length),
            (IpAddr::V6(from), IpAddr::V6(to)) => self.ipv6(packet, from, to, udp_length),
            _ => return Err(invalid("one address is IPv4 and the other IPv6")),
        }
        self.udp(packet, udp_length);
        let whole = self.block.len() - start;
        let kept = whole.min(self.snap);
        self.block.truncate(start + kept);
        self.pad();
        // Both are below 2^17.
        self.block[lengths..lengths + 4].copy_from_slice(&(kept as u32).to_le_bytes());
        self.block[lengths + 4..lengths + 8].copy_from_slice(&(whole as u32).to_le_bytes());
        let direction: u32 = if packet.direction == Direction::In { 1 } else { 2 };
        self.option(EPB_FLAGS, &direction.to_le_bytes());
        self.option(OPTION_END, &[]);
        self.end()
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn ipv4(&mut self, packet: &Captured<'_>, from: Ipv4Addr, to: Ipv4Addr, udp_length: u16) {
        let start = self.block.len();
        self.put(&[0x45, packet.traffic_class]);
        self.put(&(udp_length + 20).to_be_bytes());
        self.put(&[0, 0, 0x40, 0, packet.ttl, UDP, 0, 0]);
        self.put(&from.octets());
        self.put(&to.octets());
        let sum = fold(sum16(0, &self.block[start..]));
        self.block[start + 10..start + 12].copy_from_slice(&(!sum).to_be_bytes());
    }

    fn ipv6(&mut self, packet: &Captured<'_>, from: Ipv6Addr, to: Ipv6Addr, udp_length: u16) {
        let first = 6 << 28 | u32::from(packet.traffic_class) << 20;
        self.put(&first.to_be_bytes());
        self.put(&udp_length.to_be_bytes());
        self.put(&[UDP, packet.ttl]);
        self.put(&from.octets());
        self.put(&to.octets());
    }

    /// The UDP header, its checksum (RFC 768, RFC 8200 §8.1) included, and the datagram.
    fn udp(&mut self, packet: &Captured<'_>, length: u16) {
        let mut sum = u64::from(UDP) + u64::from(length);
        for ip in [packet.from.ip(), packet.to.ip()] {
            sum = match ip {
                IpAddr::V4(ip) => sum16(sum, &ip.octets()),
                IpAddr::V6(ip) => sum16(sum, &ip.octets()),
            };
        }
        let start = self.block.len();
        self.put(&packet.from.port().to_be_bytes());
        self.put(&packet.to.port().to_be_bytes());
        self.put(&length.to_be_bytes());
        self.put(&[0, 0]);
        self.put(packet.datagram);
        let checksum = match !fold(sum16(sum, &self.block[start..])) {
            0 => u16::MAX, // 0 would say that there is none
            checksum => checksum,
        };
        self.block[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend_from_slice(&kind.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        // Names of interfaces and the like: the writer's own, short.
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.block.len().next_multiple_of(4);
        self.block.resize(padded, 0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.put(&length);
        self.out.write_all(&self.block)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Adds bytes to an Internet checksum (RFC 1071), as 16-bit words in network order.
fn sum16(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a] => u64::from(a) << 8,
        _ => 0,
    });
    start + words.sum::<u64>()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
