//! Tests of worlds.

mod kept;
mod page;
#[cfg(feature = "planted")]
mod planted;
mod seeds;
mod simulator;
