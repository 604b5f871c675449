//! The receiving side of an engine: polls of the socket, each for a few batches of datagrams.

use super::network::Network;
use crate::stats::{Stats, add};
use crate::sys::{Meta, ReceiveBuffers};

/// Maximum number of batches per poll, so that timers and sends get their turn. deviation: no source; 16 datagrams take
/// about 10 us, 16 full aggregates 250 us.
const MAX_BATCHES: usize = 4;

/// The result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// No datagram.
    Empty,
    /// One datagram that was not aggregated.
    Single,
    /// More than one datagram.
    Several,
}

/// Polls a socket.
pub(super) struct Receiver {
    buffers: Box<ReceiveBuffers>,
    /// Whether the socket may hold more datagrams than the last poll took.
    pub(super) unread: bool,
    /// Datagrams received by the last poll.
    pub(super) received: u64,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self { buffers: Box::new(ReceiveBuffers::new()), unread: false, received: 0 }
    }

    /// Receives at most [`MAX_BATCHES`] batches, and passes each datagram or aggregate to `handle`.
    #[inline]
    pub(super) fn poll<N: Network>(
        &mut self,
        network: &N,
        stats: &Stats,
        mut handle: impl FnMut(&Meta, &mut [u8]),
    ) -> Polled {
        let mut polled = Polled::Empty;
        self.received = 0;
        self.unread = true;
        for batch in 0..MAX_BATCHES {
            add(&stats.receive_calls, 1);
            // ICMP errors about single datagrams are ignored: timers detect lost packets.
            let more = network.receive(&mut self.buffers).unwrap_or(true);
            // A datagram that arrives alone is answered before the next poll.
            let single = batch == 0 && self.buffers.len() == 1;
            let mut datagrams = 0;
            for (meta, bytes) in self.buffers.received() {
                datagrams += bytes.len().div_ceil(meta.segment.max(1)) as u64;
                handle(meta, bytes);
            }
            if datagrams > 0 {
                self.received += datagrams;
                polled = if single && datagrams == 1 { Polled::Single } else { Polled::Several };
            }
            if !more || single {
                self.unread = more;
                break;
            }
        }
        add(&stats.datagrams_received, self.received);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::super::virtual_network::VirtualNetwork;
    use super::*;

    /// Polls a network in which these batches of aggregates are queued, each as (bytes, bytes per datagram).
    fn poll(batches: &[&[(usize, usize)]]) -> (Polled, bool, u64, Vec<usize>) {
        let network = VirtualNetwork::new(([10, 0, 0, 1], 1).into(), &[]);
        for batch in batches {
            let aggregates = batch.iter().map(|&(bytes, segment)| (vec![1; bytes], segment));
            network.put_batch(aggregates.collect());
        }
        let (mut receiver, stats) = (Receiver::new(), Stats::default());
        let mut seen = Vec::new();
        let polled = receiver.poll(&network, &stats, |_, bytes| seen.push(bytes.len()));
        (polled, receiver.unread, receiver.received, seen)
    }

    #[test]
    fn an_empty_socket_gives_an_empty_poll() {
        assert_eq!(poll(&[]), (Polled::Empty, false, 0, vec![]));
    }

    #[test]
    fn a_lone_datagram_ends_the_poll_and_an_aggregate_is_not_one() {
        assert_eq!(poll(&[&[(100, 100)], &[(50, 50)]]), (Polled::Single, true, 1, vec![100]));
        // Four datagrams of 30, 30, 30 and 10 bytes.
        assert_eq!(poll(&[&[(100, 30)]]), (Polled::Several, false, 4, vec![100]));
    }

    #[test]
    fn a_poll_takes_at_most_four_batches() {
        let batch: &[(usize, usize)] = &[(10, 10), (20, 10)];
        let (polled, unread, received, seen) = poll(&[batch; 6]);
        assert_eq!((polled, unread, received, seen.len()), (Polled::Several, true, 12, 8));
        let (_, unread, received, _) = poll(&[batch; 2]);
        assert_eq!((unread, received), (false, 6));
    }
}
