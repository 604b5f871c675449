//! A study of notification delay (Bolt §2.1.1, Fig. 2; Fig. 10's ideal): switches report their
//! queue length to the source of every packet, and the source reacts to the report after a set
//! delay instead of to acknowledgements.
//!
//! Real signals take the return path; for shorter delays, a scenario can deliver them to the source
//! at once.

mod host;
mod params;
pub mod switch;

pub use host::Notified;
pub use params::{Params, Point, Reaction};
