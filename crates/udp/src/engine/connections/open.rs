//! The opening of connections: requests of applications, handshakes of peers, and the reasons of failed handshakes.

use std::sync::Arc;

use apus_cc::FlowInfo;
use apus_units::{FlowId, Time};

use super::path::{PathSearch, first_mtu, full_packets};
use super::peer_flows::PeerFlows;
use super::probes::path_mtu;
use super::reach::ReachProbes;
use super::siblings::Question;
use super::{Connections, Flows, Stage};
use crate::accept::{Incoming, Towards};
use crate::backlog::NoSlot;
use crate::config::{CLASSES, Config};
use crate::connection_state::{ConnectionLimits, ConnectionState, InboxLimits, PeerIdentity};
use crate::containment::contain;
use crate::engine::endpoint::Endpoint;
use crate::engine::inbox::Inbox;
use crate::engine::network::Network;
use crate::engine::op_table::OpTable;
use crate::error::{ConnectError, End};
use crate::hello::Hello;
use crate::key_use::KeyLimit;
use crate::mailbox::{ConnectRequest, Opened};
use crate::session::{
    ConnectError as NoSession, End as SessionEnd, KeyId, Peer, PeerKey, Principal, SessionId, Told,
};

/// Number of bits for a connection's number within its engine; the bits above them, in its number within the host,
/// identify the engine.
const ENGINE_SHIFT: u32 = 56;

/// Maximum number of flows that are set aside in the search for flow numbers that a hello can express. A connection
/// that needs more is not opened. deviation: no source; a connection has at most as many flows (`max_flows`), so the
/// search costs about as much as opening one.
const MAX_ASIDE: usize = 1024;

/// A session that a peer has requested.
pub(super) struct Requested<'a> {
    pub(super) session: SessionId,
    pub(super) from: Peer,
    pub(super) key: KeyId,
    pub(super) identity: Option<PeerKey>,
    pub(super) hello: &'a [u8],
}

impl Connections {
    /// Opens a connection.
    pub(in crate::engine) fn connect<N: Network>(
        &mut self,
        now: Time,
        request: ConnectRequest,
        ops: &mut OpTable,
        network: &N,
    ) {
        let (session, peer, mtu, flows) = match self.begin(now, &request, ops, network) {
            Ok(begun) => begun,
            Err(error) => {
                self.log.not_opened(now, request.peer, &error);
                // The application may have given up its wait.
                let _ = request.reply.send(Err(error));
                return;
            }
        };
        let first_probe = now + self.config.session.retry;
        let probes = ReachProbes::new(first_probe);
        let stage = Stage::Opening { question: self.siblings.ask(request), probes };
        self.insert(session, peer, mtu, flows, (stage, None));
        self.next_probe = self.next_probe.min(first_probe);
    }

    /// Begins the handshake of a connection. Returns its session, peer, MTU and flows.
    fn begin<N: Network>(
        &mut self,
        now: Time,
        request: &ConnectRequest,
        ops: &mut OpTable,
        network: &N,
    ) -> Result<(SessionId, Peer, u32, Flows), ConnectError> {
        let key = self.check(request)?;
        let address = request.peer;
        self.take_request(now, address, Question::is_abandoned, ops);
        let path_mtu = path_mtu(&self.config, address, network);
        let mtu = first_mtu(path_mtu);
        let opened = self.open_flows(now, &request.classes, path_mtu, &mut ops.endpoint);
        let (flows, hello) = opened.ok_or_else(|| {
            ConnectError::Incompatible(format!(
                "the numbers of {} free flows are too scattered for one handshake, or their classes alternate too often; ask for \
                 fewer flows",
                request.classes.len()
            ))
        })?;
        // The session keeps this source address, even if the route changes.
        let peer = Peer { address, local: network.source_to(address), port: 0 };
        let session = self.sessions.connect(now, peer, key, &hello).map_err(|error| match error {
            NoSession::Full | NoSession::HelloTooLong => ConnectError::TooMany,
            NoSession::NoKey(_) => ConnectError::NoKey,
            NoSession::Exists(_) => ConnectError::Exists,
        });
        match session {
            Ok(session) => Ok((session, peer, mtu, flows)),
            Err(error) => {
                flows.release(now, &mut ops.endpoint);
                Err(error)
            }
        }
    }

    /// Checks a request. Returns the key that this host must prove.
    fn check(&self, request: &ConnectRequest) -> Result<KeyId, ConnectError> {
        let (flows, max) = (request.classes.len(), self.config.max_flows);
        if !(1..=max as usize).contains(&flows) {
            let what = format!("{flows} flows requested; max_flows allows 1 to {max}");
            return Err(ConnectError::Request(what));
        }
        if let Some(class) = request.classes.iter().find(|&&class| usize::from(class) >= CLASSES) {
            let what = format!("traffic class {class} requested; choose 0 to {}", CLASSES - 1);
            return Err(ConnectError::Request(what));
        }
        let (peer, status) = (request.peer, &self.mailbox.status);
        if status.is_draining() {
            return Err(ConnectError::Draining);
        }
        if !status.families.reaches(peer) {
            return Err(ConnectError::Family { peer, own: status.address });
        }
        let ring = self.sessions.ring();
        match &request.towards {
            Towards::Key(key) => Ok(*key),
            Towards::Any => Ok(ring.towards(None)?),
            Towards::Named(name) => Ok(ring.towards(Some(name))?),
        }
    }

    /// Opens the flows of a connection over a path of this MTU. Returns the flows, and the hello that names them.
    ///
    /// The transport reuses the numbers of closed flows. If these numbers are too scattered for a hello, they are set
    /// aside until others have been found. Returns `None` if too many must be set aside.
    fn open_flows(
        &self,
        now: Time,
        classes: &[u8],
        path_mtu: u32,
        endpoint: &mut Endpoint,
    ) -> Option<(Flows, Vec<u8>)> {
        let mut aside = Vec::new();
        let opened = loop {
            let flows = self.open_any(classes.to_vec(), first_mtu(path_mtu), endpoint);
            if let Some(hello) = self.hello(&flows).encode() {
                break Some((flows, hello));
            }
            aside.extend(flows.ids);
            if aside.len() > MAX_ASIDE {
                break None;
            }
        };
        // The transport reuses the number that was released last first. Releasing in descending order therefore keeps
        // the numbers in order.
        aside.sort_unstable_by(|a, b| b.cmp(a));
        aside.into_iter().for_each(|flow| endpoint.release(now, flow));
        opened
    }

    /// Opens flows with any numbers.
    fn open_any(&self, classes: Vec<u8>, mtu: u32, endpoint: &mut Endpoint) -> Flows {
        let line_rate = self.config.line_rate;
        let info = FlowInfo { line_rate, ..full_packets(mtu, self.header_bytes()) };
        let open = |i| {
            let info = FlowInfo { seed: i, ..info };
            endpoint.open(FlowId::new(0), &self.config.algorithm, &info)
        };
        let mut ids: Vec<FlowId> = (0..classes.len() as u64).map(open).collect();
        ids.sort_unstable(); // so that the hello names them in few runs
        Flows { ids, classes }
    }

    fn hello(&self, flows: &Flows) -> Hello {
        Hello {
            // The MTU that this host accepts. The kernel's MTU is not used: it describes the path to the peer, not the
            // path to this host, and it expires.
            max_mtu: self.config.max_mtu.min(u32::from(u16::MAX)) as u16,
            max_ops: self.config.max_ops,
            max_message: self.config.max_message,
            flows: flows.ids.clone(),
            classes: flows.classes.clone(),
            ports: Some(self.config.offer()),
        }
    }

    /// Accepts or refuses the handshake of a peer.
    pub(super) fn on_incoming<N: Network>(
        &mut self,
        now: Time,
        request: Requested<'_>,
        endpoint: &mut Endpoint,
        network: &N,
    ) {
        let Requested { session, from, key, identity, hello } = request;
        let peer = from.address;
        if self.mailbox.status.is_draining() {
            self.log.refused(now, peer, "this host is shutting down");
            return self.sessions.refuse_draining(session);
        }
        let holder = self.sessions.holder(session);
        let hello = match self.admit(hello) {
            Ok(admitted) => admitted,
            Err(reason) => {
                self.log.refused(now, peer, reason);
                return self.sessions.refuse(session);
            }
        };
        let slot = match self.backlog.reserve(holder) {
            Ok(slot) => slot,
            Err(NoSlot::Full) => {
                let why = "the application has not accepted max_unaccepted connections";
                self.log.refused(now, peer, why);
                return self.sessions.refuse(session);
            }
            Err(NoSlot::Quota) => {
                let why = "the application has not accepted a quarter of max_unaccepted connections of its peer, or three quarters \
                           of peers that are not listed";
                self.log.refused(now, peer, why);
                return self.sessions.refuse_beyond_quota(now, session);
            }
        };
        if let Some(hook) = &self.config.accept {
            let name = identity.and_then(|key| self.sessions.ring().name_of(&key));
            let flows = hello.flows.len();
            let incoming = Incoming { from: peer, key, peer_key: identity, peer_name: name, flows };
            let decided = contain(|| hook.decide(&incoming));
            if let Err(why) = decided.unwrap_or_else(|| Err("its accept hook panicked".to_owned()))
            {
                self.log.refused(now, peer, &why);
                return self.sessions.refuse_because(session, &why);
            }
        }
        let held = match holder.filter(|who| who.peer().is_some()) {
            Some(who) => {
                let Config { max_ops, max_flows, quota_ops, .. } = *self.config;
                let limit = KeyLimit::new(quota_ops, 4 * u64::from(max_flows) * u64::from(max_ops));
                // Use the limit of this side, whatever limit the peer states for itself.
                let ops = hello.flows.len() as u64 * u64::from(max_ops);
                let Some(held) = self.uses.hold(who, ops, limit) else {
                    let KeyLimit { of_key, of_unlisted } = limit;
                    let mut why = format!(
                        "with this connection its peer could have more than {of_key} ops outstanding (quota_ops)"
                    );
                    if matches!(who, Principal::Unlisted(_)) {
                        why +=
                            &format!(", or all peers that are not listed more than {of_unlisted}");
                    }
                    self.log.refused(now, peer, &why);
                    return self.sessions.refuse_beyond_quota(now, session);
                };
                Some(held)
            }
            None => None,
        };
        let mtu = path_mtu(&self.config, from.address, network);
        let Some((flows, answer)) = self.open_flows(now, &hello.classes, mtu, endpoint) else {
            let why = "the numbers of free flows are too scattered for the answer";
            self.log.refused(now, peer, why);
            return self.sessions.refuse(session);
        };
        if self.sessions.accept(now, session, &answer).is_ok() {
            let stage = Stage::Incoming { slot };
            self.insert(session, from, first_mtu(mtu), flows, (stage, held));
        } else {
            flows.release(now, endpoint);
            self.sessions.refuse(session);
        }
    }

    /// Checks the hello of a peer that requests a connection. Returns an error that describes the fault.
    fn admit(&self, hello: &[u8]) -> Result<Hello, &'static str> {
        let hello = Hello::decode(hello).map_err(|_| "its hello is none of this version")?;
        if hello.flows.len() > self.config.max_flows as usize {
            return Err("it requests more flows than max_flows");
        }
        Ok(hello)
    }

    /// Connects a session whose handshake is complete. `hello` is the hello of the peer.
    pub(super) fn on_connected<N: Network>(
        &mut self,
        now: Time,
        session: SessionId,
        hello: &[u8],
        ops: &mut OpTable,
        network: &N,
    ) {
        let Some(connection) = self.get_mut(session) else { return };
        let own = connection.flows.len();
        let hello = Hello::decode(hello).and_then(|hello| match hello.flows.len() {
            theirs if theirs == own => Ok(hello),
            theirs => Err(format!("the peer opened {theirs} flows instead of {own}")),
        });
        let hello = match hello {
            Ok(hello) => hello,
            Err(what) => {
                let (peer, opening) = (connection.peer.address, connection.take_opening());
                let error = ConnectError::Incompatible(what);
                self.log.not_opened(now, peer, &error);
                if let Some((question, _)) = opening {
                    question.answer(Err(error));
                }
                return self.close(now, session, ops);
            }
        };
        for (&flow, &theirs) in connection.flows.iter().zip(&hello.flows) {
            ops.endpoint.set_peer(flow, theirs);
        }
        connection.peer_flows = PeerFlows::new(&hello.flows);
        self.spread(now, session, hello.ports.as_ref(), &mut ops.endpoint);
        let Some(connection) = self.get(session) else { return };
        let peer = connection.peer.address;
        let kernel = path_mtu(&self.config, peer, network);
        let opened = self.set_connected(now, session, kernel, &hello);
        self.apply_path(now, session, &mut ops.endpoint);
        self.next_probe = now;
        if let Some((opened, stage)) = opened {
            self.count(1);
            self.log.opened(now, peer, matches!(stage, Stage::Incoming { .. }), own);
            let listed = self.peers.open(peer.ip());
            if let Some(connection) = self.get_mut(session) {
                (connection.peer_listed, connection.since) = (listed, now);
            }
            if let Some(qlog) = self.config.qlog.clone() {
                self.begin_record(now, session, &qlog);
            }
            // If the application does not take its end of the connection, the end is dropped, which closes the
            // connection.
            match stage {
                Stage::Opening { question, .. } => question.answer(Ok(opened)),
                Stage::Incoming { slot } => self.backlog.put(opened, slot),
                Stage::Connected { .. } | Stage::Ended => {}
            }
        }
    }

    /// Marks a connection as connected. Returns the application's end of the connection, and its previous stage.
    fn set_connected(
        &mut self,
        now: Time,
        session: SessionId,
        kernel: u32,
        hello: &Hello,
    ) -> Option<(Opened, Stage)> {
        let (config, mailbox) = (Arc::clone(&self.config), Arc::clone(&self.mailbox));
        let identity = self.sessions.identity(session);
        let name = identity.and_then(|key| self.sessions.ring().name_of(&key)).map(Box::from);
        let number = u64::from(self.siblings.engine) << ENGINE_SHIFT;
        let holder = self.sessions.holder(session).filter(|who| who.peer().is_some());
        let used = holder.map(|who| self.uses.of(who));
        let connection = self.get_mut(session)?;
        let who = PeerIdentity { connection: number | connection.number, key: identity, name };
        let limits = ConnectionLimits {
            max_ops: config.max_ops.min(hello.max_ops),
            max_message: hello.max_message,
        };
        let (peer, flows) = (connection.peer.address, connection.flows.len());
        let engine = Arc::clone(&mailbox.status);
        let state = Arc::new(ConnectionState::new(session, peer, who, engine, limits, flows, used));
        // The inbox reserves room before it sends on this channel. A bounded channel would allocate its full capacity
        // at once.
        let (sender, messages) = async_channel::unbounded();
        let limits = InboxLimits {
            max_message: config.max_message,
            max_queued_bytes: config.max_queued_bytes,
            max_queued_messages: config.max_queued_messages,
            quota_queued_bytes: KeyLimit::new(
                config.quota_queued_bytes,
                config.max_queued_bytes.saturating_mul(4),
            ),
        };
        connection.inbox = Some(Inbox::new(Arc::clone(&state), sender, limits));
        let path = PathSearch::new(now, kernel, config.max_mtu.min(u32::from(hello.max_mtu)));
        let connected = Stage::Connected { state: Arc::clone(&state), path };
        let before = std::mem::replace(&mut connection.stage, connected);
        Some((Opened { state, messages, mailbox }, before))
    }

    /// Removes the connection of a session that the peer has refused with a reason.
    pub(super) fn on_refused(
        &mut self,
        now: Time,
        session: SessionId,
        told: Told,
        ops: &mut OpTable,
    ) {
        let Some(connection) = self.get_mut(session) else { return };
        if let Some((question, _)) = connection.take_opening() {
            let error = match told {
                Told::Application(why) => ConnectError::RefusedBecause(why.into()),
                Told::Unlisted => ConnectError::Unlisted,
                Told::Quota => ConnectError::Quota,
            };
            let peer = connection.peer.address;
            self.log.not_opened(now, peer, &error);
            question.answer(Err(error));
        }
        self.remove(now, session, End::Silent, ops);
    }

    /// Removes the connection of a session that has ended or was never connected.
    pub(super) fn on_ended(
        &mut self,
        now: Time,
        session: SessionId,
        reason: SessionEnd,
        ops: &mut OpTable,
    ) {
        let cipher = self.config.session.cipher;
        let Some(connection) = self.get_mut(session) else { return };
        if let Some((question, probes)) = connection.take_opening() {
            let error = match reason {
                SessionEnd::Refused | SessionEnd::Closed => ConnectError::Refused,
                SessionEnd::PeerDraining => ConnectError::PeerDraining,
                SessionEnd::PeerFull => ConnectError::PeerFull,
                SessionEnd::CipherRefused => ConnectError::CipherRefused(cipher),
                SessionEnd::Crossed => ConnectError::Crossed,
                SessionEnd::KeyWithdrawn => ConnectError::NoKey,
                SessionEnd::OtherMode => ConnectError::OtherMode,
                _ => probes.verdict(),
            };
            let peer = connection.peer.address;
            self.log.not_opened(now, peer, &error);
            question.answer(Err(error));
        }
        let end = match reason {
            SessionEnd::Closed => End::ClosedByPeer,
            SessionEnd::Forgotten | SessionEnd::Restarted => End::PeerRestarted,
            SessionEnd::Replaced => End::Replaced,
            SessionEnd::KeyWithdrawn => End::KeyWithdrawn,
            _ => End::Silent,
        };
        self.remove(now, session, end, ops);
    }
}
