//! HULL: Alizadeh et al., "Less is More: Trading a Little Bandwidth for Ultra-Low Latency in the Data
//! Center", NSDI 2012.
//!
//! Every port simulates a queue that drains at a fraction of its link's rate, and marks by the length of that
//! queue, so that the real queue stays empty. Hosts run DCTCP, and smooth the bursts of flows that see marks.

mod host;
mod pacer;
mod params;
mod switch;

pub use host::Hull;
pub use pacer::Pacer;
pub use params::{PacerParams, Params, PhantomParams};
pub use switch::PhantomQueue;
