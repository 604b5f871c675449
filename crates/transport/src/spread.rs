//! Flows that spread their packets over several paths: path policy, loss detection, and the packet
//! numbers that may be out of order.

use alloc::boxed::Box;

use apus_cc::{Ev, PathEvent, PathFeedback, PathPolicy};
use apus_units::{PacketNumber, Span};

mod losses;
mod received;

pub(crate) use losses::Losses;
pub use losses::Sleek;
pub(crate) use received::{AckPace, WideReceived};

/// How a flow whose packets overtake each other detects losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRule {
    /// A packet is lost once a packet sent this many numbers later is acknowledged (RFC 9002 §6.1.1).
    Count(u64),
    /// A packet is lost once a packet sent this much later is acknowledged (RACK, RFC 8985 §6.2).
    Time(Span),
    /// A packet is lost once a later packet with its entropy value is acknowledged, because a path
    /// keeps the order. Each packet also has a timeout of its own, since its entropy value may not
    /// be used again.
    EvOrder,
    /// Only timeouts detect losses, each packet by its own (uet-htsim 40ccb05).
    Timeout,
    /// Timeouts as with [`LossRule::Timeout`]; in addition many packets out of order count as a
    /// loss, and probes follow a silence (uet-htsim 40ccb05, `-sleek`).
    Sleek(Sleek),
}

/// Settings of a flow that spreads its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadConfig {
    /// Loss detection.
    pub loss: LossRule,
    /// Maximum number of packet numbers from the oldest packet in flight to the newest, and number
    /// of packet numbers that the receiver records: a power of two from [`MIN_RANGE`] to
    /// [`MAX_RANGE`]. The sender stops at the limit.
    pub range: u32,
    /// Payload bytes after which the receiver acknowledges; 0: each packet. The receiver
    /// immediately acknowledges the first packet, a marked packet, a packet after which the sender
    /// waits, and a repeated packet.
    pub ack_bytes: u32,
}

/// Smallest [`SpreadConfig::range`]: the length of the bitmap of an acknowledgement.
pub const MIN_RANGE: u32 = u128::BITS;
/// Largest [`SpreadConfig::range`] (uet-htsim 40ccb05: 16384).
pub const MAX_RANGE: u32 = 16_384;
/// Default of [`SpreadConfig::range`] (Falcon, isekai v1.1: senders track 1024 packets).
pub const DEFAULT_RANGE: u32 = 1024;

/// The path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The flow's only path, with the path label that the algorithm chose.
    Label(u32),
    /// One of several paths, selected by this entropy value.
    Spread(Ev),
    /// The reverse of the path with this number, for a packet that answers one which arrived by it.
    Back(u32),
}

/// State of a flow that spreads its packets.
#[derive(Clone, Debug)]
pub(crate) struct Spread<P> {
    pub(crate) policy: P,
    pub(crate) config: SpreadConfig,
    /// Whether switches may mark packets for the policy, independent of the algorithm.
    pub(crate) markable: bool,
    pub(crate) losses: Losses,
    pub(crate) received: WideReceived,
    pub(crate) acks: AckPace,
    /// Path of the newest data packet of the peer.
    pub(crate) came_by: u32,
    /// Entropy value of the packet that was sent last.
    pub(crate) latest: Ev,
    /// Entropy value of the next packet, if a caller has already asked for its port.
    pub(crate) chosen: Option<Ev>,
    /// For each entropy value modulo the length: whether the last report on a packet was a loss or
    /// a timeout. Empty on hosts with one port.
    pub(crate) failing: Box<[bool]>,
    /// Number of ports by which packets leave.
    pub(crate) ports: u32,
    /// Smallest and largest number of the packets that were recorded since the last
    /// acknowledgement.
    pub(crate) unacknowledged: Option<(u64, u64)>,
    /// Counters of each entropy value modulo the length; empty unless packets are counted by
    /// entropy value.
    pub(crate) counters: Box<[EvCounters]>,
    /// Whether a packet whose fabric delay was above the algorithm's target delay counts as marked.
    pub(crate) late_is_marked: bool,
    /// Number of the next packet at the time when packets last timed out one by one.
    pub(crate) timed_out_below: PacketNumber,
}

/// Packet counters of a flow for one entropy value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvCounters {
    /// Data packets and requests sent.
    pub sent: u64,
    /// Packets that caused an acknowledgement and had arrived without an ECN mark.
    pub good: u64,
    /// Packets that caused an acknowledgement and had arrived with an ECN mark.
    pub marked: u64,
    /// Packets that were declared lost without a timeout, or arrived trimmed.
    pub lost: u64,
    /// Timeouts that expired on packets with this value.
    pub timeouts: u64,
    /// Losses and timeouts in a row. An acknowledgement, a NACK or an answer to a probe for this
    /// entropy value resets the count to 0.
    pub failures: u32,
}

/// The next packet of a flow that spreads its packets, for a host with several ports. Its entropy
/// value modulo the number of [pairs of ports](crate::Endpoint::set_ports) names the port.
#[derive(Clone, Copy, Debug)]
pub struct NextEv<'a> {
    /// The entropy value that the policy has chosen.
    pub ev: Ev,
    /// Whether packets of the flow may take any port: the policy sprays. Otherwise the policy keeps
    /// to a path on purpose.
    pub may_move: bool,
    /// For each pair of ports: whether the last report on a packet was a loss or a timeout.
    pub failing: &'a [bool],
}

/// Whether a flow sends its next packet now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The flow waits for any of these ports (one bit each) and keeps its position in the queue of
    /// flows.
    Wait(u64),
    /// The flow sends with the entropy value of its policy.
    Send,
    /// The flow sends with this entropy value instead of that of the policy.
    SendBy(Ev),
}

impl<P: PathPolicy> Spread<P> {
    pub(crate) fn new(mut policy: P, config: SpreadConfig, seed: u64) -> Self {
        policy.reseed(seed);
        let markable = policy.reads_marks();
        Self {
            policy,
            markable,
            config,
            losses: Losses::new(config.loss, config.range),
            received: WideReceived::new(config.range),
            acks: AckPace::new(config.ack_bytes),
            came_by: 0,
            latest: Ev::default(),
            chosen: None,
            failing: Box::new([]),
            ports: 1,
            unacknowledged: None,
            counters: Box::new([]),
            late_is_marked: false,
            timed_out_below: PacketNumber::new(0),
        }
    }

    /// Returns the counters of an entropy value, if packets are counted.
    #[inline]
    pub(crate) fn counters_of(&mut self, ev: Ev) -> Option<&mut EvCounters> {
        let place = ev.index().checked_rem(self.counters.len())?;
        self.counters.get_mut(place)
    }

    /// Records that packet `number` must be acknowledged.
    #[inline]
    pub(crate) fn note_unacknowledged(&mut self, number: u64) {
        let (first, last) = self.unacknowledged.unwrap_or((number, number));
        self.unacknowledged = Some((first.min(number), last.max(number)));
    }

    /// Returns `true` if one acknowledgement might not be able to report packet `number`, which
    /// arrived by `path`, together with all unacknowledged packets before it.
    #[inline]
    pub(crate) fn exceeds_word(&self, number: u64, path: u32) -> bool {
        self.unacknowledged.is_some_and(|(first, last)| {
            let span = last.max(number) - first.min(number);
            path != self.came_by || span >= u64::from(MIN_RANGE / 2)
        })
    }

    /// Passes a report on a packet to the policy.
    #[inline]
    pub(crate) fn report(&mut self, event: &PathEvent) {
        self.policy.feedback(event);
        if let Some(counters) = self.counters_of(event.ev) {
            counters.failures = match event.kind {
                PathFeedback::Lost | PathFeedback::Timeout => counters.failures.saturating_add(1),
                _ => 0,
            };
            match event.kind {
                PathFeedback::Good => counters.good += 1,
                PathFeedback::Marked => counters.marked += 1,
                PathFeedback::Lost | PathFeedback::Trimmed | PathFeedback::TrimmedAtLastHop => {
                    counters.lost += 1;
                }
                PathFeedback::Timeout => counters.timeouts += 1,
                PathFeedback::ProbeAnswered => {}
            }
        }
        if !self.failing.is_empty() {
            let pair = usize::from(event.ev.get()) % self.failing.len();
            self.failing[pair] = matches!(event.kind, PathFeedback::Lost | PathFeedback::Timeout);
        }
    }
}
