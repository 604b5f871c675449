//! Swift: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter", SIGCOMM 2020.
//!
//! The two profiles share the code that does not differ. `paper` is Algorithm 1 with a fabric and an endpoint
//! window. `falcon` is the Swift of Google's published Falcon simulator (falcon-transport/isekai v1.1), cited
//! as `Falcon`. Details that the paper leaves open are decided in `params.rs`.
//!
//! ```
//! use apus_algorithms::swift::{Config, Params, Swift};
//! use apus_cc::{Algorithm, FlowInfo, Pacing, Sender};
//! use apus_units::Span;
//!
//! let mut config = Config::paper();
//! config.target.base_target = Span::from_us(15);
//! config.initial_cwnd = 0.5;
//! let params = Params::new(config)?;
//! let flow = Swift::new(params.into(), &FlowInfo::default());
//! // Half a packet per RTT is one packet every two RTTs (§3.4).
//! assert_eq!(flow.allowance().pacing, Pacing::Delay(Span::from_us(30)));
//! # Ok::<(), apus_cc::SettingError>(())
//! ```

mod config;
mod host;
mod params;
mod path;
mod target;
mod window;

pub use config::{Config, HostSignal, Params, PathChange, Rules, WhenToPace};
pub use host::Swift;
pub(crate) use params::{BASE_TARGET_RULE, BASE_TARGET_SOURCE, base_target, fabric_target};
pub use target::{TargetConfig, TargetRule};
