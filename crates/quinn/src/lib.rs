//! Swift as a congestion controller of [quinn](https://docs.rs/quinn).
//!
//! [`SwiftConfig`] is a factory of controllers for quinn's `TransportConfig`. Its settings have the names and units
//! of the algorithm `swift` in Apus, profile `paper`. `base_target` is required. The other defaults are those of the
//! profile, except:
//!
//! | parameter | default here | `paper` |
//! |---|---|---|
//! | `decompose` | `false`, and cannot be set | `true` |
//! | `hop_scale` | `0us`, and cannot be set | `1us` |
//! | `min_cwnd` | 2, and at least 2 | 0.001 |
//! | `initial_cwnd` | 10, but at most 14720 bytes or 2 packets, whichever is more (RFC 9002 §7.2) | 1 |
//!
//! ```
#![doc = include_str!("../examples/transport.rs")]
//! ```
//!
//! # Differences from Swift in Apus
//! * One window follows the whole RTT (Swift-v0, Swift §5.4), because QUIC does not report the delays of hosts.
//!   The target must cover propagation, both hosts, and the peer's acknowledgement delay, which quinn does not
//!   pass to controllers. Reordered packets give no RTT (RFC 9002 §5.1).
//! * Topology scaling is off, because QUIC does not count switches. Flow scaling applies, but adds at most 6 us to
//!   the target with the default parameters.
//! * The window is at least two packets, and Swift's pacing of smaller windows is not available: quinn paces all
//!   controllers by its own rule (1.25 windows per smoothed RTT, in bursts of at least ten packets).
//! * An acknowledgement does not increase the window if the application had no data to send (RFC 9002 §7.8).
//! * A loss or an ECN mark reduces the window at most once per round trip (RFC 9002 §7.1, §7.3.2).
//!   `max_decrease_on_loss = false` does not apply to marks.
//! * Timeouts are quinn's. Persistent congestion sets the window to its minimum (RFC 9002 §7.6).

mod config;
mod controller;

pub use apus_cc::{SettingError, Snapshot};
pub use config::SwiftConfig;
pub use controller::Swift;
