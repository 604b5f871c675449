//! Connections.

use std::sync::Arc;
use std::time::Duration;

use apus_udp::{Connection as Link, Host, RegionKey, Request};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::errors::{Failure, caused_by, of_submit};
use super::host::Engines;
use super::memory::{bytes_to_fill, release_unused, to_fill, to_send};
use super::op::{Driver, Op, Part, Task, Value};
use super::{Detached, would_deadlock};

/// A source port as Python gets it.
type SourcePort = (u16, bool, [u64; 5]);

/// A connection to a peer.
#[pyclass(frozen, module = "apus._native")]
pub struct Connection {
    link: Detached<Link>,
    engines: Detached<Arc<Engines>>,
}

impl Connection {
    pub fn new(link: Link, engines: &Arc<Engines>) -> Self {
        Self { link: Detached::new(link), engines: Detached::new(Arc::clone(engines)) }
    }

    /// The connection itself.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns `true` if it is a connection of this host.
    pub fn is_of(&self, host: &Arc<Host>) -> bool {
        Arc::ptr_eq(&self.engines.host, host)
    }

    fn submit(
        &self,
        py: Python<'_>,
        request: Request,
        part: Part,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        release_unused(py);
        self.engines.check_process()?;
        if flow >= self.link.flows() {
            let flows = self.link.flows();
            let message = format!("flow={flow}: the connection has {flows} flows, from 0");
            return Err(PyValueError::new_err(message));
        }
        let request = match timeout.map(Duration::try_from_secs_f64) {
            None => request,
            Some(Ok(after)) => request.deadline(after),
            Some(Err(error)) => {
                return Err(PyValueError::new_err(format!("timeout={timeout:?}: {error}")));
            }
        };
        let submitted = py.detach(|| self.link.submit_to(flow, request));
        let op = submitted.map_err(|error| {
            let ended = matches!(error, apus_udp::SubmitError::Ended(apus_udp::End::EngineFailed));
            let cause = if ended { self.engines.raised(py) } else { None };
            caused_by(py, of_submit(error), cause)
        })?;
        self.op(Task::Op(op, part))
    }

    fn op(&self, task: Task) -> PyResult<Op> {
        Op::new(task, Driver::Connection(self.link.clone()), &self.engines)
    }
}

#[pymethods]
impl Connection {
    /// The peer's address.
    #[getter]
    fn peer(&self) -> String {
        self.link.peer().to_string()
    }

    /// The public key of its own that the peer has proved.
    #[getter]
    fn peer_key(&self) -> Option<String> {
        self.link.peer_key().map(|key| key.to_string())
    }

    /// The name of this key in the key file.
    #[getter]
    fn peer_name(&self) -> Option<&str> {
        self.link.peer_name()
    }

    /// Number of flows.
    #[getter]
    fn flows(&self) -> usize {
        self.link.flows()
    }

    /// How it ended; `None` if it has not.
    #[getter]
    fn ended(&self) -> Option<String> {
        self.link.ended().map(|end| end.to_string())
    }

    /// Maximum length in bytes of a message that the peer accepts.
    #[getter]
    fn max_message(&self) -> u64 {
        self.link.max_message()
    }

    /// Maximum number of outstanding ops per flow.
    #[getter]
    fn max_ops(&self) -> u32 {
        self.link.max_ops()
    }

    /// Why all packets leave by one source port, if they do, and the source ports: UDP port, whether packets leave by it, and numbers
    /// of packets sent, reported as good, as marked, and as lost, and of timeouts.
    fn source_ports(&self, py: Python<'_>) -> PyResult<(Option<&'static str>, Vec<SourcePort>)> {
        self.engines.check_process()?;
        if self.link.would_deadlock() {
            return Err(would_deadlock());
        }
        let paths = py.detach(|| self.link.paths());
        let paths = paths.map_err(|end| of_submit(apus_udp::SubmitError::Ended(end)))?;
        let ports = paths.ports.iter().map(|port| {
            let c = port.counters;
            (port.port, port.usable, [c.sent, c.good, c.marked, c.lost, c.timeouts])
        });
        Ok((paths.one_port.map(apus_udp::OnePort::name), ports.collect()))
    }

    /// Writes to a region of the peer.
    #[pyo3(signature = (region, address, data, *, flow=0, timeout=None))]
    fn write(
        &self,
        py: Python<'_>,
        region: u64,
        address: u64,
        data: &Bound<'_, PyAny>,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        let request = Request::write(RegionKey::new(region), address, to_send(data)?);
        self.submit(py, request, Part::None, flow, timeout)
    }

    /// Reads from a region of the peer.
    #[pyo3(signature = (region, address, length, *, flow=0, timeout=None))]
    fn read(
        &self,
        py: Python<'_>,
        region: u64,
        address: u64,
        length: usize,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        if length as u64 > Request::MAX_BYTES {
            return Err(of_submit(apus_udp::SubmitError::TooLong { limit: Request::MAX_BYTES }));
        }
        let request = Request::read_vec(RegionKey::new(region), address, bytes_to_fill(length)?);
        self.submit(py, request, Part::Bytes, flow, timeout)
    }

    /// Fills a buffer from a region of the peer.
    #[pyo3(signature = (region, address, target, *, flow=0, timeout=None))]
    fn read_into(
        &self,
        py: Python<'_>,
        region: u64,
        address: u64,
        target: &Bound<'_, PyAny>,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        let request = Request::read_into(RegionKey::new(region), address, to_fill(target)?);
        self.submit(py, request, Part::None, flow, timeout)
    }

    /// Sends a message to the peer's application.
    #[pyo3(signature = (data, *, flow=0, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        self.submit(py, Request::message(to_send(data)?), Part::None, flow, timeout)
    }

    /// Replaces a word of a region of the peer if it is `expected`.
    #[pyo3(signature = (region, address, expected, new, *, flow=0, timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "by name")]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        region: u64,
        address: u64,
        expected: u64,
        new: u64,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        let request = Request::compare_and_swap(RegionKey::new(region), address, expected, new);
        self.submit(py, request, Part::Word, flow, timeout)
    }

    /// Adds to a word of a region of the peer.
    #[pyo3(signature = (region, address, delta, *, flow=0, timeout=None))]
    fn fetch_add(
        &self,
        py: Python<'_>,
        region: u64,
        address: u64,
        delta: u64,
        flow: usize,
        timeout: Option<f64>,
    ) -> PyResult<Op> {
        let request = Request::fetch_add(RegionKey::new(region), address, delta);
        self.submit(py, request, Part::Word, flow, timeout)
    }

    /// Takes the next message.
    fn receive(&self) -> PyResult<Op> {
        let link = self.link.clone();
        self.op(Task::Wait(Box::pin(async move {
            let message = link.receive_async().await.map_err(Failure::Ended)?;
            Ok(Value::Message(message.bytes))
        })))
    }

    /// Closes the connection after its last op.
    fn close(&self) -> PyResult<Op> {
        let link = self.link.clone();
        self.op(Task::Wait(Box::pin(async move {
            link.close_async().await;
            Ok(Value::None)
        })))
    }
}
