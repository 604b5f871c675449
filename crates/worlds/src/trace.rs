//! Properties of sent packets: every packet belongs to an op, and none to an op that ended as not sent. Headers
//! are readable, also in sealed sessions.

use std::collections::{BTreeMap, BTreeSet};

use apus_wire::{Body, Header, RegionKey, Segment, SegmentKind, decode};

use crate::ledger::{Check, Incarnation, Ledger, State, ensure};
use crate::machine::Keys;
use crate::plan::{OpPlan, What};

/// Bytes of the checksum at the end of an insecure packet.
const CHECKSUM_BYTES: usize = 4;
/// Bytes of the session number and the packet number before it, or at the end of a sealed packet.
const NUMBERS_BYTES: usize = 8;

/// Kind of a packet that names an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Write,
    Read,
    Message,
    Add,
    Swap,
}

/// What the packets of an op say about it. Ops may say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    by: Incarnation,
    kind: Kind,
    region: Option<RegionKey>,
    /// Address of the first byte of the op, or length of a message.
    place: u64,
}

/// Numbers of an op: session at the receiver, flow, and op.
type Number = (u32, u32, u64);

/// Ops of which at least one packet was sent, by what their packets say.
pub(crate) type Traces = BTreeMap<Named, BTreeSet<Number>>;

impl Named {
    /// Returns what the packets of an op must say.
    pub(crate) fn new(by: Incarnation, plan: &OpPlan, address: u64, keys: &Keys) -> Self {
        let kind = match plan.what {
            What::Write | What::Beyond | What::Forbidden | What::StrangeKey => Kind::Write,
            What::Read | What::Overflow => Kind::Read,
            What::Message | What::TooLong => Kind::Message,
            What::Add => Kind::Add,
            What::Swap => Kind::Swap,
        };
        let region = keys.of_op(plan.what);
        Self { by, kind, region, place: if region.is_some() { address } else { plan.length } }
    }

    /// Returns what a segment says; `None` if it is an answer or a cancellation.
    fn of_segment(by: Incarnation, segment: &Segment) -> Option<Self> {
        let (kind, place) = match segment.kind {
            SegmentKind::Write { address, .. } => (Kind::Write, address),
            SegmentKind::ReadRequest { address, .. } => (Kind::Read, address),
            SegmentKind::FetchAdd { address, .. } => (Kind::Add, address),
            SegmentKind::CompareAndSwap { address, .. } => (Kind::Swap, address),
            SegmentKind::Message => (Kind::Message, segment.op_length),
            SegmentKind::ReadResponse | SegmentKind::Cancel => return None,
        };
        Some(Self { by, kind, region: segment.kind.region(), place })
    }
}

/// Returns the number of a packet's session at its receiver.
fn session_of(datagram: &[u8], sealed: bool) -> Option<u32> {
    let end = datagram.len().checked_sub(if sealed { 0 } else { CHECKSUM_BYTES })?;
    let bytes = datagram.get(end.checked_sub(NUMBERS_BYTES)?..)?;
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

impl Ledger {
    /// Records a datagram that an incarnation sends, and checks it.
    pub(crate) fn on_sent(&mut self, by: Incarnation, datagram: &[u8], sealed: bool) -> Check {
        let Ok((Header { flow, body: Body::Data(segment), .. }, _)) = decode(datagram) else {
            return Ok(());
        };
        let named = Named::of_segment(by, &segment);
        let (Some(named), Some(session)) = (named, session_of(datagram, sealed)) else {
            return Ok(());
        };
        let number = (session, flow.get(), segment.op.get());
        if self.traces.entry(named).or_default().insert(number) {
            return self.check_traces(&named);
        }
        Ok(())
    }

    /// Checks that at most as many ops have sent packets that say this as may have.
    pub(crate) fn check_traces(&self, named: &Named) -> Check {
        let sent = self.traces.get(named).map_or(0, BTreeSet::len);
        let unsent = [State::Planned, State::Declined, State::NotSent];
        let may = self.entries.iter().filter(|e| e.named.as_ref() == Some(named));
        let may = may.filter(|entry| !unsent.contains(&entry.state)).count();
        ensure(sent <= may, || {
            format!("{sent} ops have sent packets, and only {may} may have: {named:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use apus_udp::{Cause, OpError};
    use apus_units::{FlowId, OpId, PacketNumber, Time};
    use apus_wire::encode;

    use super::*;
    use crate::plan::Plan;

    const BY: Incarnation = (0, 1);
    const TARGET: Incarnation = (1, 1);

    fn keys() -> Keys {
        let [slots, pattern, words, secret] = [1, 2, 3, 4].map(|n| RegionKey::new(n << 16));
        Keys { of: TARGET, slots, pattern, words, secret, own: None }
    }

    /// Returns the ledger of an op of this kind that was submitted.
    fn submitted(what: What) -> Ledger {
        let mut plan = Plan::draw(0);
        plan.ops.truncate(1);
        let op = &mut plan.ops[0];
        (op.from, op.to, op.what, op.length, op.place) = (BY.0, TARGET.0, what, 40, 2);
        let mut ledger = Ledger::new(&plan);
        let address = ledger.address(0);
        let entry = &mut ledger.entries[0];
        entry.named = Some(Named::new(BY, &entry.plan, address, &keys()));
        (entry.state, entry.by, entry.target) = (State::Submitted, Some(BY), Some(TARGET));
        ledger
    }

    /// Returns an insecure datagram of an op with this number.
    fn datagram(kind: SegmentKind, op: u64) -> Vec<u8> {
        let length = kind.operand_bytes().unwrap_or(0);
        let op_length = if length > 0 { u64::from(length) } else { 40 };
        let op = OpId::new(op);
        let segment = Segment { op, kind, offset: 0, length, op_length, attached: None };
        let body = Body::Data(segment);
        let header = Header { flow: FlowId::new(1), seq: PacketNumber::new(5), body };
        let mut bytes = vec![0; 200];
        let end = encode(&header, &mut bytes).expect("a legal header");
        bytes.truncate(end + length as usize + NUMBERS_BYTES + CHECKSUM_BYTES);
        bytes
    }

    #[test]
    fn a_packet_of_an_op_that_ends_as_not_sent_is_found_in_both_orders() {
        let keys = keys();
        let read = SegmentKind::ReadRequest { region: keys.pattern, address: 2 };
        let add = SegmentKind::FetchAdd { region: keys.words, address: 16 };
        for (what, kind) in [(What::Read, read), (What::Add, add)] {
            let end = |ledger: &mut Ledger| {
                ledger.on_end(0, &Err(OpError::NotSent(Cause::Deadline)), TARGET, Time::ZERO)
            };
            let mut ledger = submitted(what);
            assert_eq!(ledger.on_sent(BY, &datagram(kind, 7), false), Ok(()));
            assert_eq!(ledger.on_sent(BY, &datagram(kind, 7), false), Ok(()), "again");
            assert!(end(&mut ledger).is_err(), "{what:?}");
            let mut ledger = submitted(what);
            assert_eq!(end(&mut ledger), Ok(()));
            assert!(ledger.on_sent(BY, &datagram(kind, 7), false).is_err(), "{what:?}");
        }
    }

    #[test]
    fn a_packet_of_no_op_is_found() {
        let kind = SegmentKind::ReadRequest { region: keys().pattern, address: 2 };
        let mut ledger = submitted(What::Read);
        assert_eq!(ledger.on_sent(BY, &datagram(kind, 7), false), Ok(()));
        assert!(ledger.on_sent(BY, &datagram(kind, 8), false).is_err(), "a second op");
        let elsewhere = SegmentKind::ReadRequest { region: keys().pattern, address: 3 };
        let mut ledger = submitted(What::Read);
        assert!(ledger.on_sent(BY, &datagram(elsewhere, 7), false).is_err());
    }
}
