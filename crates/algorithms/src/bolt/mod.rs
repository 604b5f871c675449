//! Bolt: Arslan et al., "Bolt: Sub-RTT Congestion Control for Ultra-Low Latency", NSDI 2023.
//!
//! Three mechanisms, each with a part at the switch and one at the host: SRC (a congested switch
//! tells the source at once, §3.1), PRU (a flow says in its last window that it will go, and others
//! take its place without a gap, §3.2) and SM (the switch hands out bandwidth that nobody uses,
//! §3.3). What the paper leaves open is decided in `params.rs`; choices of the authors' ns-3 code
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
