//! Another ring of keys while sessions are open.

use apus_units::Time;

use super::event::{End, Event, SessionId};
use super::key::KeyRing;
use super::state::Stage;
use super::table::Sessions;

impl Sessions {
    /// Takes another ring in place of the one that it has. Sessions under keys of both go on; those under
    /// keys that are gone are closed, which their peers are told, and [`Event::Ended`] follows for each.
    ///
    /// # Errors
    /// If one of the rings is the insecure mode's and the other not: that is fixed for a table.
    pub fn set_keys(&mut self, now: Time, keys: KeyRing) -> Result<(), &'static str> {
        if keys.is_insecure() != self.keys.is_insecure() {
            return Err("a host is insecure or has keys, from its start to its end");
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
