//! The congestion fields of a packet: what switches may read and change.

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

/// The congestion fields of a packet. They lie outside the authenticated part of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongestionHeader {
    /// ECN codepoint.
    pub ecn: Ecn,
}
