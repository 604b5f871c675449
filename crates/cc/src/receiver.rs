//! The receiver half of an algorithm.

use alloc::boxed::Box;

use apus_units::Time;

use crate::DataEvent;
use crate::dcqcn::NotificationPoint;
use crate::expresspass::ExpressPassReceiver;

/// A control packet that a receiver half sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverControl {
    /// One credit: the sender may send one data packet for it, which echoes the credit's number and
    /// the time at which it left. The transport numbers credits.
    Credit {
        /// Bytes that it is longer than the shortest credit, at most [`MAX_CREDIT_PADDING`].
        padding: u8,
    },
    /// Packets arrived marked (DCQCN's congestion notification packet).
    Notification,
}

/// The most bytes by which one credit is longer than another. ExpressPass: 76 to 92 B on the wire.
pub const MAX_CREDIT_PADDING: u8 = 16;

/// The receiver half: hears of data, decides what goes back besides what the transport itself says.
///
/// Reliability is part of an algorithm's contract: each data packet is acknowledged only if
/// [`Receiver::on_data`] asks for it.
pub trait Receiver {
    /// A data packet arrived. Whether an acknowledgement is due.
    fn on_data(&mut self, event: &DataEvent) -> bool;
    /// The sender asks for credits, as it has data to send.
    fn on_credit_request(&mut self, _now: Time) {}
    /// The sender has no more data: no more credits. An acknowledgement is then due.
    fn on_credit_stop(&mut self, _now: Time) {}
    /// When [`Receiver::poll_control`] will have something to send; [`Time::MAX`] if nothing is due
    /// unless something arrives.
    fn next_control(&self) -> Time {
        Time::MAX
    }
    /// The control packet that is due at `now`. Called again until it returns `None`.
    fn poll_control(&mut self, _now: Time) -> Option<ReceiverControl> {
        None
    }
}

/// The receiver halves by kind: dispatch on an event is one branch.
#[derive(Clone, Debug, Default)]
pub enum ReceiverAlgorithm {
    /// Every data packet is acknowledged, and nothing else is sent.
    #[default]
    Acknowledging,
    /// ExpressPass: sends credits.
    ExpressPass(Box<ExpressPassReceiver>),
    /// DCQCN: notifies the sender of marked packets.
    Dcqcn(Box<NotificationPoint>),
}

impl ReceiverAlgorithm {
    /// Whether it sends control packets, so that the transport has to ask it for them.
    #[must_use]
    pub fn sends_control(&self) -> bool {
        match self {
            Self::Acknowledging => false,
            Self::ExpressPass(_) | Self::Dcqcn(_) => true,
        }
    }
}

impl Receiver for ReceiverAlgorithm {
    #[inline]
    fn on_data(&mut self, event: &DataEvent) -> bool {
        match self {
            Self::Acknowledging => true,
            Self::ExpressPass(receiver) => receiver.on_data(event),
            Self::Dcqcn(point) => point.on_data(event),
        }
    }

    fn on_credit_request(&mut self, now: Time) {
        match self {
            Self::Acknowledging | Self::Dcqcn(_) => {}
            Self::ExpressPass(receiver) => receiver.on_credit_request(now),
        }
    }

    fn on_credit_stop(&mut self, now: Time) {
        match self {
            Self::Acknowledging | Self::Dcqcn(_) => {}
            Self::ExpressPass(receiver) => receiver.on_credit_stop(now),
        }
    }

    #[inline]
    fn next_control(&self) -> Time {
        match self {
            Self::Acknowledging => Time::MAX,
            Self::ExpressPass(receiver) => receiver.next_control(),
            Self::Dcqcn(point) => point.next_control(),
        }
    }

    fn poll_control(&mut self, now: Time) -> Option<ReceiverControl> {
        match self {
            Self::Acknowledging => None,
            Self::ExpressPass(receiver) => receiver.poll_control(now),
            Self::Dcqcn(point) => point.poll_control(now),
        }
    }
}
