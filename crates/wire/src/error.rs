//! Errors of packets.

use thiserror::Error;

use crate::version::VERSION;

/// A rule that the values of a header break; no decoded header breaks any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Illegal {
    /// `offset + length` lies beyond `op_length`.
    #[error("offset + length must not exceed op_length")]
    RangeBeyondOp,
    /// `length` is above [`MAX_PAYLOAD`](crate::MAX_PAYLOAD).
    #[error("length must be at most 65535 bytes")]
    PayloadTooLong,
    /// A read request carries payload.
    #[error("a read request must have length 0")]
    PayloadInReadRequest,
    /// A cancel carries payload.
    #[error("a cancel must have length 0")]
    PayloadInCancel,
    /// The request of an atomic op whose length or op_length is not that of its operands.
    #[error(
        "an atomic op must carry its operands whole: length and op_length 16 (CompareAndSwap) or 8 (FetchAdd)"
    )]
    Operands,
    /// The address of an atomic op is not a multiple of 8.
    #[error("the address of an atomic op must be a multiple of 8")]
    UnalignedWord,
    /// A packet that carries its op whole has the long form, though the short one is possible.
    #[error("a packet that carries its op whole must have the short form (kind plus 16)")]
    LongForm,
    /// A rejection gives a reason that does not exist.
    #[error("the reason of a rejection must be 1 to 5")]
    RejectReason,
    /// The address plus the bytes at it is 2^64 or more.
    #[error("address + op_length (8 for an atomic op) must be below 2^64")]
    AddressOverflow,
    /// Bit 0 of an ACK's bitmap, which stands for `largest` itself, is clear.
    #[error("bit 0 of the bitmap, for the largest, must be set")]
    BitmapWithoutLargest,
    /// An ACK's bitmap has a bit for a packet before number 0.
    #[error("the bitmap must have no bit below packet number 0")]
    BitmapBelowZero,
    /// `echo` is above `largest`, which by definition it cannot be.
    #[error("echo must not exceed the largest packet number received")]
    EchoBeyondLargest,
    /// A credit's padding is longer than [`MAX_PADDING`](crate::MAX_PADDING) or not zeros.
    #[error("the padding of a credit must be at most 16 bytes, all zero")]
    Padding,
    /// `receiver_level` is above [`MAX_RECEIVER_LEVEL`](crate::MAX_RECEIVER_LEVEL).
    #[error("receiver_level must be at most 31")]
    ReceiverLevel,
    /// A signal's queue has more than 24 bits.
    #[error("the queue of a signal must be below 2^24 bytes")]
    SignalQueue,
    /// A signal's code of a link rate is 0, which names none.
    #[error("the link rate of a signal must not be 0")]
    SignalRate,
    /// The bytes that switches may write are not as many as the extension has.
    #[error("the first byte must count the bytes that switches write in the packet's extension")]
    WritableLength,
    /// An extension of data packets on another packet, or one of acknowledgements.
    #[error("an extension must belong to the kind of packet: data, or an acknowledgement")]
    ExtensionOfBody,
    /// A trimmed packet from which no payload was removed.
    #[error("a trimmed packet must have length 1 or more")]
    NothingTrimmed,
    /// Flags of the order of a packet other than the lowest bit.
    #[error("the flags of a packet that others may overtake must be 0 or 1")]
    OrderFlags,
    /// Flags of a trimmed packet or a NACK other than the two lowest bits.
    #[error("the flags of a trimmed packet or a NACK must be 0 to 3")]
    TrimFlags,
    /// An identifier that an algorithm's own fields cannot have.
    #[error("an algorithm's own fields must have an identifier from 1 to 125")]
    ExtensionId,
    /// Room for telemetry that is not a whole number of hops, or more than
    /// [`MAX_HOPS`](crate::MAX_HOPS).
    #[error("telemetry must have room for 0 to 8 whole hops of 13 bytes")]
    TelemetryRoom,
    /// More bytes of an algorithm's own fields than a packet has room for, or writable bytes on an
    /// acknowledgement.
    #[error(
        "an algorithm's own fields must have at most 16 writable and 16 authenticated bytes, and no writable ones on an acknowledgement"
    )]
    ExtensionLength,
}

/// The reason why a header cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The output has too few bytes.
    #[error("the packet needs {needed} bytes, the buffer has {available}")]
    BufferTooSmall {
        /// Bytes needed.
        needed: usize,
        /// Available bytes.
        available: usize,
    },
    /// The payload given is not as long as the header states.
    #[error("the header states {stated} bytes of payload, {given} were given")]
    PayloadLength {
        /// Bytes by the header.
        stated: usize,
        /// Bytes given.
        given: usize,
    },
    /// The header's values break a rule.
    #[error("illegal header: {0}")]
    Illegal(#[from] Illegal),
}

/// The reason why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end before the packet does.
    #[error("truncated: at least {needed} bytes needed, {available} available")]
    Truncated {
        /// Required bytes, as far as known.
        needed: usize,
        /// Available bytes.
        available: usize,
    },
    /// A congestion extension this version does not know.
    #[error(
        "unknown congestion extension {0}; types are 1 to 126, and 128 more on an acknowledgement"
    )]
    Extension(u8),
    /// The version is not supported.
    #[error("version {0} is not supported; this library uses version {VERSION}")]
    Version(u8),
    /// Not a kind of packet.
    #[error(
        "unknown packet kind {0}; kinds are 1 to 15, 24, 26, 27 and 31, those of data (1 to 4, 6, 13 and 14) plus 16 with a whole op \
         (not 3 and 6) and plus 128 with a credit, those and 5 plus 192 if packets may overtake each other, and plus 32 with an extension"
    )]
    Kind(u8),
    /// The header's values break a rule.
    #[error("illegal header: {0}")]
    Illegal(#[from] Illegal),
    /// Bytes follow where the packet should end.
    #[error("the packet ends after {expected} bytes, but {available} are there")]
    TrailingBytes {
        /// Bytes of the packet, checksum included.
        expected: usize,
        /// Available bytes.
        available: usize,
    },
    /// The checksum does not match: the packet was damaged in transit.
    #[error("checksum {carried:#010x} carried, {computed:#010x} computed")]
    Checksum {
        /// Checksum in the packet.
        carried: u32,
        /// Checksum computed from the packet's bytes.
        computed: u32,
    },
}
