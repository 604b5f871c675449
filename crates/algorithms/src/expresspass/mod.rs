//! ExpressPass: Cho, Jang and Han, "Credit-Scheduled Delay-Bounded Congestion Control for
//! Datacenters", SIGCOMM 2017.
//!
//! A sender may send one data packet per credit. Receivers send credits at a rate that depends on
//! the fraction of lost credits. Every port limits credits to the rate at which their data fills the link in
//! the other direction, and drops further credits. Data is thus never lost.
//!
//! Profile `code`, the rule of the authors' simulator, is the default: its source is available, a few flows
//! fill the link, and a flow over several full links does not starve. `Feedback` explains why such a flow
//! starves with Algorithm 1 of the paper (profile `paper`).
//!
//! Details missing from the published excerpt come from the authors' simulator (`kaist-ina/ns2-xpass`). Others
//! are marked `unverified`: they come from notes on the rest of the paper, whose text was not available.

mod feedback;
mod host;
mod params;
mod receiver;

pub use feedback::Feedback;
pub use host::ExpressPass;
pub use params::{Params, Stop, Variant};
pub use receiver::ExpressPassReceiver;
