//! A port of several classes that chooses a packet whenever the link is free.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use apus_cc::{Ecn, PortView, Signal, SwitchHalf, Verdict};
use apus_units::{Bytes, ClassId, PortId, Rate, Span, SwitchId, Time};

use super::Env;
use super::link::{InFlight, Link};
use super::queue::{Choice, Classes, Parts, Waiting};
use crate::config::{Buffer, PortConfig};
use crate::counters::{ClassCounters, Count, DropReason, PortCounters, Tally};
use crate::event::{FabricEvent, Schedule};
use crate::impairment::{Fate, Impairment};
use crate::network::mail::leave;
use crate::packet::PacketRef;
use crate::topology::Node;

/// The packet whose bits are being put on the link.
#[derive(Clone, Copy)]
struct InService {
    packet: PacketRef,
    bytes: u32,
    class: usize,
    /// It was sent in that class.
    own: bool,
    departs: Time,
    /// The link failed meanwhile: the packet is lost when its last bit would leave.
    lost: bool,
}

/// Where packets are kept.
enum Memory {
    Own { limit: u64 },
    Shared { alpha: f64, switch: SwitchId },
}

/// The general port. See [`crate::FabricEvent`] for why no event is ever cancelled.
pub(crate) struct ClassPort {
    pub(crate) link: Link,
    port: PortId,
    rate: Rate,
    memory: Memory,
    /// Nothing can stop a packet in service or delay it, and no other port counts its bytes: it
    /// enters the link when its service begins, and a `Service` event is asked for only if another
    /// packet waits. What follows from its departure is noted by the next call.
    certain: bool,
    classes: Classes,
    in_service: Option<InService>,
    /// A `Service` event is pending.
    service_armed: bool,
    /// A `Wake` event is pending.
    wake_armed: bool,
    up: bool,
    impairment: Option<Impairment>,
    /// Packets that have departed and are held back, with the time at which each enters the link,
    /// which never decreases. A `Held` event is pending if and only if there are any.
    held_back: VecDeque<(Time, PacketRef, u32)>,
    queued: Count,
    /// The time integrals of the tally reach to here.
    integrated_to: Time,
    pub(crate) tally: Tally,
}

impl ClassPort {
    /// # Panics
    /// If the buffer is shared and the port belongs to a host, which has no memory to share.
    pub(crate) fn new(
        config: &PortConfig,
        port: PortId,
        link: Link,
        owner: Option<SwitchId>,
    ) -> Self {
        let memory = match config.buffer {
            Buffer::Own(limit) => Memory::Own { limit: limit.get() },
            Buffer::Shared { alpha } => {
                Memory::Shared { alpha, switch: owner.expect("a switch's memory is shared") }
            }
        };
        Self {
            link,
            port,
            rate: config.rate,
            certain: matches!(memory, Memory::Own { .. }) && !config.variable && !config.pausable,
            memory,
            classes: Classes::new(&config.classes),
            in_service: None,
            service_armed: false,
            wake_armed: false,
            up: true,
            impairment: None,
            held_back: VecDeque::new(),
            queued: Count::default(),
            integrated_to: Time::ZERO,
            tally: Tally::default(),
        }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.classes.len()
    }

    pub(crate) fn offer<P, S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        env: &mut Env<'_, P, S>,
    ) -> Result<(), DropReason> {
        // A departure at exactly now counts as gone, whichever event the engine hands in first.
        self.finish_due(now, env);
        let fields = env.pool.fields_mut(packet);
        let bytes = fields.wire_bytes;
        self.tally.offered.add(bytes);
        let index = fields.class.index().min(self.class_count() - 1);
        let own = fields.class.index() == index;
        self.classes.classes[index].offered.add(bytes);
        let verdict = self.admit(now, index, (packet, fields), env.shared, env.signals);
        if let Err(reason) = verdict {
            self.tally.dropped.add(bytes);
            self.classes.classes[index].dropped.add(bytes);
            return Err(reason);
        }
        self.integrate(now);
        self.queued.add(bytes);
        self.tally.max_queue_bytes = self.tally.max_queue_bytes.max(self.queued.bytes);
        if let Memory::Shared { switch, .. } = self.memory {
            env.shared[switch.index()].reserve(u64::from(bytes));
        }
        let was_empty = self.classes.bytes(index) == 0;
        self.classes.push(index, Waiting { packet, bytes });
        let class = &mut self.classes.classes[index];
        if was_empty {
            class.foreign_bytes = 0;
        }
        if own {
            class.own_bytes += u64::from(bytes);
            class.max_own_bytes = class.max_own_bytes.max(class.own_bytes);
        } else {
            class.foreign_bytes += u64::from(bytes);
            class.max_foreign_bytes = class.max_foreign_bytes.max(class.foreign_bytes);
        }
        if self.in_service.is_none() {
            self.start_next(now, env);
        } else {
            self.announce(env);
        }
        Ok(())
    }

    /// Whether the packet may join class `index`; its switch half sees it if there is room.
    fn admit(
        &mut self,
        now: Time,
        index: usize,
        (packet, fields): (PacketRef, &mut crate::Fields),
        shared: &[super::SharedBuffer],
        signals: &mut Vec<(PacketRef, Signal)>,
    ) -> Result<(), DropReason> {
        if !self.up {
            return Err(DropReason::LinkDown);
        }
        let bytes = u64::from(fields.wire_bytes);
        let class_bytes = self.classes.bytes(index);
        let room = match self.memory {
            Memory::Own { limit } => self.queued.bytes + bytes <= limit,
            Memory::Shared { alpha, switch } => {
                shared[switch.index()].admits(alpha, class_bytes, bytes)
            }
        };
        let class = &self.classes.classes[index];
        let full = class.waiting_packets() >= class.limit_packets;
        if !room || full || class_bytes + bytes > class.limit {
            return Err(DropReason::Buffer);
        }
        if self.classes.classes[index].algorithm.is_plain() {
            return Ok(());
        }
        let serving = self.in_service.filter(|served| served.class == index);
        let waiting = class_bytes - serving.map_or(0, |served| u64::from(served.bytes));
        let offered = self.tally.offered.bytes - bytes;
        let sent = offered - self.tally.dropped.bytes - self.queued.bytes;
        let Parts { classes, views } = self.classes.parts();
        let view = PortView {
            now,
            link_rate: self.rate,
            // At most 256 classes (`PortConfig::check`).
            class: ClassId::new(index as u8),
            class_bytes: Bytes::new(class_bytes),
            queue_bytes: Bytes::new(self.queued.bytes),
            class_waiting: Bytes::new(waiting),
            sent: Bytes::new(sent),
            classes: views,
        };
        let before = fields.congestion.ecn;
        let algorithm = &mut classes[index].algorithm;
        match algorithm.on_enqueue(&mut fields.congestion, Bytes::new(bytes), &view) {
            Verdict::Drop => return Err(DropReason::SwitchHalf),
            Verdict::Signal(signal) => signals.push((packet, signal)),
            Verdict::Forward => {}
        }
        if fields.congestion.ecn == Ecn::Congested && before != Ecn::Congested {
            self.tally.marked += 1;
        }
        Ok(())
    }

    /// Shows the switch half a packet that is about to leave.
    fn show_leaving<P, S>(
        &mut self,
        now: Time,
        index: usize,
        waiting: Waiting,
        env: &mut Env<'_, P, S>,
    ) {
        let bytes = Bytes::new(u64::from(waiting.bytes));
        let class_bytes = Bytes::new(self.classes.bytes(index)) - bytes;
        let sent = self.tally.offered.bytes - self.tally.dropped.bytes - self.queued.bytes;
        let (fields, telemetry) = env.pool.for_switch(waiting.packet);
        let Parts { classes, views } = self.classes.parts();
        let view = PortView {
            now,
            link_rate: self.rate,
            class: ClassId::new(index as u8),
            class_bytes,
            queue_bytes: Bytes::new(self.queued.bytes) - bytes,
            class_waiting: class_bytes,
            sent: Bytes::new(sent),
            classes: views,
        };
        let before = fields.congestion.ecn;
        let algorithm = &mut classes[index].algorithm;
        let verdict = algorithm.on_dequeue(&mut fields.congestion, telemetry, bytes, &view);
        if let Verdict::Signal(signal) = verdict {
            env.signals.push((waiting.packet, signal));
        }
        if fields.congestion.ecn == Ecn::Congested && before != Ecn::Congested {
            self.tally.marked += 1;
        }
    }

    /// The `Service` event.
    pub(crate) fn on_service<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        self.service_armed = false;
        self.finish_due(now, env);
        // The packet this event was for may have been finished by an earlier call of this instant;
        // the event then serves to announce the one that followed it.
        self.announce(env);
    }

    /// Asks for the event at which the packet in service departs, if anything depends on it.
    #[inline]
    fn announce<P, S: Schedule>(&mut self, env: &mut Env<'_, P, S>) {
        if let Some(served) = self.in_service
            && !self.service_armed
            && !(self.certain && self.queued.packets == 1)
        {
            self.service_armed = true;
            env.schedule.at(FabricEvent::Service(self.port), served.departs);
        }
    }

    /// The `Wake` event: the class it was for may be served, or another is, or all are paused.
    pub(crate) fn on_wake<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        self.wake_armed = false;
        self.finish_due(now, env);
        if self.in_service.is_none() {
            self.start_next(now, env);
        }
    }

    /// Pauses a class or lets it go on. A packet in service finishes.
    pub(crate) fn set_paused<P, S: Schedule>(
        &mut self,
        now: Time,
        class: ClassId,
        paused: bool,
        env: &mut Env<'_, P, S>,
    ) {
        self.finish_due(now, env);
        self.classes.classes[class.index()].paused = paused;
        if self.in_service.is_none() {
            self.start_next(now, env);
        }
    }

    /// Changes the rate from the next packet on.
    pub(crate) fn set_rate<P, S: Schedule>(
        &mut self,
        now: Time,
        rate: Rate,
        env: &mut Env<'_, P, S>,
    ) {
        self.finish_due(now, env);
        self.rate = rate;
    }

    /// Fails the link or repairs it. What waits or is in service when it fails is lost, and so is
    /// what comes while it is down; what has departed arrives.
    pub(crate) fn set_up<P, S: Schedule>(&mut self, now: Time, up: bool, env: &mut Env<'_, P, S>) {
        self.finish_due(now, env);
        self.up = up;
        if up {
            return;
        }
        if let Some(served) = &mut self.in_service {
            served.lost = true;
        }
        self.integrate(now);
        while let Some((class, waiting)) = self.classes.pop_any() {
            self.leave_class(class, waiting, env);
            self.leave(waiting.bytes, env);
            self.lose(class, waiting, DropReason::LinkDown, env);
        }
    }

    /// Changes what the link does to packets that depart from here on.
    pub(crate) fn set_impairment<P, S: Schedule>(
        &mut self,
        now: Time,
        impairment: Option<Impairment>,
        env: &mut Env<'_, P, S>,
    ) {
        self.finish_due(now, env);
        self.impairment = impairment;
    }

    /// Finishes the packet in service if its last bit has left, and starts the next.
    fn finish_due<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        let Some(served) = self.in_service.filter(|served| served.departs <= now) else {
            return;
        };
        debug_assert!(
            served.departs == now || (self.certain && self.queued.packets == 1),
            "{} missed its service event",
            self.port
        );
        self.in_service = None;
        self.integrate(served.departs);
        self.classes.leave(served.class, served.bytes);
        if served.own {
            self.classes.classes[served.class].own_bytes -= u64::from(served.bytes);
        }
        self.leave(served.bytes, env);
        // Ports that can be paused are never certain, so the packet is still here.
        if !self.certain
            && let Some(pfc) = env.pfc
        {
            leave(pfc, env.pool.fields(served.packet), env.routes);
        }
        let fate = match &mut self.impairment {
            _ if self.certain => None,
            _ if served.lost => Some(Fate::Drop(DropReason::LinkDown)),
            Some(impairment) => impairment.draw(),
            None => None,
        };
        match fate {
            Some(Fate::Drop(reason)) => {
                let lost = Waiting { packet: served.packet, bytes: served.bytes };
                self.lose(served.class, lost, reason, env);
            }
            Some(Fate::Hold(delay)) => self.hold_back(&served, delay, env),
            None if self.certain => {} // in the link already
            None => self.link.push(served.departs, served.packet, served.bytes, env.schedule),
        }
        if self.queued.packets == 0 {
            self.classes.end_busy_period();
        } else {
            self.start_next(now, env);
        }
    }

    /// Keeps a packet that has departed from the link for `delay`.
    fn hold_back<P, S: Schedule>(
        &mut self,
        served: &InService,
        delay: Span,
        env: &mut Env<'_, P, S>,
    ) {
        let last = self.held_back.back().map_or(Time::ZERO, |held| held.0);
        let enters = served.departs.saturating_add(delay).max(last);
        if self.held_back.is_empty() {
            env.schedule.at(FabricEvent::Held(self.port), enters);
        }
        self.held_back.push_back((enters, served.packet, served.bytes));
    }

    /// The oldest packet held back enters the link, behind those that overtook it.
    pub(crate) fn on_held<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        if let Some((_, packet, bytes)) = self.held_back.pop_front() {
            self.link.push(now, packet, bytes, env.schedule);
        }
        if let Some(&(enters, ..)) = self.held_back.front() {
            env.schedule.at(FabricEvent::Held(self.port), enters);
        }
    }

    /// Chooses the next packet and puts it into service: the point at which a switch half that acts
    /// on dequeue sees it.
    fn start_next<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        match self.classes.choose(now) {
            Choice::Serve(class, Waiting { packet, bytes }) => {
                if self.classes.classes[class].algorithm.acts_on_dequeue() {
                    self.show_leaving(now, class, Waiting { packet, bytes }, env);
                }
                let departs = now + self.rate.serialization_time(Bytes::new(u64::from(bytes)));
                let own = env.pool.fields(packet).class.index() == class;
                let lost = false;
                self.in_service = Some(InService { packet, bytes, class, own, departs, lost });
                if self.certain {
                    self.link.push(departs, packet, bytes, env.schedule);
                }
                self.announce(env);
            }
            Choice::NotBefore(ready) => {
                // A pending wake-up is never too late: the head of the limited class, and so the
                // time it is ready, stays until it is served (or lost with the link, after which
                // a smaller head may wait for the tokens of the lost one).
                if !self.wake_armed {
                    self.wake_armed = true;
                    env.schedule.at(FabricEvent::Wake(self.port), ready);
                }
            }
            Choice::Nothing => {}
        }
    }

    /// A packet no longer counts among those sent in its class, nor among those in the switch.
    fn leave_class<P, S>(&mut self, class: usize, gone: Waiting, env: &mut Env<'_, P, S>) {
        let fields = env.pool.fields(gone.packet);
        if let Some(pfc) = env.pfc {
            leave(pfc, fields, env.routes);
        }
        if fields.class.index() == class {
            self.classes.classes[class].own_bytes -= u64::from(gone.bytes);
        }
    }

    /// A packet leaves the port's memory.
    fn leave<P, S>(&mut self, bytes: u32, env: &mut Env<'_, P, S>) {
        self.queued.sub(bytes);
        if let Memory::Shared { switch, .. } = self.memory {
            env.shared[switch.index()].release(u64::from(bytes));
        }
    }

    /// A packet that had been accepted is dropped because of what the link does.
    fn lose<P, S>(
        &mut self,
        class: usize,
        lost: Waiting,
        reason: DropReason,
        env: &mut Env<'_, P, S>,
    ) {
        self.tally.dropped.add(lost.bytes);
        self.classes.classes[class].dropped.add(lost.bytes);
        env.counters.note_drop(reason);
        env.pool.take(lost.packet);
    }

    /// Brings the time integrals up to now; called before every change of the occupancy.
    fn integrate(&mut self, now: Time) {
        let span = u128::from(now.since(self.integrated_to).as_ps());
        self.tally.byte_time += span * u128::from(self.queued.bytes);
        self.tally.packet_time += span * u128::from(self.queued.packets);
        self.integrated_to = now;
    }

    /// Whether what happens here touches no other port: it shares no memory, and no switch half tells
    /// the sources of packets.
    pub(crate) fn is_independent(&self) -> bool {
        matches!(self.memory, Memory::Own { .. })
            && !self.classes.classes.iter().any(|class| class.algorithm.signals())
    }

    #[inline]
    pub(crate) fn pop_arrived<S: Schedule>(
        &mut self,
        now: Time,
        schedule: &mut S,
    ) -> (PacketRef, Node) {
        let (entry, peer) = self.link.pop(now, schedule);
        self.forget_handed_over();
        (entry.packet, peer)
    }

    /// Takes the packets that arrive before `limit`; when the next one does.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time, mut take: impl FnMut(InFlight)) -> Time {
        if !self.link.is_shared() {
            return self.link.pop_before(limit, take);
        }
        let next = self.link.pop_kept_before(limit, |entry| {
            if entry.packet != PacketRef::NONE {
                take(entry);
            }
        });
        self.forget_handed_over();
        next
    }

    /// Forgets the oldest packets of the link as far as they were handed over: a class port knows a
    /// packet only once it has departed.
    #[inline]
    pub(crate) fn forget_handed_over(&mut self) {
        if self.link.is_shared() {
            self.link.forget(usize::MAX);
        }
    }

    /// When the last packet now in the port departs if nothing pauses or limits a class.
    pub(crate) fn busy_until(&self) -> Time {
        let free = self.in_service.map_or(self.integrated_to, |served| served.departs);
        self.classes.waiting().fold(free, |time, waiting| {
            time + self.rate.serialization_time(Bytes::new(u64::from(waiting.bytes)))
        })
    }

    pub(crate) fn queued(&self, now: Time) -> Count {
        let mut queued = self.queued;
        if let Some(served) = self.in_service.filter(|served| served.departs <= now) {
            queued.sub(served.bytes);
        }
        queued
    }

    /// Bytes of one class in the port.
    pub(crate) fn class_bytes(&self, class: ClassId, now: Time) -> u64 {
        let due = self
            .in_service
            .filter(|served| served.departs <= now && served.class == class.index())
            .map_or(0, |served| u64::from(served.bytes));
        self.classes.bytes(class.index()) - due
    }

    /// The most bytes of packets sent in a class that it has held.
    pub(crate) fn max_own_bytes(&self, class: ClassId) -> Bytes {
        Bytes::new(self.classes.classes[class.index()].max_own_bytes)
    }

    /// The most bytes of packets sent in a class that the port does not have that have joined this
    /// one while it was never empty.
    pub(crate) fn max_foreign_bytes(&self, class: ClassId) -> Bytes {
        Bytes::new(self.classes.classes[class.index()].max_foreign_bytes)
    }

    /// What one class has counted.
    pub(crate) fn class_counters(&self, class: ClassId, now: Time) -> ClassCounters {
        let own = &self.classes.classes[class.index()];
        let served = self.in_service.filter(|s| s.departs > now && s.class == class.index());
        let queued = Count {
            packets: own.waiting_packets() + u64::from(served.is_some()),
            bytes: self.class_bytes(class, now),
        };
        ClassCounters::new(own.offered, own.dropped, queued)
    }

    pub(crate) fn counters(&self, now: Time) -> PortCounters {
        let mut counters = self.tally.counters(self.queued(now));
        // A departure that no event was for leaves an empty port.
        let due = self.in_service.filter(|served| served.departs <= now);
        let until = due.map_or(now, |served| served.departs);
        let span = u128::from(until.since(self.integrated_to).as_ps());
        counters.byte_time += span * u128::from(self.queued.bytes);
        counters.packet_time += span * u128::from(self.queued.packets);
        counters
    }

    /// Packets in the port and on the link behind it.
    pub(crate) fn held(&self) -> u64 {
        // What is in service may be in the link already.
        let twice = u64::from(self.certain && self.in_service.is_some());
        self.queued.packets + (self.held_back.len() + self.link.held()) as u64 - twice
    }
}
