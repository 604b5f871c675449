//! Changes to a class port during a run: pauses, failures, rates and impairments of its link.

use apus_cc::SwitchHalf;
use apus_units::{ClassId, Rate, Time};

use super::ClassPort;
use super::classes::Waiting;
use crate::counters::DropReason;
use crate::event::Schedule;
use crate::impairment::Impairment;
use crate::network::mail::leave;
use crate::port::Env;

impl<W: SwitchHalf> ClassPort<W> {
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

    /// Fails or repairs the link. Packets queued or in service when it fails are lost, as are
    /// packets that arrive while it is down; departed packets are delivered.
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

    /// Changes the impairment of the link, for packets that depart from now on.
    pub(crate) fn set_impairment<P, S: Schedule>(
        &mut self,
        now: Time,
        impairment: Option<Impairment>,
        env: &mut Env<'_, P, S>,
    ) {
        self.finish_due(now, env);
        self.impairment = impairment;
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

    /// Drops an accepted packet because of the state of the link.
    pub(super) fn lose<P, S>(
        &mut self,
        class: usize,
        lost: Waiting,
        reason: DropReason,
        env: &mut Env<'_, P, S>,
    ) {
        self.tally.dropped.add(lost.bytes);
        self.classes.classes[class].dropped.add(lost.bytes);
        env.counters.note_drop(reason);
        env.drops.note(self.port, reason);
        env.pool.take(lost.packet);
    }
}
