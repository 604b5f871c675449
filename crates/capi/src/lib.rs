//! Apus for C: what `include/apus.h` declares. Everything is documented there.
//!
//! This crate turns pointers into values and back and does nothing else: hosts, connections and ops
//! are `apus_udp`'s, Swift is `apus_cc`'s. Functions are private to Rust; C knows them by name. What a
//! pointer must be is said in the header, once for all: valid for its type and size, NULL only where
//! that is allowed, a handle only between its making and its freeing.
#![expect(unsafe_code, reason = "C hands over pointers")]
#![allow(non_camel_case_types)] // as the header names them

mod config;
mod connection;
mod failure;
mod host;
mod ops;
mod pointer;
mod queue;
mod region;
mod swift;
mod wait;

#[cfg(test)]
mod tests;
