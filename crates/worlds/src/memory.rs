//! Properties of regions: bytes reach only the places of ops whose hosts have the right.

use std::collections::BTreeSet;

use crate::content::{
    CLEARED, EMPTY, SECRET, SECRET_BYTES, is_filled, is_marked, op_word, pattern_word,
};
use crate::ledger::{Check, Entry, Incarnation, Ledger, Regions, State, ensure};
use crate::plan::{MARGIN, PATTERN_BYTES, WORDS, What};

/// Slot of a write while its host has no right to it.
pub(crate) struct Frozen {
    op: usize,
    at: Incarnation,
    bytes: Vec<u8>,
}

impl Ledger {
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

    /// Checks the slot of an op if it is a write with a target.
    pub(crate) fn check_slot(&self, op: usize) -> Check {
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
}
