//! A host: its engines, regions and connections.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::info;

use crate::accept::Towards;
use crate::backlog::{Unaccepted, backlog};
use crate::config::{Config, Mode};
use crate::connection::Connection;
use crate::driver::{self, Driver, Shared};
use crate::engine::{Engine, HostShared, Siblings};
use crate::error::{ConnectError, DroppedHandshake, StartError};
use crate::grant::{Access, Grant};
use crate::mailbox::{Command, ConnectRequest, Mailbox, Opened};
use crate::metrics::Metrics;
use crate::region::{Memory, Region, Regions};
use crate::session::{KeyId, KeyRing, Randomness};
use crate::stats::Stats;
use crate::sys::{Sockets, source_to};

/// Time for which a blocking call spins before its thread sleeps, if engines never sleep. deviation: no source; one
/// `base_target` ([`Config::new`]), so that a call that ends within a round trip at the target needs no wake-up.
const CALL_SPIN: Duration = Duration::from_micros(200);

/// A host of the transport in this process. Dropping the host ends all its connections.
pub struct Host {
    engines: Vec<Arc<Mailbox>>,
    /// One thread per engine, except in inline mode. Each thread returns the result of [`Engine::end`].
    threads: Mutex<Vec<JoinHandle<Option<Arc<Sockets>>>>>,
    regions: Arc<Regions>,
    accepted: async_channel::Receiver<Unaccepted>,
    /// How calls wait for each engine.
    drivers: Vec<Driver>,
    /// How calls wait for any engine.
    driver: Driver,
    next: AtomicUsize,
    /// Addresses at which the sockets of the host are bound.
    addresses: Vec<SocketAddr>,
    insecure: bool,
}

impl Host {
    /// Opens the sockets and starts the engines.
    ///
    /// # Errors
    /// If a setting is impossible, an address cannot be bound, or the system lacks a service that the engines need.
    pub fn start(config: Config) -> Result<Self, StartError> {
        config.check()?;
        let regions = Arc::new(Regions::new(config.all_engines(), Randomness::System));
        let (backlog, accepted) = backlog(config.max_unaccepted);
        let shared = HostShared { regions: Arc::clone(&regions), backlog };
        let (mut engines, mut addresses, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for &listen in &config.listen {
            let mut address = listen;
            let first = engines.len() as u32; // at most 64
            for sibling in Siblings::group(first..first + config.engines) {
                let spreading = config.spreading.as_ref();
                let next_port = spreading.and_then(|spreading| {
                    // No overflow: the settings have been checked.
                    let before = sibling.engine as u16 * (spreading.ports - 1);
                    spreading.next_port.map(|next| next + before)
                });
                let siblings = (next_port, sibling.clone());
                let engine =
                    Engine::open(&config, address, siblings.0, siblings.1, shared.clone())?;
                // Further engines use the port that the first one was given.
                address = engine.mailbox.status.address;
                engines.push(engine);
                groups.push(sibling);
            }
            addresses.push(address);
        }
        let mailboxes: Vec<_> = engines.iter().map(|e| Arc::clone(&e.mailbox)).collect();
        for engine in groups {
            engine.set_mailboxes(mailboxes.clone());
        }
        let (host, crowded) = (regions.host, Arc::default());
        let driver = Driver::Threads { host, spin: Duration::ZERO, crowded };
        let mut host = Self {
            engines: mailboxes,
            threads: Mutex::default(),
            regions,
            accepted,
            drivers: Vec::new(),
            driver,
            next: AtomicUsize::new(0),
            addresses,
            insecure: config.keys.is_insecure(),
        };
        for engine in engines {
            host.launch(config.mode, engine)?;
        }
        for (engine, mailbox) in host.engines.iter().enumerate() {
            let (address, algorithm) = (mailbox.status.address, config.algorithm.info().name);
            let sealed = !config.keys.is_insecure();
            info!(target: "apus_udp::host", host = %address, engine, algorithm, sealed, "engine started");
        }
        // With several engines, a call that waits for any of them drives none of them.
        if let [driver] = &host.drivers[..] {
            host.driver = driver.clone();
        }
        Ok(host)
    }

    /// Starts to run an engine.
    fn launch(&mut self, mode: Mode, mut engine: Engine) -> Result<(), StartError> {
        let name = format!("apus-{}", self.drivers.len());
        let thread = std::thread::Builder::new().name(name);
        let (driver, thread) = if mode == Mode::Spinning {
            let crowded = Arc::new(AtomicBool::new(false));
            let (host, told) = (self.regions.host, Arc::clone(&crowded));
            let driver = Driver::Threads { host, spin: CALL_SPIN, crowded: told };
            let run = move || {
                host.in_thread(|| {
                    driver::run(&mut engine, &crowded);
                    engine.end()
                })
            };
            (driver, Some(thread.spawn(run)))
        } else {
            let shared = Shared::new(self.regions.host, engine, mode == Mode::Shared)
                .map_err(|e| StartError::System("make an epoll or a timer", e))?;
            let run = (mode == Mode::Shared).then(|| {
                let shared = Arc::clone(&shared);
                thread.spawn(move || shared.run_background())
            });
            (Driver::Shared(shared), run)
        };
        self.drivers.push(driver);
        if let Some(thread) = thread {
            let thread = thread.map_err(|e| StartError::System("start a thread", e))?;
            self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(())
    }

    /// Returns how calls wait for the engine of a connection.
    fn driver_of(&self, opened: &Opened) -> Driver {
        let engine = self.engines.iter().position(|engine| Arc::ptr_eq(engine, &opened.mailbox));
        engine.map_or(&self.driver, |engine| &self.drivers[engine]).clone()
    }

    /// Returns the locked engine of a host whose calls drive its engine.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> std::sync::MutexGuard<'_, Option<Engine>> {
        let Driver::Shared(shared) = &self.driver else { panic!("the engine has its own thread") };
        shared.engine()
    }

    /// Returns the first of the addresses at which the host's sockets are bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Returns all addresses at which the host's sockets are bound, in the order of [`Config::listen`].
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Registers `memory` as a region that every connected peer may use if it knows the region key. `memory` may be a vector or
    /// any other [`Memory`].
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] if 65536 regions are registered already; another error if the system provides no random
    /// bytes for the region key.
    pub fn register(&self, memory: impl Memory + 'static, access: Access) -> io::Result<Region> {
        Region::new(&self.regions, Box::new(memory), access, None)
    }

    /// Registers `memory` as a region that only the peers of `grant` may use. For other peers the region key is useless.
    /// Otherwise as [`Host::register`].
    ///
    /// # Errors
    /// As [`Host::register`]; [`io::ErrorKind::InvalidInput`] if the grant names a connection of another host.
    pub fn register_for(
        &self,
        memory: impl Memory + 'static,
        access: Access,
        grant: Grant,
    ) -> io::Result<Region> {
        Region::new(&self.regions, Box::new(memory), access, Some(grant))
    }

    /// Connects to a peer by one flow of traffic class 0, and waits until the connection is open.
    ///
    /// The host proves the first shared key of the key ring. With keys of hosts, it connects to the only peer that the key ring
    /// lists. A host with several addresses connects from the address that the route to the peer prefers. If that is not one of
    /// its addresses, it uses the first one that can reach the peer.
    ///
    /// # Errors
    /// If the peer does not answer, the peer refuses, or a limit on connections is reached; [`ConnectError::WouldDeadlock`] if
    /// this thread would wait for itself.
    pub fn connect(&self, peer: SocketAddr) -> Result<Connection, ConnectError> {
        self.connect_with(peer, &[0], None)
    }

    /// Connects to a peer by one flow for each traffic class of `classes` (see [`Config::dscp`]), and waits until the connection
    /// is open. `&[0; 4]` gives four flows of class 0.
    ///
    /// `key` is the credential to use. Without it, the choice of [`Host::connect`] applies.
    ///
    /// # Errors
    /// As [`Host::connect`]. Also if the key ring does not contain `key`, a traffic class does not exist, `classes` is empty, or
    /// it has more flows than either side allows.
    pub fn connect_with(
        &self,
        peer: SocketAddr,
        classes: &[u8],
        key: Option<KeyId>,
    ) -> Result<Connection, ConnectError> {
        self.check_wait()?;
        let towards = key.map_or(Towards::Any, Towards::Key);
        self.opened(self.driver.wait(self.request(peer, classes, towards)))
    }

    /// Connects to the peer of this name in the key ring ([`KeyRing::of`]). No other host can answer. Otherwise as
    /// [`Host::connect_with`].
    ///
    /// # Errors
    /// As [`Host::connect_with`], and if the key ring has no peer of this name.
    pub fn connect_to(
        &self,
        peer: SocketAddr,
        name: &str,
        classes: &[u8],
    ) -> Result<Connection, ConnectError> {
        self.check_wait()?;
        let towards = Towards::Named(name.to_owned());
        self.opened(self.driver.wait(self.request(peer, classes, towards)))
    }

    /// Async form of [`Host::connect_to`].
    ///
    /// # Errors
    /// As [`Host::connect_to`], except [`ConnectError::WouldDeadlock`].
    pub async fn connect_to_async(
        &self,
        peer: SocketAddr,
        name: &str,
        classes: &[u8],
    ) -> Result<Connection, ConnectError> {
        let towards = Towards::Named(name.to_owned());
        self.opened(self.driver.answer(self.request(peer, classes, towards)).await)
    }

    /// Async form of [`Host::connect_with`].
    ///
    /// # Errors
    /// As [`Host::connect_with`], except [`ConnectError::WouldDeadlock`].
    pub async fn connect_async(
        &self,
        peer: SocketAddr,
        classes: &[u8],
        key: Option<KeyId>,
    ) -> Result<Connection, ConnectError> {
        let towards = key.map_or(Towards::Any, Towards::Key);
        self.opened(self.driver.answer(self.request(peer, classes, towards)).await)
    }

    /// Returns `true` if a call of this thread that waits for the host would deadlock.
    ///
    /// Either the thread holds the memory of a region of this host ([`Region::read`], [`Region::write`], [`Region::lock`]), or it
    /// is running one of the host's engines, as an accept hook or an algorithm does. Calls that wait for the host are then
    /// refused ([`End::WouldDeadlock`](crate::End::WouldDeadlock)).
    #[must_use]
    pub fn would_deadlock(&self) -> bool {
        self.drivers.iter().any(Driver::would_deadlock)
    }

    /// Refuses a wait if this thread would wait for itself.
    fn check_wait(&self) -> Result<(), ConnectError> {
        if self.would_deadlock() { Err(ConnectError::WouldDeadlock) } else { Ok(()) }
    }

    /// Returns the handle of a connection that an engine has opened.
    fn opened(
        &self,
        answer: Option<Result<Opened, ConnectError>>,
    ) -> Result<Connection, ConnectError> {
        let opened = answer.unwrap_or_else(|| Err(self.stopped()))?;
        let driver = self.driver_of(&opened);
        Ok(Connection::new(opened, driver))
    }

    fn accepted(&self, next: Option<Unaccepted>) -> Result<Connection, ConnectError> {
        self.opened(next.map(|next| Ok(next.connection)))
    }

    /// Requests a connection from the next engine in turn that has not failed, among the engines of the address for
    /// this peer.
    fn request(&self, peer: SocketAddr, classes: &[u8], towards: Towards) -> Answer {
        let peer = answering(peer, &self.addresses);
        let (reply, receiver) = oneshot::channel();
        let engines = self.engines_for(peer);
        let (first, count) = (self.next.fetch_add(1, Ordering::Relaxed), engines.len());
        let mut in_turn = (0..count).map(|i| &engines[first.wrapping_add(i) % count]);
        let engine = in_turn.find(|engine| !engine.status.has_failed());
        let request = ConnectRequest { peer, classes: classes.to_vec(), towards, reply };
        engine.unwrap_or(&engines[first % count]).post(Command::Connect(request));
        receiver
    }

    /// Returns the engines of the address from which to connect to `peer`.
    fn engines_for(&self, peer: SocketAddr) -> &[Arc<Mailbox>] {
        let groups = || self.engines.chunks_exact(self.engines.len() / self.addresses.len());
        if self.addresses.len() == 1 {
            return &self.engines;
        }
        let source = source_to(peer);
        let preferred = groups().find(|engines| Some(engines[0].status.address.ip()) == source);
        let able = || groups().find(|engines| engines[0].status.families.reaches(peer));
        // An engine that cannot reach the peer reports the error.
        preferred.or_else(able).unwrap_or(&self.engines)
    }

    /// Returns the reason why a wait ended without a result.
    fn stopped(&self) -> ConnectError {
        let failed = self.engines.iter().any(|engine| engine.status.has_failed());
        if failed { ConnectError::EngineFailed } else { ConnectError::Stopped }
    }

    /// Waits for the next connection that a peer has opened, and accepts it.
    ///
    /// # Errors
    /// If the engines have stopped; [`ConnectError::WouldDeadlock`] if this thread would wait for itself.
    pub fn accept(&self) -> Result<Connection, ConnectError> {
        self.check_wait()?;
        self.accepted(self.driver.wait_next(&self.accepted))
    }

    /// Accepts the next connection that a peer has opened, without waiting. Returns `None` if there is none.
    #[must_use]
    pub fn try_accept(&self) -> Option<Connection> {
        self.accepted(Some(self.accepted.try_recv().ok()?)).ok()
    }

    /// Async form of [`Host::accept`].
    ///
    /// # Errors
    /// As [`Host::accept`], except [`ConnectError::WouldDeadlock`].
    pub async fn accept_async(&self) -> Result<Connection, ConnectError> {
        self.accepted(self.driver.next(&self.accepted).await)
    }

    /// Replaces the key ring. Connections under keys that the new ring lacks end; connections under retired keys continue.
    /// If the host accepts unlisted peers ([`accept_unlisted`](crate::session::Config::accept_unlisted)), a connection that a
    /// peer has opened also continues if the new ring lacks the peer's key.
    ///
    /// To replace a key without losing a connection, add the new key at every host, and retire the old key
    /// ([`Entry::retired`](crate::session::Entry::retired)). Remove the old key when its connections have ended.
    ///
    /// # Errors
    /// If the host is insecure and the new ring is not, or vice versa.
    pub fn set_keys(&self, keys: &KeyRing) -> Result<(), StartError> {
        if keys.is_insecure() != self.insecure {
            let what = "a host cannot change between insecure and keys; start another host";
            return Err(StartError::Setting(what.to_owned()));
        }
        for engine in &self.engines {
            engine.post(Command::Keys(keys.clone()));
        }
        self.driver.step();
        Ok(())
    }

    /// Takes the oldest report of a dropped handshake, for a log. Returns `None` if there is none.
    ///
    /// The sender of the handshake was not told the reason. An engine keeps at most 64 reports and creates at most 100 per
    /// second, so that a flood fills neither the log nor the memory. The counters of [`Host::stats`] include all dropped
    /// handshakes.
    pub fn dropped_handshake(&self) -> Option<DroppedHandshake> {
        self.engines.iter().find_map(|engine| engine.status.take_note())
    }

    /// Ends every connection in order, without cutting off ops. Returns `true` if all connections have ended, and `false`
    /// otherwise, such as when `timeout` has passed. Call [`Host::stop`] afterwards in either case.
    ///
    /// From now on:
    /// * The host opens and accepts no connections ([`ConnectError::Draining`] here, [`ConnectError::PeerDraining`] at peers).
    /// * The host may submit messages, since they may answer requests. Its reads, writes and atomic ops are refused
    ///   ([`SubmitError::Draining`](crate::SubmitError::Draining)).
    /// * Peers submit no ops to the host ([`SubmitError::PeerDraining`](crate::SubmitError::PeerDraining)), except messages that
    ///   this side waits for ([`Request::answers`](crate::Request::answers)).
    ///
    /// A connection closes when no op of either side is outstanding, the application has taken all its messages, and no
    /// [`MessageReceiver`](crate::MessageReceiver) of the connection is busy. Detecting this takes 100 to 200 ms
    /// ([`session::Config::retry`](crate::session::Config::retry)).
    ///
    /// If this thread would wait for itself ([`Host::would_deadlock`]), the call returns `false` at once and has no effect.
    pub fn drain(&self, timeout: Duration) -> bool {
        if self.would_deadlock() {
            return false;
        }
        self.block_on(self.drain_async(), Some(timeout)).unwrap_or(false)
    }

    /// Async form of [`Host::drain`], without a timeout. The drain begins with this call, even if the future is not polled. The
    /// output is `true` when all connections have ended, and `false` if an engine stopped before that.
    pub fn drain_async(&self) -> impl Future<Output = bool> + use<> {
        let ask = |engine: &Arc<Mailbox>| {
            let (done, drained) = oneshot::channel();
            engine.post(Command::Drain { done });
            drained
        };
        let engines: Vec<_> = self.engines.iter().map(ask).collect();
        self.driver.step();
        async move {
            let mut all = true;
            for drained in engines {
                all &= drained.await.is_ok();
            }
            all
        }
    }

    /// Ends every connection, notifies the peers, and ends every wait, as dropping the host does. Any thread may call this
    /// function.
    ///
    /// Returns when the engines have ended. If the caller is code that an engine calls, a future of [`Host::block_on`], or a
    /// thread that holds the memory of a region of this host, the call returns at once.
    pub fn stop(&self) {
        for engine in &self.engines {
            engine.stop();
        }
        // Connections that were not accepted are closed.
        self.accepted.close();
        while self.accepted.try_recv().is_ok() {}
        if driver::cannot_end(self.regions.host) {
            // Otherwise the engine would wait for this thread, and this thread for the engine.
            return;
        }
        self.driver.step();
        // A second caller waits for the first one.
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }

    /// Waits for a future, such as the next completion on a queue ([`Connection::submit_queued`]), and drives the engine
    /// meanwhile, as other calls that wait do. If the host has several engines, their threads drive them instead.
    ///
    /// Returns `None` if `timeout` has passed, or if this thread would wait for itself ([`Host::would_deadlock`]). The latter
    /// includes a future that holds the memory of a region while it is pending.
    ///
    /// The future must not block on anything else, such as a sleep of the thread or another host: the host may receive nothing
    /// during that time. If the future makes a blocking call of the same host, that call never sleeps.
    pub fn block_on<F: Future>(&self, future: F, timeout: Option<Duration>) -> Option<F::Output> {
        self.check_wait().ok()?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.driver.wait_future(pin!(future), deadline)
    }

    /// Runs one step of the engine of a host in inline mode. Returns `true` if there was anything to do.
    pub fn drive(&self) -> bool {
        self.driver.step()
    }

    /// Makes the engines notice changes, such as withdrawn regions.
    pub fn look(&self) {
        self.engines.iter().for_each(|engine| engine.wake_sleepers());
        self.driver.step();
    }

    /// Returns the counters of the engines and of their connections and peers (at most [`Config::metrics_limit`] of each per
    /// engine), as metrics for Prometheus. The result may outlive the host.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let engines = self.engines.iter().zip(&self.drivers);
        Metrics::new(
            engines.map(|(mailbox, driver)| (Arc::clone(mailbox), driver.weak())).collect(),
        )
    }

    /// Returns the counters of each engine.
    pub fn stats(&self) -> impl Iterator<Item = &Stats> {
        self.engines.iter().map(|engine| &engine.status.stats)
    }
}

/// An engine's answer to a request for a connection.
type Answer = oneshot::Receiver<Result<Opened, ConnectError>>;

/// Returns the address from which a peer answers if packets are sent to `peer`. For a mapped address
/// (`::ffff:192.0.2.1`), this is the IPv4 address. For the unspecified address, the kernel takes an address of `local`
/// at which the socket is bound, or else the loopback address.
fn answering(peer: SocketAddr, local: &[SocketAddr]) -> SocketAddr {
    let given = peer.ip().to_canonical();
    let ip = if given.is_unspecified() {
        let mut bound = local.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
        bound.find(|ip| ip.is_ipv4() == given.is_ipv4()).unwrap_or(match given {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        })
    } else if given == peer.ip() {
        return peer; // an IPv6 address keeps its scope
    } else {
        given
    };
    SocketAddr::new(ip, peer.port())
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}
