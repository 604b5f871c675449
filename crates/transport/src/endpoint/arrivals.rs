//! Packets that arrive at an endpoint.

use apus_cc::{AlgorithmFactory, ArrivedAs, DataEvent, Receiver};
use apus_units::{Time, prefetch};
use apus_wire::{Attached, Body, Control, Header, Segment, SegmentKind, WORD_BYTES};

use super::{Endpoint, Handled, enqueue};
use crate::config::{EndpointConfig, Recovery};
use crate::control::echoed;
use crate::flow::Flow;
use crate::op::{MAX_OP_BYTES, Op, OpKind, Outcome};
use crate::receive::{Accepted, Arrival, Observed};
use crate::streams::Finished;

/// Largest packet number that is accepted: the sum of such a number and any range does not
/// overflow. deviation: no source; an honest peer that sends a packet per nanosecond would reach it
/// after a century.
const MAX_PACKET_NUMBER: u64 = 1 << 62;

impl<F: AlgorithmFactory> Endpoint<F> {
    /// Handles a packet. Poll for transmission and completions afterwards.
    pub fn handle_packet(&mut self, arrival: &Arrival, header: &Header) -> Handled {
        self.handle_observed(arrival, header, &Observed::default())
    }

    /// Handles a packet with its telemetry and fields. A [`Body::Signal`] names the flow by the
    /// peer's index: the caller, which knows the peer, must replace it by this endpoint's index.
    pub fn handle_observed(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        observed: &Observed<'_>,
    ) -> Handled {
        let id = header.flow;
        let numbered = header.seq.get() <= MAX_PACKET_NUMBER;
        let flow = self.flows.get_mut(id.index()).filter(|flow| flow.is_open() && numbered);
        let Some(flow) = flow else { return Handled::Refused };
        let completions = &mut self.completions;
        let finish = |f: Finished| completions.push_back(f.completion(id, arrival.now));
        let handled = match &header.body {
            Body::Ack(ack) => {
                let arrival = (arrival, observed);
                Handled::Ack(flow.on_ack(arrival, ack, &self.config, finish))
            }
            Body::Signal(signal) => {
                if !flow.on_signal(arrival, header.seq, signal) {
                    return Handled::Refused;
                }
                Handled::Signal
            }
            Body::Reject(reject) => {
                let outcome = Outcome::Rejected(reject.reason);
                if self.end_op(arrival.now, id, reject.op, outcome) {
                    return Handled::Rejected;
                }
                self.confirm_refusal(arrival.now, id, reject.op);
                return Handled::Duplicate;
            }
            Body::Control(Control::Probe { number }) => {
                if !flow.is_spread() {
                    return Handled::Refused;
                }
                enqueue(&mut self.acks, &mut flow.in_acks, id);
                self.push_refusal(id, Body::Control(Control::ProbeAnswer { number: *number }));
                return Handled::Control;
            }
            Body::Control(Control::ProbeAnswer { number }) => {
                if !flow.on_probe_answer(arrival.now, *number) {
                    return Handled::Refused;
                }
                Handled::Control
            }
            Body::Control(control) => {
                let from = (id, header.seq);
                let handled = flow.on_control(arrival, from, control, &self.config, finish);
                // Received packets are acknowledged explicitly once no further credit acknowledges
                // them.
                if *control == Control::CreditStop && handled == Handled::Control {
                    enqueue(&mut self.acks, &mut flow.in_acks, id);
                }
                if matches!(control, Control::CreditRequest { .. }) {
                    self.list_for_grants(arrival.now, id);
                }
                handled
            }
            Body::Trimmed(trimmed) => {
                return self.handle_trimmed(arrival, header, trimmed, observed);
            }
            Body::Nack(nack) => flow.on_nack(arrival.now, nack, &self.config),
            Body::Data(segment) => {
                let arrival = (arrival, observed);
                let (handled, is_new) =
                    handle_data(flow, arrival, header, segment, &self.config, finish);
                let (arrival, observed) = arrival;
                if handled == Handled::Refused {
                    self.refuse_again(id, segment.op);
                    return handled;
                }
                let due = flow.plain || {
                    let mut event = DataEvent::new(arrival.now);
                    event.marked = arrival.marked;
                    if let Some(Attached::Credit(echo)) = segment.attached {
                        event.credit = Some(echoed(arrival.now, echo));
                    }
                    event.is_new = is_new;
                    event.fields = observed.fields;
                    flow.receiver.on_data(&event)
                };
                let silent = handled == Handled::OutOfOrder { told: false };
                if due && !silent && flow.acks_now(segment, arrival, is_new) {
                    enqueue(&mut self.acks, &mut flow.in_acks, id);
                }
                if self.grants.is_some() {
                    let arrived = ArrivedAs::Whole { marked: arrival.marked };
                    self.note_arrival(arrival.now, id, arrived);
                }
                let flow = &mut self.flows[id.index()];
                // Whether the wheel or the queue of control packets already covers the next action
                // of the receiver half.
                let known = flow.in_controls || flow.next_control() >= flow.timer;
                if !flow.send.has_data() && !flow.send.has_request() && known {
                    flow.can_send = false;
                    return handled; // nothing to send: skip the update
                }
                handled
            }
        };
        self.update(arrival.now, id);
        handled
    }

    /// Prefetches the parts of the flow that a packet needs, before it is handled.
    #[inline]
    pub fn prefetch(&self, header: &Header) {
        if let Some(flow) = self.flows.get(header.flow.index()) {
            flow.prefetch(matches!(header.body, Body::Data(_)));
        }
    }

    /// Prefetches what packets of any flow need.
    #[inline]
    pub fn prefetch_all(&self) {
        self.flows.iter().for_each(prefetch);
    }

    /// Prefetches the data that the flow stores outside its record; call it once the record is in
    /// the cache.
    #[inline]
    pub fn prefetch_further(&self, header: &Header) {
        if let Some(flow) = self.flows.get(header.flow.index()) {
            match &header.body {
                Body::Data(_) => flow.receive.prefetch(),
                Body::Ack(ack) => flow.send.prefetch(ack.largest),
                Body::Nack(nack) => flow.send.prefetch(nack.packet),
                Body::Control(_) | Body::Reject(_) | Body::Signal(_) | Body::Trimmed(_) => {}
            }
        }
    }
}

#[inline]
fn handle_data<F: AlgorithmFactory>(
    flow: &mut Flow<F>,
    (arrival, observed): (&Arrival, &Observed<'_>),
    header: &Header,
    segment: &Segment,
    config: &EndpointConfig,
    finish: impl FnMut(Finished),
) -> (Handled, bool) {
    let answer = segment.kind == SegmentKind::ReadResponse;
    let request = segment.kind.is_request();
    // Everything is checked before the packet number is recorded: refused packets are not
    // acknowledged.
    let admitted = if answer {
        flow.send.admits_answer(segment)
    } else {
        flow.receive.admits(segment, config.max_ops)
    };
    let room = !request || flow.send.responses_under_way() < config.max_ops as usize;
    if !admitted || !room || segment.op_length > MAX_OP_BYTES {
        return (Handled::Refused, false);
    }
    if config.recovery == Recovery::GoBackN {
        let ahead = match answer {
            true => flow.send.answer_is_ahead(segment),
            false => flow.receive.is_ahead(segment),
        };
        if ahead {
            return (Handled::OutOfOrder { told: flow.receive.note_gap() }, false);
        }
    }
    if !flow.record((header.seq, segment.attached), arrival, observed) {
        return (Handled::Duplicate, false);
    }
    if answer {
        let mut finished = false;
        let mut finish = finish;
        let bytes = flow.send.on_answer(arrival.now, segment, |f| {
            finished = true;
            finish(f);
        });
        let handled = match bytes {
            None | Some(0) if !finished => Handled::Duplicate,
            bytes => Handled::Data { bytes: bytes.unwrap_or(0), finished },
        };
        return (handled, true);
    }
    if segment.kind == SegmentKind::Cancel {
        // For the receiving side, a read or atomic op is complete when its request arrives; its
        // answer is not.
        flow.send.drop_response(segment.op);
    }
    let handled = match flow.receive.accept(segment) {
        Accepted::Duplicate => Handled::Duplicate,
        // Every request is whole, so the first copy finishes it.
        Accepted::New { .. } if segment.kind.operand_bytes().is_some() => Handled::Atomic,
        Accepted::New { bytes, finished } => {
            if finished && request {
                if config.reads_wait {
                    flow.send.add_unanswered_read(segment.op);
                } else {
                    respond(flow, arrival.now, segment);
                }
            }
            Handled::Data { bytes, finished }
        }
        Accepted::Cancelled => Handled::Cancelled,
    };
    (handled, true)
}

/// Queues the answer to the peer's read requested by `segment`.
pub(super) fn respond<F: AlgorithmFactory>(flow: &mut Flow<F>, now: Time, segment: &Segment) {
    let kind = match segment.kind {
        SegmentKind::ReadRequest { region, address } => OpKind::Read { region, address },
        _ => OpKind::Message,
    };
    flow.send.respond(now, segment.op, Op { kind, length: segment.op_length, user: 0 });
}

/// Returns the answer to the peer's atomic op in `segment`: the word before the op. `None` for other
/// segments.
pub(super) fn atomic_answer(segment: &Segment, old: u64) -> Option<Op> {
    let kind = match segment.kind {
        SegmentKind::CompareAndSwap { region, address } => {
            OpKind::CompareAndSwap { region, address }
        }
        SegmentKind::FetchAdd { region, address } => OpKind::FetchAdd { region, address },
        _ => return None,
    };
    Some(Op { kind, length: u64::from(WORD_BYTES), user: old })
}
