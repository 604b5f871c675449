//! Encoding of packets: golden bytes, extensions and properties.

mod extension;
mod golden;
mod properties;
