//! Engines and their components in virtual time, without sockets.

mod abuse;
mod atomics;
mod connections;
mod held;
mod kernel;
mod on_path;
mod op_table;
mod quotas;
mod readable;
mod spread;
mod transmitter;

use std::sync::Arc;
use std::time::Duration;

use apus_transport::OpKind;
use apus_units::{Span, Time};
use apus_wire::{RegionKey, RejectReason};
use bytes::Bytes;

use super::virtual_network::VirtualNetwork;
use super::*;
use crate::accept::Towards;
use crate::backlog::Unaccepted;
use crate::connection_state::{ConnectionLimits, ConnectionState, PeerIdentity};
use crate::error::{Cause, ConnectError, OpError};
use crate::grant::Access;
use crate::mailbox::{ConnectRequest, Opened};
use crate::pending::{Buffers, Notify, OpResult};
use crate::region::Region;
use crate::session::{KeyRing, SessionId};
use crate::status::EngineStatus;
use crate::virtual_host;

/// Settings with a constant window of 64 packets, without encryption, transport timeouts and path probes.
pub(super) fn config() -> Config {
    let mut config = Config::new(([10, 0, 0, 1], 7000).into(), KeyRing::insecure()).expect("valid");
    config.mode = Mode::Inline;
    config.max_mtu = 1280;
    let settings =
        [("window", "64"), ("min_rto", "60s"), ("max_rto", "60s"), ("initial_rto", "60s")];
    config.set_algorithm(Some("constant"), &settings).expect("constant");
    config
}

/// A host with one engine.
pub(super) struct VirtualHost {
    pub(super) engine: Engine<VirtualNetwork>,
    pub(super) regions: Arc<Regions>,
    pub(super) accepted: async_channel::Receiver<Unaccepted>,
}

impl VirtualHost {
    pub(super) fn new(address: [u8; 4], config: &Config) -> Self {
        Self::seeded(address, config, address[3])
    }

    /// Returns a host whose keys follow from this seed.
    pub(super) fn seeded(address: [u8; 4], config: &Config, seed: u8) -> Self {
        let listen = vec![(address, 7000).into()];
        let config = Config { listen, ..config.clone() };
        let now = Time::ZERO + Span::from_secs(1);
        let host = virtual_host::VirtualHost::start(&config, [seed; 32], now).expect("valid");
        let virtual_host::VirtualHost { mut engines, regions, accepted, .. } = host;
        let engine = engines.pop().expect("one");
        Self { engine, regions, accepted }
    }

    /// Posts the request for a connection; returns the channel of the answer.
    pub(super) fn connect(&self, peer: &Self) -> oneshot::Receiver<Result<Opened, ConnectError>> {
        self.connect_by(1, peer)
    }

    /// As [`VirtualHost::connect`], with this number of flows.
    pub(super) fn connect_by(
        &self,
        flows: usize,
        peer: &Self,
    ) -> oneshot::Receiver<Result<Opened, ConnectError>> {
        let (reply, receiver) = oneshot::channel();
        let (peer, classes) = (peer.engine.network.local, vec![0; flows]);
        let request = ConnectRequest { peer, classes, towards: Towards::Any, reply };
        self.engine.mailbox.post(Command::Connect(request));
        receiver
    }
}

/// Two hosts and a connection between them.
pub(super) struct Pair {
    pub(super) hosts: [VirtualHost; 2],
    pub(super) client: Opened,
    pub(super) server: Opened,
}

/// Exchanges datagrams until none is left, then moves time to the next timer if that is at most `patience` later, and repeats
/// this.
pub(super) fn run(hosts: &mut [VirtualHost], patience: Span) {
    let end = hosts[0].engine.network.now.get() + patience;
    loop {
        let mut busy = true;
        while busy {
            busy = false;
            for i in 0..hosts.len() {
                busy |= hosts[i].engine.step(true);
                for j in 0..hosts.len() {
                    let [to, from] = [j, i].map(|host| &hosts[host].engine.network);
                    busy |= i != j && to.deliver_from(from) > 0;
                }
            }
        }
        let now = hosts[0].engine.network.now.get();
        let timers = hosts.iter_mut().map(|host| host.engine.next_due());
        let next = timers.min().unwrap_or(Time::MAX).max(now + Span::from_us(1));
        let next = next.min(end);
        if now >= end {
            return;
        }
        hosts.iter().for_each(|host| host.engine.network.now.set(next));
    }
}

impl Pair {
    pub(super) fn connect(config: &Config) -> Self {
        let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], config));
        let answer = hosts[0].connect(&hosts[1]);
        run(&mut hosts, Span::from_ms(1));
        let client = answer.try_recv().expect("answered").expect("connected");
        let server = hosts[1].accepted.try_recv().expect("accepted").connection;
        Self { hosts, client, server }
    }

    pub(super) fn run(&mut self, patience: Span) {
        run(&mut self.hosts, patience);
    }

    pub(super) fn register(&self, host: usize, bytes: Vec<u8>, access: Access) -> Region {
        Region::new(&self.hosts[host].regions, Box::new(bytes), access, None).expect("room")
    }
}

/// Returns an op of flow `flow`, and the channel of its completion.
pub(super) fn pending(
    connection: &Arc<ConnectionState>,
    flow: usize,
    kind: OpKind,
    buffers: Buffers,
    deadline: Option<Duration>,
) -> (Pending, oneshot::Receiver<OpResult>) {
    connection.begin_op(flow, kind, false).expect("room");
    let (sender, receiver) = oneshot::channel();
    let pending = Pending {
        connection: Arc::clone(connection),
        flow,
        kind,
        buffers,
        ticket: connection.ticket(flow),
        started: false,
        deadline,
        accepted_at: Time::ZERO,
        notify: Some(Notify::One(sender)),
    };
    (pending, receiver)
}

pub(super) fn submit(
    opened: &Opened,
    kind: OpKind,
    buffers: Buffers,
) -> oneshot::Receiver<OpResult> {
    submit_to(opened, 0, kind, buffers)
}

/// As [`submit`], on flow `flow`.
pub(super) fn submit_to(
    opened: &Opened,
    flow: usize,
    kind: OpKind,
    buffers: Buffers,
) -> oneshot::Receiver<OpResult> {
    let (pending, receiver) = pending(&opened.state, flow, kind, buffers, None);
    assert!(opened.mailbox.submit(pending).is_ok(), "the ring has room");
    receiver
}

pub(super) fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn write_to(region: RegionKey) -> OpKind {
    OpKind::Write { region, address: 0 }
}

#[test]
fn writes_reads_and_messages_arrive_in_virtual_time() {
    let mut pair = Pair::connect(&config());
    let region = pair.register(1, vec![0; 100_000], Access::ALL);
    let sent = bytes(100_000);
    let write = submit(&pair.client, write_to(region.key()), Buffers::Payload(sent.clone().into()));
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(sent.clone().into()));
    pair.run(Span::from_ms(1));
    write.try_recv().expect("ended").expect("written");
    message.try_recv().expect("ended").expect("delivered");
    assert!(region.read(|memory| memory == sent));
    let received = pair.server.messages.try_recv().expect("a message");
    assert!((received.flow, &received.bytes[..]) == (0, &sent[..]));
    let kind = OpKind::Read { region: region.key(), address: 0 };
    let read = submit(&pair.client, kind, Buffers::Vec(vec![0; 100_000]));
    pair.run(Span::from_ms(1));
    assert!(read.try_recv().expect("ended").expect("read").bytes == sent);
}

#[test]
fn a_connection_closes_after_its_last_op_and_the_peer_learns_it() {
    let mut pair = Pair::connect(&config());
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(50_000).into()));
    let (closed, is_closed) = oneshot::channel();
    pair.client.mailbox.ask(&pair.client.state, ConnectionCommand::Close { closed: Some(closed) });
    pair.run(Span::from_ms(1));
    message.try_recv().expect("ended").expect("delivered before the end");
    is_closed.try_recv().expect("closed");
    assert_eq!(pair.client.state.ended(), Some(End::ClosedHere));
    assert_eq!(pair.server.state.ended(), Some(End::ClosedByPeer));
    let connections = pair.hosts.iter().map(|host| &host.engine.protocol.connections);
    assert!(connections.into_iter().all(Connections::is_empty));
}

#[test]
fn a_stopped_engine_ends_the_waits_for_connections_and_closings() {
    let mut hosts = [1, 2].map(|n| VirtualHost::new([10, 0, 0, n], &config()));
    let answer = hosts[0].connect(&hosts[1]);
    hosts[0].engine.step(true);
    hosts[0].engine.mailbox.stop();
    hosts[0].engine.step(true);
    assert!(matches!(answer.try_recv(), Err(oneshot::TryRecvError::Disconnected)));

    let mut pair = Pair::connect(&config());
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(10).into()));
    let (closed, is_closed) = oneshot::channel();
    pair.client.mailbox.ask(&pair.client.state, ConnectionCommand::Close { closed: Some(closed) });
    pair.hosts[0].engine.step(true);
    pair.client.mailbox.stop();
    pair.hosts[0].engine.step(true);
    assert!(matches!(is_closed.try_recv(), Err(oneshot::TryRecvError::Disconnected)));
    let end = message.try_recv().expect("ended").expect_err("not acknowledged");
    assert_eq!(end, OpError::Unknown(Cause::Ended(End::Stopped)));
}

#[test]
fn a_failed_engine_ends_ops_as_unknown_and_tells_the_peer() {
    let mut pair = Pair::connect(&config());
    let message = submit(&pair.client, OpKind::Message, Buffers::Payload(bytes(10).into()));
    pair.hosts[0].engine.step(true);
    pair.hosts[0].engine.fail();
    let end = message.try_recv().expect("ended").expect_err("failed");
    assert_eq!(end, OpError::Unknown(Cause::Ended(End::EngineFailed)));
    assert_eq!(pair.client.state.ended(), Some(End::EngineFailed));
    pair.run(Span::from_ms(1));
    assert_eq!(pair.server.state.ended(), Some(End::ClosedByPeer));
}
