//! A constant window or rate: no congestion control, for tests and as a baseline.

mod host;
mod params;

pub use host::Constant;
pub use params::Params;
