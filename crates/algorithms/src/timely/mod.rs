//! TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015; and
//! Patched TIMELY: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
//! TIMELY", CoNEXT 2016.
//!
//! The sender's rate follows the gradient of the RTT between two thresholds. With the gradient
//! alone, every division of the link is stable once the queue is constant. The patch makes the
//! decrease depend on the distance from a target RTT, so that only equal rates are stable.

mod host;
mod params;

pub use host::{Timely, patched_weight};
pub use params::Params;
