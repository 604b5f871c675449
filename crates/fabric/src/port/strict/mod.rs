//! A port of several classes in strict priority whose link cannot be stopped.

mod class;
mod facts;
mod half;

use alloc::boxed::Box;
use alloc::vec::Vec;

use apus_cc::{ClassView, Signal, SwitchHalf};
use apus_units::{ClassId, PortId, Rate, Span, Time, prefetch_first};

use self::class::{StrictClass, Waiting};
use super::link::{InFlight, Link};
use crate::config::{Buffer, MAX_STRICT_CLASSES, PortConfig};
use crate::counters::DropReason;
use crate::event::Schedule;
use crate::packet::{Fields, PacketRef};
use crate::topology::Node;

/// The packet in service.
#[derive(Clone, Copy, Default)]
struct InService {
    /// 0: none.
    bytes: u32,
    /// Index of its class.
    place: u8,
}

/// Classes each of a separate level, own buffer, constant rate, and switch halves that act on
/// enqueue only.
///
/// Departures follow from arrivals alone, and a packet enters the link's ring when its service
/// begins. So the end of a service needs no event: the port catches up when it is next used, by a
/// packet that joins or by one that is taken from its link. That is never too late. While packets
/// are queued, the packet whose service began last is on the link (on a shared link, the simulator
/// sorts the packets that enter it). That packet arrives at the peer no earlier than it departs,
/// which is when the next service begins. Fields that every packet needs come first.
#[repr(C, align(64))]
pub(crate) struct StrictPort<W> {
    pub(crate) link: Link,
    /// End of the last started service. Before that, and while packets are queued, its packet has
    /// entered the link and not yet arrived.
    free_at: Time,
    /// Bytes in the port, a packet in service included, as far as it has caught up.
    queue_bytes: u64,
    /// Most bytes in the port.
    limit: u64,
    max_queue_bytes: u64,
    /// See [`FifoPort`](super::FifoPort).
    byte_time: u64,
    in_service: InService,
    /// A bit for each class with queued packets, by index.
    waiting: u8,
    /// The number of the last class.
    last: u8,
    /// No switch half sees its packets.
    plain: bool,
    /// Some class has its own limit.
    limited: bool,
    /// By number of a class: its index in the order of service.
    places: [u8; MAX_STRICT_CLASSES],
    /// Indexed by order of service.
    classes: Box<[StrictClass<W>]>,
    /// Sum over packets of departure - arrival, as far as these are known. Queued packets have yet
    /// to depart, so that the sum may be negative (and wraps).
    packet_time: u128,
    /// Sum over packets of (departure - arrival) times bytes.
    byte_time_sum: u128,
    rate: Rate,
    marked: u64,
    /// Indexed by number of a class, for switch halves.
    views: Box<[ClassView]>,
}

impl<W: SwitchHalf> StrictPort<W> {
    /// # Panics
    /// If the configuration needs a class port.
    pub(crate) fn new(config: &PortConfig<W>, port: PortId, link: Link) -> Self {
        let Buffer::Own(buffer) = config.buffer else {
            panic!("{port} shares a buffer, so it is a class port");
        };
        assert!(config.is_strict(), "{port} does not serve its classes one above the other");
        let mut numbers: Vec<usize> = (0..config.classes.len()).collect();
        numbers.sort_by_key(|&number| config.classes[number].priority);
        let mut places = [0; MAX_STRICT_CLASSES];
        for (place, &number) in (0..).zip(&numbers) {
            places[number] = place;
        }
        let classes: Box<[StrictClass<W>]> =
            numbers.iter().map(|&number| StrictClass::new(&config.classes[number])).collect();
        Self {
            link,
            free_at: Time::ZERO,
            queue_bytes: 0,
            limit: buffer.get(),
            max_queue_bytes: 0,
            byte_time: config.rate.whole_byte_time(),
            in_service: InService::default(),
            waiting: 0,
            last: config.classes.len() as u8 - 1,
            plain: classes.iter().all(|class| class.algorithm.is_plain()),
            limited: classes.iter().any(StrictClass::is_limited),
            places,
            classes,
            packet_time: 0,
            byte_time_sum: 0,
            rate: config.rate,
            marked: 0,
            views: half::views(&config.classes),
        }
    }

    /// Returns `true` if no switch half is called for its packets.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    #[inline(always)]
    fn serialization_time(&self, bytes: u32) -> Span {
        self.rate.packet_time(bytes, self.byte_time)
    }

    /// The number of the class that a packet joins, and its place.
    #[inline(always)]
    fn class_of(&self, class: ClassId) -> (u8, usize) {
        let number = (class.index() as u8).min(self.last);
        (number, usize::from(self.places[usize::from(number) % self.places.len()]))
    }

    /// Begins every service up to and at `now`. Every packet that arrived before `now` must have
    /// joined. At each departure the port chooses among packets that arrived earlier, not among
    /// those of the same instant.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Time) {
        while self.free_at <= now {
            self.end_service();
            if self.waiting == 0 {
                return;
            }
            self.begin_service();
        }
    }

    /// The packet in service has left.
    #[inline(always)]
    fn end_service(&mut self) {
        let InService { bytes, place } = self.in_service;
        self.queue_bytes -= u64::from(bytes);
        self.in_service.bytes = 0;
        self.classes[usize::from(place)].bytes -= u64::from(bytes);
    }

    /// The first packet of the first class in which any waits is served from when the one before left.
    #[inline(always)]
    fn begin_service(&mut self) {
        let place = self.waiting.trailing_zeros() as u8;
        let queue = &mut self.classes[usize::from(place)].queue;
        let Some(&Waiting { packet, bytes }) = queue.front() else {
            unreachable!("a bit is set while packets of the class wait")
        };
        queue.discard(1);
        if queue.is_empty() {
            self.waiting &= self.waiting - 1;
        }
        let departs = self.free_at + self.serialization_time(bytes);
        self.free_at = departs;
        self.in_service = InService { bytes, place };
        let departs_ps = u128::from(departs.as_ps());
        self.packet_time = self.packet_time.wrapping_add(departs_ps);
        self.byte_time_sum = self.byte_time_sum.wrapping_add(departs_ps * u128::from(bytes));
        self.link.push_behind(departs, packet, bytes);
    }

    pub(crate) fn offer<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        fields: &mut Fields,
        signals: &mut Vec<(PacketRef, Signal)>,
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        let (bytes, class) = (fields.wire_bytes, fields.class);
        if self.plain {
            return self.offer_plain(now, packet, (bytes, class), schedule);
        }
        let place = self.admit(now, bytes, class)?;
        self.show(now, packet, fields, signals)?;
        self.accept(now, packet, (bytes, place), schedule);
        Ok(())
    }

    /// Offers a packet like [`StrictPort::offer`], for a plain port, given its wire bytes and
    /// class.
    #[inline]
    pub(crate) fn offer_plain<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        (bytes, class): (u32, ClassId),
        schedule: &mut S,
    ) -> Result<(), DropReason> {
        let place = self.admit(now, bytes, class)?;
        self.accept(now, packet, (bytes, place), schedule);
        Ok(())
    }

    /// Returns the index of the class that a packet joins, if there is room for it.
    #[inline(always)]
    fn admit(&mut self, now: Time, bytes: u32, class: ClassId) -> Result<usize, DropReason> {
        self.catch_up(now);
        let (_, place) = self.class_of(class);
        let joined = &mut self.classes[place];
        joined.offered.add(bytes);
        let full = self.queue_bytes + u64::from(bytes) > self.limit;
        if full || (self.limited && !joined.has_room(bytes)) {
            joined.dropped.add(bytes);
            return Err(super::half::on_refused(&mut joined.algorithm, bytes));
        }
        Ok(place)
    }

    /// An admitted packet joins its class, or is served at once.
    #[inline(always)]
    fn accept<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        (bytes, place): (u32, usize),
        schedule: &mut S,
    ) {
        self.queue_bytes += u64::from(bytes);
        self.max_queue_bytes = self.max_queue_bytes.max(self.queue_bytes);
        self.classes[place].bytes += u64::from(bytes);
        if self.free_at > now {
            return self.wait(now, Waiting { packet, bytes }, place, schedule);
        }
        let stay = self.serialization_time(bytes);
        let departs = now + stay;
        self.free_at = departs;
        self.in_service = InService { bytes, place: place as u8 };
        let stay = u128::from(stay.as_ps());
        self.packet_time = self.packet_time.wrapping_add(stay);
        self.byte_time_sum = self.byte_time_sum.wrapping_add(stay * u128::from(bytes));
        self.link.push(departs, packet, bytes, schedule);
    }

    #[inline(always)]
    fn wait<S: Schedule>(&mut self, now: Time, waiting: Waiting, place: usize, schedule: &mut S) {
        let now = u128::from(now.as_ps());
        self.packet_time = self.packet_time.wrapping_sub(now);
        self.byte_time_sum = self.byte_time_sum.wrapping_sub(now * u128::from(waiting.bytes));
        self.waiting |= 1 << place;
        self.classes[place].queue.push_back(waiting);
        if self.link.is_shared() {
            self.link.request_sort(schedule);
        }
    }

    #[inline(always)]
    pub(crate) fn pop_arrived<S: Schedule>(
        &mut self,
        now: Time,
        schedule: &mut S,
    ) -> (PacketRef, Node) {
        if self.waiting != 0 {
            self.catch_up(now);
        }
        let (entry, peer) = self.link.pop(now, schedule);
        self.link.forget_handed_over();
        (entry.packet, peer)
    }

    /// Returns the packet that arrives at the peer at `now`.
    pub(crate) fn arriving(&mut self, now: Time) -> Option<PacketRef> {
        if self.waiting != 0 {
            self.catch_up(now);
        }
        self.link.head()
    }

    /// Takes the packets that arrive before `limit` and returns when the next one does. All packets
    /// that reached the port before they departed must have been offered.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time, take: impl FnMut(InFlight)) -> Time {
        if self.waiting != 0 {
            self.catch_up(limit.saturating_sub(self.link.delay()));
        }
        self.link.pop_sorted_before(limit, take)
    }

    /// Ends the sorting of the shared link; returns when another packet enters it without any
    /// further event.
    pub(crate) fn end_hand_over(&mut self) -> Option<Time> {
        if self.waiting != 0 {
            return Some(self.free_at);
        }
        self.link.end_sort();
        None
    }

    /// Prefetches the data of the classes that packets need.
    #[inline]
    pub(crate) fn prefetch_classes(&self) {
        self.classes.iter().for_each(|class| prefetch_first(class, StrictClass::<W>::HOT_LINES));
    }

    /// Returns `true` if no event at this port affects another port: no switch half sends signals.
    pub(crate) fn is_independent(&self) -> bool {
        !self.classes.iter().any(|class| class.algorithm.signals())
    }
}
