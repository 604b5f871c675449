//! The contract of congestion control algorithms: events in, allowances out.
//!
//! An algorithm has up to three halves, one per place where it acts: the sending host ([`Sender`]), the
//! switch ([`SwitchHalf`]) and the receiver ([`Receiver`]). Each half is plain data with methods. None
//! does I/O or reads a clock: time is an argument, and random numbers come only from a seed that the
//! half was given. [`Algorithm`] joins the halves with their parameters.
//!
//! The layers that run algorithms depend on this crate alone: they are generic over an
//! [`AlgorithmFactory`]. The published algorithms are in crate `apus-algorithms`.
//!
//! # Example
//!
//! ```
#![doc = include_str!("../examples/aimd.rs")]
//! ```
#![no_std]

extern crate alloc;

mod algorithm;
mod credit;
pub mod derivation;
mod event;
mod fields;
mod flow;
mod foreign;
mod forward;
mod grants;
mod packets;
mod path;
mod receiver;
pub mod rtt;
mod sender;
pub mod settings;
mod state;
mod switch;
mod telemetry;
mod tunable;

pub use algorithm::{Algorithm, AlgorithmFactory, Configured};
pub use credit::CreditLimit;
pub use derivation::{Derivation, NetworkInfo, Origin, Parameter};
pub use event::{
    AckEvent, Backlog, CreditEcho, CreditEvent, DataEvent, LossEvent, PacketSizeEvent, SendInfo,
    SignalEvent, TimeoutEvent, TrimEvent,
};
pub use fields::{CongestionHeader, Ecn, FIRST_FOREIGN_ID, FieldLayout, Fields, MAX_FIELD_BYTES};
pub use flow::FlowInfo;
pub use foreign::{
    BoxedReceiver, BoxedSender, BoxedSwitch, ForeignAlgorithm, ForeignFactory, foreign,
};
pub use grants::{ArrivedAs, GrantPace, Regulation, Regulator, Turn};
pub use packets::ProfilePackets;
pub use path::{
    Balancer, BoxedPath, Ev, ForeignBalancer, MAX_EVS, PathEvent, PathFeedback, PathPolicy,
    SwitchChoice, foreign_balancer,
};
pub use receiver::{
    Acknowledging, EchoNewest, EchoTelemetry, MAX_CREDIT_PADDING, Receiver, ReceiverControl,
};
pub use rtt::{Backoff, RtoRule, RttEstimator};
pub use sender::{
    Allowance, Departure, Outlook, Pacing, ReplaySender, Sender, SenderControl, Snapshot,
};
pub use settings::{
    AlgorithmInfo, ParamDefault, ParamInfo, ParamKind, ProfileInfo, SettingError, Settings,
};
pub use state::{StateError, StateField, StateOverride};
pub use switch::{
    ClassView, Plain, PortView, Signal, SwitchFeedback, SwitchHalf, SwitchInfo, Verdict,
};
pub use telemetry::{HopTelemetry, MAX_TELEMETRY_HOPS, Telemetry};
pub use tunable::{Range, Tunable, TunedSetting};

/// For the macros that forward calls.
#[doc(hidden)]
pub use apus_units::{Bytes, Span, Time};
