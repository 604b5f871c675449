//! Kinds of packets and the lengths of their headers; the crate documentation shows the layout.

use apus_units::{OpId, PacketNumber};

use crate::control;
use crate::header::{Attached, Body, Header, Segment, SegmentKind};

/// Bytes of the longest header without extension.
pub const MAX_HEADER_BYTES: usize = 65;

/// Count of writable bytes, version, kind, flow and packet number.
pub(crate) const COMMON_BYTES: usize = 15;
const SEGMENT_BYTES: usize = 26;
/// Body bytes of a message or answer packet that carries its whole op.
const WHOLE_BYTES: usize = DISTANCE_BYTES + 2;
/// Bytes of the op in the short form.
const DISTANCE_BYTES: usize = 6;
const REGION_BYTES: usize = 16;
const ACK_BYTES: usize = 42;
const REJECT_BYTES: usize = 9;
const SIGNAL_BYTES: usize = 8;
const TRIMMED_BYTES: usize = 19;
const NACK_BYTES: usize = 9;
const ECHO_BYTES: usize = 8;
/// Bytes of an [`Order`](crate::Order).
const ORDER_BYTES: usize = 3;
/// Bytes of [`Ack::missing`](crate::Ack::missing).
const MISSING_BYTES: usize = 2;

/// The kind byte. No kind is 0, so a packet of zeros is refused.
pub(crate) mod kind {
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const MESSAGE: u8 = 2;
    pub(crate) const READ_REQUEST: u8 = 3;
    pub(crate) const READ_RESPONSE: u8 = 4;
    pub(crate) const ACK: u8 = 5;
    pub(crate) const CANCEL: u8 = 6;
    pub(crate) const REJECT: u8 = 7;
    pub(crate) const SIGNAL: u8 = 12;
    pub(crate) const COMPARE_AND_SWAP: u8 = 13;
    pub(crate) const FETCH_ADD: u8 = 14;
    pub(crate) const NACK: u8 = 15;
    pub(crate) const TRIMMED: u8 = 31;
    /// Added to a data kind with payload: the packet carries its whole op, in the short form.
    pub(crate) const WHOLE: u8 = 0x10;
    pub(crate) const WHOLE_WRITE: u8 = WHOLE | WRITE;
    pub(crate) const WHOLE_MESSAGE: u8 = WHOLE | MESSAGE;
    pub(crate) const WHOLE_READ_RESPONSE: u8 = WHOLE | READ_RESPONSE;
    pub(crate) const WHOLE_COMPARE_AND_SWAP: u8 = WHOLE | COMPARE_AND_SWAP;
    pub(crate) const WHOLE_FETCH_ADD: u8 = WHOLE | FETCH_ADD;
    /// Added to a data kind: the packet echoes the credit that it was sent for.
    pub(crate) const CREDITED: u8 = 0x80;
    /// Added to a data kind or an acknowledgement: packets of the flow may overtake each other.
    pub(crate) const SPREAD: u8 = 0xc0;
    /// The two bits that state the attachment; 0x40 alone is invalid.
    pub(crate) const ATTACHED: u8 = 0xc0;
    pub(crate) const SPREAD_ACK: u8 = SPREAD | ACK;
    /// Added to the kind of data or an acknowledgement: it has a congestion extension.
    pub(crate) const EXTENDED: u8 = 0x20;
}

/// The op in the short form of a data packet: the packet's number minus the op's number, modulo
/// 2^64, in 48 bits and signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distance(i64);

impl Distance {
    /// Returns the distance; `None` if the packet has the long form. That is the case if it carries
    /// part of an op, if it is a read request or a cancel, whose long form is short enough, or if
    /// the numbers are too far apart.
    #[inline]
    pub(crate) fn of(seq: PacketNumber, segment: &Segment) -> Option<Self> {
        let carries = match segment.kind {
            SegmentKind::Write { .. }
            | SegmentKind::Message
            | SegmentKind::ReadResponse
            | SegmentKind::CompareAndSwap { .. }
            | SegmentKind::FetchAdd { .. } => true,
            SegmentKind::ReadRequest { .. } | SegmentKind::Cancel => false,
        };
        let whole = segment.offset == 0 && segment.op_length == u64::from(segment.length);
        let distance = seq.get().wrapping_sub(segment.op.get()) as i64;
        (carries && whole && distance << 16 >> 16 == distance).then_some(Self(distance))
    }

    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; DISTANCE_BYTES] {
        let [_, _, a, b, c, d, e, f] = self.0.to_be_bytes();
        [a, b, c, d, e, f]
    }

    #[inline]
    pub(crate) fn from_bytes([a, b, c, d, e, f]: [u8; DISTANCE_BYTES]) -> Self {
        Self(i64::from_be_bytes([a, b, c, d, e, f, 0, 0]) >> 16)
    }

    /// Returns the op of the packet with this number.
    #[inline]
    pub(crate) fn op(self, seq: PacketNumber) -> OpId {
        OpId::new(seq.get().wrapping_sub(self.0 as u64))
    }
}

/// Returns the kind byte of a header, without extension.
#[inline]
pub(crate) fn kind_of(header: &Header) -> u8 {
    match &header.body {
        Body::Data(segment) => {
            let kind = match segment.kind {
                SegmentKind::Write { .. } => kind::WRITE,
                SegmentKind::Message => kind::MESSAGE,
                SegmentKind::ReadRequest { .. } => kind::READ_REQUEST,
                SegmentKind::ReadResponse => kind::READ_RESPONSE,
                SegmentKind::Cancel => kind::CANCEL,
                SegmentKind::CompareAndSwap { .. } => kind::COMPARE_AND_SWAP,
                SegmentKind::FetchAdd { .. } => kind::FETCH_ADD,
            };
            let whole = Distance::of(header.seq, segment).map_or(0, |_| kind::WHOLE);
            let attached = match segment.attached {
                None => 0,
                Some(Attached::Credit(_)) => kind::CREDITED,
                Some(Attached::Order(_)) => kind::SPREAD,
            };
            kind | whole | attached
        }
        Body::Ack(ack) => kind::ACK | ack.missing.map_or(0, |_| kind::SPREAD),
        Body::Reject(_) => kind::REJECT,
        Body::Signal(_) => kind::SIGNAL,
        Body::Trimmed(_) => kind::TRIMMED,
        Body::Nack(_) => kind::NACK,
        Body::Control(control) => control.kind(),
    }
}

/// Returns the number of bytes of a header of this kind; `None` if the kind is unknown. The padding
/// of a credit is not included.
pub(crate) fn header_bytes(kind: u8) -> Option<usize> {
    let body = match kind & !kind::ATTACHED {
        kind::WRITE | kind::READ_REQUEST | kind::COMPARE_AND_SWAP | kind::FETCH_ADD => {
            SEGMENT_BYTES + REGION_BYTES
        }
        kind::MESSAGE | kind::READ_RESPONSE | kind::CANCEL => SEGMENT_BYTES,
        kind::WHOLE_WRITE | kind::WHOLE_COMPARE_AND_SWAP | kind::WHOLE_FETCH_ADD => {
            WHOLE_BYTES + REGION_BYTES
        }
        kind::WHOLE_MESSAGE | kind::WHOLE_READ_RESPONSE => WHOLE_BYTES,
        _ => {
            let body = match kind {
                kind::ACK => ACK_BYTES,
                kind::SPREAD_ACK => ACK_BYTES + MISSING_BYTES,
                kind::REJECT => REJECT_BYTES,
                kind::SIGNAL => SIGNAL_BYTES,
                kind::TRIMMED => TRIMMED_BYTES,
                kind::NACK => NACK_BYTES,
                other => control::body_bytes(other)?,
            };
            return Some(COMMON_BYTES + body);
        }
    };
    let attached = match kind & kind::ATTACHED {
        0 => 0,
        kind::CREDITED => ECHO_BYTES,
        kind::SPREAD => ORDER_BYTES,
        _ => return None,
    };
    Some(COMMON_BYTES + body + attached)
}

impl Header {
    /// Returns the bytes that this header takes in a packet without congestion extension, payload and checksum
    /// not included.
    #[inline]
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.body {
            Body::Data(segment) => {
                let region = match segment.kind {
                    SegmentKind::Message | SegmentKind::ReadResponse | SegmentKind::Cancel => 0,
                    SegmentKind::Write { .. }
                    | SegmentKind::ReadRequest { .. }
                    | SegmentKind::CompareAndSwap { .. }
                    | SegmentKind::FetchAdd { .. } => REGION_BYTES,
                };
                let range = Distance::of(self.seq, segment).map_or(SEGMENT_BYTES, |_| WHOLE_BYTES);
                let attached = match segment.attached {
                    None => 0,
                    Some(Attached::Credit(_)) => ECHO_BYTES,
                    Some(Attached::Order(_)) => ORDER_BYTES,
                };
                COMMON_BYTES + range + region + attached
            }
            Body::Ack(ack) => COMMON_BYTES + ACK_BYTES + ack.missing.map_or(0, |_| MISSING_BYTES),
            Body::Reject(_) => COMMON_BYTES + REJECT_BYTES,
            Body::Signal(_) => COMMON_BYTES + SIGNAL_BYTES,
            Body::Trimmed(_) => COMMON_BYTES + TRIMMED_BYTES,
            Body::Nack(_) => COMMON_BYTES + NACK_BYTES,
            Body::Control(control) => COMMON_BYTES + control.body_len(),
        }
    }

    /// Returns the payload bytes that follow this header.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        match &self.body {
            Body::Data(segment) => segment.length as usize,
            Body::Ack(_)
            | Body::Control(_)
            | Body::Reject(_)
            | Body::Signal(_)
            | Body::Trimmed(_)
            | Body::Nack(_) => 0,
        }
    }
}
