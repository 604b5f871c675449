//! Conversion of C's pointers to values.
//!
//! A pointer that may be NULL is an `Option` of a reference or a box, which has the same representation. The header
//! requires that pointers are valid for their types, and that no memory is written while it is read.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::slice;

use crate::failure::{Failure, call};

fn null(name: &str) -> Failure {
    Failure::invalid(format!("`{name}` is NULL"))
}

/// Returns the target of a pointer: a handle, a structure, or room for a result.
pub(crate) fn given<T>(pointer: Option<T>, name: &str) -> Result<T, Failure> {
    pointer.ok_or_else(|| null(name))
}

/// Room for a value that C has not initialised.
pub(crate) type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Stores a result.
pub(crate) fn put<T>(room: Out<'_, T>, value: T, name: &str) -> Result<(), Failure> {
    given(room, name)?.write(value);
    Ok(())
}

/// Hands a value over to C as a handle. Returns the status.
pub(crate) fn hand_out<T>(
    room: Out<'_, Box<T>>,
    name: &str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> i32 {
    call(|| {
        let room = given(room, name)?;
        room.write(Box::new(make()?));
        Ok(())
    })
}

/// Returns the text at a pointer.
///
/// # Safety
/// The pointer is NULL, or its text ends with a zero byte and does not change while the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller guarantees this.
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
    /// The memory is valid for `length` bytes, for reads and (if `bytes_mut` will be called) for writes, until the result is
    /// dropped.
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
        // SAFETY: the memory is valid for `length` bytes, as `new` requires; the pointer is never NULL.
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
