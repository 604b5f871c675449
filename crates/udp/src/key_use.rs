//! Resources that the connections of one peer with a key of its own occupy together, and those that all unlisted peers
//! occupy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Multiple of the limit of one key that all unlisted keys together may reach. deviation: no source; as with sessions,
/// of which one key may have a quarter and all unlisted keys three quarters.
const UNLISTED_KEYS: u64 = 3;

/// Limit of one key, and limit of all unlisted keys together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyLimit {
    pub(crate) of_key: u64,
    pub(crate) of_unlisted: u64,
}

impl KeyLimit {
    /// Returns the limit of a setting, and the limit of all unlisted keys, which depends on the setting and on its
    /// default.
    pub(crate) fn new(quota: Option<u64>, default: u64) -> Self {
        let of_key = quota.unwrap_or(default);
        // A quota may be as small as the need of one connection, but there are many unlisted peers.
        Self { of_key, of_unlisted: of_key.max(default).saturating_mul(UNLISTED_KEYS) }
    }
}

/// Resources that the connections of one peer occupy together in one engine. Only this engine adds to them.
#[derive(Debug, Default)]
pub(crate) struct KeyUse {
    /// Bytes of messages that have arrived in part or in full and that the application has not taken.
    queued_bytes: AtomicU64,
    /// Maximum number of outstanding ops over all connections.
    ops: AtomicU64,
    /// Resources of all unlisted peers, if the peer is one of them.
    unlisted: Option<Arc<Self>>,
}

impl KeyUse {
    /// Returns the counters of an unlisted peer, which also count for `all` unlisted peers.
    pub(crate) fn unlisted(all: Arc<Self>) -> Self {
        Self { unlisted: Some(all), ..Self::default() }
    }

    /// Counts bytes of a message. Returns `false` if they exceed a limit.
    pub(crate) fn queue(&self, bytes: u64, limit: KeyLimit) -> bool {
        self.add(|used| &used.queued_bytes, bytes, limit)
    }

    /// Subtracts bytes of messages that no longer count.
    pub(crate) fn unqueue(&self, bytes: u64) {
        self.subtract(|used| &used.queued_bytes, bytes);
    }

    /// Counts the maximum number of outstanding ops of a further connection. Returns `false` if it exceeds a limit.
    pub(crate) fn hold(&self, ops: u64, limit: KeyLimit) -> bool {
        self.add(|used| &used.ops, ops, limit)
    }

    /// Subtracts the maximum number of outstanding ops of a connection that has ended.
    pub(crate) fn unhold(&self, ops: u64) {
        self.subtract(|used| &used.ops, ops);
    }

    /// Returns the number of bytes of messages.
    #[cfg(any(test, feature = "worlds"))]
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.queued_bytes.load(Ordering::Acquire)
    }

    fn add(&self, of: impl Fn(&Self) -> &AtomicU64, amount: u64, limit: KeyLimit) -> bool {
        let used = [Some((self, limit.of_key)), self.all().map(|all| (all, limit.of_unlisted))];
        let used = || used.iter().flatten();
        // Only the engine adds, so room that is free now stays free.
        let room = used().all(|(used, most)| of(used).load(Ordering::Acquire) + amount <= *most);
        if room {
            used().for_each(|(used, _)| _ = of(used).fetch_add(amount, Ordering::AcqRel));
        }
        room
    }

    fn subtract(&self, of: impl Fn(&Self) -> &AtomicU64, amount: u64) {
        of(self).fetch_sub(amount, Ordering::AcqRel);
        if let Some(all) = self.all() {
            of(all).fetch_sub(amount, Ordering::AcqRel);
        }
    }

    fn all(&self) -> Option<&Self> {
        self.unlisted.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_keys_together_have_three_times_the_limit_of_one() {
        let all = Arc::default();
        let peer = || KeyUse::unlisted(Arc::clone(&all));
        for (quota, of_key) in [(None, 100), (Some(40), 40), (Some(120), 120)] {
            let limit = KeyLimit::new(quota, 100);
            let (peers, listed) = ([(); 20].map(|()| peer()), KeyUse::default());
            let admitted = |used: &KeyUse| used.queue(of_key, limit) && used.hold(of_key, limit);
            // The limits of the unlisted peers are 300 = 3 * 100 for uses of 100 or 40 each, and 360 = 3 * 120.
            let most = if of_key == 40 { 7 } else { 3 };
            assert_eq!(peers.iter().filter(|used| admitted(used)).count(), most, "{quota:?}");
            assert!(!peers[0].queue(1, limit) && !peers[0].hold(1, limit), "its own limit");
            assert!(admitted(&listed), "it is not one of them");
            for used in &peers[..most] {
                used.unqueue(of_key);
                used.unhold(of_key);
            }
            assert!(admitted(&peers[19]), "{quota:?}: the others have ended");
            peers[19].unqueue(of_key);
            peers[19].unhold(of_key);
        }
    }
}
