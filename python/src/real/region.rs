//! Regions: memory that peers read and write.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use apus_udp::session::PeerKey;
use apus_udp::{Access, Grant, Host};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::connection::Connection;
use super::memory::{OfRegion, Shared, release_unused, to_send};
use super::{Detached, errors};

/// Time that outstanding answers to peers' reads have to end before they are cancelled. deviation: no source; same
/// value as in the C interface: thousands of round trips of a datacenter, and short enough for a waiting caller.
const GRACE: Duration = Duration::from_secs(1);
/// Time between two checks whether a region is free.
const CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// Memory that peers read and write.
#[pyclass(frozen, module = "apus._native")]
pub struct Region {
    region: Detached<apus_udp::Region>,
    memory: Arc<Shared>,
    host: Detached<Arc<Host>>,
    /// Declared last, so that it is dropped after the other fields.
    _release: Release,
}

/// Releases the buffer of a dropped region.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        Python::try_attach(release_unused);
    }
}

impl Region {
    /// Registers memory: a number of bytes, or an object with a writable buffer.
    pub fn register(
        host: &Arc<Host>,
        memory: &Bound<'_, PyAny>,
        access: &str,
        peers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let access = Access::from_name(access).ok_or_else(|| {
            PyValueError::new_err(format!(
                "access must be \"read\", \"write\" or \"atomic\", several of them as in \"read-write\", or \
                 \"all\", not {access:?}"
            ))
        })?;
        let memory = match memory.extract::<usize>() {
            Ok(length) => Shared::zeros(length)?,
            Err(error) if error.is_instance_of::<PyOverflowError>(memory.py()) => {
                let message =
                    format!("memory={memory}: a number of bytes must be from 0 to 2^63 - 1");
                return Err(PyValueError::new_err(message));
            }
            Err(_) => Shared::of(memory, true)?,
        };
        let memory = Arc::new(memory);
        let own = OfRegion(Arc::clone(&memory));
        let registered = match peers {
            None => host.register(own, access),
            Some(peers) => host.register_for(own, access, grant(peers, host)?),
        };
        let region = Detached::new(registered.map_err(|error| errors::of_system(&error))?);
        Ok(Self { region, memory, host: Detached::new(Arc::clone(host)), _release: Release })
    }

    /// Returns the region, whose locks belong to this process.
    ///
    /// # Errors
    /// If the region belongs to another process, of which this one is a fork.
    fn region(&self) -> PyResult<&apus_udp::Region> {
        self.host.check_process()?;
        Ok(&self.region)
    }

    fn range(&self, address: usize, length: usize) -> PyResult<Range<usize>> {
        let have = self.memory.len();
        match address.checked_add(length) {
            Some(end) if end <= have => Ok(address..end),
            _ => {
                let message =
                    format!("{length} bytes from address {address}: the region has {have} bytes");
                Err(PyIndexError::new_err(message))
            }
        }
    }
}

/// Returns the peers given by a connection of this host or by a list of public keys.
fn grant(peers: &Bound<'_, PyAny>, host: &Arc<Host>) -> PyResult<Grant> {
    if let Ok(connection) = peers.cast::<Connection>() {
        if !connection.get().is_of(host) {
            let what =
                "peers is a connection of another host than the region's; give one of its host";
            return Err(PyValueError::new_err(what));
        }
        return Ok(Grant::connection(connection.get().link()));
    }
    let keys: Vec<String> = peers.extract()?;
    let key = |text: &String| text.parse::<PeerKey>().map_err(PyValueError::new_err);
    Ok(Grant::keys(keys.iter().map(key).collect::<PyResult<Vec<_>>>()?))
}

#[pymethods]
impl Region {
    /// Sets the peers that may use the region.
    fn set_peers(&self, py: Python<'_>, peers: &Bound<'_, PyAny>) -> PyResult<()> {
        let (region, grant) = (self.region()?, grant(peers, &self.host)?);
        let set = py.detach(|| {
            let set = region.set_grant(grant);
            self.host.look();
            set
        });
        if set {
            return Ok(());
        }
        let what = "the region was registered for all peers; register it with `peers`";
        Err(PyValueError::new_err(what))
    }

    /// The key by which peers name the region.
    #[getter]
    fn key(&self) -> u64 {
        self.region.key().get()
    }

    fn __len__(&self) -> usize {
        self.memory.len()
    }

    /// Returns a copy of bytes, at once.
    fn read<'py>(
        &self,
        py: Python<'py>,
        address: usize,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (region, range) = (self.region()?, self.range(address, length)?);
        let copy = py.detach(|| region.read(|bytes| bytes[range].to_vec()));
        Ok(PyBytes::new(py, &copy))
    }

    /// Stores bytes, at once.
    fn write(&self, py: Python<'_>, address: usize, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let region = self.region()?;
        let data = to_send(data)?;
        let range = self.range(address, data.len())?;
        py.detach(|| region.write(|bytes| bytes[range].copy_from_slice(&data)));
        drop(data);
        release_unused(py);
        Ok(())
    }

    /// Returns the word at an address.
    fn load(&self, py: Python<'_>, address: u64) -> PyResult<u64> {
        let region = self.region()?;
        py.detach(|| region.load(address)).map_err(|error| errors::of_word(&error))
    }

    /// Stores a word.
    fn store(&self, py: Python<'_>, address: u64, word: u64) -> PyResult<()> {
        let region = self.region()?;
        py.detach(|| region.store(address, word)).map_err(|error| errors::of_word(&error))
    }

    /// Replaces the word at an address if it is `expected`; returns the word before.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        address: u64,
        expected: u64,
        new: u64,
    ) -> PyResult<u64> {
        let region = self.region()?;
        py.detach(|| region.compare_and_swap(address, expected, new))
            .map_err(|error| errors::of_word(&error))
    }

    /// Adds to the word at an address; returns the word before.
    fn fetch_add(&self, py: Python<'_>, address: u64, delta: u64) -> PyResult<u64> {
        let region = self.region()?;
        py.detach(|| region.fetch_add(address, delta)).map_err(|error| errors::of_word(&error))
    }

    /// Withdraws the region, and waits until no engine uses its memory. A thread that runs an engine does not wait: the answers to
    /// peers' reads are given up at once.
    fn close(&self, py: Python<'_>) {
        if self.host.is_of_parent() {
            return;
        }
        py.detach(|| {
            let from = Instant::now();
            self.region.withdraw();
            if self.host.would_deadlock() {
                self.region.revoke();
                self.host.look();
                return;
            }
            while !self.region.is_free() {
                if from.elapsed() >= GRACE {
                    self.region.revoke();
                }
                self.host.look();
                sleep(CHECK_INTERVAL);
            }
        });
        release_unused(py);
    }

    #[expect(unsafe_code, reason = "the buffer protocol")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = Arc::clone(&slf.get().memory);
        // SAFETY: the interpreter calls this function, and the region keeps its memory.
        unsafe { memory.fill_view(slf.into_any(), view, flags) }
    }
}
