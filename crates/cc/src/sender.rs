//! The sender half of an algorithm.

use apus_units::{Rate, Span, Time};

use crate::{
    AckEvent, Backlog, CongestionHeader, CreditEvent, LossEvent, PacketSizeEvent, SendInfo,
    SignalEvent, StateError, StateOverride, TimeoutEvent, TrimEvent,
};

/// The rate at which a flow may send: a window, and a pace within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Window in packets, possibly below 1; infinite if only the pace limits.
    pub window: f64,
    /// Pace within the window.
    pub pacing: Pacing,
}

impl Allowance {
    /// Returns the number of packets that may be in flight: `max(1, floor(window))`.
    ///
    /// The paper does not say how many packets a window of 1.5 admits; here it admits 1. A window
    /// below 1 also admits 1, and pacing spaces the packets (Swift §3.4). If a window shrinks below
    /// the number of packets in flight, sending stops until enough of them are acknowledged.
    #[inline]
    #[must_use]
    pub fn packets(&self) -> u32 {
        // `as` truncates, saturates at the largest count (an infinite window) and maps NaN to 0.
        (self.window as u32).max(1)
    }

    /// Returns `true` if another packet may leave while `in_flight` packets are in flight: fewer
    /// than [`Allowance::packets`].
    #[inline]
    #[must_use]
    pub fn admits(&self, in_flight: u32) -> bool {
        in_flight == 0 || f64::from(in_flight) + 1.0 <= self.window
    }
}

/// The pace of a flow within its window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Packets leave as acknowledgements open the window.
    AckClocked,
    /// Successive packets leave at this distance (Swift Alg. 1 `pacing_delay`), one at a time.
    Delay(Span),
    /// The sender half decides when each packet leaves ([`Sender::departure`]).
    Own {
        /// Intended gap between successive packets, for display.
        gap: Span,
    },
    /// Packets leave at this rate of wire bytes.
    Rate(Rate),
    /// Each packet needs a credit from the receiver.
    Credits,
}

/// State of a sender half that the transport needs after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// [`Sender::allowance`].
    pub allowance: Allowance,
    /// [`Sender::rto`].
    pub rto: Span,
    /// [`Sender::next_timer`]; [`Time::MAX`] without a timer.
    pub next_timer: Time,
    /// [`Sender::path_label`].
    pub path_label: u32,
}

/// The decision of a sender half about its next data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The packet may leave now.
    Now,
    /// The packet may leave at this time, unless the transport polls again earlier.
    At(Time),
    /// No packet may leave until the next event.
    Blocked,
}

/// A control packet that the sender half of a credit-based algorithm sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderControl {
    /// The sender has data and needs credits.
    CreditRequest,
    /// The sender has no more data.
    CreditStop,
}

/// The sender half: processes events and returns an [`Allowance`].
///
/// The transport reads the allowance after every event and before every transmission; its value
/// must depend only on the events.
pub trait Sender {
    /// Processes the arrival of an acknowledgement.
    fn on_ack(&mut self, event: &AckEvent<'_>);
    /// Processes packets that were declared lost from the SACK bitmap.
    fn on_loss(&mut self, event: &LossEvent);
    /// Processes the trimming of a packet, whose payload will be retransmitted. By default the packet counts
    /// as lost: a full queue causes both.
    fn on_trim(&mut self, event: &TrimEvent) {
        self.on_loss(&event.as_loss());
    }
    /// Processes the expiry of the retransmission timeout.
    fn on_timeout(&mut self, event: &TimeoutEvent);
    /// Stamps the congestion fields of a data packet that is about to leave.
    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo);
    /// Returns the window and pace at which the flow may send now.
    fn allowance(&self) -> Allowance;
    /// Returns the decision on the next data packet, with `in_flight` packets counting against the
    /// window. Called only with [`Pacing::Own`], while there is data to send: after every event and
    /// before every transmission.
    fn departure(&mut self, _now: Time, _in_flight: u32) -> Departure {
        Departure::Now
    }
    /// Called after every event while the flow has no data to send.
    #[inline]
    fn on_idle(&mut self, _now: Time) {}
    /// Returns the retransmission timeout to arm now, from the last progress of the flow.
    fn rto(&self) -> Span;
    /// Processes the arrival of a credit; the transport sends a packet for it if it has one.
    fn on_credit(&mut self, _event: &CreditEvent) {}
    /// Processes a grant of the receiver ([`ReceiverControl::Grant`](crate::ReceiverControl)).
    fn on_grant(&mut self, _now: Time, _total: u32) {}
    /// Processes the congestion signal of a switch (Bolt's SRC).
    fn on_signal(&mut self, _event: &SignalEvent) {}
    /// Processes the receiver's report of marked packets (DCQCN's congestion notification packet).
    fn on_notification(&mut self, _now: Time) {}
    /// Processes a change of the size of full packets. A window in packets keeps its size in bytes
    /// ([`PacketSizeEvent::scaled`]), within its bounds.
    fn on_packet_size(&mut self, _event: &PacketSizeEvent) {}
    /// Returns the control packet to send at `now`, given the data to send. Called for algorithms
    /// that are paced by [`Pacing::Credits`], after every event of the flow.
    fn poll_control(&mut self, _now: Time, _backlog: &Backlog) -> Option<SenderControl> {
        None
    }
    /// Returns the time at which [`Sender::on_timer`] is due, if the algorithm has its own timer.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// Processes the expiry of the algorithm's own timer.
    fn on_timer(&mut self, _now: Time) {}
    /// Returns the label of the path that the flow should take; a change selects another path
    /// (Falcon's PLB). Transmissions do not change the label.
    fn path_label(&self) -> u32 {
        0
    }
    /// Returns the results of the methods named in [`Outlook`]. The transport reaches a half through a branch
    /// or a pointer, so one call costs less than four. Implementations must not override this method.
    #[inline]
    fn outlook(&self) -> Outlook {
        Outlook {
            allowance: self.allowance(),
            rto: self.rto(),
            next_timer: self.next_timer().unwrap_or(Time::MAX),
            path_label: self.path_label(),
        }
    }
    /// Returns the state, for samples, traces and `apus replay`.
    fn snapshot(&self) -> Snapshot;
}

/// A sender half whose state can be set by a replay.
///
/// Not for senders of packets: a replay puts an algorithm into a recorded state and observes its
/// reaction to one event.
pub trait ReplaySender: Sender {
    /// Overwrites parts of the state.
    ///
    /// # Errors
    /// A part that the algorithm does not have, or a value that it cannot have; then nothing has
    /// changed.
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        state.check(&[])
    }
    /// Sets the latest raw RTT as a recorded loss or timeout states it. The smoothed RTT follows
    /// acknowledgements only.
    fn set_latest_rtt(&mut self, _rtt: Span) {}
    /// Returns the target that an acknowledgement over `hops` switches would be compared with now, if the
    /// algorithm has one (Swift §3.5).
    fn target_delay(&self, _hops: u8) -> Option<Span> {
        None
    }
}

/// The visible state of an algorithm; a field that the algorithm does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The window in force, in packets.
    pub cwnd: f64,
    /// Swift §3.3: the window that follows the fabric delay.
    pub fabric_cwnd: Option<f64>,
    /// Swift §3.3: the window that follows the endpoint delay.
    pub endpoint_cwnd: Option<f64>,
    /// Swift §3.5: the fabric target at the last acknowledgement.
    pub target_delay: Option<Span>,
    /// Delay between packets when the window is paced.
    pub pacing_delay: Option<Span>,
    /// Smoothed end-to-end RTT, once there is a sample.
    pub smoothed_rtt: Option<Span>,
}
