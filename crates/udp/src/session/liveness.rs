//! Timers of a session: when packets are repeated, when the peer is pinged, and when it is given up.

use apus_units::planted::{Bug, is_planted};
use apus_units::{Span, Time};

use super::event::{Dropped, End, Received, SessionId};
use super::packet;
use super::peer::Peer;
use super::state::{Doubt, Session, Stage, want};
use super::table::Sessions;

/// Number of times that an Init goes unanswered before a new cookie is requested: the responder may have been restarted, and
/// then knows neither the cookie nor the session. deviation: no source; 0.7 s with the default of `retry`, far below
/// `handshake_timeout`.
const INIT_TRIES: u32 = 3;

/// Maximum wait between two tries, in multiples of the first wait. deviation: no source; one second with the default of
/// `retry`.
const MAX_WAIT: u64 = 10;

/// Minimum number of unanswered pings before the peer is given up, even after the timeout: an engine that was descheduled has
/// not read the peer's answers. deviation: no source; as `INIT_TRIES`.
const MIN_PINGS: u32 = 3;

/// Divisors of the keepalive time. Within each such part, the pings of several sessions are sent together, so that an idle
/// engine is woken once for all of them. The part is a half for sessions that peers opened, and a quarter for other sessions.
/// deviation: no source; an engine is then woken at most twice per keepalive time for sessions that peers opened.
const TOGETHER: u64 = 2;
const TOGETHER_OPENED_HERE: u64 = 4;

/// Returns the wait after `tries` tries. The wait doubles with each try.
fn backoff(retry: Span, tries: u32) -> Span {
    retry * (1u64 << tries.min(16)).min(MAX_WAIT)
}

/// Returns the time at which a quiet peer is pinged. The side that accepted the session pings up to a half of the keepalive
/// time earlier, and the side that opened it up to a quarter later. So only one side of an idle session pings.
pub(super) fn ping_at(session: &Session, keepalive: Span) -> Time {
    let at = session.last_received.saturating_add(keepalive);
    let after = |parts: u64| at.as_ps() % (keepalive.as_ps() / parts).max(1);
    if session.is_opened_by_peer() {
        return Time::from_ps(at.as_ps() - after(TOGETHER));
    }
    let quarter = keepalive.as_ps() / TOGETHER_OPENED_HERE;
    at.saturating_add(Span::from_ps(quarter - after(TOGETHER_OPENED_HERE).min(quarter)))
}

impl Sessions {
    /// Handles the timer of a session.
    pub(crate) fn on_timer(&mut self, now: Time, id: SessionId) {
        let (timeout, retry) = (self.config.handshake_timeout, self.config.retry);
        let Some(session) = self.get_mut(id) else { return };
        let late = session.since.saturating_add(timeout) <= now;
        match &mut session.stage {
            Stage::Connected => return self.on_silence(now, id),
            Stage::Closing if is_planted(Bug::ClosingStays) => return,
            Stage::Closing => return self.remove(id),
            _ if late => {
                let other_mode = session.other_mode;
                return self.end(id, if other_mode { End::OtherMode } else { End::NoAnswer });
            }
            Stage::Offered { .. } | Stage::Answered { .. } => return,
            // The Init is kept. A responder that was not restarted has answered it, and repeats its answer only for this
            // Init.
            Stage::Opening { asks, .. } if !*asks && session.tries >= INIT_TRIES => {
                *asks = true;
                session.tries = 0;
            }
            Stage::Asking | Stage::Opening { .. } | Stage::Confirming => {}
        }
        session.tries += 1;
        let what = match &session.stage {
            stage if stage.asks() => want::HELLO,
            Stage::Confirming => want::PING,
            _ => want::INIT,
        };
        let next = now.saturating_add(backoff(retry, session.tries));
        let next = next.min(session.since.saturating_add(timeout));
        self.want(id, what);
        self.set_timer(id, next);
    }

    /// Handles the timer of a connected session. In most cases the peer has sent a packet since the timer was set.
    fn on_silence(&mut self, now: Time, id: SessionId) {
        let (keepalive, idle_timeout) = (self.config.keepalive, self.config.idle_timeout);
        let Some(session) = self.get_mut(id) else { return };
        let quiet_until = ping_at(session, keepalive);
        let doubt = match session.doubt {
            Some(doubt) if doubt.until <= now && doubt.tries >= MIN_PINGS => {
                return self.end(id, doubt.reason);
            }
            Some(doubt) => doubt,
            None if quiet_until > now => return self.set_timer(id, quiet_until),
            None => Doubt {
                until: session.last_received.saturating_add(idle_timeout),
                reason: End::Idle,
                tries: 0,
            },
        };
        self.ping(now, id, doubt);
    }

    /// Pings the peer. The session ends if the peer answers none of the pings by `doubt.until`, after at least `MIN_PINGS` pings.
    pub(crate) fn ping(&mut self, now: Time, id: SessionId, doubt: Doubt) {
        let retry = self.config.retry;
        let next = now.saturating_add(backoff(retry, doubt.tries)).min(doubt.until);
        let next = next.max(now.saturating_add(retry));
        let Some(session) = self.get_mut(id) else { return };
        session.doubt = Some(Doubt { tries: doubt.tries + 1, ..doubt });
        self.want(id, want::PING);
        self.set_timer(id, next);
    }

    /// Handles the claim that the peer does not know a session. Anyone can forge it, so the peer is pinged.
    pub(crate) fn on_unknown(
        &mut self,
        now: Time,
        from: Peer,
        datagram: &[u8],
    ) -> Received<'static> {
        let Some((remote, _)) = packet::parse_unknown(datagram) else {
            return self.drop(Dropped::Malformed);
        };
        let until = now.saturating_add(self.config.suspect_timeout);
        let other_mode = packet::unknown_is_sealed(datagram) != self.is_sealed();
        let id = self.by_peer.get(&from).copied();
        let Some(session) = id.and_then(|id| self.get_mut(id)) else {
            return self.drop(Dropped::UnknownSession);
        };
        if session.stage.asks() && session.id.get() == remote && other_mode {
            // An answer to the Hello of this side. It must not end the session, since anyone can forge it.
            session.other_mode = true;
            return Received::Own;
        }
        if !session.is_connected() || session.remote != remote {
            return self.drop(Dropped::UnknownSession);
        }
        if session.doubt.is_none_or(|doubt| doubt.reason == End::Idle) {
            let id = session.id;
            self.ping(now, id, Doubt { until, reason: End::Forgotten, tries: 0 });
        }
        Received::Own
    }
}
