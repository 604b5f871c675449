//! Growth of large vectors.

use alloc::vec::Vec;

/// Size in bytes from which a vector grows in large steps. deviation: no source; rationale: copies of smaller
/// vectors take less time than the start of a large run.
const LARGE: usize = 1 << 26;
/// Size of a large vector after it has grown, over the size that was needed.
const STEP: usize = 8;

/// Reserves memory for `more` values. A large vector grows to eight times its size if the system provides the
/// addresses: unused pages take no memory, while every copy into a larger vector takes new pages for all
/// values.
#[inline]
pub fn reserve_more<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() < more {
        grow(values, more, LARGE);
    }
}

#[cold]
fn grow<T>(values: &mut Vec<T>, more: usize, large: usize) {
    let needed = values.len().saturating_add(more);
    let is_large = needed.saturating_mul(size_of::<T>()) > large;
    let further = needed.saturating_mul(STEP) - values.len();
    if !is_large || values.try_reserve_exact(further).is_err() {
        values.reserve(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beyond 2^17 values a vector of 1.2 million values has two sizes, not four.
    #[test]
    fn large_vectors_grow_in_large_steps() {
        const FEW: usize = 1 << 17;
        let mut values: Vec<u64> = Vec::new();
        let mut sizes = Vec::new();
        for value in 0..1_200_000 {
            if values.capacity() == values.len() {
                grow(&mut values, 1, FEW * size_of::<u64>());
                sizes.push(values.capacity());
            }
            values.push(value);
        }
        let beyond: Vec<usize> = sizes.into_iter().filter(|size| *size > FEW).collect();
        assert_eq!(beyond, [STEP * (FEW + 1), STEP * (STEP * (FEW + 1) + 1)]);
        assert!(values.iter().copied().eq(0..1_200_000));
    }
}
