//! An egress port: its memory, its classes, and the link behind it.
//!
//! There is one type of port. Its kind ([`PortKind`]) says how the port finds the departures of
//! packets: when a packet joins ([`fifo`]), or when the port serves a class ([`service`]). All
//! other code is shared: admission, switch halves, counters and the link.

mod admission;
mod class;
mod control;
mod facts;
mod fifo;
mod half;
mod link;
mod service;
mod shared;
mod trimming;

use alloc::boxed::Box;

use apus_cc::{ClassView, SwitchHalf};
use apus_units::{Bytes, PortId, Rate, Span, SwitchId, Time, prefetch_first};

use crate::config::{Buffer, PortConfig, PortKind};
use crate::counters::Tally;
use crate::event::Schedule;
use crate::network::Common;
use crate::packet::PacketRef;

use class::{Class, Level};
use control::Stops;
use service::InService;
use trimming::Trimmer;

pub use link::InFlight;
pub(crate) use link::Link;
pub(crate) use shared::SharedBuffer;

/// An egress port. Fields that every packet needs come first.
#[repr(C, align(64))]
pub(crate) struct Port<W> {
    link: Link,
    /// End of the last service that has begun. At a FIFO port, the service of every packet counts
    /// as begun.
    free_at: Time,
    /// Limit of the wait for the link below which a FIFO port without switch half is calm. A packet
    /// that would wait for less than this, and is not larger than the largest so far, neither meets
    /// the limit nor makes the queue longer than it was before. Zero: never calm.
    calm: Span,
    /// Bytes in the port, a packet in service included, as of the time up to which the port has
    /// been updated.
    queue_bytes: u64,
    /// Maximum number of bytes in the port.
    limit: u64,
    /// Picoseconds per byte if that is a whole number, as for most rates in use; otherwise 0.
    /// Avoids the division. (Storing the time of the last size also avoids it, but data and
    /// acknowledgements alternate, and the processor mispredicts 0.4 branches per hop.)
    byte_time: u64,
    /// One bit per priority level, set if the level has queued packets.
    waiting: u64,
    /// Size of the largest packet so far, in bytes; only at FIFO ports.
    largest: u32,
    /// Number of oldest packets in the ring that are known to have left the port. Except at a FIFO
    /// port, these are all packets. At a FIFO port the number lags behind the clock and passes
    /// every packet once.
    departed: u32,
    kind: PortKind,
    /// Whether no switch half sees the packets of the port.
    plain: bool,
    /// Whether this is a FIFO port without switch half.
    simple: bool,
    /// Whether any class has its own limit.
    limited: bool,
    /// Whether a packet enters the link when its service begins: no event can stop or delay the
    /// packet, and no other port counts its bytes.
    certain: bool,
    /// Whether packets have a short path: the port is served by events, but has no switch halves,
    /// and nothing can stop it.
    unhindered: bool,
    /// Whether any level has a scheduler.
    has_schedulers: bool,
    /// Whether a port whose packets fly has requested service.
    asked: bool,
    /// Whether a `Service` event is pending.
    service_armed: bool,
    /// Whether a `Wake` event is pending.
    wake_armed: bool,
    tally: Tally,
    in_service: InService,
    rate: Rate,
    /// The classes, by number.
    classes: Box<[Class<W>]>,
    /// The priority levels, in the order of service.
    levels: Box<[Level]>,
    /// A view of each class, by number, for switch halves. The bytes are set before each use.
    views: Box<[ClassView]>,
    /// State that may stop or delay packets; only at ports of kind [`PortKind::Event`].
    stops: Option<Box<Stops>>,
    /// State of trimming; `None` if packets are dropped instead.
    trimmer: Option<Box<Trimmer>>,
}

impl<W: SwitchHalf> Port<W> {
    /// Number of cache lines that a packet needs, in addition to its class.
    const HOT_LINES: usize = 3;

    /// Returns a port of `kind` with `link` behind it; `owner` is the switch that it belongs to, if
    /// any.
    ///
    /// # Panics
    /// If the buffer is shared and the port belongs to a host, which has no memory to share, or if
    /// the configuration needs another kind.
    pub(crate) fn new(
        config: &PortConfig<W>,
        kind: PortKind,
        link: Link,
        owner: Option<SwitchId>,
    ) -> Self {
        assert!(
            kind >= config.kind(),
            "the configuration needs a port of kind {:?}",
            config.kind()
        );
        let levels = Level::all(&config.classes, config.scheduler);
        let classes: Box<[Class<W>]> =
            config.classes.iter().map(|class| Class::new(class, kind, &levels)).collect();
        let view = |class: &crate::ClassConfig<W>| ClassView {
            bytes: Bytes::ZERO,
            weight: class.weight,
            priority: class.priority,
        };
        let stops = (kind == PortKind::Event).then(|| Box::new(Stops::new(config, owner)));
        let plain = classes.iter().all(|class| class.algorithm.is_plain());
        let limit = match (config.buffer, kind) {
            (Buffer::Own(limit), PortKind::Fifo) => limit.min(config.classes[0].limit).get(),
            (Buffer::Own(limit), _) => limit.get(),
            (Buffer::Shared { .. }, _) => u64::MAX,
        };
        let certain = stops.as_ref().is_none_or(|stops| stops.are_none());
        let limited = kind != PortKind::Fifo && classes.iter().any(Class::is_limited);
        Self {
            link,
            free_at: Time::ZERO,
            calm: Span::ZERO,
            queue_bytes: 0,
            limit,
            byte_time: config.rate.whole_byte_time(),
            waiting: 0,
            largest: 0,
            departed: 0,
            kind,
            plain,
            simple: plain && kind == PortKind::Fifo,
            limited,
            unhindered: kind == PortKind::Event && plain && certain,
            certain,
            has_schedulers: levels.iter().any(Level::has_scheduler),
            asked: false,
            service_armed: false,
            wake_armed: false,
            tally: Tally::default(),
            in_service: InService::default(),
            rate: config.rate,
            classes,
            levels,
            views: config.classes.iter().map(view).collect(),
            stops,
            trimmer: Trimmer::of(&config.classes).map(Box::new),
        }
    }

    /// Prefetches the data of the port that a packet needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_first(self, Self::HOT_LINES);
    }

    /// Returns `true` if [`Port::accept_lazily`] may be used.
    #[inline(always)]
    pub(crate) fn is_unhindered_lazy(&self) -> bool {
        self.kind == PortKind::Lazy && self.plain && !self.limited
    }

    #[inline(always)]
    fn serialization_time(&self, bytes: u32) -> Span {
        self.rate.packet_time(bytes, self.byte_time)
    }

    /// Updates the port to `now`. Every packet that arrived before `now` must have joined.
    #[inline]
    pub(crate) fn catch_up<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        match self.kind {
            PortKind::Fifo => self.settle(now),
            PortKind::Lazy => self.serve_until::<false, P, S>(now, common, schedule),
            PortKind::Event => self.serve_until::<true, P, S>(now, common, schedule),
        }
    }

    /// Updates the port to `now` if it has queued packets that no event puts on the link.
    #[inline(always)]
    fn catch_up_link<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        if self.waiting != 0 {
            self.serve_lazily(now, common, schedule);
        }
    }

    /// Removes the packet that arrives at the peer now. The caller must request the event of the
    /// [next arrival](Link::next_arrival).
    #[inline(always)]
    pub(crate) fn pop_arrived<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) -> InFlight {
        self.catch_up_link(now, common, schedule);
        let entry = self.link.pop(now);
        if !self.link.flies() {
            let lags = self.departed == 0;
            self.queue_bytes -= u64::from(entry.bytes) * u64::from(lags);
            self.departed -= u32::from(!lags);
        }
        entry
    }

    /// Puts all packets on the link that arrive before `limit`, at a port that has no events for
    /// this. All packets that reached the port before these departures must have been offered.
    /// Returns the time at which the next packet enters the link without any further event, if one
    /// does.
    pub(crate) fn serve_link<P, S: Schedule>(
        &mut self,
        limit: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) -> Option<Time> {
        self.serve_lazily(limit.saturating_sub(self.link.delay()), common, schedule);
        self.asked = false;
        self.ask_to_be_served(schedule);
        (self.waiting != 0).then_some(self.free_at)
    }

    /// Updates the port to `now` if it has no events for this.
    pub(crate) fn serve_lazily<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        if self.kind == PortKind::Lazy {
            self.serve_until::<false, P, S>(now, common, schedule);
        }
    }

    /// Requests service before the packet that follows the one in service can arrive, if another
    /// packet is queued.
    #[inline(always)]
    fn ask_to_be_served<S: Schedule>(&mut self, schedule: &mut S) {
        if self.link.flies() && self.waiting != 0 && !core::mem::replace(&mut self.asked, true) {
            let time = self.free_at + self.link.delay();
            schedule.serve_by(self.id(), time, self.link.leads());
        }
    }

    /// See [`Link::set_all_fly`].
    pub(crate) fn fly_packets(&mut self, flies: bool) {
        self.link.set_all_fly(flies);
    }

    /// Returns the packet that arrives at the peer at `now`.
    pub(crate) fn arriving<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) -> Option<PacketRef> {
        self.catch_up_link(now, common, schedule);
        self.link.head()
    }

    /// Adds a packet that departed earlier and that another part handed over, or that the simulator
    /// returns.
    pub(crate) fn receive<S: Schedule>(
        &mut self,
        arrives: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        self.departed += u32::from(self.link.receive(arrives, packet, bytes, schedule));
    }

    pub(crate) fn set_shared(&mut self) {
        self.link.set_shared();
    }

    /// Puts a packet of this many bytes on the link at its departure.
    #[inline(always)]
    fn put_on_link<S: Schedule>(
        &mut self,
        departs: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        self.departed += u32::from(self.link.push(departs, packet, (bytes, false), schedule));
    }

    /// Returns the link behind the port.
    #[inline]
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the id of the port.
    fn id(&self) -> PortId {
        self.link.port()
    }
}
