//! RCP: Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005, and Dukkipati and
//! McKeown, "Why Flow-Completion Time is the Right Metric for Congestion Control", CCR 2006.
//!
//! Every port keeps one rate for all flows. The port adapts this rate to the spare capacity and to the queue,
//! and writes it into packets that carry a larger one. The receiver echoes the smallest rate of the path, and
//! the sender paces at it.

mod header;
mod host;
mod params;
mod switch;

pub use header::{RcpFields, echoed_rate};
pub use host::Rcp;
pub use params::{Params, PortParams};
pub use switch::RcpPort;
