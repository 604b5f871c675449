//! Records that the sending side of a flow keeps of its packets.

use alloc::collections::VecDeque;

use apus_cc::Ev;
use apus_units::{OpId, Span, Time};

use crate::streams::{Lane, Streams};

/// A range of a stream that one packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) lane: Lane,
    /// The request of a read or atomic op, or a cancellation; neither is limited by the window.
    pub(crate) request: bool,
    pub(crate) cancel: bool,
    pub(crate) length: u32,
    pub(crate) stream: u64,
    pub(crate) offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    InFlight,
    #[default]
    Acked,
    Lost,
}

/// The record of a transmission. The default is the content of an empty slot of a ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// t1: time at which the stack sent it.
    pub(super) sent_at: Time,
    pub(super) range: Range,
    pub(super) fate: Fate,
    /// Whether a switch has signalled congestion on the path of the packet.
    pub(super) signalled: bool,
    /// The entropy value, if the flow spreads its packets.
    pub(super) ev: Ev,
}

/// State that a flow needs only once it has sent or answered a request, or lost a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    pub(super) responses: Streams,
    /// Ranges to retransmit, before new data.
    pub(super) retransmit: VecDeque<Range>,
    /// Requests of reads and atomic ops, and cancellations; neither window nor pacing delays them.
    pub(super) requests: VecDeque<Range>,
    /// Requests in flight, which do not count towards the window.
    pub(super) requests_in_flight: u32,
    /// Number of reads and atomic ops whose answer is not complete.
    pub(super) answers_waiting: u32,
    /// The peer's reads that the caller must still answer.
    pub(super) unanswered_reads: VecDeque<OpId>,
    /// Ops that have ended here and that the peer refuses. The cancellations that confirm the
    /// refusals are queued or in flight.
    pub(super) confirming: VecDeque<u64>,
    /// Go-back-N: first packet number after the last go-back.
    pub(super) went_back_at: u64,
    /// Packets declared lost by the SACK bitmap, packets declared lost by a timeout, and timeouts.
    pub(super) fast_losses: u64,
    pub(super) timeout_losses: u64,
    pub(super) timeouts: u64,
    /// Number of timeouts of equal length since the last acknowledgement of a packet in flight, and
    /// that length.
    pub(super) fruitless_timeouts: u32,
    pub(super) fruitless_rto: Span,
    /// Time at which the last of these timeouts was counted.
    pub(super) fruitless_at: Time,
    /// Whether the next data packet is new even if other packets wait to be retransmitted, and
    /// whether this applies after the next timeout.
    pub(super) new_first: bool,
    pub(super) new_after_next: bool,
    /// Length up to which the timeout doubles.
    pub(super) longest_rto: Span,
    /// Packets that arrived trimmed.
    pub(super) trims: u64,
    /// Number of round trips in which a packet arrived trimmed since one with payload arrived
    /// whole, and the first packet number of the next round trip.
    pub(super) trimmed_rounds: u32,
    pub(super) trimmed_round_end: u64,
    /// The last packet that carried a retransmission; meaningless before the first one, which never
    /// is packet 0.
    pub(super) resent: u64,
    /// Timeouts since the last packet from the peer, and the time of that packet.
    pub(super) silent_timeouts: u32,
    pub(super) silent_since: Time,
}
