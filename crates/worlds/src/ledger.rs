//! Properties of ops: the checks of completions, of messages and of the memory of regions.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use apus_udp::{Bytes, Cause, End, OpError, OpResult, Refusal, Region};
use apus_units::Time;
use apus_units::random::mix;

use crate::plan::{MARGIN, OpPlan, PATTERN_BYTES, Plan, WORDS, What};

/// Bytes that every payload repeats, so that a readable payload is detected.
pub(crate) const MARK: [u8; 8] = *b"apus txt";
/// Content of slots before they are written.
const EMPTY: u8 = 0xee;
/// Content of slots after their write was reported as done.
const CLEARED: u8 = 0x55;
/// Content of a region whose region key no peer has.
const SECRET: u8 = 0xa7;
const SECRET_BYTES: usize = 4096;
/// Number of bytes of a block of payloads and of known content.
const BLOCK: usize = 16;

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
    /// First byte of the op's slot.
    slot: u64,
    /// Number of times that its message was received.
    pub(crate) received: u32,
    /// Value that a swap expects.
    pub(crate) expected: u64,
    /// Value of the word before an atomic op that changed it.
    old: Option<u64>,
    /// Payload, if it was created and the op has not been submitted.
    pub(crate) bytes: Option<Bytes>,
}

/// Slot of a write while its host has no right to it.
pub(crate) struct Frozen {
    op: usize,
    at: Incarnation,
    bytes: Vec<u8>,
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
    /// All ops before this one have ended.
    ended: Cell<usize>,
}

/// Returns the payload of an op.
pub(crate) fn payload(op: usize, length: u64) -> Vec<u8> {
    marked(length, op_word(op))
}

/// Returns a function from the index of a block to the word of that block, for the payload of an op. The
/// first word is the number of the op.
fn op_word(op: usize) -> impl Fn(u64) -> u64 {
    move |block| if block == 0 { op as u64 } else { mix((op as u64) << 32 | block) }
}

/// Returns a function from the index of a block to the word of that block, for the known content of an incarnation.
fn pattern_word((host, number): Incarnation) -> impl Fn(u64) -> u64 {
    let key = mix(mix(host as u64) ^ u64::from(number));
    move |block| mix(key ^ block)
}

/// Returns a block: [`MARK`] and a word.
#[inline]
fn block(word: u64) -> u128 {
    u128::from(word) << 64 | u128::from(u64::from_le_bytes(MARK))
}

/// Returns the first bytes of a sequence of blocks.
fn marked(length: u64, word: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    let (blocks, rest) = bytes.as_chunks_mut::<BLOCK>();
    let mut number = 0;
    for place in blocks {
        *place = block(word(number)).to_le_bytes();
        number += 1;
    }
    rest.copy_from_slice(&block(word(number)).to_le_bytes()[..rest.len()]);
    bytes
}

/// Returns `true` if `bytes` are those of a sequence of blocks from its byte `start`; each byte may also be `or`.
fn is_marked(bytes: &[u8], start: u64, or: Option<u8>, word: impl Fn(u64) -> u64) -> bool {
    let byte_is = |byte: u8, wanted: u8| byte == wanted || Some(byte) == or;
    let part_is = |part: &[u8], number: u64, from: usize| {
        let wanted = &block(word(number)).to_le_bytes()[from..];
        part.iter().zip(wanted).all(|(&byte, &wanted)| byte_is(byte, wanted))
    };
    let (skipped, mut number) = (start as usize % BLOCK, start / BLOCK as u64);
    let (head, rest) = match skipped {
        0 => (&bytes[..0], bytes),
        _ => bytes.split_at(bytes.len().min(BLOCK - skipped)),
    };
    if skipped > 0 {
        if !part_is(head, number, skipped) {
            return false;
        }
        number += 1;
    }
    let (blocks, tail) = rest.as_chunks::<BLOCK>();
    for bytes in blocks {
        // Whole blocks are compared at once.
        if u128::from_le_bytes(*bytes) != block(word(number)) && !part_is(bytes, number, 0) {
            return false;
        }
        number += 1;
    }
    part_is(tail, number, 0)
}

/// Returns `true` if all bytes are `byte`.
fn is_filled(bytes: &[u8], byte: u8) -> bool {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    let wanted = u128::from_le_bytes([byte; BLOCK]);
    blocks.iter().all(|block| u128::from_le_bytes(*block) == wanted)
        && tail.iter().all(|&b| b == byte)
}

type Check = Result<(), String>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Check {
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
                let explained = due == Some(*why) || stale && *why == Refusal::NoRegion || short;
                ensure(explained, || {
                    format!("op {op} ({what:?}) was refused without cause: {why}")
                })?;
                self.check_slot(op)
            }
            Err(OpError::NotSent(cause)) => {
                let never = matches!(cause, Cause::Withdrawn | Cause::Unsendable);
                let failed = *cause == Cause::Ended(End::EngineFailed);
                ensure(!never && !failed, || format!("op {op} was not sent: {cause}"))?;
                self.check_slot(op)
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

    /// Records whether a peer has the right to the slots of an incarnation.
    pub(crate) fn on_grant(&mut self, of: Incarnation, peer: usize, may: bool) {
        let of_peer = |e: &&mut Entry| {
            e.plan.from == peer && e.target == Some(of) && e.plan.what.uses_slots()
        };
        for entry in self.entries.iter_mut().filter(of_peer) {
            // Packets of an op that was given up may still arrive.
            if matches!(entry.state, State::Submitted | State::Unknown | State::Abandoned) {
                entry.barred = if may { [false, entry.barred[1]] } else { [entry.barred[0], true] };
            }
        }
    }

    /// Returns the slots of a peer's writes to an incarnation that are not done.
    pub(crate) fn freeze(&self, of: Incarnation, peer: usize) -> Vec<Frozen> {
        let Some(regions) = self.regions.get(&of) else { return Vec::new() };
        let writes = |entry: &Entry| {
            (entry.plan.from, entry.plan.what, entry.target) == (peer, What::Write, Some(of))
                && !matches!(entry.state, State::Planned | State::Done)
        };
        let ops = (0..self.entries.len()).filter(|&op| writes(&self.entries[op]));
        ops.map(|op| Frozen { op, at: of, bytes: self.slot_bytes(regions, op) }).collect()
    }

    fn slot_bytes(&self, regions: &Regions, op: usize) -> Vec<u8> {
        let Entry { slot, ref plan, .. } = self.entries[op];
        regions.slots.read(|memory| memory[slot as usize..(slot + plan.length) as usize].to_vec())
    }

    /// Checks that slots still have their recorded content. If the op of a slot is done, its slot must have
    /// had all of its bytes.
    pub(crate) fn check_frozen(&self, frozen: &[Frozen]) -> Check {
        frozen.iter().try_for_each(|Frozen { op, at, bytes }| {
            let Some(regions) = self.regions.get(at) else { return Ok(()) };
            let state = self.entries[*op].state;
            let same = match state {
                State::Done => is_marked(bytes, 0, None, op_word(*op)),
                _ => self.slot_bytes(regions, *op) == *bytes,
            };
            ensure(same, || format!("write {op} went on at {at:?} without the right"))
        })
    }

    /// Checks that no write of a peer to an incarnation was applied if the peer never had the right since its
    /// submission.
    pub(crate) fn check_barred(&self, of: Incarnation, peer: usize) -> Check {
        let Some(regions) = self.regions.get(&of) else { return Ok(()) };
        let writes = |entry: &Entry| {
            (entry.plan.from, entry.plan.what, entry.target) == (peer, What::Write, Some(of))
                && entry.barred[0]
        };
        let mut ops = (0..self.entries.len()).filter(|&op| writes(&self.entries[op]));
        ops.try_for_each(|op| {
            let empty = is_filled(&self.slot_bytes(regions, op), EMPTY);
            ensure(empty, || format!("write {op} began at {of:?} without the right"))
        })
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

    /// Checks the slot of an op if it is a write with a target.
    fn check_slot(&self, op: usize) -> Check {
        let entry = &self.entries[op];
        let regions = entry.target.and_then(|target| self.regions.get(&target));
        match regions {
            Some(regions) if entry.plan.what == What::Write => {
                regions.slots.read(|memory| self.slot_holds(op, entry.target, memory))
            }
            _ => Ok(()),
        }
    }

    fn slot_holds(&self, op: usize, at: Option<Incarnation>, memory: &[u8]) -> Check {
        let Entry { state, slot, ref plan, .. } = self.entries[op];
        let range = &memory[slot as usize..(slot + plan.length) as usize];
        let here = at == self.entries[op].target;
        let may_be_there = matches!(state, State::Submitted | State::Unknown | State::Abandoned);
        let holds = match state {
            State::Done if here => is_filled(range, CLEARED),
            _ if here && may_be_there => is_marked(range, 0, Some(EMPTY), op_word(op)),
            _ => is_filled(range, EMPTY),
        };
        ensure(holds, || format!("write {op} is {state:?}, and its slot at {at:?} says otherwise"))
    }

    /// Checks all regions of an incarnation.
    pub(crate) fn check_regions(&self, of: Incarnation) -> Check {
        let Some(regions) = self.regions.get(&of) else { return Ok(()) };
        let known = |memory: &[u8]| {
            memory.len() as u64 == PATTERN_BYTES && is_marked(memory, 0, None, pattern_word(of))
        };
        let same = regions.pattern.read(known);
        ensure(same, || format!("read-only memory of {of:?} changed"))?;
        let same = regions.secret.read(|m| m.len() == SECRET_BYTES && is_filled(m, SECRET));
        ensure(same, || format!("secret memory of {of:?} changed"))?;
        regions.slots.read(|memory| {
            let mut at = 0;
            let writes = |entry: &Entry| entry.plan.to == of.0 && entry.plan.what == What::Write;
            for op in (0..self.entries.len()).filter(|&op| writes(&self.entries[op])) {
                let Entry { slot, ref plan, .. } = self.entries[op];
                self.gap_holds(of, &memory[at..slot as usize])?;
                self.slot_holds(op, Some(of), memory)?;
                at = (slot + plan.length) as usize;
            }
            self.gap_holds(of, &memory[at..])
        })?;
        (0..WORDS).try_for_each(|word| self.check_word(of, word))
    }

    fn gap_holds(&self, of: Incarnation, gap: &[u8]) -> Check {
        let holds = is_filled(gap, EMPTY);
        ensure(holds, || format!("{MARGIN} bytes between slots of {of:?} changed"))
    }

    /// Checks a word: every op that is done has added 1 to a different value, and every other op has added at most 1.
    fn check_word(&self, of: Incarnation, word: u64) -> Check {
        let Some(regions) = self.regions.get(&of) else { return Ok(()) };
        let Ok(value) = regions.words.load(8 * word) else { return Ok(()) };
        let atomic = |e: &&Entry| {
            matches!(e.plan.what, What::Add | What::Swap)
                && e.target == Some(of)
                && e.plan.place == word
        };
        let mut olds = BTreeSet::new();
        let mut perhaps = 0;
        for entry in self.entries.iter().filter(atomic) {
            match (entry.state, entry.old) {
                (State::Done, Some(old)) => {
                    let new = olds.insert(old);
                    ensure(new, || format!("two atomic ops found {old} in word {word} of {of:?}"))?;
                    let below = old < value;
                    ensure(below, || {
                        format!("an op found {old} in word {word} of {of:?}: {value}")
                    })?;
                }
                (State::Submitted | State::Unknown | State::Abandoned, _) => perhaps += 1,
                _ => {}
            }
        }
        let done = olds.len() as u64;
        ensure((done..=done + perhaps).contains(&value), || {
            format!(
                "word {word} of {of:?} is {value} after {done} ops and {perhaps} of unknown end"
            )
        })
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
