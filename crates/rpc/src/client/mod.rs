//! The client: connects, resolves methods, and calls them.

mod call;
mod handshake;
mod table;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use apus_udp::session::KeyId;
use apus_udp::{Connection, End, Host};

use crate::envelope::{CallId, Header, VERSION};
use crate::error::{ConnectError, UnknownMethod};
use crate::keeper::{Deadlines, Keeper, Stops};
use crate::metrics::ClientMetrics;
use crate::outgoing::Outgoing;

pub use call::{Call, CallBuilder, CallFuture, Response};
use handshake::{Core, Receiver, Welcome};
pub(crate) use table::Answer;
use table::Table;

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Maximum number of outstanding calls; the server may allow fewer. Further calls fail with
    /// [`CallError::Busy`](crate::CallError::Busy). deviation: no source; a quarter of the transport's default `max_ops`, so that
    /// requests, cancellations and positions of bodies have room.
    pub max_calls: u16,
    /// Traffic class of each flow of the connection. Calls use the first flow, bodies the last. deviation: one flow of class 0,
    /// as [`Host::connect`].
    pub classes: Vec<u8>,
    /// Credential to use; with `None`, the choice of [`Host::connect`] applies.
    pub key: Option<KeyId>,
    /// Time within which the server must answer after the connection has opened. deviation: no source; the handshake timeout of
    /// the transport.
    pub handshake_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            max_calls: 256,
            classes: vec![0],
            key: None,
            handshake_timeout: Duration::from_secs(5),
        }
    }
}

/// A method of the server to which a client is connected. Its number is valid on this connection only: resolve the name again
/// after a reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method(u16);

/// An ordered lane: the server runs the calls of the lane one by one, in the order in which they were begun. Calls outside the
/// lane are independent of it. A call that fails does not stop the calls after it.
pub struct Lane {
    shared: Arc<Shared>,
    number: u16,
    /// Number of the next call.
    next: Mutex<u32>,
}

/// Closes a connection when it is dropped, even if other owners such as a [`Dialer`](apus_udp::Dialer) still have it.
struct Closes(Connection);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

/// The state of a client.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) outgoing: Arc<Outgoing>,
    pub(crate) table: Arc<Table>,
    pub(crate) keeper: Stops,
    methods: Vec<(u16, String)>,
    /// Lanes that are not in use, with the numbers of their next calls.
    lanes: Mutex<Vec<(u16, u32)>>,
    _closes: Closes,
}

impl Shared {
    fn post_cancel(&self, id: CallId) {
        self.outgoing.post(&Header::Cancel { id }, &[]);
    }
}

impl Deadlines for Shared {
    fn expire(&self, now: Instant) -> Option<Instant> {
        let next = self.table.expire(now, |id| self.post_cancel(id));
        let retry = self.outgoing.retry(now);
        next.into_iter().chain(retry).min()
    }
}

/// A client: a connection to a server. Clones share it.
///
/// The connection closes when the last clone is dropped and no [`Call`], no [`Lane`] and no unfinished reader of an answer's body
/// ([`Response::body`]) is left.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// Connects to a server with the default options. Waits until the server has answered.
    ///
    /// # Errors
    /// If the peer does not answer, refuses, or is not a server of this protocol.
    pub fn connect(host: &Arc<Host>, server: SocketAddr) -> Result<Self, ConnectError> {
        Self::connect_with(host, server, &ClientOptions::default())
    }

    /// Connects to a server. Waits until the server has answered.
    ///
    /// # Errors
    /// As [`Client::connect`], and if an option is impossible.
    pub fn connect_with(
        host: &Arc<Host>,
        server: SocketAddr,
        options: &ClientOptions,
    ) -> Result<Self, ConnectError> {
        check(options)?;
        let connection = host.connect_with(server, &options.classes, options.key)?;
        Self::on(host, connection, options)
    }

    /// Creates a client on a connection of `host` that was opened in another way, such as by a [`Dialer`](apus_udp::Dialer),
    /// which resolves names. Waits until the server has answered.
    ///
    /// No other code may receive messages of the connection. The options `classes` and `key` have no effect. The connection
    /// closes with the client, even if other clones of the connection exist, and also if the server does not answer correctly.
    ///
    /// # Errors
    /// As [`Client::connect_with`]. [`ConnectError::Ended`] also if the connection already had a client, which then ends too.
    pub fn on(
        host: &Arc<Host>,
        connection: Connection,
        options: &ClientOptions,
    ) -> Result<Self, ConnectError> {
        check(options)?;
        if connection.would_deadlock() {
            return Err(apus_udp::ConnectError::WouldDeadlock.into());
        }
        let opening = Opening::begin(connection, options);
        let welcome = opening.closes.0.block_on(poll_fn(|c| opening.poll(c)), opening.deadline);
        opening.finish(host, welcome.unwrap_or(Err(ConnectError::NoServer)), options)
    }

    /// Async form of [`Client::connect_with`].
    ///
    /// # Errors
    /// As [`Client::connect_with`].
    pub async fn connect_async(
        host: &Arc<Host>,
        server: SocketAddr,
        options: &ClientOptions,
    ) -> Result<Self, ConnectError> {
        check(options)?;
        let connection = host.connect_async(server, &options.classes, options.key).await?;
        let opening = Opening::begin(connection, options);
        if let Some(deadline) = opening.deadline {
            opening.keeper.0.wake_by(deadline);
        }
        let welcome = poll_fn(|context| {
            let welcome = opening.poll(context);
            if welcome.is_pending() {
                opening.closes.0.drive_for(context);
            }
            welcome
        })
        .await;
        opening.finish(host, welcome, options)
    }

    /// Returns the method with this name. Resolve a name once and not per call: the names are compared one by one.
    ///
    /// # Errors
    /// If the server has no such method.
    pub fn method(&self, name: &str) -> Result<Method, UnknownMethod> {
        let methods = &self.shared.methods;
        let found = methods.iter().find(|(_, other)| other == name);
        found.map(|(number, _)| Method(*number)).ok_or_else(|| UnknownMethod {
            name: name.to_owned(),
            known: methods.iter().map(|(_, name)| &**name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the names of the server's methods.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.shared.methods.iter().map(|(_, name)| &**name)
    }

    /// Returns a call of a method. The call begins with [`CallBuilder::wait`], [`CallBuilder::start`] or `.await`. The payload is
    /// copied into the request; send more than a few kilobytes as a body ([`CallBuilder::body`]).
    pub fn call<'a>(&'a self, method: Method, payload: &'a [u8]) -> CallBuilder<'a> {
        CallBuilder::new(&self.shared, method, payload)
    }

    /// Returns an ordered lane, or `None` if all lanes that the server allows are in use.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        let lane = self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner).pop();
        lane.map(|(number, next)| Lane::new(&self.shared, number, next))
    }

    /// Returns the maximum number of outstanding calls.
    #[must_use]
    pub fn max_calls(&self) -> usize {
        self.shared.table.limit()
    }

    /// Returns the maximum number of bytes of a request's payload.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.shared.outgoing.max_message().saturating_sub(call::MAX_HEADER_BYTES)
    }

    /// Returns how the connection ended, or `None` if it has not ended. After its end, connect again: a client does not reconnect
    /// by itself, because only the application knows which calls may run twice.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.shared.table.ended()
    }

    /// Returns the counters of the client.
    #[must_use]
    pub fn metrics(&self) -> &ClientMetrics {
        &self.shared.table.metrics
    }

    /// Returns the connection, for one-sided ops in addition to calls. Only the client may receive its messages.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.shared.outgoing.connection
    }

    #[cfg(feature = "tower")]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

fn check(options: &ClientOptions) -> Result<(), ConnectError> {
    if options.max_calls == 0 {
        return Err(ConnectError::Setting("max_calls is 0; it must be at least 1".to_owned()));
    }
    Ok(())
}

/// A client whose server has not answered yet.
struct Opening {
    closes: Closes,
    core: Arc<Core>,
    keeper: Stops,
    /// `None` if the sum exceeds the range of the clock.
    deadline: Option<Instant>,
}

impl Opening {
    fn begin(connection: Connection, options: &ClientOptions) -> Self {
        let (core, keeper) = (Arc::new(Core::default()), Keeper::new());
        let deadline = Instant::now().checked_add(options.handshake_timeout);
        core.set_deadline(deadline);
        let owner: Arc<dyn Deadlines> = Arc::<Core>::clone(&core);
        keeper.set_owner(Arc::downgrade(&owner));
        connection.receive_with(Receiver(Arc::clone(&core)));
        let hello = crate::envelope::encode(&Header::Hello { min: VERSION, max: VERSION }, &[]);
        // If the connection has ended, the receiver is notified.
        let _ = connection.submit(apus_udp::Request::message(hello));
        Self { closes: Closes(connection), core, keeper: Stops(keeper), deadline }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<Welcome, ConnectError>> {
        self.core.poll(context)
    }

    fn finish(
        self,
        host: &Arc<Host>,
        welcome: Result<Welcome, ConnectError>,
        options: &ClientOptions,
    ) -> Result<Client, ConnectError> {
        let welcome = welcome?;
        let limit = welcome.calls.min(options.max_calls);
        let table = Arc::new(Table::new(limit, Instant::now(), Arc::default()));
        let connection = self.closes.0.clone();
        let outgoing = Arc::new(Outgoing::new(connection, Arc::clone(&self.keeper.0)));
        self.core.begin(&table, &outgoing);
        let shared = Arc::new(Shared {
            host: Arc::clone(host),
            outgoing,
            table,
            keeper: self.keeper,
            methods: welcome.methods,
            lanes: Mutex::new((0..welcome.lanes).rev().map(|lane| (lane, 0)).collect()),
            _closes: self.closes,
        });
        let owner: Weak<dyn Deadlines> =
            Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Deadlines>));
        shared.keeper.0.set_owner(owner);
        Ok(Client { shared })
    }
}
