//! Connections to peers by host name. The name is resolved at each attempt to connect.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use thiserror::Error;

use crate::connection::Connection;
use crate::error::ConnectError;
use crate::host::Host;

/// Resolves host names to addresses.
pub trait Resolve: Send + Sync {
    /// Returns the addresses of a host name, the preferred one first.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Resolver of the system, getaddrinfo(3), which orders addresses as specified in RFC 6724.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        (name, port).to_socket_addrs().map(Iterator::collect)
    }
}

/// Reason why a peer could not be connected by its host name.
#[derive(Debug, Error)]
pub enum DialError {
    /// The name could not be resolved.
    #[error("{name} cannot be looked up: {error}")]
    Lookup {
        /// The host name.
        name: String,
        /// Error of the resolver.
        error: io::Error,
    },
    /// The name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// No address could be connected. Each address has its own error.
    #[error("{}", all(.0))]
    Connect(Vec<(SocketAddr, ConnectError)>),
    /// The dialer has no usable connection, or another thread is connecting, and this thread would wait for itself: see
    /// [`Host::would_deadlock`].
    #[error("{}", ConnectError::WouldDeadlock)]
    WouldDeadlock,
}

fn all(errors: &[(SocketAddr, ConnectError)]) -> String {
    let texts: Vec<String> =
        errors.iter().map(|(address, error)| format!("{address}: {error}")).collect();
    texts.join("; ")
}

/// A peer, by host name and port, with the connection to the peer.
///
/// The first call of [`Dialer::connection`] opens the connection. After the connection has ended, the next call opens another
/// one. Each time the name is resolved again, so that a service that has moved is found.
pub struct Dialer {
    host: Arc<Host>,
    name: String,
    port: u16,
    /// Traffic class of each flow.
    classes: Vec<u8>,
    /// Name of the peer in the key ring.
    peer_name: Option<String>,
    resolver: Box<dyn Resolve>,
    current: Mutex<Option<Connection>>,
}

impl Dialer {
    /// Returns a dialer for one flow of traffic class 0 that uses the system's resolver. `name` may also be an IP address.
    #[must_use]
    pub fn new(host: Arc<Host>, name: &str, port: u16) -> Self {
        Self {
            host,
            name: name.to_owned(),
            port,
            classes: vec![0],
            peer_name: None,
            resolver: Box::new(SystemResolver),
            current: Mutex::new(None),
        }
    }

    /// Sets the traffic class of each flow; see [`Host::connect_with`].
    #[must_use]
    pub fn classes(mut self, classes: &[u8]) -> Self {
        self.classes = classes.to_vec();
        self
    }

    /// Sets the name of the peer in the key ring; see [`Host::connect_to`].
    #[must_use]
    pub fn peer_name(mut self, name: &str) -> Self {
        self.peer_name = Some(name.to_owned());
        self
    }

    /// Sets the resolver.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Box::new(resolver);
        self
    }

    /// Returns the connection, or opens one if there is none.
    ///
    /// A connection is not returned if it has ended, is closing, or its peer drains ([`Connection::is_peer_draining`]). To open
    /// one, the call resolves the name and connects to its addresses in turn until one of them answers. An address without an
    /// answer takes `session.handshake_timeout`. Other callers wait during that time. The call makes one attempt; wait before you
    /// repeat it.
    ///
    /// # Errors
    /// If the name cannot be resolved, no address can be connected, or this thread would wait for itself.
    pub fn connection(&self) -> Result<Connection, DialError> {
        let mut current = self.lock()?;
        let usable =
            |c: &&Connection| c.ended().is_none() && !c.is_peer_draining() && !c.is_closing();
        if let Some(connection) = current.as_ref().filter(usable) {
            return Ok(connection.clone());
        }
        if self.host.would_deadlock() {
            return Err(DialError::WouldDeadlock);
        }
        // Drop the old connection first, because an address may have at most one connection.
        *current = None;
        let connection = self.dial()?;
        *current = Some(connection.clone());
        Ok(connection)
    }

    /// Locks the connection, and waits while another caller connects. Does not wait if this thread runs or blocks an
    /// engine that the other caller may wait for.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Connection>>, DialError> {
        if !self.host.would_deadlock() {
            return Ok(self.current.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.current.try_lock() {
            Ok(current) => Ok(current),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(DialError::WouldDeadlock),
        }
    }

    fn dial(&self) -> Result<Connection, DialError> {
        let addresses = self
            .resolver
            .resolve(&self.name, self.port)
            .map_err(|error| DialError::Lookup { name: self.name.clone(), error })?;
        let mut errors = Vec::new();
        for address in addresses {
            let connected = match &self.peer_name {
                None => self.host.connect_with(address, &self.classes, None),
                Some(name) => self.host.connect_to(address, name, &self.classes),
            };
            match connected {
                Ok(connection) => return Ok(connection),
                Err(error) => errors.push((address, error)),
            }
        }
        if errors.is_empty() {
            return Err(DialError::NoAddress(self.name.clone()));
        }
        Err(DialError::Connect(errors))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port, .. } = self;
        f.debug_struct("Dialer").field("name", name).field("port", port).finish_non_exhaustive()
    }
}
