//! The congestion extension: the fields of a packet that belong to its flow's algorithm.
//!
//! Bytes that switches may write precede the authenticated part of the packet; bytes that they only
//! read are in it. The crate's documentation shows the layout.

use crate::bytes::Writer;
use crate::error::{DecodeError, Illegal};
use crate::header::Body;

/// Maximum number of hops that fit into a packet.
pub const MAX_HOPS: usize = 8;
/// Bytes of one hop's telemetry.
pub const HOP_BYTES: usize = 13;
/// Maximum number of bytes that an extension adds to a header.
pub const MAX_EXTENSION_BYTES: usize = 2 + HOPS_HEAD_BYTES + MAX_HOPS * HOP_BYTES;
/// Bytes before the hops: the number of ports passed, and the identifier of their path.
const HOPS_HEAD_BYTES: usize = 3;

/// Maximum number of bytes of an algorithm's fields that switches may write, and of those that are
/// authenticated.
pub const MAX_OWN_BYTES: usize = 16;

/// Identifier of telemetry; an algorithm's own fields have 1 to 125.
const TELEMETRY: u8 = 126;
/// Bit of the type byte that marks the fields of an acknowledgement.
const ECHO: u8 = 0x80;

/// The fields of a packet that belong to its flow's algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension<'a> {
    /// No fields.
    #[default]
    None,
    /// The algorithm's own fields.
    Own(OwnFields<'a>),
    /// Space for the telemetry of switches on a data packet (HPCC's INT).
    Telemetry(Hops<'a>),
    /// Telemetry of the echoed data packet, on an acknowledgement.
    TelemetryEcho(Hops<'a>),
}

/// Fields whose meaning is private to their algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFields<'a> {
    /// Identifier, 1 to 125.
    pub id: u8,
    /// Whether the fields belong to an acknowledgement.
    pub is_echo: bool,
    /// Bytes that switches may write, at most [`MAX_OWN_BYTES`]; none on an acknowledgement.
    pub writable: &'a [u8],
    /// Bytes that are authenticated, at most [`MAX_OWN_BYTES`].
    pub authenticated: &'a [u8],
}

/// The telemetry of one switch (HPCC Fig. 7).
///
/// HPCC packs a hop into 8 bytes by counting time to 2^24 ns, bytes sent in steps of 128 to 2^20
/// and the queue in steps of 80; here each is a whole number of nanoseconds or bytes, so that a
/// sender computes with the switch's exact values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Code of the link's rate (HPCC `B`), as in a [`Signal`](crate::Signal).
    pub link_rate: u8,
    /// Time at which the packet began to leave, nanoseconds modulo 2^32 (`TS`).
    pub at: u32,
    /// Wire bytes that the port had sent, modulo 2^40 (`txBytes`).
    pub sent: u64,
    /// Bytes that remain queued in the port, at most 2^24 - 1 (`qLen`).
    pub queue: u32,
}

impl Hop {
    /// Returns the hop as bytes; fields are truncated to their bits, the queue saturates.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HOP_BYTES] {
        let mut bytes = [0; HOP_BYTES];
        bytes[0] = self.link_rate;
        bytes[1..5].copy_from_slice(&self.at.to_be_bytes());
        bytes[5..10].copy_from_slice(&self.sent.to_be_bytes()[3..]);
        bytes[10..].copy_from_slice(&self.queue.min((1 << 24) - 1).to_be_bytes()[1..]);
        bytes
    }

    /// Reads a hop from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; HOP_BYTES]) -> Self {
        let [link_rate, a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Self {
            link_rate,
            at: u32::from_be_bytes([a, b, c, d]),
            sent: u64::from_be_bytes([0, 0, 0, e, f, g, h, i]),
            queue: u32::from_be_bytes([0, j, k, l]),
        }
    }
}

/// The hops of a packet, in place in its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops<'a> {
    /// Number of ports passed that append telemetry, including ports whose hops did not fit.
    passed: u8,
    /// Exclusive or of the numbers of these ports (HPCC `pathID`).
    path: u16,
    /// Space for a number of hops, at most [`MAX_HOPS`].
    area: &'a [u8],
}

impl<'a> Hops<'a> {
    /// Returns space for `hops` hops (at most [`MAX_HOPS`]) of which none is passed.
    #[must_use]
    pub fn room(hops: usize) -> Hops<'static> {
        static EMPTY: [u8; MAX_HOPS * HOP_BYTES] = [0; MAX_HOPS * HOP_BYTES];
        Hops { passed: 0, path: 0, area: &EMPTY[..hops.min(MAX_HOPS) * HOP_BYTES] }
    }

    /// Reads the hops in these bytes: at most [`MAX_HOPS`] whole hops on this path.
    #[must_use]
    pub fn noted(path: u16, bytes: &'a [u8]) -> Self {
        let hops = (bytes.len() / HOP_BYTES).min(MAX_HOPS);
        // At most `MAX_HOPS`.
        Self { passed: hops as u8, path, area: &bytes[..hops * HOP_BYTES] }
    }

    /// Returns the identifier of the path: the exclusive or of the numbers of the ports passed.
    #[must_use]
    pub fn path(&self) -> u16 {
        self.path
    }

    /// Returns the number of hops that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.area.len() / HOP_BYTES
    }

    /// Returns the hops, in the order in which the packet passed them.
    pub fn iter(&self) -> impl Iterator<Item = Hop> + 'a {
        let (hops, _) = self.area.as_chunks::<HOP_BYTES>();
        hops.iter().take(usize::from(self.passed)).map(Hop::from_bytes)
    }
}

impl<'a> Extension<'a> {
    /// Returns the type byte; `None` without extension.
    pub(crate) fn kind(&self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::Own(own) => Some(if own.is_echo { own.id | ECHO } else { own.id }),
            Self::Telemetry(_) => Some(TELEMETRY),
            Self::TelemetryEcho(_) => Some(TELEMETRY | ECHO),
        }
    }

    /// Returns the number of bytes that switches may write, without the byte that counts them.
    #[must_use]
    pub fn writable_len(&self) -> usize {
        match self {
            Self::None | Self::TelemetryEcho(_) => 0,
            Self::Own(own) => own.writable.len(),
            Self::Telemetry(hops) => HOPS_HEAD_BYTES + hops.area.len(),
        }
    }

    /// Returns the number of bytes in the authenticated part, the type byte included.
    #[must_use]
    pub fn authenticated_len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Own(own) => 2 + own.authenticated.len(),
            Self::Telemetry(_) => 1,
            Self::TelemetryEcho(hops) => 2 + HOPS_HEAD_BYTES + hops.area.len(),
        }
    }

    /// Returns the number of bytes that the extension adds to a header.
    #[inline]
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.writable_len() + self.authenticated_len()
    }

    /// Checks that a packet with this body may have this extension, and that its identifier and lengths are
    /// valid.
    ///
    /// # Errors
    /// The rule that the extension breaks.
    #[inline]
    pub fn check(&self, body: &Body) -> Result<(), Illegal> {
        let is_echo = match self {
            Self::None => return Ok(()),
            Self::Own(own) => {
                if own.id == 0 || own.id >= TELEMETRY {
                    return Err(Illegal::ExtensionId);
                }
                let echo_writable = own.is_echo && !own.writable.is_empty();
                let longest = own.writable.len().max(own.authenticated.len());
                if echo_writable || longest > MAX_OWN_BYTES {
                    return Err(Illegal::ExtensionLength);
                }
                own.is_echo
            }
            Self::Telemetry(_) => false,
            Self::TelemetryEcho(_) => true,
        };
        let fits =
            if is_echo { matches!(body, Body::Ack(_)) } else { matches!(body, Body::Data(_)) };
        if fits { Ok(()) } else { Err(Illegal::ExtensionOfBody) }
    }

    /// Writes the part that switches may change. The extension must have been checked.
    pub(crate) fn write_writable(&self, writer: &mut Writer<'_>) {
        match self {
            Self::None | Self::TelemetryEcho(_) => {}
            Self::Own(own) => writer.put_slice(own.writable),
            Self::Telemetry(hops) => {
                writer.put([hops.passed]);
                writer.put(hops.path.to_be_bytes());
                writer.put_slice(hops.area);
            }
        }
    }

    /// Writes the authenticated part.
    pub(crate) fn write_authenticated(&self, writer: &mut Writer<'_>) {
        let Some(kind) = self.kind() else { return };
        writer.put([kind]);
        match self {
            Self::None | Self::Telemetry(_) => {}
            Self::Own(own) => {
                // At most `MAX_OWN_BYTES`.
                writer.put([own.authenticated.len() as u8]);
                writer.put_slice(own.authenticated);
            }
            Self::TelemetryEcho(hops) => {
                writer.put([hops.capacity() as u8, hops.passed]);
                writer.put(hops.path.to_be_bytes());
                writer.put_slice(hops.area);
            }
        }
    }

    /// Reads the extension whose type byte is the first of `authenticated`; returns it with the
    /// number of authenticated bytes that it occupies.
    #[inline]
    pub(crate) fn read(
        writable: &'a [u8],
        authenticated: &'a [u8],
    ) -> Result<(Self, usize), DecodeError> {
        let available = authenticated.len();
        let cut = |needed| DecodeError::Truncated { needed, available };
        let &kind = authenticated.first().ok_or(cut(1))?;
        let (id, is_echo) = (kind & !ECHO, kind & ECHO != 0);
        if id == 0 || id > TELEMETRY {
            return Err(DecodeError::Extension(kind));
        }
        if id == TELEMETRY && !is_echo {
            let &[passed, a, b, ref area @ ..] = writable else {
                return Err(Illegal::WritableLength.into());
            };
            return Ok((Self::Telemetry(hops(passed, u16::from_be_bytes([a, b]), area)?), 1));
        }
        if is_echo && !writable.is_empty() {
            return Err(Illegal::WritableLength.into());
        }
        let count = usize::from(*authenticated.get(1).ok_or(cut(2))?);
        if id == TELEMETRY {
            let length = 2 + HOPS_HEAD_BYTES + count * HOP_BYTES;
            let fields = authenticated.get(2..length).ok_or(cut(length))?;
            let &[passed, a, b, ref area @ ..] = fields else { return Err(cut(length)) };
            let hops = hops(passed, u16::from_be_bytes([a, b]), area)?;
            return Ok((Self::TelemetryEcho(hops), length));
        }
        if writable.len().max(count) > MAX_OWN_BYTES {
            return Err(Illegal::ExtensionLength.into());
        }
        let length = 2 + count;
        let authenticated = authenticated.get(2..length).ok_or(cut(length))?;
        Ok((Self::Own(OwnFields { id, is_echo, writable, authenticated }), length))
    }
}

fn hops(passed: u8, path: u16, area: &[u8]) -> Result<Hops<'_>, Illegal> {
    if !area.len().is_multiple_of(HOP_BYTES) || area.len() > MAX_HOPS * HOP_BYTES {
        return Err(Illegal::TelemetryRoom);
    }
    Ok(Hops { passed, path, area })
}
