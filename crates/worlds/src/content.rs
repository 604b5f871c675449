//! Content of payloads and of the memory of regions.

use apus_units::random::mix;

use crate::ledger::Incarnation;

/// Bytes that every payload repeats, so that a readable payload is detected.
pub(crate) const MARK: [u8; 8] = *b"apus txt";
/// Content of slots before they are written.
pub(crate) const EMPTY: u8 = 0xee;
/// Content of slots after their write was reported as done.
pub(crate) const CLEARED: u8 = 0x55;
/// Content of a region whose region key no peer has.
pub(crate) const SECRET: u8 = 0xa7;
pub(crate) const SECRET_BYTES: usize = 4096;
/// Number of bytes of a region that only the insider uses, in any way.
pub(crate) const OWN_BYTES: u64 = 4096;
/// Number of bytes of a block of payloads and of known content.
const BLOCK: usize = 16;

/// Returns the payload of an op.
pub(crate) fn payload(op: usize, length: u64) -> Vec<u8> {
    marked(length, op_word(op))
}

/// Returns a function from the index of a block to the word of that block, for the payload of an op. The
/// first word is the number of the op.
pub(crate) fn op_word(op: usize) -> impl Fn(u64) -> u64 {
    move |block| if block == 0 { op as u64 } else { mix((op as u64) << 32 | block) }
}

/// Returns a function from the index of a block to the word of that block, for the known content of an incarnation.
pub(crate) fn pattern_word((host, number): Incarnation) -> impl Fn(u64) -> u64 {
    let key = mix(mix(host as u64) ^ u64::from(number));
    move |block| mix(key ^ block)
}

/// Returns a block: [`MARK`] and a word.
#[inline]
fn block(word: u64) -> u128 {
    u128::from(word) << 64 | u128::from(u64::from_le_bytes(MARK))
}

/// Returns the first bytes of a sequence of blocks.
pub(crate) fn marked(length: u64, word: impl Fn(u64) -> u64) -> Vec<u8> {
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
pub(crate) fn is_marked(
    bytes: &[u8],
    start: u64,
    or: Option<u8>,
    word: impl Fn(u64) -> u64,
) -> bool {
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
pub(crate) fn is_filled(bytes: &[u8], byte: u8) -> bool {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    let wanted = u128::from_le_bytes([byte; BLOCK]);
    blocks.iter().all(|block| u128::from_le_bytes(*block) == wanted)
        && tail.iter().all(|&b| b == byte)
}
