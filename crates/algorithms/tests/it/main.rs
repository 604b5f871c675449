//! The algorithms against their papers, one module per paper or section.

mod balancers;
mod bolt_host;
mod bolt_switch;
mod common;
mod cubic;
mod dcqcn;
mod dctcp;
mod derivation;
mod dx;
mod expresspass;
mod hpcc;
mod hull;
mod notified;
mod packet_size;
mod properties;
mod rccc;
mod rcp;
mod registry;
mod rtt;
mod swift_alg_1;
mod swift_falcon;
mod swift_sections;
mod swift_traps;
mod timely;
