//! Properties of ops: the checks of completions and of messages.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use apus_udp::{Bytes, Cause, End, OpError, OpResult, Refusal, Region};
use apus_units::Time;

use crate::content::{
    CLEARED, EMPTY, SECRET, SECRET_BYTES, is_marked, marked, op_word, pattern_word,
};
use crate::plan::{OpPlan, PATTERN_BYTES, Plan, WORDS, What};
use crate::trace::{Named, Traces};

/// An incarnation of a host, from its start to its crash or stop: host and number.
pub(crate) type Incarnation = (usize, u32);

/// The regions of an incarnation.
pub(crate) struct Regions {
    /// Region of the slots of writes.
    pub(crate) slots: Region,
    /// Region of known content, read only.
    pub(crate) pattern: Region,
    /// Region of the words of atomic ops.
    pub(crate) words: Region,
    /// Region whose region key no peer has.
    pub(crate) secret: Region,
    /// Region that the insider may change in any way, in worlds with an insider.
    pub(crate) own: Option<Region>,
}

/// Progress of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Planned,
    Submitted,
    /// Not accepted, with the error that was expected for the op.
    Declined,
    Done,
    NotSent,
    Refused,
    Unknown,
    /// The process ended before the op.
    Abandoned,
}

/// An op and its known state.
pub(crate) struct Entry {
    pub(crate) plan: OpPlan,
    pub(crate) state: State,
    pub(crate) submitted_at: Time,
    /// Incarnation that submitted the op.
    pub(crate) by: Option<Incarnation>,
    /// Incarnation that owns the op's region or that receives its message.
    pub(crate) target: Option<Incarnation>,
    /// Whether that incarnation had withdrawn its regions before.
    pub(crate) after_withdrawal: bool,
    /// Whether its host has lacked the right to the region at all times since the submission, and whether it
    /// has lacked it at any time since then.
    pub(crate) barred: [bool; 2],
    /// What its packets say, if it was accepted.
    pub(crate) named: Option<Named>,
    /// First byte of the op's slot.
    pub(crate) slot: u64,
    /// Number of times that its message was received.
    pub(crate) received: u32,
    /// Value that a swap expects.
    pub(crate) expected: u64,
    /// Value of the word before an atomic op that changed it.
    pub(crate) old: Option<u64>,
    /// Payload, if it was created and the op has not been submitted.
    pub(crate) bytes: Option<Bytes>,
}

/// All ops of a world, and the regions that they use.
pub(crate) struct Ledger {
    pub(crate) entries: Vec<Entry>,
    lengths: Vec<u64>,
    pub(crate) regions: BTreeMap<Incarnation, Regions>,
    /// Incarnations that have withdrawn their regions.
    pub(crate) withdrawn: BTreeSet<Incarnation>,
    /// By incarnation: times (from, to) at which the region of known content had half its length.
    short: BTreeMap<Incarnation, Vec<(Time, Time)>>,
    /// Ops that have sent packets.
    pub(crate) traces: Traces,
    /// All ops before this one have ended.
    ended: Cell<usize>,
}

pub(crate) type Check = Result<(), String>;

pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

impl Ledger {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (slots, lengths) = plan.slots();
        let mut ledger = Self {
            entries: Vec::new(),
            lengths,
            regions: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            short: BTreeMap::new(),
            traces: Traces::new(),
            ended: Cell::new(0),
        };
        for (op, slot) in plan.ops.iter().zip(slots) {
            ledger.add(op.clone(), slot);
        }
        ledger
    }

    /// Adds an op whose slot begins at `slot`. Returns the number of the op.
    pub(crate) fn add(&mut self, plan: OpPlan, slot: u64) -> usize {
        self.entries.push(Entry {
            plan,
            state: State::Planned,
            submitted_at: Time::ZERO,
            by: None,
            target: None,
            after_withdrawal: false,
            barred: [false; 2],
            named: None,
            slot,
            received: 0,
            expected: 0,
            old: None,
            bytes: None,
        });
        self.entries.len() - 1
    }

    /// Returns the content of the regions of an incarnation: slots, known content, words, secret.
    pub(crate) fn contents(&self, of: Incarnation) -> [Vec<u8>; 4] {
        [
            vec![EMPTY; self.lengths[of.0] as usize],
            marked(PATTERN_BYTES, pattern_word(of)),
            vec![0; 8 * WORDS as usize],
            vec![SECRET; SECRET_BYTES],
        ]
    }

    /// Returns the length of a host's region of slots.
    pub(crate) fn slots_bytes(&self, host: usize) -> u64 {
        self.lengths[host]
    }

    /// Returns the first byte that an op writes or reads.
    pub(crate) fn address(&self, op: usize) -> u64 {
        let entry = &self.entries[op];
        match entry.plan.what {
            What::Write => entry.slot,
            What::Add | What::Swap => 8 * entry.plan.place,
            What::Beyond => self.lengths[entry.plan.to] - entry.plan.length.min(8),
            What::Overflow => u64::MAX - entry.plan.length / 2,
            What::Read => entry.plan.place,
            What::Message | What::StrangeKey | What::Forbidden | What::TooLong => 0,
        }
    }

    /// Returns the unfinished ops for which `counts` returns `true`. An op that has ended or is not counted
    /// must never count later.
    pub(crate) fn open(&self, counts: impl Fn(&OpPlan) -> bool) -> impl Iterator<Item = usize> {
        let open = move |&op: &usize| {
            let Entry { state, ref plan, .. } = self.entries[op];
            matches!(state, State::Planned | State::Submitted) && counts(plan)
        };
        let mut all = (self.ended.get()..self.entries.len()).filter(open).peekable();
        self.ended.set(all.peek().copied().unwrap_or(self.entries.len()));
        all
    }

    /// Records that the region of known content of an incarnation has half its length from `now` on.
    pub(crate) fn set_short(&mut self, of: Incarnation, now: Time) {
        self.short.entry(of).or_default().push((now, Time::MAX));
    }

    /// Records that the region of known content has its full length again.
    pub(crate) fn end_short(&mut self, of: Incarnation, now: Time) {
        for (_, to) in self.short.get_mut(&of).into_iter().flatten() {
            *to = now.min(*to);
        }
    }

    /// Returns whether the bytes that an op reads were missing at any time of its life up to `now`, and
    /// whether at all times.
    fn was_short(&self, op: usize, now: Time) -> [bool; 2] {
        let entry = &self.entries[op];
        let reaches = entry.plan.place + entry.plan.length > PATTERN_BYTES / 2;
        if entry.plan.what != What::Read || !reaches {
            return [false; 2];
        }
        let times = entry.target.and_then(|target| self.short.get(&target));
        let mut times = times.into_iter().flatten();
        let since = entry.submitted_at;
        let always = times.clone().any(|&(from, to)| from <= since && now < to);
        [times.any(|&(from, to)| from <= now && since <= to), always]
    }

    /// Records the end of an op at `at`, and checks it. `now` is the current incarnation of its target.
    pub(crate) fn on_end(
        &mut self,
        op: usize,
        result: &OpResult,
        now: Incarnation,
        at: Time,
    ) -> Check {
        let [ever_short, always_short] = self.was_short(op, at);
        let entry = &mut self.entries[op];
        let what = entry.plan.what;
        ensure(entry.state == State::Submitted, || format!("op {op} ended twice"))?;
        let stale = entry.target.is_none_or(|target| target != now)
            || entry.target.is_some_and(|target| self.withdrawn.contains(&target))
            || entry.barred[1];
        entry.state = match result {
            Ok(_) => State::Done,
            Err(OpError::NotSent(_)) => State::NotSent,
            Err(OpError::Refused(_)) => State::Refused,
            Err(OpError::Unknown(_)) => State::Unknown,
        };
        match result {
            Ok(done) => {
                ensure(is_legal(what), || format!("op {op} ({what:?}) was done"))?;
                let late = self.entries[op].after_withdrawal && what != What::Message;
                ensure(!late, || format!("op {op} was done on a region withdrawn before"))?;
                ensure(!self.entries[op].barred[0], || {
                    format!("op {op} was done without the right")
                })?;
                ensure(!always_short, || format!("read {op} is done, and its bytes were missing"))?;
                self.on_done(op, &done.bytes, done.old)
            }
            Err(OpError::Refused(why)) => {
                let due = match what {
                    What::StrangeKey => Some(Refusal::NoRegion),
                    What::Forbidden => Some(Refusal::NotAllowed),
                    What::Beyond => Some(Refusal::OutOfBounds),
                    What::TooLong => Some(Refusal::TooLong),
                    _ => None,
                };
                let short = *why == Refusal::OutOfBounds && ever_short;
                let explained = due == Some(*why)
                    || stale && *why == Refusal::NoRegion && what != What::Message
                    || short;
                ensure(explained, || {
                    format!("op {op} ({what:?}) was refused without cause: {why}")
                })?;
                self.check_unreceived(op)?;
                self.check_slot(op)
            }
            Err(OpError::NotSent(cause)) => {
                let never = matches!(cause, Cause::Withdrawn | Cause::Unsendable);
                let failed = *cause == Cause::Ended(End::EngineFailed);
                ensure(!never && !failed, || format!("op {op} was not sent: {cause}"))?;
                self.check_unreceived(op)?;
                self.check_slot(op)?;
                let named = self.entries[op].named;
                named.map_or(Ok(()), |named| self.check_traces(&named))
            }
            Err(OpError::Unknown(cause)) => {
                ensure(*cause != Cause::Unsendable, || format!("op {op} could not be built"))?;
                self.check_slot(op)
            }
        }
    }

    fn on_done(&mut self, op: usize, bytes: &[u8], old: Option<u64>) -> Check {
        let (plan, slot) = (self.entries[op].plan.clone(), self.entries[op].slot);
        let Some(target) = self.entries[op].target else { return Ok(()) };
        let Some(regions) = self.regions.get(&target) else { return Ok(()) };
        match plan.what {
            What::Write => {
                let range = slot as usize..(slot + plan.length) as usize;
                let there =
                    regions.slots.read(|m| is_marked(&m[range.clone()], 0, None, op_word(op)));
                ensure(there, || format!("write {op} is done, and its bytes are not there"))?;
                // From now on, any write to the slot is a second application.
                regions.slots.write(|memory| memory[range].fill(CLEARED));
                Ok(())
            }
            What::Read => {
                let whole = bytes.len() as u64 == plan.length;
                let same = whole && is_marked(bytes, plan.place, None, pattern_word(target));
                ensure(same, || format!("read {op} returned other bytes than those of its range"))
            }
            What::Add | What::Swap => {
                let old = old.ok_or_else(|| format!("atomic op {op} has no word"))?;
                let entry = &mut self.entries[op];
                let changed = plan.what == What::Add || old == entry.expected;
                entry.old = changed.then_some(old);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the message of an op that was not applied was not received.
    fn check_unreceived(&self, op: usize) -> Check {
        let Entry { state, received, .. } = self.entries[op];
        ensure(received == 0, || format!("message {op} is {state:?}, and was received before"))
    }

    /// Records a message and checks it.
    pub(crate) fn on_message(&mut self, at: Incarnation, bytes: &[u8]) -> Check {
        let number = bytes.get(8..16).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let op = number.map_or(usize::MAX, |number| number as usize);
        let known = self.entries.get_mut(op).filter(|e| e.plan.what == What::Message);
        let Some(entry) = known else { return Err(format!("{at:?} received an unknown message")) };
        entry.received += 1;
        let Entry { state, received, .. } = *entry;
        ensure(entry.plan.to == at.0, || format!("host {} received message {op}", at.0))?;
        ensure(received == 1, || format!("message {op} was received {received} times"))?;
        let sent =
            !matches!(state, State::Planned | State::Declined | State::NotSent | State::Refused);
        ensure(sent, || format!("message {op} was received, and its state is {state:?}"))?;
        let long = bytes.len() as u64 == entry.plan.length;
        let whole = long && is_marked(bytes, 0, None, op_word(op));
        ensure(whole, || format!("message {op} was received with other bytes"))
    }

    /// Checks that every message that is done was received, unless its receiver has ended.
    pub(crate) fn check_messages(&self, running: impl Fn(Incarnation) -> bool) -> Check {
        for (op, entry) in self.entries.iter().enumerate() {
            let done = entry.plan.what == What::Message && entry.state == State::Done;
            if done && entry.target.is_some_and(&running) {
                ensure(entry.received == 1, || format!("message {op} is done and not received"))?;
            }
        }
        Ok(())
    }
}

impl What {
    /// Returns `true` if the op names the region of slots.
    pub(crate) fn uses_slots(self) -> bool {
        matches!(self, Self::Write | Self::Beyond)
    }

    /// Returns `true` if the op carries a payload of its length.
    pub(crate) fn has_payload(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Beyond
                | Self::Forbidden
                | Self::StrangeKey
                | Self::Message
                | Self::TooLong
        )
    }
}

fn is_legal(what: What) -> bool {
    matches!(what, What::Write | What::Read | What::Message | What::Add | What::Swap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::payload;

    /// Returns a plan with one message from host 0 to host 1, and its ledger after the op was submitted.
    fn submitted() -> Ledger {
        let mut plan = Plan::draw(0);
        plan.ops.truncate(1);
        let op = &mut plan.ops[0];
        (op.from, op.to, op.what, op.length) = (0, 1, What::Message, 40);
        let mut ledger = Ledger::new(&plan);
        let entry = &mut ledger.entries[0];
        (entry.state, entry.by, entry.target) = (State::Submitted, Some((0, 1)), Some((1, 1)));
        ledger
    }

    #[test]
    fn a_message_that_is_received_and_ends_as_not_applied_is_found_in_both_orders() {
        let (target, next, at) = ((1, 1), (1, 2), Time::ZERO);
        let not_sent = || Err(OpError::NotSent(Cause::Cancelled));
        for end in [not_sent(), Err(OpError::Refused(Refusal::NoRegion))] {
            let mut ledger = submitted();
            assert_eq!(ledger.on_message(target, &payload(0, 40)), Ok(()));
            // The receiver has restarted, which explains some refusals.
            assert!(ledger.on_end(0, &end, next, at).is_err(), "{end:?}");
        }
        let mut ledger = submitted();
        assert_eq!(ledger.on_end(0, &not_sent(), target, at), Ok(()));
        assert!(ledger.on_message(target, &payload(0, 40)).is_err());
        // Messages of unknown end may have been received.
        let mut ledger = submitted();
        assert_eq!(ledger.on_message(target, &payload(0, 40)), Ok(()));
        assert_eq!(ledger.on_end(0, &Err(OpError::Unknown(Cause::Cancelled)), next, at), Ok(()));
    }
}
