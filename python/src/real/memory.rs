//! Memory that Python and engines share through the buffer protocol.
//!
//! Like a NIC, engines access this memory without the interpreter's lock: a concurrent read or write in Python may see
//! some bytes from before and some from after. In addition to `region.rs`, which passes the memory on, only
//! `algorithm/thread.rs` has `unsafe` code.
#![expect(
    unsafe_code,
    reason = "memory of objects of Python and of regions, and the buffer protocol"
)]

use std::alloc::{Layout, alloc_zeroed};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use apus_udp::Memory;
use bytes::Bytes;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use pyo3::{PyErr, ffi};

/// Buffers that engines no longer use. Their release needs the interpreter's lock, for which an engine does not wait,
/// so the next call from Python releases them.
static UNUSED: Mutex<Vec<PyUntypedBuffer>> = Mutex::new(Vec::new());

/// Releases the buffers that engines no longer use.
pub fn release_unused(py: Python<'_>) {
    let unused = std::mem::take(&mut *UNUSED.lock().unwrap_or_else(PoisonError::into_inner));
    // An exporter may run Python code, so the list is not locked here.
    unused.into_iter().for_each(|buffer| buffer.release(py));
}

/// Buffer of a Python object, which can neither move nor change its length.
struct Pinned {
    buffer: Option<PyUntypedBuffer>,
    start: *mut u8,
    length: usize,
}

// SAFETY: the exporter keeps the memory in place until the buffer is released, on whatever thread.
unsafe impl Send for Pinned {}
// SAFETY: as above; accesses through shared references only copy bytes.
unsafe impl Sync for Pinned {}

impl Pinned {
    fn new(object: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer must be contiguous, in C's order"));
        }
        if writable && buffer.readonly() {
            return Err(PyBufferError::new_err("the buffer must be writable"));
        }
        let (start, length) = (buffer.buf_ptr().cast::<u8>(), buffer.len_bytes());
        let start = if length == 0 { std::ptr::dangling_mut() } else { start };
        Ok(Self { buffer: Some(buffer), start, length })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
        unused.extend(self.buffer.take());
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: valid for `length` bytes while the buffer is held. Python may change bytes meanwhile; an engine then
        // copies either the old or the new value.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Memory for Pinned {
    fn bytes(&self) -> &[u8] {
        self.as_ref()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: valid and writable, as `new` checked, while the buffer is held. Python may read or change bytes
        // meanwhile, as with memory that a NIC writes.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

/// Returns the bytes of an object to send, without copying them. The object is kept until they are dropped, and stays
/// unchanged unless Python modifies bytes in place.
pub fn to_send(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone())));
    }
    Pinned::new(object, false).map(Bytes::from_owner)
}

/// Returns the buffer of an object as the target of a read.
pub fn to_fill(object: &Bound<'_, PyAny>) -> PyResult<Box<dyn Memory>> {
    Ok(Box::new(Pinned::new(object, true)?))
}

/// Returns `count` zero values, which occupy physical memory only once they are used; `None` if the system refuses.
///
/// # Safety
/// All bits zero must be a valid `T`.
unsafe fn zeros<T>(count: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(count).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the size is not 0.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    // SAFETY: the global allocator provided the memory for `count` values, and zeros are valid values by the caller's
    // guarantee.
    Some(unsafe { Vec::from_raw_parts(start.cast(), count, count) })
}

fn refused(length: usize) -> PyErr {
    PyMemoryError::new_err(format!("the system has no {length} bytes of memory; ask for fewer"))
}

/// Returns `length` bytes as the target of a read.
///
/// # Errors
/// `MemoryError` if the system refuses the memory.
pub fn bytes_to_fill(length: usize) -> PyResult<Vec<u8>> {
    // SAFETY: a byte may be 0.
    unsafe { zeros(length) }.ok_or_else(|| refused(length))
}

/// Memory of a region: that of a Python object, or its own memory.
pub enum Shared {
    /// Own memory, aligned to words.
    Own { words: Box<[UnsafeCell<u64>]>, length: usize },
    /// Memory of a Python object.
    Of(Object),
}

/// Buffer of a Python object in a region.
pub struct Object(Pinned);

// SAFETY: `UnsafeCell` allows accesses from several threads; all of them only copy bytes.
unsafe impl Sync for Shared {}

impl Shared {
    /// Returns `length` bytes, all 0.
    ///
    /// # Errors
    /// `MemoryError` if the system refuses the memory.
    pub fn zeros(length: usize) -> PyResult<Self> {
        // SAFETY: a word may be 0, and a cell has the layout of the word in it.
        let words = unsafe { zeros::<UnsafeCell<u64>>(length.div_ceil(8)) };
        let words = words.ok_or_else(|| refused(length))?.into_boxed_slice();
        Ok(Self::Own { words, length })
    }

    /// Returns the memory of an object.
    pub fn of(object: &Bound<'_, PyAny>, writable: bool) -> PyResult<Self> {
        Ok(Self::Of(Object(Pinned::new(object, writable)?)))
    }

    fn start(&self) -> *mut u8 {
        match self {
            Self::Own { words, .. } => words.as_ptr().cast_mut().cast(),
            Self::Of(object) => object.0.start,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Own { length, .. } => *length,
            Self::Of(object) => object.0.length,
        }
    }

    /// Fills a view of the bytes on behalf of `owner`, which keeps this memory.
    ///
    /// # Safety
    /// `view` must be that of a call to `__getbuffer__`.
    pub unsafe fn fill_view(
        &self,
        owner: Bound<'_, PyAny>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let (start, length) = (self.start().cast(), self.len() as ffi::Py_ssize_t);
        // SAFETY: `start` is valid for `length` bytes, and writable, as long as `owner` exists; the view gets its own
        // reference to `owner`.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
    }
}

/// Memory of a region as the engines use it.
pub struct OfRegion(pub Arc<Shared>);

impl Memory for OfRegion {
    fn bytes(&self) -> &[u8] {
        // SAFETY: valid for this length as long as `self.0` exists. Python may change bytes meanwhile.
        unsafe { std::slice::from_raw_parts(self.0.start(), self.0.len()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and writable: `Region` registers only writable memory.
        unsafe { std::slice::from_raw_parts_mut(self.0.start(), self.0.len()) }
    }
}
