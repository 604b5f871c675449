//! The fabric in virtual time: forwarding, queues, routing, topologies and signals.

mod adding_a_topology;
mod choosing;
mod classes;
mod conservation;
mod cuts;
mod detours;
mod differential;
mod forwarding;
mod pfc;
mod refused;
mod routing;
mod schedulers;
mod shared_links;
mod signals;
mod support;
mod topologies;
mod trimming;
