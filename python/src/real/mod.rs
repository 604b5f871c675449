//! The transport over UDP: hosts, connections, ops and regions as Python classes.
//!
//! No call into the transport holds the interpreter's lock: an engine may hold its own lock while an algorithm
//! in Python waits for the interpreter's. Handles are therefore [`Detached`], so that their destructors, which
//! may wait for an engine, hold no lock either.

mod connection;
mod errors;
mod executor;
mod host;
mod memory;
mod op;
mod region;

use std::ops::Deref;

use pyo3::prelude::*;

/// Adds the classes to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<connection::Connection>()?;
    module.add_class::<executor::Executor>()?;
    module.add_class::<host::Host>()?;
    module.add_class::<op::Op>()?;
    module.add_class::<region::Region>()?;
    module.add_function(wrap_pyfunction!(host::make_key, module)?)
}

/// [`Detached`] is empty only while it is dropped.
const HELD: &str = "a handle until it is dropped";

/// A handle of the transport that is dropped without the interpreter's lock.
pub struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    pub fn new(handle: T) -> Self {
        Self(Some(handle))
    }

    /// Calls `change` with the handle.
    pub fn with<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        change(self.0.as_mut().expect(HELD))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        let handle = self.0.take();
        // Without an interpreter there is no lock.
        let mut handle = Some(handle);
        Python::try_attach(|py| {
            let handle = handle.take();
            py.detach(|| drop(handle));
        });
    }
}
