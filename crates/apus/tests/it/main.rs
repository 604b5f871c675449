//! The command line, its files and its documentation.

mod adding_an_algorithm;
mod algorithms;
#[cfg(feature = "real")]
mod bench_udp;
mod bundles;
#[cfg(feature = "real")]
mod calibrate;
mod censored;
mod cli;
mod compare;
mod disk;
mod docs;
#[cfg(feature = "real")]
mod emulate;
mod ending;
mod explain;
mod flags;
#[cfg(feature = "real")]
mod identity;
mod layers;
#[cfg(all(feature = "live", target_os = "linux"))]
mod live;
mod memory;
mod out_dir;
mod page;
mod publishing;
#[cfg(feature = "real")]
mod real;
#[cfg(feature = "real")]
mod real_rotation;
mod reference;
mod replay;
mod report;
mod reproduce;
mod reproduction;
mod run;
mod schedules;
mod schema;
#[cfg(feature = "real")]
mod service;
mod shards;
mod support;
mod sweep;
mod tables;
mod tools;
mod traces;
mod traffic;
mod tune;
mod validate;
mod whatif;
