//! Apus packet headers to bytes and back, without I/O and without allocation.
//!
//! Bytes are parsed once, into a [`Header`] whose every value is legal ([`Illegal`] lists the rules);
//! [`encode`] and [`decode`] do this for the header alone, [`seal`] and [`open`] for a whole
//! plain-mode datagram with its checksum.
//!
//! # Layout
//!
//! All numbers are in network byte order. A datagram is
//!
//! ```text
//! offset size
//!      0    1  congestion extension: 0 = none; other kinds are reserved      not authenticated
//!              (a kind's own fields would follow here, before the version)
//! - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
//!      1    1  version = 1                                                   authenticated
//!      2    1  kind: 1 Write, 2 Message, 3 ReadRequest, 4 ReadResponse, 5 Ack,    |
//!              6 Cancel, 7 Reject, 12 Signal                                      |
//!      3    4  flow: index in the receiver's flow table                           |
//!      7    8  seq: packet number, data and ACKs counted apart                    |
//!     15    .  body, below                                                        |
//!      .    .  payload, `length` bytes; none in kinds 5, 7 and 12                 |
//! - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
//!      .    4  plain mode: CRC-32C (Castagnoli) of the authenticated bytes
//! ```
//!
//! Switches may change the extension (telemetry, credits, Bolt's flags), so the checksum, or an
//! AEAD's tag, starts behind it, at [`AUTHENTICATED_FROM`]. What a forged extension can do is the
//! algorithm's to bound. Unknown extensions are refused, because their length is unknown.
//!
//! The body of a data packet, 42 bytes (kinds 1 and 3) or 26 bytes (kinds 2, 4
//! and 6):
//!
//! ```text
//!     15    8  op
//!     23    8  offset of this range in the op's bytes
//!     31    8  op_length: bytes of the whole op
//!     39    2  length: payload bytes carried
//!     41    8  region key        (kinds 1 and 3)
//!     49    8  address           (kinds 1 and 3)
//! ```
//!
//! A data packet that was sent for a credit has 128 added to its kind and, behind its body,
//!
//! ```text
//!            4  number of the credit
//!            4  the time at which the credit left, as it carried it
//! ```
//!
//! The body of an ACK, 42 bytes; `remote_queuing` and `hops` are the two fields of Swift, App. B:
//!
//! ```text
//!     15    8  largest packet number received
//!     23   16  bitmap: bit i says that `largest - i` was received
//!     39    8  echo: the packet whose timing this ACK reports
//!     47    4  remote_queuing in nanoseconds, saturating
//!     51    1  hops: switches on the forward path
//!     52    4  marked: ECN-marked packets received in this flow, modulo 2^32
//!     56    1  receiver_level, 0 to 31
//! ```
//!
//! The body of a Reject, 9 bytes:
//!
//! ```text
//!     15    8  op
//!     23    1  reason: 1 no such region, 2 not allowed, 3 out of bounds, 4 too long,
//!              5 region withdrawn under way
//! ```
//!
//! The body of a Signal, 8 bytes: what a switch says to the source of a data packet, whose flow and
//! packet number stand before it (Bolt, Listing 1 and §4.3: the switch swaps the addresses and trims
//! the packet). Switches hold no keys, so it is a datagram of its own, unauthenticated in every mode:
//! the transport heeds it once per packet in flight, and only if it states when that packet left.
//!
//! ```text
//!     15    3  queue: bytes in the congested port
//!     18    1  link_rate: code of the congested link's rate, 1 and up
//!     19    4  sent: t_data_tx of the data packet, nanoseconds modulo 2^32
//! ```
//!
//! Kinds 8 (CreditRequest), 10 (CreditStop) and 11 (Notification) have no body. That of kind 9, a
//! Credit, has 33 bytes and its padding:
//!
//! ```text
//!     15    4  number: credits of the flow, modulo 2^32
//!     19    4  the time at which it left, nanoseconds modulo 2^32
//!     23    8  largest data packet number received; 0 if none was
//!     31   16  bitmap as in an ACK; 0 if none was
//!     47    1  padding: how many bytes follow, 0 to 16
//!     48    .  zeros
//! ```
#![no_std]

mod codec;
mod control;
mod error;
mod header;
mod sealed;

pub use codec::{AUTHENTICATED_FROM, MAX_HEADER_BYTES, VERSION, decode, encode};
pub use control::{Control, Credit, CreditEcho, MAX_PADDING, Received};
pub use error::{DecodeError, EncodeError, Illegal};
pub use header::{
    Ack, Body, Header, MAX_PAYLOAD, MAX_RECEIVER_LEVEL, MAX_SIGNAL_QUEUE, RegionKey, Reject,
    RejectReason, Segment, SegmentKind, Signal,
};
pub use sealed::{CHECKSUM_BYTES, open, seal};
