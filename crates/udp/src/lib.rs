//! Ops between processes over UDP, on Linux, as an ordinary user.
//!
//! This crate adds sockets, clocks and threads to [`apus_transport`]. The transport and the algorithms are the code that the
//! simulator runs.
//!
//! A [`Host`] has engines, and each engine has a socket. Hosts connect to each other ([`Host::connect`], [`Host::accept`]) and
//! submit ops ([`Connection::submit`]): one-sided writes, reads and atomic ops on the peer's [`Region`]s, and two-sided messages.
//! An application waits for the completion of an op by a blocking call, or uses the op as a future of any async runtime.
//!
//! # Example
//!
//! ```no_run
#![doc = include_str!("../examples/serve.rs")]
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!(
    "apus-udp needs Linux; the simulator alone builds with `-p apus --no-default-features`"
);

mod accept;
mod atomic;
mod backlog;
mod capture;
mod clock;
mod config;
mod connection;
mod connection_metrics;
mod connection_state;
mod containment;
mod dialer;
mod driver;
mod engine;
mod error;
mod grant;
mod hello;
mod host;
mod key_use;
pub mod keyfile;
mod mailbox;
mod message_receiver;
mod metrics;
mod op_counters;
mod ops;
mod pending;
pub mod prometheus;
pub mod qlog;
mod region;
mod report;
pub mod session;
mod sleepers;
mod slots;
mod spreading;
mod stats;
mod status;
pub mod switch;
mod sync;
mod sys;
mod uses;
#[cfg(any(test, feature = "worlds"))]
pub mod virtual_host;

pub use accept::{AcceptHook, Incoming};
pub use apus_cc::Snapshot;
pub use apus_traces::pcapng;
pub use apus_transport::{EvCounters, FlowCounters};
pub use apus_wire::RegionKey;
pub use async_channel;
pub use atomic::WordError;
pub use bytes::Bytes;
pub use capture::Capture;
pub use config::{CLASSES, Config, Mode};
pub use connection::{Connection, Request};
pub use connection_state::Message;
pub use dialer::{DialError, Dialer, Resolve, SystemResolver};
pub use error::{
    Cause, ConnectError, DroppedHandshake, End, HandshakeFault, OpError, Refusal, StartError,
    SubmitError,
};
pub use grant::{Access, Grant};
pub use host::Host;
pub use message_receiver::MessageReceiver;
pub use metrics::Metrics;
pub use ops::Op;
pub use pending::{Completion, Done, OpResult};
pub use qlog::Qlog;
pub use region::{ATOMIC_BYTES, Memory, Region, RegionGuard};
pub use report::{Paths, PortPaths};
pub use spreading::{AckPath, DEFAULT_PORTS, LossDetection, OnePort, SpreadSettings, Spreading};
pub use stats::{Histogram, SessionStats, Stats};
pub use sys::forks;
