//! The content of a packet, as values.

use apus_units::{FlowId, OpId, PacketNumber, Span};

use crate::control::{Control, CreditEcho, Received};
use crate::error::Illegal;

/// Maximum payload bytes of a packet: the largest value of its two-byte length.
pub const MAX_PAYLOAD: u32 = u16::MAX as u32;

/// Largest [`Ack::receiver_level`], which has 5 bits.
pub const MAX_RECEIVER_LEVEL: u8 = 31;

/// Bytes of the word that an atomic op changes, and of its answer.
pub const WORD_BYTES: u32 = 8;

/// Content of a packet except its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The flow, as its index in the table of the endpoint that *receives* this packet.
    pub flow: FlowId,
    /// The number of this transmission, fresh for each. Data packets, ACKs and control packets of a
    /// flow's direction are three lanes with separate sequences.
    pub seq: PacketNumber,
    /// Type and content.
    pub body: Body,
}

/// Types of packets, in the three lanes of a flow: data, acknowledgements and control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A range of an op.
    Data(Segment),
    /// An acknowledgement of the other direction's data packets.
    Ack(Ack),
    /// A signal from a switch to the source of a data packet. Only switches create signals, without
    /// authentication. `flow` and `seq` are those of the data packet, so the receiver must find its own flow
    /// by the peer and the peer's index.
    Signal(Signal),
    /// A refusal of an op of the other direction, numbered in the lane of the ACKs. The refusal is repeated
    /// for every packet of that op, so it needs no acknowledgement.
    Reject(Reject),
    /// Credits and notifications.
    Control(Control),
    /// The header of a data packet whose payload a switch removed. Only switches create such packets, without
    /// authentication. `flow` and `seq` are those of the data packet.
    Trimmed(Trimmed),
    /// A negative acknowledgement: a data packet of the other direction arrived trimmed. Numbered in the lane
    /// of the ACKs, and sent once per trimmed packet.
    Nack(Nack),
}

/// Rest of a data packet after a switch has removed its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// The op, numbered by its initiator.
    pub op: OpId,
    /// Whether the packet was part of an answer ([`SegmentKind::ReadResponse`]); the op is then one of the
    /// receiver's.
    pub is_answer: bool,
    /// Offset of the packet's range in the op's bytes.
    pub offset: u64,
    /// Payload bytes removed, 1 to [`MAX_PAYLOAD`].
    pub length: u32,
    /// Whether the port to the receiver removed the payload, and not a port between switches.
    pub last_hop: bool,
}

impl Trimmed {
    /// Returns the rest of a data packet without its payload. `None` if a switch must not trim the packet
    /// because it carries no payload or the operands of an atomic op.
    #[must_use]
    pub fn of(segment: &Segment, last_hop: bool) -> Option<Self> {
        let is_answer = match segment.kind {
            SegmentKind::Write { .. } | SegmentKind::Message => false,
            SegmentKind::ReadResponse => true,
            _ => return None,
        };
        let Segment { op, offset, length, .. } = *segment;
        (length > 0).then_some(Self { op, is_answer, offset, length, last_hop })
    }

    /// Checks that the values are legal together.
    ///
    /// # Errors
    /// The first rule that the values break.
    pub fn check(&self) -> Result<(), Illegal> {
        if self.length > MAX_PAYLOAD {
            return Err(Illegal::PayloadTooLong);
        }
        if self.length == 0 {
            return Err(Illegal::NothingTrimmed);
        }
        match self.offset.checked_add(u64::from(self.length)) {
            Some(_) => Ok(()),
            None => Err(Illegal::RangeBeyondOp),
        }
    }
}

/// A negative acknowledgement of a trimmed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Number of the trimmed packet.
    pub packet: PacketNumber,
    /// [`Trimmed::last_hop`].
    pub last_hop: bool,
    /// Whether the header arrived with an ECN mark.
    pub marked: bool,
}

/// Refusal of the receiver to apply any more of an op, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The op, numbered by its initiator.
    pub op: OpId,
    /// The reason.
    pub reason: RejectReason,
}

/// The reason why a receiver refuses an op, with its byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RejectReason {
    /// No region has this key.
    NoRegion = 1,
    /// The region does not allow this kind of access.
    NotAllowed = 2,
    /// The op reaches beyond the region's end.
    OutOfBounds = 3,
    /// The message is longer than the receiver accepts.
    TooLong = 4,
    /// The region was withdrawn before the op was complete: parts of it may have been applied.
    Withdrawn = 5,
}

/// A range of an op's bytes, or a request for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The op, numbered by its initiator.
    pub op: OpId,
    /// Type of the op and the place of its bytes.
    pub kind: SegmentKind,
    /// Offset of this range in the op's bytes.
    pub offset: u64,
    /// Payload bytes carried, at most [`MAX_PAYLOAD`]; zero in a read request and a cancel, and the
    /// operands in the request of an atomic op.
    pub length: u32,
    /// Bytes of the whole op; in a read request, the number of requested bytes; in the request of an
    /// atomic op, the operands.
    pub op_length: u64,
    /// Attachment of the sender for the transport or the algorithm of the flow.
    pub attached: Option<Attached>,
}

/// Attachment that a data packet carries in addition to its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// The credit that the packet was sent for, of a credit-based algorithm.
    Credit(CreditEcho),
    /// The order of packets, of a flow that spreads them over several paths.
    Order(Order),
}

/// Information for the receiver about missing packets, if packets of the flow may overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Number of the packet minus the smallest number that is still awaited. Older missing packets will never
    /// arrive.
    pub awaited_behind: u16,
    /// Whether the sender waits for an acknowledgement.
    pub ack_now: bool,
}

/// The kinds of data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// One-sided write.
    Write {
        /// Region that is written.
        region: RegionKey,
        /// Target of the op's first byte, as an offset from the region's start.
        address: u64,
    },
    /// Part of a two-sided message.
    Message,
    /// One-sided read; carries no payload.
    ReadRequest {
        /// Region that is read.
        region: RegionKey,
        /// Source of the op's first byte, as an offset from the region's start.
        address: u64,
    },
    /// Part of the answer to a read, or the answer to an atomic op: the word before the op. `op` is that of
    /// the request.
    ReadResponse,
    /// Cancellation by the initiator: no more of the op will arrive. Carries no payload.
    Cancel,
    /// Atomic op on the word at `address`, a multiple of [`WORD_BYTES`]. Carries two words, the
    /// expected value and the new one.
    CompareAndSwap {
        /// Region that is changed.
        region: RegionKey,
        /// The word, as an offset from the region's start.
        address: u64,
    },
    /// Atomic op on the word at `address`, a multiple of [`WORD_BYTES`]. Carries a word, which is
    /// added modulo 2^64.
    FetchAdd {
        /// Region that is changed.
        region: RegionKey,
        /// The word, as an offset from the region's start.
        address: u64,
    },
}

impl SegmentKind {
    /// Returns the bytes of the operands of an atomic op; `None` for other kinds.
    #[inline]
    #[must_use]
    pub const fn operand_bytes(&self) -> Option<u32> {
        match self {
            Self::CompareAndSwap { .. } => Some(2 * WORD_BYTES),
            Self::FetchAdd { .. } => Some(WORD_BYTES),
            _ => None,
        }
    }

    /// Returns the region of the peer that the packet names.
    #[inline]
    #[must_use]
    pub const fn region(&self) -> Option<RegionKey> {
        match self {
            Self::Write { region, .. }
            | Self::ReadRequest { region, .. }
            | Self::CompareAndSwap { region, .. }
            | Self::FetchAdd { region, .. } => Some(*region),
            Self::ReadResponse | Self::Message | Self::Cancel => None,
        }
    }

    /// Returns `true` if the packet is a request that the peer answers with a
    /// [`SegmentKind::ReadResponse`].
    #[inline]
    #[must_use]
    pub const fn is_request(&self) -> bool {
        matches!(
            self,
            Self::ReadRequest { .. } | Self::CompareAndSwap { .. } | Self::FetchAdd { .. }
        )
    }
}

/// Key of a registered memory region. To give the key to a peer, send its value ([`RegionKey::get`]); the
/// peer creates the same key from the value ([`RegionKey::new`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionKey(u64);

impl RegionKey {
    /// Returns the key with this value.
    #[inline]
    #[must_use]
    pub const fn new(key: u64) -> Self {
        Self(key)
    }

    /// Returns the value.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The content of Bolt's SRC packets (Bolt Listing 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Occupancy of the congested port in bytes, at most [`MAX_SIGNAL_QUEUE`].
    pub queue: u32,
    /// Code of the rate of the congested link.
    pub link_rate: u8,
    /// `t_data_tx` of the data packet: nanoseconds modulo 2^32.
    pub sent: u32,
}

/// Largest [`Signal::queue`], which has 24 bits.
pub const MAX_SIGNAL_QUEUE: u32 = (1 << 24) - 1;

/// Feedback of the receiver to the sender (Swift §3.1, §3.6 and App. B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The largest data packet number received.
    pub largest: PacketNumber,
    /// Bit i is set if `largest - i` was received (Swift §3.6); bit 0 is always set.
    pub bitmap: u128,
    /// The data packet whose timing this ACK reports: the newest processed.
    pub echo: PacketNumber,
    /// `t4 - t2`: time in the receiver's NIC queue plus processing (Swift §3.1). Travels as 4 bytes
    /// of nanoseconds (App. B): rounded to the nearest, at most 4.29 s.
    pub remote_queuing: Span,
    /// Switches that the data packet passed, from its TTL (Swift App. B).
    pub hops: u8,
    /// ECN-marked data packets received in this flow so far, modulo 2^32.
    pub marked: u32,
    /// Load of the receiver, 0 to [`MAX_RECEIVER_LEVEL`]; the algorithm defines its meaning.
    pub receiver_level: u8,
    /// Whether the packet `echo` carried an ECN mark when it arrived, for the policy that chose its path.
    pub echo_marked: bool,
    /// Count of the numbers from the first packet that is awaited and missing up to `largest`; 0 if none is
    /// missing. Present if the flow spreads its packets over paths.
    pub missing: Option<u16>,
}

impl Segment {
    /// Checks that the values are legal together.
    ///
    /// # Errors
    /// The first rule that the values break.
    pub fn check(&self) -> Result<(), Illegal> {
        if self.length > MAX_PAYLOAD {
            return Err(Illegal::PayloadTooLong);
        }
        match self.offset.checked_add(u64::from(self.length)) {
            Some(end) if end <= self.op_length => {}
            _ => return Err(Illegal::RangeBeyondOp),
        }
        match self.kind {
            SegmentKind::ReadRequest { .. } if self.length != 0 => {
                Err(Illegal::PayloadInReadRequest)
            }
            SegmentKind::Cancel if self.length != 0 => Err(Illegal::PayloadInCancel),
            SegmentKind::Write { address, .. } | SegmentKind::ReadRequest { address, .. }
                if address.checked_add(self.op_length).is_none() =>
            {
                Err(Illegal::AddressOverflow)
            }
            SegmentKind::CompareAndSwap { address, .. } | SegmentKind::FetchAdd { address, .. } => {
                self.check_atomic(address)
            }
            _ => Ok(()),
        }
    }

    /// Checks the request of an atomic op. Its range is within the op.
    fn check_atomic(&self, address: u64) -> Result<(), Illegal> {
        let operands = self.kind.operand_bytes().unwrap_or_default();
        if self.length != operands || self.op_length != u64::from(operands) {
            return Err(Illegal::Operands);
        }
        if !address.is_multiple_of(u64::from(WORD_BYTES)) {
            return Err(Illegal::UnalignedWord);
        }
        if address.checked_add(u64::from(WORD_BYTES)).is_none() {
            return Err(Illegal::AddressOverflow);
        }
        Ok(())
    }
}

impl Signal {
    /// Checks that the values are legal together.
    ///
    /// # Errors
    /// The first rule that the values break.
    pub fn check(&self) -> Result<(), Illegal> {
        if self.queue > MAX_SIGNAL_QUEUE {
            return Err(Illegal::SignalQueue);
        }
        if self.link_rate == 0 {
            return Err(Illegal::SignalRate);
        }
        Ok(())
    }
}

impl Ack {
    /// Checks that the values are legal together.
    ///
    /// # Errors
    /// The first rule that the values break.
    pub fn check(&self) -> Result<(), Illegal> {
        Received { largest: self.largest, bitmap: self.bitmap }.check()?;
        if self.echo > self.largest {
            return Err(Illegal::EchoBeyondLargest);
        }
        if self.receiver_level > MAX_RECEIVER_LEVEL {
            return Err(Illegal::ReceiverLevel);
        }
        Ok(())
    }
}
