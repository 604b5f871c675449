//! Headers of data packets whose payload a switch removed.

use apus_cc::{AlgorithmFactory, ArrivedAs, DataEvent, Pacing, Receiver, Sender};
use apus_wire::{Body, Header, Nack, Trimmed};

use super::{Endpoint, Handled, enqueue};
use crate::receive::{Arrival, Observed};

impl<F: AlgorithmFactory> Endpoint<F> {
    /// Handles the header of a trimmed data packet of an open flow. If its payload is here already,
    /// the packet counts as received and is acknowledged. Otherwise the sender gets a negative
    /// acknowledgement at once. The packet then does not count as received, and no other
    /// acknowledgement reports it (as in uet-htsim 40ccb05; unverified: Handley et al., NDP,
    /// SIGCOMM 2017).
    pub(super) fn handle_trimmed(
        &mut self,
        arrival: &Arrival,
        header: &Header,
        trimmed: &Trimmed,
        observed: &Observed<'_>,
    ) -> Handled {
        let id = header.flow;
        let Some(flow) = self.flows.get_mut(id.index()) else { return Handled::Refused };
        let (offset, length) = (trimmed.offset, u64::from(trimmed.length));
        let is_here = match trimmed.is_answer {
            true => flow.send.has_answer(trimmed.op, offset, length),
            false => flow.receive.has_range(trimmed.op, offset, length),
        };
        // A range that does not fit the op comes from a broken or hostile peer.
        let Some(is_here) = is_here else { return Handled::Refused };
        if is_here || flow.has_packet(header.seq) {
            flow.record((header.seq, None), arrival, &Observed::default());
            // An algorithm with credits acknowledges data by its credits.
            if flow.algorithm.allowance().pacing != Pacing::Credits {
                enqueue(&mut self.acks, &mut flow.in_acks, id);
            }
            return Handled::Duplicate;
        }
        let mut event = DataEvent::new(arrival.now);
        (event.marked, event.fields) = (arrival.marked, observed.fields);
        flow.receiver.on_trimmed(&event);
        flow.note_trimmed(header.seq);
        let nack = Nack { packet: header.seq, last_hop: trimmed.last_hop, marked: arrival.marked };
        self.push_refusal(id, Body::Nack(nack));
        self.note_arrival(arrival.now, id, ArrivedAs::Trimmed { last_hop: trimmed.last_hop });
        Handled::Trimmed
    }
}
