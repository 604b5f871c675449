//! The transport core of Apus: the service of Pony Express (Swift §3) without I/O.
//!
//! Applications submit ops and poll completions. Flows carry the ops between two endpoints under a
//! congestion control algorithm. The core reads no clock, holds no payload and touches no socket:
//! time is an argument, and a packet is a header that names bytes of an op. The simulator and the
//! UDP runtime drive the same [`Endpoint`].
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/write.rs")]
//! ```
#![no_std]

extern crate alloc;

pub mod clock;
mod config;
mod control;
mod endpoint;
mod extension;
mod flow;
pub mod memory;
mod op;
mod ranges;
mod receive;
pub mod received;
mod send;
mod spread;
mod streams;
pub mod wheel;

pub use config::{EndpointConfig, LocalRx, Recovery};
pub use endpoint::{Endpoint, Handled, Transmit};
pub use extension::{ExtensionBuffer, extension_of, fields_of, written};
pub use flow::{FlowCounters, RttSample, Silence, Waiting};
pub use op::{Completion, MAX_OP_BYTES, Op, OpKind, Outcome, SubmitError};
pub use ranges::RangeSet;
pub use receive::{Arrival, Observed};
pub use spread::{
    DEFAULT_RANGE, EvCounters, LossRule, MAX_RANGE, MIN_RANGE, NextEv, Path, Sleek, SpreadConfig,
    Turn,
};
