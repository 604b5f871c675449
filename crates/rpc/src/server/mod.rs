//! The server: accepts connections and runs the handlers of calls.

mod incoming;
mod lanes;
mod link;
mod methods;
mod pool;
mod slots;
mod tasks;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use apus_udp::{Connection, End, Host};

use crate::envelope::{Status, encode_methods};
use crate::error::ServeError;
use crate::keeper::{Deadlines, Keeper, Stops};
use crate::metrics::{ServerMetrics, add};

pub use incoming::Incoming;
use link::Link;
pub use link::Reply;
use methods::Handler;
pub use methods::Methods;
use pool::Pool;

/// Bytes of a Welcome before the table of methods.
const WELCOME_BYTES: usize = 8;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Number of threads that run handlers. deviation: no source; 4, so that a few handlers may block. With one thread, calls
    /// take less CPU time.
    pub workers: usize,
    /// Maximum number of calls of all connections that are queued, run, or have an answer whose body is being read. Further calls
    /// are answered at once with [`CallError::Overloaded`](crate::CallError::Overloaded). A queued call that is cancelled counts
    /// until a worker or its lane reaches it. deviation: no source; 16 connections at `calls_per_connection`.
    pub max_calls: usize,
    /// Maximum number of calls of a connection. The client knows this limit and counts its calls. Queued calls that are cancelled
    /// count as for `max_calls`, and further calls are answered in the same way. A connection takes about 100 B for each call.
    /// deviation: no source; a quarter of the transport's default `max_ops`.
    pub calls_per_connection: u16,
    /// Number of ordered lanes of a connection. deviation: no source.
    pub lanes: u16,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { workers: 4, max_calls: 4096, calls_per_connection: 256, lanes: 16 }
    }
}

/// What the threads of a server share.
pub(crate) struct Core {
    host: Arc<Host>,
    options: ServerOptions,
    methods: Vec<Handler>,
    /// The names of the methods, encoded as in the Welcome.
    table: Vec<u8>,
    pool: Pool,
    links: Mutex<Vec<Arc<Link>>>,
    metrics: ServerMetrics,
    keeper: Stops,
    /// Number of calls that wait, run, or have a body that is being read.
    calls: AtomicU64,
    draining: AtomicBool,
    /// Notified when a call ends while the server drains.
    idle: (Mutex<()>, Condvar),
    /// Wakes the accepting thread so that it ends.
    accept_waker: Mutex<Option<Waker>>,
    /// Whether a handler has dropped the server. Its worker, which ends last, then ends the connections.
    dropped_by_handler: AtomicBool,
}

impl Core {
    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, link: &Arc<Link>) {
        let mut links = self.links();
        let at = links.iter().position(|other| Arc::ptr_eq(other, link));
        let removed = at.map(|at| links.swap_remove(at));
        drop(links);
        // Dropping the connection calls its engine, so the lock is released first.
        drop(removed);
    }

    /// Ends all connections, including those that are kept by calls which the application holds.
    fn end_links(&self) {
        let links = std::mem::take(&mut *self.links());
        for link in links {
            link.end(End::ClosedHere);
            link.outgoing.connection.begin_close();
        }
        self.pool.close();
    }

    /// Counts another call. Returns `false` if there are as many as allowed.
    fn admit(&self) -> bool {
        if self.calls.fetch_add(1, Ordering::AcqRel) >= self.options.max_calls as u64 {
            self.call_over();
            return false;
        }
        true
    }

    fn call_over(&self) {
        // Either this thread sees that the server drains, or the draining thread sees the new number.
        let before = self.calls.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.is_draining() {
            drop(self.idle.0.lock().unwrap_or_else(PoisonError::into_inner));
            self.idle.1.notify_all();
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Counts the end of a call.
    fn count(&self, status: Status) {
        let metrics = &self.metrics;
        match status {
            Status::Done => add(&metrics.answered),
            Status::Failed | Status::Abandoned | Status::TooLong => add(&metrics.failed),
            Status::Panicked => add(&metrics.panicked),
            Status::Overloaded => add(&metrics.overloaded),
            Status::Expired => add(&metrics.expired),
            Status::UnknownMethod => add(&metrics.unknown_method),
            Status::CancelledBefore | Status::Cancelled | Status::ExpiredRunning => {
                add(&metrics.cancelled);
            }
            Status::Stopping => {}
        }
    }
}

impl Deadlines for Core {
    fn expire(&self, now: Instant) -> Option<Instant> {
        let links = self.links().clone();
        links.iter().filter_map(|link| link.expire(now)).min()
    }
}

/// A server of calls on a host.
///
/// Dropping the server ends its connections and its threads, after the handlers that are running have returned:
/// * Running handlers are notified ([`Incoming::is_cancelled`]), and their waits for bodies end. Their answers without a body are
///   still sent, unless the answers wait for room on the connection.
/// * Queued calls end as [`CallError::Stopping`](crate::CallError::Stopping).
/// * A worker, or the thread that drops the server, drops the futures of handlers.
///
/// A handler may drop its own server. The connections then end when the handler has returned.
pub struct Server {
    core: Arc<Core>,
    workers: Vec<JoinHandle<()>>,
    /// The thread that accepts connections.
    accepts: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves all connections that peers open to the host, with the default options.
    ///
    /// # Errors
    /// If no thread can be started, or the name of a method is empty, longer than 255 bytes, or used twice.
    pub fn start(host: &Arc<Host>, methods: Methods) -> Result<Self, ServeError> {
        Self::start_with(host, methods, ServerOptions::default())
    }

    /// Serves all connections that peers open to the host.
    ///
    /// # Errors
    /// As [`Server::start`], and if an option is impossible.
    pub fn start_with(
        host: &Arc<Host>,
        methods: Methods,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        let mut server = Self::without_accept(host, methods, options)?;
        let core = Arc::clone(&server.core);
        let accepts = thread::Builder::new().name("apus-rpc-accept".to_owned());
        let accepts = accepts.spawn(move || accept_all(&core)).map_err(ServeError::Thread)?;
        server.accepts = Some(accepts);
        Ok(server)
    }

    /// Creates a server that accepts no connections by itself ([`Server::serve`]), for a host that also has other connections.
    ///
    /// # Errors
    /// As [`Server::start_with`].
    pub fn without_accept(
        host: &Arc<Host>,
        methods: Methods,
        options: ServerOptions,
    ) -> Result<Self, ServeError> {
        for (name, zero) in [
            ("workers", options.workers == 0),
            ("max_calls", options.max_calls == 0),
            ("calls_per_connection", options.calls_per_connection == 0),
        ] {
            if zero {
                return Err(ServeError::Setting(format!("{name} is 0; it must be at least 1")));
            }
        }
        let mut names: Vec<&str> = methods.names.iter().map(|name| &**name).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[one, other]| one == other) {
            let what = format!("two methods have the name `{name}`; give each its own");
            return Err(ServeError::Setting(what));
        }
        let table = encode_methods(methods.names.iter().map(|name| &**name)).ok_or_else(|| {
            let what =
                "the name of a method is empty or longer than 255 B, or there are more than 65536";
            ServeError::Setting(what.to_owned())
        })?;
        let core = Arc::new(Core {
            host: Arc::clone(host),
            pool: Pool::new(options.workers),
            options,
            methods: methods.handlers,
            table,
            links: Mutex::default(),
            metrics: ServerMetrics::default(),
            keeper: Stops(Keeper::new()),
            calls: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            idle: (Mutex::new(()), Condvar::new()),
            accept_waker: Mutex::default(),
            dropped_by_handler: AtomicBool::new(false),
        });
        let owner: Arc<dyn Deadlines> = Arc::<Core>::clone(&core);
        core.keeper.0.set_owner(Arc::downgrade(&owner));
        let mut server = Self { core, workers: Vec::new(), accepts: None };
        for number in 0..server.core.options.workers {
            let core = Arc::clone(&server.core);
            let worker = thread::Builder::new().name(format!("apus-rpc-{number}"));
            let worker = worker.spawn(move || {
                core.pool.work(&core.host);
                if core.dropped_by_handler.load(Ordering::SeqCst) && core.pool.has_ended() {
                    core.end_links();
                }
            });
            server.workers.push(worker.map_err(ServeError::Thread)?);
        }
        Ok(server)
    }

    /// Serves a connection.
    ///
    /// # Errors
    /// If the table of methods is longer than the messages that the peer accepts.
    pub fn serve(&self, connection: Connection) -> Result<(), ServeError> {
        serve(&self.core, connection)
    }

    /// Returns the counters of the server, with the current number of calls.
    #[must_use]
    pub fn metrics(&self) -> &ServerMetrics {
        self.core.metrics.current.store(self.core.calls.load(Ordering::Acquire), Ordering::Relaxed);
        &self.core.metrics
    }

    /// Accepts no further calls, and waits until all calls have ended and the bodies of their answers have been read, at most for
    /// `timeout`. Returns `true` if they have.
    ///
    /// Further calls are answered with [`CallError::Stopping`](crate::CallError::Stopping). When this function returns `true`, a
    /// handler that has answered by [`Incoming::stream`] may still run, if the client has read the body. Answers may also still
    /// wait for room on their connections: [`Host::drain`] waits for those.
    pub fn drain(&self, timeout: Duration) -> bool {
        // `None` if the sum exceeds the range of the clock.
        let deadline = Instant::now().checked_add(timeout);
        self.core.draining.store(true, Ordering::SeqCst);
        let (lock, idle) = &self.core.idle;
        let mut guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.core.calls.load(Ordering::SeqCst) == 0 {
                return true;
            }
            let left = deadline.map_or(Duration::MAX, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return false;
            }
            let waited = idle.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn serve(core: &Arc<Core>, connection: Connection) -> Result<(), ServeError> {
    let length = core.table.len() + WELCOME_BYTES;
    let limit = usize::try_from(connection.max_message()).unwrap_or(usize::MAX);
    if length > limit {
        return Err(ServeError::TableTooLong { length, limit });
    }
    let link = Link::new(Arc::clone(core), connection);
    // Added before the first message, which may be the end of the connection.
    core.links().push(Arc::clone(&link));
    link.listen();
    Ok(())
}

/// Accepts connections until the server or the host is stopped.
fn accept_all(core: &Arc<Core>) {
    loop {
        let mut accept = pin!(core.host.accept_async());
        let next = poll_fn(|context| {
            *core.accept_waker.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(context.waker().clone());
            if core.pool.is_stopped() {
                return Poll::Ready(None);
            }
            accept.as_mut().poll(context).map(Result::ok)
        });
        match core.host.block_on(next, None) {
            // A peer that cannot receive the table is refused by closing its connection.
            Some(Some(connection)) => drop(serve(core, connection)),
            _ => return,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.core.draining.store(true, Ordering::SeqCst);
        self.core.pool.stop();
        // A handler may wait for a body that a peer never sends or reads, so its wait must end now. Calls that arrive
        // meanwhile are answered.
        let links = self.core.links().clone();
        links.iter().for_each(|link| link.stop());
        let accepts = self.core.accept_waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = accepts {
            waker.wake();
        }
        let this = thread::current().id();
        let others = |thread: &JoinHandle<()>| thread.thread().id() != this;
        let running = self.workers.iter().filter(|worker| others(worker)).count();
        self.core.pool.finish(running);
        let in_handler = running < self.workers.len();
        self.core.dropped_by_handler.store(in_handler, Ordering::SeqCst);
        let threads = self.workers.drain(..).chain(self.accepts.take());
        threads.filter(others).for_each(|thread| _ = thread.join());
        // If a handler drops the server, its call is answered first. Its worker ends the connections then.
        if !in_handler {
            // Includes connections that were accepted meanwhile.
            self.core.end_links();
        }
    }
}
