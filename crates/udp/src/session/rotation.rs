//! Replacement of the ring of keys while sessions are open.

use apus_units::Time;

use super::event::{End, Event, SessionId};
use super::key::KeyRing;
use super::state::Stage;
use super::table::Sessions;

impl Sessions {
    /// Replaces the ring of keys. Sessions under keys of both rings continue. Sessions under removed keys are closed, their
    /// peers are told, and [`Event::Ended`] follows for each.
    ///
    /// # Errors
    /// If one of the rings is the insecure mode and the other is not: a table does not change its mode.
    pub fn set_keys(&mut self, now: Time, keys: KeyRing) -> Result<(), &'static str> {
        if keys.is_insecure() != self.keys.is_insecure() {
            return Err("a host cannot change between insecure and keys; start another host");
        }
        self.keys = keys;
        let withdrawn: Vec<SessionId> = self
            .all()
            .filter(|s| self.keys.get(s.key).is_none() && !matches!(s.stage, Stage::Closing))
            .map(|s| s.id)
            .collect();
        for session in withdrawn {
            self.close(now, session);
            self.events.push_back(Event::Ended { session, reason: End::KeyWithdrawn });
        }
        Ok(())
    }
}
