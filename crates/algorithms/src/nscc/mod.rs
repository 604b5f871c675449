//! NSCC, the network-signal congestion control of the Ultra Ethernet Specification 1.0 (§3.6.13), and
//! its variant with median feedback (MNSCC).
//!
//! The equations are those of the specification as uet-htsim (commit 40ccb05) implements them, in whole
//! bytes as there.
//!
//! unverified: the text of the specification was not available; its sections are cited second-hand.

mod host;
mod median;
mod params;
mod penalty;
mod window;

pub use host::Nscc;
pub use params::Params;
pub(crate) use params::rto_of;
