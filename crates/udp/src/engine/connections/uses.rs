//! What the connections of one peer with a key of its own occupy together.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::connection_state::KeyUse;
use crate::session::PeerKey;

/// What peers occupy in an engine.
#[derive(Default)]
pub(super) struct Uses {
    of: BTreeMap<PeerKey, Weak<KeyUse>>,
    /// Number of peers above which those without connections are forgotten.
    most: usize,
}

impl Uses {
    /// Returns what a peer occupies.
    pub(super) fn of(&mut self, key: PeerKey) -> Arc<KeyUse> {
        if self.of.len() > self.most {
            self.of.retain(|_, used| used.strong_count() > 0);
            self.most = 2 * self.of.len();
        }
        let place = self.of.entry(key).or_default();
        place.upgrade().unwrap_or_else(|| {
            let used = Arc::default();
            *place = Arc::downgrade(&used);
            used
        })
    }

    /// Counts the ops that another connection of a peer may have. Returns `None` if they are more than `most` together.
    pub(super) fn hold(&mut self, key: PeerKey, ops: u64, most: u64) -> Option<HeldOps> {
        let used = self.of(key);
        let held = HeldOps { ops, used };
        // If they are too many, dropping them subtracts them again.
        let before = held.used.ops.fetch_add(ops, Ordering::Relaxed);
        (before + ops <= most).then_some(held)
    }
}

/// Ops that a connection may have, until it is dropped.
pub(super) struct HeldOps {
    ops: u64,
    used: Arc<KeyUse>,
}

impl Drop for HeldOps {
    fn drop(&mut self) {
        self.used.ops.fetch_sub(self.ops, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ops_of_a_peers_connections_have_one_limit_and_a_peer_without_connections_is_forgotten() {
        let key = |n| PeerKey::new([n; 32]).expect("no point of low order");
        let mut uses = Uses::default();
        let first = uses.hold(key(9), 60, 100).expect("room");
        assert!(uses.hold(key(9), 41, 100).is_none());
        let second = uses.hold(key(9), 40, 100).expect("room");
        assert!(uses.hold(key(10), 100, 100).is_some(), "another peer");
        drop(first);
        assert!(uses.hold(key(9), 61, 100).is_none() && uses.hold(key(9), 60, 100).is_some());
        drop(second);
        for n in 20..120 {
            uses.of(key(n));
        }
        assert!(uses.of.len() <= 2, "{}", uses.of.len());
    }
}
