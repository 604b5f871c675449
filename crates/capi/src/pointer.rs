//! From C's pointers to values.

use std::ffi::{CStr, c_char, c_void};
use std::slice;

use crate::failure::Failure;

fn null(name: &str) -> Failure {
    Failure::invalid(format!("`{name}` is NULL"))
}

/// Returns a reference to the target of a handle or a structure.
///
/// # Safety
/// NULL, or valid for reads as a `T` for as long as the caller uses the result.
pub(crate) unsafe fn get<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Returns a mutable reference to the target of a handle or a structure.
///
/// # Safety
/// NULL, or valid for reads and writes as a `T`, without any other use meanwhile.
pub(crate) unsafe fn get_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// Stores a result.
///
/// # Safety
/// NULL, or valid for writes of a `T`.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: as the caller promises; the overwritten value has no destructor that C relied on.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Hands a value over to C.
///
/// # Safety
/// NULL, or valid for writes of a pointer.
pub(crate) unsafe fn hand_out<T>(
    out: *mut *mut T,
    name: &str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    if out.is_null() {
        return Err(null(name));
    }
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: as the caller promises.
    unsafe { out.write(made) };
    Ok(())
}

/// Takes a value back from C and drops it; NULL has no effect.
///
/// # Safety
/// NULL, or from [`hand_out`] and not taken back before.
pub(crate) unsafe fn take_back<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: `hand_out` made it from a box, and the caller gives it up.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// A text.
///
/// # Safety
/// NULL, or ends with a zero byte and stays as it is while the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::invalid(format!("`{name}` is not UTF-8")))
}

/// Memory of the caller. Implements the traits that the transport requires of memory that it owns
/// temporarily: the header requires that the caller does not access it during that time.
pub(crate) struct Foreign {
    pointer: *mut u8,
    length: usize,
}

// SAFETY: the caller leaves the memory to the transport, on all of its threads.
unsafe impl Send for Foreign {}
// SAFETY: shared references only read.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Takes memory over for reading, or for reading and writing.
    ///
    /// # Safety
    /// Valid for `length` bytes, for reads and (if `bytes_mut` will be called) writes, until dropped.
    pub(crate) unsafe fn new(
        pointer: *const c_void,
        length: usize,
        name: &str,
    ) -> Result<Self, Failure> {
        if pointer.is_null() && length > 0 {
            return Err(null(name));
        }
        if isize::try_from(length).is_err() {
            return Err(Failure::invalid(format!("`{name}`: {length} bytes are too many")));
        }
        let pointer = if pointer.is_null() { std::ptr::dangling_mut() } else { pointer.cast_mut() };
        Ok(Self { pointer: pointer.cast(), length })
    }
}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: valid for `length` bytes as `new` demands; never NULL.
        unsafe { slice::from_raw_parts(self.pointer, self.length) }
    }
}

impl apus_udp::Memory for Foreign {
    fn bytes(&self) -> &[u8] {
        self.as_ref()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_ref`, and no other reference exists.
        unsafe { slice::from_raw_parts_mut(self.pointer, self.length) }
    }
}

/// Copies `bytes` to the caller's memory.
///
/// # Safety
/// `to` is valid for writes of as many bytes.
pub(crate) unsafe fn copy_out(bytes: &[u8], to: *mut u8) {
    // SAFETY: as the caller promises; memory of two owners does not overlap.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}
