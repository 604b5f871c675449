//! MSwift: Swift on the median of the last delays, for flows whose packets take several paths (Gerstein,
//! Silberstein, Keslassy, "Congestion Control for Spraying with Congested Paths", arXiv 2509.07907), and its
//! base LSwift, which cuts its window later.
//!
//! With a share q of packets on congested paths, a rule on the latest delay cuts for any q > 0, so that the
//! window falls as 1/sqrt(q) (§III of the paper). For q below 1/3 the median of the last H delays ignores these
//! packets.
//!
//! unverified: the paper's text beyond its abstract was not available; its rules are cited second-hand.

mod delays;
mod host;
mod params;

pub use host::MSwift;
pub use params::Params;
