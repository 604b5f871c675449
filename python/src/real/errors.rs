//! Converts errors of the transport to exceptions of the package; their classes are in `apus/errors.py`.

use std::error::Error;

use apus_udp::{ConnectError, End, OpError, StartError, SubmitError, WordError};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::{PyErr, Python};

use crate::errors::of_input;

mod python {
    pyo3::import_exception!(apus.errors, ConnectionEndedError);
    pyo3::import_exception!(apus.errors, ConnectError);
    pyo3::import_exception!(apus.errors, FullError);
    pyo3::import_exception!(apus.errors, HostError);
    pyo3::import_exception!(apus.errors, OpError);
}

/// Reason why a wait ended without a value.
#[derive(Debug)]
pub enum Failure {
    Connect(ConnectError),
    Op(OpError),
    Ended(End),
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Connect(error) => python::ConnectError::new_err(error.to_string()),
            Failure::Op(error) => {
                let may_be_applied = matches!(error, OpError::Unknown(_));
                python::OpError::new_err((error.to_string(), may_be_applied))
            }
            Failure::Ended(end) => python::ConnectionEndedError::new_err(end.to_string()),
        }
    }
}

impl Failure {
    /// Returns `true` if an engine failed, as it does after an exception of an algorithm.
    pub fn is_of_engine(&self) -> bool {
        use apus_udp::Cause;
        match self {
            Self::Connect(error) => *error == ConnectError::EngineFailed,
            Self::Op(OpError::NotSent(cause) | OpError::Unknown(cause)) => {
                *cause == Cause::Ended(End::EngineFailed)
            }
            Self::Op(OpError::Refused(_)) => false,
            Self::Ended(end) => *end == End::EngineFailed,
        }
    }
}

/// Returns the exception for an op that was not accepted.
pub fn of_submit(error: SubmitError) -> PyErr {
    match error {
        SubmitError::Full => python::FullError::new_err((error.to_string(), false)),
        SubmitError::Ended(end) => python::ConnectionEndedError::new_err(end.to_string()),
        SubmitError::TooLong { .. }
        | SubmitError::AddressOverflow { .. }
        | SubmitError::Unaligned { .. } => PyValueError::new_err(error.to_string()),
        _ => python::OpError::new_err((error.to_string(), false)),
    }
}

/// Returns the exception for a host that cannot start.
pub fn of_start(error: &StartError) -> PyErr {
    match error {
        StartError::Setting(what) => of_input(what),
        other => of_system(other),
    }
}

/// Returns the exception for a service that the system refuses.
pub fn of_system(error: &dyn Error) -> PyErr {
    python::HostError::new_err(error.to_string())
}

/// Returns the exception for a failed access to a word of a region.
pub fn of_word(error: &WordError) -> PyErr {
    match error {
        WordError::Unaligned { .. } => PyValueError::new_err(error.to_string()),
        _ => PyIndexError::new_err(error.to_string()),
    }
}

/// Returns `error` with the exception that caused it.
pub fn caused_by(py: Python<'_>, error: PyErr, cause: Option<PyErr>) -> PyErr {
    if cause.is_some() {
        error.set_cause(py, cause);
    }
    error
}
