//! Reader of binary GOAL files.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use apus_units::Span;

use crate::graph::{ANY, Action, Graph, Op, Program, ProgramBuilder};

use super::error::{GoalError, Place, Wrong};
use super::{HEAD, MAGIC, NODE, SPENT};

/// Reads a binary file.
///
/// # Errors
/// An error with offset, rank and operation.
pub fn read_binary(bytes: &[u8]) -> Result<Graph, GoalError> {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let table = BinaryReader::table_bytes(head)?;
    let length = bytes.len() as u64;
    let Some(head) = usize::try_from(table).ok().and_then(|table| bytes.get(..table)) else {
        return Err(at(length, format!("the file ends within its table of {table} bytes")));
    };
    let mut reader = BinaryReader::new(head, length)?;
    while let Some(block) = reader.next_block() {
        // The reader has checked that blocks end within the file.
        reader.read_block(&bytes[block.start as usize..block.end as usize])?;
    }
    reader.finish()
}

fn at(offset: u64, what: String) -> GoalError {
    GoalError { place: Place::Offset(offset), rank: None, op: None, what }
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Reads a binary file rank by rank, so that the caller need not hold the whole file.
#[derive(Debug)]
pub struct BinaryReader {
    ranks: u32,
    /// End of each rank's block, counted from the start of the file.
    ends: Vec<u64>,
    start: u64,
    programs: Vec<Program>,
}

impl BinaryReader {
    /// Returns the number of bytes of a file up to the end of its table, computed from the first 14 bytes.
    ///
    /// # Errors
    /// If the bytes are not the start of a binary GOAL file.
    pub fn table_bytes(head: &[u8]) -> Result<u64, GoalError> {
        match long(head, 0) {
            Some(MAGIC) => {}
            Some(SPENT) => {
                let what =
                    "LogGOPSim with --save-mem has used this file up; convert its text again";
                return Err(at(0, what.to_string()));
            }
            _ => return Err(at(0, format!("a binary GOAL file begins with the number {MAGIC}"))),
        }
        let Some(ranks) = word(head, 8).filter(|_| head.len() >= HEAD) else {
            return Err(at(head.len() as u64, "the file ends within its header".to_string()));
        };
        if ranks == 0 || ranks == ANY {
            return Err(at(
                8,
                format!("the number of ranks is {ranks}; it must be 1 to 4294967294"),
            ));
        }
        Ok(HEAD as u64 + 16 * u64::from(ranks))
    }

    /// Starts with the table of a file of `length` bytes.
    ///
    /// # Errors
    /// An error with the offset, for example if the blocks of ranks leave a gap or end beyond the file.
    pub fn new(table: &[u8], length: u64) -> Result<Self, GoalError> {
        let expected = Self::table_bytes(table)?;
        if (table.len() as u64) < expected {
            let what = format!("the file ends within its table of {expected} bytes");
            return Err(at(table.len() as u64, what));
        }
        let ranks = word(table, 8).unwrap_or(0);
        let mut end = expected;
        let mut ends = Vec::with_capacity(ranks as usize);
        for rank in 0..ranks {
            let entry = HEAD + 16 * rank as usize;
            let wrong = |offset: usize, what: String| GoalError {
                rank: Some(rank),
                ..at(offset as u64, what)
            };
            let [from, to] = [entry, entry + 8].map(|offset| {
                long(table, offset).and_then(|offset| offset.checked_add(8)).unwrap_or(u64::MAX)
            });
            if from != end {
                let what = format!("its block begins at {from}; it must begin at {end}");
                return Err(wrong(entry, what));
            }
            if to < from || to > length {
                let what =
                    format!("its block of {from} to {to} is not in the file of {length} bytes");
                return Err(wrong(entry + 8, what));
            }
            ends.push(to);
            end = to;
        }
        if end != length {
            let what = format!("the last rank ends here, but the file has {length} bytes");
            return Err(at(end, what));
        }
        Ok(Self { ranks, ends, start: expected, programs: Vec::new() })
    }

    /// Returns the range of bytes of the file that holds the next rank; `None` after the last rank.
    #[must_use]
    pub fn next_block(&self) -> Option<core::ops::Range<u64>> {
        let end = *self.ends.get(self.programs.len())?;
        Some(self.start..end)
    }

    /// Reads the next rank from the bytes of [`BinaryReader::next_block`].
    ///
    /// # Errors
    /// An error with offset, rank and operation.
    pub fn read_block(&mut self, bytes: &[u8]) -> Result<(), GoalError> {
        let rank = self.programs.len() as u32;
        let program = self.program(rank, bytes).map_err(|(offset, op, wrong)| {
            let error = wrong.at(Place::Offset(self.start + offset as u64), Some(rank));
            GoalError { op: error.op.or(op), ..error }
        })?;
        self.start += bytes.len() as u64;
        self.programs.push(program);
        Ok(())
    }

    /// Returns the job.
    ///
    /// # Errors
    /// If a rank is missing.
    pub fn finish(self) -> Result<Graph, GoalError> {
        let (found, ranks) = (self.programs.len(), self.ranks);
        if found < ranks as usize {
            return Err(at(self.start, format!("the file ends after {found} of {ranks} ranks")));
        }
        Graph::new(self.programs)
            .map_err(|error| Wrong::from(error).at(Place::Offset(self.start), None))
    }

    fn program(&self, rank: u32, bytes: &[u8]) -> Result<Program, (usize, Option<u32>, Wrong)> {
        let short = |offset| (offset, None, "the block ends here".into());
        let count = word(bytes, 0).ok_or_else(|| short(bytes.len()))?;
        let roots = word(bytes, 4).ok_or_else(|| short(bytes.len()))?;
        let nodes = 8 + 4 * roots as usize;
        let appendix = nodes + NODE * count as usize;
        let Some(rest) = bytes.len().checked_sub(appendix).filter(|rest| rest.is_multiple_of(4))
        else {
            let length = bytes.len();
            let what =
                format!("{count} ops and {roots} roots do not fit the block of {length} bytes");
            return Err((0, None, what.into()));
        };
        let edges = rest / 4;
        let mut builder = ProgramBuilder::new(rank, self.ranks);
        builder.reserve(count as usize);
        let mut needs = vec![0u32; count as usize];
        let mut found = 0;
        for op in 0..count {
            let offset = nodes + NODE * op as usize;
            let wrong = |field: usize, what: String| (offset + field, Some(op), Wrong::Text(what));
            let node = &bytes[offset..offset + NODE];
            let read = read_node(node).map_err(|(field, what)| wrong(field, what))?;
            builder.push(read).map_err(|error| (offset + 5, None, error.into()))?;
            for field in [23, 31] {
                let (length, first) =
                    (word(node, field).unwrap_or(0), word(node, field + 4).unwrap_or(0));
                let (length, first) = (length as usize, first as usize);
                if length == 0 {
                    continue;
                }
                if first + length > edges {
                    let what = format!("dependencies {first} to {} of {edges}", first + length);
                    return Err(wrong(field, what));
                }
                found += length;
                if found > edges {
                    let what = format!(
                        "the ops so far have more dependencies than the {edges} of the block"
                    );
                    return Err(wrong(field, what));
                }
                for index in first..first + length {
                    let place = appendix + 4 * index;
                    let follower = word(bytes, place).unwrap_or(ANY);
                    if follower >= count {
                        let what = format!("op {follower} waits for it, but there are {count} ops");
                        return Err((place, Some(op), what.into()));
                    }
                    needs[follower as usize] += 1;
                    if field == 23 {
                        builder.requires(follower, op);
                    } else {
                        builder.irequires(follower, op);
                    }
                }
            }
        }
        if found < edges {
            let what = format!("the block has {edges} dependencies, but its ops name {found}");
            return Err((appendix, None, what.into()));
        }
        for op in 0..count {
            let offset = nodes + NODE * op as usize;
            let (stated, needs) = (word(bytes, offset).unwrap_or(0), needs[op as usize]);
            if stated != needs {
                let what = format!("it states {stated} dependencies, but has {needs}");
                return Err((offset, Some(op), what.into()));
            }
        }
        let free = (0..count).filter(|op| needs[*op as usize] == 0);
        let stated = (0..roots as usize).map(|index| word(bytes, 8 + 4 * index).unwrap_or(ANY));
        if !free.eq(stated) {
            let what = "the roots must be the ops without dependencies, in order";
            return Err((8, None, what.into()));
        }
        builder.finish().map_err(|error| (0, None, error.into()))
    }
}

/// Reads an operation. An error has its offset in the node.
fn read_node(node: &[u8]) -> Result<Op, (usize, String)> {
    let field = |offset| word(node, offset).unwrap_or(0);
    let (peer, amount, tag) = (field(5), long(node, 9).unwrap_or(0), field(17));
    let (cpu, nic) = (node[21], node[22]);
    let action = match node[4] {
        1 => Action::Send { to: peer, bytes: amount, tag },
        2 => Action::Receive { from: peer, bytes: amount, tag },
        3 => {
            let most = u64::MAX / 1000;
            if amount > most {
                return Err((9, format!("the time is {amount} ns; it must be at most {most}")));
            }
            return Ok(Op { action: Action::Compute { time: Span::from_ns(amount) }, cpu, nic: 0 });
        }
        other => {
            let what = format!("its type is {other}; it must be 1 (send), 2 (recv) or 3 (calc)");
            return Err((4, what));
        }
    };
    Ok(Op { action, cpu, nic })
}
