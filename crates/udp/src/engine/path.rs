//! The longest packet that a path takes, found out by probes (RFC 8899): what the kernel knows of the
//! path is where the search begins, because routers that drop long packets without a word exist.

use std::net::SocketAddr;

use apus_cc::{FlowInfo, PacketSizeEvent};
use apus_units::{Bytes, Span, Time};

use super::Engine;
use super::send::ip_udp_bytes;
use crate::config::header_bytes;
use crate::session::SessionId;

/// The packet that every path takes, in bytes. Source: RFC 8899 §5.1.2, BASE_PLPMTU for IPv6.
pub(super) const BASE: u32 = 1280;
/// Probes of one length that go unanswered before it counts as too long. Source: RFC 8899 §5.1.2,
/// MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// Steps of the search: it ends when this much or less may be gained. deviation: RFC 8899 §5.3.2 leaves
/// it open; 32 bytes are 2 % of the shortest packets.
const STEP: u32 = 32;
/// Time after which a longer packet is tried again. Source: RFC 8899 §5.1.1, PMTU_RAISE_TIMER: 600 s.
const RAISE_AFTER: Span = Span::from_secs(600);

/// What a packet takes of an Ethernet link beside the bytes that count for its MTU: header, checksum, preamble and
/// gap (IEEE 802.3).
const ETHERNET: u32 = 14 + 4 + 8 + 12;

/// What is known of a path, in bytes of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Packets of this length arrive.
    pub(super) confirmed: u32,
    /// Longer ones than this do not, or are not wanted.
    most: u32,
    /// The most that both hosts and the kernel allow.
    limit: u32,
    /// The probe under way: its length, how many went, and when the next is due.
    probe: Option<(u32, u32, Time)>,
    /// When the search begins anew.
    raise_at: Time,
    /// Packets of its flows that timeouts have given up, when they were last looked at.
    timeouts: u64,
}

/// What a path wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing before then.
    Wait(Time),
    /// Send a probe of this length.
    Probe(u32),
    /// Packets may be no longer than is confirmed, which has shrunk.
    Shrink,
}

impl Path {
    /// A path of which the kernel and both hosts allow packets of up to `limit` bytes.
    pub(super) fn new(now: Time, limit: u32) -> Self {
        let confirmed = limit.min(BASE);
        let probe = (limit > confirmed).then_some((limit, 0, now));
        Self { confirmed, most: limit, limit, probe, raise_at: Time::MAX, timeouts: 0 }
    }

    /// The next length to try: half of what may be gained.
    fn next(&mut self, now: Time) {
        let gap = self.most - self.confirmed;
        self.probe = (gap > STEP).then(|| (self.confirmed + gap.div_ceil(2), 0, now));
        let below = self.probe.is_none() && self.confirmed + STEP < self.limit;
        self.raise_at = if below { now + RAISE_AFTER } else { Time::MAX };
    }

    /// What is due at `now`; probes are repeated after `wait`.
    fn step(&mut self, now: Time, wait: Span) -> Step {
        let Some((length, sent, at)) = self.probe else {
            if self.raise_at > now {
                return Step::Wait(self.raise_at);
            }
            self.most = self.limit;
            self.raise_at = Time::MAX;
            self.probe = Some((self.limit, 0, now));
            return self.step(now, wait);
        };
        if at > now {
            return Step::Wait(at);
        }
        if sent < MAX_PROBES {
            self.probe = Some((length, sent + 1, now + wait));
            return Step::Probe(length);
        }
        self.most = length - 1;
        let shrunk = length <= self.confirmed;
        if shrunk {
            // A black hole: what was confirmed does not arrive any more (RFC 8899 §4.3).
            self.confirmed = self.limit.min(BASE);
            self.most = self.most.max(self.confirmed);
        }
        self.next(now);
        if shrunk { Step::Shrink } else { self.step(now, wait) }
    }

    /// A probe of `length` bytes has arrived; true if longer packets may be sent now.
    fn on_answer(&mut self, now: Time, length: u32) -> bool {
        let Some((probed, ..)) = self.probe.filter(|&(probed, ..)| probed == length) else {
            return false; // of a probe given up, or made up
        };
        let grown = probed > self.confirmed;
        self.confirmed = self.confirmed.max(probed);
        self.most = self.most.max(self.confirmed);
        self.next(now);
        grown
    }

    /// Packets have been lost to timeouts, `timeouts` in all: if that is news, it is asked whether long
    /// ones still arrive.
    fn on_timeouts(&mut self, now: Time, timeouts: u64) {
        if timeouts > self.timeouts && self.probe.is_none() && self.confirmed > BASE {
            self.probe = Some((self.confirmed, 0, now));
        }
        self.timeouts = timeouts;
    }

    /// The kernel has learned that the path takes no more than `limit` bytes.
    pub(super) fn on_limit(&mut self, now: Time, limit: u32) {
        if limit < self.limit {
            *self = Self { timeouts: self.timeouts, ..Self::new(now, limit) };
        }
    }
}

impl Engine {
    /// Probes that are due; says when the next ones are.
    pub(super) fn probe_paths(&mut self, now: Time) {
        if now < self.next_probe {
            return;
        }
        self.next_probe = Time::MAX;
        let sessions: Vec<SessionId> = self.connections.values().map(|c| c.session).collect();
        for session in sessions {
            self.probe_path(now, session);
        }
    }

    fn probe_path(&mut self, now: Time, session: SessionId) {
        let wait = self.config.session.retry;
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let Some(path) = &mut connection.path else { return self.probe_reach(now, session) };
        let timeouts = connection.flows.iter().filter_map(|&flow| self.endpoint.counters(flow));
        path.on_timeouts(now, timeouts.map(|counters| counters.timeouts).sum());
        let busy = connection.under_way > 0;
        loop {
            let Some(path) = self.path(session) else { return };
            match path.step(now, wait) {
                Step::Wait(at) => {
                    // Ops under way are looked after as often as probes are repeated.
                    let at = if busy { at.min(now + wait) } else { at };
                    self.next_probe = self.next_probe.min(at);
                    return;
                }
                Step::Probe(length) => self.put_probe(now, session, length),
                Step::Shrink => self.apply_path(session),
            }
        }
    }

    fn path(&mut self, session: SessionId) -> Option<&mut Path> {
        let connection = self.connections.get_mut(session.index())?;
        connection.path.as_mut().filter(|_| connection.session == session)
    }

    /// A probe of this session was answered.
    pub(super) fn on_probe_answer(&mut self, now: Time, session: SessionId, length: usize) {
        let Some(peer) = self.connections.get(session.index()).map(|c| c.peer.address) else {
            return;
        };
        let Some(path) = self.path(session) else { return };
        if path.on_answer(now, length as u32 + ip_udp_bytes(peer)) {
            self.apply_path(session);
        }
        self.next_probe = now;
    }

    /// The kernel takes packets of up to `limit` bytes only.
    pub(super) fn limit_path(&mut self, session: SessionId, limit: u32) {
        let now = self.clock.now();
        let Some(path) = self.path(session) else { return };
        path.on_limit(now, limit);
        self.next_probe = now;
        self.apply_path(session);
    }

    /// The longest packet that this side sends to `peer`.
    pub(super) fn path_mtu(&self, peer: SocketAddr) -> u32 {
        // A path of which the kernel knows nothing takes what IPv6 requires of every link.
        self.socket.path_mtu(peer).unwrap_or(BASE).clamp(576, self.config.max_mtu)
    }

    /// What of a full packet is no payload.
    pub(super) fn headers(&self) -> u32 {
        header_bytes(&self.config.algorithm, self.sessions.overhead())
    }

    /// Has full packets be `mtu` bytes long, and tells algorithms.
    pub(super) fn set_mtu(&mut self, session: SessionId, mtu: u32) {
        let headers = self.headers();
        let Some(connection) = self.connections.get_mut(session.index()) else { return };
        let size = change(connection.told_mtu, mtu, headers);
        connection.told_mtu = mtu;
        for &flow in &connection.flows {
            self.endpoint.set_packet_size(flow, &size);
        }
    }

    /// The kernel has learned that packets to `peer` are too long.
    pub(super) fn on_too_long(&mut self, peer: SocketAddr) {
        let mtu = self.path_mtu(peer);
        let sessions: Vec<SessionId> = self
            .connections
            .values()
            .filter(|c| c.peer.address == peer)
            .map(|c| c.session)
            .collect();
        for session in sessions {
            self.limit_path(session, mtu);
        }
    }

    /// Has full packets be as long as is confirmed.
    pub(super) fn apply_path(&mut self, session: SessionId) {
        if let Some(mtu) = self.path(session).map(|path| path.confirmed) {
            self.set_mtu(session, mtu);
        }
    }
}

/// The payload of a full packet of `mtu` bytes.
fn payload(mtu: u32, headers: u32) -> u32 {
    mtu.saturating_sub(headers).max(256)
}

/// The longest packet at first, of a path of which the kernel says that it takes `mtu` bytes; whether it does is
/// found out by probes.
pub(super) fn first_mtu(mtu: u32) -> u32 {
    mtu.min(BASE)
}

/// What algorithms are told when full packets are `mtu` bytes long from now on.
fn change(mtu_before: u32, mtu: u32, headers: u32) -> PacketSizeEvent {
    let (before, now) = (full_packets(mtu_before, headers), full_packets(mtu, headers));
    PacketSizeEvent { payload_before: before.payload, payload: now.payload, packet: now.packet }
}

/// What an algorithm is told of full packets of `mtu` bytes.
pub(super) fn full_packets(mtu: u32, headers: u32) -> FlowInfo {
    FlowInfo {
        payload: Bytes::new(u64::from(payload(mtu, headers))),
        packet: Bytes::new(u64::from(mtu + ETHERNET)),
        ..FlowInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_told_of_packets_as_long_as_the_path_takes() {
        let info = full_packets(1500, 100);
        assert_eq!((info.payload.get(), info.packet.get()), (1400, 1538));
        assert_eq!(full_packets(9000, 100).packet.get(), 9038);
    }

    const WAIT: Span = Span::from_ms(100);

    /// Searches over a path that takes `takes` bytes; returns what was found, and in how many probes.
    fn search(path: &mut Path, now: &mut Time, takes: u32) -> (u32, u32) {
        let mut probes = 0;
        loop {
            match path.step(*now, WAIT) {
                Step::Probe(length) => {
                    probes += 1;
                    if length <= takes {
                        path.on_answer(*now, length);
                    }
                }
                Step::Wait(at) if path.probe.is_some() => *now = at,
                Step::Wait(_) => return (path.confirmed, probes),
                Step::Shrink => {}
            }
        }
    }

    #[test]
    fn rfc_8899_5_3_a_good_path_takes_one_probe_and_a_worse_one_is_searched() {
        let mut now = Time::ZERO;
        assert_eq!(search(&mut Path::new(now, 9000), &mut now, 9000), (9000, 1));
        assert_eq!(search(&mut Path::new(now, 1280), &mut now, 9000), (1280, 0), "nothing to gain");
        for takes in [1280, 1281, 1400, 1500, 4352, 8999] {
            let (found, probes) = search(&mut Path::new(now, 9000), &mut now, takes);
            assert!(found <= takes && takes - found <= STEP, "{found} of {takes}");
            // Of 9000 - 1280 = 7720 bytes, halved until 32 or less are left: 1 + 8 lengths, 3 times each.
            assert!(probes <= 27, "{probes} probes");
        }
    }

    #[test]
    fn rfc_8899_4_3_a_black_hole_is_noticed_by_timeouts_and_a_better_path_in_ten_minutes() {
        let mut now = Time::ZERO;
        let mut path = Path::new(now, 9000);
        search(&mut path, &mut now, 9000);
        path.on_timeouts(now, 2);
        assert_eq!(search(&mut path, &mut now, 9000).0, 9000, "it was something else");
        path.on_timeouts(now, 2);
        assert!(path.probe.is_none(), "no news");
        path.on_timeouts(now, 3);
        let (found, _) = search(&mut path, &mut now, 1500);
        assert!((1500 - STEP..=1500).contains(&found), "{found}");
        assert_eq!(path.step(now, WAIT), Step::Wait(path.raise_at));
        assert_eq!(path.raise_at.since(now), RAISE_AFTER);
        now += RAISE_AFTER;
        assert_eq!(search(&mut path, &mut now, 9000).0, 9000);
        path.on_limit(now, 1500);
        assert_eq!((path.confirmed, path.limit), (1280, 1500), "the kernel knows better");
        assert_eq!(search(&mut path, &mut now, 9000).0, 1500);
    }

    #[test]
    fn answers_that_nobody_waits_for_change_nothing() {
        let mut now = Time::ZERO;
        let mut path = Path::new(now, 9000);
        assert!(!path.on_answer(now, 65_000));
        assert_eq!(path.confirmed, 1280);
        search(&mut path, &mut now, 1400);
        let found = path.confirmed;
        assert!(!path.on_answer(now, 9000), "a late one, of a probe given up");
        assert_eq!(path.confirmed, found);
    }
}
