//! DCTCP (RFC 8257), and Google's variant GCN (Swift §4.1) as a profile of DCTCP.

mod host;
mod params;
pub mod switch;

pub use host::Dctcp;
pub use params::{MARKING_RULE, MARKING_SOURCE, Params, marking_threshold};
