//! Packets as bytes.

mod extension;
mod golden;
mod properties;
