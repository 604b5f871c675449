//! The interpreter's state for a thread.
//!
//! A thread that Python did not start, such as that of an engine or of a part of a run, would create this state at each
//! event of an algorithm and delete it afterwards. That takes longer than the event.
#![expect(unsafe_code, reason = "pyo3 keeps the state of a thread only within a call")]

use pyo3::ffi;

/// Keeps the interpreter's state of this thread until the thread ends. The thread must not hold the interpreter's lock.
#[inline]
pub fn keep_state() {
    STATE.with(|_| {});
}

thread_local! {
    static STATE: Kept = Kept::new();
}

/// State of this thread that was created here; `None` if the thread already had one.
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
        // SAFETY: a thread's destructor does not run within a call of Python, so the thread does not hold the lock. The
        // state belongs to this thread and still exists, because every other user of it has released what it acquired.
        unsafe { ffi::PyEval_RestoreThread(state) };
        // SAFETY: the counterpart of `PyGILState_Ensure`, with the value that it returned.
        unsafe { ffi::PyGILState_Release(before) };
    }
}
