//! A simulation as C holds it: no reference into it lives while a function of C runs.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;

use ::apus_sim::live::Live;
use apus_algorithms::AlgorithmConfig;

/// `apus_sim_status`, with the numbers of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Ok = 0,
    Idle = 1,
    Invalid = 2,
    Unfinished = 3,
    Busy = 4,
    Failed = 5,
}

/// `apus_sim_callback`.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void);

/// A function to call, with its argument.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) function: Callback,
    pub(crate) argument: *mut c_void,
}

/// The functions to call, by the token that the simulation has.
#[derive(Default)]
pub(crate) struct Calls {
    places: Vec<Option<Call>>,
    free: Vec<usize>,
}

impl Calls {
    pub(crate) fn add(&mut self, call: Call) -> u64 {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(call);
                place as u64
            }
            None => {
                self.places.push(Some(call));
                self.places.len() as u64 - 1
            }
        }
    }

    pub(crate) fn take(&mut self, token: u64) -> Option<Call> {
        let place = usize::try_from(token).ok()?;
        let call = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        Some(call)
    }
}

/// `apus_sim`.
pub struct apus_sim {
    pub(crate) live: RefCell<Live<AlgorithmConfig>>,
    pub(crate) calls: RefCell<Calls>,
    /// `apus_sim_run` is in progress.
    pub(crate) is_running: Cell<bool>,
    pub(crate) is_to_stop: Cell<bool>,
    /// `apus_sim_destroy` was called in a callback.
    pub(crate) is_destroyed: Cell<bool>,
    /// A panic ended a run: its state means nothing any more.
    pub(crate) has_failed: Cell<bool>,
    error: RefCell<CString>,
}

impl apus_sim {
    pub(crate) fn new(live: Live<AlgorithmConfig>) -> Self {
        Self {
            live: RefCell::new(live),
            calls: RefCell::default(),
            is_running: Cell::new(false),
            is_to_stop: Cell::new(false),
            is_destroyed: Cell::new(false),
            has_failed: Cell::new(false),
            error: RefCell::default(),
        }
    }

    /// Keeps the text of an error, and returns its status.
    pub(crate) fn refuse(&self, status: Status, why: impl fmt::Display) -> i32 {
        self.error.replace(c_text(&why.to_string()));
        status as i32
    }

    pub(crate) fn error(&self) -> *const c_char {
        self.error.borrow().as_ptr()
    }
}

/// Returns a text for C: up to its first zero byte.
pub(crate) fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Returns a text of C.
///
/// # Safety
/// NULL, or ends with a zero byte and stays as it is while the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, String> {
    if pointer.is_null() {
        return Err(format!("`{name}` is NULL"));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| format!("`{name}` is not UTF-8"))
}
