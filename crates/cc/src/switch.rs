//! The switch half of an algorithm.

use core::fmt::Debug;

use apus_units::{Bytes, ClassId, Rate, Time};

use crate::{CongestionHeader, Telemetry};

/// Properties of a port that its switch half knows from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Wire bytes of a full data packet.
    pub packet: Bytes,
    /// Seed of the stream of random numbers of this port and class. A half draws from no other
    /// stream.
    pub seed: u64,
    /// Whether the port is the NIC of a host, which carries only packets of that host, and not a port of a
    /// switch.
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
    /// Current time.
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

/// Content of the packet that a switch sends to the source of a data packet in addition to forwarding the
/// data packet. The content is that of Bolt's SRC (Bolt Alg. 1 l. 6-9); other algorithms can use it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Occupancy of the packet's egress port.
    pub queue: Bytes,
    /// Rate of the link behind this port.
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

/// The switch half. One copy per port and class processes each packet of the class that the port accepts, and
/// is informed of refused packets.
pub trait SwitchHalf: Clone + Debug + Send + Sync + 'static {
    /// Processes a packet of `bytes` wire bytes that is about to join the port's queue.
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict;

    /// Called when a packet of `bytes` wire bytes is dropped because the queue of the port or the class is
    /// full.
    fn on_refused(&mut self, _bytes: Bytes) {}

    /// Processes a packet of `bytes` wire bytes that is about to leave; `view` counts it neither in the queue
    /// nor in service. `telemetry` is the telemetry of the packet, if it has any.
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

    /// Returns `true` if the half may answer a packet with a signal to its source.
    fn signals(&self) -> bool {
        false
    }

    /// Returns `true` if the half acts on packets that leave: a port then serves them one by one.
    fn acts_on_dequeue(&self) -> bool {
        false
    }

    /// Sets the fraction of its configured rate that the link behind the port has from now on. The memory of
    /// the port has the same fraction, and thresholds in bytes scale with it.
    fn on_capacity(&mut self, _fraction: f64) {}

    /// Restarts the random numbers from the seed of the port and class. Called for halves that were created
    /// without a port ([`SwitchInfo`]).
    fn reseed(&mut self, _seed: u64) {}
}

/// The feedback that a switch half gives to the senders of its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchFeedback {
    /// No feedback.
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

/// A half, or `None`, which takes no part.
impl<W: SwitchHalf> SwitchHalf for Option<W> {
    crate::forward_switch!(to_some);
}
