//! Connections that peers have opened and that the application has not accepted yet.

use apus_units::planted::{Bug, is_planted};

use crate::mailbox::Opened;
use crate::slots::{Slot, Slots};

/// The engines' side of the backlog. A connection takes a slot when its peer requests it. So a peer without a slot is
/// refused at once and is never told that it is connected.
#[derive(Clone)]
pub(crate) struct Backlog {
    sender: async_channel::Sender<Unaccepted>,
    slots: Slots,
}

/// A slot of the backlog, freed when it is dropped.
pub(crate) type BacklogSlot = Slot;

/// A connection in the backlog.
pub(crate) struct Unaccepted {
    pub(crate) connection: Opened,
    _slot: BacklogSlot,
}

/// Returns a backlog of at most `limit` connections, including those being opened, and the application's end of it.
pub(crate) fn backlog(limit: u32) -> (Backlog, async_channel::Receiver<Unaccepted>) {
    // The slots bound the channel.
    let (sender, receiver) = async_channel::unbounded();
    (Backlog { sender, slots: Slots::new(limit) }, receiver)
}

impl Backlog {
    /// Takes a slot, if one is free.
    pub(crate) fn reserve(&self) -> Option<BacklogSlot> {
        match self.slots.take() {
            Err(slot) if is_planted(Bug::SlotLeak) => {
                std::mem::forget(slot);
                None
            }
            taken => taken.ok(),
        }
    }

    /// Puts a connection into its slot. If the application has gone, the connection is dropped, which closes it.
    pub(crate) fn put(&self, connection: Opened, slot: BacklogSlot) {
        drop(self.sender.try_send(Unaccepted { connection, _slot: slot }));
    }

    /// Ends waits for further connections.
    pub(crate) fn close(&self) {
        self.sender.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_backlog_has_no_slot_until_one_is_dropped() {
        let (backlog, _receiver) = backlog(2);
        let (first, _second) = (backlog.reserve().expect("free"), backlog.reserve().expect("free"));
        assert!(backlog.reserve().is_none() && backlog.reserve().is_none());
        drop(first);
        assert!(backlog.reserve().is_some());
    }
}
