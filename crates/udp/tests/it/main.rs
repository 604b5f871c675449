//! Integration tests of the transport over UDP: hosts, sessions, faults, and their reports.

#[path = "../support/mod.rs"]
mod support;

mod arrival;
mod atomics;
mod batches;
mod bolt;
mod dialer;
mod drain;
mod driving;
mod endings;
mod failure;
mod faults;
mod futures;
mod held;
mod identity;
mod loopback;
mod metrics;
mod options;
mod pcapng;
mod qlog;
mod restart;
mod secrets;
mod security_page;
mod soak;
mod spread;
