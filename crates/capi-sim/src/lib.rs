//! The simulator for C: the functions that `include/apus_sim.h` declares and documents.
//!
//! This crate only converts between pointers and values: the simulation is that of `apus_sim::live`, its scenario that of
//! `apus_scenario`. Functions are private to Rust; C calls them by name. The header states the requirements on pointers.
#![expect(unsafe_code, reason = "C hands over pointers")]
#![allow(non_camel_case_types)] // as the header names them

mod create;
mod drive;
mod handle;
