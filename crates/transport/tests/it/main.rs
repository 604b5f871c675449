//! The transport in virtual time: ops, loss recovery, timers and the wire.

mod clock;
mod control;
mod extension;
mod faults;
mod hostile;
mod pair;
mod ports;
mod ranges;
mod received;
mod spread;
mod support;
mod trimmed;
mod unsendable;
mod wheel;
