//! Trimming: packets for which their class has no room lose their payload ([`Trim`]).

use apus_cc::SwitchHalf;
use apus_units::Time;
use apus_units::random::SplitMix64;

use super::Port;
use super::class::Waiting;
use crate::config::{ClassConfig, PortKind, Trim};
use crate::counters::DropReason;
use crate::network::Common;
use crate::packet::PacketRef;
use crate::topology::Node;

/// State of the trimming of a port.
#[derive(Clone, Debug)]
pub(super) struct Trimmer {
    config: Trim,
    random: SplitMix64,
    trimmed: u64,
    headers_lost: u64,
}

impl Trimmer {
    /// Returns the trimming state of a port with these classes; `None` if no class trims.
    pub(super) fn of<W>(classes: &[ClassConfig<W>]) -> Option<Self> {
        let config = classes.iter().find_map(|class| class.trim)?;
        let random = SplitMix64::new(config.seed);
        Some(Self { config, random, trimmed: 0, headers_lost: 0 })
    }

    /// Returns the number of trimmed packets, and the number of their headers that found no room.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.trimmed, self.headers_lost)
    }
}

impl<W: SwitchHalf> Port<W> {
    /// Handles the arrival of a packet for which its class has no room. Either this packet is
    /// trimmed or, to make room, the last packet of the queue. Returns the class that the packet
    /// joins, and its bytes. A packet without a payload keeps both, and will be dropped.
    #[cold]
    pub(super) fn make_room<P>(
        &mut self,
        now: Time,
        packet: PacketRef,
        (class, bytes): (usize, u32),
        common: &mut Common<P>,
    ) -> (usize, u32) {
        let last_hop = matches!(self.link.peer(), Node::Host(_));
        let is_up = self.is_up();
        let Some(trimmer) = self.trimmer.as_mut().filter(|_| is_up) else { return (class, bytes) };
        let to = (trimmer.config.class, trimmer.config.bytes);
        let keeps = trimmer.config.keeps_headers;
        if trimmer.config.tail && trimmer.random.uniform() < 0.5 {
            let last = self.classes[class].queue.back().copied();
            let class_of = |last: &Waiting| common.pool.fields(last.packet).class.index();
            let is_own = last.as_ref().is_some_and(|last| class_of(last) == class);
            if !keeps && let Some(last) = last {
                self.take_tail(now, (class, is_own), last);
                self.count_drop(class, last.bytes);
                common.discard(self.id(), last.packet, DropReason::Buffer);
            } else if let Some(last) = last.filter(|last| common.trim(last.packet, to, last_hop)) {
                self.move_tail(now, (class, is_own), last, common);
            }
            if self.classes[class].has_room(bytes) {
                return (class, bytes);
            }
        }
        if !keeps || !common.trim(packet, to, last_hop) {
            return (class, bytes);
        }
        let (to, bytes) = (to.0.index(), to.1);
        self.note_trimmed(to, common);
        (to, bytes)
    }

    /// Moves the last packet of a class, which has been trimmed, to the end of the class of
    /// headers. `is_own` is set if it was sent in that class.
    fn move_tail<P>(
        &mut self,
        now: Time,
        (class, is_own): (usize, bool),
        last: Waiting,
        common: &mut Common<P>,
    ) {
        self.take_tail(now, (class, is_own), last);
        self.classes[class].offered.sub(last.bytes);
        self.tally.offered.sub(last.bytes);
        let fields = common.pool.fields(last.packet);
        let (to, header) =
            (fields.class.index(), Waiting { packet: last.packet, bytes: fields.wire_bytes });
        self.tally.offered.add(header.bytes);
        self.classes[to].offered.add(header.bytes);
        if !self.note_trimmed(to, common) {
            self.count_drop(to, header.bytes);
            common.discard(self.id(), header.packet, DropReason::Buffer);
            return;
        }
        if self.kind == PortKind::Event {
            self.classes[to].note_joining(header.bytes, true);
        }
        self.tally.joins(now, header.bytes);
        self.queue_bytes += u64::from(header.bytes);
        self.enqueue(to, header);
    }

    /// Removes the last packet of a class.
    fn take_tail(&mut self, now: Time, (class, is_own): (usize, bool), last: Waiting) {
        let from = &mut self.classes[class];
        from.queue.pop_back();
        from.bytes -= u64::from(last.bytes);
        if self.kind == PortKind::Event {
            from.own_bytes -= u64::from(last.bytes) * u64::from(is_own);
        }
        let level = from.level;
        if self.levels[usize::from(level)].is_empty(&self.classes) {
            self.waiting &= !(1 << level);
        }
        self.queue_bytes -= u64::from(last.bytes);
        self.tally.leaves(now, last.bytes);
    }

    /// Counts a trimmed packet, and returns `true` if class `to` has room for its header.
    fn note_trimmed<P>(&mut self, to: usize, common: &mut Common<P>) -> bool {
        let Some(trimmer) = &mut self.trimmer else { return false };
        trimmer.trimmed += 1;
        let has_room = self.classes[to].has_room(trimmer.config.bytes);
        trimmer.headers_lost += u64::from(!has_room);
        if !has_room {
            common.note_header_lost();
        }
        has_room
    }
}
