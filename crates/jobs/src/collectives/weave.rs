//! Construction of the programs of all ranks at once.

use alloc::vec;
use alloc::vec::Vec;

use apus_units::Span;

use crate::graph::{ANY, Graph, GraphError, Op, ProgramBuilder};

/// The programs of all ranks, and what the next operation of each rank waits for.
pub(super) struct Weave {
    programs: Vec<ProgramBuilder>,
    /// Last computation of each rank before this iteration.
    began: Vec<Option<u32>>,
    /// What the next step of each rank waits for in this channel.
    before: Vec<Vec<u32>>,
    /// What ended the channels of this iteration so far, by rank.
    ended: Vec<Vec<u32>>,
    nic: u8,
    next_tag: u32,
    is_within: bool,
}

impl Weave {
    pub(super) fn new(ranks: u32) -> Self {
        let programs = (0..ranks).map(|rank| ProgramBuilder::new(rank, ranks)).collect();
        let none = vec![Vec::new(); ranks as usize];
        Self {
            programs,
            began: vec![None; ranks as usize],
            before: none.clone(),
            ended: none,
            nic: 0,
            next_tag: 0,
            is_within: false,
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Begins an iteration: every rank computes, after the end of its part of the one before. Without a time
    /// to compute, the first iteration has no such operation.
    pub(super) fn begin_iteration(
        &mut self,
        iteration: u32,
        compute: Span,
    ) -> Result<(), GraphError> {
        self.end_channel();
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

    /// Begins the operations of a channel, which wait for the beginning of the iteration.
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

    /// Returns the first of `count` tags in sequence. They repeat after 2^32; messages of equal tags match in
    /// their order.
    pub(super) fn tags(&mut self, count: u32) -> u32 {
        let first = if self.next_tag < ANY - count { self.next_tag } else { 0 };
        self.next_tag = first + count;
        first
    }

    /// Returns what the next step of a rank waits for.
    pub(super) fn before(&self, rank: u32) -> &[u32] {
        &self.before[rank as usize]
    }

    /// Sets what the next step of a rank waits for.
    pub(super) fn set_before(&mut self, rank: u32, ops: &[u32]) {
        let before = &mut self.before[rank as usize];
        before.clear();
        before.extend_from_slice(ops);
    }

    /// Adds a send of a rank after other operations of it.
    pub(super) fn send(
        &mut self,
        rank: u32,
        to: u32,
        bytes: u64,
        tag: u32,
        after: &[u32],
    ) -> Result<u32, GraphError> {
        self.add(rank, Op::send(to, bytes, tag).on_nic(self.nic), after)
    }

    /// Adds a receive of a rank, which is posted when the iteration begins.
    pub(super) fn receive(
        &mut self,
        rank: u32,
        from: u32,
        bytes: u64,
        tag: u32,
    ) -> Result<u32, GraphError> {
        let op =
            self.programs[rank as usize].push(Op::receive(from, bytes, tag).on_nic(self.nic))?;
        if let Some(began) = self.began[rank as usize] {
            self.programs[rank as usize].requires(op, began);
        }
        Ok(op)
    }

    /// Adds a computation of a rank after other operations of it.
    pub(super) fn compute(
        &mut self,
        rank: u32,
        time: Span,
        after: &[u32],
    ) -> Result<u32, GraphError> {
        self.add(rank, Op::compute(time), after)
    }

    fn add(&mut self, rank: u32, op: Op, after: &[u32]) -> Result<u32, GraphError> {
        let program = &mut self.programs[rank as usize];
        let op = program.push(op)?;
        for awaited in after {
            program.requires(op, *awaited);
        }
        Ok(op)
    }

    pub(super) fn finish(self) -> Result<Graph, GraphError> {
        let programs = self.programs.into_iter().map(ProgramBuilder::finish);
        Graph::new(programs.collect::<Result<_, _>>()?)
    }
}
