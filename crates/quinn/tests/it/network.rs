//! Connections of quinn over an emulated bottleneck, in virtual time.
//!
//! Each flow is a client that sends to its own server. All data cross one drop-tail queue. The reverse path has
//! the same delay, and each flow has its own link of the same rate there. Both directions keep the order of
//! datagrams. Hosts take no time.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apus_units::random::SplitMix64;
use bytes::{Bytes, BytesMut};
use quinn_proto::congestion::Controller;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId,
    TransportConfig,
};

use crate::plaintext::Plaintext;

/// Bytes that a datagram occupies on the link in addition to the UDP payload: IPv4 and UDP (28), Ethernet with
/// preamble and gap (38).
pub const OVERHEAD: u64 = 28 + 38;
/// Datagrams that an end hands over at once, as quinn's driver does.
const BATCH: usize = 10;

/// The shared link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub bits_per_second: u64,
    /// Propagation delay in one direction.
    pub delay: Duration,
    /// Maximum number of wire bytes that are queued or in service.
    pub buffer: u64,
}

impl Link {
    /// Returns the nanoseconds for which these wire bytes occupy the link.
    pub fn serialisation(&self, bytes: u64) -> u64 {
        (bytes * 8 * 1_000_000_000).div_ceil(self.bits_per_second)
    }
}

/// What a client sends.
#[derive(Clone, Copy, Debug)]
pub enum Application {
    /// As much data as the connection accepts.
    Bulk,
    /// This number of bytes per interval.
    Periodic { bytes: usize, interval: Duration },
}

/// One client and its server.
pub struct Flow {
    ends: [End; 2],
    application: Application,
    /// Time at which the link of the reverse path will have sent its whole queue.
    reverse_busy_until: u64,
    /// Bytes that the server's application has read.
    pub received: u64,
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Time at which the current timer is due; other timers are outdated.
    timer: Option<u64>,
}

/// Statistics of the data packets of all flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    pub sent: u64,
    pub dropped: u64,
    /// Nanoseconds that each delivered packet waited before its service.
    pub waits: Vec<u64>,
}

enum Happening {
    Start,
    Arrival { end: usize, ecn: Option<EcnCodepoint>, datagram: BytesMut },
    Timer { end: usize },
    Write,
}

pub struct Network {
    link: Link,
    base: Instant,
    now: u64,
    /// Time at which the shared link will have sent its whole queue.
    busy_until: u64,
    happenings: BTreeMap<(u64, u64), (usize, Happening)>,
    sequence: u64,
    pub flows: Vec<Flow>,
    pub traffic: Traffic,
    client: ClientConfig,
    server: Arc<ServerConfig>,
}

/// Connection identifiers in the order of their creation.
struct Counter(u64);

impl ConnectionIdGenerator for Counter {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl Network {
    /// Creates a network without flows; connections of both directions use `transport`.
    pub fn new(link: Link, transport: TransportConfig) -> Self {
        let mut client = ClientConfig::new(Arc::new(Plaintext));
        let next = AtomicU64::new(1 << 32);
        client.initial_dst_cid_provider(Arc::new(move || {
            ConnectionId::new(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes())
        }));
        let transport = Arc::new(transport);
        client.transport_config(Arc::clone(&transport));
        let mut server = ServerConfig::new(Arc::new(Plaintext), Arc::new(Plaintext));
        server.transport_config(transport);
        Self {
            link,
            base: Instant::now(),
            now: 0,
            busy_until: 0,
            happenings: BTreeMap::new(),
            sequence: 0,
            flows: Vec::new(),
            traffic: Traffic::default(),
            client,
            server: Arc::new(server),
        }
    }

    /// Adds a flow that starts at this time. `random` is the source of quinn's own random numbers.
    pub fn add(&mut self, start: Duration, application: Application, random: &mut SplitMix64) {
        let flow = self.flows.len();
        let mut end = |side: u8, server: Option<Arc<ServerConfig>>| {
            let mut config = EndpointConfig::new(Arc::new(Plaintext));
            let first = u64::from(side) << 48;
            config.cid_generator(move || Box::new(Counter(first)));
            let mut seed = [0; 32];
            for word in seed.chunks_mut(8) {
                word.copy_from_slice(&random.bits().to_le_bytes());
            }
            config.rng_seed(Some(seed));
            let endpoint = Endpoint::new(Arc::new(config), server, true, None);
            End { endpoint, connection: None, stream: None, timer: None }
        };
        let ends = [end(0, None), end(1, Some(Arc::clone(&self.server)))];
        self.flows.push(Flow { ends, application, reverse_busy_until: 0, received: 0 });
        self.schedule(start.as_nanos() as u64, flow, Happening::Start);
    }

    /// Runs until this time.
    pub fn run(&mut self, until: Duration) {
        let until = until.as_nanos() as u64;
        while let Some(entry) = self.happenings.first_entry().filter(|next| next.key().0 <= until) {
            self.now = entry.key().0;
            let (flow, happening) = entry.remove();
            self.process(flow, happening);
        }
        self.now = until;
    }

    /// Returns the congestion controller of the client, once the flow has started.
    pub fn controller(&self, flow: usize) -> Option<&dyn Controller> {
        let (_, connection) = self.flows[flow].ends[0].connection.as_ref()?;
        Some(connection.congestion_state())
    }

    fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now)
    }

    fn schedule(&mut self, at: u64, flow: usize, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert((at, self.sequence), (flow, happening));
    }

    fn process(&mut self, flow: usize, happening: Happening) {
        let now = self.instant();
        match happening {
            Happening::Start => {
                let config = self.client.clone();
                let endpoint = &mut self.flows[flow].ends[0].endpoint;
                let connected = endpoint.connect(now, config, address(flow, 1), "server");
                self.flows[flow].ends[0].connection = Some(connected.expect("a connection"));
                self.drive(flow, 0);
            }
            Happening::Arrival { end, ecn, datagram } => {
                self.receive(flow, end, ecn, datagram);
                self.drive(flow, end);
            }
            Happening::Timer { end } => {
                let side = &mut self.flows[flow].ends[end];
                if side.timer != Some(self.now) {
                    return;
                }
                side.timer = None;
                let Some((_, connection)) = &mut side.connection else { return };
                if connection.poll_timeout().is_some_and(|due| due <= now) {
                    connection.handle_timeout(now);
                }
                self.drive(flow, end);
            }
            Happening::Write => {
                if let Application::Periodic { bytes, interval } = self.flows[flow].application {
                    self.write(flow, bytes);
                    self.schedule(self.now + interval.as_nanos() as u64, flow, Happening::Write);
                    self.drive(flow, 0);
                }
            }
        }
    }

    fn receive(&mut self, flow: usize, end: usize, ecn: Option<EcnCodepoint>, datagram: BytesMut) {
        let now = self.instant();
        let mut response = Vec::new();
        let End { endpoint, connection, .. } = &mut self.flows[flow].ends[end];
        match endpoint.handle(now, address(flow, 1 - end), None, ecn, datagram, &mut response) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                connection.as_mut().expect("a connection").1.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = endpoint.accept(incoming, now, &mut response, None);
                *connection = Some(accepted.map_err(|error| error.cause).expect("a handshake"));
            }
            Some(DatagramEvent::Response(_)) => panic!("an unexpected response of an endpoint"),
            None => {}
        }
    }

    /// Handles all events of a connection, and sends the packets that it may send.
    fn drive(&mut self, flow: usize, end: usize) {
        let now = self.instant();
        loop {
            self.handle_events(flow, end);
            let Some((_, connection)) = &mut self.flows[flow].ends[end].connection else { return };
            let mut buffer = Vec::new();
            let Some(transmit) = connection.poll_transmit(now, BATCH, &mut buffer) else { break };
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in buffer[..transmit.size].chunks(segment) {
                self.send(flow, end, transmit.ecn, datagram);
            }
        }
        let side = &mut self.flows[flow].ends[end];
        let due = side.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let due = due.map(|due| due.saturating_duration_since(self.base).as_nanos() as u64);
        let due = due.map(|due| due.max(self.now));
        if due != side.timer {
            side.timer = due;
            if let Some(due) = due {
                self.schedule(due, flow, Happening::Timer { end });
            }
        }
    }

    fn handle_events(&mut self, flow: usize, end: usize) {
        let End { endpoint, connection, .. } = &mut self.flows[flow].ends[end];
        let Some((handle, connection)) = connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = self.flows[flow].poll(end) {
            match event {
                Event::Connected if end == 0 => {
                    let side = &mut self.flows[flow].ends[0];
                    let connection = &mut side.connection.as_mut().expect("connected").1;
                    side.stream = connection.streams().open(Dir::Uni);
                    match self.flows[flow].application {
                        Application::Bulk => self.write(flow, usize::MAX),
                        Application::Periodic { .. } => {
                            self.schedule(self.now, flow, Happening::Write);
                        }
                    }
                }
                Event::Stream(StreamEvent::Writable { .. }) => {
                    if let Application::Bulk = self.flows[flow].application {
                        self.write(flow, usize::MAX);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    let side = &mut self.flows[flow].ends[end];
                    let connection = &mut side.connection.as_mut().expect("connected").1;
                    side.stream = connection.streams().accept(dir);
                    self.flows[flow].read();
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.flows[flow].read(),
                Event::ConnectionLost { reason } => panic!("flow {flow}: {reason}"),
                _ => {}
            }
        }
    }

    /// Writes as many of these bytes as the stream accepts.
    fn write(&mut self, flow: usize, mut bytes: usize) {
        static CHUNK: [u8; 1 << 16] = [0; 1 << 16];
        let side = &mut self.flows[flow].ends[0];
        let (Some(stream), Some((_, connection))) = (side.stream, &mut side.connection) else {
            return;
        };
        let mut stream = connection.send_stream(stream);
        while bytes > 0 {
            let chunk = Bytes::from_static(&CHUNK[..bytes.min(CHUNK.len())]);
            let Ok(written) = stream.write_chunks(&mut [chunk]) else { break };
            bytes -= written.bytes;
        }
    }

    /// Puts a datagram into the queue of its direction.
    fn send(&mut self, flow: usize, from: usize, ecn: Option<EcnCodepoint>, datagram: &[u8]) {
        let bytes = datagram.len() as u64 + OVERHEAD;
        let mut busy_until = &mut self.flows[flow].reverse_busy_until;
        if from == 0 {
            busy_until = &mut self.busy_until;
            self.traffic.sent += 1;
            let wait = busy_until.saturating_sub(self.now);
            let queued = u128::from(wait) * u128::from(self.link.bits_per_second) / 8_000_000_000;
            if queued as u64 + bytes > self.link.buffer {
                self.traffic.dropped += 1;
                return;
            }
            self.traffic.waits.push(wait);
        }
        *busy_until = self.now.max(*busy_until) + self.link.serialisation(bytes);
        let at = *busy_until + self.link.delay.as_nanos() as u64;
        let datagram = BytesMut::from(datagram);
        self.schedule(at, flow, Happening::Arrival { end: 1 - from, ecn, datagram });
    }
}

impl Flow {
    fn poll(&mut self, end: usize) -> Option<Event> {
        self.ends[end].connection.as_mut()?.1.poll()
    }

    /// Reads all data that has arrived at the server.
    fn read(&mut self) {
        let side = &mut self.ends[1];
        let (Some(stream), Some((_, connection))) = (side.stream, &mut side.connection) else {
            return;
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
    }
}

fn address(flow: usize, end: usize) -> SocketAddr {
    (Ipv4Addr::new(10, 0, flow as u8, end as u8), 4433).into()
}

#[test]
fn both_directions_keep_the_order_of_datagrams() {
    let link =
        Link { bits_per_second: 1_000_000, delay: Duration::from_millis(1), buffer: 1_000_000 };
    for from in [0, 1] {
        let mut network = Network::new(link, TransportConfig::default());
        network.add(Duration::from_secs(9), Application::Bulk, &mut SplitMix64::new(1));
        for bytes in [1200, 40] {
            network.send(0, from, None, &vec![0; bytes]);
        }
        let arrivals = network.happenings.iter().filter_map(|(key, (_, happening))| {
            let Happening::Arrival { datagram, .. } = happening else { return None };
            Some((key.0, datagram.len()))
        });
        // 8 us per byte; OVERHEAD is 66 bytes.
        let first = 1_000_000 + 1266 * 8000;
        let second = first + 106 * 8000;
        assert_eq!(arrivals.collect::<Vec<_>>(), [(first, 1200), (second, 40)]);
    }
}
