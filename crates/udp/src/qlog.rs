//! Records of connections in the format qlog ([`apus_traces::qlog`]): the files, and when they are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use apus_cc::Snapshot;
use apus_traces::qlog::{Clock, Events, PacketPath, VantagePoint, header};
use apus_transport::{FlowCounters, RttSample};
use apus_units::Time;
use apus_wire::Header;

use crate::capture::unix_ns;
use crate::error::End;

pub use apus_traces::qlog::EVENT_SCHEMA;

/// Default of [`Qlog::max_bytes`]. deviation: no source; about 60,000 packets.
const MAX_BYTES: u64 = 16 << 20;
/// Default of [`Qlog::max_connections`]. deviation: no source; 1 GiB in total.
const MAX_CONNECTIONS: u32 = 64;
/// Number of bytes that are collected before they are written to the file. deviation: no source; several hundred events
/// share a system call.
const BUFFER_BYTES: usize = 64 << 10;

/// A directory for records of connections. Clones share the directory and its limits.
///
/// The engine itself formats and writes the records, which slows every packet of a recorded connection: use records for diagnosis
/// only.
#[derive(Clone, Debug)]
pub struct Qlog {
    dir: PathBuf,
    max_bytes: u64,
    max_connections: u32,
    /// Number of connections recorded so far.
    recorded: Arc<AtomicU32>,
}

impl Qlog {
    /// Returns a handle of the directory `dir`, which is created if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn new(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            max_bytes: MAX_BYTES,
            max_connections: MAX_CONNECTIONS,
            recorded: Arc::default(),
        })
    }

    /// Sets the maximum size in bytes of the record of a connection. The default is 16 MiB; values below 256 KiB are raised to
    /// 256 KiB.
    ///
    /// A record has two files, so that the newest events are kept: before `NAME.sqlog` exceeds half of the maximum size, it
    /// replaces `NAME.previous.sqlog`.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes.max(4 * BUFFER_BYTES as u64);
        self
    }

    /// Sets the maximum number of connections that are recorded, 64 by default. Further connections are not recorded.
    #[must_use]
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections;
        self
    }

    /// Begins the record of a connection. Returns `None` if the maximum number of connections is reached.
    pub(crate) fn begin(&self, now: Time, connection: &Recorded) -> io::Result<Option<Record>> {
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        if number >= self.max_connections {
            self.recorded.fetch_sub(1, Ordering::Relaxed);
            return Ok(None);
        }
        let peer = connection.peer;
        let peer = format!("{}-{}", peer.ip().to_string().replace(':', "_"), peer.port());
        let name = format!("{}-{number}-{peer}", unix_ns() / 1_000_000);
        let files = Files::new(&self.dir, &name, self.max_bytes / 2);
        let record = files.and_then(|files| Record::begin(now, connection, files));
        if record.is_err() {
            self.recorded.fetch_sub(1, Ordering::Relaxed);
        }
        record.map(Some)
    }
}

/// A connection that is to be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) host: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Whether the peer opened the connection.
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

    /// Writes `records`. If the current file would become too long, first begins another file with `header`.
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
    /// First record of each file.
    header: Vec<u8>,
    /// Events, with the text that has not been written yet.
    events: Events,
    /// Whether a write has failed, which ends the record.
    failed: bool,
}

impl Record {
    fn begin(now: Time, connection: &Recorded, files: Files) -> io::Result<Self> {
        let &Recorded { host, peer, by_peer, flows, algorithm } = connection;
        let vantage_point = if by_peer { VantagePoint::Server } else { VantagePoint::Client };
        // No text here needs escaping: addresses, and names of algorithms, which are identifiers.
        let title = format!("{host} {peer}");
        let header = header(&title, Clock::Monotonic(unix_ns()), vantage_point);
        let mut events = Events::new(now, flows);
        events.started(now, [host, peer], algorithm);
        let mut record = Self { files, header, events, failed: false };
        record.flush()?;
        Ok(record)
    }

    /// Adds events.
    fn add(&mut self, add: impl FnOnce(&mut Events)) {
        if self.failed {
            return;
        }
        add(&mut self.events);
        if self.events.text().len() >= BUFFER_BYTES - 1024 && self.flush().is_err() {
            self.failed = true;
        }
    }

    /// Writes the collected text to the file.
    fn flush(&mut self) -> io::Result<()> {
        let written = self.files.write(&self.header, self.events.text());
        self.events.clear();
        written
    }

    /// Records that a packet of `length` bytes was sealed or received.
    pub(crate) fn packet(
        &mut self,
        now: Time,
        sent: bool,
        flow: usize,
        header: &Header,
        length: usize,
        path: Option<PacketPath>,
    ) {
        self.add(|events| events.packet(now, sent, flow, header, length, path));
    }

    /// Records the state of a flow after an acknowledgement with this sample, or after a timeout.
    pub(crate) fn flow(
        &mut self,
        now: Time,
        flow: usize,
        state: &Snapshot,
        counters: &FlowCounters,
        sample: Option<&RttSample>,
    ) {
        self.add(|events| events.flow(now, flow, state, counters, sample));
    }

    /// Records a new length of full packets.
    pub(crate) fn mtu(&mut self, now: Time, before: u32, mtu: u32) {
        self.add(|events| events.mtu(now, before, mtu));
    }

    /// Records the end of the connection, and ends the record.
    pub(crate) fn end(mut self, now: Time, end: End) {
        self.add(|events| events.closed(now, &end.to_string()));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.failed {
            // This fails if, for example, the application has removed the directory.
            let _ = self.flush();
        }
    }
}
