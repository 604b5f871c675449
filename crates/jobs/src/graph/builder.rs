//! Construction of the program of a rank.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::edges::Edges;
use super::labels::Labels;
use super::{ANY, Flaw, GraphError, Kind, Op, Packed, Program, cycle};

/// Builder of the program of one rank, operation by operation.
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    rank: u32,
    ranks: u32,
    ops: Vec<Packed>,
    /// Pairs of an operation and an operation for whose end it waits.
    after_end: Vec<(u32, u32)>,
    /// Pairs of an operation and an operation for whose start it waits.
    after_start: Vec<(u32, u32)>,
    labels: Labels,
    /// First operation of each section after the first one.
    sections: Vec<u32>,
    /// First operations that belong to another part than the previous operation, each with its part.
    parts: Vec<(u32, u32)>,
}

/// Checks the peer of an operation.
pub(super) fn check_peer(
    ranks: u32,
    rank: u32,
    op: u32,
    packed: &Packed,
) -> Result<(), GraphError> {
    let legal = match packed.kind {
        Kind::Send => packed.peer < ranks,
        Kind::Receive => packed.peer < ranks || packed.peer == ANY,
        Kind::Compute => true,
    };
    if legal {
        return Ok(());
    }
    let what = Flaw::Peer { peer: packed.peer, ranks };
    Err(GraphError { rank: Some(rank), op: Some(op), what })
}

impl ProgramBuilder {
    /// Begins the program of `rank` in a job of `ranks` ranks.
    #[must_use]
    pub fn new(rank: u32, ranks: u32) -> Self {
        let (ops, after_end, after_start) = (Vec::new(), Vec::new(), Vec::new());
        let (labels, sections, parts) = (Labels::default(), Vec::new(), Vec::new());
        Self { rank, ranks, ops, after_end, after_start, labels, sections, parts }
    }

    /// Reserves memory for this number of operations.
    pub fn reserve(&mut self, ops: usize) {
        self.ops.reserve_exact(ops);
    }

    /// Returns the number of operations so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Returns `true` if there is no operation so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Adds an operation and returns its number.
    ///
    /// # Errors
    /// If the peer is not a rank, or if there are too many operations.
    pub fn push(&mut self, op: Op) -> Result<u32, GraphError> {
        let number = u32::try_from(self.ops.len()).ok().filter(|number| *number < ANY);
        let Some(number) = number else { return Err(self.too_many()) };
        let packed = Packed::from(op);
        check_peer(self.ranks, self.rank, number, &packed)?;
        self.ops.push(packed);
        Ok(number)
    }

    /// Sets the label of the operation that was added last.
    ///
    /// # Errors
    /// If the labels of the rank take 4 GiB or more.
    pub fn label(&mut self, label: &str) -> Result<(), GraphError> {
        let Some(op) = self.ops.len().checked_sub(1) else { return Ok(()) };
        let fits = self.labels.len() > op || self.labels.push(op as u32, label);
        if fits { Ok(()) } else { Err(self.too_many()) }
    }

    /// Begins a section, for example an iteration. It contains the operations that are added from now on.
    /// Results state the end of each section.
    pub fn begin_section(&mut self) {
        self.sections.push(self.ops.len() as u32);
    }

    /// Makes the operations that are added from now on belong to a part of the job ([`Graph::parts`]);
    /// `None`: to no part.
    ///
    /// [`Graph::parts`]: super::Graph::parts
    pub fn begin_part(&mut self, part: Option<u32>) {
        let (first, part) = (self.ops.len() as u32, part.unwrap_or(ANY));
        if self.parts.last().is_some_and(|(at, _)| *at == first) {
            self.parts.pop();
        }
        let before = self.parts.last().map_or(ANY, |(_, part)| *part);
        if before != part {
            self.parts.push((first, part));
        }
    }

    /// Makes an operation wait for the end of another one.
    pub fn requires(&mut self, op: u32, awaited: u32) {
        self.after_end.push((op, awaited));
    }

    /// Makes an operation wait for the start of another one.
    pub fn irequires(&mut self, op: u32, awaited: u32) {
        self.after_start.push((op, awaited));
    }

    fn too_many(&self) -> GraphError {
        GraphError { rank: Some(self.rank), op: None, what: Flaw::TooMany }
    }

    /// Returns the program.
    ///
    /// # Errors
    /// If a dependency names an operation that does not exist, or if operations wait for each other.
    pub fn finish(mut self) -> Result<Program, GraphError> {
        let (rank, count) = (self.rank, self.ops.len() as u32);
        if self.after_end.len() + self.after_start.len() >= ANY as usize {
            return Err(self.too_many());
        }
        let mut needs = vec![0u32; self.ops.len()];
        for (op, other) in self.after_end.iter().chain(&self.after_start).copied() {
            if op >= count || other >= count {
                let what = Flaw::NoOp { other };
                return Err(GraphError { rank: Some(rank), op: Some(op), what });
            }
            needs[op as usize] += 1;
        }
        self.labels.shrink();
        let program = Program {
            after_end: Edges::new(self.ops.len(), &self.after_end),
            after_start: Edges::new(self.ops.len(), &self.after_start),
            ops: self.ops.into_boxed_slice(),
            needs: Box::from(needs),
            labels: self.labels,
            sections: core::iter::once(0).chain(self.sections).collect(),
            parts: self.parts.into_boxed_slice(),
        };
        match cycle::find(&program) {
            None => Ok(program),
            Some((op, length)) => {
                let what = Flaw::Cycle { length };
                Err(GraphError { rank: Some(rank), op: Some(op), what })
            }
        }
    }
}
