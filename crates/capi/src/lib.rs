//! Apus for C: the functions that `include/apus.h` declares and documents.
//!
//! This crate only converts between pointers and values: hosts, connections and ops are those of
//! `apus_udp`, Swift is that of `apus_algorithms`. Functions are private to Rust; C calls them by
//! name. The header states the requirements on pointers, once for all: valid for their type and
//! size, NULL only where that is allowed, a handle only between its creation and its release.
#![expect(unsafe_code, reason = "C hands over pointers")]
#![allow(non_camel_case_types)] // as the header names them

mod config;
mod connection;
mod failure;
mod host;
mod identity;
mod log;
mod ops;
mod pointer;
mod queue;
mod region;
mod swift;

#[cfg(test)]
mod tests;
