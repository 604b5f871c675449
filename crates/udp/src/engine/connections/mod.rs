//! The connections of an engine: sessions with their flows, from the handshake to the end.
//!
//! The modules `open` (handshakes), `probes` (probes of paths), `drain` (end of all connections), `report` (metrics),
//! `spread` (source ports) and `record` (qlog) add methods to [`Connections`]. The others have types of their own:
//! `path` the search for the MTU of a path, `peer_flows` the flows by the peer's numbers, `ports` the source ports of a
//! connection, `reach` the probes of an address that does not answer, `siblings` the other engines of the host, and `uses`
//! the quotas of peers.

mod drain;
mod open;
mod path;
mod peer_flows;
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
#[cfg(test)]
pub(super) use peer_flows::COMPARED;
use peer_flows::PeerFlows;
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
    /// Maximum length of an IP packet in bytes, as the algorithms know it.
    mtu: u32,
    flows: Vec<FlowId>,
    /// The traffic class of each flow.
    classes: Vec<u8>,
    /// The flows by the peer's numbers, once it is connected.
    peer_flows: PeerFlows,
    /// Source ports of this side, if this side or the peer uses several.
    ports: Option<Box<Ports>>,
    /// Reason why this side sends from one source port, as far as the offers of both hosts determine it.
    one_port: Option<OnePort>,
    /// Progress of the connection.
    stage: Stage,
    /// Messages of the peer, while the connection is connected.
    inbox: Option<Inbox>,
    /// Set if the connection closes after its last op: the application's waits for the close.
    closing: Option<Vec<oneshot::Sender<()>>>,
    drain: DrainState,
    /// Number of the connection, unique within the engine.
    number: u64,
    /// When the connection was connected.
    since: Time,
    /// Whether metrics list the peer.
    peer_listed: bool,
    /// Whether the peer opened the connection.
    by_peer: bool,
    /// Share of the peer's op quota, if a peer with a key of its own opened the connection.
    _held: Option<HeldOps>,
    record: Option<Box<Record>>,
}

/// Progress of a connection.
enum Stage {
    /// This side opens the connection.
    Opening { question: Question, probes: ReachProbes },
    /// The peer opens the connection.
    Incoming { slot: BacklogSlot },
    /// The connection is connected.
    Connected { state: Arc<ConnectionState>, path: PathSearch },
    /// The connection has failed to open, and no caller waits for it.
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

    /// Ends the opening of the connection, if this side opens it. Returns the request and the probes.
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

/// Destination and options for the packets of a flow.
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
    /// Connections by [`SessionId::index`]; the last slot is in use. Boxed, since most slots may be empty.
    table: Vec<Option<Box<Connection>>>,
    /// Owner of each flow, by flow number.
    owners: Vec<Option<Owner>>,
    /// When the next probe of a path or an address is due.
    next_probe: Time,
    /// Earliest time of the next note on a dropped handshake.
    next_note: Time,
    pub(super) log: Log,
    draining: Option<Draining>,
    /// Number of connections opened so far.
    count: u64,
    /// Counters by peer, for metrics.
    peers: Peers,
    /// Resources that peers with keys of their own occupy.
    uses: Uses,
    /// Number of connections that are recorded.
    records: u32,
    /// Number of connections that use several ports.
    spreads: u32,
    /// Path policy of flows that have one port on this side and several at the peer.
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

    /// Returns the largest numbers of messages and of their bytes that have arrived, in part or whole, and that the application
    /// has not taken, over the connections.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn queued(&self) -> (usize, u64) {
        let inboxes = || self.table.iter().flatten().filter_map(|c| c.inbox.as_ref());
        let messages = inboxes().map(Inbox::queued_messages).max();
        (messages.unwrap_or(0), inboxes().map(Inbox::queued_bytes).max().unwrap_or(0))
    }

    /// Returns the largest number of bytes of messages that the application has not taken, over the peers with keys of
    /// their own.
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

    /// Returns destination and options for the packets of a flow.
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

    /// Returns the peer of a connected session, in the form that regions check.
    pub(super) fn caller(&self, session: SessionId) -> Option<Caller> {
        let who = &self.get(session)?.state()?.who;
        Some(Caller { connection: who.connection, key: who.key })
    }

    /// Returns the flow of a connected session that has this number at the peer.
    pub(super) fn flow_at_peer(&self, session: SessionId, theirs: FlowId) -> Option<FlowId> {
        let connection = self.get(session)?;
        connection.flows.get(connection.peer_flows.index_of(theirs)?).copied()
    }

    /// Returns the peer's numbers of the flows of a session; empty if the session is not connected.
    #[cfg(any(test, feature = "worlds"))]
    pub(super) fn flows_at_peer(&self, session: SessionId) -> Vec<FlowId> {
        self.get(session).map_or(Vec::new(), |connection| connection.peer_flows.numbers().collect())
    }

    /// Returns the flows of a session; empty if the session has ended.
    pub(super) fn flows(&self, session: SessionId) -> &[FlowId] {
        self.get(session).map_or(&[], |connection| &connection.flows)
    }

    /// Returns the inbox of a connected session.
    #[inline]
    pub(super) fn inbox(&mut self, session: SessionId) -> Option<&mut Inbox> {
        self.get_mut(session)?.inbox.as_mut()
    }

    /// Returns when the next timer is due: of the sessions, a probe, the log or the drain.
    pub(super) fn next_timeout(&self) -> Time {
        let sessions = self.sessions.next_timeout().unwrap_or(Time::MAX);
        sessions.min(self.next_probe).min(self.log.next_timeout()).min(self.next_drain())
    }

    /// Stops sending bursts to a peer to which the kernel cannot send segmented bursts.
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
            peer_flows: PeerFlows::default(),
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

    /// Makes a connection close after its ops have ended, and reports the close through `closed`.
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

    /// Returns `true` if a connection is waiting to close and its ops have ended.
    pub(super) fn can_close(&self, session: SessionId, ops: &OpTable) -> bool {
        self.get(session).is_some_and(|c| c.closing.is_some() && ops.are_idle(&c.flows))
    }

    /// Closes a session, and removes its connection.
    fn close(&mut self, now: Time, session: SessionId, ops: &mut OpTable) {
        self.sessions.close(now, session);
        self.remove(now, session, End::ClosedHere, ops);
    }

    /// Closes all sessions and ends their connections with [`End::Stopped`]. The connections stay in the table, so that
    /// the engine can still notify the peers.
    pub(super) fn stop(&mut self, now: Time, ops: &mut OpTable) {
        let sessions: Vec<SessionId> = self.table.iter().flatten().map(|c| c.session).collect();
        for session in sessions {
            self.end(now, session, End::Stopped, ops);
            self.sessions.close(now, session);
            let Some(connection) = self.get_mut(session) else { continue };
            // Dropping the requests ends the application's waits.
            connection.closing = None;
            connection.take_opening();
            if connection.state().is_some() {
                connection.stage = Stage::Ended;
                self.count(-1);
            }
        }
    }

    /// Ends a connection for its application, together with all its ops. Its entry in the table remains.
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

    /// Ends a connection for its application and removes it from the table.
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
            // The application may have given up its wait.
            let _ = closed.send(());
        }
    }

    fn count(&self, change: i64) {
        let connections = &self.mailbox.status.stats.connections;
        connections.fetch_add(change as u64, Ordering::Relaxed); // wraps for -1
    }

    /// Replaces the key ring. Ends connections under keys that the new ring lacks.
    pub(super) fn set_keys<N: Network>(
        &mut self,
        now: Time,
        keys: KeyRing,
        ops: &mut OpTable,
        network: &N,
    ) {
        // `Host` has checked that the mode is unchanged.
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

    /// Handles a datagram that the sessions dropped. If it is a handshake that may belong to another engine of the
    /// host, informs that engine. Notes other dropped handshakes for the application.
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

    /// Records that an op of the peer was refused.
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

    /// Removes a connection to `peer` that is being opened, if `wanted` accepts its request. Returns the request.
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

    /// Ends all connections after a panic. Does not use the transport, whose state may be inconsistent.
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

    /// Records that the failure of the engine has ended all connections.
    pub(super) fn set_failed(&self) {
        for state in self.table.iter().flatten().filter_map(|c| c.state()) {
            state.set_ended(End::EngineFailed);
        }
    }

    /// Closes all sessions, so that the engine can notify the peers.
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
    /// Traffic class of each flow.
    classes: Vec<u8>,
}

impl Flows {
    fn release(self, now: Time, endpoint: &mut Endpoint) {
        self.ids.iter().for_each(|&flow| endpoint.release(now, flow));
    }
}
