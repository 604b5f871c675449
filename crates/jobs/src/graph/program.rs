//! The operations of one rank.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::edges::Edges;
use super::labels::Labels;
use super::{ANY, Action, Kind, Op, Packed};

/// The operations of one rank, numbered from 0 in the order in which they were added.
///
/// An operation takes 36 bytes, plus 4 for each dependency and the text of its label, if it has one.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) ops: Box<[Packed]>,
    /// Number of dependencies of each operation, of both kinds.
    pub(super) needs: Box<[u32]>,
    /// Operations that wait for the end of an operation.
    pub(super) after_end: Edges,
    /// Operations that wait for the start of an operation.
    pub(super) after_start: Edges,
    pub(super) labels: Labels,
    /// First operation of each section, ascending; the first is 0.
    pub(super) sections: Box<[u32]>,
    /// Runs of consecutive operations of one part: the first operation, and the part or [`ANY`]; ascending.
    pub(super) parts: Box<[(u32, u32)]>,
}

/// Programs are equal if they have the same operations, even if the parts of these differ.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let Self { ops, needs, after_end, after_start, labels, sections, parts: _ } = self;
        *ops == other.ops
            && *needs == other.needs
            && *after_end == other.after_end
            && *after_start == other.after_start
            && *labels == other.labels
            && *sections == other.sections
    }
}

impl Eq for Program {}

impl Program {
    /// Returns the number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Returns `true` if the rank has no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Returns an operation.
    ///
    /// # Panics
    /// If there is no operation of this number.
    #[inline]
    #[must_use]
    pub fn op(&self, op: u32) -> Op {
        self.ops[op as usize].into()
    }

    /// Returns all operations in order.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = Op> + '_ {
        self.ops.iter().map(|packed| (*packed).into())
    }

    /// Returns the number of dependencies of an operation, of both kinds.
    ///
    /// # Panics
    /// If there is no operation of this number.
    #[inline]
    #[must_use]
    pub fn dependencies(&self, op: u32) -> u32 {
        self.needs[op as usize]
    }

    /// Returns the operations that require `op`: they may start when it is done.
    ///
    /// # Panics
    /// If there is no operation of this number.
    #[inline]
    #[must_use]
    pub fn after_end(&self, op: u32) -> &[u32] {
        self.after_end.of(op)
    }

    /// Returns the operations that irequire `op`: they may start when it has started.
    ///
    /// # Panics
    /// If there is no operation of this number.
    #[inline]
    #[must_use]
    pub fn after_start(&self, op: u32) -> &[u32] {
        self.after_start.of(op)
    }

    /// Returns the number of all dependencies, of both kinds.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.after_end.len() + self.after_start.len()
    }

    /// Returns the label of an operation, if it has one.
    #[must_use]
    pub fn label(&self, op: u32) -> Option<&str> {
        self.labels.of(op)
    }

    /// Returns `true` if every operation has a label.
    #[must_use]
    pub fn is_labelled(&self) -> bool {
        self.labels.len() == self.len() && (0..self.len() as u32).all(|op| self.label(op).is_some())
    }

    /// Returns the number of sections, such as the iterations of a collective; at least 1.
    #[must_use]
    pub fn sections(&self) -> usize {
        self.sections.len()
    }

    /// Returns the section of an operation.
    #[inline]
    #[must_use]
    pub fn section_of(&self, op: u32) -> usize {
        match self.sections.len() {
            1 => 0,
            _ => self.sections.partition_point(|first| *first <= op).saturating_sub(1),
        }
    }

    /// Returns the number of operations of a section.
    ///
    /// # Panics
    /// If there is no such section.
    #[must_use]
    pub fn section_len(&self, section: usize) -> u32 {
        let end = self.sections.get(section + 1).copied().unwrap_or(self.ops.len() as u32);
        end - self.sections[section]
    }

    /// Returns the runs of consecutive operations that belong to one part of the job: the first operation of
    /// each, and the part or `None`. Operations before the first run belong to no part.
    pub fn part_runs(&self) -> impl ExactSizeIterator<Item = (u32, Option<u32>)> + '_ {
        self.parts.iter().map(|(first, part)| (*first, Some(*part).filter(|part| *part != ANY)))
    }

    /// Returns the index of an operation's run in [`Program::part_runs`], if the operation belongs to a part.
    #[inline]
    #[must_use]
    pub fn part_run_of(&self, op: u32) -> Option<usize> {
        let run = self.parts.partition_point(|(first, _)| *first <= op).checked_sub(1)?;
        (self.parts[run].1 != ANY).then_some(run)
    }

    /// Returns the part of an operation.
    #[must_use]
    pub fn part_of(&self, op: u32) -> Option<u32> {
        self.part_run_of(op).map(|run| self.parts[run].1)
    }

    /// Returns the number of streams: the highest stream number of an operation plus one.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.ops.iter().map(|op| usize::from(op.cpu) + 1).max().unwrap_or(0)
    }

    /// Returns the number of NICs: the highest NIC number of an operation plus one.
    #[must_use]
    pub fn nics(&self) -> usize {
        self.ops.iter().map(|op| usize::from(op.nic) + 1).max().unwrap_or(0)
    }

    /// Returns source and tag of all receives that name both, in ascending order without repetition.
    pub(crate) fn channels(&self) -> Vec<(u32, u32)> {
        let named = |op: &&Packed| op.kind == Kind::Receive && op.peer != ANY && op.tag != ANY;
        let receives = self.ops.iter().filter(named);
        let mut channels: Vec<(u32, u32)> = receives.map(|op| (op.peer, op.tag)).collect();
        channels.sort_unstable();
        channels.dedup();
        channels.shrink_to_fit();
        channels
    }

    /// Returns a description of an operation for messages: `op 5 (l6): send 100 B to rank 3, tag 7`.
    #[must_use]
    pub fn describe(&self, op: u32) -> String {
        use alloc::format;
        let number = |number: u32| match number {
            ANY => String::from("any"),
            number => format!("{number}"),
        };
        let label = self.label(op).map(|label| format!(" ({label})")).unwrap_or_default();
        let what = match self.op(op).action {
            Action::Send { to, bytes, tag } => {
                format!("send {bytes} B to rank {to}, tag {}", number(tag))
            }
            Action::Receive { from, bytes, tag } => {
                format!("receive {bytes} B from rank {}, tag {}", number(from), number(tag))
            }
            Action::Compute { time } => format!("compute {time}"),
        };
        format!("op {op}{label}: {what}")
    }
}
