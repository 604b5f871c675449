//! CUBIC (RFC 9438).
//!
//! After a loss the window grows along a cubic curve of the time since the loss: fast up to the window at the
//! loss, flat there, and fast again above it. If Reno would be faster, the window grows as Reno's.
//!
//! Not implemented, since the RFC makes them optional: HyStart++ (§4.10), proportional rate reduction (§4.6),
//! and undoing a reduction that proves spurious (§4.9).

mod curve;
mod host;
mod params;

pub use curve::Curve;
pub use host::Cubic;
pub use params::Params;
