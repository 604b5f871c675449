//! Traces in the formats of other tools: packets for Wireshark ([`pcapng`]), events of flows for viewers of qlog
//! ([`qlog`]), and timelines for Perfetto ([`perfetto`]).
//!
//! The UDP transport writes packets and events as they occur. The traces of the simulator have the same formats.
//!
//! ```
//! use apus_traces::perfetto::Timeline;
//! use apus_units::{Span, Time};
//!
//! let mut timeline = Timeline::new(Vec::new());
//! let queue = timeline.counter("switch 0 -> host 1, queue", "bytes", None)?;
//! timeline.value(queue, Time::ZERO + Span::from_us(5), 1500.0)?;
//! let file = timeline.finish()?;
//! assert!(!file.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod pcapng;
pub mod perfetto;
pub mod qlog;
