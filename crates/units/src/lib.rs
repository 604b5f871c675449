//! Units of Apus: instants, spans, sizes, rates and typed identifiers. The crate also contains utilities of
//! all crates: random numbers from a seed, a queue, large vectors, prefetches, and suggestions for misspelt
//! names.
//!
//! Every public interface of the project uses these types instead of bare integers. A quantity in a file or
//! on the command line carries its unit (`25us`, `100Gbps`, `64KiB`). Parsing a quantity without a unit is an
//! error ([`ParseQuantityError`]).
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/link.rs")]
//! ```
#![no_std]

extern crate alloc;

mod grow;
mod hint;
mod id;
pub mod planted;
mod quantity;
pub mod random;
mod rate;
mod ring;
mod size;
mod suggest;
mod time;

pub use grow::reserve_more;
pub use hint::{prefetch, prefetch_first, prefetch_range, prefetch_start};
pub use id::{ClassId, FlowId, HostId, OpId, PacketNumber, PortId, SwitchId};
pub use quantity::ParseQuantityError;
pub use rate::Rate;
pub use ring::Ring;
pub use size::Bytes;
pub use suggest::{shorten, similar, suggestion};
pub use time::{Span, Time};
