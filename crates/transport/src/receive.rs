//! The receiving side of a flow: the transmissions that arrived, the ops that they complete, and
//! the acknowledgement that is due.

use alloc::boxed::Box;

use apus_cc::{Fields, Telemetry};
use apus_units::planted::{Bug, is_planted};
use apus_units::{OpId, PacketNumber, Ring, Span, Time, prefetch};
use apus_wire::{Ack, Received, RejectReason, Segment, SegmentKind};

use crate::ranges::RangeSet;
use crate::received::{ReceivedPackets, Recorded};

/// An op of the peer that has begun to arrive.
#[derive(Clone, Debug, Default)]
struct Inbound {
    /// Kind and length, as fixed by the first segment; a later segment that differs is refused.
    first: Option<(SegmentKind, u64)>,
    received: RangeSet,
    done: bool,
    /// Reason for which the op was refused. No segment of it is accepted afterwards, even if it
    /// would be allowed later.
    refused: Option<RejectReason>,
}

impl Inbound {
    /// Returns `true` if `segment` may belong to the op: it has the kind and length of the first
    /// segment.
    #[inline]
    fn is_of(&self, segment: &Segment) -> bool {
        let Some((kind, length)) = self.first else { return true };
        let same_kind = match (kind, segment.kind) {
            // Most segments belong to writes: this arm avoids the comparison of all kinds.
            (
                SegmentKind::Write { region, address },
                SegmentKind::Write { region: other, address: at },
            ) => region == other && address == at,
            (kind, other) => kind == other,
        };
        same_kind && length == segment.op_length
    }
}

/// The kind of an arrived segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// New bytes of an op, `finished` if these were the last ones missing.
    New { bytes: u64, finished: bool },
    /// The peer has cancelled the op before its end.
    Cancelled,
    /// Nothing new.
    Duplicate,
}

/// Measurements at the arrival of a packet; all times are on the host clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// t3 or t6: time at which the stack processes the packet.
    pub now: Time,
    /// t2 or t5: time at which the NIC received the packet.
    pub nic_received_at: Time,
    /// Number of switches that the packet passed, from its TTL.
    pub hops: u8,
    /// Whether the packet carries an ECN mark.
    pub marked: bool,
    /// Fill level of the receive buffer in 32nds.
    pub receiver_level: u8,
}

/// Fields that switches wrote into a packet for the algorithm of its flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<'a> {
    /// The packet's congestion fields except ECN.
    pub fields: Fields,
    /// Telemetry that switches appended to the packet, or to the data packet that this
    /// acknowledgement echoes.
    pub telemetry: Option<&'a Telemetry>,
    /// Number of the path by which the packet arrived, for flows that spread their packets. The
    /// caller chooses the number and gets it back in [`Path::Back`](crate::Path::Back).
    pub path: u32,
}

/// Content of the next acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DueAck {
    #[default]
    Nothing,
    /// The newest packet is new since the last acknowledgement.
    News,
    /// Go-back-N: as `News`; a second acknowledgement, without news, then reports the gap.
    NewsAndGap,
    /// Go-back-N: data arrived behind a gap.
    Gap,
    /// Go-back-N: the gap has been reported to the sender, which happens once per gap.
    GapReported,
}

/// The receiving side of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveSide {
    packets: ReceivedPackets,
    /// The newest data packet and the time at which the NIC received it, for the next
    /// acknowledgement; meaningless before the first packet.
    newest: PacketNumber,
    newest_received_at: Time,
    inbound: Ring<Inbound>,
    /// Number of the op at the front of `inbound`; all earlier ops are done.
    first_op: u64,
    next_ack: u64,
    telemetry: Option<Box<Telemetry>>,
    marked: u32,
    /// Number of switches that the newest packet passed, and fill level of the receive buffer in
    /// 32nds.
    hops: u8,
    receiver_level: u8,
    /// Whether the newest packet carried an ECN mark.
    newest_marked: bool,
    due: DueAck,
}

impl ReceiveSide {
    /// Records transmission `seq` for the next acknowledgement. Returns `false` if it is a
    /// duplicate or too old to decide; its payload must then not be used.
    #[inline]
    pub(crate) fn record(
        &mut self,
        seq: PacketNumber,
        arrival: &Arrival,
        observed: &Observed<'_>,
    ) -> bool {
        let recorded = self.packets.record(seq);
        self.note_recorded(recorded, seq, arrival, observed)
    }

    /// Records a packet like [`ReceiveSide::record`]. `recorded` is the result of a longer record
    /// of packet numbers.
    #[inline]
    pub(crate) fn record_known(
        &mut self,
        recorded: Recorded,
        seq: PacketNumber,
        arrival: &Arrival,
        observed: &Observed<'_>,
    ) -> bool {
        self.packets.record(seq);
        self.note_recorded(recorded, seq, arrival, observed)
    }

    #[inline]
    fn note_recorded(
        &mut self,
        recorded: Recorded,
        seq: PacketNumber,
        arrival: &Arrival,
        observed: &Observed<'_>,
    ) -> bool {
        match recorded {
            Recorded::New => {
                self.marked = self.marked.wrapping_add(u32::from(arrival.marked));
                self.note(seq, arrival);
                self.due = DueAck::News;
                self.observe(observed);
            }
            // The sender may already have the timing of a duplicate, so it is echoed only if no
            // newer packet is to be echoed.
            Recorded::Duplicate if !matches!(self.due, DueAck::News | DueAck::NewsAndGap) => {
                self.note(seq, arrival)
            }
            Recorded::Duplicate | Recorded::TooOld => {}
        }
        recorded == Recorded::New
    }

    /// Sets packet `seq` as the newest.
    #[inline]
    fn note(&mut self, seq: PacketNumber, arrival: &Arrival) {
        (self.newest, self.newest_received_at) = (seq, arrival.nic_received_at);
        (self.hops, self.receiver_level) = (arrival.hops, arrival.receiver_level);
        self.newest_marked = arrival.marked;
    }

    /// Stores the telemetry of a packet, to be returned to the sender.
    #[inline]
    fn observe(&mut self, observed: &Observed<'_>) {
        if let Some(telemetry) = observed.telemetry {
            match &mut self.telemetry {
                Some(place) => **place = *telemetry,
                None => self.telemetry = Some(Box::new(*telemetry)),
            }
        }
    }

    /// Prefetches the op that is arriving.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(op) = self.inbound.front() {
            prefetch(op);
        }
    }

    /// Returns the telemetry of the newest data packet.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_deref()
    }

    /// Returns `true` if the peer may send `segment`, given at most `max_ops` outstanding ops.
    #[inline]
    pub(crate) fn admits(&self, segment: &Segment, max_ops: u32) -> bool {
        let op = segment.op.get();
        if op < self.first_op {
            return true; // ended long ago: a duplicate
        }
        let index = op - self.first_op;
        if index >= u64::from(max_ops) {
            return false;
        }
        let index = index as usize; // `max_ops` is a u32, so it fits
        let Some(op) = self.inbound.get(index) else { return true };
        if segment.kind == SegmentKind::Cancel {
            return true;
        }
        op.refused.is_none() && op.received.has_room_for(segment.offset, index) && op.is_of(segment)
    }

    /// Returns `true` if bytes before an admitted segment of one of the peer's ops are missing.
    /// Requests and cancellations may arrive in any order.
    pub(crate) fn is_ahead(&self, segment: &Segment) -> bool {
        if segment.kind.is_request() || segment.kind == SegmentKind::Cancel {
            return false;
        }
        let Some(index) = segment.op.get().checked_sub(self.first_op) else { return false };
        // The first op is not complete, otherwise it would have been removed.
        let here = self.inbound.front().map_or(0, |op| op.received.contiguous());
        index > 0 || segment.offset > here
    }

    /// Go-back-N: handles a packet behind a gap, which is dropped. Returns `true` if the sender
    /// must be informed now.
    pub(crate) fn note_gap(&mut self) -> bool {
        self.due = match self.due {
            DueAck::Nothing => DueAck::Gap,
            DueAck::News => DueAck::NewsAndGap,
            DueAck::NewsAndGap | DueAck::Gap | DueAck::GapReported => return false,
        };
        true
    }

    /// Returns `true` if the sender must still be informed of a gap, by an acknowledgement without
    /// news.
    pub(crate) fn has_gap_to_report(&self) -> bool {
        self.due == DueAck::Gap
    }

    /// Processes an admitted segment of one of the peer's ops.
    #[inline]
    pub(crate) fn accept(&mut self, segment: &Segment) -> Accepted {
        let Some(index) = segment.op.get().checked_sub(self.first_op) else {
            if is_planted(Bug::ExecutedTwice) && segment.kind.operand_bytes().is_some() {
                return Accepted::New { bytes: 0, finished: true };
            }
            return Accepted::Duplicate;
        };
        let index = index as usize; // bounded by `admits`
        if index >= self.inbound.len() {
            self.inbound.extend_to(index + 1);
        }
        let Some(op) = self.inbound.get_mut(index) else { return Accepted::Duplicate };
        if op.done && !(is_planted(Bug::MessageAgain) && segment.kind == SegmentKind::Message) {
            return Accepted::Duplicate;
        }
        if segment.kind == SegmentKind::Cancel {
            if is_planted(Bug::CancelUnseen) && op.first.is_none() {
                return Accepted::Duplicate;
            }
            op.done = true;
            self.drop_done();
            return Accepted::Cancelled;
        }
        if op.first.is_none() {
            op.first = Some((segment.kind, segment.op_length));
        }
        let request = segment.kind.is_request();
        let bytes = op.received.insert(segment.offset, u64::from(segment.length));
        let finished = request || op.received.is_complete(segment.op_length);
        if finished {
            op.done = true;
            self.drop_done();
        }
        if bytes == 0 && !finished {
            Accepted::Duplicate
        } else {
            Accepted::New { bytes, finished }
        }
    }

    fn drop_done(&mut self) {
        while self.inbound.front().is_some_and(|i| i.done) {
            self.inbound.pop_front();
            self.first_op += 1;
        }
    }

    /// Returns `true` if op `id` of the peer has ended here: complete, or cancelled by the peer.
    pub(crate) fn has_ended(&self, id: OpId) -> bool {
        match id.get().checked_sub(self.first_op) {
            None => true,
            Some(index) => self.inbound.get(index as usize).is_some_and(|op| op.done),
        }
    }

    /// Refuses op `id` of the peer, which has at most `max_ops` outstanding. No further segment of
    /// the op is admitted, except its cancellation.
    pub(crate) fn refuse(&mut self, id: OpId, reason: RejectReason, max_ops: u32) {
        let index = id.get().checked_sub(self.first_op).filter(|&i| i < u64::from(max_ops));
        let Some(index) = index else { return };
        let index = index as usize; // `max_ops` is a u32
        if index >= self.inbound.len() {
            self.inbound.extend_to(index + 1);
        }
        if let Some(op) = self.inbound.get_mut(index) {
            op.refused.get_or_insert(reason);
        }
    }

    /// Returns the reason for which op `id` of the peer was refused, if it was.
    pub(crate) fn refusal(&self, id: OpId) -> Option<RejectReason> {
        let index = id.get().checked_sub(self.first_op)?;
        self.inbound.get(usize::try_from(index).ok()?)?.refused
    }

    /// Returns `true` if packet `seq` was received, as far as that is known.
    pub(crate) fn has_packet(&self, seq: PacketNumber) -> bool {
        self.packets.contains(seq)
    }

    /// Returns whether these bytes of op `id` of the peer have arrived; `None` if the op ends
    /// before them.
    pub(crate) fn has_range(&self, id: OpId, offset: u64, length: u64) -> Option<bool> {
        let Some(index) = id.get().checked_sub(self.first_op) else { return Some(true) };
        let Some(op) = self.inbound.get(usize::try_from(index).ok()?) else { return Some(false) };
        let end = offset.checked_add(length)?;
        match op.first {
            Some((_, op_length)) if end > op_length => None,
            _ => Some(op.done || op.received.contains(offset, length)),
        }
    }

    /// Returns `true` if op `id` of the peer was accepted in part and more is missing.
    pub(crate) fn has_begun(&self, id: OpId) -> bool {
        let index = id.get().checked_sub(self.first_op);
        let op = index.and_then(|index| self.inbound.get(index as usize));
        op.is_some_and(|op| op.first.is_some())
    }

    /// Returns the next number in the number space of acknowledgements.
    pub(crate) fn next_control(&mut self) -> PacketNumber {
        let seq = PacketNumber::new(self.next_ack);
        self.next_ack += 1;
        seq
    }

    /// Returns the received data packets for credits; `None` if none was received.
    pub(crate) fn received(&self) -> Option<Received> {
        let largest = self.packets.largest()?;
        Some(Received { largest, bitmap: self.packets.bitmap() })
    }

    /// Returns the acknowledgement of all received packets, with the timing of the newest one
    /// (Swift §3.1: `remote_queuing` = t4 - t2). `now` is t4.
    #[inline]
    pub(crate) fn ack(&mut self, now: Time) -> Option<(PacketNumber, Ack)> {
        let largest = self.packets.largest()?;
        self.due = match self.due {
            DueAck::Nothing | DueAck::News => DueAck::Nothing,
            DueAck::NewsAndGap => DueAck::Gap,
            DueAck::Gap | DueAck::GapReported => DueAck::GapReported,
        };
        let seq = self.next_control();
        let ack = Ack {
            largest,
            bitmap: self.packets.bitmap(),
            echo: self.newest,
            // Whole nanoseconds, as in the header (Swift App. B), also in the simulator.
            remote_queuing: Span::from_ns(now.since(self.newest_received_at).as_ps() / 1_000),
            hops: self.hops,
            marked: self.marked,
            receiver_level: self.receiver_level,
            echo_marked: self.newest_marked,
            missing: None,
        };
        Some((seq, ack))
    }
}
