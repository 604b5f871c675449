//! The congestion control algorithms of Apus: Swift, Bolt, ExpressPass, and algorithms to compare
//! them with.
//!
//! Each algorithm is a folder with a sender half, parameters, and switch and receiver halves if
//! needed. All implement the contract of crate `apus-cc`. [`registry`] builds them by name.
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/swift.rs")]
//! ```
#![no_std]

extern crate alloc;

pub mod balancers;
pub mod bolt;
mod bounds;
pub mod constant;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
pub mod dx;
pub mod expresspass;
pub mod hpcc;
pub mod hull;
mod marking;
pub mod mswift;
pub mod notified;
pub mod nscc;
pub mod rccc;
pub mod rcp;
pub mod registry;
mod set;
pub mod swift;
pub mod timely;

pub use balancers::{BalancerConfig, BuiltInPath};
pub use marking::Marking;
pub use registry::{AlgorithmConfig, Registry, build};
pub use set::{BuiltInReceiver, BuiltInSender, BuiltInSwitch};
