//! GOAL files: schedules of LogGOPSim and ATLAHS, as text and binary.
//!
//! The text has `num_ranks N`, then for each rank from 0 upwards `rank R {`, one statement per line, and `}`:
//!
//! ```text
//! [label:] send SIZEb to RANK [tag T] [cpu C] [nic I]
//! [label:] recv SIZEb from RANK|-1 [tag T|-1] [cpu C] [nic I]
//! [label:] calc NANOSECONDS [cpu C]
//! label requires label
//! label irequires label
//! ```
//!
//! Differences from LogGOPSim's `txt2bin`: numbers that do not fit, equal labels in a rank, ranks out of
//! order and cycles are errors; blanks may precede everything and follow `{`. `txt2bin` reads every file that
//! this crate writes.
//!
//! The binary form is that of LogGOPSim: little-endian, without padding. Times are in nanoseconds, and labels
//! are not stored. The reader checks every number.

mod binary_read;
mod binary_write;
mod error;
mod line;
mod text_read;
mod text_write;

use alloc::vec::Vec;

pub use binary_read::{BinaryReader, read_binary};
pub use binary_write::{Header, check_times, write_block};
pub use error::{GoalError, Place, UnwritableError};
pub use text_read::TextReader;
pub use text_write::write_text;

use crate::graph::Graph;

/// First 8 bytes of a binary file.
const MAGIC: u64 = 4223;
/// First 8 bytes of a binary file that LogGOPSim has modified in place (`--save-mem`: it counts dependencies
/// down), so that the file cannot be read again.
const SPENT: u64 = 2342;
/// Number of bytes of a node in a binary file.
const NODE: usize = 39;
/// Number of bytes of a binary file before its table of blocks.
const HEAD: usize = 14;

/// Returns `true` if the first bytes of a file are those of a binary file.
#[must_use]
pub fn is_binary(bytes: &[u8]) -> bool {
    let magic = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    matches!(magic, Some(MAGIC | SPENT))
}

/// Reads a file of either form.
///
/// # Errors
/// An error with line or offset, rank and operation.
pub fn read(bytes: &[u8]) -> Result<Graph, GoalError> {
    if is_binary(bytes) {
        return read_binary(bytes);
    }
    let mut reader = TextReader::new();
    reader.feed(bytes)?;
    reader.finish()
}

/// Returns a job as a binary file.
///
/// # Errors
/// If a computation does not take whole nanoseconds.
pub fn write_binary(graph: &Graph) -> Result<Vec<u8>, UnwritableError> {
    let mut bytes = Header::of(graph).to_bytes();
    for rank in 0..graph.ranks() {
        write_block(graph, rank, &mut bytes)?;
    }
    Ok(bytes)
}
