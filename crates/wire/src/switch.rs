//! Operations of a switch on a packet without the keys of its session: reading the header, writing the writable
//! fields, and creating packets to the source (Bolt §4.1, §4.3).

use crate::codec::{Decoded, decode_extended};
use crate::extension::{Extension, HOP_BYTES, Hop};
use crate::header::{Body, Header, Signal};
use crate::sealed::{CHECKSUM_BYTES, seal};

/// Bytes of a signal's datagram: header, body and checksum.
pub const SIGNAL_BYTES: usize = 23 + CHECKSUM_BYTES;

/// A data packet with a congestion extension, sealed or not, as a switch sees it.
#[derive(Debug)]
pub struct SwitchView<'a> {
    datagram: &'a mut [u8],
    header: Header,
}

impl<'a> SwitchView<'a> {
    /// Returns the packet in this datagram (a UDP payload); `None` if no switch half of an algorithm acts on
    /// it. Fields without writable bytes suffice: a switch reads them, and may signal.
    #[must_use]
    pub fn new(datagram: &'a mut [u8]) -> Option<Self> {
        let Decoded { header, extension, .. } = decode_extended(datagram).ok()?;
        let acts = matches!(header.body, Body::Data(_)) && extension != Extension::None;
        acts.then_some(Self { datagram, header })
    }

    /// Returns the header of the packet.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the extension of the packet.
    #[must_use]
    pub fn extension(&self) -> Extension<'_> {
        decode_extended(self.datagram).map_or(Extension::None, |decoded| decoded.extension)
    }

    /// Returns the bytes of the algorithm's own fields that a switch may write. Empty if the extension is
    /// telemetry.
    pub fn writable(&mut self) -> &mut [u8] {
        let length = match self.extension() {
            Extension::Own(own) => own.writable.len(),
            Extension::None | Extension::Telemetry(_) | Extension::TelemetryEcho(_) => 0,
        };
        &mut self.datagram[1..1 + length]
    }

    /// Appends a hop of the port with this number (HPCC). A hop that does not fit is only counted. Has no
    /// effect on packets without telemetry.
    pub fn note_hop(&mut self, hop: &Hop, port: u16) {
        let Extension::Telemetry(hops) = self.extension() else { return };
        let (room, path) = (hops.capacity(), hops.path() ^ port);
        let passed = usize::from(self.datagram[1]);
        self.datagram[2..4].copy_from_slice(&path.to_be_bytes());
        if passed < room {
            let at = 4 + passed * HOP_BYTES;
            self.datagram[at..at + HOP_BYTES].copy_from_slice(&hop.to_bytes());
        }
        self.datagram[1] = self.datagram[1].saturating_add(1);
    }

    /// Returns the SRC packet for its source (Bolt Alg. 1 l. 6-9), a separate datagram, to be sent from the
    /// packet's destination address and port to its source. It is not authenticated by the session,
    /// since the switch has no key, but has a checksum, as RoCEv2's invariant CRC (§4.3). `None` if
    /// a value is out of range.
    ///
    /// `queue` is in bytes, at most [`MAX_SIGNAL_QUEUE`](crate::MAX_SIGNAL_QUEUE); `link_rate` is the code
    /// of the link's rate ([`link_rate_code`](crate::link_rate_code)); `sent` is the departure time of
    /// the packet as its fields state it.
    #[must_use]
    pub fn signal(&self, queue: u32, link_rate: u8, sent: u32) -> Option<[u8; SIGNAL_BYTES]> {
        let body = Body::Signal(Signal { queue, link_rate, sent });
        let header = Header { flow: self.header.flow, seq: self.header.seq, body };
        let mut datagram = [0; SIGNAL_BYTES];
        seal(&header, &[], &mut datagram).ok()?;
        Some(datagram)
    }
}
