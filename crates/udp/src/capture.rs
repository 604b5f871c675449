//! Captures of the datagrams of a host.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use apus_traces::pcapng::{Captured, Pcapng};

/// A capture file in the pcapng format. Clones write to the same file.
///
/// Every datagram is written at once, so that the file is complete even if the process is killed. This costs the engine a system
/// call per datagram: use captures for diagnosis only. Payloads are captured as on the wire: encrypted, except in the insecure
/// mode.
#[derive(Clone, Debug)]
pub struct Capture(Arc<Mutex<Pcapng<File>>>);

impl Capture {
    /// Creates the file, or replaces an existing one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = Pcapng::new(File::create(path)?, 0)?;
        file.interface("apus")?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Adds a datagram.
    pub(crate) fn write(&self, packet: &Captured<'_>) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(packet)
    }
}

/// Returns the nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
