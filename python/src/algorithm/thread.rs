//! The state that the interpreter has for a thread.
//!
//! A thread that Python did not start, such as that of an engine or of a part of a run, would make its state at each
//! event of an algorithm and delete it afterwards, which takes longer than the event.
#![expect(unsafe_code, reason = "pyo3 keeps the state of a thread only within a call")]

use pyo3::ffi;

/// Keeps the interpreter's state of this thread, which must not have the interpreter's lock, until the thread ends.
#[inline]
pub fn keep_state() {
    STATE.with(|_| {});
}

thread_local! {
    static STATE: Kept = Kept::new();
}

/// A state of this thread that was made here; `None` if the thread had one.
struct Kept(Option<Made>);

struct Made {
    before: ffi::PyGILState_STATE,
    state: *mut ffi::PyThreadState,
}

impl Kept {
    fn new() -> Self {
        // SAFETY: no preconditions while the interpreter exists, which starts every caller of the simulator and of the
        // transport.
        if !unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
            return Self(None);
        }
        // SAFETY: as above. The thread gets the lock with a new state, and gives the lock back without deleting it.
        let before = unsafe { ffi::PyGILState_Ensure() };
        // SAFETY: the thread has the lock since the call before.
        let state = unsafe { ffi::PyEval_SaveThread() };
        Self(Some(Made { before, state }))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(Made { before, state }) = self.0.take() else { return };
        // SAFETY: a destructor of a thread runs in no call of Python's, so that the thread does not have the lock; the
        // state is that of this thread and still there, because every other user of it has given back what it took.
        unsafe { ffi::PyEval_RestoreThread(state) };
        // SAFETY: this is the other end of `PyGILState_Ensure`, with its answer.
        unsafe { ffi::PyGILState_Release(before) };
    }
}
