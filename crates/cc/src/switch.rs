//! The switch half of an algorithm.

use apus_units::{Bytes, ClassId, Rate, Time};

use crate::CongestionHeader;
use crate::dctcp::switch::EcnMarker;

/// What a switch half may look at: the egress port of the packet.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// Now.
    pub now: Time,
    /// Rate of the link behind the port.
    pub link_rate: Rate,
    /// The packet's class.
    pub class: ClassId,
    /// Bytes of that class in the port, the packet in service included, this one excluded.
    pub class_bytes: Bytes,
    /// Bytes of all classes in the port, the packet in service included, this one excluded.
    pub queue_bytes: Bytes,
}

/// What becomes of a packet that a switch half has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, perhaps with changed congestion fields.
    Forward,
    /// It is dropped.
    Drop,
}

/// The switch half: sees each packet that a port has room for.
pub trait SwitchHalf {
    /// A packet of `bytes` wire bytes is about to join the port's queue.
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView,
    ) -> Verdict;
}

/// The switch halves by kind: dispatch in the packet path is one branch.
#[derive(Clone, Debug, Default)]
pub enum SwitchAlgorithm {
    /// A switch that takes no part.
    #[default]
    Plain,
    /// DCTCP's marking threshold.
    Ecn(EcnMarker),
}

impl SwitchHalf for SwitchAlgorithm {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView,
    ) -> Verdict {
        match self {
            Self::Plain => Verdict::Forward,
            Self::Ecn(marker) => marker.on_enqueue(header, bytes, view),
        }
    }
}
