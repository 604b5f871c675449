//! Swift as a congestion controller of [quinn](https://docs.rs/quinn).
//!
//! [`SwiftConfig`] is a factory of controllers for quinn's `TransportConfig`. Its settings have the names, units
//! and defaults of the algorithm `swift` in Apus. `base_target` is required.
//!
//! ```
#![doc = include_str!("../examples/transport.rs")]
//! ```
//!
//! # Differences from Swift in Apus
//! * One window follows the whole RTT (Swift-v0, Swift §5.4), because QUIC does not report the delays of hosts.
//!   The target must cover propagation, both hosts, and the peer's acknowledgement delay, which quinn does not
//!   pass to controllers.
//! * Topology scaling is off, because the number of switches is unknown. Flow scaling applies.
//! * The window is at least two packets, and Swift's pacing of smaller windows is not available: quinn paces all
//!   controllers by its own rule (1.25 windows per smoothed RTT, in bursts of at least ten packets).
//! * The first window has ten packets (RFC 9002 §7.2).
//! * An acknowledgement does not increase the window if the application had no data to send (RFC 9002 §7.8).
//! * Timeouts are quinn's. Persistent congestion (RFC 9002 §7.6) sets the window to its minimum, and an ECN mark
//!   reduces it like a loss (RFC 9002 §7.1).

mod config;
mod controller;

pub use apus_cc::{SettingError, Snapshot};
pub use config::SwiftConfig;
pub use controller::Swift;
