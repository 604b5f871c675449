//! Sizes of packets that belong to a profile of an algorithm.

/// Sizes on the wire that a publication, or its simulator, used with a profile, preamble and gap included. A
/// scenario that sets no sizes uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilePackets {
    /// The profile.
    pub profile: &'static str,
    /// Payload bytes of a full data packet.
    pub payload: u32,
    /// Bytes that a data packet adds to its payload, the algorithm's own fields included.
    pub header: u32,
    /// Bytes of an acknowledgement or a read request.
    pub control: u32,
    /// Source of the sizes (`HPCC §5.1`), or `deviation:` and the reason.
    pub source: &'static str,
}
