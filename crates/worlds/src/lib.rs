//! Worlds: deterministic simulation of the transport over UDP under faults.
//!
//! A seed draws a [`Plan`]: hosts, ops and faults. Its world runs the engines, sessions and connections of
//! `apus-udp` in virtual time ([`apus_udp::virtual_host`]). Its network loses, repeats, delays, corrupts and
//! blocks datagrams; its hosts pause, crash and restart; adversaries take part. During the whole run these
//! properties are checked:
//!
//! * an op is applied at most once; `Done` means that the bytes were applied, `NotSent` that no part of the op left
//!   its host, `Refused` that nothing was applied; every op ends once;
//! * no byte reaches another region or another range than those of its op, or comes from a peer without the right;
//! * a peer is the holder of its key, if hosts have keys of their own;
//! * no nonce is used twice under a key, and no payload is readable;
//! * the resources that an engine uses stay within their bounds, and no engine panics.
//!
//! Then faults stop. Every op ends, every pair of hosts does new ops, and after all connections have closed,
//! no session, flow or op is left, and within three more hours no timer.
//!
//! The same plan always gives the same world. [`shrink`] searches for a smaller plan with the same violation.
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/seed.rs")]
//! ```

mod adversary;
mod agenda;
mod app;
mod audit;
mod batch;
mod clock;
mod content;
mod draw;
pub mod fabric;
mod fault;
mod identity;
mod informed;
mod insider;
mod ledger;
mod log;
mod machine;
mod memory;
mod network;
mod plan;
mod running;
mod settle;
mod shrink;
mod trace;
mod trouble;
mod world;

pub use batch::{Batch, STUCK, quantile, run_seeds};
pub use fault::Fault;
pub use log::Counts;
pub use plan::{HostPlan, OpPlan, Plan, What};
pub use running::name_seeds_of_panics;
pub use shrink::shrink;
pub use world::Violation;

use log::Log;
use world::World;

/// Outcome of a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// First property that did not hold.
    pub violation: Option<Violation>,
    /// Statistics of the world.
    pub counts: Counts,
    /// Log of the world, line by line, if it was requested.
    pub log: Vec<String>,
}

/// Runs the world of a plan; `log` requests its log.
#[must_use]
pub fn run(plan: &Plan, log: bool) -> Outcome {
    let name = format!("the world of seed {}", plan.seed);
    let started = running::guarded(name.clone(), || World::new(plan, Log(log.then(Vec::new))));
    let mut world = match started {
        Ok(world) => world,
        Err(message) => {
            let what = format!("the start of the world panicked: {message}");
            let violation = Some(Violation { check: "panic", what, at: apus_units::Time::ZERO });
            return Outcome { violation, counts: Counts::default(), log: Vec::new() };
        }
    };
    let ran = running::guarded(name, || world.run());
    let checked = ran.map_err(|message| format!("the world panicked: {message}"));
    world.check("panic", checked);
    let log = world.log.0.take().unwrap_or_default();
    Outcome { violation: world.violation.take(), counts: world.counts, log }
}
