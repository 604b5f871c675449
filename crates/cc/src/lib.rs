//! Congestion control algorithms as state machines: events in, allowances out.
//!
//! An algorithm has up to three halves, one per place where it acts: the sending host
//! ([`Sender`]), the switch ([`SwitchHalf`]) and the receiver ([`Receiver`]). Each half is plain data with
//! methods; none does I/O or reads a clock. Time is an argument, and random numbers come only from a
//! seed that it was given.
//!
//! To add an algorithm, write one folder and add one line to the table in [`registry`].
#![no_std]

extern crate alloc;

pub mod bolt;
mod bounds;
pub mod constant;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
mod derivation;
pub mod dx;
mod event;
pub mod expresspass;
mod flow;
mod header;
pub mod hpcc;
pub mod hull;
pub mod notified;
pub mod rcp;
mod receiver;
mod registered;
pub mod registry;
mod rtt;
mod sender;
mod settings;
mod state;
pub mod swift;
mod switch;
mod telemetry;
pub mod timely;
mod tunable;

pub use derivation::{Derivation, NetworkInfo, Origin, Parameter};
pub use event::{
    AckEvent, Backlog, CreditEcho, CreditEvent, DataEvent, LossEvent, PacketSizeEvent, SendInfo,
    SignalEvent, TimeoutEvent,
};
pub use flow::FlowInfo;
pub use header::{AlgorithmFields, CongestionHeader, Echo, Ecn, Word};
pub use receiver::{MAX_CREDIT_PADDING, Receiver, ReceiverAlgorithm, ReceiverControl};
pub use registered::Registered;
pub use rtt::{Backoff, RtoRule, RttEstimator};
pub use sender::{Allowance, Pacing, Sender, SenderControl, Snapshot};
pub use settings::{
    AlgorithmInfo, ParamDefault, ParamInfo, ParamKind, ProfileInfo, SettingError, Settings,
};
pub use state::{StateError, StateField, StateOverride};
pub use switch::{
    ClassView, Given, PortView, Signal, SwitchAlgorithm, SwitchHalf, SwitchInfo, Verdict,
};
pub use telemetry::{HopTelemetry, MAX_TELEMETRY_HOPS, Telemetry};
pub use tunable::{Range, Tunable, TunedSetting};
