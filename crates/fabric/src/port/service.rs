//! Service of a port that has several classes or whose link can be stopped: the port chooses a
//! packet whenever the link is free.
//!
//! Departures of a port that nothing can stop follow from arrivals alone, and a packet enters the
//! link when its service begins. The end of a service therefore needs no event: the port is updated
//! when it is next used. That is when a packet joins, when a packet is taken from the link's ring
//! or, if the simulator keeps the packets on links, at a time that the port requests
//! ([`Schedule::serve_by`](crate::Schedule::serve_by)).
//!
//! This is never too late. While packets are queued, the packet whose service began last is on the
//! link. It arrives at the peer no earlier than it departs, which is when the next service begins.
//!
//! Ports of kind [`PortKind::Event`](crate::PortKind::Event) are updated by events; for them
//! `EVENTS` is `true`.

use apus_cc::SwitchHalf;
use apus_units::Time;

use super::Port;
use super::class::Waiting;
use crate::event::{FabricEvent, Schedule};
use crate::network::Common;
use crate::packet::PacketRef;

/// The packet that is being put on the link until `free_at`.
#[derive(Clone, Copy)]
pub(super) struct InService {
    pub(super) packet: PacketRef,
    /// Size in bytes; 0 if no packet is in service.
    pub(super) bytes: u32,
    pub(super) class: u8,
    /// Whether the packet was sent in that class; only at ports of kind
    /// [`PortKind::Event`](crate::PortKind::Event).
    pub(super) own: bool,
    /// Whether the link failed during the service: the packet is lost when its last bit would
    /// leave.
    pub(super) lost: bool,
}

impl Default for InService {
    /// Returns the state without a packet.
    fn default() -> Self {
        Self { packet: PacketRef::NONE, bytes: 0, class: 0, own: false, lost: false }
    }
}

/// The choice of the next service.
enum Choice {
    /// Serve this packet of this class.
    Serve(usize, Waiting),
    /// The rate-limited class has a packet, but tokens for it only from this time on.
    NotBefore(Time),
    /// No class that may send has a queued packet.
    Nothing,
}

impl<W: SwitchHalf> Port<W> {
    /// Ends and begins every service up to and including `now`. Every packet that arrived before
    /// `now` must have joined. At each departure the port chooses among packets that arrived
    /// earlier, not among those that arrive at the same time.
    #[inline(always)]
    pub(super) fn serve_until<const EVENTS: bool, P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        while self.in_service.bytes != 0 && self.free_at <= now {
            debug_assert!(
                self.free_at == now || (self.certain && self.waiting == 0) || !EVENTS,
                "{} missed its service event",
                self.id()
            );
            self.end_service::<EVENTS, P, S>(common, schedule);
            if self.waiting == 0 {
                return;
            }
            self.begin_service::<EVENTS, P, S>(self.free_at, common, schedule);
        }
    }

    /// Ends a service: the last bit of the packet has left.
    #[inline(always)]
    fn end_service<const EVENTS: bool, P, S: Schedule>(
        &mut self,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        let served = self.in_service;
        self.in_service.bytes = 0;
        self.queue_bytes -= u64::from(served.bytes);
        let class = &mut self.classes[usize::from(served.class)];
        class.bytes -= u64::from(served.bytes);
        if EVENTS {
            class.own_bytes -= u64::from(served.bytes) * u64::from(served.own);
            if !self.certain {
                self.depart(&served, common, schedule);
            }
        }
    }

    /// Chooses the next packet and puts it into service. At this point a switch half that acts on
    /// dequeue sees the packet.
    #[inline(always)]
    pub(super) fn begin_service<const EVENTS: bool, P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        match self.choose::<EVENTS>(now) {
            Choice::Serve(class, served) => {
                let mut own = false;
                if EVENTS {
                    if self.classes[class].algorithm.acts_on_dequeue() {
                        self.show_leaving(now, class, served, common);
                    }
                    own = common.pool.fields(served.packet).class.index() == class;
                }
                self.serve(now, class, served, own, schedule);
                self.tally.leaves(self.free_at, served.bytes);
                if EVENTS {
                    self.announce(schedule);
                }
            }
            Choice::NotBefore(ready) => {
                // A pending wake-up is never too late. The head of the limited class, and with it
                // the time at which the head is ready, does not change until it is served or the
                // rate changes, which requests another wake-up. If the head is lost with the link,
                // a smaller head may wait for the tokens of the lost one.
                if !self.wake_armed {
                    self.wake_armed = true;
                    schedule.at(FabricEvent::Wake(self.id()), ready);
                }
            }
            Choice::Nothing => {}
        }
    }

    /// Chooses and removes the packet to be served from `now` on.
    #[inline(always)]
    fn choose<const EVENTS: bool>(&mut self, now: Time) -> Choice {
        if !EVENTS {
            return self.take_first();
        }
        let mut not_before = None;
        let mut levels = self.waiting;
        while levels != 0 {
            let index = levels.trailing_zeros() as usize;
            levels &= levels - 1;
            let level = &mut self.levels[index];
            let head = |class: usize| self.classes[class].head(now, &mut not_before);
            if let Some(class) = level.choose(head) {
                let served = self.classes[class].take(now);
                if level.is_empty(&self.classes) {
                    self.waiting &= !(1 << index);
                }
                return Choice::Serve(class, served);
            }
        }
        not_before.map_or(Choice::Nothing, Choice::NotBefore)
    }

    /// Removes the packet to be served next at a port that nothing can stop: from the first level
    /// with queued packets.
    #[inline(always)]
    fn take_first(&mut self) -> Choice {
        let Some(level) = self.levels.get_mut(self.waiting.trailing_zeros() as usize) else {
            return Choice::Nothing;
        };
        let class = match level.has_scheduler() {
            false => level.only_class(),
            true => {
                let head = |class: usize| self.classes[class].first();
                let Some(class) = level.choose(head) else { return Choice::Nothing };
                class
            }
        };
        let queue = &mut self.classes[class].queue;
        let Some(&served) = queue.front() else { return Choice::Nothing };
        queue.discard(1);
        if queue.is_empty() && level.is_empty(&self.classes) {
            self.waiting &= self.waiting - 1;
        }
        Choice::Serve(class, served)
    }

    /// Serves a packet of a class from `now` on.
    #[inline(always)]
    pub(super) fn serve<S: Schedule>(
        &mut self,
        now: Time,
        class: usize,
        Waiting { packet, bytes }: Waiting,
        own: bool,
        schedule: &mut S,
    ) {
        let departs = now + self.serialization_time(bytes);
        self.free_at = departs;
        // Class numbers have 8 bits.
        self.in_service = InService { packet, bytes, class: class as u8, own, lost: false };
        if self.certain {
            self.put_on_link(departs, packet, bytes, schedule);
        }
    }

    /// Adds a packet to the queue of its class.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, class: usize, waiting: Waiting) {
        let joined = &mut self.classes[class];
        joined.bytes += u64::from(waiting.bytes);
        joined.queue.push_back(waiting);
        self.waiting |= 1 << joined.level;
    }

    /// Removes a queued packet of any class, and returns it with the number of its class.
    pub(super) fn take_waiting(&mut self) -> Option<(usize, Waiting)> {
        let class = self.classes.iter().position(|class| !class.queue.is_empty())?;
        let from = &mut self.classes[class];
        let waiting = from.queue.pop_front()?;
        from.bytes -= u64::from(waiting.bytes);
        self.queue_bytes -= u64::from(waiting.bytes);
        let level = from.level;
        if self.levels[usize::from(level)].is_empty(&self.classes) {
            self.waiting &= !(1 << level);
        }
        Some((class, waiting))
    }

    /// Handles the `Service` event.
    pub(crate) fn on_service<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.service_armed = false;
        self.serve_until::<true, P, S>(now, common, schedule);
        // An earlier call at the same time may have finished the packet for which this event was
        // requested; the event then serves to announce the next packet.
        self.announce(schedule);
    }

    /// Requests the event at which the packet in service departs, if the event is needed.
    #[inline]
    pub(super) fn announce<S: Schedule>(&mut self, schedule: &mut S) {
        let matters = !self.certain || self.waiting != 0;
        if self.in_service.bytes != 0 && !self.service_armed && matters {
            self.service_armed = true;
            schedule.at(FabricEvent::Service(self.id()), self.free_at);
        }
    }

    /// Handles the `Wake` event: the class that requested it may be served; but another class may
    /// be in service, or all may be paused.
    pub(crate) fn on_wake<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.wake_armed = false;
        self.resume(now, common, schedule);
    }

    /// Updates the port and begins a service if no packet is in service.
    pub(super) fn resume<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.serve_until::<true, P, S>(now, common, schedule);
        if self.in_service.bytes == 0 {
            self.begin_service::<true, P, S>(now, common, schedule);
        }
    }
}
