//! The log of an engine, through the facade `tracing`: connections, handshakes, paths, keys, refusals and dropped
//! packets.
//!
//! A flood of events of any kind costs a bounded number of lines. At most [`MAX_LINES`] lines per kind and second are
//! written, followed by one line with the number of further events. Dropped packets never have lines of their own: one
//! line per reason and second states their number. No line contains payload or keys; a key appears by its public name.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use apus_units::{Span, Time};
use apus_wire::RejectReason;
use tracing::{Level, debug, enabled, error, info, warn};

use crate::clock::LIFETIME;
use crate::error::{ConnectError, DroppedHandshake, End, HandshakeFault};
use crate::session::{Dropped, KeyRing};

/// Maximum number of lines per kind of event and second. deviation: no source; a person can still read that many, and a
/// host that restarts shows most of its peers.
const MAX_LINES: u64 = 50;
/// Period in which lines are counted.
const WINDOW: Span = Span::from_secs(1);
/// Minimum interval between lines about the same handshake fault from the same machine. deviation: no source; a peer
/// tries a few times per second.
const FAULT_AGAIN: Span = Span::from_secs(10);
/// Maximum number of pairs of machine and fault that are remembered for [`FAULT_AGAIN`].
const MAX_FAULTS: usize = 256;

/// Kinds of events that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Opened,
    Closed,
    Lost,
    NotOpened,
    Refused,
    Handshake,
    PathMtu,
    KeyChange,
    RefusedOp,
    NotRecorded,
}

const KINDS: [(Kind, &str); 10] = [
    (Kind::Opened, "connection opened"),
    (Kind::Closed, "connection closed"),
    (Kind::Lost, "connection lost"),
    (Kind::NotOpened, "connection could not be opened"),
    (Kind::Refused, "connection refused"),
    (Kind::Handshake, "handshake dropped"),
    (Kind::PathMtu, "path MTU changed"),
    (Kind::KeyChange, "packet key replaced"),
    (Kind::RefusedOp, "op refused"),
    (Kind::NotRecorded, "connection not recorded"),
];

/// The events of one kind within a second.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// End of the second that began with the first event.
    until: Time,
    /// Number of events in this second.
    events: u64,
}

/// The log of an engine.
#[derive(Debug)]
pub(super) struct Log {
    /// The address of the engine's socket.
    host: SocketAddr,
    windows: [Window; KINDS.len()],
    /// Number of packets dropped since the last line about them, by reason.
    dropped: [u64; Dropped::ALL.len()],
    /// When the line about dropped packets is due.
    dropped_at: Time,
    /// When the next line that states a number of events is due.
    due: Time,
    /// When a handshake with this fault from this machine was last logged.
    faults: BTreeMap<(IpAddr, HandshakeFault), Time>,
}

impl Log {
    /// Returns the log of the engine at this address.
    pub(super) fn new(host: SocketAddr) -> Self {
        Self {
            host,
            windows: [Window { until: Time::ZERO, events: 0 }; KINDS.len()],
            dropped: [0; Dropped::ALL.len()],
            dropped_at: Time::MAX,
            due: Time::MAX,
            faults: BTreeMap::new(),
        }
    }

    /// Returns when [`Log::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Time {
        self.due
    }

    /// Counts an event. Returns `true` if the event has a line of its own.
    fn admits(&mut self, now: Time, kind: Kind) -> bool {
        self.handle_timeout(now);
        let window = &mut self.windows[kind as usize];
        if window.until <= now {
            *window = Window { until: now + WINDOW, events: 0 };
        }
        window.events += 1;
        if window.events > MAX_LINES {
            self.due = self.due.min(window.until);
        }
        window.events <= MAX_LINES
    }

    /// Writes the due lines that state numbers of events.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if now >= self.due {
            self.write_numbers(now);
        }
    }

    #[cold]
    fn write_numbers(&mut self, now: Time) {
        let host = self.host;
        let mut due = Time::MAX;
        for (window, (_, kind)) in self.windows.iter_mut().zip(KINDS) {
            let events = window.events.saturating_sub(MAX_LINES);
            if events > 0 && window.until <= now {
                warn!(target: "apus_udp::log", %host, kind, events, "further events within a second");
                window.events = 0;
            } else if events > 0 {
                due = due.min(window.until);
            }
        }
        if self.dropped_at <= now {
            self.dropped_at = Time::MAX;
            for (packets, reason) in self.dropped.iter_mut().zip(Dropped::ALL) {
                let packets = std::mem::take(packets);
                if packets > 0 && reason.is_harmless() {
                    debug!(target: "apus_udp::packet", %host, ?reason, packets, "packets dropped within a second");
                } else if packets > 0 {
                    warn!(target: "apus_udp::packet", %host, ?reason, packets, "packets dropped within a second");
                }
            }
        }
        self.due = due.min(self.dropped_at);
    }

    /// Logs that a packet was dropped.
    #[inline]
    pub(super) fn dropped(&mut self, now: Time, why: Dropped) {
        if enabled!(target: "apus_udp::packet", Level::WARN) {
            self.dropped[why as usize] += 1;
            if self.dropped_at == Time::MAX {
                self.dropped_at = now + WINDOW;
                self.due = self.due.min(self.dropped_at);
            }
        }
    }

    /// Logs that a handshake was dropped.
    pub(super) fn handshake_dropped(&mut self, now: Time, from: SocketAddr, fault: HandshakeFault) {
        if !enabled!(target: "apus_udp::handshake", Level::WARN) {
            return;
        }
        let key = (from.ip(), fault);
        if self.faults.len() >= MAX_FAULTS {
            self.faults.retain(|_, at| now < *at + FAULT_AGAIN);
        }
        let again = self.faults.get(&key).is_some_and(|&at| now < at + FAULT_AGAIN);
        if again || self.faults.len() >= MAX_FAULTS || !self.admits(now, Kind::Handshake) {
            return;
        }
        self.faults.insert(key, now);
        warn!(target: "apus_udp::handshake", host = %self.host, "{}", DroppedHandshake { from, fault });
    }

    /// Logs that a connection was opened.
    pub(super) fn opened(&mut self, now: Time, peer: SocketAddr, by_peer: bool, flows: usize) {
        if enabled!(target: "apus_udp::connection", Level::INFO) && self.admits(now, Kind::Opened) {
            let by = if by_peer { "peer" } else { "this host" };
            info!(target: "apus_udp::connection", host = %self.host, %peer, by, flows, "connection opened");
        }
    }

    /// Logs that a connection ended after it had been open for `open`.
    pub(super) fn ended(&mut self, now: Time, peer: SocketAddr, end: End, open: Span) {
        let lost = match end {
            End::Silent | End::PeerRestarted | End::KeyWithdrawn | End::EngineFailed => true,
            End::ClosedHere
            | End::ClosedByPeer
            | End::Replaced
            | End::Stopped
            | End::WouldDeadlock => false,
        };
        let (host, seconds) = (self.host, open.as_secs_f64());
        if lost {
            if enabled!(target: "apus_udp::connection", Level::WARN) && self.admits(now, Kind::Lost)
            {
                warn!(target: "apus_udp::connection", %host, %peer, %end, seconds, "connection lost");
            }
        } else if enabled!(target: "apus_udp::connection", Level::INFO)
            && self.admits(now, Kind::Closed)
        {
            info!(target: "apus_udp::connection", %host, %peer, %end, seconds, "connection closed");
        }
    }

    /// Logs that a connection requested by this host could not be opened.
    pub(super) fn not_opened(&mut self, now: Time, peer: SocketAddr, error: &ConnectError) {
        if enabled!(target: "apus_udp::handshake", Level::WARN) && self.admits(now, Kind::NotOpened)
        {
            warn!(target: "apus_udp::handshake", host = %self.host, %peer, %error, "connection could not be opened");
        }
    }

    /// Logs that a connection requested by a peer was refused.
    pub(super) fn refused(&mut self, now: Time, peer: SocketAddr, reason: &str) {
        if enabled!(target: "apus_udp::handshake", Level::WARN) && self.admits(now, Kind::Refused) {
            warn!(target: "apus_udp::handshake", host = %self.host, %peer, reason, "connection refused");
        }
    }

    /// Logs that the length of full packets of a connection has changed.
    pub(super) fn path_changed(&mut self, now: Time, peer: SocketAddr, before: u32, mtu: u32) {
        if enabled!(target: "apus_udp::path", Level::INFO) && self.admits(now, Kind::PathMtu) {
            info!(target: "apus_udp::path", host = %self.host, %peer, before, mtu, "path MTU changed");
        }
    }

    /// Logs that the packet key of a session was replaced.
    pub(super) fn key_changed(&mut self, now: Time, peer: SocketAddr) {
        if enabled!(target: "apus_udp::key", Level::DEBUG) && self.admits(now, Kind::KeyChange) {
            debug!(target: "apus_udp::key", host = %self.host, %peer, "packet key replaced");
        }
    }

    /// Logs that the key ring was replaced.
    pub(super) fn keys_set(&self, keys: &KeyRing) {
        info!(target: "apus_udp::key", host = %self.host, keys = keys.ids().count(), "ring of keys replaced");
    }

    /// Logs that an op of a peer was refused.
    pub(super) fn op_refused(
        &mut self,
        now: Time,
        peer: SocketAddr,
        op: &str,
        reason: RejectReason,
    ) {
        if enabled!(target: "apus_udp::op", Level::WARN) && self.admits(now, Kind::RefusedOp) {
            warn!(target: "apus_udp::op", host = %self.host, %peer, op, ?reason, "op refused");
        }
    }

    /// Logs that a connection is not recorded.
    pub(super) fn not_recorded(&mut self, now: Time, peer: SocketAddr, reason: &str) {
        if enabled!(target: "apus_udp::record", Level::WARN) && self.admits(now, Kind::NotRecorded)
        {
            warn!(target: "apus_udp::record", host = %self.host, %peer, reason, "connection not recorded");
        }
    }

    /// Logs that the engine drains.
    pub(super) fn draining(&self, connections: usize) {
        info!(target: "apus_udp::host", host = %self.host, connections, "draining");
    }

    /// Logs that the engine has drained: its last connection has ended.
    pub(super) fn drained(&self) {
        info!(target: "apus_udp::host", host = %self.host, "drained");
    }

    /// Logs that the engine stops because the range of its clock ends.
    pub(super) fn outlived(&self) {
        error!(
            target: "apus_udp::host",
            host = %self.host,
            days = LIFETIME.as_ps() / Span::from_secs(86_400).as_ps(),
            "the engine has run as long as its clock counts and stops; start another host"
        );
    }

    /// Logs that the engine failed.
    pub(super) fn failed(&self) {
        error!(target: "apus_udp::host", host = %self.host, "the engine panicked; its connections end");
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// Lines that a subscriber has written.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("lines").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// Calls `run` with a log whose events up to this level are written. Returns the lines. If another test reaches a
    /// line for the first time while the subscriber is set, `tracing` may take the line for one that nobody reads:
    /// `run` is called twice, and the second call has all lines.
    fn logged(level: Level, run: impl Fn(&mut Log)) -> Vec<String> {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(lines.clone())
            .with_ansi(false)
            .with_max_level(level)
            .finish();
        let run = || run(&mut Log::new(([127, 0, 0, 1], 7).into()));
        tracing::subscriber::with_default(subscriber, || {
            run();
            tracing::callsite::rebuild_interest_cache();
            lines.0.lock().expect("lines").clear();
            run();
        });
        let text = String::from_utf8(lines.0.lock().expect("lines").clone()).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn peer(n: u8) -> SocketAddr {
        ([10, 0, 0, n], 9).into()
    }

    #[test]
    fn a_flood_of_bad_packets_gives_a_number_per_second_and_reason() {
        let lines = logged(Level::WARN, |log| {
            for ms in 0..1000 {
                for _ in 0..100 {
                    log.dropped(at(ms), Dropped::Forged);
                }
                log.dropped(at(ms), Dropped::Replay);
                log.handle_timeout(at(ms));
            }
            assert_eq!(log.next_timeout(), at(1000));
            log.handle_timeout(at(1000));
            assert_eq!(log.next_timeout(), Time::MAX, "nothing is left to say");
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.contains("reason=Forged packets=100000"), "{line}");
    }

    /// The line of each reason contains the name of this reason and of no other one.
    #[test]
    fn every_reason_is_logged_by_its_name() {
        let lines = logged(Level::DEBUG, |log| {
            for (n, reason) in (1..).zip(Dropped::ALL) {
                (0..n).for_each(|_| log.dropped(at(0), reason));
            }
            log.handle_timeout(at(1000));
        });
        assert_eq!(lines.len(), Dropped::ALL.len(), "{lines:#?}");
        for ((n, reason), line) in (1..).zip(Dropped::ALL).zip(lines) {
            let expected = format!("reason={reason:?} packets={n}");
            assert!(line.split("host=").any(|part| part.ends_with(&expected)), "{line}");
            assert_eq!(line.contains("WARN"), !reason.is_harmless(), "{line}");
        }
    }

    #[test]
    fn of_many_events_of_a_kind_fifty_per_second_have_lines_and_the_others_a_number() {
        let lines = logged(Level::INFO, |log| {
            for _ in 0..1000 {
                log.opened(at(0), peer(1), true, 1);
            }
            log.path_changed(at(0), peer(1), 1280, 9000);
            assert_eq!(log.next_timeout(), at(1000));
            log.handle_timeout(at(1000));
            log.opened(at(1001), peer(2), false, 1);
        });
        let with = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(with("connection opened host=127.0.0.1:7 peer=10.0.0.1:9 by=\"peer\""), 50);
        assert_eq!(with("kind=\"connection opened\" events=950"), 1);
        assert_eq!(with("path MTU changed"), 1, "another kind");
        assert_eq!(with("by=\"this host\""), 1, "the next second");
        assert_eq!(lines.len(), 53);
    }

    #[test]
    fn a_fault_of_the_same_machine_is_logged_every_ten_seconds() {
        let lines = logged(Level::WARN, |log| {
            for ms in (0..25_000).step_by(100) {
                log.handshake_dropped(at(ms), peer(1), HandshakeFault::UnknownKey);
            }
            log.handshake_dropped(at(25_000), peer(1), HandshakeFault::Insecure);
            log.handshake_dropped(at(25_000), peer(2), HandshakeFault::UnknownKey);
        });
        assert_eq!(lines.len(), 3 + 2, "{lines:?}");
        assert!(lines[0].contains("handshake from 10.0.0.1:9 dropped: its key is unknown"));
    }

    #[test]
    fn ends_that_are_losses_are_warnings() {
        let run = |log: &mut Log| {
            log.ended(at(2500), peer(1), End::Silent, Span::from_ms(2500));
            log.ended(at(2500), peer(2), End::ClosedByPeer, Span::from_ms(2500));
        };
        let warnings = logged(Level::WARN, run);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("WARN") && warnings[0].contains("peer=10.0.0.1:9"));
        assert!(warnings[0].contains("seconds=2.5"), "{warnings:?}");
        assert_eq!(logged(Level::INFO, run).len(), 2);
        assert_eq!(logged(Level::ERROR, run).len(), 0);
    }
}
