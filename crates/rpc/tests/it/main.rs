//! Integration tests: calls between hosts on the loopback interface.

#[path = "../../../udp/tests/support/mod.rs"]
mod support;

mod bodies;
mod calls;
mod drops;
mod endings;
mod examples;
mod lanes;
mod limits;
mod pair;
mod protocol;
mod services;
mod streams;
