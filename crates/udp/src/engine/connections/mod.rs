//! The connections of an engine: sessions with their flows, as they open and end.
//!
//! `open`, `probes`, `drain`, `report`, `spread` and `record` hold further methods of [`Connections`]: handshakes, probes of paths, the end of all
//! connections, and metrics. `path` is the search for
//! the MTU of a path, `ports` the source ports of a connection, `reach` the probes of an address that does not answer, and `siblings` the other engines of the host.

mod drain;
mod open;
mod path;
mod ports;
mod probes;
mod reach;
mod record;
mod report;
mod siblings;
mod spread;
mod uses;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apus_algorithms::BuiltInPath;
use apus_units::planted::{Bug, is_planted};
use apus_units::{FlowId, Time};
use apus_wire::{RejectReason, SegmentKind};

use super::endpoint::Endpoint;
use super::inbox::Inbox;
use super::log::Log;
use super::network::Network;
use super::op_table::OpTable;
use crate::backlog::{Backlog, BacklogSlot};
use crate::config::Config;
use crate::connection_state::ConnectionState;
use crate::error::{ConnectError, DroppedHandshake, End, HandshakeFault};
use crate::grant::Caller;
use crate::mailbox::{ConnectRequest, Mailbox};
use crate::qlog::Record;
use crate::report::Peers;
use crate::session::{Dropped, Event, KeyRing, Peer, SessionId, Sessions};
use crate::spreading::OnePort;

use drain::{DrainState, Draining};
use open::Requested;
use path::PathSearch;
use ports::Ports;
pub(super) use probes::Probe;
use reach::{NOTE_INTERVAL, ReachProbes};
use siblings::Question;
pub(crate) use siblings::Siblings;
use uses::{HeldOps, Uses};

/// A connection, from the first packet of its handshake to its end.
struct Connection {
    session: SessionId,
    peer: Peer,
    /// Whether the kernel can segment bursts to this peer.
    segmentation: bool,
    /// The maximum length of an IP packet that algorithms were told, in bytes.
    mtu: u32,
    flows: Vec<FlowId>,
    /// The traffic class of each flow.
    classes: Vec<u8>,
    /// Its source ports, if it or its peer uses several.
    ports: Option<Box<Ports>>,
    /// Why it has one source port, if nothing else is in the way.
    one_port: Option<OnePort>,
    /// Its progress.
    stage: Stage,
    /// Its messages, while it is connected.
    inbox: Option<Inbox>,
    /// Set when it is to close after its last op: the waits for that.
    closing: Option<Vec<oneshot::Sender<()>>>,
    drain: DrainState,
    /// Its number within the engine, which no other connection has.
    number: u64,
    /// When it was connected.
    since: Time,
    /// Whether its peer is listed in metrics.
    peer_listed: bool,
    /// Whether the peer opened it.
    by_peer: bool,
    /// The ops that it may have, if a peer with a key of its own opened it.
    _held: Option<HeldOps>,
    record: Option<Box<Record>>,
}

/// The progress of a connection.
enum Stage {
    /// This side opens it.
    Opening { question: Question, probes: ReachProbes },
    /// The peer opens it.
    Incoming { slot: BacklogSlot },
    /// It is connected.
    Connected { state: Arc<ConnectionState>, path: PathSearch },
    /// It has failed to open; nobody waits for it.
    Ended,
}

impl Connection {
    fn state(&self) -> Option<&Arc<ConnectionState>> {
        match &self.stage {
            Stage::Connected { state, .. } => Some(state),
            _ => None,
        }
    }

    fn path(&mut self) -> Option<&mut PathSearch> {
        match &mut self.stage {
            Stage::Connected { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Ends the opening of the connection, if this side opens it.
    fn take_opening(&mut self) -> Option<(Question, ReachProbes)> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Opening { question, probes } => Some((question, probes)),
            other => {
                self.stage = other;
                None
            }
        }
    }
}

/// The connection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) session: SessionId,
    /// The flow's index within the connection.
    pub(super) index: usize,
}

/// How packets of a flow are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) session: SessionId,
    pub(super) to: Peer,
    /// The flow's traffic class.
    pub(super) class: u8,
    /// Whether the kernel can segment bursts to this peer.
    pub(super) segmentation: bool,
}

/// All connections of an engine.
pub(super) struct Connections {
    pub(super) sessions: Sessions,
    config: Arc<Config>,
    mailbox: Arc<Mailbox>,
    siblings: Siblings,
    backlog: Backlog,
    /// By [`SessionId::index`]; the last slot is in use. Boxed, since most slots may be empty.
    table: Vec<Option<Box<Connection>>>,
    /// By flow number.
    owners: Vec<Option<Owner>>,
    /// When a probe of a path or of an address is due.
    next_probe: Time,
    /// When the next dropped handshake may be noted.
    next_note: Time,
    pub(super) log: Log,
    draining: Option<Draining>,
    /// Number of connections so far.
    count: u64,
    /// Counters by peer, for metrics.
    peers: Peers,
    /// What peers with keys of their own occupy.
    uses: Uses,
    /// Number of connections that are recorded.
    records: u32,
    /// Number of connections that use several ports.
    spreads: u32,
    /// The path policy of flows that have one port here and several at the peer.
    one_path: BuiltInPath,
}

impl Connections {
    pub(super) fn new(
        sessions: Sessions,
        config: Arc<Config>,
        mailbox: Arc<Mailbox>,
        siblings: Siblings,
        backlog: Backlog,
        one_path: BuiltInPath,
    ) -> Self {
        Self {
            log: Log::new(mailbox.status.address),
            draining: None,
            records: 0,
            spreads: 0,
            one_path,
            count: 0,
            peers: Peers::new(config.metrics_limit),
            uses: Uses::default(),
            sessions,
            config,
            mailbox,
            siblings,
            backlog,
            table: Vec::new(),
            owners: Vec::new(),
            next_probe: Time::MAX,
            next_note: Time::ZERO,
        }
    }

    /// Returns the number of connections.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn len(&self) -> usize {
        self.table.iter().flatten().count()
    }

    /// Returns the number of messages that have arrived in part.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn partial_messages(&self) -> usize {
        let inboxes = self.table.iter().flatten().filter_map(|c| c.inbox.as_ref());
        inboxes.map(Inbox::partial).sum()
    }

    /// Returns the bytes of messages that the application has not taken, of the peer with a key of its own that has most of them.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn queued_by_key(&self) -> u64 {
        let states = self.table.iter().flatten().filter_map(|connection| connection.state());
        states.map(|state| state.queued_by_key()).max().unwrap_or(0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn get(&self, session: SessionId) -> Option<&Connection> {
        self.table.get(session.index())?.as_deref().filter(|c| c.session == session)
    }

    fn get_mut(&mut self, session: SessionId) -> Option<&mut Connection> {
        self.table.get_mut(session.index())?.as_deref_mut().filter(|c| c.session == session)
    }

    /// Returns the connection of a flow.
    #[inline]
    pub(super) fn owner(&self, flow: FlowId) -> Option<Owner> {
        self.owners.get(flow.index()).copied().flatten()
    }

    /// Returns how packets of a flow are sent.
    #[inline]
    pub(super) fn route(&self, flow: FlowId) -> Option<Route> {
        let Owner { session, index } = self.owner(flow)?;
        let connection = self.table.get(session.index())?.as_deref()?;
        let &Connection { peer: to, segmentation, .. } = connection;
        Some(Route { session, to, class: connection.classes[index], segmentation })
    }

    /// Returns the peer of a session.
    pub(super) fn peer(&self, session: SessionId) -> Option<Peer> {
        self.get(session).map(|connection| connection.peer)
    }

    /// Returns the peer of a session that is connected, as regions know it.
    pub(super) fn caller(&self, session: SessionId) -> Option<Caller> {
        let who = &self.get(session)?.state()?.who;
        Some(Caller { connection: who.connection, key: who.key })
    }

    /// Returns the flows of a session; none if it has ended.
    pub(super) fn flows(&self, session: SessionId) -> &[FlowId] {
        self.get(session).map_or(&[], |connection| &connection.flows)
    }

    /// Returns the messages of a session that is connected.
    #[inline]
    pub(super) fn inbox(&mut self, session: SessionId) -> Option<&mut Inbox> {
        self.get_mut(session)?.inbox.as_mut()
    }

    /// Returns when a timer of the sessions or a probe is due.
    pub(super) fn next_timeout(&self) -> Time {
        let sessions = self.sessions.next_timeout().unwrap_or(Time::MAX);
        sessions.min(self.next_probe).min(self.log.next_timeout()).min(self.next_drain())
    }

    /// Stops sending bursts to a peer for which the kernel cannot segment them.
    pub(super) fn disable_segmentation(&mut self, peer: Peer) {
        let beside = |c: &Connection| c.peer.address.ip() == peer.address.ip();
        let same =
            |c: &Connection| c.peer == peer.at_first_port() || c.ports.is_some() && beside(c);
        for connection in self.table.iter_mut().flatten().filter(|c| same(c)) {
            connection.segmentation = false;
        }
    }

    fn insert(
        &mut self,
        session: SessionId,
        peer: Peer,
        mtu: u32,
        flows: Flows,
        (stage, held): (Stage, Option<HeldOps>),
    ) {
        for (index, flow) in flows.ids.iter().enumerate() {
            if self.owners.len() <= flow.index() {
                self.owners.resize(flow.index() + 1, None);
            }
            self.owners[flow.index()] = Some(Owner { session, index });
        }
        self.count += 1;
        let connection = Connection {
            drain: DrainState::default(),
            number: self.count,
            since: Time::ZERO,
            peer_listed: false,
            by_peer: matches!(stage, Stage::Incoming { .. }),
            _held: held,
            record: None,
            session,
            peer,
            segmentation: true,
            mtu,
            flows: flows.ids,
            classes: flows.classes,
            ports: None,
            one_port: None,
            stage,
            inbox: None,
            closing: None,
        };
        if self.table.len() <= session.index() {
            self.table.resize_with(session.index() + 1, || None);
        }
        self.table[session.index()] = Some(Box::new(connection));
    }

    /// Closes a connection once its ops have ended, and reports that by `closed`.
    pub(super) fn begin_close(
        &mut self,
        session: SessionId,
        closed: Option<oneshot::Sender<()>>,
        ops: &mut OpTable,
    ) {
        if let Some(connection) = self.get_mut(session) {
            connection.closing.get_or_insert_default().extend(closed);
            ops.watch(&connection.flows);
        }
    }

    /// Returns `true` if a connection is to close and its ops have ended.
    pub(super) fn can_close(&self, session: SessionId, ops: &OpTable) -> bool {
        self.get(session).is_some_and(|c| c.closing.is_some() && ops.are_idle(&c.flows))
    }

    /// Closes a session, and removes its connection.
    fn close(&mut self, now: Time, session: SessionId, ops: &mut OpTable) {
        self.sessions.close(now, session);
        self.remove(now, session, End::ClosedHere, ops);
    }

    /// Closes all sessions and ends their connections with [`End::Stopped`]. The connections stay in the table, so that
    /// the peers can be told.
    pub(super) fn stop(&mut self, now: Time, ops: &mut OpTable) {
        let sessions: Vec<SessionId> = self.table.iter().flatten().map(|c| c.session).collect();
        for session in sessions {
            self.end(now, session, End::Stopped, ops);
            self.sessions.close(now, session);
            let Some(connection) = self.get_mut(session) else { continue };
            // Dropping the requests ends the waits for them.
            connection.closing = None;
            connection.take_opening();
            if connection.state().is_some() {
                connection.stage = Stage::Ended;
                self.count(-1);
            }
        }
    }

    /// Ends a connection for its application, with all its ops. Its entry stays.
    fn end(&mut self, now: Time, session: SessionId, end: End, ops: &mut OpTable) {
        let Some(connection) = self.get_mut(session) else { return };
        if let Some(state) = connection.state() {
            let first = state.ended().is_none();
            state.set_ended(end);
            let (peer, open) = (connection.peer.address, now.since(connection.since));
            let record = connection.record.take();
            self.records -= u32::from(record.is_some());
            if let Some(record) = record {
                record.end(now, end);
            }
            if first {
                self.log.ended(now, peer, end, open);
            }
        }
        let Some(connection) = self.get_mut(session) else { return };
        connection.inbox = None;
        ops.end_flows(now, &connection.flows);
    }

    /// Removes a connection, and ends it for its application.
    pub(super) fn remove(&mut self, now: Time, session: SessionId, end: End, ops: &mut OpTable) {
        if self.get(session).is_none() {
            return;
        }
        self.end(now, session, end, ops);
        let slot = self.table.get_mut(session.index());
        let Some(connection) = slot.and_then(Option::take) else { return };
        while let Some(None) = self.table.last() {
            self.table.pop();
        }
        self.spreads -= u32::from(connection.ports.is_some());
        if connection.state().is_some() {
            self.count(-1);
            let totals = connection.totals(&ops.endpoint);
            self.peers.close(now, connection.peer.address.ip(), connection.peer_listed, &totals);
        }
        for flow in &connection.flows {
            self.owners[flow.index()] = None;
        }
        if !is_planted(Bug::FlowLeak) {
            ops.release_flows(now, &connection.flows);
        }
        for closed in connection.closing.into_iter().flatten() {
            // The wait may have been given up.
            let _ = closed.send(());
        }
    }

    fn count(&self, change: i64) {
        let connections = &self.mailbox.status.stats.connections;
        connections.fetch_add(change as u64, Ordering::Relaxed); // wraps for -1
    }

    /// Replaces the ring of keys. Connections under keys that the new ring lacks end.
    pub(super) fn set_keys<N: Network>(
        &mut self,
        now: Time,
        keys: KeyRing,
        ops: &mut OpTable,
        network: &N,
    ) {
        // `Host` has checked that the mode is the same.
        self.log.keys_set(&keys);
        if self.sessions.set_keys(now, keys).is_ok() {
            while let Some(event) = self.sessions.poll_event() {
                self.on_event(now, event, ops, network);
            }
        }
    }

    /// Handles an event of the sessions.
    #[cold]
    pub(super) fn on_event<N: Network>(
        &mut self,
        now: Time,
        event: Event,
        ops: &mut OpTable,
        network: &N,
    ) {
        match event {
            Event::Incoming { session, from, key, identity, hello } => {
                let request = Requested { session, from, key, identity, hello: &hello };
                self.on_incoming(now, request, &mut ops.endpoint, network);
            }
            Event::Connected { session, hello } => {
                self.on_connected(now, session, &hello, ops, network);
            }
            Event::Ended { session, reason } => self.on_ended(now, session, reason, ops),
            Event::Refused { session, told } => self.on_refused(now, session, told, ops),
            Event::PeerDraining { session } => self.on_peer_draining(session),
            Event::PeerIdle { session } => self.on_peer_idle(session),
            Event::KeyChanged { session } => {
                if let Some(peer) = self.peer(session) {
                    self.log.key_changed(now, peer.address);
                }
            }
        }
    }

    /// Handles a datagram that the sessions dropped: tells other engines of the host about handshakes that are theirs,
    /// and notes dropped handshakes for the application.
    #[cold]
    pub(super) fn on_dropped(&mut self, now: Time, from: SocketAddr, why: Dropped) {
        self.log.dropped(now, why);
        let fault = match why {
            Dropped::Stray => return self.siblings.on_stray(from),
            Dropped::OtherMode if self.sessions.is_sealed() => HandshakeFault::Insecure,
            Dropped::OtherMode => HandshakeFault::Sealed,
            Dropped::UnknownKey => HandshakeFault::UnknownKey,
            Dropped::Unproven => HandshakeFault::Unproven,
            _ => return,
        };
        self.log.handshake_dropped(now, from, fault);
        if now >= self.next_note {
            self.next_note = now + NOTE_INTERVAL;
            self.mailbox.status.note(DroppedHandshake { from, fault });
        }
    }

    /// An op of the peer was refused.
    #[cold]
    pub(super) fn on_op_refused(
        &mut self,
        now: Time,
        session: SessionId,
        kind: SegmentKind,
        reason: RejectReason,
    ) {
        let Some(peer) = self.peer(session) else { return };
        let op = match kind {
            SegmentKind::Write { .. } => "write",
            SegmentKind::ReadRequest { .. } | SegmentKind::ReadResponse => "read",
            SegmentKind::Message => "message",
            SegmentKind::CompareAndSwap { .. } => "compare_and_swap",
            SegmentKind::FetchAdd { .. } => "fetch_add",
            SegmentKind::Cancel => "cancel",
        };
        self.log.op_refused(now, peer.address, op, reason);
    }

    /// Hands the request for a connection to the engine that receives the peer's packets.
    pub(super) fn hand_over(
        &mut self,
        now: Time,
        peer: SocketAddr,
        engine: u32,
        ops: &mut OpTable,
    ) {
        if let Some(request) = self.take_request(now, peer, |_| true, ops) {
            self.siblings.hand_over(engine, request);
        }
    }

    /// Gives up a connection to `peer` that is being opened, if `wanted` accepts its request; returns the request.
    fn take_request(
        &mut self,
        now: Time,
        peer: SocketAddr,
        wanted: fn(&Question) -> bool,
        ops: &mut OpTable,
    ) -> Option<ConnectRequest> {
        let mut all = self.table.iter_mut().flatten().filter(|c| c.peer.address == peer);
        let connection =
            all.find(|c| matches!(&c.stage, Stage::Opening { question, .. } if wanted(question)))?;
        let (session, opening) = (connection.session, connection.take_opening());
        drop(all);
        self.close(now, session, ops);
        opening.map(|(question, _)| question.into_request())
    }

    /// Ends all connections after a panic, without the transport, whose state may be inconsistent.
    #[cold]
    pub(super) fn fail(&mut self) {
        for connection in std::mem::take(&mut self.table).into_iter().flatten() {
            crate::containment::contain(|| {
                drop(connection.inbox);
                match connection.stage {
                    Stage::Opening { question, .. } => {
                        question.answer(Err(ConnectError::EngineFailed));
                    }
                    Stage::Connected { .. } => self.count(-1),
                    Stage::Incoming { .. } | Stage::Ended => {}
                }
                for closed in connection.closing.into_iter().flatten() {
                    let _ = closed.send(());
                }
            });
        }
    }

    /// Records that all connections ended by a failure of their engine.
    pub(super) fn set_failed(&self) {
        for state in self.table.iter().flatten().filter_map(|c| c.state()) {
            state.set_ended(End::EngineFailed);
        }
    }

    /// Closes all sessions, so that the peers can be told.
    pub(super) fn close_sessions(&mut self, now: Time) {
        let sessions: Vec<SessionId> = self.sessions.all().map(|session| session.id).collect();
        for session in sessions {
            self.sessions.close(now, session);
        }
    }

    /// Ends the application's waits for connections that peers open.
    pub(super) fn close_backlog(&self) {
        self.backlog.close();
    }
}

/// The flows of a connection that opens.
struct Flows {
    ids: Vec<FlowId>,
    /// The traffic class of each.
    classes: Vec<u8>,
}

impl Flows {
    fn release(self, now: Time, endpoint: &mut Endpoint) {
        self.ids.iter().for_each(|&flow| endpoint.release(now, flow));
    }
}
