//! Egress ports of all kinds behind one interface.

mod class;
mod fifo;
mod half;
mod link;
mod shared;
mod strict;

use alloc::boxed::Box;
use alloc::vec::Vec;

use apus_cc::{Signal, SwitchHalf};
use apus_units::{ClassId, PortId, Rate, Span, SwitchId, Time};

use crate::config::{PortConfig, PortKind};
use crate::counters::{Count, Counters, DropLog, DropReason, PortCounters};
use crate::event::Schedule;
use crate::packet::{PacketPool, PacketRef};
use crate::pfc::Pfc;
use crate::routing::RouteTable;
use crate::topology::Node;

pub(crate) use class::ClassPort;
use fifo::FifoPort;
pub(crate) use link::{InFlight, Link};
pub(crate) use shared::SharedBuffer;
use strict::StrictPort;

/// The state outside a port that the port works on.
pub(crate) struct Env<'a, P, S> {
    pub(crate) pool: &'a mut PacketPool<P>,
    /// The shared buffers, by switch.
    pub(crate) shared: &'a mut [SharedBuffer],
    pub(crate) counters: &'a mut Counters,
    pub(crate) drops: &'a mut DropLog,
    /// Signals that switch halves send to the sources of packets, each with its packet.
    pub(crate) signals: &'a mut Vec<(PacketRef, Signal)>,
    pub(crate) routes: &'a RouteTable,
    /// Bytes that switches hold by ingress link, if they pause.
    pub(crate) pfc: &'a mut Option<Box<Pfc>>,
    pub(crate) schedule: &'a mut S,
}

/// An egress port of any kind. Class ports are boxed so that a table of the others stays dense.
pub(crate) enum Port<W> {
    Fifo(FifoPort<W>),
    Strict(StrictPort<W>),
    Class(Box<ClassPort<W>>),
}

impl<W: SwitchHalf> Port<W> {
    /// Number of cache lines that a packet needs of a FIFO port, and of a strict port in addition
    /// to its classes.
    pub(crate) const HOT_LINES: usize = 3;

    /// A port of `kind` with `link` behind it; `owner` is the switch it belongs to, if any.
    pub(crate) fn new(
        config: &PortConfig<W>,
        kind: PortKind,
        id: PortId,
        link: Link,
        owner: Option<SwitchId>,
    ) -> Self {
        match kind {
            PortKind::Fifo => Self::Fifo(FifoPort::new(config, id, link)),
            PortKind::Strict => Self::Strict(StrictPort::new(config, id, link)),
            PortKind::Class => Self::Class(Box::new(ClassPort::new(config, id, link, owner))),
        }
    }

    pub(crate) fn kind(&self) -> PortKind {
        match self {
            Self::Fifo(_) => PortKind::Fifo,
            Self::Strict(_) => PortKind::Strict,
            Self::Class(_) => PortKind::Class,
        }
    }

    pub(crate) fn link(&self) -> &Link {
        match self {
            Self::Fifo(port) => &port.link,
            Self::Strict(port) => &port.link,
            Self::Class(port) => &port.link,
        }
    }

    pub(crate) fn link_mut(&mut self) -> &mut Link {
        match self {
            Self::Fifo(port) => &mut port.link,
            Self::Strict(port) => &mut port.link,
            Self::Class(port) => &mut port.link,
        }
    }

    pub(crate) fn set_shared(&mut self) {
        self.link_mut().set_shared();
    }

    /// Hands the next packet to be sorted to the port's other half.
    #[inline]
    pub(crate) fn hand_over(&mut self) {
        match self {
            Self::Fifo(port) => port.link.hand_over(),
            Self::Strict(StrictPort { link, .. }) => link.hand_over_and_forget(),
            Self::Class(port) => port.link.hand_over_and_forget(),
        }
    }

    /// Prepares the sorting of packets at `now`: packets that arrive before `now` plus the link's
    /// delay are on the link.
    #[inline]
    pub(crate) fn begin_hand_over(&mut self, now: Time) {
        if let Self::Strict(port) = self {
            port.catch_up(now);
        }
    }

    /// Ends the sorting; returns when another packet enters the link without any further event.
    #[inline]
    pub(crate) fn end_hand_over(&mut self) -> Option<Time> {
        if let Self::Strict(port) = self {
            return port.end_hand_over();
        }
        self.link_mut().end_sort();
        None
    }

    /// A packet arrives that the port's other half handed over.
    pub(crate) fn receive<S: Schedule>(
        &mut self,
        arrives: Time,
        packet: PacketRef,
        bytes: u32,
        schedule: &mut S,
    ) {
        match self {
            Self::Fifo(port) => port.receive(arrives, packet, bytes, schedule),
            Self::Strict(port) => port.link.receive(arrives, packet, bytes, schedule),
            Self::Class(port) => port.link.receive(arrives, packet, bytes, schedule),
        }
    }

    pub(crate) fn delay(&self) -> Span {
        self.link().delay()
    }

    pub(crate) fn rate(&self) -> Rate {
        match self {
            Self::Fifo(port) => port.rate(),
            Self::Strict(port) => port.rate(),
            Self::Class(port) => port.rate(),
        }
    }

    /// Offers a packet like [`Port::offer`], given its wire bytes and class, to a plain port;
    /// `None` for other ports.
    #[inline(always)]
    pub(crate) fn offer_plain<S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        bytes: u32,
        class: impl FnOnce() -> ClassId,
        schedule: &mut S,
    ) -> Option<Result<(), DropReason>> {
        match self {
            Self::Fifo(port) if port.is_plain() => {
                Some(port.offer_plain(now, packet, bytes, schedule))
            }
            Self::Strict(port) if port.is_plain() => {
                Some(port.offer_plain(now, packet, (bytes, class()), schedule))
            }
            _ => None,
        }
    }

    /// Accepts the packet or returns the reason for the drop; the caller then frees the packet.
    #[inline]
    pub(crate) fn offer<P, S: Schedule>(
        &mut self,
        now: Time,
        packet: PacketRef,
        env: &mut Env<'_, P, S>,
    ) -> Result<(), DropReason> {
        match self {
            Self::Fifo(port) => {
                let fields = env.pool.fields_mut(packet);
                port.offer(now, packet, fields, env.signals, env.schedule)
            }
            Self::Strict(port) => {
                let fields = env.pool.fields_mut(packet);
                port.offer(now, packet, fields, env.signals, env.schedule)
            }
            Self::Class(port) => port.offer(now, packet, env),
        }
    }

    /// Takes the packet that arrives at the peer now.
    #[inline(always)]
    pub(crate) fn pop_arrived<S: Schedule>(
        &mut self,
        now: Time,
        schedule: &mut S,
    ) -> (PacketRef, Node) {
        match self {
            Self::Fifo(port) => port.pop_arrived(now, schedule),
            Self::Strict(port) => port.pop_arrived(now, schedule),
            Self::Class(port) => port.pop_arrived(now, schedule),
        }
    }

    /// Returns the packet that arrives at the peer at `now`.
    pub(crate) fn arriving(&mut self, now: Time) -> Option<PacketRef> {
        match self {
            Self::Strict(port) => port.arriving(now),
            Self::Fifo(_) | Self::Class(_) => self.link().head(),
        }
    }

    /// Takes the packets that arrive at the peer before `limit`; when the next one does.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: Time, take: impl FnMut(InFlight)) -> Time {
        match self {
            Self::Fifo(port) => port.pop_before(limit, take),
            Self::Strict(port) => port.pop_before(limit, take),
            Self::Class(port) => port.link.pop_sorted_before(limit, take),
        }
    }

    /// Returns `true` if no event at this port affects another port.
    pub(crate) fn is_independent(&self) -> bool {
        match self {
            Self::Fifo(port) => port.is_independent(),
            Self::Strict(port) => port.is_independent(),
            Self::Class(port) => port.is_independent(),
        }
    }

    pub(crate) fn busy_until(&self) -> Time {
        match self {
            Self::Fifo(port) => port.busy_until(),
            Self::Strict(port) => port.busy_until(),
            Self::Class(port) => port.busy_until(),
        }
    }

    pub(crate) fn queued(&self, now: Time) -> Count {
        match self {
            Self::Fifo(port) => port.queued(now),
            Self::Strict(port) => port.queued(now),
            Self::Class(port) => port.queued(now),
        }
    }

    pub(crate) fn counters(&self, now: Time) -> PortCounters {
        match self {
            Self::Fifo(port) => port.counters(now),
            Self::Strict(port) => port.counters(now),
            Self::Class(port) => port.counters(now),
        }
    }

    pub(crate) fn restart_max_queue(&mut self, now: Time) {
        let bytes = self.queued(now).bytes;
        match self {
            Self::Fifo(port) => port.set_max_queue(bytes),
            Self::Strict(port) => port.set_max_queue(bytes),
            Self::Class(port) => port.tally.max_queue_bytes = bytes,
        }
    }

    /// Packets in the port and on the link behind it.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Fifo(port) => port.link.held() as u64,
            Self::Strict(port) => port.held(),
            Self::Class(port) => port.held(),
        }
    }
}
