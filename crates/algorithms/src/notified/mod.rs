//! A study of notification delay (Bolt §2.1.1, Fig. 2; Fig. 10's ideal): switches tell the source of
//! every packet how long their queue is, and the source reacts to that after a set delay instead of to
//! acknowledgements.
//!
//! Real signals take the way back; where a delay shall be shorter, a scenario lets them be with the
//! source at once.

mod host;
mod params;
pub mod switch;

pub use host::Notified;
pub use params::{Params, Point, Reaction};
