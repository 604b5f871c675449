//! The receiver half of an algorithm.

use alloc::boxed::Box;

use apus_units::{Bytes, Time};

use crate::{DataEvent, FieldLayout, Fields, Turn};

/// A control packet that a receiver half sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverControl {
    /// One credit: permission to send one data packet, which echoes the number and the departure
    /// time of the credit. The transport numbers credits.
    Credit {
        /// Number of bytes by which the credit is longer than the shortest credit, at most
        /// [`MAX_CREDIT_PADDING`].
        padding: u8,
    },
    /// Report of packets that arrived marked (DCQCN's congestion notification packet).
    Notification,
    /// Permission to send up to a count that only grows, modulo 2^32, in a unit that both halves know. The
    /// next grant replaces a lost one.
    Grant {
        /// The granted count.
        total: u32,
    },
}

/// Maximum number of bytes by which one credit is longer than another. ExpressPass: 76 to 92 B on the
/// wire.
pub const MAX_CREDIT_PADDING: u8 = 16;

/// The receiver half: processes arriving data and decides what returns to the sender in addition to
/// the transport's acknowledgements.
///
/// Reliability is part of an algorithm's contract: a data packet is acknowledged only if
/// [`Receiver::on_data`] requests it.
pub trait Receiver {
    /// Processes the arrival of a data packet. Returns `true` if an acknowledgement is due.
    fn on_data(&mut self, event: &DataEvent) -> bool;
    /// Returns the fields of the next acknowledgement.
    #[inline]
    fn echo(&self) -> Fields {
        Fields::NONE
    }
    /// Returns `true` if [`Receiver::on_data`] has no effect and always requests an acknowledgement, and
    /// [`Receiver::echo`] returns no fields: the transport then calls neither.
    fn is_plain(&self) -> bool {
        false
    }
    /// Returns `true` if the half sends control packets, so that the transport must poll it for
    /// them.
    fn sends_control(&self) -> bool;
    /// Processes a request of the sender for credits: it has this number of packets to send.
    fn on_credit_request(&mut self, _now: Time, _packets: u32) {}
    /// Stops the credits because the sender has no more data. An acknowledgement is then due.
    fn on_credit_stop(&mut self, _now: Time) {}
    /// Called when a missing data packet arrived trimmed by a switch; the sender is informed.
    fn on_trimmed(&mut self, _event: &DataEvent) {}
    /// Returns the turn that the half waits for. Called after events of its flow if the host has a
    /// [`GrantPace`](crate::GrantPace). The halves of a host take turns; halves with a request come first.
    fn turn(&self) -> Turn {
        Turn::None
    }
    /// Executes the half's turn, requested (`asked`) or unrequested. Returns the bytes that the half grants
    /// now, which determine the time of the host's next turn. [`Receiver::poll_control`] then returns the
    /// grant.
    fn take_turn(&mut self, _asked: bool) -> Bytes {
        Bytes::ZERO
    }
    /// Returns the time at which [`Receiver::poll_control`] will return a packet; [`Time::MAX`] if
    /// no packet is due before the next event.
    #[inline]
    fn next_control(&self) -> Time {
        Time::MAX
    }
    /// Returns the control packet that is due at `now`. Called again until it returns `None`.
    fn poll_control(&mut self, _now: Time) -> Option<ReceiverControl> {
        None
    }
}

macro_rules! to_content {
    ($self:ident $name:ident $args:tt) => {
        (**$self).$name $args
    };
}

impl<R: Receiver> Receiver for Box<R> {
    crate::forward_receiver!(to_content);
}

/// A receiver half that requests an acknowledgement of every data packet, and sends no control
/// packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledging;

impl Receiver for Acknowledging {
    #[inline]
    fn on_data(&mut self, _: &DataEvent) -> bool {
        true
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn sends_control(&self) -> bool {
        false
    }
}

/// A receiver half that returns the fields of the newest data packet with each acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoNewest {
    id: u8,
    /// Number of bytes to return.
    length: u8,
    newest: Fields,
}

impl EchoNewest {
    /// Returns the first [`FieldLayout::echo`] bytes of the fields with this layout.
    #[must_use]
    pub const fn new(layout: FieldLayout) -> Self {
        Self { id: layout.id, length: layout.echo, newest: Fields::NONE }
    }
}

impl Receiver for EchoNewest {
    #[inline]
    fn on_data(&mut self, event: &DataEvent) -> bool {
        if event.is_new
            && let Some(bytes) = event.fields.as_data(self.id)
        {
            let mut echo = *bytes;
            echo.iter_mut().skip(self.length.into()).for_each(|byte| *byte = 0);
            self.newest = Fields::echo(self.id, echo);
        }
        true
    }

    #[inline]
    fn echo(&self) -> Fields {
        self.newest
    }

    fn sends_control(&self) -> bool {
        false
    }
}

/// A receiver half that returns the telemetry of the newest data packet with each acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EchoTelemetry {
    has_any: bool,
}

impl Receiver for EchoTelemetry {
    #[inline]
    fn on_data(&mut self, event: &DataEvent) -> bool {
        self.has_any |= event.is_new && event.fields == Fields::TELEMETRY;
        true
    }

    #[inline]
    fn echo(&self) -> Fields {
        if self.has_any { Fields::TELEMETRY_ECHO } else { Fields::NONE }
    }

    fn sends_control(&self) -> bool {
        false
    }
}
