//! The congestion fields of a packet: what switches may read and change.

use crate::bolt::{BoltEcho, BoltFields};
use crate::rcp::{RcpEcho, RcpFields};

/// The ECN codepoint of a packet (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not take part: a switch may drop but not mark.
    #[default]
    NotCapable,
    /// The sender understands marks.
    Capable,
    /// A switch saw congestion.
    Congested,
}

/// A 32-bit field that may lie at any byte, so that the fields of a packet stay short.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Word([u8; 4]);

impl Word {
    /// The field with this value.
    #[inline]
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value.to_ne_bytes())
    }

    /// Its value.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        u32::from_ne_bytes(self.0)
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.get().fmt(f)
    }
}

/// What the algorithm of a packet's flow has in its header besides ECN.
///
/// Short, because every packet of every algorithm has room for it; what is longer lies apart
/// ([`Telemetry`](crate::Telemetry)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlgorithmFields {
    /// Nothing.
    #[default]
    None,
    /// Bolt's, on a data packet (Bolt Listing 1).
    Bolt(BoltFields),
    /// Bolt's, on an acknowledgement.
    BoltEcho(BoltEcho),
    /// Switches append their telemetry to this data packet (HPCC).
    Telemetry,
    /// An acknowledgement with the telemetry of the data packet it echoes.
    TelemetryEcho,
    /// RCP's, on a data packet.
    Rcp(RcpFields),
    /// RCP's, on an acknowledgement.
    RcpEcho(RcpEcho),
}

/// The congestion fields of a packet. They lie outside the authenticated part of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionHeader {
    /// ECN codepoint.
    pub ecn: Ecn,
    /// The algorithm's own.
    pub fields: AlgorithmFields,
}

/// What the receiver of a flow tells back of the fields of its data packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo(AlgorithmFields);

impl Echo {
    /// A data packet arrived for the first time with these fields.
    #[inline]
    pub fn on_data(&mut self, fields: AlgorithmFields) {
        match fields {
            AlgorithmFields::None
            | AlgorithmFields::BoltEcho(_)
            | AlgorithmFields::TelemetryEcho
            | AlgorithmFields::RcpEcho(_) => {}
            AlgorithmFields::Bolt(fields) => {
                let before = match self.0 {
                    AlgorithmFields::BoltEcho(echo) => echo,
                    _ => BoltEcho::default(),
                };
                self.0 = AlgorithmFields::BoltEcho(before.after(fields));
            }
            AlgorithmFields::Telemetry => self.0 = AlgorithmFields::TelemetryEcho,
            AlgorithmFields::Rcp(fields) => self.0 = AlgorithmFields::RcpEcho(fields.echo()),
        }
    }

    /// The fields of the next acknowledgement.
    #[inline]
    #[must_use]
    pub fn fields(&self) -> AlgorithmFields {
        self.0
    }
}
