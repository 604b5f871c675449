//! The switch half of an algorithm.

use core::fmt::Debug;

use apus_units::{Bytes, ClassId, Rate, Time};

use crate::{CongestionHeader, Telemetry};

/// Properties of its port that a switch half knows from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Wire bytes of a full data packet.
    pub packet: Bytes,
    /// Seed of the stream of random numbers of this port and class. A half draws from no other
    /// stream.
    pub seed: u64,
    /// Whether the port is a host's NIC, which only packets of that host pass, and not a switch's.
    pub nic: bool,
}

/// State of one class of a port that a switch half can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassView {
    /// Bytes of the class in the port, the packet in service included.
    pub bytes: Bytes,
    /// Weight of the class among the classes of its priority.
    pub weight: u32,
    /// Strict priority level, 0 served first.
    pub priority: u8,
}

/// State that a switch half may read: the egress port of the packet.
#[derive(Clone, Copy, Debug)]
pub struct PortView<'a> {
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
    /// Bytes of the class that are queued and not yet in service.
    pub class_waiting: Bytes,
    /// Wire bytes that have left the port since the start, the packet in service excluded.
    pub sent: Bytes,
    /// Every class of the port, by number.
    pub classes: &'a [ClassView],
}

/// The content of the packet that a switch sends to the source of a data packet in addition to
/// forwarding it: that of Bolt's SRC (Bolt Alg. 1 l. 6-9), which other algorithms can use as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Occupancy of the packet's egress port.
    pub queue: Bytes,
    /// Rate of the link behind it.
    pub link_rate: Rate,
    /// Departure time of the data packet as its fields state it (Bolt `t_data_tx`), nanoseconds
    /// modulo 2^32. Over UDP the sender checks it: a forged signal must contain the right value.
    pub sent: u32,
}

/// The decision of a switch half about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is forwarded, possibly with changed congestion fields.
    Forward,
    /// The packet is forwarded, and its source gets a signal at once.
    Signal(Signal),
    /// The packet is dropped.
    Drop,
}

/// The switch half: one copy of it per port and class takes each packet of the class that the port
/// has room for, and is informed of refused packets.
pub trait SwitchHalf: Clone + Debug + Send + Sync + 'static {
    /// A packet of `bytes` wire bytes is about to join the port's queue.
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict;

    /// A packet of `bytes` wire bytes is dropped because the port or the class has no room.
    fn on_refused(&mut self, _bytes: Bytes) {}

    /// A packet of `bytes` wire bytes is about to leave; `view` counts it neither in the queue nor
    /// in service. `telemetry` is the packet's own, if it has any.
    ///
    /// Called only if [`SwitchHalf::acts_on_dequeue`]. Of the verdict only a signal takes effect: a
    /// packet that is about to leave is not dropped.
    fn on_dequeue(
        &mut self,
        _header: &mut CongestionHeader,
        _telemetry: Option<&mut Telemetry>,
        _bytes: Bytes,
        _view: &PortView<'_>,
    ) -> Verdict {
        Verdict::Forward
    }

    /// Returns `true` if the half takes no part: it forwards every packet unchanged.
    #[inline]
    fn is_plain(&self) -> bool {
        false
    }

    /// Returns the feedback that the half gives to senders.
    fn feedback(&self) -> SwitchFeedback;

    /// Returns `true` if it may answer a packet with a signal to its source.
    fn signals(&self) -> bool {
        false
    }

    /// Returns `true` if it acts on packets that leave: a port then serves them one by one.
    fn acts_on_dequeue(&self) -> bool {
        false
    }

    /// The link behind the port has this fraction of its configured rate from now on, and the port that
    /// of its memory: thresholds in bytes scale alike.
    fn on_capacity(&mut self, _fraction: f64) {}

    /// Starts its random numbers again from this seed, which is that of its port and class. Called for
    /// halves that were made without a port ([`SwitchInfo`]).
    fn reseed(&mut self, _seed: u64) {}
}

/// The feedback that a switch half gives to the senders of its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchFeedback {
    /// Nothing.
    Nothing,
    /// ECN marks, which other switches give too.
    Marks,
    /// Signals and fields that a sender does not depend on: it also reacts to losses and delays.
    Signals,
    /// Fields without which a sender never slows down.
    Fields,
}

/// A switch half that takes no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plain;

impl SwitchHalf for Plain {
    #[inline]
    fn on_enqueue(&mut self, _: &mut CongestionHeader, _: Bytes, _: &PortView<'_>) -> Verdict {
        Verdict::Forward
    }

    #[inline]
    fn is_plain(&self) -> bool {
        true
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Nothing
    }
}

macro_rules! to_some {
    ($self:ident $name:ident $args:tt) => {
        match $self {
            Some(half) => half.$name $args,
            None => Plain.$name $args,
        }
    };
}

/// A half or none, which then takes no part.
impl<W: SwitchHalf> SwitchHalf for Option<W> {
    crate::forward_switch!(to_some);
}
