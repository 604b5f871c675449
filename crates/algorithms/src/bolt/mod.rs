//! Bolt: Arslan et al., "Bolt: Sub-RTT Congestion Control for Ultra-Low Latency", NSDI 2023.
//!
//! Three mechanisms, each with a part at the switch and one at the host: SRC (a congested switch
//! signals the source at once, §3.1), PRU (a flow announces its end one window ahead, and others
//! use its bandwidth without a gap, §3.2) and SM (the switch distributes unused bandwidth, §3.3).
//! Details that the paper leaves open are decided in `params.rs`; choices of the authors' ns-3 code
//! that differ are options.

mod header;
mod host;
mod params;
pub mod switch;
mod table;

pub(crate) use header::LAYOUT;
pub use header::{BoltFields, GrantCounter, granted, grants};
pub use host::Bolt;
pub(crate) use params::stamp;
pub use params::{BelowOne, FirstRule, IncRule, Paced, Params};
