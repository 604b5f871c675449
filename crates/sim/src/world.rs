//! State that all hosts of a part share: the fabric, the events and the metrics.

use apus_cc::{AlgorithmFactory, Telemetry};
use apus_fabric::{FabricEvent, Network, Packet, Schedule, Sent, Transit};
use apus_transport::Completion;
use apus_units::{ClassId, HostId, PortId, Time};
use apus_wire::{Body, Header};

use crate::calendar::Calendar;
use crate::credits;
use crate::host::HostFlow;
use crate::measure::WorkloadMetrics;
use crate::metrics::Metrics;
use crate::op_times::OpTimes;
use crate::packets::PacketSizes;
use crate::queue::EventQueue;
use crate::record::Recorder;

/// Entities of the event queue: for each kind of a port's events the ports, then the hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entities {
    ports: u32,
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
    pub(crate) fn new(ports: u32) -> Self {
        Self { ports }
    }

    pub(crate) fn count(self, hosts: u32) -> u32 {
        PORT_KINDS * self.ports + hosts
    }

    #[inline]
    pub(crate) fn fabric(self, event: FabricEvent) -> u32 {
        match event {
            FabricEvent::Arrival(port) => port.get(),
            FabricEvent::Service(port) => self.ports + port.get(),
            FabricEvent::Wake(port) => 2 * self.ports + port.get(),
            FabricEvent::Held(port) => 3 * self.ports + port.get(),
            FabricEvent::Mail(port) => 4 * self.ports + port.get(),
        }
    }

    #[inline]
    pub(crate) fn host(self, host: HostId) -> u32 {
        PORT_KINDS * self.ports + host.get()
    }

    #[inline]
    pub(crate) fn id(self, entity: &Entity) -> u32 {
        match *entity {
            Entity::Fabric(event) => self.fabric(event),
            Entity::Host(host) => self.host(host),
        }
    }

    /// Returns the port at whose link's end a packet arrives, if that is the entity's event.
    #[inline]
    pub(crate) fn arrival(self, entity: u32) -> Option<PortId> {
        (entity < self.ports).then(|| PortId::new(entity))
    }

    #[inline]
    pub(crate) fn of(self, entity: u32) -> Entity {
        if entity < self.ports {
            Entity::Fabric(FabricEvent::Arrival(PortId::new(entity)))
        } else if entity < 2 * self.ports {
            Entity::Fabric(FabricEvent::Service(PortId::new(entity - self.ports)))
        } else if entity < 3 * self.ports {
            Entity::Fabric(FabricEvent::Wake(PortId::new(entity - 2 * self.ports)))
        } else if entity < 4 * self.ports {
            Entity::Fabric(FabricEvent::Held(PortId::new(entity - 3 * self.ports)))
        } else if entity < PORT_KINDS * self.ports {
            Entity::Fabric(FabricEvent::Mail(PortId::new(entity - 4 * self.ports)))
        } else {
            Entity::Host(HostId::new(entity - PORT_KINDS * self.ports))
        }
    }
}

/// Pending events.
#[expect(clippy::large_enum_variant, reason = "there is one per part of the network")]
#[derive(Debug)]
pub(crate) enum Pending {
    /// In one order for all entities.
    Queue(EventQueue),
    /// By node, for a network whose nodes do not affect each other without delay.
    Calendar(Box<Calendar>),
}

/// Schedules the fabric's events.
pub(crate) struct Scheduler<'a> {
    pending: &'a mut Pending,
    to_hand_over: &'a mut Vec<PortId>,
    entities: Entities,
}

impl Schedule for Scheduler<'_> {
    #[inline(always)]
    fn at(&mut self, event: FabricEvent, time: Time) {
        match self.pending {
            Pending::Queue(queue) => queue.push(self.entities.fabric(event), time),
            Pending::Calendar(calendar) => calendar.push(event, time),
        }
    }

    #[inline]
    fn hand_over(&mut self, port: PortId) {
        self.to_hand_over.push(port);
    }
}

/// State that all hosts of a part share.
pub(crate) struct World<F: AlgorithmFactory> {
    pub(crate) network: Network<Header, F::Switch>,
    pub(crate) pending: Pending,
    pub(crate) entities: Entities,
    pub(crate) metrics: Metrics,
    pub(crate) sizes: PacketSizes,
    /// Class of acknowledgements and read requests, if it is not that of their flow.
    pub(crate) ack_class: Option<ClassId>,
    /// Whether any flow is credit-based, and ports are divided for credits.
    pub(crate) credits: bool,
    /// Time of the current event; between phases, the end of the last one.
    pub(crate) now: Time,
    /// Ports whose links have, or will have, packets that may continue in another part.
    pub(crate) to_hand_over: Vec<PortId>,
    /// Times of ops.
    pub(crate) op_times: Box<OpTimes>,
    /// Whether sent packets are passed to `workloads` or `recorder`.
    pub(crate) observes_sent: bool,
    /// Measurements of named workloads, if there are any.
    pub(crate) workloads: Option<Box<WorkloadMetrics>>,
    /// Records of ops and packets, if the run is recorded.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl<F: AlgorithmFactory> World<F> {
    /// Returns the network and the schedule of its events.
    #[inline]
    pub(crate) fn network(&mut self) -> (&mut Network<Header, F::Switch>, Scheduler<'_>) {
        let scheduler = Scheduler {
            pending: &mut self.pending,
            to_hand_over: &mut self.to_hand_over,
            entities: self.entities,
        };
        (&mut self.network, scheduler)
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

    /// Returns the class of a packet of a flow of class `flow`.
    #[inline]
    pub(crate) fn class_of(&self, body: &Body, flow: ClassId) -> ClassId {
        if self.credits {
            return credits::class_of(body);
        }
        match (self.ack_class, body) {
            (None, _) => flow,
            (Some(_), Body::Data(segment)) if segment.length > 0 => flow,
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

    /// Passes a packet to a host's NIC port at `at`. Returns whether the port accepted it.
    #[inline]
    pub(crate) fn send(
        &mut self,
        at: Time,
        host: HostId,
        packet: Packet<Header>,
        telemetry: Option<&Telemetry>,
    ) -> bool {
        let (network, mut scheduler) = self.network();
        network.send_with(at, host, packet, telemetry, &mut scheduler) == Sent::Accepted
    }

    /// Runs an event of the fabric.
    #[inline(always)] // the event loop calls it for every packet-hop
    pub(crate) fn handle(&mut self, now: Time, event: FabricEvent) -> apus_fabric::Outcome {
        let (network, mut scheduler) = self.network();
        network.handle(now, event, &mut scheduler)
    }

    /// Returns the ports of the arrivals this many events after the next one, as far as these are
    /// known and are arrivals.
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
        // There was a path when the flow was opened; a label only selects one of the paths.
        if let Ok(route) = self.network.reroute(host, flow.peer, key, flow.path_label) {
            flow.route = route;
        }
    }
}
