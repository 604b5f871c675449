//! The packet-level simulator of Apus: the transport and the algorithms that run over UDP, on a
//! modelled fabric, between modelled hosts.
//!
//! A [`plan::Plan`] describes a simulation; [`Simulation`] runs it and returns a
//! [`summary::Summary`]. One seed fixes a run: the same plan gives the same results on every
//! machine. Crate `apus-scenario` reads plans from files.
//!
//! ```
#![doc = include_str!("../examples/incast.rs")]
//! ```

mod application;
pub mod bounds;
mod build;
mod calendar;
mod clock;
pub mod columns;
pub mod cores;
pub mod credits;
mod detours;
pub mod distribution;
mod engine;
mod error;
pub mod fairness;
mod fault;
mod faults;
mod flights;
pub mod groups;
mod host;
pub mod host_model;
pub mod jobs;
pub mod live;
mod longest_path;
pub mod losses;
pub mod measure;
pub mod memory;
mod metrics;
pub mod monitor;
pub mod offered;
mod op_times;
mod packets;
mod parallel;
mod part;
mod partition;
pub mod plan;
mod queue;
pub mod random;
pub mod record;
mod reroutes;
pub mod results;
mod service;
mod simulation;
pub mod sizes;
pub mod slowdown;
pub mod stalls;
pub mod summary;
pub mod switch_halves;
mod sync;
mod team;
mod tempo;
mod waiters;
mod watch;
mod windows;
mod world;

pub use build::PlanError;
pub use clock::Clock;
pub use error::RunError;
pub use fault::Fault;
pub use longest_path::network_info;
pub use packets::PacketSizes;
pub use simulation::{Progress, Simulation};
pub use watch::{INTERRUPTED, Tell, Watch};
