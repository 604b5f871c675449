//! The longest packet that a path takes, found out by probes (RFC 8899): what the kernel knows of the
//! path is where the search begins, because routers that drop long packets without a word exist.

use apus_units::{Span, Time};

use super::Engine;
use crate::config::Config;
use crate::session::SessionId;

/// The packet that every path takes, in bytes. Source: RFC 8899 §5.1.2, BASE_PLPMTU for IPv6.
const BASE: u32 = 1280;
/// Probes of one length that go unanswered before it counts as too long. Source: RFC 8899 §5.1.2,
/// MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// Steps of the search: it ends when this much or less may be gained. deviation: RFC 8899 §5.3.2 leaves
/// it open; 32 bytes are 2 % of the shortest packets.
const STEP: u32 = 32;
/// Time after which a longer packet is tried again. Source: RFC 8899 §5.1.1, PMTU_RAISE_TIMER: 600 s.
const RAISE_AFTER: Span = Span::from_secs(600);

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
        let Some(connection) = self.connections.get_mut(&session.index()) else { return };
        let Some(path) = &mut connection.path else { return };
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
        let connection = self.connections.get_mut(&session.index())?;
        connection.path.as_mut().filter(|_| connection.session == session)
    }

    /// A probe of this session was answered.
    pub(super) fn on_probe_answer(&mut self, now: Time, session: SessionId, length: u32) {
        let Some(path) = self.path(session) else { return };
        if path.on_answer(now, length) {
            self.apply_path(session);
        }
        self.next_probe = now;
    }

    /// Has full packets be as long as is confirmed.
    pub(super) fn apply_path(&mut self, session: SessionId) {
        if let Some(mtu) = self.path(session).map(|path| path.confirmed) {
            self.set_mtu(session, mtu);
        }
    }
}
