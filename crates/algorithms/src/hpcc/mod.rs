//! HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019.
//!
//! Switches append to each packet its departure time, the bytes sent by the port, its queue and its
//! rate. From two records of the same port the sender computes how many bytes are in flight there,
//! and sets its window to fill the busiest link to a fraction `eta` of its BDP.

mod host;
mod params;
pub mod switch;

pub use host::Hpcc;
pub use params::Params;
