//! Datagrams that are queued for the kernel, in bursts. One call sends one burst.

use std::net::SocketAddr;

use apus_units::{FlowId, PacketNumber};

use crate::session::Peer;
use crate::sys::Outgoing;

/// Maximum number of bursts per step. deviation: no source; the number of data packets per step, for the case that each
/// goes to another peer.
const MAX_BURSTS: usize = 64;
/// Maximum length of a burst in bytes: the limit of one UDP send.
pub(super) const MAX_BURST_BYTES: usize = 65_000;
/// Maximum number of datagrams per burst: UDP_MAX_SEGMENTS of the first kernels with UDP_SEGMENT.
pub(super) const MAX_BURST_PACKETS: usize = 64;

/// Maximum length in bytes of a datagram that is put in front of a shorter one of its burst: an answer in front of an
/// acknowledgement. deviation: no source; for longer ones, the saved wake-up matters little, and the burst would not
/// accept further datagrams of their length.
const MAX_FRONT_BYTES: usize = 512;

/// Destination, traffic class and length of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) to: Peer,
    /// DSCP and ECN.
    pub(super) tos: u8,
    /// Length in bytes.
    pub(super) length: usize,
}

impl Envelope {
    /// Returns the envelope of a packet without a traffic class, such as a handshake or a probe.
    pub(super) fn plain(to: Peer, length: usize) -> Self {
        Self { to, tos: 0, length }
    }
}

/// Datagrams of equal length to one peer (the last may be shorter), which one call sends.
#[derive(Default)]
pub(super) struct Burst {
    pub(super) to: Option<Peer>,
    tos: u8,
    bytes: Vec<u8>,
    used: usize,
    /// Length of each datagram except the last.
    segment: usize,
    pub(super) packets: usize,
    /// Maximum number of packets.
    limit: usize,
    /// Whether a shorter datagram has ended the burst.
    closed: bool,
    /// Length of the space reserved for a longer datagram in front of the only one; 0 if there is none.
    front: usize,
    /// Data packets in the burst. The time of their departure is recorded when the burst is sent.
    pub(super) data: Vec<(FlowId, PacketNumber)>,
}

impl Burst {
    fn accepts(&self, datagram: &Envelope) -> bool {
        self.to == Some(datagram.to)
            && self.tos == datagram.tos
            && !self.closed
            && datagram.length <= self.segment
            && self.packets < self.limit
            && self.used + datagram.length <= MAX_BURST_BYTES
    }

    /// Returns `true` if the burst accepts a datagram in front of its only one, which must be shorter and carry no
    /// data: only the last datagram of a burst may be shorter than the others.
    fn accepts_in_front(&self, datagram: &Envelope) -> bool {
        self.to == Some(datagram.to)
            && self.tos == datagram.tos
            && self.packets == 1
            && self.data.is_empty()
            && self.limit > 1
            && (self.segment + 1..=MAX_FRONT_BYTES).contains(&datagram.length)
    }

    fn make_front(&mut self, length: usize) {
        let end = length + self.used;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes.copy_within(..self.used, length);
        self.front = length;
    }

    fn begin(&mut self, datagram: &Envelope, limit: usize) {
        self.to = Some(datagram.to);
        self.tos = datagram.tos;
        self.limit = limit;
        self.used = 0;
        self.segment = 0;
        self.packets = 0;
        self.closed = false;
        self.front = 0;
        self.data.clear();
    }

    /// Returns `true` if the burst has several packets and accepts no further one of their length.
    fn is_full(&self) -> bool {
        let more = self.used + self.segment <= MAX_BURST_BYTES && self.packets < self.limit;
        self.packets > 1 && (self.closed || !more)
    }

    /// Returns the space of the next datagram.
    pub(super) fn space(&mut self, length: usize) -> &mut [u8] {
        if self.front > 0 {
            return &mut self.bytes[..length];
        }
        let end = self.used + length;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.used..end]
    }

    /// Adds the datagram that the caller has written to the space.
    pub(super) fn commit(&mut self, length: usize) {
        if self.packets == 0 || self.front > 0 {
            self.segment = length;
        }
        self.closed |= std::mem::take(&mut self.front) > 0;
        self.closed |= length < self.segment;
        self.used += length;
        self.packets += 1;
    }

    /// Adds the datagram that the caller has written to the space and that carries a data packet.
    pub(super) fn commit_data(&mut self, length: usize, flow: FlowId, seq: PacketNumber) {
        self.commit(length);
        self.data.push((flow, seq));
    }

    /// Returns the burst as one send. If `stamped` is set and the burst carries data, the send requests a report of its
    /// departure.
    pub(super) fn outgoing(&self, stamped: bool) -> Option<Outgoing<'_>> {
        Some(Outgoing {
            to: self.to?,
            bytes: &self.bytes[..self.used],
            segment: self.segment,
            tos: self.tos,
            stamp: stamped && !self.data.is_empty(),
        })
    }

    /// Returns the datagrams of the burst as one send each.
    pub(super) fn split(&self) -> impl Iterator<Item = Outgoing<'_>> {
        let datagrams = self.bytes[..self.used].chunks(self.segment.max(1));
        datagrams.filter_map(|bytes| {
            Some(Outgoing {
                to: self.to?,
                bytes,
                segment: bytes.len(),
                tos: self.tos,
                stamp: false,
            })
        })
    }
}

/// Bursts that are queued for the kernel, oldest first.
#[derive(Default)]
pub(super) struct Outbox {
    bursts: Vec<Burst>,
    /// Number of bursts in use, counted from the front. The other entries keep their memory for reuse.
    filled: usize,
}

impl Outbox {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns how many more bursts this step can begin.
    pub(super) fn room(&self) -> usize {
        MAX_BURSTS - self.filled
    }

    /// Returns `true` if this step can begin another burst.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.filled < MAX_BURSTS
    }

    /// Returns the bursts.
    pub(super) fn bursts(&self) -> &[Burst] {
        &self.bursts[..self.filled]
    }

    /// Returns the total number of bytes in the bursts.
    pub(super) fn bytes(&self) -> usize {
        self.bursts().iter().map(|burst| burst.used).sum()
    }

    /// Returns the burst for a datagram. If the last burst to its peer accepts the datagram, that burst keeps the order
    /// of datagrams, except that an answer may precede the acknowledgement in the same burst. Otherwise begins a new
    /// burst of at most `limit` packets.
    pub(super) fn burst(&mut self, datagram: &Envelope, limit: usize) -> &mut Burst {
        let last = self.bursts().iter().rposition(|burst| burst.to == Some(datagram.to));
        if let Some(last) = last {
            if self.bursts[last].accepts(datagram) {
                return &mut self.bursts[last];
            }
            if self.bursts[last].accepts_in_front(datagram) {
                self.bursts[last].make_front(datagram.length);
                return &mut self.bursts[last];
            }
        }
        if self.filled == self.bursts.len() {
            self.bursts.push(Burst::default());
        }
        let burst = &mut self.bursts[self.filled];
        self.filled += 1;
        burst.begin(datagram, limit);
        burst
    }

    /// Returns `true` if the last burst is full.
    #[inline]
    pub(super) fn ends_full(&self) -> bool {
        self.bursts().last().is_some_and(Burst::is_full)
    }

    /// Removes the last burst if it is empty, and a space in front of a burst that was not filled.
    #[inline]
    pub(super) fn remove_empty(&mut self) {
        for burst in self.bursts[..self.filled].iter_mut().filter(|burst| burst.front > 0) {
            burst.bytes.copy_within(burst.front..burst.front + burst.used, 0);
            burst.front = 0;
        }
        if self.bursts().last().is_some_and(|burst| burst.packets == 0) {
            self.filled -= 1;
        }
    }

    /// Removes the `count` oldest bursts.
    #[inline]
    pub(super) fn remove(&mut self, count: usize) {
        self.bursts[..self.filled].rotate_left(count);
        self.filled -= count;
    }

    /// Removes all bursts, including one that is being built.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
    }
}

/// Returns the number of bytes of the IP and UDP headers of packets to `peer`.
pub(super) fn ip_udp_bytes(peer: SocketAddr) -> u32 {
    if peer.is_ipv6() { 48 } else { 28 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(host: u8, length: usize) -> Envelope {
        Envelope::plain(Peer::from(SocketAddr::from(([10, 0, 0, host], 1))), length)
    }

    /// Puts datagrams (host, length) into an outbox with bursts of at most `limit` packets. Returns the lengths of the
    /// datagrams of each burst.
    fn bursts(limit: usize, datagrams: &[(u8, usize)]) -> Vec<Vec<usize>> {
        let mut outbox = Outbox::default();
        for &(host, length) in datagrams {
            let burst = outbox.burst(&envelope(host, length), limit);
            burst.space(length).fill(host);
            burst.commit(length);
        }
        let lengths = |burst: &Burst| burst.split().map(|one| one.bytes.len()).collect();
        outbox.bursts().iter().map(lengths).collect()
    }

    #[test]
    fn equal_datagrams_to_one_peer_share_a_burst_which_a_shorter_one_ends() {
        let split = bursts(64, &[(1, 90), (1, 90), (1, 40), (1, 40), (1, 40)]);
        assert_eq!(split, [vec![90, 90, 40], vec![40, 40]]);
    }

    /// The kernel segments a send into datagrams of equal length, of which only the last may be shorter.
    #[test]
    fn longer_datagram_goes_in_front_of_a_single_shorter_one() {
        assert_eq!(bursts(64, &[(1, 76), (1, 105), (1, 76)]), [vec![105, 76], vec![76]]);
        assert_eq!(bursts(64, &[(1, 76), (1, 513)]), [vec![76], vec![513]], "too long");
        assert_eq!(bursts(64, &[(1, 76), (1, 76), (1, 105)]), [vec![76, 76], vec![105]]);
        assert_eq!(bursts(1, &[(1, 76), (1, 105)]), [vec![76], vec![105]]);
    }

    #[test]
    fn data_packets_keep_their_order() {
        let mut outbox = Outbox::default();
        for length in [76, 105] {
            let burst = outbox.burst(&envelope(1, length), 64);
            burst.space(length).fill(1);
            burst.commit_data(length, FlowId::new(0), PacketNumber::new(0));
        }
        assert_eq!(outbox.bursts().len(), 2);
    }

    #[test]
    fn space_in_front_that_is_not_filled_leaves_the_burst_unchanged() {
        let mut outbox = Outbox::default();
        let burst = outbox.burst(&envelope(1, 3), 64);
        burst.space(3).copy_from_slice(&[1, 2, 3]);
        burst.commit(3);
        outbox.burst(&envelope(1, 5), 64).space(5).fill(9);
        outbox.remove_empty();
        let left =
            outbox.bursts()[0].outgoing(false).map(|sent| (sent.bytes.to_vec(), sent.segment));
        assert_eq!(left, Some((vec![1, 2, 3], 3)));
        let burst = outbox.burst(&envelope(1, 4), 64);
        burst.space(4).copy_from_slice(&[4, 5, 6, 7]);
        burst.commit(4);
        let left =
            outbox.bursts()[0].outgoing(false).map(|sent| (sent.bytes.to_vec(), sent.segment));
        assert_eq!(left, Some((vec![4, 5, 6, 7, 1, 2, 3], 4)));
    }

    #[test]
    fn datagrams_to_several_peers_fill_a_burst_each_in_their_order() {
        let split = bursts(64, &[(1, 90), (2, 80), (1, 90), (2, 80), (2, 81), (2, 80)]);
        assert_eq!(split, [vec![90, 90], vec![80, 80], vec![81, 80]]);
    }

    #[test]
    fn a_burst_holds_at_most_its_limit_and_65_000_bytes() {
        assert_eq!(bursts(2, &[(1, 90); 5]), [vec![90; 2], vec![90; 2], vec![90]]);
        assert_eq!(bursts(64, &[(1, 9_000); 8]), [vec![9_000; 7], vec![9_000]]);
    }

    #[test]
    fn a_new_burst_carries_its_own_peer_and_traffic_class() {
        let mut outbox = Outbox::default();
        let first = Envelope { tos: 4, ..envelope(1, 10) };
        for datagram in [first, Envelope { tos: 8, ..first }] {
            let burst = outbox.burst(&datagram, 64);
            burst.space(10).fill(1);
            burst.commit(10);
        }
        let classes: Vec<_> =
            outbox.bursts().iter().filter_map(|b| b.outgoing(true)).map(|o| o.tos).collect();
        assert_eq!(classes, [4, 8]);
    }

    #[test]
    fn removed_bursts_leave_the_others_in_order_and_an_empty_one_is_forgotten() {
        let mut outbox = Outbox::default();
        for host in 1..=3 {
            let burst = outbox.burst(&envelope(host, 10), 64);
            burst.space(10).fill(host);
            burst.commit(10);
        }
        outbox.remove(2);
        assert_eq!((outbox.bursts().len(), outbox.bytes()), (1, 10));
        assert_eq!(outbox.bursts()[0].to, Some(envelope(3, 10).to));
        outbox.burst(&envelope(4, 10), 64);
        outbox.remove_empty();
        outbox.remove_empty();
        assert_eq!(outbox.bursts().len(), 1, "the burst with a packet stays");
    }
}
