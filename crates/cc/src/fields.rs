//! The congestion fields of a packet, which belong to the algorithm of its flow.
//!
//! Transport, switches and the wire format carry these fields without interpreting them: they use
//! only an identifier, the bytes, and the [`FieldLayout`].

/// The ECN codepoint of a packet (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not react to marks: a switch may drop the packet but not mark it.
    #[default]
    NotCapable,
    /// The sender reacts to marks.
    Capable,
    /// A switch marked the packet.
    Congested,
}

/// Maximum number of bytes of an algorithm's own fields on one packet.
///
/// Rationale: every packet of the simulator has room for them. Longer data is telemetry, which is stored
/// separately ([`Telemetry`](crate::Telemetry)).
pub const MAX_FIELD_BYTES: usize = 6;

/// First identifier of fields that is free for algorithms outside this project; the last one is 125.
pub const FIRST_FOREIGN_ID: u8 = 64;

/// Bit of the identifier that distinguishes the fields of an acknowledgement from those of a data
/// packet.
const ECHO: u8 = 0x80;
/// Identifier of [`Fields::TELEMETRY`].
const TELEMETRY: u8 = 126;

/// Number of bytes of an algorithm's fields that are sent, and the part that switches may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Identifier on the wire, 1 to 125 ([`FIRST_FOREIGN_ID`]).
    pub id: u8,
    /// Number of bytes of a data packet that switches may change: the first ones.
    pub writable: u8,
    /// Number of bytes of a data packet that switches only read, after the writable ones. Over UDP they
    /// are authenticated.
    pub authenticated: u8,
    /// Number of bytes of an acknowledgement. Over UDP they are authenticated.
    pub echo: u8,
}

impl FieldLayout {
    /// Returns `true` if the identifier is in range and the bytes fit into [`MAX_FIELD_BYTES`].
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        let data = self.writable as usize + self.authenticated as usize;
        let fits = data <= MAX_FIELD_BYTES && self.echo as usize <= MAX_FIELD_BYTES;
        self.id > 0 && self.id < TELEMETRY && fits
    }
}

/// The fields that the algorithm of a packet's flow put on it.
///
/// Bytes beyond the length in the [`FieldLayout`] are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// 0 if the packet has no fields.
    id: u8,
    bytes: [u8; MAX_FIELD_BYTES],
}

impl Fields {
    /// No fields.
    pub const NONE: Self = Self { id: 0, bytes: [0; MAX_FIELD_BYTES] };
    /// Data packet to which switches append telemetry (HPCC's INT).
    pub const TELEMETRY: Self = Self { id: TELEMETRY, bytes: [0; MAX_FIELD_BYTES] };
    /// Acknowledgement that returns the telemetry of the data packet that it echoes.
    pub const TELEMETRY_ECHO: Self = Self { id: TELEMETRY | ECHO, bytes: [0; MAX_FIELD_BYTES] };

    /// Returns the fields of a data packet, with the identifier of their [`FieldLayout`].
    #[inline]
    #[must_use]
    pub const fn data(id: u8, bytes: [u8; MAX_FIELD_BYTES]) -> Self {
        Self { id: id & !ECHO, bytes }
    }

    /// Returns the fields of an acknowledgement.
    #[inline]
    #[must_use]
    pub const fn echo(id: u8, bytes: [u8; MAX_FIELD_BYTES]) -> Self {
        Self { id: id | ECHO, bytes }
    }

    /// Returns `true` if the packet has no fields.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.id == 0
    }

    /// Returns `true` if switches append telemetry to the packet, or if the packet returns telemetry.
    #[inline]
    #[must_use]
    pub const fn carries_telemetry(&self) -> bool {
        self.id & !ECHO == TELEMETRY
    }

    /// Returns the bytes, if these are fields with this identifier on a data packet.
    #[inline]
    #[must_use]
    pub const fn as_data(&self, id: u8) -> Option<&[u8; MAX_FIELD_BYTES]> {
        if self.id == id { Some(&self.bytes) } else { None }
    }

    /// Returns the bytes for modification, if these are fields with this identifier on a data packet.
    #[inline]
    #[must_use]
    pub const fn as_data_mut(&mut self, id: u8) -> Option<&mut [u8; MAX_FIELD_BYTES]> {
        if self.id == id { Some(&mut self.bytes) } else { None }
    }

    /// Returns the bytes, if these are fields with this identifier on an acknowledgement.
    #[inline]
    #[must_use]
    pub const fn as_echo(&self, id: u8) -> Option<&[u8; MAX_FIELD_BYTES]> {
        if self.id == id | ECHO { Some(&self.bytes) } else { None }
    }
}

/// The congestion fields of a packet, which switches may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionHeader {
    /// ECN codepoint.
    pub ecn: Ecn,
    /// The algorithm's own fields.
    pub fields: Fields,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_echo_of_one_identifier_are_distinguished() {
        let data = Fields::data(5, [1, 2, 3, 4, 5, 6]);
        let echo = Fields::echo(5, [1, 2, 3, 4, 5, 6]);
        assert_eq!(data.as_data(5), Some(&[1, 2, 3, 4, 5, 6]));
        assert_eq!((data.as_echo(5), data.as_data(6)), (None, None));
        assert_eq!((echo.as_data(5), echo.as_echo(5)), (None, Some(&[1, 2, 3, 4, 5, 6])));
        assert!(
            Fields::TELEMETRY.carries_telemetry() && Fields::TELEMETRY_ECHO.carries_telemetry()
        );
        assert!(!data.carries_telemetry() && Fields::NONE.is_none());
    }

    #[test]
    fn layouts_beyond_the_size_or_identifier_range_are_invalid() {
        let valid = FieldLayout { id: 64, writable: 2, authenticated: 4, echo: 6 };
        assert!(valid.is_valid());
        assert!(!FieldLayout { id: 0, ..valid }.is_valid());
        assert!(!FieldLayout { id: 126, ..valid }.is_valid());
        assert!(!FieldLayout { writable: 3, ..valid }.is_valid());
        assert!(!FieldLayout { echo: 7, ..valid }.is_valid());
    }
}
