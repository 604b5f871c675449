//! A port of several classes, or whose link can be stopped: it serves a packet whenever the link is
//! free.
//!
//! Departures of a port that nothing can stop follow from arrivals alone, and a packet enters the link when its service
//! begins. So the end of a service needs no event: the port catches up when it is next used, by a packet that joins, by one
//! that is taken from the link's ring or, if the simulator keeps the packets on links, at a time that the port asks for
//! ([`Schedule::serve_by`](crate::Schedule::serve_by)). That is never too late. While packets wait, the packet whose service
//! began last is on the link. That packet arrives at the peer no earlier than it departs, which is when the next service
//! begins. Ports of kind [`PortKind::Event`](crate::PortKind::Event) catch up at events: for
//! these, `EVENTS` is `true`.

use apus_cc::SwitchHalf;
use apus_units::Time;

use super::Port;
use super::class::Waiting;
use crate::event::{FabricEvent, Schedule};
use crate::network::Common;
use crate::packet::PacketRef;

/// The packet whose bits are being put on the link, until `free_at`.
#[derive(Clone, Copy)]
pub(super) struct InService {
    pub(super) packet: PacketRef,
    /// 0: none.
    pub(super) bytes: u32,
    pub(super) class: u8,
    /// The packet was sent in that class. Only of ports of kind [`PortKind::Event`](crate::PortKind::Event).
    pub(super) own: bool,
    /// The link failed during the service: the packet is lost when its last bit would leave.
    pub(super) lost: bool,
}

impl Default for InService {
    /// Returns the state without a packet.
    fn default() -> Self {
        Self { packet: PacketRef::NONE, bytes: 0, class: 0, own: false, lost: false }
    }
}

/// The decision about the next service.
enum Choice {
    /// Serve this packet of this class.
    Serve(usize, Waiting),
    /// The rate-limited class has a packet, but tokens for it only from then on.
    NotBefore(Time),
    /// No class that may send has a packet.
    Nothing,
}

impl<W: SwitchHalf> Port<W> {
    /// Ends and begins every service up to and at `now`. Every packet that arrived before `now` must
    /// have joined. At each departure the port chooses among packets that arrived earlier, not
    /// among those of the same instant.
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

    /// The last bit of the packet in service has left.
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

    /// Chooses the next packet and puts it into service: the point at which a switch half that acts
    /// on dequeue sees it.
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
                // A pending wake-up is never too late: the head of the limited class, and so the
                // time it is ready, stays until it is served (or lost with the link, after which
                // a smaller head may wait for the tokens of the lost one), or until the rate
                // changes, which requests another wake-up.
                if !self.wake_armed {
                    self.wake_armed = true;
                    schedule.at(FabricEvent::Wake(self.id()), ready);
                }
            }
            Choice::Nothing => {}
        }
    }

    /// Takes the packet to be served from `now` on.
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

    /// Takes the packet to be served next at a port that nothing can stop: of the first level in which any waits.
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
        // A class is numbered in 8 bits.
        self.in_service = InService { packet, bytes, class: class as u8, own, lost: false };
        if self.certain {
            self.put_on_link(departs, packet, bytes, schedule);
        }
    }

    /// A packet joins the queue of its class.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, class: usize, waiting: Waiting) {
        let joined = &mut self.classes[class];
        joined.bytes += u64::from(waiting.bytes);
        joined.queue.push_back(waiting);
        self.waiting |= 1 << joined.level;
    }

    /// Takes a packet that waits out of its queue, of any class, with the number of its class.
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

    /// The `Service` event.
    pub(crate) fn on_service<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.service_armed = false;
        self.serve_until::<true, P, S>(now, common, schedule);
        // The packet this event was for may have been finished by an earlier call of this instant;
        // the event then serves to announce the one that followed it.
        self.announce(schedule);
    }

    /// Requests the event at which the packet in service departs, if its time matters.
    #[inline]
    pub(super) fn announce<S: Schedule>(&mut self, schedule: &mut S) {
        let matters = !self.certain || self.waiting != 0;
        if self.in_service.bytes != 0 && !self.service_armed && matters {
            self.service_armed = true;
            schedule.at(FabricEvent::Service(self.id()), self.free_at);
        }
    }

    /// The `Wake` event: the class it was for may be served, or another is, or all are paused.
    pub(crate) fn on_wake<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.wake_armed = false;
        self.resume(now, common, schedule);
    }

    /// Catches up and begins a service if there is none.
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
