//! Connections that peers have opened and that the application has not accepted yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::connection::Connection;

/// The engines' side. A connection takes a place when its peer requests it. So a peer without a place is refused at once
/// and is never told that it is connected.
#[derive(Clone)]
pub(crate) struct Backlog {
    sender: async_channel::Sender<Unaccepted>,
    taken: Arc<AtomicU32>,
    limit: u32,
}

/// A place in the backlog, free again once it is dropped.
pub(crate) struct Place(Arc<AtomicU32>);

/// A connection in the backlog.
pub(crate) struct Unaccepted {
    connection: Connection,
    _place: Place,
}

/// Returns a backlog of at most `limit` connections, including those being opened, and the application's end of it.
pub(crate) fn backlog(limit: u32) -> (Backlog, async_channel::Receiver<Unaccepted>) {
    // The places bound it.
    let (sender, receiver) = async_channel::unbounded();
    (Backlog { sender, taken: Arc::default(), limit }, receiver)
}

impl Backlog {
    /// Takes a place, if one is free.
    pub(crate) fn reserve(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.taken));
        // If none is free, dropping the place subtracts it again.
        (self.taken.fetch_add(1, Ordering::AcqRel) < self.limit).then_some(place)
    }

    /// Puts a connection into its place. If the application has gone, dropping the connection closes it.
    pub(crate) fn put(&self, connection: Connection, place: Place) {
        drop(self.sender.try_send(Unaccepted { connection, _place: place }));
    }

    /// Ends waits for further connections.
    pub(crate) fn close(&self) {
        self.sender.close();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Unaccepted {
    /// Takes it out of its place.
    pub(crate) fn accept(self) -> Connection {
        self.connection
    }
}
