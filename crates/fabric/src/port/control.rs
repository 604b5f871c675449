//! State and events that may stop or delay the packets of a port: pauses, failures, link rates and
//! impairments, and shared memory.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use apus_cc::SwitchHalf;
use apus_units::planted::{Bug, is_planted};
use apus_units::{ClassId, Rate, Span, SwitchId, Time};

use super::class::Waiting;
use super::service::InService;
use super::{Port, SharedBuffer};
use crate::config::{Buffer, PortConfig};
use crate::counters::{Count, DropReason};
use crate::event::{FabricEvent, Schedule};
use crate::impairment::{Fate, Impairment};
use crate::network::Common;
use crate::packet::PacketRef;

/// State that may stop or delay the packets of a port of kind
/// [`PortKind::Event`](crate::PortKind::Event).
pub(super) struct Stops {
    /// The switch whose memory stores the packets, and the factor alpha of the threshold.
    memory: Option<(SwitchId, f64)>,
    pub(super) pausable: bool,
    pub(super) variable: bool,
    pub(super) up: bool,
    impairment: Option<Impairment>,
    /// Packets that the impairment dropped after they had left, for the port and for each class.
    lost: (Count, Box<[Count]>),
    /// Rate and bytes of the port, and bytes of each class, as configured.
    configured: (Rate, u64, Box<[u64]>),
    /// Packets that have departed and are held back, with the time at which each enters the link.
    /// These times never decrease. A `Held` event is pending if and only if packets are held back.
    held_back: VecDeque<(Time, PacketRef, u32)>,
}

impl Stops {
    /// # Panics
    /// If the buffer is shared and the port belongs to a host, which has no memory to share.
    pub(super) fn new<W>(config: &PortConfig<W>, owner: Option<SwitchId>) -> Self {
        let memory = match config.buffer {
            Buffer::Own(_) => None,
            Buffer::Shared { alpha } => Some((owner.expect("a switch's memory is shared"), alpha)),
        };
        let (pausable, variable) = (config.pausable, config.variable);
        let (impairment, held_back) = (None, VecDeque::new());
        let limit = match config.buffer {
            Buffer::Own(limit) => limit.get(),
            Buffer::Shared { .. } => u64::MAX,
        };
        let of_classes = config.classes.iter().map(|class| class.limit.get()).collect();
        let configured = (config.rate, limit, of_classes);
        let lost = (Count::default(), config.classes.iter().map(|_| Count::default()).collect());
        Self { memory, pausable, variable, up: true, impairment, lost, configured, held_back }
    }

    /// Returns the configured rate of the port.
    pub(super) fn configured_rate(&self) -> Rate {
        self.configured.0
    }

    /// Returns `true` if nothing may stop packets, and no other port counts their bytes.
    pub(super) fn are_none(&self) -> bool {
        self.memory.is_none() && !self.variable && !self.pausable
    }

    /// Returns `true` if the port shares its memory.
    pub(super) fn shares_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the packets that the link lost after they had left.
    pub(super) fn lost(&self) -> Count {
        self.lost.0
    }

    /// Returns the packets of a class that the link lost after they had left.
    pub(super) fn lost_of(&self, class: ClassId) -> Count {
        self.lost.1[class.index()]
    }

    /// Returns the number of packets held back.
    pub(super) fn held(&self) -> usize {
        self.held_back.len()
    }

    /// Returns `true` if the shared memory has room for a packet in a queue that holds `queue`
    /// bytes.
    #[inline]
    pub(super) fn has_room(&self, queue: u64, bytes: u32, shared: &[SharedBuffer]) -> bool {
        self.memory.is_none_or(|(switch, alpha)| {
            shared[switch.index()].admits(alpha, queue, u64::from(bytes))
        })
    }

    /// Returns the fair share of a queue in the shared memory; `None` if the port has its own
    /// memory.
    pub(super) fn fair_share(&self, shared: &[SharedBuffer]) -> Option<f64> {
        self.memory.map(|(switch, alpha)| shared[switch.index()].fair_share(alpha))
    }

    /// Reserves memory for a packet.
    #[inline]
    pub(super) fn reserve(&self, bytes: u32, shared: &mut [SharedBuffer]) {
        if let Some((switch, _)) = self.memory {
            shared[switch.index()].reserve(u64::from(bytes));
        }
    }

    /// Releases the memory of a packet.
    #[inline]
    fn release(&self, bytes: u32, shared: &mut [SharedBuffer]) {
        if let Some((switch, _)) = self.memory {
            shared[switch.index()].release(u64::from(bytes));
        }
    }

    /// Delays a packet that departs at `departs` by `delay` before it enters the link. Returns the
    /// time of the `Held` event, if that must be requested.
    fn hold_back(&mut self, served: &InService, departs: Time, delay: Span) -> Option<Time> {
        let last = self.held_back.back().map_or(Time::ZERO, |held| held.0);
        let enters = departs.saturating_add(delay).max(last);
        let first = self.held_back.is_empty();
        self.held_back.push_back((enters, served.packet, served.bytes));
        first.then_some(enters)
    }
}

impl<W: SwitchHalf> Port<W> {
    /// Moves a packet whose service has ended from the port to the link, unless that was already
    /// done when its service began.
    pub(super) fn depart<P, S: Schedule>(
        &mut self,
        served: &InService,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        let class = usize::from(served.class);
        let Some(stops) = &mut self.stops else { return };
        stops.release(served.bytes, &mut common.shared);
        common.leave_switch(served.packet);
        let fate = match &mut stops.impairment {
            _ if served.lost => Some(Fate::Drop(DropReason::LinkDown)),
            Some(impairment) => impairment.draw(),
            None => None,
        };
        match fate {
            Some(Fate::Drop(reason)) => {
                if !served.lost {
                    stops.lost.0.add(served.bytes);
                    stops.lost.1[class].add(served.bytes);
                }
                let lost = Waiting { packet: served.packet, bytes: served.bytes };
                self.lose(class, lost, reason, common);
            }
            Some(Fate::Hold(delay)) => {
                if let Some(enters) = stops.hold_back(served, self.free_at, delay) {
                    schedule.at(FabricEvent::Held(self.id()), enters);
                }
            }
            None => self.put_on_link(self.free_at, served.packet, served.bytes, schedule),
        }
    }

    /// Handles the `Held` event: puts the oldest packet held back on the link, behind the packets
    /// that overtook it.
    pub(crate) fn on_held<S: Schedule>(&mut self, now: Time, schedule: &mut S) {
        let Some(stops) = &mut self.stops else { return };
        let held = stops.held_back.pop_front();
        let next = stops.held_back.front().map(|held| held.0);
        if let Some((_, packet, bytes)) = held {
            self.put_on_link(now, packet, bytes, schedule);
        }
        if let Some(enters) = next {
            schedule.at(FabricEvent::Held(self.id()), enters);
        }
    }

    /// Pauses or resumes a class. A packet in service finishes.
    pub(crate) fn set_paused<P, S: Schedule>(
        &mut self,
        now: Time,
        class: ClassId,
        paused: bool,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.catch_up(now, common, schedule);
        let class = &mut self.classes[class.index()];
        class.pauses += u32::from(paused && !class.paused);
        class.paused = paused;
        self.resume(now, common, schedule);
    }

    /// Changes the rate from the next packet on.
    pub(crate) fn set_rate<P, S: Schedule>(
        &mut self,
        now: Time,
        rate: Rate,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.catch_up(now, common, schedule);
        self.rate = rate;
        self.byte_time = rate.whole_byte_time();
    }

    /// Sets the link to this fraction of its rate from the next packet on, and scales the port's
    /// own memory accordingly: limits in bytes and thresholds of switch halves. The memory of a
    /// switch does not change.
    pub(crate) fn set_capacity<P, S: Schedule>(
        &mut self,
        now: Time,
        fraction: f64,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.catch_up(now, common, schedule);
        let Some(stops) = &self.stops else { return };
        let (rate, limit, of_classes) = &stops.configured;
        self.rate = rate_of(*rate, fraction);
        self.byte_time = self.rate.whole_byte_time();
        self.limit = bytes_of(*limit, fraction);
        for (class, limit) in self.classes.iter_mut().zip(of_classes) {
            class.set_capacity(now, bytes_of(*limit, fraction), fraction);
        }
        // The tokens for the first packet of a rate-limited class are now available at another
        // time.
        if self.wake_armed {
            schedule.cancel(FabricEvent::Wake(self.id()));
            self.on_wake(now, common, schedule);
        }
    }

    /// Returns the number of packets that are lost but not yet counted as drops: a packet that was
    /// in service when the link failed.
    pub(crate) fn losing(&self) -> u64 {
        u64::from(self.in_service.bytes != 0 && self.in_service.lost)
    }

    /// Loses the packets on the link, and those held back before it.
    pub(crate) fn lose_flying<P, S: Schedule>(
        &mut self,
        now: Time,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.catch_up(now, common, schedule);
        let id = self.id();
        self.link.cut(schedule, |packet| common.discard(id, packet, DropReason::LinkDown));
        self.departed = 0;
        let Some(stops) = &mut self.stops else { return };
        if !stops.held_back.is_empty() {
            schedule.cancel(FabricEvent::Held(id));
        }
        for (_, packet, _) in stops.held_back.drain(..) {
            common.discard(id, packet, DropReason::LinkDown);
        }
    }

    /// Fails or repairs the link. Packets queued or in service when it fails are lost, as are
    /// packets that arrive while it is down; departed packets are delivered.
    pub(crate) fn set_up<P, S: Schedule>(
        &mut self,
        now: Time,
        up: bool,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.catch_up(now, common, schedule);
        if let Some(stops) = &mut self.stops {
            stops.up = up;
        }
        if up {
            return;
        }
        self.in_service.lost = true;
        while let Some((class, waiting)) = self.take_waiting() {
            self.tally.leaves(now, waiting.bytes);
            if common.pool.fields(waiting.packet).class.index() == class {
                self.classes[class].own_bytes -= u64::from(waiting.bytes);
            }
            if let Some(stops) = &self.stops {
                stops.release(waiting.bytes, &mut common.shared);
            }
            if !is_planted(Bug::PauseKept) {
                common.leave_switch(waiting.packet);
            }
            self.lose(class, waiting, DropReason::LinkDown, common);
        }
    }

    /// Changes the impairment of the link, for packets that depart from now on.
    pub(crate) fn set_impairment<P, S: Schedule>(
        &mut self,
        now: Time,
        impairment: Option<Impairment>,
        common: &mut Common<P>,
        schedule: &mut S,
    ) {
        self.catch_up(now, common, schedule);
        if let Some(stops) = &mut self.stops {
            stops.impairment = impairment;
        }
    }

    /// Drops an accepted packet because of a fault of the link.
    fn lose<P>(&mut self, class: usize, lost: Waiting, reason: DropReason, common: &mut Common<P>) {
        self.count_drop(class, lost.bytes);
        common.discard(self.id(), lost.packet, reason);
    }
}

/// Returns this fraction of a rate, at least 1 bit/s.
pub(super) fn rate_of(rate: Rate, fraction: f64) -> Rate {
    Rate::from_bps(((rate.as_bps() as f64 * fraction) as u64).max(1))
}

/// Returns this fraction of a limit; an unlimited value stays unlimited.
fn bytes_of(limit: u64, fraction: f64) -> u64 {
    if limit == u64::MAX { limit } else { (limit as f64 * fraction) as u64 }
}
