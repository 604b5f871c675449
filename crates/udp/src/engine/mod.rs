//! The runtime engine: moves datagrams between a socket and the protocol, and runs its timers.
//!
//! [`Engine::step`] is one round of the event loop. [`crate::driver`] decides which thread calls it, and how that
//! thread sleeps between rounds.
//!
//! An engine consists of components that own their state and do not depend on the engine:
//!
//! ```text
//! Engine::step
//!  +- Mailbox       commands of applications                       (crate::mailbox)
//!  +- Receiver      polls of the socket                            receiver
//!  +- Protocol      effects of one received packet; sealing        protocol
//!  |   +- Connections   sessions, handshakes, ends; path MTU; other engines of the host
//!  |   |                                                           connections
//!  |   +- OpTable       ops, deadlines, completions; the transport op_table, refusals
//!  |   +- RegionAccess  regions of the host                        regions
//!  |   +- Inbox         messages of one connection                 inbox
//!  +- Transmitter   order of packets, bursts, departures           transmitter, outbox, departures
//!  +- Descheduled-  timers of an engine that lost its core         descheduled
//!      Detector
//! Network           socket, clocks and routes, passed to all       network
//! ```

mod connections;
mod departures;
mod descheduled;
mod endpoint;
mod inbox;
mod log;
mod network;
mod op_table;
mod outbox;
mod protocol;
mod receiver;
mod refusals;
mod regions;
mod rest;
#[cfg(test)]
mod tests;
mod transmitter;
#[cfg(any(test, feature = "worlds"))]
mod usage;
#[cfg(any(test, feature = "worlds"))]
mod virtual_network;

use std::net::SocketAddr;
use std::sync::Arc;

use apus_algorithms::balancers;
use apus_cc::AlgorithmFactory;
use apus_transport::EndpointConfig;
use apus_units::{Span, Time};

use crate::backlog::Backlog;
use crate::clock::LIFETIME;
use crate::config::{Config, Mode};
use crate::containment::contain;
use crate::error::{End, StartError};
use crate::mailbox::{Command, ConnectionCommand, Mailbox};
use crate::pending::Pending;
use crate::region::{LockedRegion, Regions};
use crate::session::{KeyRing, Randomness, SessionId, Sessions};
use crate::sys::Sockets;

use connections::Connections;
pub(crate) use connections::Siblings;
use descheduled::DescheduledDetector;
use endpoint::Endpoint;
use network::{KernelNetwork, Network};
use op_table::OpTable;
use protocol::{Delivery, Protocol};
use receiver::{Polled, Receiver};
use regions::RegionAccess;
pub(crate) use rest::Rest;
use transmitter::Transmitter;
#[cfg(any(test, feature = "worlds"))]
pub use usage::Usage;
#[cfg(any(test, feature = "worlds"))]
pub(crate) use virtual_network::VirtualNetwork;

/// Maximum number of ops taken from the mailbox per step. deviation: no source; they take about 50 us.
const MAX_OPS_PER_STEP: usize = 256;
/// Number of idle steps per reading of the clock. A timer is late by at most this number of empty polls. deviation: no
/// source; at 8 the clock takes less than 2 % of an idle step (docs/dev/performance-notes.md).
const STEPS_PER_CLOCK_READ: u32 = 8;

/// Number of consecutive retransmission timeouts of equal length before the timeout doubles. Also the number of
/// consecutive round trips in which packets arrive trimmed and none arrives whole, before the flow waits for its
/// timeout. deviation: no source; a lost packet seldom causes as many.
const BACKS_OFF_AFTER: u32 = 8;

/// Maximum number of datagrams received in a step whose acknowledgements may be held: a message, and the
/// acknowledgement of the message that it answers.
const MAX_HELD_DATAGRAMS: u64 = 2;

/// State that the engines of a host share.
#[derive(Clone)]
pub(crate) struct HostShared {
    pub(crate) regions: Arc<Regions>,
    pub(crate) backlog: Backlog,
}

/// A runtime engine.
pub(crate) struct Engine<N = KernelNetwork> {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) network: N,
    receiver: Receiver,
    protocol: Protocol,
    transmitter: Transmitter,
    descheduled: DescheduledDetector,
    /// Idle steps since the last reading of the clock.
    idle_steps: u32,
    /// Whether counters of the sessions have changed since they were published.
    unpublished: bool,
    /// Whether several engines share the port.
    shares_port: bool,
    /// Whether the engine is in inline mode, so that no thread drops it when it ends.
    inline: bool,
    /// Whether the last step held acknowledgements.
    holds: bool,
}

impl Engine {
    /// Opens an engine at `address`. Its further ports are numbered from `next_port` upwards, or chosen by the system.
    ///
    /// # Errors
    /// If the address cannot be bound, or the system lacks something that the settings require.
    pub(crate) fn open(
        config: &Config,
        address: SocketAddr,
        next_port: Option<u16>,
        siblings: Siblings,
        host: HostShared,
    ) -> Result<Self, StartError> {
        let network = KernelNetwork::open(config, address, next_port)?;
        let status = Arc::clone(&network.status);
        let mailbox = Mailbox::new(config.submission_ring as usize, status)
            .map_err(|e| StartError::System("make an eventfd", e))?;
        Self::new(config, network, Arc::new(mailbox), siblings, host, Randomness::System)
    }

    /// Ends the engine. Returns its sockets if other engines share the port. While these sockets are open, the kernel
    /// divides peers among the engines as before, so that the failure of one engine ends no connection of another.
    pub(crate) fn end(self) -> Option<Arc<Sockets>> {
        self.shares_port.then(|| self.sockets())
    }

    /// Returns `true` if the socket reports the departures of bursts.
    pub(crate) fn reports_departures(&self) -> bool {
        self.transmitter.reports_departures()
    }

    /// Returns the start of the engine's clock, in nanoseconds of the monotonic clock.
    pub(crate) fn epoch(&self) -> u64 {
        self.network.epoch()
    }

    /// Returns the sockets.
    pub(crate) fn sockets(&self) -> Arc<Sockets> {
        Arc::clone(self.network.sockets())
    }
}

impl<N: Network> Engine<N> {
    pub(crate) fn new(
        config: &Config,
        network: N,
        mailbox: Arc<Mailbox>,
        siblings: Siblings,
        host: HostShared,
        randomness: impl Into<Randomness>,
    ) -> Result<Self, StartError> {
        let sessions = Sessions::new(config.session.clone(), config.keys.clone(), randomness)
            .map_err(StartError::Setting)?;
        let endpoint = Endpoint::new(EndpointConfig {
            max_payload: 1024,
            max_ops: config.max_ops,
            backs_off_after: BACKS_OFF_AFTER,
            new_after_timeouts: true,
            ..EndpointConfig::default()
        });
        let status = Arc::clone(&mailbox.status);
        // The sessions alone hold the keys, so that replaced keys are wiped from memory.
        let shared_config = Arc::new(Config { keys: KeyRing::insecure(), ..config.clone() });
        let one_path = balancers::build("ecmp", None, &[], None, &[])
            .map_err(|error| StartError::Setting(error.to_string()))?;
        let one_path = one_path.policy().clone();
        let regions = RegionAccess::new(siblings.engine, host.regions);
        let connections = Connections::new(
            sessions,
            shared_config,
            Arc::clone(&mailbox),
            siblings,
            host.backlog,
            one_path,
        );
        let ops = OpTable::new(endpoint, Arc::clone(&status), config.session.retry, config.max_ops);
        Ok(Self {
            mailbox,
            network,
            receiver: Receiver::new(),
            protocol: Protocol {
                connections,
                ops,
                regions,
                status,
                dscp: config.dscp,
                layout: config.algorithm.fields(),
                urgent: false,
            },
            transmitter: Transmitter::new(config.departure_timestamps),
            descheduled: DescheduledDetector::new(),
            idle_steps: 0,
            unpublished: false,
            shares_port: config.engines > 1,
            inline: config.mode == Mode::Inline,
            holds: false,
        })
    }

    pub(crate) fn now(&self) -> Time {
        self.network.now()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.mailbox.status.is_stopped()
    }

    /// As [`Engine::try_step`], but a panic ends the engine instead of reaching the caller, which may be unrelated to
    /// the panic.
    #[inline]
    pub(crate) fn step(&mut self, timed: bool) -> bool {
        self.contained(|engine| engine.try_step(timed))
    }

    #[inline]
    fn contained(&mut self, step: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.mailbox.status.has_failed() {
            self.mailbox.drain();
            return false;
        }
        contain(|| step(self)).unwrap_or_else(|| {
            self.fail();
            false
        })
    }

    /// As [`Engine::step`], for a thread that waits. Holds the acknowledgements of the received datagrams if only few
    /// have arrived and `ended` reports the end of the wait. Held acknowledgements are sent in the next step or
    /// [`Engine::flush`], together with what the thread submits next.
    ///
    /// Acknowledgements of answers to reads and atomic ops may always be held, because no application waits for them.
    /// Other acknowledgements are held only if the thread is `expected` to submit something and to wait again at once.
    /// The holding time counts as `remote_queuing` (t4 - t2), and therefore as endpoint delay at the peer (Swift §3.1).
    pub(crate) fn step_and_hold(&mut self, expected: bool, ended: impl Fn() -> bool) -> bool {
        self.contained(|engine| {
            engine.try_step_until(true, |protocol| (expected || !protocol.urgent) && ended())
        })
    }

    /// Returns `true` if the last step held acknowledgements.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    /// Runs one round of the event loop. Returns `true` if there was anything to do. With `timed`, the step reads the
    /// clock and runs due timers even if it is idle otherwise; without it, only every few idle steps do so.
    ///
    /// # Panics
    /// If application code panics. The caller must then call [`Engine::fail`].
    pub(crate) fn try_step(&mut self, timed: bool) -> bool {
        self.try_step_until(timed, |_| false)
    }

    #[inline]
    fn try_step_until(&mut self, timed: bool, may_hold: impl Fn(&Protocol) -> bool) -> bool {
        self.holds = false;
        if self.is_stopped() {
            self.stop();
            return false;
        }
        self.idle_steps += 1;
        let timed = timed || self.idle_steps >= STEPS_PER_CLOCK_READ;
        let commanded = self.take_commands();
        if let Some(now) = commanded {
            self.send(now); // before the poll, because the poll takes time
        }
        let polled = self.poll_socket();
        let mut busy = commanded.is_some() || polled != Polled::Empty;
        if polled != Polled::Empty {
            // Receivers of messages may have submitted ops. They are sent together with the acknowledgements of these
            // messages.
            self.take_commands();
        }
        let few = (1..=MAX_HELD_DATAGRAMS).contains(&self.receiver.received);
        if polled == Polled::Single || few {
            // Completions and answers precede timers. If there is no answer to send, return to the waiting application
            // before the timers.
            let completed = self.complete();
            if few && self.owes_acks_only() && may_hold(&self.protocol) {
                self.holds = true;
                return true;
            }
            let answered = self.has_work() && self.send(self.network.now());
            if completed && !answered && !timed {
                return true;
            }
        }
        if !(timed || busy || self.has_work()) {
            return false;
        }
        self.idle_steps = 0;
        let now = self.network.now();
        if !self.descheduled.must_read(now, self.receiver.unread) {
            self.handle_timers(now);
        }
        self.protocol.handle_session_events(now, &self.network);
        self.publish();
        busy |= self.has_work() && self.send(self.network.now());
        busy |= self.complete();
        busy
    }

    fn has_work(&self) -> bool {
        self.transmitter.has_work(&self.protocol)
    }

    /// Returns `true` if acknowledgements, and nothing else, can be sent now.
    fn owes_acks_only(&self) -> bool {
        let Protocol { connections, ops, .. } = &self.protocol;
        let sessions = &connections.sessions;
        let others = sessions.has_transmit() || sessions.has_event() || ops.endpoint.has_data();
        ops.endpoint.has_ack() && !others && !self.transmitter.is_blocked()
    }

    #[inline]
    fn send(&mut self, now: Time) -> bool {
        self.transmitter.send(now, &mut self.protocol, &self.network)
    }

    /// Receives datagrams and hands them to the protocol.
    #[inline]
    fn poll_socket(&mut self) -> Polled {
        let Self { receiver, protocol, transmitter, network, .. } = self;
        // Reports of departures precede datagrams, so that acknowledgements find corrected values of t1.
        transmitter.take_departures(protocol, network);
        protocol.urgent = false;
        let status = Arc::clone(&protocol.status);
        // Waiting time of the first datagram of the poll, which is the oldest one at its port.
        let mut waited = None;
        let polled = receiver.poll(network, &status.stats, |meta, bytes| {
            waited.get_or_insert_with(|| {
                let now = network.now();
                (now, (meta.port, now.since(network.received_at(meta, now))))
            });
            // The datagrams of an aggregate usually belong to one op.
            let likely = if meta.segment < bytes.len() { protocol.regions.last() } else { None };
            let mut locked = LockedRegion::new(likely.as_deref());
            let mut datagrams = 0;
            for datagram in bytes.chunks_mut(meta.segment.max(1)) {
                datagrams += 1;
                let now = network.now(); // t3, t6
                let outbox = transmitter.outbox();
                let delivery = Delivery { meta, locked: &mut locked, outbox };
                if let Some(probe) = protocol.handle_datagram(now, delivery, datagram, network) {
                    transmitter.put_probe_answer(now, probe, protocol);
                }
            }
            drop(locked);
            transmitter.on_received(datagrams, protocol, network);
        });
        let sessions = &mut protocol.connections.sessions;
        if let Some((now, waited)) = waited {
            sessions.on_poll(now, waited, !receiver.unread);
        } else if sessions.counts_shares() {
            sessions.on_poll(network.now(), (0, Span::ZERO), true);
        }
        self.descheduled.on_read(self.receiver.received);
        self.unpublished |= polled != Polled::Empty;
        polled
    }

    /// Takes commands of applications. Returns the current time if there were any.
    #[inline]
    fn take_commands(&mut self) -> Option<Time> {
        if !self.mailbox.has_commands() {
            return None;
        }
        let (control, ops) = self.mailbox.waiting();
        let now = self.network.now();
        // If there are control commands, take all ops: a connection closes only after the ops that were submitted
        // before.
        let ops = if control == 0 { ops.min(MAX_OPS_PER_STEP) } else { ops };
        for _ in 0..ops {
            let Some(pending) = self.mailbox.take_op() else { break };
            self.on_op(now, pending);
        }
        for _ in 0..control {
            let Some(command) = self.mailbox.take_control() else { break };
            self.on_command(now, command);
        }
        // A single op takes negligible time, so the earlier reading of the clock is still good.
        Some(if ops > 1 || control > 0 { self.network.now() } else { now })
    }

    fn on_command(&mut self, now: Time, command: Command) {
        let Protocol { connections, ops, .. } = &mut self.protocol;
        match command {
            Command::Connect(request) => connections.connect(now, request, ops, &self.network),
            Command::Keys(keys) => connections.set_keys(now, keys, ops, &self.network),
            Command::ServedBy { peer, engine } => connections.hand_over(now, peer, engine, ops),
            Command::Drain { done } => connections.begin_drain(now, done, ops),
            Command::Report { reply } => {
                // The application may have given up its wait.
                let _ = reply.send(connections.report(&ops.endpoint));
            }
            Command::Of(state, command) => match (state.ended(), command) {
                (None, command) => self.on_command_of(now, state.session, command),
                (Some(_), ConnectionCommand::Attach(attach)) => drop(attach.deliver_queued()),
                // Dropping the command ends the application's wait for the answer.
                (Some(_), _) => {}
            },
        }
    }

    fn on_command_of(&mut self, now: Time, session: SessionId, command: ConnectionCommand) {
        let Protocol { connections, ops, .. } = &mut self.protocol;
        match command {
            ConnectionCommand::Cancel { ticket } => {
                ops.cancel(now, connections.flows(session), ticket);
            }
            ConnectionCommand::Record(qlog) => connections.begin_record(now, session, &qlog),
            ConnectionCommand::Close { closed } => {
                connections.begin_close(session, closed, ops);
                self.close_if_idle(now, session);
            }
            ConnectionCommand::Attach(attach) => match connections.inbox(session) {
                Some(inbox) => inbox.attach(attach),
                None => drop(attach.deliver_queued()),
            },
            ConnectionCommand::Paths { reply } => {
                // The application may have given up its wait. Without a result, the connection has ended.
                if let Some(paths) = connections.paths(session, &ops.endpoint) {
                    let _ = reply.send(paths);
                }
            }
            ConnectionCommand::Inspect { flow, reply } => {
                let flow = connections.flows(session).get(flow);
                let state = flow
                    .and_then(|&flow| ops.endpoint.snapshot(flow).zip(ops.endpoint.counters(flow)));
                if let Some(state) = state {
                    // The application may have given up its wait.
                    let _ = reply.send(state);
                }
            }
        }
    }

    #[inline]
    fn on_op(&mut self, now: Time, pending: Pending) {
        let Protocol { connections, ops, .. } = &mut self.protocol;
        let session = pending.connection.session;
        let live = pending.connection.ended().is_none();
        match connections.flows(session).get(pending.flow).filter(|_| live) {
            Some(&flow) => {
                ops.submit(now, flow, pending);
                connections.watch_path(now);
            }
            None => ops.end_ended(pending),
        }
    }

    /// Runs the due timers: transport, sessions, deadlines, probes, comparison of clocks, withdrawn regions.
    fn handle_timers(&mut self, now: Time) {
        let Protocol { connections, ops, .. } = &mut self.protocol;
        if now >= Time::ZERO + LIFETIME {
            // The next step stops the engine.
            connections.log.outlived();
            return self.mailbox.stop();
        }
        ops.endpoint.handle_timeout(now);
        if connections.records() {
            connections.record_timeouts(now, &ops.endpoint);
        }
        if connections.sessions.next_timeout().is_some_and(|at| at <= now) {
            connections.sessions.handle_timeout(now);
            self.unpublished = true;
        }
        self.network.compare_clocks(now);
        ops.handle_deadlines(now);
        connections.handle_drain(now, ops);
        connections.log.handle_timeout(now);
        let room = self.transmitter.room();
        for probe in connections.due_probes(now, ops, &self.network, room) {
            self.transmitter.put_probe(now, probe, &mut self.protocol);
        }
        let Protocol { connections, ops, regions, .. } = &mut self.protocol;
        ops.repeat_refusals(now);
        let caller = |flow| connections.owner(flow).and_then(|o| connections.caller(o.session));
        regions.handle_withdrawals(now, ops, caller);
    }

    /// Reports the completions of ops. Returns `true` if there were any. Closes the connections that waited for their
    /// last op.
    #[inline]
    fn complete(&mut self) -> bool {
        let any = self.protocol.ops.complete();
        while let Some(session) = self.protocol.ops.poll_idle() {
            self.close_if_idle(self.network.now(), session);
        }
        any
    }

    #[cold]
    fn close_if_idle(&mut self, now: Time, session: SessionId) {
        if !self.protocol.connections.can_close(session, &self.protocol.ops) {
            return;
        }
        // First send the acknowledgements that the peer still needs.
        self.send(now);
        self.protocol.connections.sessions.close(now, session);
        // Notify the peer now, because possibly no thread drives the engine later.
        self.send(now);
        self.protocol.connections.remove(now, session, End::ClosedHere, &mut self.protocol.ops);
    }

    fn publish(&mut self) {
        if std::mem::take(&mut self.unpublished) {
            let counters = self.protocol.connections.sessions.counters();
            self.mailbox.status.stats.sessions.publish(counters);
        }
    }

    /// Stops the engine: ends every connection and every op.
    pub(crate) fn stop(&mut self) {
        let now = self.network.now();
        self.protocol.connections.stop(now, &mut self.protocol.ops);
        // Notify as many peers as the socket has room for.
        while self.send(now) && self.protocol.connections.sessions.has_transmit() {}
        self.complete();
        self.leave();
    }

    /// Ends every connection and op after a panic. The state of the transport may be inconsistent, so it is not used.
    /// All ops end as unknown, all connections as [`End::EngineFailed`], and all waits end.
    #[cold]
    pub(crate) fn fail(&mut self) {
        // Ops that are dropped from now on also end as unknown.
        self.mailbox.status.set_failed();
        self.mailbox.stop();
        contain(|| self.protocol.connections.log.failed());
        self.protocol.connections.set_failed();
        contain(|| {
            let now = self.network.now();
            self.protocol.connections.close_sessions(now);
            self.transmitter.send_session_packets(now, &mut self.protocol, &self.network);
        });
        self.protocol.ops.fail();
        self.protocol.connections.fail();
        contain(|| self.leave());
    }

    /// Stops using the resources that the engines of the host share.
    fn leave(&mut self) {
        self.protocol.regions.leave();
        if self.inline {
            // An engine without a thread is not dropped now, so its end of the backlog's channel would stay open.
            self.protocol.connections.close_backlog();
        }
        self.mailbox.drain();
    }
}
