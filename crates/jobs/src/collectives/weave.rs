//! Construction of the programs of all ranks together.

use alloc::vec;
use alloc::vec::Vec;

use apus_units::Span;

use super::{Algorithm, CollectiveError};
use crate::graph::{ANY, Graph, GraphError, Op, Part, ProgramBuilder};

/// Stream of operations that take no time and end when other operations have ended. On their own stream they
/// wait for no computation or send.
pub const JOINS: u8 = 2;

/// The programs of all ranks, and the operations for which the next operation of each rank waits.
///
/// Generators number the ranks of the current group from 0: the numbers are places in the group.
pub(super) struct Weave {
    programs: Vec<ProgramBuilder>,
    /// Ranks of the current group, by place.
    members: Vec<u32>,
    parts: Vec<Part>,
    /// By rank: operation for which receives wait, namely the last computation before this iteration or the
    /// entry into a collective.
    began: Vec<Option<u32>>,
    /// By rank: operations for which the next step in this channel waits.
    before: Vec<Vec<u32>>,
    /// By rank: operations that ended the channels of this iteration so far.
    ended: Vec<Vec<u32>>,
    nic: u8,
    /// Stream of sends and receives.
    cpu: u8,
    first_tag: u32,
    next_tag: u32,
    is_within: bool,
}

impl Weave {
    pub(super) fn new(ranks: u32) -> Self {
        let programs = (0..ranks).map(|rank| ProgramBuilder::new(rank, ranks)).collect();
        let none = vec![Vec::new(); ranks as usize];
        Self {
            programs,
            members: (0..ranks).collect(),
            parts: Vec::new(),
            began: vec![None; ranks as usize],
            before: none.clone(),
            ended: none,
            nic: 0,
            cpu: 0,
            first_tag: 0,
            next_tag: 0,
            is_within: false,
        }
    }

    /// Uses tags from `first` upwards.
    pub(super) fn with_tags_from(self, first: u32) -> Self {
        Self { first_tag: first, next_tag: first, ..self }
    }

    /// Returns the number of ranks of the current group.
    pub(super) fn ranks(&self) -> u32 {
        self.members.len() as u32
    }

    /// Returns the ranks of the current group, by place.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    /// Restricts the group to these ranks while `add` adds operations.
    pub(super) fn within<E>(
        &mut self,
        members: &[u32],
        add: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let outer = core::mem::replace(&mut self.members, members.to_vec());
        let added = add(self);
        self.members = outer;
        added
    }

    /// Adds a collective of the current group as a part of the job. A rank enters it when all operations for
    /// which its next step waits have ended. Before that, it sends, receives and passes on no data of the
    /// collective. Therefore the collective ends at a rank only after all ranks whose data it needs have
    /// entered.
    pub(super) fn collective(
        &mut self,
        name: &'static str,
        algorithm: Algorithm,
        bytes: u64,
    ) -> Result<(), CollectiveError> {
        let mut outer = Vec::with_capacity(self.members.len());
        for place in 0..self.ranks() {
            let rank = self.members[place as usize] as usize;
            let entered = match self.before[rank].as_slice() {
                [] => self.began[rank],
                [op] => Some(*op),
                _ => {
                    let after = core::mem::take(&mut self.before[rank]);
                    let op = self.add(place, Op::compute(Span::ZERO).on_cpu(JOINS), &after)?;
                    self.before[rank] = vec![op];
                    Some(op)
                }
            };
            outer.push(core::mem::replace(&mut self.began[rank], entered));
        }
        self.begin_part(name, bytes);
        algorithm.weave(bytes, self)?;
        self.end_part();
        for (rank, began) in self.members.iter().zip(outer) {
            self.began[*rank as usize] = began;
        }
        Ok(())
    }

    /// Moves the next operations of these ranks to another stream. Only the next iteration waits for these
    /// operations. Pass the result to [`Weave::come_back`].
    pub(super) fn leave(&mut self, ranks: &[u32], cpu: u8) -> Vec<Vec<u32>> {
        self.cpu = cpu;
        ranks.iter().map(|rank| self.before[*rank as usize].clone()).collect()
    }

    /// Returns to the state in which [`Weave::leave`] was called.
    pub(super) fn come_back(&mut self, ranks: &[u32], kept: Vec<Vec<u32>>) {
        self.cpu = 0;
        for (rank, kept) in ranks.iter().zip(kept) {
            let before = core::mem::replace(&mut self.before[*rank as usize], kept);
            self.ended[*rank as usize].extend(before);
        }
    }

    /// Adds a part of the job.
    pub(super) fn add_part(&mut self, name: &'static str, bytes: u64, ranks: u32) -> u32 {
        self.parts.push(Part { name, bytes, ranks });
        self.parts.len() as u32 - 1
    }

    /// Sets the stream of the next sends and receives.
    pub(super) fn set_cpu(&mut self, cpu: u8) {
        self.cpu = cpu;
    }

    /// Begins a part of the job for the current group.
    pub(super) fn begin_part(&mut self, name: &'static str, bytes: u64) {
        let part = self.add_part(name, bytes, self.ranks());
        self.set_part(Some(part));
    }

    /// Ends the part of the current group.
    pub(super) fn end_part(&mut self) {
        self.set_part(None);
    }

    /// Makes the next operations of the current group belong to a part, or to none.
    pub(super) fn set_part(&mut self, part: Option<u32>) {
        for rank in &self.members {
            self.programs[*rank as usize].begin_part(part);
        }
    }

    /// Begins an iteration: every rank computes after the end of its part of the previous iteration. If the
    /// computation takes no time, the first iteration omits it.
    pub(super) fn begin_iteration(
        &mut self,
        iteration: u32,
        compute: Span,
    ) -> Result<(), GraphError> {
        self.end_channel();
        self.end_part();
        if iteration > 0 {
            self.programs.iter_mut().for_each(ProgramBuilder::begin_section);
        }
        if iteration == 0 && compute.is_zero() {
            return Ok(());
        }
        for rank in 0..self.programs.len() {
            let after = core::mem::take(&mut self.ended[rank]);
            let op = self.add(rank as u32, Op::compute(compute), &after)?;
            self.began[rank] = Some(op);
        }
        Ok(())
    }

    /// Begins the operations of a channel, which wait for the start of the iteration.
    pub(super) fn begin_channel(&mut self, nic: u8) {
        self.end_channel();
        self.nic = nic;
        self.is_within = true;
        for (before, began) in self.before.iter_mut().zip(&self.began) {
            before.extend(began);
        }
    }

    fn end_channel(&mut self) {
        for (before, ended) in self.before.iter_mut().zip(&mut self.ended) {
            if self.is_within {
                ended.append(before);
            }
            before.clear();
        }
        self.is_within = false;
    }

    /// Returns the first of `count` consecutive tags. Tags wrap around before 2^32; messages with equal tags
    /// match in order.
    pub(super) fn tags(&mut self, count: u32) -> u32 {
        let first = if self.next_tag < ANY - count { self.next_tag } else { self.first_tag };
        self.next_tag = first + count;
        first
    }

    /// Returns the operations for which the next step of a place waits.
    pub(super) fn before(&self, place: u32) -> &[u32] {
        &self.before[self.members[place as usize] as usize]
    }

    /// Sets the operations for which the next step of a place waits.
    pub(super) fn set_before(&mut self, place: u32, ops: &[u32]) {
        let before = &mut self.before[self.members[place as usize] as usize];
        before.clear();
        before.extend_from_slice(ops);
    }

    /// Makes the next step of a place wait for one more operation.
    pub(super) fn also_after(&mut self, place: u32, op: u32) {
        self.before[self.members[place as usize] as usize].push(op);
    }

    /// Makes the next operations of a place belong to a part, or to none.
    pub(super) fn set_part_of(&mut self, place: u32, part: Option<u32>) {
        self.programs[self.members[place as usize] as usize].begin_part(part);
    }

    /// Adds a send to another place after other operations of the rank.
    pub(super) fn send(
        &mut self,
        place: u32,
        to: u32,
        bytes: u64,
        tag: u32,
        after: &[u32],
    ) -> Result<u32, GraphError> {
        let to = self.members[to as usize];
        self.add(place, Op::send(to, bytes, tag).on_nic(self.nic).on_cpu(self.cpu), after)
    }

    /// Adds a receive from another place. It is posted when the iteration begins, or when the rank enters the
    /// collective.
    pub(super) fn receive(
        &mut self,
        place: u32,
        from: u32,
        bytes: u64,
        tag: u32,
    ) -> Result<u32, GraphError> {
        let from = self.members[from as usize];
        let began = self.began[self.members[place as usize] as usize];
        let op = Op::receive(from, bytes, tag).on_nic(self.nic).on_cpu(self.cpu);
        self.add(place, op, began.as_slice())
    }

    /// Adds a computation after other operations of the rank.
    pub(super) fn compute(
        &mut self,
        place: u32,
        time: Span,
        after: &[u32],
    ) -> Result<u32, GraphError> {
        self.add(place, Op::compute(time), after)
    }

    /// Adds a computation that follows the last step of a place. The next step waits for it.
    pub(super) fn then_compute(&mut self, place: u32, time: Span) -> Result<(), GraphError> {
        let after = self.before(place).to_vec();
        let op = self.compute(place, time, &after)?;
        self.set_before(place, &[op]);
        Ok(())
    }

    pub(super) fn add(&mut self, place: u32, op: Op, after: &[u32]) -> Result<u32, GraphError> {
        let program = &mut self.programs[self.members[place as usize] as usize];
        let op = program.push(op)?;
        for awaited in after {
            program.requires(op, *awaited);
        }
        Ok(op)
    }

    pub(super) fn finish(self) -> Result<Graph, GraphError> {
        let programs = self.programs.into_iter().map(ProgramBuilder::finish);
        Ok(Graph::new(programs.collect::<Result<_, _>>()?)?.with_parts(self.parts))
    }
}
