//! Connections that peers have opened and that the application has not accepted yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use apus_units::planted::{Bug, is_planted};

use crate::mailbox::Opened;
use crate::session::{Principal, of_unlisted};
use crate::slots::{Slot, Slots};

/// Divisor of the slots that gives the maximum of a peer with a key of its own. deviation: no source; the share of the
/// sessions that such a peer may have (`session.quota_sessions`).
const PART_OF_PEER: u32 = 4;

/// The engines' side of the backlog. A connection takes a slot when its peer requests it. Therefore a peer without a
/// slot is refused at once and is never told that it is connected.
#[derive(Clone)]
pub(crate) struct Backlog {
    sender: async_channel::Sender<Unaccepted>,
    slots: Slots,
    /// Slots in use by each peer with a key of its own, and by all unlisted peers together, over all engines of the
    /// host.
    held: Arc<Mutex<BTreeMap<Principal, u32>>>,
    limit: u32,
}

/// A slot of the backlog. Dropping it frees the slot.
pub(crate) struct BacklogSlot {
    _slot: Slot,
    _counted: Vec<Counted>,
}

/// A slot that counts towards the limit of a holder.
struct Counted {
    holder: Principal,
    held: Arc<Mutex<BTreeMap<Principal, u32>>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

/// Reason why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// All slots are in use.
    Full,
    /// The peer, or all unlisted peers together, have reached their limit.
    Quota,
}

/// A connection in the backlog.
pub(crate) struct Unaccepted {
    pub(crate) connection: Opened,
    _slot: BacklogSlot,
}

/// Returns a backlog of at most `limit` connections, including those being opened, and the application's end of it.
pub(crate) fn backlog(limit: u32) -> (Backlog, async_channel::Receiver<Unaccepted>) {
    // The number of slots bounds the channel.
    let (sender, receiver) = async_channel::unbounded();
    (Backlog { sender, slots: Slots::new(limit), held: Arc::default(), limit }, receiver)
}

impl Backlog {
    /// Takes a slot for a connection of a peer.
    ///
    /// # Errors
    /// If no slot is free, or the peer has reached its limit.
    pub(crate) fn reserve(&self, peer: Option<Principal>) -> Result<BacklogSlot, NoSlot> {
        let slot = match self.slots.take() {
            Err(slot) if is_planted(Bug::SlotLeak) => {
                std::mem::forget(slot);
                return Err(NoSlot::Full);
            }
            taken => taken.map_err(|_| NoSlot::Full)?,
        };
        let holders = peer.into_iter().flat_map(Principal::holders);
        let counted = holders.filter_map(|holder| self.count(holder)).collect::<Result<_, _>>()?;
        Ok(BacklogSlot { _slot: slot, _counted: counted })
    }

    /// Counts a slot for a holder. Returns `None` if the holder has no limit of its own.
    fn count(&self, holder: Principal) -> Option<Result<Counted, NoSlot>> {
        let most = match holder {
            Principal::Peer(_) | Principal::Unlisted(_) => (self.limit / PART_OF_PEER).max(1),
            Principal::AllUnlisted => of_unlisted(self.limit),
            Principal::Key(_) => return None,
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.get(&holder).copied().unwrap_or(0);
        if count >= most {
            return Some(Err(NoSlot::Quota));
        }
        held.insert(holder, count + 1);
        Some(Ok(Counted { holder, held: Arc::clone(&self.held) }))
    }

    /// Puts a connection into its slot. If the application has dropped its end, the connection is dropped, which closes
    /// it.
    pub(crate) fn put(&self, connection: Opened, slot: BacklogSlot) {
        drop(self.sender.try_send(Unaccepted { connection, _slot: slot }));
    }

    /// Ends the application's waits for further connections.
    pub(crate) fn close(&self) {
        self.sender.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::PeerKey;

    fn peer(n: u8) -> PeerKey {
        PeerKey::new([n; 32]).expect("no point of low order")
    }

    #[test]
    fn a_full_backlog_has_no_slot_until_one_is_dropped() {
        let (backlog, _receiver) = backlog(2);
        let reserve = || backlog.reserve(None);
        let (first, _second) = (reserve().expect("free"), reserve().expect("free"));
        assert_eq!([reserve().err(), reserve().err()], [Some(NoSlot::Full); 2]);
        drop(first);
        assert!(reserve().is_ok());
    }

    #[test]
    fn a_peer_has_at_most_a_quarter_of_the_slots_of_all_engines() {
        let key = |n| Principal::Peer(peer(n));
        let (one, _receiver) = backlog(128);
        let other = one.clone();
        let take = |key| [&one, &other].map(|engine| engine.reserve(Some(key)));
        let mut taken: Vec<_> = (0..16).flat_map(|_| take(key(9))).collect();
        assert!(taken.iter().all(Result::is_ok), "32 of 128");
        let refused = take(key(9)).map(Result::err);
        assert_eq!(refused, [Some(NoSlot::Quota); 2]);
        let others: Vec<_> = (10..58).flat_map(|n| take(key(n))).collect();
        assert!(others.iter().all(Result::is_ok), "96 are left");
        assert_eq!(one.reserve(None).err(), Some(NoSlot::Full));
        drop(others);
        taken.pop();
        let again = one.reserve(Some(key(9)));
        assert!(again.is_ok(), "one was accepted");
        assert_eq!(other.reserve(Some(key(9))).err(), Some(NoSlot::Quota));
        drop((taken, again));
        assert!(one.held.lock().expect("no panic").is_empty());
    }

    #[test]
    fn unlisted_peers_together_leave_slots_to_listed_ones() {
        for (limit, unlisted) in [(1, 1), (2, 1), (4, 3), (8, 6), (128, 96)] {
            let (backlog, _receiver) = backlog(limit);
            // Each unlisted peer has one slot.
            let take = |n: u32| backlog.reserve(Some(Principal::Unlisted(peer(n as u8 + 9))));
            let mut taken: Vec<_> = (0..unlisted).map(|n| take(n).expect("room")).collect();
            let left = limit - unlisted;
            let why = if left > 0 { NoSlot::Quota } else { NoSlot::Full };
            assert_eq!(take(unlisted).err(), Some(why), "of {limit}");
            let listed: Vec<_> = (0..left)
                .map(|n| backlog.reserve(Some(Principal::Peer(peer(n as u8 + 9)))))
                .collect();
            assert!(listed.iter().all(Result::is_ok), "of {limit}");
            taken.pop();
            assert!(take(unlisted).is_ok(), "of {limit}");
        }
    }

    #[test]
    fn each_peer_may_have_one_slot_of_a_small_backlog() {
        let (backlog, _receiver) = backlog(2);
        let key = Principal::Peer(peer(9));
        let _first = backlog.reserve(Some(key)).expect("free");
        assert_eq!(backlog.reserve(Some(key)).err(), Some(NoSlot::Quota));
        let _second = backlog.reserve(None).expect("free");
        assert_eq!(backlog.reserve(Some(key)).err(), Some(NoSlot::Full));
    }
}
