//! Atomic ops on the words of regions: their operands, and the owner's own atomic access.
//!
//! A word is 8 bytes, little-endian, at an address that is a multiple of 8 from the start of the region. Peers and the
//! owner change words under the lock of the region, so all their ops on a region are atomic with respect to each other.

use apus_units::planted::{Bug, is_planted};
use apus_wire::{SegmentKind, WORD_BYTES};
use thiserror::Error;

use crate::region::Region;

/// Bytes of a word.
const WORD: usize = WORD_BYTES as usize;

/// An atomic op with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    CompareAndSwap { expected: u64, new: u64 },
    FetchAdd { delta: u64 },
}

impl AtomicOp {
    /// Decodes the operands of a request. Returns `None` if the packet is not an atomic request or has a different
    /// number of bytes.
    pub(crate) fn decode(kind: SegmentKind, payload: &[u8]) -> Option<Self> {
        let (words, rest) = payload.as_chunks::<WORD>();
        if !rest.is_empty() {
            return None;
        }
        match (kind, words) {
            (SegmentKind::CompareAndSwap { .. }, &[expected, new]) => Some(Self::CompareAndSwap {
                expected: u64::from_le_bytes(expected),
                new: u64::from_le_bytes(new),
            }),
            (SegmentKind::FetchAdd { .. }, &[delta]) => {
                Some(Self::FetchAdd { delta: u64::from_le_bytes(delta) })
            }
            _ => None,
        }
    }

    /// Returns the word after the op.
    fn apply(self, word: u64) -> u64 {
        match self {
            Self::CompareAndSwap { expected, new }
                if word == expected || is_planted(Bug::SwapAlways) =>
            {
                new
            }
            Self::CompareAndSwap { .. } => word,
            Self::FetchAdd { delta } => word.wrapping_add(delta),
        }
    }

    /// Executes the op on the word at `address`. Returns the word before the op. Returns `None`, without any effect, if
    /// the memory ends before the end of the word.
    pub(crate) fn execute(self, memory: &mut [u8], address: u64) -> Option<u64> {
        let from = usize::try_from(address).ok()?;
        let place = memory.get_mut(from..)?.first_chunk_mut::<WORD>()?;
        let old = u64::from_le_bytes(*place);
        *place = self.apply(old).to_le_bytes();
        Some(old)
    }
}

/// The operands of an outstanding atomic op in the form that its packets carry, and the word that the op fetches.
pub(crate) struct AtomicBuffers {
    operands: [u8; 2 * WORD],
    length: usize,
    old: [u8; WORD],
}

impl AtomicBuffers {
    pub(crate) fn new(op: AtomicOp) -> Self {
        let (words, length) = match op {
            AtomicOp::CompareAndSwap { expected, new } => ([expected, new], 2 * WORD),
            AtomicOp::FetchAdd { delta } => ([delta, 0], WORD),
        };
        let mut operands = [0; 2 * WORD];
        let (places, _) = operands.as_chunks_mut::<WORD>();
        for (place, word) in places.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        Self { operands, length, old: [0; WORD] }
    }

    /// Returns the operands.
    pub(crate) fn operands(&self) -> &[u8] {
        &self.operands[..self.length]
    }

    /// Returns the target of the answer.
    pub(crate) fn target(&mut self) -> &mut [u8] {
        &mut self.old
    }

    /// Returns the word that was fetched.
    pub(crate) fn old(&self) -> u64 {
        u64::from_le_bytes(self.old)
    }
}

/// Reason why the owner of a region cannot access a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WordError {
    /// The address is not a multiple of 8.
    #[error("address {address}: the address of a word must be a multiple of 8")]
    Unaligned {
        /// First byte within the region.
        address: u64,
    },
    /// The word reaches beyond the end of the region.
    #[error("address {address} + 8 bytes: the word reaches beyond the region's {length} bytes")]
    OutOfBounds {
        /// First byte within the region.
        address: u64,
        /// Length of the region in bytes.
        length: u64,
    },
}

/// Atomic access of the owner to words of 8 bytes, little-endian.
///
/// Each call is atomic: peers' packets and other calls of the owner act on the word either before or after it. The access that
/// the region grants to peers does not limit its owner. A call within [`Region::read`] or [`Region::write`] on the same region
/// deadlocks.
impl Region {
    /// Returns the word at `address`.
    ///
    /// # Errors
    /// If the address is not a multiple of 8, or the word reaches beyond the region.
    pub fn load(&self, address: u64) -> Result<u64, WordError> {
        self.read(|bytes| {
            let from = checked(address, bytes.len())?;
            let word = bytes.get(from..).and_then(|rest| rest.first_chunk::<WORD>());
            word.map(|word| u64::from_le_bytes(*word)).ok_or(out_of_bounds(address, bytes.len()))
        })
    }

    /// Sets the word at `address` to `word`.
    ///
    /// # Errors
    /// As [`Region::load`]. The word is then unchanged.
    pub fn store(&self, address: u64, word: u64) -> Result<(), WordError> {
        self.write(|bytes| {
            let (from, length) = (checked(address, bytes.len())?, bytes.len());
            let place = bytes.get_mut(from..).and_then(|rest| rest.first_chunk_mut::<WORD>());
            *place.ok_or(out_of_bounds(address, length))? = word.to_le_bytes();
            Ok(())
        })
    }

    /// Sets the word at `address` to `new` if it is `expected`. Returns the word before the call, which is `expected` if the word
    /// was replaced.
    ///
    /// # Errors
    /// As [`Region::load`]. The word is then unchanged.
    pub fn compare_and_swap(
        &self,
        address: u64,
        expected: u64,
        new: u64,
    ) -> Result<u64, WordError> {
        self.execute(address, AtomicOp::CompareAndSwap { expected, new })
    }

    /// Adds `delta` to the word at `address`, modulo 2^64. Returns the word before the call.
    ///
    /// # Errors
    /// As [`Region::load`]. The word is then unchanged.
    pub fn fetch_add(&self, address: u64, delta: u64) -> Result<u64, WordError> {
        self.execute(address, AtomicOp::FetchAdd { delta })
    }

    fn execute(&self, address: u64, op: AtomicOp) -> Result<u64, WordError> {
        self.write(|bytes| {
            checked(address, bytes.len())?;
            let length = bytes.len();
            op.execute(bytes, address).ok_or(out_of_bounds(address, length))
        })
    }
}

/// Returns the address of a word as an index into `length` bytes, if the word is aligned and lies within them.
fn checked(address: u64, length: usize) -> Result<usize, WordError> {
    if !address.is_multiple_of(u64::from(WORD_BYTES)) {
        return Err(WordError::Unaligned { address });
    }
    usize::try_from(address).map_err(|_| out_of_bounds(address, length))
}

fn out_of_bounds(address: u64, length: usize) -> WordError {
    WordError::OutOfBounds { address, length: length as u64 }
}

#[cfg(test)]
mod tests {
    use apus_wire::RegionKey;

    use super::*;

    #[test]
    fn operands_survive_the_way_to_bytes_and_other_lengths_are_refused() {
        let (region, address) = (RegionKey::new(1), 8);
        let (swap, add) = (
            SegmentKind::CompareAndSwap { region, address },
            SegmentKind::FetchAdd { region, address },
        );
        let op = AtomicOp::CompareAndSwap { expected: 0x0102, new: u64::MAX };
        let buffers = AtomicBuffers::new(op);
        let little_endian = [2, 1, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
        assert_eq!(buffers.operands(), little_endian);
        assert_eq!(AtomicOp::decode(swap, buffers.operands()), Some(op));
        let op = AtomicOp::FetchAdd { delta: 0x0304 };
        let buffers = AtomicBuffers::new(op);
        assert_eq!(buffers.operands(), [4, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(AtomicOp::decode(add, buffers.operands()), Some(op));
        for (kind, length) in [(swap, 8), (swap, 15), (swap, 24), (add, 0), (add, 9), (add, 16)] {
            assert_eq!(AtomicOp::decode(kind, &vec![0; length]), None, "{kind:?}, {length}");
        }
        assert_eq!(AtomicOp::decode(SegmentKind::Message, &[0; 8]), None);
    }

    #[test]
    fn ops_change_their_word_only_and_wrap() {
        let mut memory = [0xee_u8; 24];
        memory[8..16].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
        let add = AtomicOp::FetchAdd { delta: 3 };
        assert_eq!(add.execute(&mut memory, 8), Some(u64::MAX - 1));
        let swap = |expected, new| AtomicOp::CompareAndSwap { expected, new };
        assert_eq!(swap(2, 7).execute(&mut memory, 8), Some(1), "not what is expected");
        assert_eq!(swap(1, 7).execute(&mut memory, 8), Some(1));
        assert_eq!(memory[8..16], [7, 0, 0, 0, 0, 0, 0, 0]);
        assert!(memory[..8].iter().chain(&memory[16..]).all(|&byte| byte == 0xee));
        for address in [17, 24, 25, u64::MAX - 7, u64::MAX] {
            assert_eq!(add.execute(&mut memory, address), None, "{address}");
        }
    }
}
