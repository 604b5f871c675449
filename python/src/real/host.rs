//! Hosts.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use apus::api;
use apus_algorithms::AlgorithmConfig;
use apus_sim::Fault;
use apus_udp::session::{Cipher, KeyRing};
use apus_udp::{AcceptHook, Config, Mode, SpreadSettings, keyfile};
use apus_units::{Rate, Span};
use pyo3::prelude::*;

use super::errors::{Failure, of_start, of_system};
use super::memory::release_unused;
use super::op::{Driver, Op, Task, Value};
use super::region::Region;
use super::{Detached, TICK, deadline, would_deadlock};
use crate::algorithm;
use crate::errors::of_input;

/// A host, and the algorithm of its flows.
pub struct Engines {
    pub host: Arc<apus_udp::Host>,
    algorithm: AlgorithmConfig,
}

impl Engines {
    /// Returns the exception of a Python algorithm that ended an engine.
    pub fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        algorithm::factory(&self.algorithm).and_then(|factory| factory.raised(py))
    }
}

/// Settings of a host; `None` stands for the default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct HostOptions {
    mode: String,
    engines: u32,
    algorithm: Option<String>,
    profile: Option<String>,
    parameters: Vec<(String, String)>,
    behind_switch: bool,
    line_rate: Option<String>,
    max_mtu: Option<u32>,
    max_flows: Option<u32>,
    max_ops: Option<u32>,
    max_message: Option<u64>,
    max_queued_bytes: Option<u64>,
    max_queued_messages: Option<u32>,
    handshake_timeout: Option<String>,
    idle_timeout: Option<String>,
    cipher: Option<String>,
    accept: Option<Py<PyAny>>,
    accept_unlisted: bool,
    max_sessions: Option<u32>,
    max_pending: Option<u32>,
    quota_sessions: Option<u32>,
    quota_pending: Option<u32>,
    quota_queued_bytes: Option<u64>,
    quota_ops: Option<u64>,
    handshake_rate: Option<u32>,
    balancer: Option<String>,
    ports: Option<u16>,
    source_port: Option<u16>,
    accept_ports: Option<u16>,
    range: Option<u32>,
    ack_path: Option<String>,
    loss: Option<String>,
    loss_delay: Option<String>,
}

impl HostOptions {
    /// Returns the settings of a host at these addresses.
    fn config(self, listen: Vec<SocketAddr>, keys: KeyRing) -> PyResult<Config> {
        fn quantity<T: FromStr<Err: Display>>(
            name: &str,
            text: Option<String>,
        ) -> PyResult<Option<T>> {
            let Some(text) = text else { return Ok(None) };
            let read = text.parse().map_err(|error| of_input(&format!("{name}={text:?}: {error}")));
            read.map(Some)
        }
        let mut config = Config::new(listen[0], keys).map_err(|error| of_start(&error))?;
        config.listen = listen;
        config.mode = match self.mode.as_str() {
            "shared" => Mode::Shared,
            "spinning" => Mode::Spinning,
            other => {
                let message = format!("mode must be \"shared\" or \"spinning\", not {other:?}");
                return Err(of_input(&message));
            }
        };
        config.engines = self.engines;
        config.behind_switch = self.behind_switch;
        macro_rules! set {
            ($($place:expr => $value:expr;)+) => {
                $(if let Some(value) = $value { $place = value; })+
            };
        }
        set! {
            config.line_rate => quantity::<Rate>("line_rate", self.line_rate)?;
            config.max_mtu => self.max_mtu;
            config.max_flows => self.max_flows;
            config.max_ops => self.max_ops;
            config.max_message => self.max_message;
            config.max_queued_bytes => self.max_queued_bytes;
            config.max_queued_messages => self.max_queued_messages;
            config.session.handshake_timeout =>
                quantity::<Span>("handshake_timeout", self.handshake_timeout)?;
            config.session.idle_timeout => quantity::<Span>("idle_timeout", self.idle_timeout)?;
        }
        if let Some(cipher) = quantity::<Cipher>("cipher", self.cipher)? {
            if config.keys.is_insecure() {
                let message = "cipher has no effect without keys; remove it, or give a key file";
                return Err(of_input(message));
            }
            config.session.cipher = cipher;
            config.session.accept_ciphers = vec![cipher];
        }
        if self.accept_unlisted && !config.keys.is_identified() {
            let message =
                "accept_unlisted has no effect: the key file has no key pair of this host";
            return Err(of_input(message));
        }
        config.session.accept_unlisted = self.accept_unlisted;
        if let Some(sessions) = self.max_sessions {
            config.session.max_sessions = sessions;
            config.session.max_pending = config.session.max_pending.min(sessions.max(1));
        }
        config.session.max_pending = self.max_pending.unwrap_or(config.session.max_pending);
        config.session.quota_sessions = self.quota_sessions;
        config.session.quota_pending = self.quota_pending;
        config.quota_queued_bytes = self.quota_queued_bytes;
        config.quota_ops = self.quota_ops;
        config.session.handshake_rate =
            self.handshake_rate.unwrap_or(config.session.handshake_rate);
        config.accept = self.accept.map(accept_hook);
        let given: Vec<_> = self.parameters.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        config.registry = api::registry();
        match (&self.algorithm, self.profile) {
            (Some(name), Some(profile)) => {
                let built = config.registry.build(name, Some(&profile), &given);
                config.algorithm = built.map_err(|error| of_input(&error.to_string()))?;
            }
            (name, _) => {
                let set = config.set_algorithm(name.as_deref(), &given);
                set.map_err(|error| of_start(&error))?;
            }
        }
        let ports = SpreadSettings {
            balancer: self.balancer,
            ports: self.ports,
            source_port: self.source_port,
            accept_ports: self.accept_ports,
            range: self.range,
            ack_path: quantity("ack_path", self.ack_path)?,
            loss: self.loss,
            loss_delay: quantity("loss_delay", self.loss_delay)?,
        };
        config.set_spreading(&ports).map_err(|error| of_start(&error))?;
        Ok(config)
    }
}

/// Returns a hook that calls a Python function with the address, key and name of a peer. If the function returns a
/// text, it is the reason of a refusal; `None` accepts. An exception refuses too, and is reported as the interpreter
/// reports unhandled exceptions.
fn accept_hook(decide: Py<PyAny>) -> AcceptHook {
    let decide = Detached::new(decide);
    AcceptHook::new(move |incoming| {
        let asked = Python::try_attach(|py| {
            let key = incoming.peer_key.map(|key| key.to_string());
            let peer = (incoming.from.to_string(), key, incoming.peer_name);
            let answer = decide.call1(py, peer).and_then(|answer| answer.extract(py));
            answer.unwrap_or_else(|error: PyErr| {
                error.write_unraisable(py, None);
                Some("its accept hook failed".to_owned())
            })
        });
        // Without an interpreter the process is ending.
        asked.unwrap_or_else(|| Some("the host ends".to_owned())).map_or(Ok(()), Err)
    })
}

/// Parses an address.
fn address(py: Python<'_>, text: &str) -> PyResult<SocketAddr> {
    let found = py.detach(|| text.to_socket_addrs().map(|mut found| found.next()));
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(of_input(&format!("{text:?} has no address"))),
        Err(error) => Err(of_input(&format!(
            "{text:?} is no address: {error}; use one like \"127.0.0.1:48700\" or \"[::]:48700\""
        ))),
    }
}

/// Creates a key file that the hosts of a group share, or one with a key pair of a host; returns the line that its peers need.
#[pyfunction]
#[pyo3(signature = (path, name=None, group=None))]
pub fn make_key(
    path: PathBuf,
    name: Option<&str>,
    group: Option<PathBuf>,
) -> PyResult<Option<String>> {
    let made = match (name, group) {
        (None, None) => keyfile::create(&path).map(|_| None),
        (None, Some(_)) => {
            return Err(of_input("group: has no effect without `name`, the name of the host"));
        }
        (Some(name), group) => keyfile::create_pair(&path, name, group.as_deref()).map(Some),
    };
    let public = made.map_err(|error| of_system(&error))?;
    Ok(public.map(|public| public.to_line().to_string()))
}

/// A host of the transport in this process.
#[pyclass(frozen, module = "apus._native")]
pub struct Host {
    engines: Detached<Arc<Engines>>,
}

impl Host {
    fn op(
        &self,
        wait: impl Future<Output = Result<Value, Failure>> + Send + 'static,
    ) -> PyResult<Op> {
        Op::new(Task::Wait(Box::pin(wait)), Driver::Host, &self.engines)
    }
}

#[pymethods]
impl Host {
    /// Opens the sockets and starts the engines. Without a key file nothing is encrypted.
    #[new]
    fn new(
        py: Python<'_>,
        addresses: Vec<String>,
        key_file: Option<PathBuf>,
        options: HostOptions,
    ) -> PyResult<Self> {
        let keys = match key_file {
            None => KeyRing::insecure(),
            Some(path) => keyfile::read(&path).map_err(|error| of_input(&error.to_string()))?,
        };
        let listen: Vec<_> =
            addresses.iter().map(|text| address(py, text)).collect::<PyResult<_>>()?;
        if listen.is_empty() {
            return Err(of_input("a host needs at least one address"));
        }
        let config = options.config(listen, keys)?;
        let algorithm = config.algorithm.clone();
        let started = py.detach(|| Fault::caught(|| apus_udp::Host::start(config)));
        let host = match started {
            Ok(host) => Arc::new(host.map_err(|error| of_start(&error))?),
            // Creating the host called the Python algorithm for the first time.
            Err(fault) => {
                let raised = algorithm::factory(&algorithm).and_then(|factory| factory.raised(py));
                return Err(raised.unwrap_or_else(|| of_input(&fault.message)));
            }
        };
        Ok(Self { engines: Detached::new(Arc::new(Engines { host, algorithm })) })
    }

    /// The addresses of its sockets.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.engines.host.local_addrs().iter().map(ToString::to_string).collect()
    }

    /// Connects to a peer by a flow of each traffic class.
    fn connect(
        &self,
        py: Python<'_>,
        peer: &str,
        name: Option<String>,
        classes: Vec<u8>,
    ) -> PyResult<Op> {
        let (peer, host) = (address(py, peer)?, Arc::clone(&self.engines.host));
        self.op(async move {
            let opened = match name {
                None => host.connect_async(peer, &classes, None).await,
                Some(name) => host.connect_to_async(peer, &name, &classes).await,
            };
            opened.map(Value::Connection).map_err(Failure::Connect)
        })
    }

    /// Takes the next connection that a peer opens.
    fn accept(&self) -> PyResult<Op> {
        let host = Arc::clone(&self.engines.host);
        self.op(async move {
            host.accept_async().await.map(Value::Connection).map_err(Failure::Connect)
        })
    }

    /// Registers memory for peers.
    fn register(
        &self,
        memory: &Bound<'_, PyAny>,
        access: &str,
        peers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Region> {
        self.engines.check_process()?;
        Region::register(&self.engines.host, memory, access, peers)
    }

    /// Replaces the keys by those of a file.
    fn set_keys(&self, py: Python<'_>, key_file: PathBuf) -> PyResult<()> {
        self.engines.check_process()?;
        let keys = keyfile::read(&key_file).map_err(|error| of_input(&error.to_string()))?;
        py.detach(|| self.engines.host.set_keys(&keys)).map_err(|error| of_start(&error))
    }

    /// Ends every connection in order, at most for `timeout` seconds. Returns whether all have ended.
    fn drain(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let deadline = deadline(Some(timeout))?;
        self.engines.check_process()?;
        let host = &self.engines.host;
        if host.would_deadlock() {
            return Err(would_deadlock());
        }
        let mut drained = pin!(py.detach(|| host.drain_async()));
        loop {
            let tick = Instant::now() + TICK;
            let until = deadline.map_or(tick, |at| at.min(tick));
            let left = until.saturating_duration_since(Instant::now());
            if let Some(all) = py.detach(|| host.block_on(drained.as_mut(), Some(left))) {
                return Ok(all);
            }
            py.check_signals()?;
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Ok(false);
            }
        }
    }

    /// Ends every connection, unless they are those of another process.
    fn close(&self, py: Python<'_>) {
        if self.engines.is_of_parent() {
            return;
        }
        py.detach(|| self.engines.host.stop());
        release_unused(py);
    }
}
