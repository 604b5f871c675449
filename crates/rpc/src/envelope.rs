//! The format of the messages of the RPC protocol.
//!
//! All numbers are big-endian. The first byte has the protocol version in its upper half and the kind of the message in its
//! lower half. The messages of the handshake have version 0, so that peers of any two versions understand them:
//!
//! ```text
//! Hello      kind 0, 0, lowest version, highest version, "ARPC"
//! Welcome    kind 1, 0, version, 0, max. calls: u16, lanes: u16, then per method: number: u16, length: u8, name
//! Refusal    kind 2, 0, lowest version, highest version
//! ```
//!
//! Each other message begins with the first byte, flags, a word and the identifier of the call:
//!
//! ```text
//! Request    kind 3, flags, method: u16, slot: u16, turn: u16, remaining us: u32 (0: no deadline),
//!            [lane: u16, sequence: u32], [grant], payload
//! Response   kind 4, flags, status: u16, slot: u16, turn: u16, [grant], payload
//! Cancel     kind 5, 0, 0: u16, slot: u16, turn: u16
//! Advance    kind 6, flags, 0: u16, slot: u16, turn: u16, position: u64
//! Consumed   kind 7, flags, 0: u16, slot: u16, turn: u16, position: u64
//! grant      region key: u64, bytes of the region: u64, length of the body: u64 (2^64 - 1: unknown)
//! ```
//!
//! Flags: 1 lane, 2 grant, 4 the region holds the whole body, 8 the position is the end of the body, 16 the sender gives up
//! the body. All other bits are 0.
//! A parser rejects every message that an encoder of the same version does not produce.

use std::str;

use bytes::{Buf, TryGetError};
use thiserror::Error;

/// Version of the protocol that this crate implements.
pub const VERSION: u8 = 1;

/// Number of bytes before the payload of a request without lane and grant.
pub const REQUEST_BYTES: usize = 12;
/// Number of bytes before the payload of a response without grant.
pub const RESPONSE_BYTES: usize = 8;
/// Number of bytes of a lane in a request.
const LANE_BYTES: usize = 6;
/// Number of bytes of a grant.
pub(crate) const GRANT_BYTES: usize = 24;

const MAGIC: &[u8; 4] = b"ARPC";
/// Length of a body that is not known when the body begins.
const UNKNOWN: u64 = u64::MAX;

const HELLO: u8 = 0;
const WELCOME: u8 = 1;
const REFUSAL: u8 = 2;
const REQUEST: u8 = 3;
const RESPONSE: u8 = 4;
const CANCEL: u8 = 5;
const ADVANCE: u8 = 6;
const CONSUMED: u8 = 7;

const FLAG_LANE: u8 = 1;
const FLAG_GRANT: u8 = 2;
const FLAG_WHOLE: u8 = 4;
const FLAG_END: u8 = 8;
const FLAG_GIVEN_UP: u8 = 16;

/// Identifier of a call on a connection: a slot of the client's table, and the number of the slot's use, modulo 2^16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// Slot of the table, below the number of calls that the server allows.
    pub slot: u16,
    /// Number of the use of this slot.
    pub turn: u16,
}

/// Position of a call in an ordered lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePlace {
    /// Number of the lane, below the number of lanes that the server allows.
    pub lane: u16,
    /// Number of the call in the lane, from 0 upwards, modulo 2^32.
    pub sequence: u32,
}

/// Right to read a body from a region of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Region key.
    pub region: u64,
    /// Length of the region in bytes. Byte `n` of the body is at `n` modulo this number.
    pub capacity: u64,
    /// Length of the body in bytes, if the sender knows it.
    pub length: Option<u64>,
    /// Whether the region contains the whole body from the beginning.
    pub whole: bool,
}

/// How a call ended at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// The handler has answered.
    Done = 0,
    /// The handler has failed. The payload is a code (u32) and a text in UTF-8.
    Failed = 1,
    /// The server has as many calls as its configuration allows. The call did not run.
    Overloaded = 2,
    /// The deadline passed before the handler ran.
    Expired = 3,
    /// No method has this number.
    UnknownMethod = 4,
    /// The call was cancelled before its handler ran.
    CancelledBefore = 5,
    /// The call was cancelled while its handler ran.
    Cancelled = 6,
    /// The handler panicked.
    Panicked = 7,
    /// The handler dropped the call without an answer.
    Abandoned = 8,
    /// The answer of the handler is longer than the maximum length of a message.
    TooLong = 9,
    /// The server is stopping. The call did not run.
    Stopping = 10,
    /// The deadline passed while the handler ran.
    ExpiredRunning = 11,
}

impl Status {
    const ALL: [Self; 12] = [
        Self::Done,
        Self::Failed,
        Self::Overloaded,
        Self::Expired,
        Self::UnknownMethod,
        Self::CancelledBefore,
        Self::Cancelled,
        Self::Panicked,
        Self::Abandoned,
        Self::TooLong,
        Self::Stopping,
        Self::ExpiredRunning,
    ];
}

/// Whether a body continues after a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes may follow.
    More,
    /// The body ends here.
    End,
    /// The sender has given up the body.
    GivenUp,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The first message of a client.
    Hello {
        /// Lowest version that the client supports.
        min: u8,
        /// Highest version that the client supports.
        max: u8,
    },
    /// The answer to a Hello. The payload is the table of methods ([`decode_methods`]).
    Welcome {
        /// The version of all further messages.
        version: u8,
        /// Maximum number of calls of this connection that the server holds.
        calls: u16,
        /// Number of ordered lanes of this connection.
        lanes: u16,
    },
    /// The answer to a Hello without a common version.
    Refusal {
        /// Lowest version that the server supports.
        min: u8,
        /// Highest version that the server supports.
        max: u8,
    },
    /// A call.
    Request {
        /// Identifier of the call.
        id: CallId,
        /// Number of the method.
        method: u16,
        /// Time until the deadline in microseconds; `None` without a deadline.
        remaining_us: Option<u32>,
        /// Position of the call in an ordered lane, if it belongs to one.
        place: Option<LanePlace>,
        /// Body of the request, if it has one.
        grant: Option<Grant>,
    },
    /// The end of a call.
    Response {
        /// Identifier of the call.
        id: CallId,
        /// How the call ended.
        status: Status,
        /// Body of the response, if it has one.
        grant: Option<Grant>,
    },
    /// The client does not need the answer any more.
    Cancel {
        /// Identifier of the call.
        id: CallId,
    },
    /// The sender of a body has put further bytes into its region.
    Advance {
        /// Identifier of the call.
        id: CallId,
        /// Number of bytes of the body so far.
        position: u64,
        /// Whether the body continues.
        progress: Progress,
    },
    /// The receiver of a body has read further bytes.
    Consumed {
        /// Identifier of the call.
        id: CallId,
        /// Number of bytes read so far.
        position: u64,
        /// Whether the receiver has stopped reading.
        end: bool,
    },
}

/// Reason why a message does not belong to this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The message ends within its header.
    #[error("the message ends within its header")]
    Truncated,
    /// The version is not [`VERSION`] or, in a message of the handshake, not 0.
    #[error("protocol version {0} instead of {VERSION}")]
    Version(u8),
    /// No kind of message has this number.
    #[error("unknown kind of message {0}")]
    Kind(u8),
    /// A flag is set that this kind of message does not have.
    #[error("flags {0:#x} are not those of this kind of message")]
    Flags(u8),
    /// A field has a value that no encoder writes.
    #[error("invalid {0}")]
    Field(&'static str),
    /// Bytes follow a message that has no payload.
    #[error("{0} bytes follow a message without payload")]
    Trailing(usize),
}

impl From<TryGetError> for Malformed {
    fn from(_: TryGetError) -> Self {
        Self::Truncated
    }
}

fn read_id(rest: &mut &[u8]) -> Result<CallId, Malformed> {
    Ok(CallId { slot: rest.try_get_u16()?, turn: rest.try_get_u16()? })
}

fn read_grant(rest: &mut &[u8], flags: u8) -> Result<Option<Grant>, Malformed> {
    let whole = flags & FLAG_WHOLE != 0;
    if flags & FLAG_GRANT == 0 {
        return if whole { Err(Malformed::Flags(flags)) } else { Ok(None) };
    }
    let (region, capacity) = (rest.try_get_u64()?, rest.try_get_u64()?);
    let length = Some(rest.try_get_u64()?).filter(|&length| length != UNKNOWN);
    if whole && length != Some(capacity) {
        return Err(Malformed::Field("length of a whole body"));
    }
    if capacity == 0 && !whole {
        return Err(Malformed::Field("size of a region"));
    }
    Ok(Some(Grant { region, capacity, length, whole }))
}

fn read_zero(rest: &mut &[u8], name: &'static str) -> Result<(), Malformed> {
    if rest.try_get_u16()? == 0 { Ok(()) } else { Err(Malformed::Field(name)) }
}

fn allow(flags: u8, allowed: u8) -> Result<(), Malformed> {
    if flags & !allowed == 0 { Ok(()) } else { Err(Malformed::Flags(flags)) }
}

/// Parses a message. Returns its header and the position of its payload.
///
/// # Errors
/// If no encoder of this version produces the message.
pub fn decode(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
    let mut rest = bytes;
    let (first, flags) = (rest.try_get_u8()?, rest.try_get_u8()?);
    let (version, kind) = (first >> 4, first & 0xf);
    if kind > CONSUMED {
        return Err(Malformed::Kind(kind));
    }
    let expected = if kind <= REFUSAL { 0 } else { VERSION };
    if version != expected {
        return Err(Malformed::Version(version));
    }
    let header = match kind {
        HELLO => {
            allow(flags, 0)?;
            let (min, max) = versions(&mut rest)?;
            let mut magic = [0; MAGIC.len()];
            rest.try_copy_to_slice(&mut magic)?;
            if magic != *MAGIC {
                return Err(Malformed::Field("identification of the protocol"));
            }
            Header::Hello { min, max }
        }
        WELCOME => {
            allow(flags, 0)?;
            let version = rest.try_get_u8()?;
            if rest.try_get_u8()? != 0 {
                return Err(Malformed::Field("padding"));
            }
            let (calls, lanes) = (rest.try_get_u16()?, rest.try_get_u16()?);
            if calls == 0 {
                return Err(Malformed::Field("number of calls"));
            }
            Header::Welcome { version, calls, lanes }
        }
        REFUSAL => {
            allow(flags, 0)?;
            let (min, max) = versions(&mut rest)?;
            Header::Refusal { min, max }
        }
        REQUEST => {
            allow(flags, FLAG_LANE | FLAG_GRANT | FLAG_WHOLE)?;
            let (method, id) = (rest.try_get_u16()?, read_id(&mut rest)?);
            let remaining_us = Some(rest.try_get_u32()?).filter(|&us| us != 0);
            let place = if flags & FLAG_LANE != 0 {
                Some(LanePlace { lane: rest.try_get_u16()?, sequence: rest.try_get_u32()? })
            } else {
                None
            };
            let grant = read_grant(&mut rest, flags)?;
            Header::Request { id, method, remaining_us, place, grant }
        }
        RESPONSE => {
            allow(flags, FLAG_GRANT | FLAG_WHOLE)?;
            let status = usize::from(rest.try_get_u16()?);
            let status = *Status::ALL.get(status).ok_or(Malformed::Field("status"))?;
            let id = read_id(&mut rest)?;
            let grant = read_grant(&mut rest, flags)?;
            if grant.is_some() && status != Status::Done {
                return Err(Malformed::Field("body of a failed call"));
            }
            Header::Response { id, status, grant }
        }
        CANCEL => {
            allow(flags, 0)?;
            read_zero(&mut rest, "word")?;
            Header::Cancel { id: read_id(&mut rest)? }
        }
        // Of the kinds, only 6 and 7 are left.
        _ => {
            allow(flags, if kind == ADVANCE { FLAG_END | FLAG_GIVEN_UP } else { FLAG_END })?;
            read_zero(&mut rest, "word")?;
            let (id, position) = (read_id(&mut rest)?, rest.try_get_u64()?);
            let progress = match flags {
                0 => Progress::More,
                FLAG_END => Progress::End,
                FLAG_GIVEN_UP => Progress::GivenUp,
                _ => return Err(Malformed::Flags(flags)),
            };
            match kind {
                ADVANCE => Header::Advance { id, position, progress },
                _ => Header::Consumed { id, position, end: progress == Progress::End },
            }
        }
    };
    match header {
        Header::Welcome { .. } | Header::Request { .. } | Header::Response { .. } => {
            Ok((header, bytes.len() - rest.len()))
        }
        _ if rest.is_empty() => Ok((header, bytes.len())),
        _ => Err(Malformed::Trailing(rest.len())),
    }
}

fn versions(rest: &mut &[u8]) -> Result<(u8, u8), Malformed> {
    let (min, max) = (rest.try_get_u8()?, rest.try_get_u8()?);
    if min == 0 || min > max || max > 15 {
        return Err(Malformed::Field("range of versions"));
    }
    Ok((min, max))
}

/// Returns the message with this header and payload. If the header has no payload, `payload` is ignored.
#[must_use]
pub fn encode(header: &Header, payload: &[u8]) -> Vec<u8> {
    let length = REQUEST_BYTES + LANE_BYTES + GRANT_BYTES;
    let mut out = Vec::with_capacity(match header {
        Header::Request { place: None, grant: None, .. } => REQUEST_BYTES + payload.len(),
        Header::Response { grant: None, .. } => RESPONSE_BYTES + payload.len(),
        Header::Request { .. } | Header::Response { .. } | Header::Welcome { .. } => {
            length + payload.len()
        }
        _ => length,
    });
    match *header {
        Header::Hello { min, max } => {
            out.extend([HELLO, 0, min, max]);
            out.extend(MAGIC);
        }
        Header::Welcome { version, calls, lanes } => {
            out.extend([WELCOME, 0, version, 0]);
            out.extend(calls.to_be_bytes());
            out.extend(lanes.to_be_bytes());
            out.extend(payload);
        }
        Header::Refusal { min, max } => out.extend([REFUSAL, 0, min, max]),
        Header::Request { id, method, remaining_us, place, grant } => {
            let lane = if place.is_some() { FLAG_LANE } else { 0 };
            put_prefix(&mut out, REQUEST, lane | grant_flags(grant.as_ref()), method, id);
            out.extend(remaining_us.unwrap_or(0).to_be_bytes());
            if let Some(LanePlace { lane, sequence }) = place {
                out.extend(lane.to_be_bytes());
                out.extend(sequence.to_be_bytes());
            }
            put_grant(&mut out, grant.as_ref());
            out.extend(payload);
        }
        Header::Response { id, status, grant } => {
            put_prefix(&mut out, RESPONSE, grant_flags(grant.as_ref()), status as u16, id);
            put_grant(&mut out, grant.as_ref());
            out.extend(payload);
        }
        Header::Cancel { id } => put_prefix(&mut out, CANCEL, 0, 0, id),
        Header::Advance { id, position, progress } => {
            let flags = match progress {
                Progress::More => 0,
                Progress::End => FLAG_END,
                Progress::GivenUp => FLAG_GIVEN_UP,
            };
            put_prefix(&mut out, ADVANCE, flags, 0, id);
            out.extend(position.to_be_bytes());
        }
        Header::Consumed { id, position, end } => {
            put_prefix(&mut out, CONSUMED, if end { FLAG_END } else { 0 }, 0, id);
            out.extend(position.to_be_bytes());
        }
    }
    out
}

fn put_prefix(out: &mut Vec<u8>, kind: u8, flags: u8, word: u16, id: CallId) {
    let ([a, b], [c, d], [e, f]) =
        (word.to_be_bytes(), id.slot.to_be_bytes(), id.turn.to_be_bytes());
    out.extend([VERSION << 4 | kind, flags, a, b, c, d, e, f]);
}

fn grant_flags(grant: Option<&Grant>) -> u8 {
    match grant {
        None => 0,
        Some(Grant { whole: false, .. }) => FLAG_GRANT,
        Some(Grant { whole: true, .. }) => FLAG_GRANT | FLAG_WHOLE,
    }
}

fn put_grant(out: &mut Vec<u8>, grant: Option<&Grant>) {
    if let Some(Grant { region, capacity, length, .. }) = grant {
        out.extend(region.to_be_bytes());
        out.extend(capacity.to_be_bytes());
        out.extend(length.unwrap_or(UNKNOWN).to_be_bytes());
    }
}

/// Returns the payload of a Welcome: the names of methods, which are numbered in this order from 0 upwards. Returns `None` if
/// there are more than 65536 names, or if a name is empty or longer than 255 bytes.
#[must_use]
pub fn encode_methods<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (number, name) in names.enumerate() {
        let length = u8::try_from(name.len()).ok().filter(|&length| length > 0)?;
        out.extend(u16::try_from(number).ok()?.to_be_bytes());
        out.push(length);
        out.extend(name.as_bytes());
    }
    Some(out)
}

/// Parses the payload of a Welcome. Returns the numbers and names of the methods.
///
/// # Errors
/// If the table is truncated, or a name is empty or not UTF-8.
pub fn decode_methods(bytes: &[u8]) -> Result<Vec<(u16, &str)>, Malformed> {
    let (mut rest, mut methods) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (number, length) = (rest.try_get_u16()?, usize::from(rest.try_get_u8()?));
        if length == 0 {
            return Err(Malformed::Field("name of a method"));
        }
        let (name, others) = rest.split_at_checked(length).ok_or(Malformed::Truncated)?;
        rest = others;
        let name = str::from_utf8(name).map_err(|_| Malformed::Field("name of a method"))?;
        methods.push((number, name));
    }
    Ok(methods)
}

/// Returns the payload of the response of a handler that has failed.
#[must_use]
pub fn encode_failure(code: u32, text: &str) -> Vec<u8> {
    [&code.to_be_bytes()[..], text.as_bytes()].concat()
}

/// Parses the payload of the response of a handler that has failed. Returns its code and text. Bytes that are not UTF-8 are
/// replaced.
///
/// # Errors
/// If the payload has fewer than four bytes.
pub fn decode_failure(bytes: &[u8]) -> Result<(u32, String), Malformed> {
    let (code, text) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
    Ok((u32::from_be_bytes(*code), String::from_utf8_lossy(text).into_owned()))
}

#[cfg(test)]
mod tests;
