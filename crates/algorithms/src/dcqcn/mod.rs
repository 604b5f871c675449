//! DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015.
//!
//! Switches mark with a probability that grows with the queue (the congestion point). Receivers notify the
//! sender of marked packets at most once per interval (the notification point). The sender cuts its rate by an
//! estimate of the congestion, and recovers by a timer and a byte counter (the reaction point).

mod host;
mod params;
mod receiver;
pub mod switch;

pub use host::Dcqcn;
pub use params::Params;
pub use receiver::NotificationPoint;
