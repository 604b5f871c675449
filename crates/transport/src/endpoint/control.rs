//! Operations on flows and ops other than data transfer: refuse, cancel, release.

use apus_cc::{AlgorithmFactory, CongestionHeader, PacketSizeEvent, Sender};
use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, OpId, PacketNumber, Time};
use apus_wire::{Body, Header, RegionKey, Reject, RejectReason, Segment, SegmentKind};

use super::arrivals::{atomic_answer, respond};
use super::{Endpoint, Transmit, enqueue};
use crate::flow::Life;
use crate::op::{Completion, Op, Outcome};

/// Maximum number of queued refusals and negative acknowledgements. A peer can provoke one with
/// every packet; if one is dropped, a repeated packet or a timeout replaces it. deviation: no
/// source; twice the largest batch of a simulated host, each packet of which may be trimmed, and
/// bounded.
const MAX_REFUSALS: usize = 256;
/// Maximum number of queued refusals of one flow, so that other flows have room. deviation: no
/// source; a quarter of all.
const MAX_REFUSALS_OF_FLOW: usize = MAX_REFUSALS / 4;

/// The path of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The path of the peer's last packet.
    Back,
    /// The path that the flow uses without a path policy.
    First,
}

impl<F: AlgorithmFactory> Endpoint<F> {
    /// Refuses an op of the peer instead of passing its packet to [`Endpoint::handle_packet`]: the
    /// packet is neither recorded nor acknowledged, and the peer gets the reason. All further
    /// packets of the op are refused for the same reason, even those that are passed to
    /// `handle_packet`. The peer can therefore report that nothing was applied; if part of the op
    /// was already accepted, [`RejectReason::NoRegion`] becomes [`RejectReason::Withdrawn`].
    /// Returns `false` if the op has ended here: then the packet is a duplicate, to be handled as
    /// usual.
    pub fn reject(&mut self, id: FlowId, op: OpId, reason: RejectReason) -> bool {
        let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) else {
            return false;
        };
        if flow.receive.has_ended(op) {
            return false;
        }
        let reason = match reason {
            RejectReason::NoRegion
                if flow.receive.has_begun(op) && !is_planted(Bug::RefusedInPart) =>
            {
                RejectReason::Withdrawn
            }
            reason => reason,
        };
        let again = flow.receive.refusal(op).is_some();
        flow.receive.refuse(op, reason, self.config.max_ops);
        let refusal = Body::Reject(Reject { op, reason });
        if again {
            self.push_refusal_again(id, refusal);
        } else {
            self.push_refusal(id, refusal);
        }
        true
    }

    /// Repeats the refusal of an op, if it was refused, because another packet of it has arrived.
    #[cold]
    pub(super) fn refuse_again(&mut self, id: FlowId, op: OpId) {
        let reason = self.flows.get(id.index()).and_then(|flow| flow.receive.refusal(op));
        if let Some(reason) = reason {
            self.push_refusal_again(id, Body::Reject(Reject { op, reason }));
        }
    }

    /// Queues a refusal or a negative acknowledgement. Returns `false` if there is no room.
    pub(super) fn push_refusal(&mut self, id: FlowId, refusal: Body) -> bool {
        self.push_refusal_by(id, refusal, Way::Back)
    }

    /// Repeats a refusal that the peer has not confirmed. The path of the peer's last packet may no
    /// longer reach the peer, and the first path may have failed, so both are used. Returns `false`
    /// if there is no room.
    fn push_refusal_again(&mut self, id: FlowId, refusal: Body) -> bool {
        let Some(flow) = self.flows.get(id.index()) else { return true };
        let back = flow.is_spread() && self.push_refusal_by(id, refusal, Way::Back);
        self.push_refusal_by(id, refusal, Way::First) || back
    }

    fn push_refusal_by(&mut self, id: FlowId, refusal: Body, way: Way) -> bool {
        if self.refusals.len() >= MAX_REFUSALS {
            return false;
        }
        let refusal = (id, refusal, way);
        if self.refusals.contains(&refusal) {
            return true;
        }
        if matches!(refusal.1, Body::Reject(_)) {
            let of_flow = self
                .refusals
                .iter()
                .filter(|(flow, body, _)| *flow == id && matches!(body, Body::Reject(_)));
            if of_flow.count() >= MAX_REFUSALS_OF_FLOW {
                return false;
            }
        }
        self.refusals.push_back(refusal);
        true
    }

    /// Drops a data packet of `op` for lack of memory. The peer gets the last acknowledgement
    /// again, which shows that this side is running, and retransmits the packet later. Returns
    /// `false` if the op has ended here: then the packet is a duplicate, to be handled as usual,
    /// since its op already occupies memory and dropping it would block the peer.
    pub fn not_ready(&mut self, id: FlowId, op: OpId) -> bool {
        let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) else {
            return false;
        };
        if is_planted(Bug::FullQueue) {
            return true;
        }
        if flow.receive.has_ended(op) {
            return false;
        }
        enqueue(&mut self.acks, &mut flow.in_acks, id);
        true
    }

    /// Answers a read of the peer, whose request is `segment`, under
    /// [`reads_wait`](crate::EndpointConfig::reads_wait). Poll for transmission afterwards. Returns
    /// `false`, without any change, if that read is not pending: it was answered, refused or cancelled.
    pub fn answer_read(&mut self, now: Time, id: FlowId, segment: &Segment) -> bool {
        let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) else {
            return false;
        };
        let request = matches!(segment.kind, SegmentKind::ReadRequest { .. });
        if !request || !flow.send.take_unanswered_read(segment.op) {
            return false;
        }
        respond(flow, now, segment);
        self.update(now, id);
        true
    }

    /// Answers an atomic op of the peer, whose request is `segment`, after [`Handled::Atomic`]: `old`
    /// is the word before the op. The flow keeps it until the peer has acknowledged the answer. Poll
    /// for transmission afterwards. Returns `false`, without any change, if the flow is not open or
    /// `segment` is not the request of an atomic op.
    ///
    /// [`Handled::Atomic`]: crate::Handled::Atomic
    pub fn answer_atomic(&mut self, now: Time, id: FlowId, segment: &Segment, old: u64) -> bool {
        let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) else {
            return false;
        };
        let Some(answer) = atomic_answer(segment, old) else { return false };
        flow.send.respond(now, segment.op, answer);
        self.update(now, id);
        true
    }

    /// Cancels an op of this side: it ends now, as `Failed` if it is unsent, otherwise as
    /// `Unknown`, and the peer is informed. Returns `false` if it has already ended.
    pub fn cancel(&mut self, now: Time, id: FlowId, op: OpId) -> bool {
        self.end_op(now, id, op, Outcome::Unknown)
    }

    /// Ends an op with `outcome`, or `Failed` if it is unsent.
    pub(super) fn end_op(&mut self, now: Time, id: FlowId, op: OpId, outcome: Outcome) -> bool {
        let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) else {
            return false;
        };
        let Some((finished, sent)) = flow.send.cancel(now, op) else { return false };
        let outcome = if sent { outcome } else { Outcome::Failed };
        self.completions.push_back(Completion { outcome, ..finished.completion(id, now) });
        self.update(now, id);
        true
    }

    /// Confirms the peer's refusal of an op that has ended here (a read ends with its answer) by a
    /// cancellation.
    #[cold]
    pub(super) fn confirm_refusal(&mut self, now: Time, id: FlowId, op: OpId) {
        let flow = self.flows.get_mut(id.index()).filter(|flow| flow.is_open());
        if flow.is_some_and(|flow| flow.send.confirm_refusal(op)) {
            self.update(now, id);
        }
    }

    /// Withdraws a data packet that was polled but could not be built, so that it never left: it is
    /// neither in flight nor lost, and its bytes are not retransmitted. End its op by
    /// [`Endpoint::cancel`] or [`Endpoint::refuse_answer`].
    pub fn take_back(&mut self, now: Time, id: FlowId, seq: PacketNumber) {
        if let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) {
            flow.send.take_back(seq.get());
            self.update(now, id);
        }
    }

    /// Drops the answer to the peer's read or atomic op `op` and sends the reason to the peer. A
    /// refusal is sent once and may be lost: repeat the call until the peer's
    /// [`SegmentKind::Cancel`] for `op` arrives, which ends every refused op. Returns `false` if
    /// the reason is not sent because too many refusals of this flow, or of all flows, are queued.
    pub fn refuse_answer(&mut self, now: Time, id: FlowId, op: OpId, reason: RejectReason) -> bool {
        let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) else {
            return true;
        };
        let refusal = Body::Reject(Reject { op, reason });
        let queued = if flow.send.drop_response(op) {
            self.push_refusal(id, refusal)
        } else {
            self.push_refusal_again(id, refusal)
        };
        self.update(now, id);
        queued
    }

    /// Returns the peers' reads whose answers are not yet acknowledged, with their regions, flow by
    /// flow.
    pub fn answers(&self) -> impl Iterator<Item = (FlowId, OpId, RegionKey)> + '_ {
        let flows = self.flows.iter().enumerate();
        // Flow numbers are 32-bit indices.
        flows.flat_map(|(place, flow)| {
            let id = FlowId::new(place as u32);
            flow.send.answers().map(move |(op, region)| (id, op, region))
        })
    }

    /// Returns the regions of a flow's answers to reads that are not yet acknowledged.
    pub fn answers_of(&self, id: FlowId) -> impl Iterator<Item = RegionKey> + '_ {
        let flow = self.flows.get(id.index());
        flow.into_iter().flat_map(|flow| flow.send.answers().map(|(_, region)| region))
    }

    /// Returns the op that the bytes of a packet from this side belong to: an op submitted here, or
    /// the peer's op that a `ReadResponse` answers. `None` if the op has ended.
    #[must_use]
    pub fn source(&self, id: FlowId, segment: &Segment) -> Option<&Op> {
        let flow = self.flows.get(id.index())?;
        match segment.kind {
            SegmentKind::ReadResponse => flow.send.response(segment.op),
            _ => flow.send.op(segment.op),
        }
    }

    /// Returns the op of this side with that number, while it is outstanding.
    #[must_use]
    pub fn op(&self, id: FlowId, op: OpId) -> Option<&Op> {
        self.flows.get(id.index())?.send.op(op)
    }

    /// Returns the outstanding ops of this side of a flow.
    pub fn ops(&self, id: FlowId) -> impl Iterator<Item = &Op> + '_ {
        self.flows.get(id.index()).into_iter().flat_map(|flow| flow.send.ops())
    }

    /// Corrects the departure time of a data packet (t1) by a timestamp taken later in the stack or
    /// by the NIC.
    pub fn on_sent(&mut self, id: FlowId, seq: PacketNumber, at: Time) {
        if let Some(flow) = self.flows.get_mut(id.index()).filter(|f| f.is_open()) {
            flow.send.correct_sent_at(seq.get(), at);
        }
    }

    /// Sets the payload bytes of a flow's full packets, for a path of another MTU than
    /// [`EndpointConfig::max_payload`](crate::EndpointConfig::max_payload), and notifies the
    /// algorithm if the size has changed. Lost ranges are divided again.
    ///
    /// # Panics
    /// If the payload is 0.
    pub fn set_packet_size(&mut self, id: FlowId, size: &PacketSizeEvent) {
        assert!(size.payload.get() > 0, "a packet carries at least one byte");
        let Some(flow) = self.flows.get_mut(id.index()) else { return };
        flow.max_payload = u32::try_from(size.payload.get()).unwrap_or(u32::MAX);
        if size.payload != size.payload_before {
            flow.algorithm.on_packet_size(size);
            // The window now admits more or fewer packets: the next poll evaluates the flow again.
            flow.can_send = false;
            if flow.is_open() {
                enqueue(&mut self.ready, &mut flow.in_ready, id);
            }
        }
    }

    /// Returns the number of flows that were not released.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Returns the window in force, in packets.
    #[must_use]
    pub fn cwnd(&self, id: FlowId) -> Option<f64> {
        self.flows.get(id.index()).map(|flow| flow.algorithm.allowance().window)
    }

    /// Sets the flow's index at the peer, for flows that are opened before the peer answers. Call
    /// it before anything is sent on the flow.
    pub fn set_peer(&mut self, id: FlowId, peer: FlowId) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            flow.peer = peer;
        }
    }

    /// Returns the flow's index at the peer.
    #[must_use]
    pub fn peer(&self, id: FlowId) -> Option<FlowId> {
        self.flows.get(id.index()).map(|flow| flow.peer)
    }

    /// Forgets a flow, after aborting it if it is still open. Its number will be used again.
    pub fn release(&mut self, now: Time, id: FlowId) {
        if self.flows.get(id.index()).is_none_or(|flow| flow.life == Life::Released) {
            return;
        }
        self.abort(now, id);
        self.flows[id.index()].release();
        self.refusals.retain(|(flow, ..)| *flow != id);
        self.free.push(id);
    }

    pub(super) fn poll_refusal(&mut self) -> Option<Transmit> {
        let (id, body, way) = self.refusals.pop_front()?;
        let flow = &mut self.flows[id.index()];
        let seq = flow.receive.next_control();
        Some(Transmit {
            flow: id,
            header: Header { flow: flow.peer, seq, body },
            congestion: CongestionHeader::default(),
            path: match way {
                Way::Back => flow.path_back(),
                Way::First => flow.first_path(),
            },
        })
    }
}
