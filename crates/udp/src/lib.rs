//! Apus between real processes: ops over UDP, on Linux, as an ordinary user.
//!
//! This crate adds to [`apus_transport`] what the core leaves out: sockets, clocks and threads. The
//! transport and the algorithms are the code that the simulator runs.

mod error;
pub mod keyfile;
pub mod pcapng;
pub mod prometheus;
pub mod session;

pub use error::{Cause, ConnectError, End, OpError, Refusal, StartError, SubmitError};
