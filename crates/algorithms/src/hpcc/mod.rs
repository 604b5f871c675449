//! HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019.
//!
//! Switches note on each packet when it left, how much the port had sent, its queue and its rate;
//! the sender computes from two notes of the same port how many bytes are in flight there, and sets
//! its window to what would fill the busiest link to a fraction `eta` of its BDP.

mod host;
mod params;
pub mod switch;

pub use host::Hpcc;
pub use params::Params;
