//! DX: Lee, Park, Jang, Moon, Han, "Accurate Latency-based Congestion Feedback for Datacenters", USENIX
//! ATC 2015.
//!
//! The window grows by one packet per RTT while no packet queues, and shrinks in proportion to the
//! queueing delay averaged over a window.

mod host;
mod params;

pub use host::Dx;
pub use params::Params;
