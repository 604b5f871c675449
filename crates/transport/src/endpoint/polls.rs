//! Polls an endpoint for packets to send and for completions.

use apus_cc::{AlgorithmFactory, CongestionHeader};
use apus_units::{FlowId, Time};
use apus_wire::{Body, Header};

use super::{Endpoint, Transmit, enqueue};
use crate::flow::Readiness;
use crate::op::Completion;
use crate::spread::{NextEv, Turn};

impl<F: AlgorithmFactory> Endpoint<F> {
    /// Returns the next packet to send at `now`: acknowledgements and read requests first, then data.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.poll_ack(now).or_else(|| self.poll_data(now))
    }

    /// Returns the next packet that is subject to neither window nor pacing: a refusal, an
    /// acknowledgement, a control packet or a read request.
    #[inline]
    pub fn poll_ack(&mut self, now: Time) -> Option<Transmit> {
        if let Some(transmit) = self.poll_refusal() {
            return Some(transmit);
        }
        while let Some(id) = self.acks.pop_front() {
            let flow = &mut self.flows[id.index()];
            flow.in_acks = false;
            if let Some((seq, ack)) = flow.ack(now).filter(|_| flow.is_open()) {
                if flow.receive.has_gap_to_report() {
                    // This acknowledgement has news, so it does not inform the sender of the gap;
                    // the next one does.
                    enqueue(&mut self.acks, &mut flow.in_acks, id);
                }
                return Some(Transmit {
                    flow: id,
                    header: Header { flow: flow.peer, seq, body: Body::Ack(ack) },
                    congestion: flow.echo(),
                    path: flow.path_back(),
                });
            }
        }
        self.poll_rare(now)
    }

    /// Returns the next control packet or read request.
    #[inline(never)] // most packets are neither
    fn poll_rare(&mut self, now: Time) -> Option<Transmit> {
        while let Some(id) = self.controls.pop_front() {
            let flow = &mut self.flows[id.index()];
            flow.in_controls = false;
            let probe = flow.poll_probe(now);
            let path = if probe.is_some() { flow.path() } else { flow.path_back() };
            let sent = probe.or_else(|| flow.poll_control(now)).filter(|_| flow.is_open());
            self.update(now, id);
            if let Some(header) = sent {
                let congestion = CongestionHeader::default();
                return Some(Transmit { flow: id, header, congestion, path });
            }
        }
        while let Some(id) = self.requests.pop_front() {
            let flow = &mut self.flows[id.index()];
            flow.in_requests = false;
            let sent = flow.send_request(now);
            let path = flow.path();
            self.update(now, id);
            if let Some((header, congestion)) = sent {
                return Some(Transmit { flow: id, header, congestion, path });
            }
        }
        None
    }

    /// Returns the next data packet that window and pace allow. Flows are served round-robin.
    #[inline]
    pub fn poll_data(&mut self, now: Time) -> Option<Transmit> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(next) = self.ready.front() {
                self.flows[next.index()].send.prefetch_next();
            }
            if let Some(further) = self.ready.get(1) {
                self.flows[further.index()].prefetch(false);
            }
            if let Some(transmit) = self.send_data_of(now, id) {
                return Some(transmit);
            }
        }
        None
    }

    /// Returns the flow that [`Endpoint::poll_data`] tries first, if any.
    #[inline]
    #[must_use]
    pub fn next_data(&self) -> Option<FlowId> {
        self.ready.front().copied()
    }

    /// Returns the next data packet like [`Endpoint::poll_data`], for hosts with several ports of
    /// which some are busy. `turn` decides for each flow whether it may send; if the flow has a
    /// policy, it gets the entropy value of the next packet. All other flows keep their position,
    /// and `turn` is not called again for a waiting flow until `has_room` is true for its ports. A
    /// poll therefore examines one flow per set of ports, and each flow once when it begins to
    /// wait.
    pub fn poll_data_of(
        &mut self,
        now: Time,
        has_room: impl Fn(u64) -> bool,
        mut turn: impl FnMut(FlowId, Option<NextEv<'_>>) -> Turn,
    ) -> Option<Transmit> {
        for _ in 0..self.waiting.len() + self.ready.len() {
            let id = self.waiting.pop(&has_room).or_else(|| self.ready.pop_front())?;
            let flow = &mut self.flows[id.index()];
            match turn(id, flow.next_ev(now)) {
                Turn::Wait(ports) => {
                    self.waiting.push(ports, id);
                    continue;
                }
                Turn::Send => {}
                Turn::SendBy(ev) => flow.set_next_ev(ev),
            }
            if let Some(transmit) = self.send_data_of(now, id) {
                return Some(transmit);
            }
        }
        None
    }

    /// Makes the next poll examine all flows that wait for ports again, because links of the host
    /// or paths have changed.
    pub fn forget_ports(&mut self) {
        if self.waiting.len() == 0 {
            return;
        }
        let later = core::mem::take(&mut self.ready);
        for flow in self.waiting.take().chain(later.iter().copied()) {
            self.ready.push_back(flow);
        }
    }

    /// Returns a data packet of a flow that has just left the queue of ready flows, if window and
    /// pace allow one.
    #[inline]
    fn send_data_of(&mut self, now: Time, id: FlowId) -> Option<Transmit> {
        let flow = &mut self.flows[id.index()];
        flow.in_ready = false;
        // Each direction can have its own thread, so the time of a poll may be before that of the
        // last evaluation.
        let known = flow.can_send && self.looked_at <= now;
        let ready = known || flow.readiness(now, &self.config) == Readiness::Ready;
        let first = flow.send.in_flight == 0;
        let ready_flows = (self.waiting.len() + self.ready.len()) as u32 + 1; // fewer than 2^32 flows
        let sent = if ready { flow.send_data(now, &self.config, ready_flows) } else { None };
        let path = flow.path();
        if first || sent.is_none() || flow.has_control() {
            self.update(now, id);
        } else {
            self.update_after_data(now, id);
        }
        let (header, congestion) = sent?;
        Some(Transmit { flow: id, header, congestion, path })
    }

    /// Returns `true` if `poll_ack` may return a packet.
    #[inline]
    #[must_use]
    pub fn has_ack(&self) -> bool {
        // Combined with `|` for a single branch.
        self.acks.len() | self.controls.len() | self.requests.len() | self.refusals.len() > 0
    }

    /// Returns `true` if `poll_data` may return a packet.
    #[inline]
    #[must_use]
    pub fn has_data(&self) -> bool {
        self.waiting.len() | self.ready.len() > 0
    }

    /// Returns `true` if `poll_transmit` may return a packet.
    #[inline]
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        self.has_ack() || self.has_data()
    }

    /// Returns the next op that ended.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }
}
