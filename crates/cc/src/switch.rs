//! The switch half of an algorithm.

use apus_units::{Bytes, ClassId, Rate, Time};

use crate::bolt::switch::BoltPort;
use crate::dcqcn::switch::RampMarker;
use crate::dctcp::switch::{EcnMarker, MarkAt};
use crate::hpcc::switch::TelemetryStamp;
use crate::hull::PhantomQueue;
use crate::notified::switch::QueueReport;
use crate::rcp::RcpPort;
use crate::{CongestionHeader, Telemetry};

/// What a switch half knows of its port from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Wire bytes of a full data packet.
    pub packet: Bytes,
    /// Of the port and class's own stream of random numbers. A half draws from nothing else.
    pub seed: u64,
    /// Whether the port is a host's NIC, which only packets of that host pass, and not a switch's.
    pub nic: bool,
}

/// One class of a port as a switch half sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassView {
    /// Bytes of the class in the port, the packet in service included.
    pub bytes: Bytes,
    /// Its share among the classes of its priority.
    pub weight: u32,
    /// Its strict priority level, 0 served first.
    pub priority: u8,
}

/// What a switch half may look at: the egress port of the packet.
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
    /// Of the class's bytes, those that wait for service.
    pub class_waiting: Bytes,
    /// Wire bytes that have left the port since the start, the packet in service excluded.
    pub sent: Bytes,
    /// Every class of the port, by number.
    pub classes: &'a [ClassView],
}

/// What a switch sends back to the source of a packet, beside forwarding it: the content of Bolt's
/// SRC packets (Bolt Alg. 1 l. 6-9), with which other algorithms can do as well. The transmission
/// time of the packet is reflected from its own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Occupancy of the egress port that the packet goes to.
    pub queue: Bytes,
    /// Rate of the link behind it.
    pub link_rate: Rate,
}

/// What becomes of a packet that a switch half has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, perhaps with changed congestion fields.
    Forward,
    /// The same, and its source is told at once.
    Signal(Signal),
    /// It is dropped.
    Drop,
}

/// The switch half: one copy of it per port and class sees each packet of the class that the port
/// has room for, and hears of the others.
pub trait SwitchHalf {
    /// A packet of `bytes` wire bytes is about to join the port's queue.
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict;

    /// A packet of `bytes` wire bytes came for which the port or the class has no room: it is dropped.
    fn on_refused(&mut self, _bytes: Bytes) {}

    /// A packet of `bytes` wire bytes is about to leave: it is neither in the queue nor in service
    /// any more as far as `view` tells. `telemetry` is the packet's own, if it has any.
    ///
    /// Asked only if [`SwitchAlgorithm::acts_on_dequeue`]. Only a signal of the verdict counts: a
    /// packet that has come so far is not dropped.
    fn on_dequeue(
        &mut self,
        _header: &mut CongestionHeader,
        _telemetry: Option<&mut Telemetry>,
        _bytes: Bytes,
        _view: &PortView<'_>,
    ) -> Verdict {
        Verdict::Forward
    }
}

/// What switches give to the senders of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Nothing.
    Nothing,
    /// ECN marks, which other switches give too.
    Marks,
    /// Signals and fields that a sender without them does without: it heeds losses and delays as well.
    Signals,
    /// Fields without which a sender never slows down.
    Fields,
}

/// The switch halves by kind: dispatch in the packet path is one branch.
#[derive(Clone, Debug, Default)]
pub enum SwitchAlgorithm {
    /// A switch that takes no part.
    #[default]
    Plain,
    /// DCTCP's marking threshold.
    Ecn(EcnMarker),
    /// DCQCN's probabilistic marking.
    Ramp(RampMarker),
    /// Bolt's SRC, PRU and SM.
    Bolt(BoltPort),
    /// HPCC's telemetry.
    Telemetry(TelemetryStamp),
    /// RCP's rate.
    Rcp(RcpPort),
    /// HULL's phantom queue.
    Phantom(PhantomQueue),
    /// What every packet finds, told to its source.
    Report(QueueReport),
}

impl SwitchAlgorithm {
    /// Whether it takes no part.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// What it gives to senders.
    #[must_use]
    pub fn gives(&self) -> Given {
        match self {
            Self::Plain => Given::Nothing,
            Self::Ecn(_) | Self::Ramp(_) | Self::Phantom(_) => Given::Marks,
            Self::Bolt(_) => Given::Signals,
            Self::Telemetry(_) | Self::Rcp(_) | Self::Report(_) => Given::Fields,
        }
    }

    /// Whether it may answer a packet with a signal to its source.
    #[must_use]
    pub fn signals(&self) -> bool {
        match self {
            Self::Plain
            | Self::Ecn(_)
            | Self::Ramp(_)
            | Self::Telemetry(_)
            | Self::Rcp(_)
            | Self::Phantom(_) => false,
            Self::Bolt(_) | Self::Report(_) => true,
        }
    }

    /// Whether it looks at packets that leave: a port then serves them one by one.
    #[must_use]
    pub fn acts_on_dequeue(&self) -> bool {
        match self {
            Self::Plain
            | Self::Bolt(_)
            | Self::Ramp(_)
            | Self::Rcp(_)
            | Self::Phantom(_)
            | Self::Report(_) => false,
            Self::Ecn(marker) => marker.at == MarkAt::Dequeue,
            Self::Telemetry(_) => true,
        }
    }
}

impl SwitchHalf for SwitchAlgorithm {
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        match self {
            Self::Plain | Self::Telemetry(_) => Verdict::Forward,
            Self::Ecn(marker) => marker.on_enqueue(header, bytes, view),
            Self::Ramp(marker) => marker.on_enqueue(header, bytes, view),
            Self::Bolt(port) => port.on_enqueue(header, bytes, view),
            Self::Rcp(port) => port.on_enqueue(header, bytes, view),
            Self::Phantom(queue) => queue.on_enqueue(header, bytes, view),
            Self::Report(report) => report.on_enqueue(header, bytes, view),
        }
    }

    fn on_refused(&mut self, bytes: Bytes) {
        if let Self::Rcp(port) = self {
            port.on_refused(bytes);
        }
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        telemetry: Option<&mut Telemetry>,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        match self {
            Self::Plain
            | Self::Bolt(_)
            | Self::Ramp(_)
            | Self::Rcp(_)
            | Self::Phantom(_)
            | Self::Report(_) => Verdict::Forward,
            Self::Ecn(marker) => marker.on_dequeue(header, telemetry, bytes, view),
            Self::Telemetry(stamp) => stamp.on_dequeue(header, telemetry, bytes, view),
        }
    }
}
