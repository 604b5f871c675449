//! Packet captures in the pcapng format with nanosecond timestamps, for Wireshark and similar tools.
//!
//! Each datagram is written as a raw IP packet, with IP and UDP headers made from its addresses, traffic
//! class and TTL. Format: IETF draft-ietf-opsawg-pcapng, §4; link type 101 (LINKTYPE_RAW).
//! `tools/wireshark/apus.lua` dissects the contents.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use etherparse::{
    IpDscp, IpEcn, IpHeaders, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder,
};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_RAW: u16 = 101;

const OPTION_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    In,
    /// Sent.
    Out,
}

/// A datagram with the contents of its IP header.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Number of the interface, in the order of [`Pcapng::interface`].
    pub interface: u32,
    /// Timestamp, in nanoseconds since 1970 (UTC), or since the start of a simulation.
    pub unix_ns: u64,
    /// Direction.
    pub direction: Direction,
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Time to live, or hop limit; 0 if unknown.
    pub ttl: u8,
    /// Payload.
    pub datagram: &'a [u8],
    /// Number of bytes of the datagram that are kept. The lengths in the headers are those of the whole datagram.
    pub kept: usize,
}

/// Writes a capture file. Dropping it does not flush: call [`Pcapng::finish`].
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    /// Maximum number of bytes of a packet as the file states it; 0 means no limit.
    snap: u32,
    snap_bytes: usize,
    interfaces: u32,
    /// Current block. Its memory is reused.
    block: Vec<u8>,
}

impl<W: Write> Pcapng<W> {
    /// Starts a file. At most `snap` bytes of each IP packet are kept (0: all).
    ///
    /// # Errors
    /// The error of the writer.
    pub fn new(out: W, snap: u32) -> io::Result<Self> {
        let snap_bytes = if snap == 0 { usize::MAX } else { snap as usize };
        let block = Vec::with_capacity(2048);
        let mut file = Self { out, snap, snap_bytes, interfaces: 0, block };
        file.begin(SECTION_HEADER);
        file.put(&0x1a2b_3c4d_u32.to_le_bytes());
        file.put(&1u16.to_le_bytes());
        file.put(&0u16.to_le_bytes());
        file.put(&(-1i64).to_le_bytes());
        file.option(SHB_USERAPPL, concat!("apus ", env!("CARGO_PKG_VERSION")).as_bytes());
        file.option(OPTION_END, &[]);
        file.end()?;
        Ok(file)
    }

    /// Adds an interface of this name. Returns its number.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn interface(&mut self, name: &str) -> io::Result<u32> {
        let number = self.interfaces;
        self.interfaces += 1;
        let snap = self.snap;
        self.begin(INTERFACE);
        self.put(&LINKTYPE_RAW.to_le_bytes());
        self.put(&[0; 2]);
        self.put(&snap.to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_TSRESOL, &[9]);
        self.option(OPTION_END, &[]);
        self.end()?;
        Ok(number)
    }

    /// Adds a datagram.
    ///
    /// # Errors
    /// If the interface is unknown, the addresses are of different families, the datagram is longer than UDP
    /// allows, or the writer fails.
    pub fn write(&mut self, packet: &Captured<'_>) -> io::Result<()> {
        if packet.interface >= self.interfaces {
            return Err(invalid("the packet is of an interface that the file does not have"));
        }
        let header = ip_header(packet)?;
        self.begin(ENHANCED_PACKET);
        self.put(&packet.interface.to_le_bytes());
        self.put(&((packet.unix_ns >> 32) as u32).to_le_bytes());
        self.put(&(packet.unix_ns as u32).to_le_bytes());
        let lengths = self.block.len();
        self.put(&[0; 8]);
        let start = self.block.len();
        PacketBuilder::ip(header)
            .udp(packet.from.port(), packet.to.port())
            .write(&mut self.block, packet.datagram)
            .map_err(|error| invalid(&error.to_string()))?;
        let whole = self.block.len() - start;
        let cut = packet.datagram.len().saturating_sub(packet.kept);
        let kept = (whole - cut).min(self.snap_bytes);
        self.block.truncate(start + kept);
        self.pad();
        // Both values are below 2^17.
        self.block[lengths..lengths + 4].copy_from_slice(&(kept as u32).to_le_bytes());
        self.block[lengths + 4..lengths + 8].copy_from_slice(&(whole as u32).to_le_bytes());
        let direction: u32 = if packet.direction == Direction::In { 1 } else { 2 };
        self.option(EPB_FLAGS, &direction.to_le_bytes());
        self.option(OPTION_END, &[]);
        self.end()
    }

    /// Flushes the file and returns the writer.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
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
        // Option values, such as interface names, are short.
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

/// Returns the IP header of a packet. The packet builder sets the lengths and checksums.
fn ip_header(packet: &Captured<'_>) -> io::Result<IpHeaders> {
    let tos = packet.traffic_class;
    match (packet.from.ip(), packet.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = Ipv4Header {
                // Every bit pattern of both fields is valid.
                dscp: IpDscp::try_new(tos >> 2).unwrap_or_default(),
                ecn: IpEcn::try_new(tos & 0b11).unwrap_or_default(),
                dont_fragment: true,
                time_to_live: packet.ttl,
                source: from.octets(),
                destination: to.octets(),
                ..Ipv4Header::default()
            };
            Ok(IpHeaders::Ipv4(header, Ipv4Extensions::default()))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = Ipv6Header {
                traffic_class: tos,
                hop_limit: packet.ttl,
                source: from.octets(),
                destination: to.octets(),
                ..Ipv6Header::default()
            };
            Ok(IpHeaders::Ipv6(header, Ipv6Extensions::default()))
        }
        _ => Err(invalid("one address is IPv4 and the other IPv6")),
    }
}
