//! Counters of ports and of the network.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use apus_units::{Bytes, PortId, Span, Time};

/// The reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The buffer of an egress port had no room for the packet.
    Buffer,
    /// The TTL of the packet reached 0 at a switch.
    Ttl,
    /// A switch half dropped the packet.
    SwitchHalf,
    /// The link behind the egress port was down.
    LinkDown,
    /// The link lost the packet: an [`Impairment`](crate::Impairment).
    Loss,
    /// The link corrupted the packet, and its checksum failed at the far end.
    Corruption,
    /// The queue of a rate-limited class was full: credits beyond their share of the link.
    RateLimit,
}

impl DropReason {
    /// All reasons, in the order of [`Counters::dropped`].
    pub const ALL: [Self; 7] = [
        Self::Buffer,
        Self::Ttl,
        Self::SwitchHalf,
        Self::LinkDown,
        Self::Loss,
        Self::Corruption,
        Self::RateLimit,
    ];
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffer => "no room in the buffer",
            Self::Ttl => "TTL reached 0",
            Self::SwitchHalf => "dropped by the switch half of an algorithm",
            Self::LinkDown => "link down",
            Self::Loss => "lost on the link",
            Self::Corruption => "corrupted on the link",
            Self::RateLimit => "beyond the rate limit of its class",
        })
    }
}

/// Packets and their wire bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Wire bytes of the packets.
    pub bytes: u64,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn sub(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// Counters of an egress port up to a given time.
///
/// `offered + lost = dropped + sent + queued` holds at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets that were offered to the port.
    pub offered: Count,
    /// Packets dropped at the port, for any reason.
    pub dropped: Count,
    /// Packets whose last bit has left.
    pub sent: Count,
    /// Packets that an [`Impairment`](crate::Impairment) of the link dropped after they had left:
    /// they count in `sent` and in `dropped`.
    pub lost: Count,
    /// Packets in the port, the packet in service included.
    pub queued: Count,
    /// Accepted packets whose ECN codepoint was changed to `Congested` by the switch half of this
    /// port.
    pub marked: u64,
    /// Packets that lost their payload here ([`Trim`](crate::Trim)). In `offered`, each counts only
    /// the bytes of its header.
    pub trimmed: u64,
    /// Headers of trimmed packets that were dropped here, for lack of room in their class. The
    /// receiver learns nothing of these packets.
    pub headers_lost: u64,
    /// Number of times a class of the port was paused.
    pub pauses: u64,
    /// The largest occupancy so far, the arriving packet included.
    pub max_queue: Bytes,
    /// Exact time integral of the occupancy, in byte-picoseconds: the sum over accepted packets of
    /// wire bytes times the time in the port.
    pub byte_time: u128,
    /// Exact time integral of the number of packets, in packet-picoseconds. Divided by the number
    /// of packets sent, it is the mean time in the port (Little's law).
    pub packet_time: u128,
}

/// Counters of one class of an egress port up to a given time.
///
/// `offered + lost = dropped + sent + queued` holds at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Packets of the class that were offered to the port.
    pub offered: Count,
    /// Packets dropped at the port.
    pub dropped: Count,
    /// Packets of the class whose last bit has left.
    pub sent: Count,
    /// Packets of the class that count both in `sent` and in `dropped`: see [`PortCounters::lost`].
    pub lost: Count,
    /// Packets of the class in the port, a packet in service included.
    pub queued: Count,
}

impl ClassCounters {
    pub(crate) fn new(offered: Count, [dropped, lost]: [Count; 2], queued: Count) -> Self {
        Self { offered, dropped, sent: sent(offered, [dropped, lost], queued), lost, queued }
    }
}

/// Returns the packets whose last bit has left. Of the dropped packets, `lost` ones had also left.
fn sent(offered: Count, [dropped, lost]: [Count; 2], queued: Count) -> Count {
    Count {
        packets: offered.packets + lost.packets - dropped.packets - queued.packets,
        bytes: offered.bytes + lost.bytes - dropped.bytes - queued.bytes,
    }
}

/// Counters that a port stores; the rest of [`PortCounters`] follows from its state. Fields that
/// every packet changes come first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Tally {
    /// Sum over packets of the time at which each left minus the time at which it joined, as far as
    /// these are known. Packets in the port have not left yet, so the sum may be negative (and
    /// wraps).
    packet_time: u128,
    /// Sum as in `packet_time`, with each term multiplied by the bytes of its packet.
    byte_time: u128,
    pub(crate) offered: Count,
    pub(crate) max_queue_bytes: u64,
    pub(crate) marked: u64,
    pub(crate) dropped: Count,
}

impl Tally {
    /// Counts a packet that joins the port at `now`.
    #[inline]
    pub(crate) fn joins(&mut self, now: Time, bytes: u32) {
        let now = u128::from(now.as_ps());
        self.packet_time = self.packet_time.wrapping_sub(now);
        self.byte_time = self.byte_time.wrapping_sub(now * u128::from(bytes));
    }

    /// Counts a packet that leaves the port at `at`.
    #[inline]
    pub(crate) fn leaves(&mut self, at: Time, bytes: u32) {
        self.stays(at.since(Time::ZERO), bytes);
    }

    /// Adds `span` to the time for which a packet stays in the port.
    #[inline]
    pub(crate) fn stays(&mut self, span: Span, bytes: u32) {
        let span = u128::from(span.as_ps());
        self.packet_time = self.packet_time.wrapping_add(span);
        self.byte_time = self.byte_time.wrapping_add(span * u128::from(bytes));
    }

    /// Subtracts `span` from the time for which a packet stays in the port.
    pub(crate) fn stays_less(&mut self, span: Span, bytes: u32) {
        self.joins(Time::ZERO + span, bytes);
    }

    /// Returns the counters of a port that holds `queued`, and whose link has `lost` packets.
    pub(crate) fn counters(&self, queued: Count, lost: Count) -> PortCounters {
        PortCounters {
            offered: self.offered,
            dropped: self.dropped,
            sent: sent(self.offered, [self.dropped, lost], queued),
            lost,
            queued,
            marked: self.marked,
            trimmed: 0,
            headers_lost: 0,
            pauses: 0,
            max_queue: Bytes::new(self.max_queue_bytes),
            byte_time: self.byte_time,
            packet_time: self.packet_time,
        }
    }
}

/// Number of dropped packets, by reason in the order of [`DropReason::ALL`].
pub type Drops = [u64; DropReason::ALL.len()];

/// Number of dropped packets, by egress port and reason. Takes no memory before the first drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DropLog(Vec<Drops>);

impl DropLog {
    /// Counts the drop of a packet that was to leave by `port`.
    #[cold]
    pub(crate) fn note(&mut self, port: PortId, reason: DropReason) {
        if self.0.len() <= port.index() {
            self.0.resize(port.index() + 1, Drops::default());
        }
        self.0[port.index()][reason as usize] += 1;
    }

    /// Returns the drops at `port`.
    pub(crate) fn at(&self, port: PortId) -> Drops {
        self.0.get(port.index()).copied().unwrap_or_default()
    }
}

/// Counters of the network as a whole, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that hosts passed to [`Network::send`](crate::Network::send), accepted or not, and
    /// packets made by switches.
    pub sent: u64,
    /// Signals of switches to sources, included in `sent`.
    pub signals: u64,
    /// Wire bytes of the signals.
    pub signal_bytes: u64,
    /// Number of times a switch paused a class of a port ([`PfcConfig`](crate::PfcConfig)).
    pub pauses: u64,
    /// Packets that lost their payload in a port.
    pub trimmed: u64,
    /// Headers of trimmed packets that were dropped in the port that trimmed them.
    pub headers_lost: u64,
    /// Packets that reached their host.
    pub delivered: u64,
    /// Packets dropped.
    pub dropped: Drops,
}

impl Counters {
    /// Returns the number of packets dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns the number of packets in ports and on links.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sent - self.delivered - self.dropped_total()
    }

    pub(crate) fn note_drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    /// Adds the counters of another part of the network.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.signals += other.signals;
        self.signal_bytes += other.signal_bytes;
        self.pauses += other.pauses;
        self.trimmed += other.trimmed;
        self.headers_lost += other.headers_lost;
        self.delivered += other.delivered;
        for (dropped, more) in self.dropped.iter_mut().zip(other.dropped) {
            *dropped += more;
        }
    }

    /// Checks that every packet was delivered or dropped, or is one of the `held` packets in ports
    /// and on links; `pooled` is the number of packets in the pools.
    ///
    /// # Errors
    /// Returns the numbers if they do not add up.
    pub fn check(&self, held: u64, pooled: u64) -> Result<(), String> {
        let accounted = self.delivered + self.dropped_total() + held;
        if accounted != self.sent {
            return Err(format!(
                "packets are not conserved: {} sent, but {} delivered + {} dropped + {held} in \
                 ports and on links = {accounted}",
                self.sent,
                self.delivered,
                self.dropped_total(),
            ));
        }
        if pooled < held {
            return Err(format!(
                "the ports and links hold {held} packets but the pool only {pooled}; a packet in \
                 flight was taken out of the pool"
            ));
        }
        Ok(())
    }
}
