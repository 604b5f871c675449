//! Actions of a class port when the link is free: the choice of a packet, its service and its
//! departure.

use apus_cc::{Ecn, PortView, SwitchHalf, Verdict};
use apus_units::{Bytes, ClassId, Span, Time};

use super::classes::{Choice, Parts, Waiting};
use super::{ClassPort, InService};
use crate::counters::DropReason;
use crate::event::{FabricEvent, Schedule};
use crate::impairment::Fate;
use crate::network::mail::leave;
use crate::port::Env;

impl<W: SwitchHalf> ClassPort<W> {
    /// The `Service` event.
    pub(crate) fn on_service<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        self.service_armed = false;
        self.finish_due(now, env);
        // The packet this event was for may have been finished by an earlier call of this instant;
        // the event then serves to announce the one that followed it.
        self.announce(env);
    }

    /// Requests the event at which the packet in service departs, if its time matters.
    #[inline]
    pub(super) fn announce<P, S: Schedule>(&mut self, env: &mut Env<'_, P, S>) {
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

    /// Finishes the packet in service if its last bit has left, and starts the next.
    pub(super) fn finish_due<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
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
        // Ports that can be paused are never certain, so the packet is still stored here.
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

    /// Chooses the next packet and puts it into service: the point at which a switch half that acts
    /// on dequeue sees it.
    pub(super) fn start_next<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
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

    /// Puts the oldest delayed packet on the link, behind the packets that overtook it.
    pub(crate) fn on_held<P, S: Schedule>(&mut self, now: Time, env: &mut Env<'_, P, S>) {
        if let Some((_, packet, bytes)) = self.held_back.pop_front() {
            self.link.push(now, packet, bytes, env.schedule);
        }
        if let Some(&(enters, ..)) = self.held_back.front() {
            env.schedule.at(FabricEvent::Held(self.port), enters);
        }
    }
}
