//! The command line, its files and its documentation.

mod adding_an_algorithm;
mod algorithms;
mod bench_udp;
mod cli;
mod compare;
mod docs;
mod emulate;
mod ending;
mod explain;
mod flags;
mod layers;
mod memory;
mod out_dir;
mod publishing;
mod real;
mod reference;
mod replay;
mod report;
mod reproduction;
mod schema;
mod service;
mod support;
mod sweep;
mod tables;
mod tools;
mod tune;
