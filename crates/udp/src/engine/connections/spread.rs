//! Connections with several source ports: agreement on the ports, and the choice of the port for each packet.

use apus_cc::{Ev, PathPolicy};
use apus_transport::{LossRule, Path, SpreadConfig};
use apus_units::{FlowId, Span, Time};

use super::path::full_packets;
use super::ports::{Ports, by_port};
use super::{Connections, Route};
use crate::engine::connections::Connection;
use crate::engine::endpoint::Endpoint;
use crate::report::{Paths, PortPaths};
use crate::session::{Peer, SessionId};
use crate::spreading::{Offer, OnePort};

/// Loss detection of flows that have one port on this side: the rule for flows without further ports (RFC 9002 §6.1.1).
const IN_ORDER: LossRule = LossRule::Count(3);
/// Number of consecutive losses and timeouts after which a port is not used until the peer has confirmed it again.
/// deviation: MRC leaves a path after the first loss, because its switches trim packets that do not fit; here a single
/// loss may be due to a full queue.
const FAILURES: u32 = 2;

impl Connections {
    /// Returns `true` if a connection uses several ports.
    #[inline]
    pub(in crate::engine) fn spreads(&self) -> bool {
        self.spreads > 0
    }

    /// Makes an opening connection use the ports on which both sides agree. `theirs` is the peer's offer.
    pub(super) fn spread(
        &mut self,
        now: Time,
        session: SessionId,
        theirs: Option<&Offer>,
        endpoint: &mut Endpoint,
    ) {
        let (offer, ack_path) = (self.config.offer(), self.config.ack_path);
        let keepalive = self.config.session.keepalive;
        let one_port = match theirs {
            _ if offer.sends == 1 => Some(OnePort::Off),
            None => Some(OnePort::PeerTooOld),
            Some(theirs) if theirs.accepts == 1 => Some(OnePort::PeerAcceptsOne),
            Some(_) => None,
        };
        let agreed = offer.agreed(theirs);
        let Some(connection) = self.get_mut(session) else { return };
        connection.one_port = one_port;
        let Some(agreed) = agreed else { return };
        connection.ports = Some(Box::new(Ports::new(now, agreed, ack_path, keepalive)));
        let flows = connection.flows.clone();
        self.spreads += 1;
        self.sessions.use_ports(session, agreed.own, agreed.peer);
        let own = self.config.spreading.as_ref().filter(|_| agreed.own > 1);
        let (policy, transport) = match own {
            Some(own) => (own.balancer().policy(), own.transport(agreed.range)),
            None => {
                (&self.one_path, SpreadConfig { loss: IN_ORDER, range: agreed.range, ack_bytes: 0 })
            }
        };
        for (index, &flow) in (0..).zip(&flows) {
            let seed = u64::from(session.get()) << 16 | index;
            endpoint.spread(flow, policy.clone(), transport, seed);
            endpoint.count_evs(flow, usize::from(agreed.own));
            if policy.reads_marks() {
                endpoint.mark_late(flow);
            }
        }
    }

    /// Returns the peer, with source and destination port, for a packet of a flow with several ports. Also returns the
    /// entropy value of the port if it differs from the policy's choice.
    #[inline(never)] // flows with one port do not need it
    pub(in crate::engine) fn choose(
        &mut self,
        now: Time,
        route: &Route,
        (flow, path): (FlowId, Path),
        endpoint: &mut Endpoint,
    ) -> (Peer, Option<Ev>) {
        let Self { table, sessions, .. } = self;
        let connection = table.get_mut(route.session.index()).and_then(|c| c.as_deref_mut());
        let Some(ports) = connection.and_then(|c| c.ports.as_mut()) else {
            return (route.to, None);
        };
        match path {
            Path::Label(_) => (route.to, None),
            Path::Spread(ev) => {
                let mut chosen = ports.choose(now, ev);
                let failures = endpoint.ev_counters(flow).get(usize::from(chosen.port));
                if failures.is_some_and(|counters| counters.failures >= FAILURES)
                    && ports.suspect(now, chosen.port)
                {
                    self.next_probe = now;
                    chosen = ports.choose(now, ev);
                }
                if chosen.due {
                    self.next_probe = now;
                }
                (by_port(route.to, chosen.port), chosen.replaced)
            }
            Path::Back(path) => {
                let path = path as u8; // a port number, below 256
                let back = ports.back(now, path);
                if back.due {
                    self.next_probe = now;
                }
                let to = match back.port {
                    Some(port) => Some(by_port(route.to, port)),
                    None => sessions.at_port(route.session, path),
                };
                (to.unwrap_or(route.to), None)
            }
        }
    }

    /// Handles the report, in an acknowledgement of a flow, on a packet that left at `sent_at` with this entropy value.
    #[inline]
    pub(in crate::engine) fn on_heard(
        &mut self,
        now: Time,
        session: SessionId,
        (ev, sent_at): (Ev, Time),
        endpoint: &mut Endpoint,
    ) {
        let Some(connection) = self.get_mut(session) else { return };
        let Some(ports) = &mut connection.ports else { return };
        let number = (ev.index() % usize::from(ports.agreed.own)) as u8; // at most 256 ports
        if ports.heard(now, number, sent_at) {
            connection.forgive(number, endpoint);
            self.next_probe = now;
        }
    }

    /// Handles the peer's confirmation of a port, in answer to a request of `length` bytes of UDP payload.
    #[cold]
    pub(in crate::engine) fn on_joined(
        &mut self,
        now: Time,
        session: SessionId,
        (number, length): (u8, usize),
        endpoint: &mut Endpoint,
    ) {
        let Some(connection) = self.get_mut(session) else { return };
        let full = connection.join_bytes();
        if let Some(ports) = &mut connection.ports
            && ports.on_joined(now, number, (length, full))
        {
            connection.forgive(number, endpoint);
            self.next_probe = now;
        }
    }
}

impl Connection {
    /// Returns the number of bytes of the UDP payload of full packets.
    pub(super) fn join_bytes(&self) -> usize {
        self.mtu.saturating_sub(crate::engine::outbox::ip_udp_bytes(self.peer.address)) as usize
    }

    /// Calls `join` for each port with a due request, with whether the request is as long as full packets. Returns when
    /// the next request is due.
    pub(super) fn join_ports(
        &mut self,
        now: Time,
        retry: Span,
        join: impl FnMut(u8, bool),
    ) -> Time {
        self.ports.as_mut().map_or(Time::MAX, |ports| ports.step(now, retry, join))
    }

    /// Resets the losses that all flows have counted for a port, because the peer has confirmed the port since.
    fn forgive(&self, number: u8, endpoint: &mut Endpoint) {
        self.flows.iter().for_each(|&flow| endpoint.forgive(flow, Ev::new(number.into())));
    }

    /// Returns the state of the ports. `numbers` are the UDP ports of this side, and `header_bytes` is the number of
    /// bytes of a packet that are not payload.
    pub(super) fn paths(&self, endpoint: &Endpoint, numbers: &[u16], header_bytes: u32) -> Paths {
        let payload = full_packets(self.mtu, header_bytes).payload.get();
        let Some(ports) = &self.ports else {
            let port = numbers.first().copied().unwrap_or(0);
            let only =
                PortPaths { port, usable: true, counters: apus_transport::EvCounters::default() };
            return Paths {
                payload,
                one_port: self.one_port,
                peer_ports: 1,
                range: None,
                ports: vec![only],
            };
        };
        let of_flows = |place: usize| {
            let each = |&flow: &FlowId| endpoint.ev_counters(flow).get(place).copied();
            let mut sum = apus_transport::EvCounters::default();
            for one in self.flows.iter().filter_map(each) {
                sum.sent += one.sent;
                sum.good += one.good;
                sum.marked += one.marked;
                sum.lost += one.lost;
                sum.timeouts += one.timeouts;
            }
            sum
        };
        let all = ports.usable().enumerate().map(|(place, usable)| PortPaths {
            port: numbers.get(place).copied().unwrap_or(0),
            usable,
            counters: of_flows(place),
        });
        let all: Vec<PortPaths> = all.collect();
        let alone = all.iter().filter(|port| port.usable).count() < 2;
        let one_port = self.one_port.or(alone.then_some(OnePort::Unconfirmed));
        let agreed = &ports.agreed;
        let (peer_ports, range) = (agreed.peer, Some(agreed.range));
        Paths { payload, one_port, peer_ports, range, ports: all }
    }
}
