//! What a switch does with a packet of whose session it holds no key: it reads the header, writes the
//! fields that are its own, and makes packets to the source (Bolt §4.1, §4.3).

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
    /// The packet in this datagram (a UDP payload); `None` if it is not one that an algorithm's switch
    /// half acts on.
    #[must_use]
    pub fn new(datagram: &'a mut [u8]) -> Option<Self> {
        let Decoded { header, extension, .. } = decode_extended(datagram).ok()?;
        let acts = matches!(header.body, Body::Data(_)) && extension.writable_len() > 0;
        acts.then_some(Self { datagram, header })
    }

    /// Its header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its extension.
    #[must_use]
    pub fn extension(&self) -> Extension<'_> {
        decode_extended(self.datagram).map_or(Extension::None, |decoded| decoded.extension)
    }

    /// Bolt Alg. 1 l. 10 and 19: sets INC and DEC. Nothing if the extension is another.
    pub fn set_bolt(&mut self, inc: bool, dec: bool) {
        if let Extension::Bolt(_) = self.extension() {
            self.datagram[1] = u8::from(inc) | u8::from(dec) << 1;
        }
    }

    /// HPCC: notes a hop behind those that are there, as the port with this number; one for which there is
    /// no room is counted. Nothing if the extension is another.
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

    /// RCP: lowers the rate, in steps of 100 kb/s, to `limit` if it is above. Nothing if the extension
    /// is another.
    pub fn limit_rate(&mut self, limit: u32) {
        if let Extension::Rcp { rate, .. } = self.extension()
            && limit < rate
        {
            self.datagram[1..4].copy_from_slice(&limit.to_be_bytes()[1..]);
        }
    }

    /// The SRC packet for its source (Bolt Alg. 1 l. 6-9), a datagram of its own: to be sent from the
    /// packet's destination address and port to its source. It has no guard of the session, which the
    /// switch could not make, but a checksum, as RoCEv2's invariant CRC (§4.3). `None` if the packet
    /// has no transmission time to reflect or `signal` cannot be said.
    ///
    /// `queue` is in bytes, at most [`MAX_SIGNAL_QUEUE`](crate::MAX_SIGNAL_QUEUE); `link_rate` the code
    /// of the link's rate.
    #[must_use]
    pub fn signal(&self, queue: u32, link_rate: u8) -> Option<[u8; SIGNAL_BYTES]> {
        let Extension::Bolt(bolt) = self.extension() else { return None };
        let body = Body::Signal(Signal { queue, link_rate, sent: bolt.sent });
        let header = Header { flow: self.header.flow, seq: self.header.seq, body };
        let mut datagram = [0; SIGNAL_BYTES];
        seal(&header, &[], &mut datagram).ok()?;
        Some(datagram)
    }
}
