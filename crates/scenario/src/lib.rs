//! A scenario is a TOML file that describes a run or an experiment.
//!
//! ```toml
//! duration = "20ms"
//! topology = { kind = "star", hosts = 11, rate = "100Gbps", delay = "1us", buffer = "4MB" }
//! algorithm = { name = "swift", base_target = "25us" }
//! [[workload]]
//! kind = "incast"
//! size = "64kB"
//! ```
//!
//! Every quantity has a unit. A time is at most 86400s, a rate at most 100Tbps, a size at most 1TiB.
//! Unknown keys, missing or wrong units, impossible values, contradictions and settings without effect are
//! errors. Each error names the file, the line and the remedy. The reader reports as many errors as possible
//! at once.
//!
//! `apus schema` prints a JSON Schema of all keys, for editors.
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/incast.rs")]
//! ```

mod algorithm;
mod assignment;
mod check;
mod classes;
mod closed;
mod connections;
mod contradictions;
mod declared;
mod ecn;
mod effective;
pub mod experiment;
mod fault;
pub mod file;
mod format;
mod frame;
mod graph;
mod halves;
mod host;
mod hosts;
pub mod import;
mod job;
mod keys;
mod label;
mod links;
mod measure;
mod measure_ports;
mod memory;
mod moment;
mod one_line;
mod overrides;
mod packets;
mod parts;
mod pattern;
mod pfc;
mod poisson;
mod presets;
mod quick;
mod read;
mod read_check;
mod read_run;
mod record;
mod repeat;
pub mod replay;
mod reroute;
mod rounds;
mod routing;
mod runs_of;
mod section;
mod series;
mod service;
mod set;
mod setup;
mod shape;
mod sizes_of;
mod source;
mod stream;
mod testbed;
mod to_plan;
mod topology;
mod trace;
mod tree;
mod under;
mod variant;
mod workload;

pub use check::{Check, CheckKind, Reduce, Relative};
pub use declared::KindKeys;
pub use format::FORMAT;
pub use keys::{declarations, explain, key_names, reference, schema};
pub use memory::MemoryLimit;
pub use overrides::Override;
pub use presets::{PRESETS, Preset};
pub use read::{Mutation, Options, Run, Scenario};
pub use set::{
    ClassConfig, ConnectionPlan, LinkSpec, Plan, PortConfig, Simulation, Tier, Topology,
};
pub use setup::Setup;
pub use shape::TOPOLOGIES;
pub use source::{FindTestbed, Problem, ScenarioError, Source};
pub use under::{MarkingRule, Under};
pub use workload::WORKLOADS;
