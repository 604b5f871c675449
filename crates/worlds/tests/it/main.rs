//! Tests of worlds.

mod kept;
#[cfg(feature = "planted")]
mod planted;
mod seeds;
mod simulator;
