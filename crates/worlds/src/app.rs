//! The application of a host: it keeps connections, submits ops, and takes completions and messages.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use apus_udp::async_channel::{Receiver, Sender, unbounded};
use apus_udp::virtual_host::Connecting;
use apus_udp::{Bytes, Completion, Connection, Op, Request, SubmitError};
use apus_units::{Span, Time};

use crate::content::payload;
use crate::identity::name;
use crate::ledger::{Incarnation, State};
use crate::machine::Keys;
use crate::plan::{OpPlan, What};
use crate::trace::Named;
use crate::world::World;

/// Pause before an application tries to connect again.
const RETRY: Span = Span::from_ms(20);

/// How the end of an op is reported.
pub(crate) enum Handle {
    Op(Op),
    /// Through the queue of the application, with the ticket of the op.
    Queued(Connection, u64),
}

/// An op that has not ended.
pub(crate) struct Outstanding {
    handle: Handle,
    cancel_at: Option<Time>,
}

type Closing = Pin<Box<dyn Future<Output = ()>>>;

/// State of an application. It is lost when the process ends, except `waiting`.
pub(crate) struct App {
    /// Connections by peer; the newest connection is the last one.
    pub(crate) connections: BTreeMap<usize, Vec<Connection>>,
    /// Connections of unknown peers.
    strangers: Vec<Connection>,
    connecting: BTreeMap<usize, Connecting>,
    retry_at: BTreeMap<usize, Time>,
    pub(crate) outstanding: BTreeMap<usize, Outstanding>,
    /// Connections that are being closed, with their peers.
    closing: Vec<(usize, Closing)>,
    queue: (Sender<Completion>, Receiver<Completion>),
    /// Ops of this host that are not submitted yet, by time. They survive the process.
    pub(crate) waiting: BTreeSet<(Time, usize)>,
}

impl Default for App {
    fn default() -> Self {
        Self {
            connections: BTreeMap::new(),
            strangers: Vec::new(),
            connecting: BTreeMap::new(),
            retry_at: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            closing: Vec::new(),
            queue: unbounded(),
            waiting: BTreeSet::new(),
        }
    }
}

impl App {
    /// Starts a new process.
    pub(crate) fn restart(&mut self) {
        *self = Self { waiting: std::mem::take(&mut self.waiting), ..Self::default() };
    }

    /// Starts to close the connections to a peer, after their ops have ended.
    pub(crate) fn close(&mut self, peer: usize) {
        for connection in self.connections.get(&peer).into_iter().flatten() {
            let connection = connection.clone();
            let mut closing: Closing = Box::pin(async move { connection.close_async().await });
            // The first poll submits the request.
            if closing.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending {
                self.closing.push((peer, closing));
            }
        }
    }

    /// Returns the peers of the connections that the application is closing and that are still open.
    pub(crate) fn closing(&self) -> impl Iterator<Item = usize> {
        self.closing.iter().map(|&(peer, _)| peer)
    }

    /// Returns the time at which the application must run again without an external event.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        let waiting = self.waiting.first().map(|&(at, _)| at.max(now + RETRY / 4));
        let cancels = self.outstanding.values().filter_map(|op| op.cancel_at);
        waiting.into_iter().chain(cancels).min()
    }
}

/// Returns the request of an op.
fn request(plan: &OpPlan, bytes: &Bytes, address: u64, keys: &Keys, expected: u64) -> Request {
    let bytes = || bytes.clone();
    let request = match (plan.what, keys.of_op(plan.what)) {
        (What::Write | What::Beyond | What::Forbidden | What::StrangeKey, Some(region)) => {
            Request::write(region, address, bytes())
        }
        (What::Read | What::Overflow, Some(region)) => {
            Request::read(region, address, plan.length as usize)
        }
        (What::Add, Some(region)) => Request::fetch_add(region, address, 1),
        (What::Swap, Some(region)) => {
            Request::compare_and_swap(region, address, expected, expected + 1)
        }
        (What::Message | What::TooLong, _) | (_, None) => Request::message(bytes()),
    };
    match plan.deadline {
        Some(after) => request.deadline(std::time::Duration::from_nanos(after.as_ps() / 1_000)),
        None => request,
    }
}

impl World<'_> {
    /// Runs the application of a host.
    pub(crate) fn run_app(&mut self, host: usize) {
        if self.machines[host].host.is_none() {
            return;
        }
        self.accept(host);
        self.take_answers(host);
        self.take_messages(host);
        self.take_ends(host);
        self.cancel_due(host);
        self.submit_due(host);
        let app = &mut self.machines[host].app;
        app.closing.retain_mut(|(_, closing)| {
            closing.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending
        });
        if let Some(at) = app.next(self.now) {
            self.schedule_app(host, at);
        }
        self.wake_commanded(host);
    }

    pub(crate) fn accept(&mut self, host: usize) {
        loop {
            let machine = &mut self.machines[host];
            let next = machine.host.as_ref().and_then(|host| host.try_accept());
            let Some(connection) = next else { return };
            match self.owners.get(&connection.peer()) {
                Some(&peer) => {
                    self.check_identity(host, peer, &connection);
                    let app = &mut self.machines[host].app;
                    app.connections.entry(peer).or_default().push(connection);
                }
                None => machine.app.strangers.push(connection),
            }
        }
    }

    fn take_answers(&mut self, host: usize) {
        let (machine, now) = (&mut self.machines[host], self.now);
        let app = &mut machine.app;
        let answers: Vec<_> =
            app.connecting.iter().filter_map(|(&peer, c)| Some((peer, c.try_take()?))).collect();
        for (peer, answer) in answers {
            let app = &mut self.machines[host].app;
            app.connecting.remove(&peer);
            match answer {
                Ok(connection) => {
                    self.check_identity(host, peer, &connection);
                    let app = &mut self.machines[host].app;
                    app.connections.entry(peer).or_default().push(connection);
                }
                Err(error) => {
                    app.retry_at.insert(peer, now + RETRY);
                    self.log.note(now, || format!("host {host} cannot connect to {peer}: {error}"));
                }
            }
        }
    }

    /// Takes messages, including those of connections that have ended, and removes these connections.
    pub(crate) fn take_messages(&mut self, host: usize) {
        if self.takes_none(host) {
            return;
        }
        let of = self.machines[host].of();
        let mut received = Vec::new();
        let mut insiders = 0;
        let plan = self.plan;
        let app = &mut self.machines[host].app;
        for (&peer, connections) in &mut app.connections {
            let honest = !plan.hosts[peer].insider;
            connections.retain(|connection| {
                loop {
                    match connection.try_receive() {
                        Ok(Some(message)) if honest => received.push(message.bytes),
                        Ok(Some(_)) => insiders += 1,
                        Ok(None) => return true,
                        Err(_) => return false,
                    }
                }
            });
        }
        app.strangers.retain(|connection| connection.ended().is_none());
        self.counts.messages += received.len() as u64 + insiders;
        if self.plan.hosts[host].insider {
            return;
        }
        for bytes in received {
            let checked = self.ledger.on_message(of, &bytes);
            self.check("message", checked);
        }
    }

    /// Processes the ends of ops.
    pub(crate) fn take_ends(&mut self, host: usize) {
        let app = &mut self.machines[host].app;
        let mut ends = Vec::new();
        while let Ok(Completion { user, result, .. }) = app.queue.1.try_recv() {
            ends.push((user as usize, result));
        }
        for (&op, outstanding) in &app.outstanding {
            if let Handle::Op(handle) = &outstanding.handle
                && let Some(result) = handle.try_take()
            {
                ends.push((op, result));
            }
        }
        for (op, result) in ends {
            self.machines[host].app.outstanding.remove(&op);
            let to = self.ledger.entries[op].plan.to;
            let described = match &result {
                Ok(_) => "done".to_owned(),
                Err(error) => error.to_string(),
            };
            self.log.note(self.now, || format!("op {op} of host {host} ended: {described}"));
            self.counts.end(&result);
            let lies = self.plan.hosts[to].insider || self.plan.hosts[host].insider;
            let now = self.machines[to].of();
            if lies {
                self.ledger.entries[op].state = State::Abandoned;
            } else {
                let checked = self.ledger.on_end(op, &result, now, self.now);
                self.check("op", checked);
            }
        }
    }

    fn cancel_due(&mut self, host: usize) {
        let now = self.now;
        for outstanding in self.machines[host].app.outstanding.values_mut() {
            if outstanding.cancel_at.is_some_and(|at| at <= now) {
                outstanding.cancel_at = None;
                match &outstanding.handle {
                    Handle::Op(op) => op.cancel(),
                    Handle::Queued(connection, ticket) => connection.cancel(*ticket),
                }
            }
        }
    }

    /// Returns the newest usable connection to a peer; if there is none, requests one.
    pub(crate) fn connection(&mut self, host: usize, peer: usize) -> Option<Connection> {
        let address = self.machines[peer].address;
        let (machine, now) = (&mut self.machines[host], self.now);
        let app = &mut machine.app;
        let usable = |c: &&Connection| c.ended().is_none() && !c.is_peer_draining();
        let newest = app.connections.get(&peer).and_then(|all| all.iter().rev().find(usable));
        if newest.is_some() {
            return newest.cloned();
        }
        let due = app.retry_at.get(&peer).is_none_or(|&at| at <= now);
        if due
            && !app.connecting.contains_key(&peer)
            && let Some(up) = &machine.host
        {
            let engine = self.random.index(up.engines());
            let classes = vec![0; machine.plan.flows];
            let name = self.identities.as_ref().map(|_| name(peer));
            let connecting = up.connect_to(engine, address, name.as_deref(), &classes);
            app.connecting.insert(peer, connecting);
        }
        None
    }

    fn submit_due(&mut self, host: usize) {
        let now = self.now;
        let app = &self.machines[host].app;
        let due: Vec<_> = app.waiting.range(..=(now, usize::MAX)).copied().collect();
        let mut blocked = BTreeSet::new();
        for (at, op) in due {
            let to = self.ledger.entries[op].plan.to;
            if blocked.contains(&to) {
                continue;
            }
            let Some(connection) = self.connection(host, to) else {
                blocked.insert(to);
                continue;
            };
            if self.submit(host, op, &connection) {
                self.machines[host].app.waiting.remove(&(at, op));
            } else {
                blocked.insert(to);
            }
        }
    }

    /// Submits an op. Returns `false` if the op must wait.
    fn submit(&mut self, host: usize, op: usize, connection: &Connection) -> bool {
        let plan = self.ledger.entries[op].plan.clone();
        let Some(keys) = self.machines[plan.to].keys else { return false };
        if plan.what == What::TooLong && connection.max_message() > 1 << 20 {
            return true;
        }
        let mut plan = plan;
        if plan.what == What::TooLong {
            plan.length = connection.max_message() + 1;
        }
        let address = self.ledger.address(op);
        let expected = match self.ledger.regions.get(&keys.of) {
            Some(regions) if plan.what == What::Swap => regions.words.load(address).unwrap_or(0),
            _ => 0,
        };
        // The payload is kept for the next attempt if the connection cannot accept the op now.
        let bytes = match self.ledger.entries[op].bytes.take() {
            Some(bytes) if bytes.len() as u64 == plan.length => bytes,
            _ if plan.what.has_payload() => payload(op, plan.length).into(),
            _ => Bytes::new(),
        };
        let request = request(&plan, &bytes, address, &keys, expected);
        let flow = plan.place as usize % connection.flows();
        let target: Incarnation = match plan.what {
            What::Message => self.machines[plan.to].of(),
            _ => keys.of,
        };
        let handle = if op.is_multiple_of(2) {
            let queue = &self.machines[host].app.queue.0;
            let queued = connection.submit_queued(flow, request, queue, op as u64);
            queued.map(|ticket| Handle::Queued(connection.clone(), ticket))
        } else {
            connection.submit_to(flow, request).map(Handle::Op)
        };
        let by = self.machines[host].of();
        let barred = plan.what.uses_slots() && !self.may_write(plan.to, host);
        let entry = &mut self.ledger.entries[op];
        let declined = match handle {
            Ok(handle) => {
                (entry.state, entry.by, entry.target) = (State::Submitted, Some(by), Some(target));
                entry.submitted_at = self.now;
                entry.named = Some(Named::new(by, &plan, address, &keys));
                entry.expected = expected;
                entry.barred = [barred; 2];
                entry.after_withdrawal = self.ledger.withdrawn.contains(&target);
                let cancel_at = plan.cancel.map(|after| self.now + after);
                let outstanding = Outstanding { handle, cancel_at };
                self.machines[host].app.outstanding.insert(op, outstanding);
                self.counts.ops += 1;
                self.log.note(self.now, || {
                    format!(
                        "host {host} submits op {op}: {:?} of {} bytes to {}",
                        plan.what, plan.length, plan.to
                    )
                });
                let must_fail = matches!(plan.what, What::Overflow | What::TooLong);
                let accepted = format!("op {op} ({:?}) was accepted", plan.what);
                self.check("submission", if must_fail { Err(accepted) } else { Ok(()) });
                return true;
            }
            Err(error) => error,
        };
        match (plan.what, declined) {
            (
                _,
                SubmitError::Full
                | SubmitError::Draining
                | SubmitError::PeerDraining
                | SubmitError::Ended(_),
            ) => {
                entry.bytes = Some(bytes);
                false
            }
            (What::Overflow, SubmitError::AddressOverflow { .. })
            | (What::TooLong, SubmitError::TooLong { .. }) => {
                entry.state = State::Declined;
                true
            }
            (what, error) => {
                entry.state = State::Declined;
                self.check("submission", Err(format!("op {op} ({what:?}) was declined: {error}")));
                true
            }
        }
    }
}
