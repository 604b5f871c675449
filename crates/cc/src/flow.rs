//! Properties of the host that a flow uses.

use apus_units::{Bytes, Rate};

/// Properties of the host and of the packets that a flow uses, in addition to the algorithm's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Rate of the host's link.
    pub line_rate: Rate,
    /// Payload bytes of a full data packet.
    pub payload: Bytes,
    /// Wire bytes of a full data packet: everything that occupies the link.
    pub packet: Bytes,
    /// Wire bytes of a control packet: an acknowledgement, a credit, a request.
    pub control: Bytes,
    /// Seed of the flow's stream of random numbers. An algorithm draws from no other stream.
    pub seed: u64,
}

impl Default for FlowInfo {
    /// A flow without a host, for replays and tests: 100 Gb/s, packets of 4096 B of payload and 64 B
    /// of headers, control packets of a minimum Ethernet frame, seed 0.
    fn default() -> Self {
        Self {
            line_rate: Rate::from_gbps(100),
            payload: Bytes::new(4096),
            packet: Bytes::new(4160),
            control: Bytes::new(84),
            seed: 0,
        }
    }
}
