//! The engine: owns a socket, polls it, and drives sessions and transport.
//!
//! One step takes submissions, receives, runs what is due and sends; [`Engine::step`] is the whole
//! loop. What it calls lies in the files of this folder: `submit` (from applications), `poll` (of the
//! socket) and `receive` (what came), `connect` (sessions that come and go) and `path` (their MTU), `unanswered`
//! (attempts to connect that fail), `places` (connections by index), `siblings` (other engines of the host),
//! `send` (to the sockets), `unsendable` (packets that cannot be built), `departures` (when packets left),
//! `held_off` (whether timers may run), `shared` (what applications see of it), `failure` (its end by a panic).

mod connect;
mod departures;
mod failure;
mod held_off;
mod path;
mod places;
mod poll;
mod receive;
mod send;
mod shared;
mod siblings;
mod submit;
mod unanswered;
mod unsendable;

use std::collections::BTreeSet;
use std::mem;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use apus_transport::{Endpoint, EndpointConfig};
use apus_units::{FlowId, OpId, Span, Time};
use slab::Slab;

use crate::backlog::Backlog;
use crate::capture::Capture;
use crate::clock::Clock;
use crate::config::{Config, Mode};
use crate::containment::contain;
use crate::driver::Driver;
use crate::error::{Cause, StartError};
use crate::ops::{Deadline, Pending};
use crate::region::{LastRegion, Regions};
use crate::session::{Randomness, SessionId, Sessions};
use crate::stats::add;
use crate::sys::{ReceiveBuffers, Socket};

use connect::Connection;
use departures::Departures;
use held_off::HeldOff;
use places::Places;
use poll::Polled;
use send::Outbox;
pub(crate) use shared::{Command, EngineShared};
pub(crate) use siblings::Siblings;
use unsendable::Refusals;

/// Batches of datagrams received per step at most, so that timers and sends have their turn.
/// deviation: no source; 16 datagrams take some 10 us, 16 full aggregates 250 us.
const RECEIVE_BATCHES: usize = 4;
/// Submissions taken per step at most. deviation: no source; they take some 50 us.
const SUBMISSIONS: usize = 256;
/// Steps without work per reading of the clock. A timer is late by that many empty polls at most.
/// deviation: no source; at 8 the clock takes less than 2 % of an idle step (docs/dev/performance-notes.md).
const STEPS_PER_CLOCK_READ: u32 = 8;
/// An engine that never sleeps offers its core to other threads once it has had nothing to do for this
/// long: where it has the core to itself that costs nothing, and where it has not, the scheduler would
/// take the core away for milliseconds. deviation: no source; half the spin of the hybrid mode. On any machine it only
/// decides when the core is offered, not what is sent.
const OFFER_AFTER: Span = Span::from_us(50);
/// How often regions that were withdrawn are looked at. deviation: no source; short for who waits for the
/// memory, long for an engine.
const HOUSEKEEPING: Span = Span::from_ms(10);

/// An op under way.
struct OpEntry {
    pending: Pending,
    flow: FlowId,
    op: OpId,
    /// What ended it, if this side did.
    cause: Option<Cause>,
}

/// Whose a flow is.
#[derive(Clone, Copy)]
struct Owner {
    session: SessionId,
    /// Its place among the flows of the connection.
    place: usize,
}

/// One engine.
pub(crate) struct Engine {
    index: u32,
    config: Config,
    shared: Arc<EngineShared>,
    siblings: Arc<Siblings>,
    socket: Socket,
    clock: Clock,
    sessions: Sessions,
    endpoint: Endpoint,
    regions: Arc<Regions>,
    last_region: LastRegion,
    seen_withdrawals: u64,
    next_housekeeping: Time,
    /// By [`SessionId::index`].
    connections: Places<Connection>,
    /// Whose each flow is, by its number.
    owners: Vec<Option<Owner>>,
    ops: Slab<OpEntry>,
    /// Of ops that are under way or wait; none outlives its op.
    deadlines: BTreeSet<Deadline>,
    buffers: Option<Box<ReceiveBuffers>>,
    outbox: Outbox,
    /// Steps without work since the clock was read.
    idle_steps: u32,
    held_off: HeldOff,
    /// Datagrams since the last acknowledgement.
    unanswered: u64,
    /// Whether the socket had more than the last step took.
    unread: bool,
    /// Whether the sessions have counted something that is not yet seen.
    unpublished: bool,
    /// If the kernel is to say when packets left.
    departures: Option<Departures>,
    /// When probes of paths are due.
    next_probe: Time,
    capture: Option<Capture>,
    backlog: Backlog,
    /// Reads of peers that were refused and that the peers may not know of.
    refusals: Refusals,
    /// When the next dropped handshake may be noted.
    next_note: Time,
    spin: Duration,
    /// In inline mode, the engine itself as connections know it.
    inline: Option<Weak<Mutex<Self>>>,
}

impl Engine {
    pub(crate) fn new(
        config: &Config,
        index: u32,
        address: SocketAddr,
        siblings: Arc<Siblings>,
        regions: Arc<Regions>,
        backlog: Backlog,
    ) -> Result<Self, StartError> {
        let socket = Socket::open(address, config.socket_buffer, config.engines > 1)
            .map_err(|error| StartError::Bind(address, error))?;
        // Without them the clock is read after the poll, which hides the engine's own delay.
        socket
            .timestamp(config.departure_timestamps)
            .map_err(|e| StartError::System("have received datagrams timestamped", e))?;
        let local = socket.local_addr().map_err(|error| StartError::Bind(address, error))?;
        let clock = Clock::new(config.nic_clock.as_deref())
            .map_err(|e| StartError::System("read the NIC's clock", e))?;
        let sessions = Sessions::new(config.session, config.keys.clone(), Randomness::System)
            .map_err(|what| StartError::Setting(what.to_owned()))?;
        let endpoint = Endpoint::new(EndpointConfig {
            max_payload: 1024,
            max_ops: config.max_ops,
            ..EndpointConfig::default()
        });
        let shared = EngineShared::new(config.submission_ring as usize, local)
            .map_err(|e| StartError::System("make an eventfd", e))?;
        Ok(Self {
            index,
            config: config.clone(),
            shared: Arc::new(shared),
            siblings,
            socket,
            clock,
            sessions,
            endpoint,
            regions,
            last_region: LastRegion::default(),
            seen_withdrawals: 0,
            next_housekeeping: Time::MAX,
            connections: Places::new(),
            owners: Vec::new(),
            ops: Slab::new(),
            deadlines: BTreeSet::new(),
            buffers: Some(Box::new(ReceiveBuffers::new())),
            outbox: Outbox::new(),
            idle_steps: 0,
            held_off: HeldOff::new(),
            unanswered: 0,
            unread: false,
            unpublished: false,
            next_probe: Time::MAX,
            departures: config.departure_timestamps.then(Departures::default),
            capture: config.capture.clone(),
            backlog,
            refusals: Refusals::new(),
            next_note: Time::ZERO,
            spin: Duration::ZERO,
            inline: None,
        })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    pub(crate) fn shared(&self) -> Arc<EngineShared> {
        Arc::clone(&self.shared)
    }

    /// How long those who wait for it spin.
    pub(crate) fn set_spin(&mut self, spin: Duration) {
        self.spin = spin;
    }

    /// In inline mode, how connections reach it.
    pub(crate) fn set_driver(&mut self, this: Option<Weak<Mutex<Self>>>) {
        self.inline = this;
    }

    /// How the connections that it makes wait; `None` if it is being taken down.
    fn driver(&self) -> Option<Driver> {
        match &self.inline {
            None => Some(Driver::Threads { spin: self.spin }),
            Some(this) => this.upgrade().map(Driver::Inline),
        }
    }

    /// Runs until it is stopped, or panics.
    pub(crate) fn run(&mut self) {
        if contain(|| self.work()).is_none() {
            self.fail();
        }
    }

    /// Ends the engine. Returns its socket if other engines share the port: while it is open, the kernel divides peers
    /// among the engines as before, so that an engine that fails ends no connection of another.
    pub(crate) fn end(self) -> Option<Socket> {
        (self.config.engines > 1).then_some(self.socket)
    }

    fn work(&mut self) {
        let mut idle_since = self.clock.now();
        while !self.shared.is_stopped() {
            if self.next_step() {
                idle_since = self.clock.now();
                continue;
            }
            let patience = match self.config.mode {
                Mode::Spinning | Mode::Inline => OFFER_AFTER,
                Mode::Hybrid { spin } => Span::from_ns(spin.as_nanos() as u64),
                Mode::Blocking => Span::ZERO,
            };
            if self.clock.now().since(idle_since) < patience {
                continue;
            }
            if matches!(self.config.mode, Mode::Spinning | Mode::Inline) {
                std::thread::yield_now();
                continue;
            }
            // Nothing that is due may be slept over.
            if !self.do_step(true) {
                self.sleep(self.clock.now());
            }
            idle_since = self.clock.now();
        }
        self.end_all();
    }

    /// Does what there is to do now; returns whether there was anything. A panic ends the engine, not the
    /// caller, who may have nothing to do with it.
    pub(crate) fn step(&mut self) -> bool {
        if self.shared.has_failed() {
            self.shared.drain();
            return false;
        }
        contain(|| self.next_step()).unwrap_or_else(|| {
            self.fail();
            false
        })
    }

    /// One step, with a look at the clock now and then.
    fn next_step(&mut self) -> bool {
        self.idle_steps += 1;
        self.do_step(self.idle_steps >= STEPS_PER_CLOCK_READ)
    }

    /// One step, with what the clock makes due if `timed`, or if there is anything else.
    fn do_step(&mut self, timed: bool) -> bool {
        if self.shared.is_stopped() {
            self.end_all();
            return false;
        }
        let submitted = self.take_submissions();
        if let Some(now) = submitted {
            // What was submitted does not wait for a look at the socket.
            self.send_at(now);
        }
        let mut busy = submitted.is_some();
        let polled = self.poll_socket();
        busy |= polled != Polled::Empty;
        if polled == Polled::Single {
            // Its answer and the end of its op go before timers. If it only ended an op, the application that
            // waits for it goes first.
            let ended = self.complete();
            let answered = self.send();
            if ended && !answered && !timed {
                return true;
            }
        }
        if !(timed || busy || self.endpoint.has_transmit()) && self.outbox.is_empty() {
            return false;
        }
        self.idle_steps = 0;
        let now = self.clock.now();
        if !self.held_off.must_read(now, self.unread) {
            self.run_due(now);
        }
        self.take_session_events(now);
        if mem::take(&mut self.unpublished) {
            self.shared.stats.sessions.publish(self.sessions.counters());
        }
        busy |= self.send();
        busy |= self.complete();
        busy
    }

    /// Timers of transport and sessions, deadlines, clocks, withdrawn regions.
    fn run_due(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        if self.sessions.next_timeout().is_some_and(|at| at <= now) {
            self.sessions.handle_timeout(now);
            self.shared.stats.sessions.publish(self.sessions.counters());
        }
        self.clock.compare(now);
        self.end_late_ops(now);
        self.probe_paths(now);
        self.repeat_refusals(now);
        let withdrawals = self.regions.withdrawals.load(Ordering::Acquire);
        if withdrawals != self.seen_withdrawals || now >= self.next_housekeeping {
            self.seen_withdrawals = withdrawals;
            self.last_region.forget();
            self.refuse_revoked(now);
            let held = self.regions.let_go(self.index, |key| self.endpoint.answers_from(key));
            self.next_housekeeping = if held { now + HOUSEKEEPING } else { Time::MAX };
        }
    }

    /// When something is due without anything else happening.
    fn next_due(&mut self, now: Time) -> Time {
        let transport = self.endpoint.next_timeout().unwrap_or(Time::MAX);
        let sessions = self.sessions.next_timeout().unwrap_or(Time::MAX);
        let deadline = self.deadlines.first().map_or(Time::MAX, |d| d.at);
        // Clocks are compared as long as somebody may send; an idle engine is left asleep.
        let clocks = if self.connections.is_empty() { Time::MAX } else { self.clock.compare(now) };
        transport
            .min(sessions)
            .min(deadline)
            .min(clocks)
            .min(self.next_housekeeping)
            .min(self.next_probe)
            .min(self.refusals.next)
    }

    /// Sleeps until a datagram, a submission, or the next timer.
    fn sleep(&mut self, now: Time) {
        let due = self.next_due(now);
        if due <= now || self.endpoint.has_transmit() {
            return;
        }
        let timeout = (due != Time::MAX).then(|| due.since(now));
        add(&self.shared.stats.sleeps, 1);
        self.shared.sleep(&self.socket, timeout, !self.outbox.is_empty());
        self.held_off.on_slept(due, self.clock.now());
    }

    /// Tells the application how ops ended.
    fn complete(&mut self) -> bool {
        let mut any = false;
        while let Some(completion) = self.endpoint.poll_completion() {
            any = true;
            self.on_completion(&completion);
        }
        any
    }

    /// Stops: every connection ends, and with it every op.
    fn end_all(&mut self) {
        let now = self.clock.now();
        let sessions: Vec<SessionId> = self.connections.values().map(|c| c.session).collect();
        for session in sessions {
            self.end_connection(now, session, crate::error::End::Stopped);
            self.sessions.close(now, session);
        }
        // Peers are told, as far as the socket takes it.
        self.send();
        self.complete();
        self.leave_regions();
        if self.inline.is_some() {
            self.backlog.close();
        }
        self.shared.drain();
    }
}
