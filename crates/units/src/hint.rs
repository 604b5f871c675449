//! Prefetch: a hint to the processor that data will be needed soon.

/// Bytes of a cache line on the supported processors.
const LINE: usize = 64;

/// Prefetches all cache lines of `value`. A prefetch changes nothing that a program can observe
/// except its speed. A simulator that knows its next events can hide most of the latency of a
/// memory that does not fit into the cache.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_first(value, size_of::<T>().div_ceil(LINE));
}

/// Prefetches the first `lines` cache lines of `value`, at most as many as it has.
#[inline(always)]
pub fn prefetch_first<T>(value: &T, lines: usize) {
    let mut offset = 0;
    while offset < size_of::<T>().min(lines * LINE) {
        prefetch_line(value, offset);
        offset += LINE;
    }
}

/// Prefetches the cache lines of `value` that hold its bytes from `start` to `end`. `value` must be aligned to cache lines.
#[inline(always)]
pub fn prefetch_range<T>(value: &T, start: usize, end: usize) {
    debug_assert!(align_of::<T>() >= LINE, "lines are counted from the start of the value");
    let mut offset = start / LINE * LINE;
    while offset < end {
        prefetch_line(value, offset);
        offset += LINE;
    }
}

/// Prefetches the cache line in which `value` starts.
#[inline(always)]
pub fn prefetch_start<T>(value: &T) {
    prefetch_line(value, 0);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "the intrinsic takes a pointer; a prefetch cannot fault")]
fn prefetch_line<T>(value: &T, offset: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let start = core::ptr::from_ref(value).cast::<i8>();
    // SAFETY: a prefetch has no effect on memory that the program can observe, for any address;
    // `wrapping_add` is defined for any offset.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch_line<T>(_: &T, _: usize) {}
