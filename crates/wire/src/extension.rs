//! The congestion extension: the fields of a packet that belong to its flow's algorithm.
//!
//! What switches may write stands before the authenticated part of the packet, what they only read
//! within it; the crate's documentation draws both.

use crate::bytes::{Reader, Writer};
use crate::error::{DecodeError, Illegal};
use crate::header::Body;

/// The most hops that a packet has room for.
pub const MAX_HOPS: usize = 8;
/// Bytes of one hop's telemetry.
pub const HOP_BYTES: usize = 13;
/// The most bytes that an extension adds to a header.
pub const MAX_EXTENSION_BYTES: usize = 2 + HOPS_HEAD_BYTES + MAX_HOPS * HOP_BYTES;
/// Bytes before the hops: how many ports were passed, and which path they make up.
const HOPS_HEAD_BYTES: usize = 3;

/// The type byte. None is 0: a header without extension has no such byte.
mod kind {
    pub(super) const BOLT: u8 = 1;
    pub(super) const BOLT_ECHO: u8 = 2;
    pub(super) const TELEMETRY: u8 = 3;
    pub(super) const TELEMETRY_ECHO: u8 = 4;
    pub(super) const RCP: u8 = 5;
    pub(super) const RCP_ECHO: u8 = 6;
}

/// Bits of Bolt's writable byte, and of its authenticated one.
const INC: u8 = 1;
const DEC: u8 = 2;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const FAVOURED: u8 = 4;

/// The fields of a packet that belong to its flow's algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension<'a> {
    /// It has none.
    #[default]
    None,
    /// Bolt's, on a data packet.
    Bolt(Bolt),
    /// Bolt's, on an acknowledgement.
    BoltEcho {
        /// Data packets of the flow that arrived with INC, modulo 2^32.
        granted: u32,
    },
    /// On a data packet: room for what switches note (HPCC's INT).
    Telemetry(Hops<'a>),
    /// On an acknowledgement: what switches noted on the data packet that it echoes.
    TelemetryEcho(Hops<'a>),
    /// RCP's, on a data packet.
    Rcp {
        /// The smallest rate of the ports so far, in steps of 100 kb/s; 24 bits.
        rate: u32,
        /// The sender's RTT in steps of 250 ns; 0 if it knows none.
        rtt: u16,
    },
    /// RCP's, on an acknowledgement.
    RcpEcho {
        /// The rate of the newest data packet.
        rate: u32,
    },
}

/// Bolt's header (Bolt Listing 1) as far as a data packet has it: `data`, `ack` and `src` are told by
/// the packet's kind; queue and link rate stand in a [`Signal`](crate::Signal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bolt {
    /// In the first window of the flow.
    pub first: bool,
    /// In the last window of the flow.
    pub last: bool,
    /// Of high priority (App. B.2): Listing 1's reserved bit.
    pub favoured: bool,
    /// Asks for a larger window. Switches clear it.
    pub inc: bool,
    /// A switch has told the source of congestion. Switches set it.
    pub dec: bool,
    /// `t_data_tx`: when the packet left, nanoseconds modulo 2^32.
    pub sent: u32,
}

/// What one switch notes (HPCC Fig. 7).
///
/// HPCC packs a hop into 8 bytes by counting time to 2^24 ns, bytes sent in steps of 128 to 2^20 and the
/// queue in steps of 80; here each is a whole number of nanoseconds or bytes, so that a sender computes
/// with what the switch saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Code of the link's rate (HPCC `B`), as in a [`Signal`](crate::Signal).
    pub link_rate: u8,
    /// When the packet began to leave, nanoseconds modulo 2^32 (`TS`).
    pub at: u32,
    /// Wire bytes that the port had sent, modulo 2^40 (`txBytes`).
    pub sent: u64,
    /// Bytes left waiting in the port, at most 2^24 - 1 (`qLen`).
    pub queue: u32,
}

impl Hop {
    /// As bytes; more bits than a field has are cut off, the queue saturates.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HOP_BYTES] {
        let mut bytes = [0; HOP_BYTES];
        bytes[0] = self.link_rate;
        bytes[1..5].copy_from_slice(&self.at.to_be_bytes());
        bytes[5..10].copy_from_slice(&self.sent.to_be_bytes()[3..]);
        bytes[10..].copy_from_slice(&self.queue.min((1 << 24) - 1).to_be_bytes()[1..]);
        bytes
    }

    /// From bytes.
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

/// The hops of a packet, where they lie in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops<'a> {
    /// How many ports the packet has passed that note: those for which there was no room count too.
    passed: u8,
    /// Numbers of those ports, in exclusive or (HPCC `pathID`).
    path: u16,
    /// Room for a number of hops, at most [`MAX_HOPS`].
    area: &'a [u8],
}

impl<'a> Hops<'a> {
    /// Room for `hops` (at most [`MAX_HOPS`]), none passed.
    #[must_use]
    pub fn room(hops: usize) -> Hops<'static> {
        static EMPTY: [u8; MAX_HOPS * HOP_BYTES] = [0; MAX_HOPS * HOP_BYTES];
        Hops { passed: 0, path: 0, area: &EMPTY[..hops.min(MAX_HOPS) * HOP_BYTES] }
    }

    /// The hops noted in these bytes, whole hops, of which at most [`MAX_HOPS`] count, on this path.
    #[must_use]
    pub fn noted(path: u16, bytes: &'a [u8]) -> Self {
        let hops = (bytes.len() / HOP_BYTES).min(MAX_HOPS);
        // `MAX_HOPS` fits.
        Self { passed: hops as u8, path, area: &bytes[..hops * HOP_BYTES] }
    }

    /// Tells paths apart: the numbers of the ports passed, in exclusive or.
    #[must_use]
    pub fn path(&self) -> u16 {
        self.path
    }

    /// How many hops there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.area.len() / HOP_BYTES
    }

    /// The hops noted, in the order in which the packet passed them.
    pub fn iter(&self) -> impl Iterator<Item = Hop> + 'a {
        let (hops, _) = self.area.as_chunks::<HOP_BYTES>();
        hops.iter().take(usize::from(self.passed)).map(Hop::from_bytes)
    }
}

impl<'a> Extension<'a> {
    /// The type byte; `None` without extension.
    pub(crate) fn kind(&self) -> Option<u8> {
        Some(match self {
            Self::None => return None,
            Self::Bolt(_) => kind::BOLT,
            Self::BoltEcho { .. } => kind::BOLT_ECHO,
            Self::Telemetry(_) => kind::TELEMETRY,
            Self::TelemetryEcho(_) => kind::TELEMETRY_ECHO,
            Self::Rcp { .. } => kind::RCP,
            Self::RcpEcho { .. } => kind::RCP_ECHO,
        })
    }

    /// Bytes that switches may write, without the one that counts them.
    #[must_use]
    pub fn writable_len(&self) -> usize {
        match self {
            Self::None | Self::BoltEcho { .. } | Self::TelemetryEcho(_) | Self::RcpEcho { .. } => 0,
            Self::Bolt(_) => 1,
            Self::Telemetry(hops) => HOPS_HEAD_BYTES + hops.area.len(),
            Self::Rcp { .. } => 3,
        }
    }

    /// Bytes in the authenticated part, the type byte included.
    #[must_use]
    pub fn authenticated_len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Telemetry(_) => 1,
            Self::Bolt(_) => 6,
            Self::BoltEcho { .. } => 5,
            Self::TelemetryEcho(hops) => 2 + HOPS_HEAD_BYTES + hops.area.len(),
            Self::Rcp { .. } => 3,
            Self::RcpEcho { .. } => 4,
        }
    }

    /// Bytes that it adds to a header.
    #[inline]
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.writable_len() + self.authenticated_len()
    }

    /// Whether a packet with this body may have it, with values that its fields can hold.
    ///
    /// # Errors
    /// The rule broken.
    #[inline]
    pub fn check(&self, body: &Body) -> Result<(), Illegal> {
        let fits = match self {
            Self::None => true,
            Self::Bolt(_) | Self::Telemetry(_) | Self::Rcp { .. } => matches!(body, Body::Data(_)),
            Self::BoltEcho { .. } | Self::TelemetryEcho(_) | Self::RcpEcho { .. } => {
                matches!(body, Body::Ack(_))
            }
        };
        if !fits {
            return Err(Illegal::ExtensionOfBody);
        }
        match self {
            Self::Rcp { rate, .. } | Self::RcpEcho { rate } if *rate >= 1 << 24 => {
                Err(Illegal::ExtensionRate)
            }
            _ => Ok(()),
        }
    }

    /// Writes what switches may change; checked before.
    pub(crate) fn write_writable(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Bolt(bolt) => writer.put([flag(bolt.inc, INC) | flag(bolt.dec, DEC)]),
            Self::Telemetry(hops) => {
                writer.put([hops.passed]);
                writer.put(hops.path.to_be_bytes());
                writer.put_slice(hops.area);
            }
            Self::Rcp { rate, .. } => writer.put(three(*rate)),
            _ => {}
        }
    }

    /// Writes the part that is authenticated.
    pub(crate) fn write_authenticated(&self, writer: &mut Writer<'_>) {
        let Some(kind) = self.kind() else { return };
        writer.put([kind]);
        match self {
            Self::None | Self::Telemetry(_) => {}
            Self::Bolt(bolt) => {
                let favoured = flag(bolt.favoured, FAVOURED);
                writer.put([flag(bolt.first, FIRST) | flag(bolt.last, LAST) | favoured]);
                writer.put(bolt.sent.to_be_bytes());
            }
            Self::BoltEcho { granted } => writer.put(granted.to_be_bytes()),
            Self::TelemetryEcho(hops) => {
                writer.put([hops.capacity() as u8, hops.passed]);
                writer.put(hops.path.to_be_bytes());
                writer.put_slice(hops.area);
            }
            Self::Rcp { rtt, .. } => writer.put(rtt.to_be_bytes()),
            Self::RcpEcho { rate } => writer.put(three(*rate)),
        }
    }

    /// Reads the extension whose type byte is the first of `authenticated`; returns it with the bytes
    /// that it takes there.
    #[inline]
    pub(crate) fn read(
        writable: &'a [u8],
        authenticated: &'a [u8],
    ) -> Result<(Self, usize), DecodeError> {
        let available = authenticated.len();
        let cut = |needed| DecodeError::Truncated { needed, available };
        let &kind = authenticated.first().ok_or(cut(1))?;
        let length = match kind {
            kind::BOLT => 6,
            kind::BOLT_ECHO => 5,
            kind::TELEMETRY => 1,
            kind::TELEMETRY_ECHO => {
                let hops = usize::from(*authenticated.get(1).ok_or(cut(2))?);
                2 + HOPS_HEAD_BYTES + hops * HOP_BYTES
            }
            kind::RCP => 3,
            kind::RCP_ECHO => 4,
            other => return Err(DecodeError::Extension(other)),
        };
        let mut fields = Reader::new(authenticated.get(1..length).ok_or(cut(length))?);
        let extension = match (kind, writable) {
            (kind::BOLT, &[switch]) => {
                let [own] = fields.take();
                let [inc, dec, other] = flags(switch)?;
                let [first, last, favoured] = flags(own)?;
                if other {
                    return Err(Illegal::ExtensionFlags.into());
                }
                Self::Bolt(Bolt { first, last, favoured, inc, dec, sent: fields.u32() })
            }
            (kind::BOLT_ECHO, []) => Self::BoltEcho { granted: fields.u32() },
            (kind::TELEMETRY, &[passed, a, b, ref area @ ..]) => {
                Self::Telemetry(hops(passed, u16::from_be_bytes([a, b]), area)?)
            }
            (kind::TELEMETRY_ECHO, []) => {
                let [_, passed, a, b] = fields.take();
                let area = &authenticated[2 + HOPS_HEAD_BYTES..length];
                Self::TelemetryEcho(hops(passed, u16::from_be_bytes([a, b]), area)?)
            }
            (kind::RCP, &[a, b, c]) => Self::Rcp {
                rate: u32::from_be_bytes([0, a, b, c]),
                rtt: u16::from_be_bytes(fields.take()),
            },
            (kind::RCP_ECHO, []) => {
                let [a, b, c] = fields.take();
                Self::RcpEcho { rate: u32::from_be_bytes([0, a, b, c]) }
            }
            _ => return Err(Illegal::WritableLength.into()),
        };
        Ok((extension, length))
    }
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// Three flags, the lowest bits of a byte, whose other bits are 0.
fn flags(byte: u8) -> Result<[bool; 3], Illegal> {
    if byte > 7 {
        return Err(Illegal::ExtensionFlags);
    }
    Ok([byte & 1 != 0, byte & 2 != 0, byte & 4 != 0])
}

fn three(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

fn hops(passed: u8, path: u16, area: &[u8]) -> Result<Hops<'_>, Illegal> {
    if !area.len().is_multiple_of(HOP_BYTES) || area.len() > MAX_HOPS * HOP_BYTES {
        return Err(Illegal::TelemetryRoom);
    }
    Ok(Hops { passed, path, area })
}
