//! Connections: sessions with their flows, as they come and go.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use apus_cc::FlowInfo;
use apus_units::{FlowId, Time};

use super::path::{Path, first_mtu, full_packets};
use super::siblings::Asked;
use super::unanswered::ReachProbes;
use super::{Engine, Owner};
use crate::backlog::Place;
use crate::config::CLASSES;
use crate::connection::{Connection as Handle, Message, Shared};
use crate::error::{ConnectError, End};
use crate::hello::Hello;
use crate::ops::Pending;
use crate::session::{
    ConnectError as NoSession, End as SessionEnd, Event, KeyId, KeyRing, Peer, SessionId,
};

/// A connection, from the first packet of its handshake on.
pub(super) struct Connection {
    pub(super) session: SessionId,
    pub(super) peer: Peer,
    /// Whether the kernel splits bursts to this peer.
    pub(super) segmentation: bool,
    /// The longest IP packet that algorithms know of, bytes.
    pub(super) told_mtu: u32,
    pub(super) flows: Vec<FlowId>,
    /// Their traffic classes.
    pub(super) classes: Vec<u8>,
    /// Once it is connected.
    pub(super) shared: Option<Arc<Shared>>,
    pub(super) incoming: Option<async_channel::Sender<Message>>,
    /// Messages that have arrived in part.
    pub(super) partial: BTreeMap<(FlowId, u64), Vec<u8>>,
    /// Ops that wait because those before them span as many numbers as the peer takes, per flow.
    pub(super) waiting: Vec<VecDeque<Pending>>,
    /// Once it is connected.
    pub(super) path: Option<Path>,
    /// Ops that the transport has.
    pub(super) under_way: u32,
    /// Who asked for it, until they know.
    pub(super) asked: Option<Asked>,
    /// While an answer is awaited.
    pub(super) reach_probes: Option<ReachProbes>,
    /// Its place among those that the application has not accepted, until it is connected.
    place: Option<Place>,
    /// Whether it is to close when its ops have ended, and who waits for that.
    pub(super) closing: Option<Vec<oneshot::Sender<()>>>,
}

impl Engine {
    pub(super) fn on_connect(
        &mut self,
        now: Time,
        peer: SocketAddr,
        classes: Vec<u8>,
        key: Option<KeyId>,
        reply: oneshot::Sender<Result<Handle, ConnectError>>,
    ) {
        match self.try_connect(now, peer, classes, key) {
            Ok(session) => {
                if let Some(connection) = self.connections.get_mut(session.index()) {
                    connection.asked =
                        Some(Asked::new(&self.siblings, (peer, self.index), key, reply));
                    let first = now + self.config.session.retry;
                    connection.reach_probes = Some(ReachProbes::new(first));
                    self.next_probe = self.next_probe.min(first);
                }
            }
            // Nobody may be waiting any more.
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn try_connect(
        &mut self,
        now: Time,
        peer: SocketAddr,
        classes: Vec<u8>,
        key: Option<KeyId>,
    ) -> Result<SessionId, ConnectError> {
        let most = self.config.max_flows;
        let flows = classes.len() as u32; // `Host` caps it
        if !(1..=most).contains(&flows) {
            let what = format!("{flows} flows asked for; max_flows allows 1 to {most}");
            return Err(ConnectError::Incompatible(what));
        }
        if let Some(class) = classes.iter().find(|&&class| usize::from(class) >= CLASSES) {
            let what = format!("traffic class {class} asked for; there are 0 to {}", CLASSES - 1);
            return Err(ConnectError::Incompatible(what));
        }
        if peer.is_ipv6() != self.shared.address.is_ipv6() {
            return Err(ConnectError::Family { peer, own: self.shared.address });
        }
        let key = key.or_else(|| self.config.keys.ids().next()).ok_or(ConnectError::NoKey)?;
        self.take_asked(now, peer, Asked::is_unwanted);
        let mtu = self.path_mtu(peer);
        let flows = self.open_flows(flows, first_mtu(mtu));
        let hello = self.hello(mtu, &flows, &classes).encode().ok_or_else(|| {
            let count = flows.len();
            let what = format!(
                "the numbers of {count} free flows are too scattered for one handshake; \
                 ask for fewer flows"
            );
            ConnectError::Incompatible(what)
        });
        // The session keeps this source address, even if the route changes.
        let peer = Peer { address: peer, local: self.socket.source_to(peer) };
        let session = hello.and_then(|hello| {
            self.sessions.connect(now, peer, key, &hello).map_err(|error| match error {
                NoSession::Full | NoSession::HelloTooLong => ConnectError::TooMany,
                NoSession::NoKey(_) => ConnectError::NoKey,
                NoSession::Exists(_) => ConnectError::Exists,
            })
        });
        match session {
            Ok(session) => {
                self.insert(session, peer, first_mtu(mtu), flows, classes);
                Ok(session)
            }
            Err(error) => {
                flows.iter().for_each(|&flow| self.endpoint.release(now, flow));
                Err(error)
            }
        }
    }

    fn open_flows(&mut self, count: u32, mtu: u32) -> Vec<FlowId> {
        let info =
            FlowInfo { line_rate: self.config.line_rate, ..full_packets(mtu, self.headers()) };
        let open = |i| {
            let info = FlowInfo { seed: u64::from(i), ..info };
            self.endpoint.open(FlowId::new(0), &self.config.algorithm, &info)
        };
        let mut flows: Vec<FlowId> = (0..count).map(open).collect();
        flows.sort_unstable(); // so that the hello names them in few runs
        flows
    }

    fn hello(&self, mtu: u32, flows: &[FlowId], classes: &[u8]) -> Hello {
        Hello {
            max_mtu: mtu.min(u32::from(u16::MAX)) as u16,
            max_ops: self.config.max_ops,
            max_message: self.config.max_message,
            flows: flows.to_vec(),
            classes: classes.to_vec(),
        }
    }

    fn insert(
        &mut self,
        session: SessionId,
        peer: Peer,
        told_mtu: u32,
        flows: Vec<FlowId>,
        classes: Vec<u8>,
    ) {
        for (place, flow) in flows.iter().enumerate() {
            if self.owners.len() <= flow.index() {
                self.owners.resize(flow.index() + 1, None);
            }
            self.owners[flow.index()] = Some(Owner { session, place });
        }
        let waiting = flows.iter().map(|_| VecDeque::new()).collect();
        let connection = Connection {
            session,
            peer,
            segmentation: true,
            told_mtu,
            flows,
            classes,
            shared: None,
            incoming: None,
            partial: BTreeMap::new(),
            waiting,
            path: None,
            under_way: 0,
            asked: None,
            reach_probes: None,
            place: None,
            closing: None,
        };
        self.connections.insert(session.index(), connection);
    }

    #[inline]
    pub(super) fn take_session_events(&mut self, now: Time) {
        while let Some(event) = self.sessions.poll_event() {
            self.on_session_event(now, event);
        }
    }

    #[cold]
    fn on_session_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Incoming { session, from, hello, .. } => {
                self.on_incoming(now, session, from, &hello);
            }
            Event::Connected { session, hello } => self.on_connected(now, session, &hello),
            Event::Ended { session, reason } => self.on_ended(now, session, reason),
        }
    }

    fn on_incoming(&mut self, now: Time, session: SessionId, from: Peer, hello: &[u8]) {
        let hello = match Hello::decode(hello) {
            Ok(hello) if hello.flows.len() <= self.config.max_flows as usize => hello,
            _ => return self.sessions.refuse(session),
        };
        let Some(place) = self.backlog.reserve() else { return self.sessions.refuse(session) };
        let mtu = self.path_mtu(from.address);
        let flows = self.open_flows(hello.flows.len() as u32, first_mtu(mtu));
        let said = self.hello(mtu, &flows, &hello.classes).encode();
        let accepted = said.is_some_and(|said| self.sessions.accept(now, session, &said).is_ok());
        if accepted {
            self.insert(session, from, first_mtu(mtu), flows, hello.classes);
            if let Some(connection) = self.connections.get_mut(session.index()) {
                connection.place = Some(place);
            }
        } else {
            flows.iter().for_each(|&flow| self.endpoint.release(now, flow));
            self.sessions.refuse(session);
        }
    }

    fn on_connected(&mut self, now: Time, session: SessionId, hello: &[u8]) {
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let hello = Hello::decode(hello).and_then(|hello| {
            let (said, have) = (hello.flows.len(), connection.flows.len());
            if said == have {
                Ok(hello)
            } else {
                Err(format!("the peer opened {said} flows, not {have}"))
            }
        });
        let hello = match hello {
            Ok(hello) => hello,
            Err(what) => {
                if let Some(asked) = connection.asked.take() {
                    asked.tell(Err(ConnectError::Incompatible(what)));
                }
                self.sessions.close(now, session);
                return self.remove(now, session, End::ClosedHere);
            }
        };
        let peer = connection.peer.address;
        for (&flow, &theirs) in connection.flows.iter().zip(&hello.flows) {
            self.endpoint.set_peer(flow, theirs);
        }
        let mtu = self.path_mtu(peer).min(u32::from(hello.max_mtu));
        if let Some(connection) = self.connections.get_mut(session.index()) {
            connection.path = Some(Path::new(now, mtu));
            connection.reach_probes = None;
        }
        self.apply_path(session);
        self.next_probe = now;
        self.hand_over(session, &hello);
        add_connections(self, 1);
    }

    /// Gives the application its end of a connection.
    fn hand_over(&mut self, session: SessionId, hello: &Hello) {
        let driver = self.driver();
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let shared = Arc::new(Shared {
            session,
            peer: connection.peer.address,
            engine: Arc::clone(&self.shared),
            in_flight: connection.flows.iter().map(|_| AtomicU32::new(0)).collect(),
            max_ops: self.config.max_ops.min(hello.max_ops),
            max_message: hello.max_message,
            ended: OnceLock::new(),
            queued_bytes: AtomicU64::new(0),
            queued_messages: AtomicU32::new(0),
            tickets: AtomicU64::new(0),
        });
        // What may be queued is counted before it gets here; a bounded channel would have its room at once.
        let (sender, messages) = async_channel::unbounded();
        connection.shared = Some(Arc::clone(&shared));
        connection.incoming = Some(sender);
        let (asked, place) = (connection.asked.take(), connection.place.take());
        let Some(driver) = driver else { return };
        let handle = Handle::new(shared, messages, driver);
        // A handle that is not taken is dropped, which closes the connection.
        match (asked, place) {
            (Some(asked), _) => asked.tell(Ok(handle)),
            (None, Some(place)) => self.backlog.put(handle, place),
            (None, None) => {}
        }
    }

    /// Connections under keys that the ring has no more end.
    pub(super) fn on_keys(&mut self, now: Time, keys: KeyRing) {
        // `Host` has seen to it that the mode is the same.
        if self.sessions.set_keys(now, keys.clone()).is_ok() {
            self.config.keys = keys;
            self.take_session_events(now);
        }
    }

    fn on_ended(&mut self, now: Time, session: SessionId, reason: SessionEnd) {
        if let Some(connection) = self.connections.get_mut(session.index())
            && connection.session == session
            && let Some(asked) = connection.asked.take()
        {
            let probes = connection.reach_probes.take();
            asked.tell(Err(match reason {
                SessionEnd::Refused | SessionEnd::Closed => ConnectError::Refused,
                SessionEnd::PeerFull => ConnectError::PeerFull,
                SessionEnd::CipherRefused => {
                    ConnectError::CipherRefused(self.config.session.cipher)
                }
                SessionEnd::Crossed => ConnectError::Crossed,
                SessionEnd::KeyWithdrawn => ConnectError::NoKey,
                SessionEnd::OtherMode => ConnectError::OtherMode,
                _ => probes.map_or(ConnectError::NoAnswer, ReachProbes::verdict),
            }));
        }
        let end = match reason {
            SessionEnd::Closed => End::ClosedByPeer,
            SessionEnd::Forgotten | SessionEnd::Restarted => End::PeerRestarted,
            SessionEnd::Replaced => End::Replaced,
            SessionEnd::KeyWithdrawn => End::KeyWithdrawn,
            _ => End::Silent,
        };
        self.remove(now, session, end);
    }

    /// Closes a connection when its ops have ended; a wait of its owner ends then.
    pub(super) fn on_close(
        &mut self,
        now: Time,
        session: SessionId,
        closed: Option<oneshot::Sender<()>>,
    ) {
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        if connection.session == session {
            connection.closing.get_or_insert_default().extend(closed);
            self.close_if_idle(now, session);
        }
    }

    pub(super) fn close_if_idle(&mut self, now: Time, session: SessionId) {
        let Some(connection) = self.connections.get(session.index()) else { return };
        let idle = connection.under_way == 0 && connection.waiting.iter().all(VecDeque::is_empty);
        if connection.closing.is_none() || !idle {
            return;
        }
        // What the peer is owed goes first: acknowledgements.
        self.send();
        self.sessions.close(now, session);
        // The peer hears of it now: nobody may drive the engine afterwards.
        self.send();
        self.remove(now, session, End::ClosedHere);
    }

    /// Ends a connection for the application, with all its ops; its place stays.
    pub(super) fn end_connection(&mut self, now: Time, session: SessionId, end: End) {
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        if let Some(shared) = &connection.shared {
            // It may have ended before.
            let _ = shared.ended.set(end);
        }
        connection.incoming = None;
        connection.partial.clear();
        for waits in connection.waiting.iter_mut().flat_map(|queue| queue.drain(..)) {
            if let Some(deadline) = waits.waiting_deadline() {
                self.deadlines.remove(&deadline);
            }
        }
        for flow in connection.flows.clone() {
            self.endpoint.abort(now, flow);
        }
        self.complete();
    }

    pub(super) fn remove(&mut self, now: Time, session: SessionId, end: End) {
        if self.connections.get(session.index()).is_none_or(|c| c.session != session) {
            return;
        }
        self.end_connection(now, session, end);
        let Some(connection) = self.connections.remove(session.index()) else { return };
        if connection.shared.is_some() {
            add_connections(self, -1);
        }
        self.refusals.forget(|flow, _| connection.flows.contains(&flow));
        for flow in connection.flows {
            self.owners[flow.index()] = None;
            self.endpoint.release(now, flow);
        }
        for closed in connection.closing.into_iter().flatten() {
            let _ = closed.send(());
        }
    }
}

pub(super) fn add_connections(engine: &Engine, change: i64) {
    let connections = &engine.shared.stats.connections;
    connections.fetch_add(change as u64, Ordering::Relaxed); // wraps for -1
}
