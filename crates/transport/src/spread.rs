//! Flows that spread their packets over several paths: policy, loss detection, and the packet numbers that
//! may be out of order.

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
    /// A packet is lost once a later packet with its entropy value is acknowledged: a path keeps the order. Each packet has a
    /// timeout of its own too, since its value may not be used again.
    EvOrder,
    /// Only timeouts detect losses, each packet by its own (uet-htsim 40ccb05).
    Timeout,
    /// Timeouts as by [`LossRule::Timeout`], many packets out of order, and probes after a silence
    /// (uet-htsim 40ccb05, `-sleek`).
    Sleek(Sleek),
}

/// Settings of a flow that spreads its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadConfig {
    /// Loss detection.
    pub loss: LossRule,
    /// Packet numbers from the oldest in flight to the newest, and those that the receiver remembers; a
    /// power of two from [`MIN_RANGE`] to [`MAX_RANGE`]. The sender stops at the edge.
    pub range: u32,
    /// Payload bytes after which the receiver acknowledges; 0: each packet. It acknowledges at once the
    /// first packet, a marked one, one after which the sender waits, and a repeated one.
    pub ack_bytes: u32,
}

/// Smallest [`SpreadConfig::range`]: the bitmap of an acknowledgement.
pub const MIN_RANGE: u32 = u128::BITS;
/// Largest [`SpreadConfig::range`] (uet-htsim 40ccb05: 16384).
pub const MAX_RANGE: u32 = 16_384;
/// Default of [`SpreadConfig::range`] (Falcon, isekai v1.1: senders track 1024 packets).
pub const DEFAULT_RANGE: u32 = 1024;

/// The path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The flow's only path, with the label of its algorithm.
    Label(u32),
    /// Any of several paths, by this entropy value.
    Spread(Ev),
    /// A packet that answers one which came by the path of this number.
    Back(u32),
}

/// State of a flow that spreads its packets.
#[derive(Clone, Debug)]
pub(crate) struct Spread<P> {
    pub(crate) policy: P,
    pub(crate) config: SpreadConfig,
    /// Packets may be marked, whatever the algorithm.
    pub(crate) markable: bool,
    pub(crate) losses: Losses,
    pub(crate) received: WideReceived,
    pub(crate) acks: AckPace,
    /// Path of the newest data packet of the peer.
    pub(crate) came_by: u32,
    /// Entropy value of the packet that was sent last.
    pub(crate) latest: Ev,
    /// Value of the next packet, if its port was asked for.
    pub(crate) chosen: Option<Ev>,
    /// By value modulo its length: whether the last report on a packet was a loss. Empty on hosts with one port.
    pub(crate) failing: Box<[bool]>,
    /// Number of ports by which packets leave.
    pub(crate) ports: u32,
    /// First and last number of the packets that were recorded since the last acknowledgement.
    pub(crate) unacknowledged: Option<(u64, u64)>,
    /// By value modulo its length; empty unless packets are counted by value.
    pub(crate) counters: Box<[EvCounters]>,
    /// Whether a packet whose fabric delay was above the algorithm's target counts as marked.
    pub(crate) late_is_marked: bool,
    /// Number of the next packet when packets last timed out one by one.
    pub(crate) timed_out_below: PacketNumber,
}

/// Packets of a flow by their entropy value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvCounters {
    /// Data packets and requests sent.
    pub sent: u64,
    /// Those that drew an acknowledgement and had arrived without an ECN mark.
    pub good: u64,
    /// Those that drew an acknowledgement and had arrived with an ECN mark.
    pub marked: u64,
    /// Those that were declared lost without a timeout, or arrived trimmed.
    pub lost: u64,
    /// Timeouts that expired on packets with this value.
    pub timeouts: u64,
    /// Losses and timeouts in a row: an acknowledgement, a NACK or an answer to a probe for this value sets it to 0.
    pub failures: u32,
}

/// The next packet of a flow that spreads its packets, for a host with several ports: the value modulo the number of
/// [pairs of ports](crate::Endpoint::set_ports) names the port.
#[derive(Clone, Copy, Debug)]
pub struct NextEv<'a> {
    /// The entropy value that the policy has chosen.
    pub ev: Ev,
    /// Whether packets of the flow may take any port: its policy sprays. Otherwise the policy keeps a path on purpose.
    pub may_move: bool,
    /// By pair of ports: whether the last report on a packet was a loss or a timeout.
    pub failing: &'a [bool],
}

/// Whether a flow sends its next packet now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It waits for any of these ports, as bits, and keeps its place in the queue of flows.
    Wait(u64),
    /// It sends, with the entropy value of its policy.
    Send,
    /// It sends, with this entropy value in place of the policy's.
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

    /// Returns the counters of a value, if packets are counted.
    #[inline]
    pub(crate) fn counters_of(&mut self, ev: Ev) -> Option<&mut EvCounters> {
        let place = ev.index().checked_rem(self.counters.len())?;
        self.counters.get_mut(place)
    }

    /// Packet `number` was recorded, and is to be acknowledged.
    #[inline]
    pub(crate) fn note_unacknowledged(&mut self, number: u64) {
        let (first, last) = self.unacknowledged.unwrap_or((number, number));
        self.unacknowledged = Some((first.min(number), last.max(number)));
    }

    /// Returns `true` if no acknowledgement can report packet `number`, which came by `path`, together with those before.
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
