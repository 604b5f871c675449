//! Resources that the connections of each peer with a key of its own occupy together.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::key_use::{KeyLimit, KeyUse};
use crate::session::Principal;

/// Resources that peers occupy in an engine.
#[derive(Default)]
pub(super) struct Uses {
    of: BTreeMap<Principal, Weak<KeyUse>>,
    /// Number of peers above which peers without connections are removed.
    most: usize,
}

impl Uses {
    /// Returns the resources that a peer occupies.
    pub(super) fn of(&mut self, who: Principal) -> Arc<KeyUse> {
        if self.of.len() > self.most {
            self.of.retain(|_, used| used.strong_count() > 0);
            self.most = 2 * self.of.len();
        }
        if let Some(used) = self.of.get(&who).and_then(Weak::upgrade) {
            return used;
        }
        let used = Arc::new(match who {
            Principal::Unlisted(_) => KeyUse::unlisted(self.of(Principal::AllUnlisted)),
            _ => KeyUse::default(),
        });
        self.of.insert(who, Arc::downgrade(&used));
        used
    }

    /// Reserves the maximum number of outstanding ops of another connection of a peer. Returns `None` if that exceeds
    /// the limit.
    pub(super) fn hold(&mut self, who: Principal, ops: u64, limit: KeyLimit) -> Option<HeldOps> {
        let used = self.of(who);
        used.hold(ops, limit).then(|| HeldOps { ops, used })
    }
}

/// Reserved maximum number of outstanding ops of a connection. Dropping it ends the reservation.
pub(super) struct HeldOps {
    ops: u64,
    used: Arc<KeyUse>,
}

impl Drop for HeldOps {
    fn drop(&mut self) {
        self.used.unhold(self.ops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::PeerKey;

    #[test]
    fn the_ops_of_a_peers_connections_have_one_limit_and_a_peer_without_connections_is_forgotten() {
        let key = |n| Principal::Peer(PeerKey::new([n; 32]).expect("no point of low order"));
        let limit = KeyLimit::new(None, 100);
        let mut uses = Uses::default();
        let first = uses.hold(key(9), 60, limit).expect("room");
        assert!(uses.hold(key(9), 41, limit).is_none());
        let second = uses.hold(key(9), 40, limit).expect("room");
        assert!(uses.hold(key(10), 100, limit).is_some(), "another peer");
        drop(first);
        assert!(uses.hold(key(9), 61, limit).is_none() && uses.hold(key(9), 60, limit).is_some());
        drop(second);
        for n in 20..120 {
            uses.of(key(n));
        }
        assert!(uses.of.len() <= 2, "{}", uses.of.len());
    }

    #[test]
    fn the_ops_of_all_unlisted_peers_have_a_limit() {
        let unlisted = |n| Principal::Unlisted(PeerKey::new([n; 32]).expect("no low order"));
        let limit = KeyLimit::new(None, 100);
        let mut uses = Uses::default();
        let held: Vec<_> = (20..60).filter_map(|n| uses.hold(unlisted(n), 10, limit)).collect();
        assert_eq!(held.len(), 30, "three times 100");
        drop(held);
        assert!(uses.hold(unlisted(60), 100, limit).is_some());
    }
}
