//! State that all hosts of a part share: the fabric, the events and the metrics.

use std::collections::BTreeMap;

use apus_cc::{AlgorithmFactory, SwitchHalf, Telemetry};
use apus_fabric::{
    FabricEvent, Flight, InFlight, Leads, Network, PacketRef, Schedule, Sent, Terminal, Transit,
};
use apus_transport::Completion;
use apus_units::{ClassId, HostId, PortId, Time};
use apus_wire::{Body, Control, Header};

use crate::calendar::Calendar;
use crate::credits;
use crate::host::HostFlow;
use crate::jobs::Notice;
use crate::measure::WorkloadMetrics;
use crate::metrics::Metrics;
use crate::op_times::OpTimes;
use crate::packets::PacketSizes;
use crate::queue::EventQueue;
use crate::record::Recorder;

/// Numbering of entities: for each kind of port event all ports, then the hosts.
///
/// The number of an entity orders events of the same time and identifies them in the hash of all events. The
/// *place* of an entity is its position in an event queue. Places are in the order of the numbers, but omit
/// kinds of events that cannot occur.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entities {
    ports: u32,
    /// Place of the first host: the number of ports if ports have only arrivals, otherwise the number of that host.
    first_host: u32,
}

/// Kinds of a port's events: arrival, service, wake, held, mail.
const PORT_KINDS: u32 = 5;

/// An entity with a pending event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entity {
    Fabric(FabricEvent),
    Host(HostId),
}

impl Entities {
    /// Returns the entities of a network that is ready to run.
    pub(crate) fn new<P, W: SwitchHalf>(network: &Network<P, W>) -> Self {
        let arrivals_only = !network.has_event_ports() && network.ports_are_independent();
        Self::with(network.ports().count() as u32, arrivals_only)
    }

    fn with(ports: u32, arrivals_only: bool) -> Self {
        Self { ports, first_host: if arrivals_only { ports } else { PORT_KINDS * ports } }
    }

    /// Returns the number of places.
    pub(crate) fn count(self, hosts: u32) -> u32 {
        self.first_host + hosts
    }

    /// Returns the number of a port's event, which is also its place.
    #[inline]
    pub(crate) fn fabric(self, event: FabricEvent) -> u32 {
        debug_assert!(
            matches!(event, FabricEvent::Arrival(_)) || self.first_host > self.ports,
            "{event:?} in a network whose ports only have arrivals"
        );
        match event {
            FabricEvent::Arrival(port) => port.get(),
            FabricEvent::Service(port) => self.ports + port.get(),
            FabricEvent::Wake(port) => 2 * self.ports + port.get(),
            FabricEvent::Held(port) => 3 * self.ports + port.get(),
            FabricEvent::Mail(port) => 4 * self.ports + port.get(),
        }
    }

    /// Returns the place of a host.
    #[inline]
    pub(crate) fn host(self, host: HostId) -> u32 {
        self.first_host + host.get()
    }

    /// Returns the number of an entity.
    #[inline]
    pub(crate) fn number(self, entity: &Entity) -> u32 {
        match *entity {
            Entity::Fabric(event) => self.fabric(event),
            Entity::Host(host) => PORT_KINDS * self.ports + host.get(),
        }
    }

    /// Returns the port at the end of whose link a packet arrives, if the event at a place is an arrival.
    #[inline]
    pub(crate) fn arrival(self, place: u32) -> Option<PortId> {
        (place < self.ports).then(|| PortId::new(place))
    }

    /// Returns the entity at a place.
    #[inline]
    pub(crate) fn of(self, place: u32) -> Entity {
        if place < self.ports {
            Entity::Fabric(FabricEvent::Arrival(PortId::new(place)))
        } else if place >= self.first_host {
            Entity::Host(HostId::new(place - self.first_host))
        } else if place < 2 * self.ports {
            Entity::Fabric(FabricEvent::Service(PortId::new(place - self.ports)))
        } else if place < 3 * self.ports {
            Entity::Fabric(FabricEvent::Wake(PortId::new(place - 2 * self.ports)))
        } else if place < 4 * self.ports {
            Entity::Fabric(FabricEvent::Held(PortId::new(place - 3 * self.ports)))
        } else {
            Entity::Fabric(FabricEvent::Mail(PortId::new(place - 4 * self.ports)))
        }
    }
}

/// Pending events.
#[expect(clippy::large_enum_variant, reason = "there is one per part of the network")]
#[derive(Debug)]
pub(crate) enum Pending {
    /// One order for all entities.
    Queue(EventQueue),
    /// By node, for a network whose nodes do not affect each other without delay.
    Calendar(Box<Calendar>),
}

impl Pending {
    /// Returns the calendar of a part that runs window by window.
    #[inline(always)]
    pub(crate) fn calendar(&mut self) -> &mut Calendar {
        match self {
            Self::Calendar(calendar) => calendar,
            Self::Queue(_) => unreachable!("a part that goes window by window has a calendar"),
        }
    }
}

/// Schedules the fabric's events.
pub(crate) struct Scheduler<'a> {
    pub(crate) pending: &'a mut Pending,
    to_parts: &'a mut ToParts,
    entities: Entities,
}

/// Packets on links that lead to several parts, and ports of such links, kept until the end of a window.
#[derive(Debug, Default)]
pub(crate) struct ToParts {
    pub(crate) flights: Vec<Flight>,
    /// Ports to be served before the packets are sorted by part.
    pub(crate) to_serve: Vec<PortId>,
}

impl Schedule for Scheduler<'_> {
    #[inline(always)]
    fn at(&mut self, event: FabricEvent, time: Time) {
        match self.pending {
            Pending::Queue(queue) => queue.push(self.entities.fabric(event), time),
            Pending::Calendar(calendar) => calendar.push(event, time),
        }
    }

    #[inline(always)]
    fn fly(&mut self, flight: Flight, leads: Leads) {
        match leads {
            Leads::ToParts => self.to_parts.flights.push(flight),
            Leads::ToSwitch | Leads::ToHost => {
                self.pending.calendar().fly(flight, leads == Leads::ToHost);
            }
        }
    }

    fn serve_by(&mut self, port: PortId, time: Time, leads: Leads) {
        match leads {
            Leads::ToParts => self.to_parts.to_serve.push(port),
            Leads::ToSwitch | Leads::ToHost => self.pending.calendar().serve_by(port, time),
        }
    }

    fn cut(&mut self, link: PortId, lose: &mut dyn FnMut(PacketRef)) {
        let cut = self.to_parts.flights.extract_if(.., |flight| flight.link == link);
        cut.for_each(|flight| lose(flight.packet));
        if let Pending::Calendar(calendar) = self.pending {
            calendar.flights.cut(link, lose);
        }
    }

    fn cancel(&mut self, event: FabricEvent) {
        match self.pending {
            Pending::Queue(queue) => queue.cancel(self.entities.fabric(event)),
            Pending::Calendar(calendar) => calendar.cancel(event),
        }
    }
}

/// State that all hosts of a part share.
pub(crate) struct World<F: AlgorithmFactory> {
    pub(crate) network: Network<Header, F::Switch>,
    pub(crate) pending: Pending,
    pub(crate) entities: Entities,
    pub(crate) metrics: Metrics,
    pub(crate) sizes: PacketSizes,
    /// Traffic class of acknowledgements and read requests; `None`: the class of their flow.
    pub(crate) ack_class: Option<ClassId>,
    /// Whether any flow is credit-based, so that ports have a class for credits.
    pub(crate) credits: bool,
    /// Time of the current event; between phases, end of the previous phase.
    pub(crate) now: Time,
    pub(crate) to_parts: ToParts,
    /// Notices for senders of messages of jobs, which the part passes on.
    pub(crate) notices: Vec<Notice>,
    /// Times of ops.
    pub(crate) op_times: Box<OpTimes>,
    /// Whether sent packets are passed to `workloads` or `recorder`.
    pub(crate) observes_sent: bool,
    /// Measurements of named workloads, if there are any.
    pub(crate) workloads: Option<Box<WorkloadMetrics>>,
    /// Records of ops and packets, if the run is recorded.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// Connections that use only some of their hosts' ports, with these ports.
    pub(crate) terminals: BTreeMap<u32, (Terminal, Terminal)>,
}

impl<F: AlgorithmFactory> World<F> {
    /// Returns the network and the schedule of its events.
    #[inline]
    pub(crate) fn network(&mut self) -> (&mut Network<Header, F::Switch>, Scheduler<'_>) {
        let scheduler = Scheduler {
            pending: &mut self.pending,
            to_parts: &mut self.to_parts,
            entities: self.entities,
        };
        (&mut self.network, scheduler)
    }

    /// Returns the number of packets in ports and on links.
    pub(crate) fn held(&self) -> u64 {
        let flying = match &self.pending {
            Pending::Calendar(calendar) => calendar.flights.len(),
            Pending::Queue(_) => 0,
        };
        self.network.held() + flying + self.to_parts.flights.len() as u64
    }

    /// Records an op of `connection` that completed at the true time `now`.
    pub(crate) fn on_completion(&mut self, now: Time, connection: u32, completion: &Completion) {
        self.metrics.on_completion(completion);
        self.op_times.on_completion(now, connection, completion);
        if let Some(workloads) = &mut self.workloads {
            workloads.on_completion(now, connection, completion);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.on_completion(now, connection, completion);
        }
    }

    /// Returns the traffic class of a packet of a flow whose class is `flow`.
    #[inline]
    pub(crate) fn class_of(&self, body: &Body, flow: ClassId) -> ClassId {
        if self.credits {
            return credits::class_of(body);
        }
        match (self.ack_class, body) {
            (None, _) => flow,
            (Some(_), Body::Data(segment)) if segment.length > 0 => flow,
            // A probe must measure the delay of data (uet-htsim 40ccb05, `sendProbe`).
            (Some(_), Body::Control(Control::Probe { .. })) => flow,
            (Some(class), _) => class,
        }
    }

    /// Receives a packet that another part of the network handed over.
    pub(crate) fn receive(
        &mut self,
        port: PortId,
        arrives: Time,
        packet: &Transit<Header>,
        telemetry: Option<&Telemetry>,
    ) {
        let (network, mut scheduler) = self.network();
        network.receive(port, arrives, *packet, telemetry, &mut scheduler);
    }

    /// Passes a packet to a host's NIC port. Returns whether the port accepted it.
    #[inline]
    pub(crate) fn send(&mut self, host: HostId, packet: InFlight) -> bool {
        let (network, mut scheduler) = self.network();
        network.send_held(host, packet, &mut scheduler) == Sent::Accepted
    }

    /// Sends a packet through the port of the host at which its route begins. Returns `false` if the port dropped it.
    #[inline(always)]
    pub(crate) fn send_by(&mut self, host: HostId, port: PortId, packet: InFlight) -> bool {
        let (network, mut scheduler) = self.network();
        network.send_by(host, port, packet, &mut scheduler) == Sent::Accepted
    }

    /// Runs an event of the fabric.
    #[inline(always)] // the event loop calls it for every packet-hop
    pub(crate) fn handle(&mut self, now: Time, event: FabricEvent) -> apus_fabric::Outcome {
        let (network, mut scheduler) = self.network();
        network.handle(now, event, &mut scheduler)
    }

    /// Returns the ports of the arrivals this many events after the next one; `None` for an event that is not
    /// known or not an arrival.
    #[inline(always)]
    pub(crate) fn upcoming(&self, [a, b, c]: [usize; 3]) -> [Option<PortId>; 3] {
        let Pending::Queue(queue) = &self.pending else { return [None; 3] };
        let arrival = |n| self.entities.arrival(queue.upcoming(n)?);
        // `array::map` costs a hundred instructions.
        [arrival(a), arrival(b), arrival(c)]
    }

    /// Returns a lower bound of the time of the next event; [`Time::MAX`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        match &self.pending {
            Pending::Queue(queue) => queue.next_at(),
            Pending::Calendar(calendar) => calendar.next_at(),
        }
    }

    #[inline]
    pub(crate) fn schedule_host(&mut self, host: HostId, at: Time) {
        match &mut self.pending {
            Pending::Queue(queue) => queue.push(self.entities.host(host), at),
            Pending::Calendar(calendar) => calendar.push_host(self.network.host_port(host), at),
        }
    }

    /// Gives a flow the path of its new label.
    #[cold]
    pub(crate) fn reroute(&mut self, host: HostId, flow: &mut HostFlow) {
        let key = u64::from(flow.connection);
        let (own, other) = self.ends(host, flow);
        // A path existed when the flow was opened; a label only selects one of the paths.
        if let Ok(route) = self.network.reroute(own, other, key, flow.path_label) {
            flow.route = route;
        }
    }

    /// Returns the ports of the host and of its peer between which the paths of a flow lead.
    pub(crate) fn ends(&self, host: HostId, flow: &HostFlow) -> (Terminal, Terminal) {
        match self.terminals.get(&flow.connection) {
            Some(&(from, to)) if from.host == host => (from, to),
            Some(&(from, to)) => (to, from),
            None => (host.into(), flow.peer.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of all events of 3 ports and 2 hosts are distinct and in the order of the numbers.
    #[test]
    fn places_are_in_the_order_of_numbers() {
        let port = PortId::new;
        let kinds: [fn(PortId) -> FabricEvent; 5] = [
            FabricEvent::Arrival,
            FabricEvent::Service,
            FabricEvent::Wake,
            FabricEvent::Held,
            FabricEvent::Mail,
        ];
        for (arrivals_only, first_host) in [(true, 3), (false, 15)] {
            let entities = Entities::with(3, arrivals_only);
            assert_eq!(entities.count(2), first_host + 2);
            let kinds = &kinds[..if arrivals_only { 1 } else { 5 }];
            let fabric = kinds.iter().flat_map(|kind| (0..3).map(move |at| kind(port(at))));
            let fabric: Vec<FabricEvent> = fabric.collect();
            for (place, event) in (0..).zip(&fabric) {
                assert_eq!(entities.fabric(*event), place);
                let entity = entities.of(place);
                assert!(matches!(entity, Entity::Fabric(found) if found == *event), "{entity:?}");
                assert_eq!(entities.number(&entity), place);
            }
            for host in 0..2 {
                assert_eq!(entities.host(HostId::new(host)), first_host + host);
                let entity = entities.of(first_host + host);
                assert!(matches!(entity, Entity::Host(found) if found.get() == host));
                assert_eq!(entities.number(&entity), 15 + host, "the number does not depend on it");
            }
        }
    }
}
