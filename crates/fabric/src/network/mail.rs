//! Pauses and instant signals, which reach a port or a host without passing through queues.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::planted::{Bug, is_planted};
use apus_units::{ClassId, PortId, Time};

use super::{ControlError, Network, Outcome};
use crate::event::{FabricEvent, Schedule};
use crate::packet::PacketRef;
use crate::pfc::{Pause, Pfc, PfcConfig};
use crate::routing::opposite;
use crate::topology::Node;

/// A message to a port.
#[derive(Clone, Copy)]
pub(super) enum Mail {
    /// A signal for the host behind the port.
    Signal(PacketRef),
    /// A pause or its end, for a class of the port.
    Pause(ClassId, bool),
}

/// Messages in transit to each port. A `Mail` event is pending if and only if a port has messages.
#[derive(Default)]
pub(super) struct Mailboxes {
    boxes: Vec<VecDeque<(Time, Mail)>>,
    /// For each port: number of pauses of its last class. A port may have fewer classes than the
    /// switch that pauses it; its last class then takes the packets of several classes.
    paused: Vec<u32>,
}

impl Mailboxes {
    /// Sends a message that arrives at `port` at `at`. That must not be before the arrival of the
    /// previous message.
    pub(super) fn send<S: Schedule>(
        &mut self,
        at: Time,
        port: PortId,
        mail: Mail,
        schedule: &mut S,
    ) {
        if self.boxes.len() <= port.index() {
            self.boxes.resize_with(port.index() + 1, VecDeque::new);
        }
        let mailbox = &mut self.boxes[port.index()];
        let at = mailbox.back().map_or(at, |(last, _)| at.max(*last));
        if mailbox.is_empty() {
            schedule.at(FabricEvent::Mail(port), at);
        }
        mailbox.push_back((at, mail));
    }

    /// Records a pause of `class`, or its end, at `port`, whose last class is `last`. A switch ends
    /// each pause once. Returns the class of the port and whether this class is now paused.
    fn pause(
        &mut self,
        port: PortId,
        class: ClassId,
        last: usize,
        paused: bool,
    ) -> (ClassId, bool) {
        if class.index() < last {
            return (class, paused);
        }
        if self.paused.len() <= port.index() {
            self.paused.resize(port.index() + 1, 0);
        }
        let pauses = &mut self.paused[port.index()];
        *pauses = if paused { *pauses + 1 } else { pauses.saturating_sub(1) };
        // Class numbers have 8 bits.
        (ClassId::new(last as u8), *pauses > 0)
    }

    /// Returns the number of signals in transit.
    pub(super) fn held(&self) -> u64 {
        let mail = self.boxes.iter().flatten();
        mail.filter(|(_, mail)| matches!(mail, Mail::Signal(_))).count() as u64
    }
}

impl<P, W: SwitchHalf> Network<P, W> {
    /// Lets every switch pause the ports that fill its memory. All ports must be pausable
    /// ([`Topology::with_pausable_ports`](crate::Topology::with_pausable_ports)).
    ///
    /// # Errors
    /// If the thresholds contradict each other, or a port cannot be paused.
    pub fn enable_pfc(&mut self, config: PfcConfig) -> Result<(), ControlError> {
        config.check().map_err(ControlError)?;
        self.ports().try_for_each(|port| self.check_pausable(port))?;
        for (port, class) in self.ports().flat_map(|p| config.classes.iter().map(move |c| (p, *c)))
        {
            // A NIC may have one class for all packets, which is paused while any of the switch's
            // classes is.
            let is_host = matches!(self.port_ends(port).0, Node::Host(_));
            if !is_host && class.index() >= self.class_count(port) {
                return Err(self.refuse(port, "has no such class to be paused"));
            }
        }
        let ports = self.ports().count();
        self.common.pfc = Some(alloc::boxed::Box::new(Pfc::new(config, ports)));
        Ok(())
    }

    /// Returns `true` if switches may pause ports.
    #[must_use]
    pub fn has_pfc(&self) -> bool {
        self.common.pfc.is_some()
    }

    /// Returns `true` if packets of `class` wait in a port because the class is paused there. At a
    /// port with fewer classes, the last class takes these packets.
    #[must_use]
    pub fn is_paused(&self, port: PortId, class: ClassId) -> bool {
        self.ports[port.index()].is_paused(class)
    }

    /// Returns `true` if a class of a port is paused.
    #[must_use]
    pub fn has_paused_class(&self, port: PortId) -> bool {
        self.ports[port.index()].has_paused_class()
    }

    /// Sends the pauses and ends of pauses that the last packet or change has caused, in their
    /// order: an arriving packet may pause a link, and a packet that leaves at the same time may
    /// end the pause. A pause frame precedes all queued packets and is not delayed by the packet in
    /// service.
    #[cold]
    pub(super) fn send_pauses<S: Schedule>(&mut self, now: Time, schedule: &mut S) {
        let Some(pfc) = &mut self.common.pfc else { return };
        let mut due = core::mem::take(&mut pfc.due);
        if is_planted(Bug::PausesReversed) {
            due.reverse();
        }
        for Pause { port, class, paused } in due.drain(..) {
            let back = &self.ports[opposite(port).index()];
            let at = now + back.rate().serialization_time(PfcConfig::FRAME) + back.delay();
            self.common.counters.pauses += u64::from(paused);
            self.mail.send(at, port, Mail::Pause(class, paused), schedule);
        }
        if let Some(pfc) = &mut self.common.pfc {
            pfc.due = due; // keeps its memory for reuse
        }
    }

    /// Handles the `Mail` event.
    pub(super) fn open_mail<S: Schedule>(
        &mut self,
        now: Time,
        port: PortId,
        schedule: &mut S,
    ) -> Outcome {
        let mailbox = &mut self.mail.boxes[port.index()];
        let mail = mailbox.pop_front();
        if let Some(&(at, _)) = mailbox.front() {
            schedule.at(FabricEvent::Mail(port), at);
        }
        match mail {
            Some((_, Mail::Signal(packet))) => {
                if let Node::Host(host) = self.port_ends(port).1 {
                    self.common.counters.delivered += 1;
                    return Outcome::Delivered { host, packet };
                }
            }
            Some((_, Mail::Pause(class, paused))) => {
                let last = self.class_count(port).saturating_sub(1);
                let (class, paused) = self.mail.pause(port, class, last, paused);
                let found = &mut self.ports[port.index()];
                found.set_paused(now, class, paused, &mut self.common, schedule);
                self.answer_now(now, schedule);
                if let Node::Host(host) = self.port_ends(port).0 {
                    return Outcome::Paused { host, port };
                }
            }
            None => {}
        }
        Outcome::Forwarded
    }
}
