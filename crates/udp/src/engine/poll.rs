//! Polls of the socket: a few batches of datagrams per step.

use super::{Engine, RECEIVE_BATCHES};
use crate::stats::add;

/// What a step's polls found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// No datagram.
    Empty,
    /// One datagram that was not aggregated.
    Single,
    /// More than that.
    Several,
}

impl Engine {
    /// Receives at most a few batches of datagrams.
    pub(super) fn poll_socket(&mut self) -> Polled {
        let Some(mut buffers) = self.buffers.take() else { return Polled::Empty };
        if self.departures.is_some() {
            // First, so that the acknowledgements find t1 corrected.
            self.take_departures(self.clock.now());
        }
        let mut polled = Polled::Empty;
        self.unread = true;
        for batch in 0..RECEIVE_BATCHES {
            add(&self.shared.stats.receive_calls, 1);
            // ICMP errors of single datagrams are ignored: timers take care of lost packets.
            let more = self.socket.receive(&mut buffers).unwrap_or(true);
            // A datagram that comes alone is answered before the next poll.
            let single = batch == 0 && buffers.len() == 1;
            if self.handle_batch(&mut buffers) {
                let bare = single && !buffers.is_aggregate();
                polled = if bare { Polled::Single } else { Polled::Several };
            }
            if !more || single {
                self.unread = more;
                break;
            }
        }
        self.buffers = Some(buffers);
        polled
    }
}
