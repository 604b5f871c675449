//! Kinds of packets and how long their headers are; the layout is drawn in the crate's documentation.

use crate::control;
use crate::header::{Body, Header, SegmentKind};

/// Bytes of the longest header without extension.
pub const MAX_HEADER_BYTES: usize = 65;

/// Count of writable bytes, version, kind, flow and packet number.
pub(crate) const COMMON_BYTES: usize = 15;
const SEGMENT_BYTES: usize = 26;
const REGION_BYTES: usize = 16;
const ACK_BYTES: usize = 42;
const REJECT_BYTES: usize = 9;
const SIGNAL_BYTES: usize = 8;
const ECHO_BYTES: usize = 8;

/// The kind byte. None is 0, so that a packet of zeros is refused.
pub(crate) mod kind {
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const MESSAGE: u8 = 2;
    pub(crate) const READ_REQUEST: u8 = 3;
    pub(crate) const READ_RESPONSE: u8 = 4;
    pub(crate) const ACK: u8 = 5;
    pub(crate) const CANCEL: u8 = 6;
    pub(crate) const REJECT: u8 = 7;
    pub(crate) const SIGNAL: u8 = 12;
    /// Added to a data kind: the packet echoes the credit that it was sent for.
    pub(crate) const CREDITED: u8 = 0x80;
    /// Added to the kind of data or an acknowledgement: it has a congestion extension.
    pub(crate) const EXTENDED: u8 = 0x20;
}

/// The kind byte of a body.
pub(crate) fn kind_of(body: &Body) -> u8 {
    match body {
        Body::Data(segment) => {
            let kind = match segment.kind {
                SegmentKind::Write { .. } => kind::WRITE,
                SegmentKind::Message => kind::MESSAGE,
                SegmentKind::ReadRequest { .. } => kind::READ_REQUEST,
                SegmentKind::ReadResponse => kind::READ_RESPONSE,
                SegmentKind::Cancel => kind::CANCEL,
            };
            if segment.credit.is_some() { kind | kind::CREDITED } else { kind }
        }
        Body::Ack(_) => kind::ACK,
        Body::Reject(_) => kind::REJECT,
        Body::Signal(_) => kind::SIGNAL,
        Body::Control(control) => control.kind(),
    }
}

/// Bytes of a header of this kind, `None` if there is no such kind; a credit has its padding besides.
pub(crate) fn header_bytes(kind: u8) -> Option<usize> {
    match kind {
        kind::WRITE | kind::READ_REQUEST => Some(COMMON_BYTES + SEGMENT_BYTES + REGION_BYTES),
        kind::MESSAGE | kind::READ_RESPONSE | kind::CANCEL => Some(COMMON_BYTES + SEGMENT_BYTES),
        kind::ACK => Some(COMMON_BYTES + ACK_BYTES),
        kind::REJECT => Some(COMMON_BYTES + REJECT_BYTES),
        kind::SIGNAL => Some(COMMON_BYTES + SIGNAL_BYTES),
        credited if credited & kind::CREDITED != 0 => match credited & !kind::CREDITED {
            kind @ (kind::WRITE..=kind::READ_RESPONSE | kind::CANCEL) => {
                Some(header_bytes(kind)? + ECHO_BYTES)
            }
            _ => None,
        },
        other => Some(COMMON_BYTES + control::body_bytes(other)?),
    }
}

impl Header {
    /// Bytes that this header takes in a packet without congestion extension, payload and checksum
    /// not included.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.body {
            Body::Data(segment) => {
                let region = match segment.kind {
                    SegmentKind::Message | SegmentKind::ReadResponse | SegmentKind::Cancel => 0,
                    SegmentKind::Write { .. } | SegmentKind::ReadRequest { .. } => REGION_BYTES,
                };
                let echo = if segment.credit.is_some() { ECHO_BYTES } else { 0 };
                COMMON_BYTES + SEGMENT_BYTES + region + echo
            }
            Body::Ack(_) => COMMON_BYTES + ACK_BYTES,
            Body::Reject(_) => COMMON_BYTES + REJECT_BYTES,
            Body::Signal(_) => COMMON_BYTES + SIGNAL_BYTES,
            Body::Control(control) => COMMON_BYTES + control.body_len(),
        }
    }

    /// Payload bytes that follow this header.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        match &self.body {
            Body::Data(segment) => segment.length as usize,
            Body::Ack(_) | Body::Control(_) | Body::Reject(_) | Body::Signal(_) => 0,
        }
    }
}
