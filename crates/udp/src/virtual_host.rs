//! Hosts in virtual time over a network that the program simulates: the engines, sessions and connections of
//! [`Host`](crate::Host) without sockets, clocks and threads.
//!
//! The owner of a [`VirtualHost`] acts as its kernel. The owner moves time, puts datagrams into the sockets, runs steps of the
//! engines, and takes the datagrams that they have sent. An engine that has nothing to do states until when it would sleep
//! ([`VirtualHost::rest`]). The owner must run the engine again at that time, or when a datagram arrives, a command waits, or the
//! socket has room again. The owner must not run the engine at other times, so that tests detect a forgotten wake-up. Connections
//! are the usual ones, without their calls that wait.
//!
//! A seed and the order of calls determine everything that a host does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use apus_units::{FlowId, Time};

use crate::accept::Towards;
use crate::backlog::{Unaccepted, backlog};
use crate::config::Config;
use crate::connection::Connection;
use crate::driver::Driver;
use crate::engine::{Engine, HostShared, Siblings, VirtualNetwork};
use crate::error::{ConnectError, StartError};
use crate::grant::{Access, Grant};
use crate::mailbox::{Command, ConnectRequest, Mailbox, Opened};
use crate::region::{Memory, Region, Regions};
use crate::session::{Extended, KeyRing, Randomness, SessionId};
use crate::status::EngineStatus;
use crate::sys::Meta;

pub use crate::engine::Usage;

/// A datagram, or an aggregate of datagrams, as a socket receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Source address.
    pub from: SocketAddr,
    /// Number of the port at which it arrived ([`VirtualHost::ports`]).
    pub port: u8,
    /// DSCP and ECN.
    pub tos: u8,
    /// TTL, if known.
    pub ttl: Option<u8>,
    /// Length of each datagram except the last.
    pub segment: usize,
    /// Time at which the kernel received it, by the host's clock, if there is a timestamp.
    pub stamp: Option<Time>,
    /// Bytes of the datagrams.
    pub bytes: Vec<u8>,
}

/// A burst as an engine sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// DSCP and ECN.
    pub tos: u8,
    /// Bytes of each datagram.
    pub datagrams: Vec<Vec<u8>>,
}

/// Time until which an engine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Time at which the next timer is due; [`Time::MAX`] if there is none.
    pub due: Time,
    /// Whether room in the socket also ends the sleep.
    pub sending: bool,
}

/// A request for a connection.
pub struct Connecting {
    answer: oneshot::Receiver<Result<Opened, ConnectError>>,
    driver: Driver,
}

impl Connecting {
    /// Returns the answer, or `None` if there is none yet. Only the first call after the answer returns it.
    #[must_use]
    pub fn try_take(&self) -> Option<Result<Connection, ConnectError>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer.map(|opened| Connection::new(opened, self.driver.clone()))),
            Err(oneshot::TryRecvError::Empty) => None,
            Err(oneshot::TryRecvError::Disconnected) => Some(Err(ConnectError::Stopped)),
        }
    }
}

/// Second port of the first engine, unless the settings name one.
const FIRST_MORE: u16 = 20_000;

/// A host in virtual time. Dropping it simulates a crash: no peer is notified.
pub struct VirtualHost {
    pub(crate) engines: Vec<Engine<VirtualNetwork>>,
    pub(crate) regions: Arc<Regions>,
    pub(crate) accepted: async_channel::Receiver<Unaccepted>,
    driver: Driver,
}

impl VirtualHost {
    /// Starts a host at time `now` of its clock, with the engines of the first address of `config`. `seed` determines all keys.
    ///
    /// # Errors
    /// If a setting is impossible.
    pub fn start(config: &Config, seed: [u8; 32], now: Time) -> Result<Self, StartError> {
        config.check()?;
        let address = config.listen[0];
        let mut randomness = Randomness::from(seed);
        let mut draw = || randomness.bytes().map_or(seed, |bytes| *bytes);
        let regions = Arc::new(Regions::new(config.engines, draw()));
        let (backlog, accepted) = backlog(config.max_unaccepted);
        let shared = HostShared { regions: Arc::clone(&regions), backlog };
        let mut engines = Vec::new();
        let groups: Vec<Siblings> = Siblings::group(0..config.engines).collect();
        for siblings in &groups {
            let next = config.spreading.as_ref().and_then(|spreading| spreading.next_port);
            let more = config.own_ports() - 1; // at least one port
            let next = next.unwrap_or(FIRST_MORE) + siblings.engine as u16 * more; // few engines
            let ports: Vec<u16> =
                std::iter::once(address.port()).chain(next..next + more).collect();
            let network = VirtualNetwork::new(address, &ports[1..]);
            network.now.set(now);
            let status = EngineStatus::new(address, config.families_at(address), &ports);
            let mailbox = Mailbox::new(config.submission_ring as usize, Arc::new(status))
                .map_err(|e| StartError::System("make an eventfd", e))?;
            let mailbox = Arc::new(mailbox);
            engines.push(Engine::new(
                config,
                network,
                mailbox,
                siblings.clone(),
                shared.clone(),
                draw(),
            )?);
        }
        let mailboxes: Vec<_> = engines.iter().map(|engine| Arc::clone(&engine.mailbox)).collect();
        for siblings in groups {
            siblings.set_mailboxes(mailboxes.clone());
        }
        let (host, crowded) = (regions.host, Arc::new(AtomicBool::new(true)));
        let driver = Driver::Threads { host, spin: Duration::ZERO, crowded };
        Ok(Self { engines, regions, accepted, driver })
    }

    /// Returns the number of engines.
    #[must_use]
    pub fn engines(&self) -> usize {
        self.engines.len()
    }

    /// Sets the time of the host's clock. The clock never goes back.
    pub fn set_now(&self, now: Time) {
        for engine in &self.engines {
            engine.network.now.set(engine.network.now.get().max(now));
        }
    }

    /// Puts datagrams into the socket of an engine, at most 4. One receive call of the engine receives them together.
    pub fn put(&self, engine: usize, received: Vec<Received>) {
        let batch = received.into_iter().map(|received| {
            let Received { from, port, tos, ttl, segment, stamp, bytes } = received;
            let received_at = stamp.map(|at| i128::from(at.as_ps()));
            let meta = Meta::new(from, bytes.len());
            (Meta { port, segment, ttl, tos, received_at, ..meta }, bytes)
        });
        self.engines[engine].network.put(batch.collect());
    }

    /// Runs a step of an engine. Returns `true` if there was anything to do.
    pub fn step(&mut self, engine: usize) -> bool {
        self.engines[engine].step(true)
    }

    /// Returns the time until which an engine may sleep. Returns `None` if there is something to do at once.
    pub fn rest(&mut self, engine: usize) -> Option<Rest> {
        let engine = &mut self.engines[engine];
        // A socket stays readable while it contains datagrams.
        if engine.mailbox.has_commands() || engine.network.is_readable() {
            return None;
        }
        engine.rest().map(|rest| Rest { due: rest.due, sending: rest.sending })
    }

    /// Records that an engine has slept until it was woken, or until its timer at `due`.
    pub fn slept(&mut self, engine: usize, due: Time) {
        self.engines[engine].slept(due);
    }

    /// Returns `true` if commands of the application wait for an engine.
    #[must_use]
    pub fn has_commands(&self, engine: usize) -> bool {
        self.engines[engine].mailbox.has_commands()
    }

    /// Returns `true` if a panic has ended an engine.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.engines.iter().any(|engine| engine.mailbox.status.has_failed())
    }

    /// Takes the bursts that an engine has sent.
    #[must_use]
    pub fn take_sent(&self, engine: usize) -> Vec<Sent> {
        let network = &self.engines[engine].network;
        let sent = network.sent.take().into_iter();
        sent.map(|sent| {
            let from = network.address(sent.to.port);
            Sent { from, to: sent.to.address, tos: sent.tos, datagrams: sent.datagrams }
        })
        .collect()
    }

    /// Returns the addresses of an engine's ports, by number.
    #[must_use]
    pub fn ports(&self, engine: usize) -> Vec<SocketAddr> {
        let network = &self.engines[engine].network;
        (0u8..=u8::MAX).take(network.ports()).map(|number| network.address(number)).collect()
    }

    /// Sets whether the sockets have no room to send.
    pub fn set_full(&self, full: bool) {
        self.engines.iter().for_each(|engine| engine.network.full.set(full));
    }

    /// Makes the next sends of an engine fail with these errno values, in place of earlier ones; 0 is a send that succeeds.
    pub fn fail_sends(&self, engine: usize, errors: impl IntoIterator<Item = i32>) {
        *self.engines[engine].network.errors.borrow_mut() = errors.into_iter().collect();
    }

    /// Makes the next receive calls of an engine fail with these errno values, in place of earlier ones.
    pub fn fail_receives(&self, engine: usize, errors: impl IntoIterator<Item = i32>) {
        *self.engines[engine].network.receive_errors.borrow_mut() = errors.into_iter().collect();
    }

    /// Ends the failures that [`fail_sends`](Self::fail_sends) and [`fail_receives`](Self::fail_receives) have set.
    pub fn end_failures(&self) {
        self.engines.iter().for_each(|engine| engine.network.clear_errors());
    }

    /// Sets the kernel's properties: the MTU of paths, if known, the longest UDP payload that the interface carries, whether the
    /// kernel can segment bursts, and whether it reports their departures.
    pub fn set_kernel(&self, mtu: Option<u32>, longest: usize, segmentation: bool, reports: bool) {
        for engine in &self.engines {
            let network = &engine.network;
            network.mtu.set(mtu);
            network.longest.set(longest);
            network.segmentation.set(segmentation);
            network.reports.set(reports);
        }
    }

    /// Requests a connection from an engine.
    #[must_use]
    pub fn connect(&self, engine: usize, peer: SocketAddr, classes: &[u8]) -> Connecting {
        self.connect_to(engine, peer, None, classes)
    }

    /// Requests a connection from an engine to the peer of this name in the key ring. Otherwise as [`VirtualHost::connect`].
    #[must_use]
    pub fn connect_to(
        &self,
        engine: usize,
        peer: SocketAddr,
        name: Option<&str>,
        classes: &[u8],
    ) -> Connecting {
        let (reply, answer) = oneshot::channel();
        let towards = name.map_or(Towards::Any, |name| Towards::Named(name.to_owned()));
        let request = ConnectRequest { peer, classes: classes.to_vec(), towards, reply };
        self.engines[engine].mailbox.post(Command::Connect(request));
        Connecting { answer, driver: self.driver.clone() }
    }

    /// Accepts the next connection that a peer has opened. Returns `None` if there is none.
    #[must_use]
    pub fn try_accept(&self) -> Option<Connection> {
        let next = self.accepted.try_recv().ok()?;
        Some(Connection::new(next.connection, self.driver.clone()))
    }

    /// Registers a region.
    ///
    /// # Errors
    /// If 65536 regions are registered already.
    pub fn register(&self, memory: impl Memory + 'static, access: Access) -> io::Result<Region> {
        Region::new(&self.regions, Box::new(memory), access, None)
    }

    /// Registers a region that only the peers of `grant` may use.
    ///
    /// # Errors
    /// As [`VirtualHost::register`], and if the grant names a connection of another host.
    pub fn register_for(
        &self,
        memory: impl Memory + 'static,
        access: Access,
        grant: Grant,
    ) -> io::Result<Region> {
        Region::new(&self.regions, Box::new(memory), access, Some(grant))
    }

    /// Replaces the key ring. The new key ring must be of the same mode.
    pub fn set_keys(&self, keys: &KeyRing) {
        self.engines.iter().for_each(|engine| engine.mailbox.post(Command::Keys(keys.clone())));
    }

    /// Begins to end every connection in order, as [`Host::drain`](crate::Host::drain) does.
    pub fn drain(&self) {
        for engine in &self.engines {
            let (done, _) = oneshot::channel();
            engine.mailbox.post(Command::Drain { done });
        }
    }

    /// Stops the engines. A further step of each engine ends its connections and notifies the peers.
    pub fn stop(&self) {
        self.engines.iter().for_each(|engine| engine.mailbox.stop());
    }

    /// Returns the resources that an engine holds.
    #[must_use]
    pub fn usage(&self, engine: usize) -> Usage {
        self.engines[engine].usage()
    }

    /// Returns a fingerprint of the key under which a sent datagram was sealed, and the number of its packet. Returns `None` for
    /// datagrams that are not sealed.
    #[must_use]
    pub fn nonce_of(&self, engine: usize, datagram: &[u8]) -> Option<(u64, u64)> {
        self.engines[engine].nonce_of(datagram)
    }

    /// Seals a packet of any content under the keys of a connection, as a peer that has a key and breaks the protocol. Returns
    /// the number of the engine and the datagram, or `None` if the connection has ended or the packet is illegal.
    #[must_use]
    pub fn forge<'p>(
        &mut self,
        connection: &Connection,
        packet: impl Into<Extended<'p>>,
        payload: &[u8],
    ) -> Option<(usize, Vec<u8>)> {
        let (session, place) = self.session_of(connection)?;
        let datagram = self.engines[place].seal(session, packet.into(), payload)?;
        Some((place, datagram))
    }

    /// As [`forge`](Self::forge), seals a command of the session layer, given by its number, with any content.
    #[must_use]
    pub fn forge_command(
        &mut self,
        connection: &Connection,
        command: u8,
        content: &[u8],
    ) -> Option<(usize, Vec<u8>)> {
        let (session, place) = self.session_of(connection)?;
        let datagram = self.engines[place].seal_command(session, command, content)?;
        Some((place, datagram))
    }

    /// Returns the numbers that the peer of a connection has for its flows; packets to the peer name them.
    #[must_use]
    pub fn flows_at_peer(&self, connection: &Connection) -> Vec<FlowId> {
        let of_engine = |(session, place): (_, usize)| self.engines[place].flows_at_peer(session);
        self.session_of(connection).map_or(Vec::new(), of_engine)
    }

    /// Returns the session of a connection and the number of its engine.
    fn session_of(&self, connection: &Connection) -> Option<(SessionId, usize)> {
        let (session, mailbox) = connection.session();
        let place = self.engines.iter().position(|e| Arc::ptr_eq(&e.mailbox, mailbox))?;
        Some((session, place))
    }
}
