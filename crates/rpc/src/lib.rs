//! Remote procedure calls over [`apus_udp`]: deadlines, cancellation, limits, ordered lanes, and bodies of any length.
//!
//! A call consists of a method and bytes; its answer consists of bytes. There is no schema language: use the encoding of your
//! choice. A call blocks ([`CallBuilder::wait`]) or is a future of any async runtime. Every failed call reports whether its
//! handler may have run ([`CallError::executed`]).
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/echo.rs")]
//! ```

mod body;
mod client;
pub mod envelope;
mod error;
mod keeper;
mod metrics;
mod outgoing;
mod server;
#[cfg(feature = "tower")]
mod tower;

pub use apus_udp;
pub use body::{BodyReader, BodyWriter};
pub use bytes::Bytes;
pub use client::{Call, CallBuilder, CallFuture, Client, ClientOptions, Lane, Method, Response};
pub use error::{BodyError, CallError, ConnectError, Executed, Failure, ServeError, UnknownMethod};
pub use metrics::{ClientMetrics, ServerMetrics};
pub use server::{Incoming, Methods, Reply, Server, ServerOptions};
#[cfg(feature = "tower")]
pub use tower::MethodService;
