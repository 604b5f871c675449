//! CUBIC (RFC 9438).
//!
//! After a loss the window grows along a cubic curve of the time since then: fast up to the window
//! at the loss, flat there, fast again beyond. If Reno would be faster, the window grows as Reno's.
//!
//! Left out, each optional in the RFC: HyStart++ (§4.10), proportional rate reduction (§4.6) and the
//! undoing of a reduction that proves spurious (§4.9).

mod curve;
mod host;
mod params;

pub use curve::Curve;
pub use host::Cubic;
pub use params::Params;
