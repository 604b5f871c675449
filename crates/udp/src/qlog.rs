//! Records of connections in the format qlog.
//!
//! The files follow draft-ietf-quic-qlog-main-schema-12: a sequential trace (`QlogFileSeq`) as JSON text sequences (RFC 7464).
//! The events have a schema of their own, [`EVENT_SCHEMA`], since the packets are not QUIC's; where QUIC's events fit, names and
//! fields are theirs (draft-ietf-quic-qlog-quic-events). docs/operations.md lists the events. No record contains payload
//! or keys.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use apus_cc::Snapshot;
use apus_transport::{FlowCounters, RttSample};
use apus_units::{Span, Time};
use apus_wire::{Body, Header, SegmentKind};

use crate::capture::unix_ns;
use crate::error::End;

/// The URI of the events' schema.
pub const EVENT_SCHEMA: &str = "urn:apus:qlog:events:apus-1";

/// Default of [`Qlog::max_bytes`]. deviation: no source; about 60,000 packets.
const MAX_BYTES: u64 = 16 << 20;
/// Default of [`Qlog::max_connections`]. deviation: no source; together 1 GiB.
const MAX_CONNECTIONS: u32 = 64;
/// Bytes that are collected before they are written to the file. deviation: no source; some hundred events share a system
/// call.
const BUFFER_BYTES: usize = 64 << 10;

/// A directory for records of connections. Clones share it and its limits.
///
/// The engine itself formats and writes the records, which slows every packet of a recorded connection: for diagnosis.
#[derive(Clone, Debug)]
pub struct Qlog {
    dir: PathBuf,
    max_bytes: u64,
    max_connections: u32,
    /// Number of connections that were recorded so far.
    recorded: Arc<AtomicU32>,
}

impl Qlog {
    /// Returns records in `dir`, which is created if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            max_bytes: MAX_BYTES,
            max_connections: MAX_CONNECTIONS,
            recorded: Arc::default(),
        })
    }

    /// Sets the maximum size of the record of a connection, 16 MiB by default, at least 256 KiB. A record has two files: when
    /// `NAME.sqlog` has half of this size, it replaces `NAME.previous.sqlog`, so that the newest events stay.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes.max(4 * BUFFER_BYTES as u64);
        self
    }

    /// Sets the maximum number of connections that are recorded, 64 by default. Further ones are not.
    #[must_use]
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections;
        self
    }

    /// Begins the record of a connection; `None` if there are as many as allowed.
    pub(crate) fn begin(&self, now: Time, connection: &Recorded) -> io::Result<Option<Record>> {
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        if number >= self.max_connections {
            self.recorded.fetch_sub(1, Ordering::Relaxed);
            return Ok(None);
        }
        let peer = connection.peer;
        let peer = format!("{}-{}", peer.ip().to_string().replace(':', "_"), peer.port());
        let name = format!("{}-{number}-{peer}", unix_ns() / 1_000_000);
        let files = Files::new(&self.dir, &name, self.max_bytes / 2)?;
        Record::begin(now, connection, files).map(Some)
    }
}

/// A connection that is to be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) host: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Whether the peer opened it.
    pub(crate) by_peer: bool,
    pub(crate) flows: usize,
    pub(crate) algorithm: &'static str,
}

/// The files of a record.
#[derive(Debug)]
struct Files {
    current: PathBuf,
    previous: PathBuf,
    file: File,
    /// Maximum number of bytes of a file.
    limit: u64,
    /// Bytes in the current file.
    written: u64,
}

impl Files {
    fn new(dir: &Path, name: &str, limit: u64) -> io::Result<Self> {
        let current = dir.join(format!("{name}.sqlog"));
        let previous = dir.join(format!("{name}.previous.sqlog"));
        let file = OpenOptions::new().write(true).create_new(true).open(&current)?;
        Ok(Self { current, previous, file, limit, written: 0 })
    }

    /// Writes `records`. Begins another file by `header` if this one would become too long.
    fn write(&mut self, header: &[u8], records: &[u8]) -> io::Result<()> {
        if self.written > 0 && self.written + records.len() as u64 > self.limit {
            fs::rename(&self.current, &self.previous)?;
            self.file = File::create(&self.current)?;
            self.written = 0;
        }
        if self.written == 0 {
            self.file.write_all(header)?;
            self.written = header.len() as u64;
        }
        self.file.write_all(records)?;
        self.written += records.len() as u64;
        Ok(())
    }
}

/// The record of a connection.
#[derive(Debug)]
pub(crate) struct Record {
    files: Files,
    /// The first record of each file.
    header: Vec<u8>,
    /// Records that are not written yet.
    buffer: Vec<u8>,
    from: Time,
    /// Counters of each flow at its last event.
    counters: Vec<FlowCounters>,
    /// Whether the files could not be written, which ends the record.
    failed: bool,
}

/// Begins and ends a text of a JSON text sequence (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;
const LINE_FEED: u8 = b'\n';

impl Record {
    fn begin(now: Time, connection: &Recorded, files: Files) -> io::Result<Self> {
        let &Recorded { host, peer, by_peer, flows, algorithm } = connection;
        let vantage_point = if by_peer { "server" } else { "client" };
        let mut header = vec![RECORD_SEPARATOR];
        // Nothing here needs escapes: addresses, and names of algorithms, which are identifiers.
        write!(
            header,
            "{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\"title\":\"apus\",\
             \"trace\":{{\"title\":\"{host} {peer}\",\"common_fields\":{{\"time_format\":\"relative_to_epoch\",\
             \"reference_time\":{{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\",\"wall_clock_time\":\"{}\"}}}},\
             \"vantage_point\":{{\"type\":\"{vantage_point}\"}},\"event_schemas\":[\"{EVENT_SCHEMA}\"]}}}}",
            rfc_3339(unix_ns())
        )?;
        header.push(LINE_FEED);
        let counters = vec![FlowCounters::default(); flows];
        let mut record = Self {
            files,
            header,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            from: now,
            counters,
            failed: false,
        };
        record.event(now, "connection_started", |out| {
            write!(
                out,
                "\"local\":{{\"ip\":\"{}\",\"port\":{}}},\"remote\":{{\"ip\":\"{}\",\"port\":{}}},\
                 \"flows\":{flows},\"algorithm\":\"{algorithm}\"",
                host.ip(),
                host.port(),
                peer.ip(),
                peer.port()
            )
        });
        record.flush()?;
        Ok(record)
    }

    /// Adds an event, whose data `members` writes.
    fn event(
        &mut self,
        now: Time,
        name: &str,
        members: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) {
        if self.failed {
            return;
        }
        let out = &mut self.buffer;
        out.push(RECORD_SEPARATOR);
        let ms = now.since(self.from).as_us_f64() / 1e3;
        // Writing to a vector cannot fail.
        let _ = write!(out, "{{\"time\":{ms:.6},\"name\":\"apus:{name}\",\"data\":{{");
        let _ = members(out);
        out.extend_from_slice(b"}}\n");
        if self.buffer.len() >= BUFFER_BYTES - 1024 && self.flush().is_err() {
            self.failed = true;
        }
    }

    /// Writes what is collected to the file.
    fn flush(&mut self) -> io::Result<()> {
        let written = self.files.write(&self.header, &self.buffer);
        self.buffer.clear();
        written
    }

    /// A packet of `length` bytes was sealed, or received.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        sent: bool,
        flow: usize,
        header: &Header,
        length: usize,
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
            write!(out, "]")
        });
    }

    /// The state of a flow has changed, by an acknowledgement with this sample or by a timeout.
    pub(crate) fn flow(
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

    /// The length of full packets has changed.
    pub(crate) fn mtu(&mut self, now: Time, before: u32, mtu: u32) {
        self.event(now, "mtu_updated", |out| write!(out, "\"old\":{before},\"new\":{mtu}"));
    }

    /// The connection has ended, which ends the record.
    pub(crate) fn end(mut self, now: Time, end: End) {
        self.event(now, "connection_closed", |out| write!(out, "\"reason\":\"{end}\""));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.failed {
            // The application may have removed the directory.
            let _ = self.flush();
        }
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
    }
}

/// Writes the content of a packet as a frame of QUIC's events, with types of its own.
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
        Body::Signal(_) | Body::Control(_) => Ok(()),
    }
}

/// Returns an instant of the real-time clock as RFC 3339 writes it, in UTC.
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
