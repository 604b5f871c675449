//! TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015; and
//! Patched TIMELY: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
//! TIMELY", CoNEXT 2016.
//!
//! The sender's rate follows the gradient of the RTT between two thresholds. By the gradient alone
//! any division of the link is as good as any other once the queue stands still; the patch makes the
//! decrease hang on the distance from a target RTT, which leaves one division: equal rates.

mod host;
mod params;

pub use host::{Timely, patched_weight};
pub use params::Params;
