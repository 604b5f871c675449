//! Events of flows in the qlog format.
//!
//! The text follows draft-ietf-quic-qlog-main-schema-12: a sequential trace (`QlogFileSeq`) as JSON text
//! sequences (RFC 7464). The events have their own schema, [`EVENT_SCHEMA`], because the packets are not
//! those of QUIC. Where events of QUIC fit, names and fields are taken from them
//! (draft-ietf-quic-qlog-quic-events). docs/operations.md lists the events. No event contains payload or
//! keys.

use std::io::{self, Write};
use std::net::SocketAddr;

use apus_cc::Snapshot;
use apus_transport::{FlowCounters, RttSample};
use apus_units::{Span, Time};
use apus_wire::{Body, Header, SegmentKind};

/// URI of the schema of the events.
pub const EVENT_SCHEMA: &str = "urn:apus:qlog:events:apus-1";

/// Character before each text of a JSON text sequence (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;
const LINE_FEED: u8 = b'\n';

/// Clock of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A monotonic clock that began at this time, in nanoseconds since 1970 (UTC).
    Monotonic(u64),
    /// Clock of a simulation, which began at 0.
    Simulated,
}

/// Role of a host in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VantagePoint {
    /// Host that opened the connection.
    Client,
    /// Its peer.
    Server,
}

/// The path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPath {
    /// UDP source port.
    pub port: u16,
    /// Entropy value, if the sender of the packet recorded it.
    pub ev: Option<u16>,
}

/// Returns the first record of a file: the trace without its events. `title` must not need JSON escapes.
#[must_use]
pub fn header(title: &str, clock: Clock, vantage_point: VantagePoint) -> Vec<u8> {
    let clock = match clock {
        Clock::Monotonic(unix_ns) => format!(
            "\"clock_type\":\"monotonic\",\"epoch\":\"unknown\",\"wall_clock_time\":\"{}\"",
            rfc_3339(unix_ns)
        ),
        Clock::Simulated => "\"clock_type\":\"simulated\",\"epoch\":\"unknown\"".to_owned(),
    };
    let vantage_point = match vantage_point {
        VantagePoint::Client => "client",
        VantagePoint::Server => "server",
    };
    let mut header = vec![RECORD_SEPARATOR];
    header.extend_from_slice(
        format!(
            "{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\"title\":\"apus\",\
             \"trace\":{{\"title\":\"{title}\",\"common_fields\":{{\"time_format\":\"relative_to_epoch\",\
             \"reference_time\":{{{clock}}}}},\
             \"vantage_point\":{{\"type\":\"{vantage_point}\"}},\"event_schemas\":[\"{EVENT_SCHEMA}\"]}}}}"
        )
        .as_bytes(),
    );
    header.push(LINE_FEED);
    header
}

/// Writer of events as text. It stores the counters of each flow and derives losses from their changes.
#[derive(Clone, Debug)]
pub struct Events {
    from: Time,
    /// Counters of each flow at its last event.
    counters: Vec<FlowCounters>,
    out: Vec<u8>,
}

impl Events {
    /// Returns a writer for the events of a connection with this number of flows. Times count from `from`.
    #[must_use]
    pub fn new(from: Time, flows: usize) -> Self {
        Self { from, counters: vec![FlowCounters::default(); flows], out: Vec::new() }
    }

    /// Returns the text written since the last call of [`Events::clear`].
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.out
    }

    /// Clears the text and keeps its memory.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Adds an event whose data `members` writes.
    fn event(
        &mut self,
        now: Time,
        name: &str,
        members: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) {
        let out = &mut self.out;
        out.push(RECORD_SEPARATOR);
        let ms = now.since(self.from).as_us_f64() / 1e3;
        // Writing to a vector cannot fail.
        let _ = write!(out, "{{\"time\":{ms:.6},\"name\":\"apus:{name}\",\"data\":{{");
        let _ = members(out);
        out.extend_from_slice(b"}}\n");
    }

    /// Adds the event that the connection is open. `algorithm` must not need JSON escapes.
    pub fn started(&mut self, now: Time, ends: [SocketAddr; 2], algorithm: &str) {
        let (flows, [local, remote]) = (self.counters.len(), ends);
        self.event(now, "connection_started", |out| {
            write!(
                out,
                "\"local\":{{\"ip\":\"{}\",\"port\":{}}},\"remote\":{{\"ip\":\"{}\",\"port\":{}}},\
                 \"flows\":{flows},\"algorithm\":\"{algorithm}\"",
                local.ip(),
                local.port(),
                remote.ip(),
                remote.port()
            )
        });
    }

    /// Adds the event that a packet of `length` bytes was sent or received. `path` is given if the flow has
    /// several paths.
    pub fn packet(
        &mut self,
        now: Time,
        sent: bool,
        flow: usize,
        header: &Header,
        length: usize,
        path: Option<PacketPath>,
    ) {
        let name = if sent { "packet_sent" } else { "packet_received" };
        self.event(now, name, |out| {
            write!(
                out,
                "\"header\":{{\"packet_type\":\"{}\",\"packet_number\":{}}},\"flow\":{flow},\
                 \"raw\":{{\"length\":{length},\"payload_length\":{}}},\"frames\":[",
                packet_type(&header.body),
                header.seq.get(),
                header.payload_len()
            )?;
            frame(out, &header.body)?;
            write!(out, "]")?;
            match path {
                None => Ok(()),
                Some(PacketPath { port, ev: None }) => write!(out, ",\"source_port\":{port}"),
                Some(PacketPath { port, ev: Some(ev) }) => {
                    write!(out, ",\"source_port\":{port},\"ev\":{ev}")
                }
            }
        });
    }

    /// Adds the event that an acknowledgement with this sample, or a timeout, has changed the state of a flow.
    pub fn flow(
        &mut self,
        now: Time,
        flow: usize,
        state: &Snapshot,
        counters: &FlowCounters,
        sample: Option<&RttSample>,
    ) {
        let before = std::mem::replace(&mut self.counters[flow], *counters);
        let since = counters.since(&before);
        for (packets, trigger) in
            [(since.fast_losses, "reordering_threshold"), (since.timeout_losses, "pto_expired")]
        {
            if packets > 0 {
                self.event(now, "packets_lost", |out| {
                    write!(out, "\"flow\":{flow},\"packets\":{packets},\"trigger\":\"{trigger}\"")
                });
            }
        }
        if sample.is_none() && since.timeouts == 0 {
            return;
        }
        self.event(now, "recovery_metrics_updated", |out| {
            write!(out, "\"flow\":{flow},\"congestion_window_packets\":{:.6}", state.cwnd)?;
            let windows = [
                ("fabric_window_packets", state.fabric_cwnd),
                ("endpoint_window_packets", state.endpoint_cwnd),
            ];
            for (name, value) in windows {
                if let Some(value) = value {
                    write!(out, ",\"{name}\":{value:.6}")?;
                }
            }
            let delays = [
                ("smoothed_rtt", state.smoothed_rtt),
                ("latest_rtt", sample.map(|sample| sample.end_to_end_rtt)),
                ("fabric_delay", sample.map(|sample| sample.fabric_rtt)),
                ("endpoint_delay", sample.map(|sample| sample.endpoint_delay)),
                ("target_delay", state.target_delay),
                ("pacing_delay", state.pacing_delay),
            ];
            for (name, value) in delays {
                if let Some(value) = value {
                    write!(out, ",\"{name}\":{:.6}", ms(value))?;
                }
            }
            write!(out, ",\"timeouts\":{}", counters.timeouts)
        });
    }

    /// Adds the event that the length of full packets has changed.
    pub fn mtu(&mut self, now: Time, before: u32, mtu: u32) {
        self.event(now, "mtu_updated", |out| write!(out, "\"old\":{before},\"new\":{mtu}"));
    }

    /// Adds the event that the connection has ended. `reason` must not need JSON escapes.
    pub fn closed(&mut self, now: Time, reason: &str) {
        self.event(now, "connection_closed", |out| write!(out, "\"reason\":\"{reason}\""));
    }
}

fn ms(span: Span) -> f64 {
    span.as_us_f64() / 1e3
}

fn packet_type(body: &Body) -> &'static str {
    match body {
        Body::Data(_) => "data",
        Body::Ack(_) => "ack",
        Body::Signal(_) => "signal",
        Body::Reject(_) => "reject",
        Body::Control(_) => "control",
        Body::Trimmed(_) => "trimmed",
        Body::Nack(_) => "nack",
    }
}

/// Writes the content of a packet as a frame of QUIC's events, with its own frame types.
fn frame(out: &mut Vec<u8>, body: &Body) -> io::Result<()> {
    match body {
        Body::Data(segment) => {
            let kind = match segment.kind {
                SegmentKind::Write { .. } => "write",
                SegmentKind::ReadRequest { .. } => "read_request",
                SegmentKind::ReadResponse => "read_response",
                SegmentKind::Message => "message",
                SegmentKind::CompareAndSwap { .. } => "compare_and_swap",
                SegmentKind::FetchAdd { .. } => "fetch_add",
                SegmentKind::Cancel => "cancel",
            };
            write!(
                out,
                "{{\"frame_type\":\"{kind}\",\"op\":{},\"offset\":{},\"length\":{},\"op_length\":{}}}",
                segment.op.get(),
                segment.offset,
                segment.length,
                segment.op_length
            )
        }
        Body::Ack(ack) => write!(
            out,
            "{{\"frame_type\":\"ack\",\"largest\":{},\"received\":{},\"echo\":{},\"remote_queuing\":{:.6},\
             \"hops\":{},\"marked\":{}}}",
            ack.largest.get(),
            ack.bitmap.count_ones(),
            ack.echo.get(),
            ms(ack.remote_queuing),
            ack.hops,
            ack.marked
        ),
        Body::Reject(reject) => {
            write!(
                out,
                "{{\"frame_type\":\"reject\",\"op\":{},\"reason\":\"{:?}\"}}",
                reject.op.get(),
                reject.reason
            )
        }
        Body::Nack(nack) => write!(
            out,
            "{{\"frame_type\":\"nack\",\"packet\":{},\"last_hop\":{}}}",
            nack.packet.get(),
            nack.last_hop
        ),
        Body::Signal(_) | Body::Control(_) | Body::Trimmed(_) => Ok(()),
    }
}

/// Returns an instant of the real-time clock in the format of RFC 3339, in UTC.
fn rfc_3339(unix_ns: u64) -> String {
    let (seconds, ms) = (unix_ns / 1_000_000_000, unix_ns / 1_000_000 % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dates are those of `date --utc --date=@SECONDS`.
    #[test]
    fn instants_are_written_as_by_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_709_251_199, "2024-02-29T23:59:59.007Z"),
            (1_735_689_599, "2024-12-31T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(rfc_3339(seconds * 1_000_000_000 + 7_000_000), text);
        }
    }
}
