//! ExpressPass: Cho, Jang and Han, "Credit-Scheduled Delay-Bounded Congestion Control for
//! Datacenters", SIGCOMM 2017.
//!
//! A sender may send one data packet per credit. Receivers send credits at a rate that follows how
//! many of them get lost; every port lets credits pass at the rate at which the data that they call
//! for fits the link in the other direction, and drops the rest. Data is thus never lost.
//!
//! What the published excerpt does not say comes from the authors' simulator (`kaist-ina/ns2-xpass`),
//! or is marked `unverified`: from notes on the rest of the paper, without its text at hand.

mod feedback;
mod host;
mod params;
mod receiver;

pub use feedback::Feedback;
pub use host::ExpressPass;
pub use params::{Params, Stop, Variant};
pub use receiver::ExpressPassReceiver;
