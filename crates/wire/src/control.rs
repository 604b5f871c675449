//! Control packets: credits, requests and stops of credits, and notifications of marks.

use apus_units::PacketNumber;

use crate::bytes::{Reader, Writer};
use crate::error::Illegal;

/// Maximum number of padding bytes in a credit.
pub const MAX_PADDING: u8 = 16;

/// A packet of the control lane. Control packets are not acknowledged; senders must tolerate their
/// loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Request of a sender that has data for credits of the receiver.
    CreditRequest {
        /// Number of packets that the sender has to send; 2^32 - 1 stands for all larger numbers.
        packets: u32,
    },
    /// Permission of the receiver to send one data packet.
    Credit(Credit),
    /// Report of a sender that has no more data and needs no more credits. The receiver answers with an
    /// acknowledgement.
    CreditStop,
    /// Report of data packets that arrived marked (DCQCN's congestion notification packet).
    Notification,
    /// Permission of the receiver to send up to this count, which only grows, modulo 2^32. The algorithm
    /// defines its unit.
    Grant {
        /// The granted count.
        total: u32,
    },
    /// Probe of a path, which the receiver answers with a [`Control::ProbeAnswer`]. Probes are not numbered
    /// like other control packets.
    Probe {
        /// Number of the probe within its flow, modulo 2^32.
        number: u32,
    },
    /// The answer to a probe.
    ProbeAnswer {
        /// Number of the probe.
        number: u32,
    },
}

/// A credit. The data packet that uses the credit echoes its number and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Number of the credit within its flow, from 0, modulo 2^32.
    pub number: u32,
    /// Departure time, in nanoseconds of the receiver's clock modulo 2^32; only the receiver reads it.
    pub sent_at_ns: u32,
    /// Data packets received; `None` if none was received. Flows with credits have no other acknowledgement.
    pub received: Option<Received>,
    /// Number of bytes by which this credit is longer than the shortest credit, at most [`MAX_PADDING`].
    /// Sizes vary so that credits of several flows do not synchronise (ExpressPass).
    pub padding: u8,
}

/// The data packets that have arrived, as in an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The largest data packet number received.
    pub largest: PacketNumber,
    /// Bit i is set if `largest - i` was received; bit 0 is always set.
    pub bitmap: u128,
}

/// The echo of a data packet's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditEcho {
    /// [`Credit::number`].
    pub number: u32,
    /// [`Credit::sent_at_ns`].
    pub sent_at_ns: u32,
}

impl Received {
    /// Checks that the values are legal together.
    ///
    /// # Errors
    /// The first rule that the values break.
    pub fn check(&self) -> Result<(), Illegal> {
        if self.bitmap & 1 == 0 {
            return Err(Illegal::BitmapWithoutLargest);
        }
        if u64::from(127 - self.bitmap.leading_zeros()) > self.largest.get() {
            return Err(Illegal::BitmapBelowZero);
        }
        Ok(())
    }
}

impl Credit {
    /// Checks that the values are legal together.
    ///
    /// # Errors
    /// The first rule that the values break.
    pub fn check(&self) -> Result<(), Illegal> {
        if self.padding > MAX_PADDING {
            return Err(Illegal::Padding);
        }
        self.received.map_or(Ok(()), |received| received.check())
    }
}

/// The kind bytes of control packets.
mod kind {
    pub(super) const CREDIT_REQUEST: u8 = 8;
    pub(super) const CREDIT: u8 = 9;
    pub(super) const CREDIT_STOP: u8 = 10;
    pub(super) const NOTIFICATION: u8 = 11;
    pub(super) const GRANT: u8 = 24;
    pub(super) const PROBE: u8 = 26;
    pub(super) const PROBE_ANSWER: u8 = 27;
}

/// Bytes of a credit's body without padding.
const CREDIT_BYTES: usize = 33;
/// Bytes of the body of a request, of a grant, and of a probe and its answer.
const REQUEST_BYTES: usize = 4;

/// Returns the bytes of the body of a control packet of this kind, without a credit's padding;
/// `None` for other kinds.
pub(crate) fn body_bytes(kind: u8) -> Option<usize> {
    match kind {
        kind::CREDIT => Some(CREDIT_BYTES),
        kind::CREDIT_REQUEST | kind::GRANT | kind::PROBE | kind::PROBE_ANSWER => {
            Some(REQUEST_BYTES)
        }
        kind::CREDIT_STOP | kind::NOTIFICATION => Some(0),
        _ => None,
    }
}

/// Returns the number of padding bytes that follow a header of this kind, which begins with
/// `header`: for a credit, the number in its last byte.
pub(crate) fn padding(kind: u8, header: &[u8]) -> usize {
    match header.last() {
        Some(&padding) if kind == kind::CREDIT => usize::from(padding),
        _ => 0,
    }
}

impl Control {
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::CreditRequest { .. } => kind::CREDIT_REQUEST,
            Self::Credit(_) => kind::CREDIT,
            Self::CreditStop => kind::CREDIT_STOP,
            Self::Notification => kind::NOTIFICATION,
            Self::Grant { .. } => kind::GRANT,
            Self::Probe { .. } => kind::PROBE,
            Self::ProbeAnswer { .. } => kind::PROBE_ANSWER,
        }
    }

    pub(crate) fn body_len(&self) -> usize {
        match self {
            Self::Credit(credit) => CREDIT_BYTES + usize::from(credit.padding),
            Self::CreditRequest { .. }
            | Self::Grant { .. }
            | Self::Probe { .. }
            | Self::ProbeAnswer { .. } => REQUEST_BYTES,
            Self::CreditStop | Self::Notification => 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Illegal> {
        match self {
            Self::Credit(credit) => credit.check(),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        let credit = match self {
            Self::Credit(credit) => credit,
            Self::CreditRequest { packets: word }
            | Self::Grant { total: word }
            | Self::Probe { number: word }
            | Self::ProbeAnswer { number: word } => return writer.put(word.to_be_bytes()),
            Self::CreditStop | Self::Notification => return,
        };
        let (largest, bitmap) = credit.received.map_or((0, 0), |r| (r.largest.get(), r.bitmap));
        writer.put(credit.number.to_be_bytes());
        writer.put(credit.sent_at_ns.to_be_bytes());
        writer.put(largest.to_be_bytes());
        writer.put(bitmap.to_be_bytes());
        writer.put([credit.padding]);
        for _ in 0..credit.padding {
            writer.put([0]);
        }
    }
}

/// Reads a control packet. `kind` is the kind of a control packet, and the reader contains exactly
/// its body.
pub(crate) fn read(reader: &mut Reader<'_>, kind: u8) -> Result<Control, Illegal> {
    match kind {
        kind::CREDIT => {}
        kind::CREDIT_REQUEST => return Ok(Control::CreditRequest { packets: reader.u32() }),
        kind::GRANT => return Ok(Control::Grant { total: reader.u32() }),
        kind::PROBE => return Ok(Control::Probe { number: reader.u32() }),
        kind::PROBE_ANSWER => return Ok(Control::ProbeAnswer { number: reader.u32() }),
        kind::CREDIT_STOP => return Ok(Control::CreditStop),
        _ => return Ok(Control::Notification),
    }
    let (number, sent_at_ns) = (reader.u32(), reader.u32());
    let received = Received {
        largest: PacketNumber::new(reader.u64()),
        bitmap: u128::from_be_bytes(reader.take()),
    };
    // "Nothing received" has only one valid form, so that a packet has one encoding.
    let nothing = received.bitmap == 0 && received.largest.get() == 0;
    let [padding] = reader.take();
    if (0..padding).any(|_| reader.take() != [0]) {
        return Err(Illegal::Padding);
    }
    let received = (!nothing).then_some(received);
    let credit = Credit { number, sent_at_ns, received, padding };
    credit.check()?;
    Ok(Control::Credit(credit))
}
