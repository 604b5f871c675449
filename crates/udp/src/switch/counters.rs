//! What a switch counts.

use std::fmt;

use apus_units::{Bytes, Span};

/// Reason why the switch did not forward a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The port's buffer had no room.
    Buffer,
    /// The algorithm's switch half dropped the datagram.
    SwitchHalf,
    /// The TTL reached 0: the switch forwards to itself, or packets circulate.
    Ttl,
    /// The switch has its maximum number of clients, and none of them is idle.
    Clients,
    /// The datagram is longer than the path behind the switch allows.
    TooLong,
    /// The kernel refused to send the datagram, for example because it has no route.
    NotSent,
    /// The kernel's receive buffer was full, because the switch was too slow. This loss is not a property of the port.
    NotReceived,
}

impl Cause {
    /// Every cause, in the order of [`PortCounters::drops`].
    pub const ALL: [Self; 7] = [
        Self::Buffer,
        Self::SwitchHalf,
        Self::Ttl,
        Self::Clients,
        Self::TooLong,
        Self::NotSent,
        Self::NotReceived,
    ];

    /// Returns the name of the cause in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::SwitchHalf => "switch_half",
            Self::Ttl => "ttl",
            Self::Clients => "clients",
            Self::TooLong => "too_long",
            Self::NotSent => "not_sent",
            Self::NotReceived => "not_received",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffer => "no room in the buffer",
            Self::SwitchHalf => "by the switch half of the algorithm",
            Self::Ttl => "TTL reached 0",
            Self::Clients => "too many clients",
            Self::TooLong => "too long for the path behind the switch",
            Self::NotSent => "refused by the kernel",
            Self::NotReceived => "no room in the socket",
        })
    }
}

/// Direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the clients to the server.
    ToServer,
    /// From the server to the clients.
    ToClients,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::ToServer, Self::ToClients];

    /// Returns the opposite direction, in which answers travel.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::ToServer => Self::ToClients,
            Self::ToClients => Self::ToServer,
        }
    }
}

/// Counters of the port of one direction over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCounters {
    /// Datagrams received for this direction.
    pub received: u64,
    /// Datagrams sent, including signals of the other port.
    pub sent: u64,
    /// Wire bytes of the datagrams sent: UDP payload, headers, and the overhead of a packet on an Ethernet link.
    pub sent_bytes: u64,
    /// Datagrams not forwarded, by cause in the order of [`Cause::ALL`].
    pub drops: [u64; Cause::ALL.len()],
    /// Packets that the switch half marked (ECN).
    pub marked: u64,
    /// Packets into which the switch half wrote fields or telemetry.
    pub written: u64,
    /// Signals that the switch half sent to the sources of this port's packets.
    pub signals: u64,
    /// Maximum occupancy of the port in wire bytes, including the packet in service.
    pub max_queue: Bytes,
    /// Time integral of the occupancy, in byte-picoseconds.
    pub byte_time: u128,
}

impl PortCounters {
    /// Returns the number of datagrams that were not forwarded for this cause.
    #[must_use]
    pub fn dropped(&self, cause: Cause) -> u64 {
        self.drops[cause as usize]
    }

    pub(super) fn drop_one(&mut self, cause: Cause) {
        self.drops[cause as usize] += 1;
    }

    /// Returns the mean occupancy in wire bytes over the period `time`.
    #[must_use]
    pub fn mean_queue(&self, time: Span) -> f64 {
        self.byte_time as f64 / (time.as_ps_f64()).max(1.0)
    }

    /// Adds the counters of another time.
    fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        for (drops, more) in self.drops.iter_mut().zip(other.drops) {
            *drops += more;
        }
        self.marked += other.marked;
        self.written += other.written;
        self.signals += other.signals;
        self.max_queue = self.max_queue.max(other.max_queue);
        self.byte_time += other.byte_time;
    }
}

/// How closely the forwarding thread kept the departure times of the ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Punctuality {
    /// Time in which the thread moved datagrams instead of waiting for them.
    pub busy: Span,
    /// Sum over all departures of the lateness: the time from the departure from the port to the transmission of the datagram.
    pub lateness: Span,
    /// Maximum lateness of a departure.
    pub max_lateness: Span,
    /// Number of departures that were later than [`Punctuality::LATE`].
    pub late: u64,
}

impl Punctuality {
    /// Lateness above which a departure counts as late. deviation: no source; half of the base target of Swift over UDP
    /// (docs/udp.md), so that more would decide what Swift does.
    pub const LATE: Span = Span::from_us(100);

    pub(super) fn note(&mut self, lateness: Span) {
        self.lateness = self.lateness.saturating_add(lateness);
        self.max_lateness = self.max_lateness.max(lateness);
        self.late += u64::from(lateness > Self::LATE);
    }

    fn add(&mut self, other: &Self) {
        self.busy = self.busy.saturating_add(other.busy);
        self.lateness = self.lateness.saturating_add(other.lateness);
        self.max_lateness = self.max_lateness.max(other.max_lateness);
        self.late += other.late;
    }
}

/// What a switch did in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Length of the period.
    pub time: Span,
    /// Counters of the ports, in the order of [`Direction::ALL`].
    pub ports: [PortCounters; 2],
    /// Punctuality of the forwarding thread.
    pub punctuality: Punctuality,
    /// Number of clients at the end of the period.
    pub clients: usize,
}

impl Report {
    /// Returns the counters of the port of this direction.
    #[must_use]
    pub fn port(&self, direction: Direction) -> &PortCounters {
        &self.ports[direction as usize]
    }

    /// Appends the report on the period that follows this one.
    pub fn add(&mut self, next: &Self) {
        self.time = self.time.saturating_add(next.time);
        for (port, more) in self.ports.iter_mut().zip(&next.ports) {
            port.add(more);
        }
        self.punctuality.add(&next.punctuality);
        self.clients = next.clients;
    }

    /// Returns the share of departures that were late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        let sent: u64 = self.ports.iter().map(|port| port.sent).sum();
        self.punctuality.late as f64 / sent.max(1) as f64
    }

    /// Returns `true` if the thread was too slow for these ports, so that the results depend on the machine. In that case the
    /// kernel lost datagrams, or more than 1 % of the departures were late (deviation: no source).
    #[must_use]
    pub fn was_too_slow(&self) -> bool {
        let lost = self.ports.iter().any(|port| port.dropped(Cause::NotReceived) > 0);
        lost || self.late_share() > 0.01
    }
}
