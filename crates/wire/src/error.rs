//! Errors of packets.

use core::error::Error;
use core::fmt;

use crate::version::VERSION;

/// A rule that the values of a header break; no decoded header breaks any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// `offset + length` lies beyond `op_length`.
    RangeBeyondOp,
    /// `length` is above [`MAX_PAYLOAD`](crate::MAX_PAYLOAD).
    PayloadTooLong,
    /// A read request carries payload.
    PayloadInReadRequest,
    /// A cancel carries payload.
    PayloadInCancel,
    /// A packet that carries its op whole has the long form, though the short one is possible.
    LongForm,
    /// A rejection gives a reason that does not exist.
    RejectReason,
    /// `address + op_length` is beyond 2^64.
    AddressOverflow,
    /// Bit 0 of an ACK's bitmap, which stands for `largest` itself, is clear.
    BitmapWithoutLargest,
    /// An ACK's bitmap has a bit for a packet before number 0.
    BitmapBelowZero,
    /// `echo` is above `largest`, which by definition it cannot be.
    EchoBeyondLargest,
    /// A credit's padding is longer than [`MAX_PADDING`](crate::MAX_PADDING) or not zeros.
    Padding,
    /// `receiver_level` is above [`MAX_RECEIVER_LEVEL`](crate::MAX_RECEIVER_LEVEL).
    ReceiverLevel,
    /// A signal's queue has more than 24 bits.
    SignalQueue,
    /// A signal's code of a link rate is 0, which names none.
    SignalRate,
    /// The bytes that switches may write are not as many as the extension has.
    WritableLength,
    /// An extension of data packets on another packet, or one of acknowledgements.
    ExtensionOfBody,
    /// An identifier that an algorithm's own fields cannot have.
    ExtensionId,
    /// Room for telemetry that is not a whole number of hops, or more than
    /// [`MAX_HOPS`](crate::MAX_HOPS).
    TelemetryRoom,
    /// More bytes of an algorithm's own fields than a packet has room for, or writable bytes on an
    /// acknowledgement.
    ExtensionLength,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RangeBeyondOp => "offset + length must not exceed op_length",
            Self::PayloadTooLong => "length must be at most 65535 bytes",
            Self::PayloadInReadRequest => "a read request must have length 0",
            Self::PayloadInCancel => "a cancel must have length 0",
            Self::LongForm => {
                "a packet that carries its op whole must have the short form (kind plus 16)"
            }
            Self::RejectReason => "the reason of a rejection must be 1 to 5",
            Self::AddressOverflow => "address + op_length must be below 2^64",
            Self::BitmapWithoutLargest => "bit 0 of the bitmap, for the largest, must be set",
            Self::BitmapBelowZero => "the bitmap must have no bit below packet number 0",
            Self::EchoBeyondLargest => "echo must not exceed the largest packet number received",
            Self::Padding => "the padding of a credit must be at most 16 bytes, all zero",
            Self::ReceiverLevel => "receiver_level must be at most 31",
            Self::SignalQueue => "the queue of a signal must be below 2^24 bytes",
            Self::SignalRate => "the link rate of a signal must not be 0",
            Self::WritableLength => {
                "the first byte must count the bytes that switches write in the packet's extension"
            }
            Self::ExtensionOfBody => {
                "an extension must belong to the kind of packet: data, or an acknowledgement"
            }
            Self::ExtensionId => "an algorithm's own fields must have an identifier from 1 to 125",
            Self::TelemetryRoom => "telemetry must have room for 0 to 8 whole hops of 13 bytes",
            Self::ExtensionLength => {
                "an algorithm's own fields must have at most 16 writable and 16 authenticated bytes, and no writable ones on an acknowledgement"
            }
        })
    }
}

impl Error for Illegal {}

/// The reason why a header cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The output has too few bytes.
    BufferTooSmall {
        /// Bytes needed.
        needed: usize,
        /// Available bytes.
        available: usize,
    },
    /// The payload given is not as long as the header states.
    PayloadLength {
        /// Bytes by the header.
        stated: usize,
        /// Bytes given.
        given: usize,
    },
    /// The header's values break a rule.
    Illegal(Illegal),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall { needed, available } => {
                write!(f, "the packet needs {needed} bytes, the buffer has {available}")
            }
            Self::PayloadLength { stated, given } => {
                write!(f, "the header states {stated} bytes of payload, {given} were given")
            }
            Self::Illegal(rule) => write!(f, "illegal header: {rule}"),
        }
    }
}

impl Error for EncodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Illegal(rule) => Some(rule),
            _ => None,
        }
    }
}

impl From<Illegal> for EncodeError {
    fn from(rule: Illegal) -> Self {
        Self::Illegal(rule)
    }
}

/// The reason why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end before the packet does.
    Truncated {
        /// Required bytes, as far as known.
        needed: usize,
        /// Available bytes.
        available: usize,
    },
    /// A congestion extension this version does not know.
    Extension(u8),
    /// The version is not supported.
    Version(u8),
    /// Not a kind of packet.
    Kind(u8),
    /// The header's values break a rule.
    Illegal(Illegal),
    /// Bytes follow where the packet should end.
    TrailingBytes {
        /// Bytes of the packet, checksum included.
        expected: usize,
        /// Available bytes.
        available: usize,
    },
    /// The checksum does not match: the packet was damaged in transit.
    Checksum {
        /// Checksum in the packet.
        carried: u32,
        /// Checksum computed from the packet's bytes.
        computed: u32,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, available } => {
                write!(f, "truncated: at least {needed} bytes needed, {available} available")
            }
            Self::Extension(kind) => {
                write!(
                    f,
                    "unknown congestion extension {kind}; types are 1 to 126, and 128 more on an acknowledgement"
                )
            }
            Self::Version(version) => {
                write!(
                    f,
                    "version {version} is not supported; this library uses version {}",
                    VERSION
                )
            }
            Self::Kind(kind) => {
                write!(
                    f,
                    "unknown packet kind {kind}; kinds are 1 to 12, those of data (1 to 4 and 6) \
                     plus 16 with a whole op (not 3 and 6) and plus 128 with a credit, those and 5 \
                     plus 32 with an extension"
                )
            }
            Self::Illegal(rule) => write!(f, "illegal header: {rule}"),
            Self::TrailingBytes { expected, available } => {
                write!(f, "the packet ends after {expected} bytes, but {available} are there")
            }
            Self::Checksum { carried, computed } => {
                write!(f, "checksum {carried:#010x} carried, {computed:#010x} computed")
            }
        }
    }
}

impl Error for DecodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Illegal(rule) => Some(rule),
            _ => None,
        }
    }
}

impl From<Illegal> for DecodeError {
    fn from(rule: Illegal) -> Self {
        Self::Illegal(rule)
    }
}
