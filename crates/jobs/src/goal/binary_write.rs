//! Writer of binary GOAL files.

use alloc::vec::Vec;

use crate::graph::{Action, Graph, Op, Program};

use super::error::UnwritableError;
use super::{HEAD, MAGIC, NODE};

/// Start of a binary file: everything except the blocks of the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Highest stream and highest NIC of the file.
    highest: [u8; 2],
    /// Number of bytes of each rank's block.
    blocks: Vec<u64>,
}

fn roots(program: &Program) -> impl Iterator<Item = u32> + '_ {
    (0..program.len() as u32).filter(|op| program.dependencies(*op) == 0)
}

impl Header {
    /// Returns the header for a job.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let highest = |count: fn(&Program) -> usize| {
            graph.programs().map(|p| count(p).saturating_sub(1)).max().unwrap_or(0) as u8
        };
        let block = |program: &Program| {
            let words = 2 + roots(program).count() + program.edges();
            words as u64 * 4 + program.len() as u64 * NODE as u64
        };
        let blocks = graph.programs().map(|program| block(program)).collect();
        Self { highest: [highest(Program::cpus), highest(Program::nics)], blocks }
    }

    /// Returns the bytes of the header.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + 16 * self.blocks.len());
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend((self.blocks.len() as u32).to_le_bytes());
        bytes.extend(self.highest);
        // Offsets count from the end of the magic number.
        let mut at = (HEAD - 8 + 16 * self.blocks.len()) as u64;
        for block in &self.blocks {
            bytes.extend(at.to_le_bytes());
            at += block;
            bytes.extend(at.to_le_bytes());
        }
        bytes
    }
}

/// Checks that all times of a job can be written.
///
/// # Errors
/// The first computation that does not take whole nanoseconds.
pub fn check_times(graph: &Graph) -> Result<(), UnwritableError> {
    for (rank, program) in graph.programs().enumerate() {
        for (number, op) in program.ops().enumerate() {
            if let Action::Compute { time } = op.action
                && !time.as_ps().is_multiple_of(1000)
            {
                return Err(UnwritableError { rank: rank as u32, op: number as u32, time });
            }
        }
    }
    Ok(())
}

/// Appends the block of a rank, which follows the block of the previous rank.
///
/// # Errors
/// If a computation of the job does not take whole nanoseconds.
pub fn write_block(graph: &Graph, rank: u32, bytes: &mut Vec<u8>) -> Result<(), UnwritableError> {
    let program = graph.program(rank);
    let word = |word: u32, bytes: &mut Vec<u8>| bytes.extend(word.to_le_bytes());
    word(program.len() as u32, bytes);
    word(roots(program).count() as u32, bytes);
    for root in roots(program) {
        word(root, bytes);
    }
    let mut index = 0;
    for (number, op) in program.ops().enumerate() {
        let number = number as u32;
        let Op { action, cpu, nic } = op;
        let (kind, peer, size, tag) = match action {
            Action::Send { to, bytes, tag } => (1, to, bytes, tag),
            Action::Receive { from, bytes, tag } => (2, from, bytes, tag),
            Action::Compute { time } => {
                if !time.as_ps().is_multiple_of(1000) {
                    return Err(UnwritableError { rank, op: number, time });
                }
                (3, 0, time.as_ps() / 1000, 0)
            }
        };
        word(program.dependencies(number), bytes);
        bytes.push(kind);
        word(peer, bytes);
        bytes.extend(size.to_le_bytes());
        word(tag, bytes);
        bytes.extend([cpu, nic]);
        for followers in [program.after_end(number), program.after_start(number)] {
            word(followers.len() as u32, bytes);
            word(index, bytes);
            index += followers.len() as u32;
        }
    }
    for op in 0..program.len() as u32 {
        for follower in program.after_end(op).iter().chain(program.after_start(op)) {
            word(*follower, bytes);
        }
    }
    Ok(())
}
