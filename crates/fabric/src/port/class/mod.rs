//! A port of several classes that chooses a packet whenever the link is free: the general one.

mod classes;
mod control;
mod facts;
mod service;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use apus_cc::{PortView, Signal, SwitchHalf};
use apus_units::{Bytes, ClassId, PortId, Rate, SwitchId, Time};

use self::classes::{Classes, Parts, Waiting};
use super::link::Link;
use super::{Env, half};
use crate::config::{Buffer, PortConfig};
use crate::counters::{Count, DropReason, Tally};
use crate::event::Schedule;
use crate::impairment::Impairment;
use crate::packet::PacketRef;
use crate::topology::Node;

/// The packet whose bits are being put on the link.
#[derive(Clone, Copy)]
struct InService {
    packet: PacketRef,
    bytes: u32,
    class: usize,
    /// The packet was sent in that class.
    own: bool,
    departs: Time,
    /// The link failed during the service: the packet is lost when its last bit would leave.
    lost: bool,
}

/// The memory that stores packets.
enum Memory {
    Own { limit: u64 },
    Shared { alpha: f64, switch: SwitchId },
}

/// The general port. See [`crate::FabricEvent`] for why no event is ever cancelled.
pub(crate) struct ClassPort<W> {
    pub(crate) link: Link,
    port: PortId,
    rate: Rate,
    memory: Memory,
    /// No event can stop or delay a packet in service, and no other port counts its bytes. The
    /// packet enters the link when its service begins, and a `Service` event is requested only if
    /// another packet is queued. The effects of its departure are recorded by the next call.
    certain: bool,
    pausable: bool,
    variable: bool,
    classes: Classes<W>,
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
    /// Time up to which the integrals of the tally are computed.
    integrated_to: Time,
    pub(crate) tally: Tally,
}
impl<W: SwitchHalf> ClassPort<W> {
    /// # Panics
    /// If the buffer is shared and the port belongs to a host, which has no memory to share.
    pub(crate) fn new(
        config: &PortConfig<W>,
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
            pausable: config.pausable,
            variable: config.variable,
            classes: Classes::new(&config.classes, config.scheduler),
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

    pub(crate) fn offer<P, S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        env: &mut Env<'_, P, S>,
    ) -> Result<(), DropReason> {
        // A departure at exactly now counts as departed, in any order of the events of this
        // instant.
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

    /// Returns whether the packet may join class `index`; its switch half is called if there is
    /// room.
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
        let class = &mut self.classes.classes[index];
        let full = class.waiting_packets() >= class.limit_packets;
        if !room || full || class_bytes + bytes > class.limit {
            let reason = half::on_refused(&mut class.algorithm, fields.wire_bytes);
            let limited = room && class.is_rate_limited();
            return Err(if limited { DropReason::RateLimit } else { reason });
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
        let algorithm = &mut classes[index].algorithm;
        let marked = half::on_enqueue(algorithm, packet, fields, &view, signals)?;
        self.tally.marked += u64::from(marked);
        Ok(())
    }

    /// Brings the time integrals up to now; called before every change of the occupancy.
    fn integrate(&mut self, now: Time) {
        let span = u128::from(now.since(self.integrated_to).as_ps());
        self.tally.byte_time += span * u128::from(self.queued.bytes);
        self.tally.packet_time += span * u128::from(self.queued.packets);
        self.integrated_to = now;
    }

    /// Returns `true` if no event at this port affects another port: it shares no memory, and no
    /// switch half sends signals.
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
        self.link.forget_handed_over();
        (entry.packet, peer)
    }

    /// A packet leaves the port's memory.
    fn leave<P, S>(&mut self, bytes: u32, env: &mut Env<'_, P, S>) {
        self.queued.sub(bytes);
        if let Memory::Shared { switch, .. } = self.memory {
            env.shared[switch.index()].release(u64::from(bytes));
        }
    }
}
