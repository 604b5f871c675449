//! Encoding and decoding of Apus packet headers, without I/O and without allocation.
//!
//! Bytes are parsed once, into a [`Header`] in which every value is legal ([`Illegal`] lists the rules).
//! [`encode`] and [`decode`] process a header alone, [`seal`] and [`open`] a whole plain-mode datagram with
//! its checksum.
//!
//! # Layout
//!
//! All numbers are in network byte order. A datagram is
//!
//! ```text
//! offset size
//!      0    1  w: how many bytes that switches may write follow, 0 to 107    not authenticated
//!      1    w  the writable bytes of the congestion extension                     |
//! - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
//!      1+w  1  version = 1                                                   authenticated
//!      2+w  1  kind: 1 Write, 2 Message, 3 ReadRequest, 4 ReadResponse, 5 Ack,    |
//!              6 Cancel, 7 Reject, 12 Signal, 13 CompareAndSwap, 14 FetchAdd,     |
//!              15 Nack, 31 Trimmed;                                               |
//!              plus 16 if an op is carried whole (kinds 1, 2, 4, 13 and 14),      |
//!              plus 32 if there is an extension (kinds 1 to 6, 13 and 14),        |
//!              plus 128 if a credit is echoed,                                    |
//!              plus 192 if packets may overtake each other (data and kind 5)      |
//!      3+w  4  flow: index in the receiver's flow table                           |
//!      7+w  8  seq: packet number, data and ACKs counted apart                    |
//!     15+w  .  the rest of the extension, its type first                          |
//!      .    .  body, below                                                        |
//!      .    .  payload, `length` bytes; none in kinds 5, 7, 12, 15 and 31         |
//! - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
//!      .    4  plain mode: CRC-32C (Castagnoli) of the authenticated bytes
//! ```
//!
//! # Congestion extension
//!
//! The extension holds the fields of the flow's algorithm. The bytes that switches write come first. They are
//! outside the checksum, or the AEAD's associated data, which begins at [`authenticated_from`]. Everything
//! else is readable and authenticated, like the whole header: the type, fields that switches only read, and
//! all fields of an acknowledgement (Bolt §4.3: the crypt offset lies behind the transport header). The first
//! byte needs no protection: another value moves the start of the authenticated part, so authentication
//! fails. The algorithm must bound the effect of a forged writable field.
//!
//! ```text
//! type                w    writable by switches                authenticated, behind the type
//! 1 to 125         0-16    the algorithm's own                 1 n, n bytes (0-16): the algorithm's own
//! 129 to 253          0                                        1 n, n bytes (0-16): the algorithm's own
//! 126 Telemetry  3+13 n    1 ports passed, 2 path, n hops      none
//! 254 TelemetryEcho   0                                        1 n, 1 ports passed, 2 path, n hops
//! ```
//!
//! Types below 128 are for data packets; the same types plus 128 are for acknowledgements. Each algorithm
//! documents the meaning of its own bytes at its `FieldLayout`. Of Bolt's Listing 1, `data`, `ack` and `src`
//! follow from the kind; queue and link rate are in the Signal. A packet has 0 to 8 hops of 13 bytes (HPCC
//! Fig. 7). The path is the exclusive or of the ports' numbers (HPCC's `pathID`). Layout of a hop:
//!
//! ```text
//!      0    1  code of the link's rate, 1 and up: 1, 10, 25, 40, 50, 100, 200, 400, 800, 1600 Gb/s
//!      1    4  when the packet began to leave, nanoseconds modulo 2^32
//!      5    5  wire bytes that the port had sent, modulo 2^40
//!     10    3  bytes left waiting in the port, saturating
//! ```
//!
//! A switch holds no key: [`SwitchView`] reads a packet, writes the writable fields, and creates the Signal.
//!
//! # Bodies
//!
//! Offsets apply to a packet without extension.
//!
//! The body of a data packet, 42 bytes (kinds 1, 3, 13 and 14) or 26 bytes (kinds 2, 4
//! and 6):
//!
//! ```text
//!     15    8  op
//!     23    8  offset of this range in the op's bytes
//!     31    8  op_length: bytes of the whole op
//!     39    2  length: payload bytes carried
//!     41    8  region key        (kinds 1, 3, 13 and 14)
//!     49    8  address           (kinds 1, 3, 13 and 14)
//! ```
//!
//! Packets of kinds 1, 2, 4, 13 and 14 that carry their op whole (offset 0, `op_length` = `length`) have a
//! short form. It contains neither the offset nor `op_length`, and states the op by its distance from the
//! packet's number, if the distance fits. The short body has 24 bytes (kinds 17, 29 and 30) or 8 bytes (kinds
//! 18 and 20) instead of 42 or 26. The long form of such a packet is refused, so a header has one form only.
//! The short form reduces the latency of small ops: a sealed write of 64 B takes 127 bytes, and Linux copies
//! up to 128 bytes faster on processors with fast short `rep movsb` (`docs/dev/performance-notes.md`).
//!
//! ```text
//!     15    6  packet number - op, modulo 2^64, between -2^47 and 2^47 - 1
//!     21    2  length: payload bytes carried, which is the whole op
//!     23    8  region key        (kinds 17, 29 and 30)
//!     31    8  address           (kinds 17, 29 and 30)
//! ```
//!
//! The payload of an atomic op consists of words of 8 bytes, the lowest byte first (little-endian, as the word
//! in the region): the expected value and the new one (CompareAndSwap, 16 bytes), or the number to add modulo
//! 2^64 (FetchAdd, 8 bytes). Its address is a multiple of 8. The answer is a ReadResponse of 8 bytes, the word
//! before the op. Receivers execute the op when its request arrives for the first time, answer it, and keep
//! the answer until it is acknowledged; they acknowledge further copies of the request without effect.
//!
//! A data packet that was sent for a credit has 128 added to its kind, and these fields after its body:
//!
//! ```text
//!            4  number of the credit
//!            4  the time at which the credit left, as it carried it
//! ```
//!
//! A data packet of a flow that spreads its packets over several paths has 192 added to its kind, and these
//! fields after its body:
//!
//! ```text
//!            2  packet number - least number that is still awaited
//!            1  flags: 1 the sender waits for an acknowledgement
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
//!     56    1  receiver_level, 0 to 31; plus 128 if the packet `echo` arrived with an ECN mark
//!     57    2  kind 197 (5 plus 192) alone: numbers up to `largest` from the first that is awaited and
//!              missing; 0 if none is
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
//! The body of a Signal, 8 bytes, is the signal of a switch to the source of a data packet, whose
//! flow and packet number precede it (Bolt, Listing 1 and §4.3: the switch swaps the addresses and
//! trims the packet). Switches hold no keys, so a signal is a separate plain-mode datagram in every
//! mode, with the checksum (RoCEv2's invariant CRC in §4.3) and unauthenticated. The transport
//! accepts one per packet in flight, and only if it states the departure time of that packet.
//!
//! ```text
//!     15    3  queue: bytes in the congested port
//!     18    1  link_rate: code of the congested link's rate, 1 and up
//!     19    4  sent: t_data_tx of the data packet, nanoseconds modulo 2^32
//! ```
//!
//! The body of a Trimmed, 19 bytes, describes a data packet whose payload a switch removed. The flow and the
//! number of the packet precede the body. Like a Signal, a Trimmed is a separate plain-mode datagram in every
//! mode.
//!
//! ```text
//!     15    8  op
//!     23    8  offset of the packet's range in the op's bytes
//!     31    2  length: payload bytes removed, not 0
//!     33    1  flags: 1 at the last hop, 2 part of an answer
//! ```
//!
//! The body of a Nack, 9 bytes, tells the sender of a data packet that the packet arrived trimmed:
//!
//! ```text
//!     15    8  number of the trimmed packet
//!     23    1  flags: 1 at the last hop, 2 the header carried an ECN mark
//! ```
//!
//! Kinds 10 (CreditStop) and 11 (Notification) have no body. The bodies of kind 8 (CreditRequest), kind 24
//! (Grant) and kinds 26 and 27 (Probe of a path and its answer) have 4 bytes:
//!
//! ```text
//!     15    4  packets that the sender has to send, saturating; or the count granted; or number of the probe
//! ```
//!
//! The body of kind 9 (Credit) has 33 bytes and padding:
//!
//! ```text
//!     15    4  number: credits of the flow, modulo 2^32
//!     19    4  the time at which it left, nanoseconds modulo 2^32
//!     23    8  largest data packet number received; 0 if none was
//!     31   16  bitmap as in an ACK; 0 if none was
//!     47    1  padding: how many bytes follow, 0 to 16
//!     48    .  zeros
//! ```
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/datagram.rs")]
//! ```
#![no_std]

mod bytes;
mod codec;
mod control;
mod error;
mod extension;
mod header;
mod layout;
mod rate;
mod sealed;
mod switch;
mod version;

pub use codec::{Decoded, authenticated_from, decode, decode_extended, encode, encode_extended};
pub use control::{Control, Credit, CreditEcho, MAX_PADDING, Received};
pub use error::{DecodeError, EncodeError, Illegal};
pub use extension::{
    Extension, HOP_BYTES, Hop, Hops, MAX_EXTENSION_BYTES, MAX_HOPS, MAX_OWN_BYTES, OwnFields,
};
pub use header::{
    Ack, Attached, Body, Header, MAX_PAYLOAD, MAX_RECEIVER_LEVEL, MAX_SIGNAL_QUEUE, Nack, Order,
    RegionKey, Reject, RejectReason, Segment, SegmentKind, Signal, Trimmed, WORD_BYTES,
};
pub use layout::MAX_HEADER_BYTES;
pub use rate::{link_rate_code, rate_of_code};
pub use sealed::{CHECKSUM_BYTES, open, seal};
pub use switch::{SIGNAL_BYTES, SwitchView};
pub use version::VERSION;
