//! Replacement of the key ring while sessions are open.
//!
//! A key is replaced in three steps, without ending connections. First, add the new key to the rings of all hosts. Second,
//! retire the old key, so that new sessions use the new one. Third, remove the old key when its sessions have ended.

use apus_units::Time;
use apus_units::planted::{Bug, is_planted};

use super::event::{End, Event, SessionId};
use super::ring::KeyRing;
use super::state::{Session, Stage};
use super::table::Sessions;

impl Sessions {
    /// Replaces the key ring. Sessions whose keys are in both rings continue, also under retired keys. Sessions whose keys
    /// were removed are closed, their peers are told, and [`Event::Ended`] follows for each. If the table accepts unlisted peers
    /// ([`Config::accept_unlisted`](super::Config::accept_unlisted)), a session that a peer has opened continues without the
    /// peer's key.
    ///
    /// # Errors
    /// If one of the rings is the insecure mode and the other is not: a table does not change its mode.
    pub fn set_keys(&mut self, now: Time, keys: KeyRing) -> Result<(), &'static str> {
        if keys.is_insecure() != self.keys.is_insecure() {
            return Err("a host cannot change between insecure and keys; start another host");
        }
        self.keys = keys;
        self.count_again();
        let withdrawn: Vec<SessionId> = self
            .all()
            .filter(|s| !self.covers(s) && !matches!(s.stage, Stage::Closing))
            .map(|s| s.id)
            .collect();
        for session in withdrawn {
            self.close(now, session);
            self.events.push_back(Event::Ended { session, reason: End::KeyWithdrawn });
        }
        Ok(())
    }

    /// Counts each session for its quota holder according to the new ring.
    fn count_again(&mut self) {
        let changed = |session: &Session| {
            let before = session.charged?;
            let after = self.principal(before.peer()?);
            (after != before).then_some((session.id, before, after))
        };
        let changed: Vec<_> = self.all().filter_map(changed).collect();
        for (id, before, after) in changed {
            let Some(session) = self.get_mut(id) else { continue };
            session.charged = Some(after);
            let (pending, account) = (session.stage.is_pending(), session.account.take());
            self.quotas.end(before, pending);
            self.quotas.begin(after);
            if !pending {
                self.quotas.connected(after);
            }
            if let Some(account) = account {
                self.shares.close(account);
                self.open_account(id);
            }
        }
    }

    /// Returns `true` if the ring has the shared key and both sides' own keys of a session, retired or not. The key of a peer
    /// that has opened the session is not needed if unlisted peers may connect.
    fn covers(&self, session: &Session) -> bool {
        let unlisted = self.config.accept_unlisted && session.is_opened_by_peer()
            || is_planted(Bug::PeerKeyStays);
        self.keys.get(session.key).is_some()
            && session.own.is_none_or(|own| self.keys.has_own(&own))
            && session.identity.is_none_or(|key| unlisted || self.keys.lists(&key, false))
    }
}
