//! Parameters of a host, which determine endpoint congestion.

use apus_jobs::loggops::Parameters;
use apus_units::{Bytes, Span};

/// A host's NIC, engine and clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostModel {
    /// Costs of the engine's work. `None`: packets are processed on arrival, at no cost.
    pub engine: Option<EngineCosts>,
    /// Capacity of the NIC's receive queue in wire bytes. The queue can only fill if the engine has costs.
    pub receive_queue: Bytes,
    /// Rule by which data enters the NIC.
    pub nic: Nic,
    /// The NIC pulls data while its queue is shorter than this time on the wire.
    pub nic_backlog: Span,
    /// Maximum interference between the stack's timestamp and the wire. In each direction, each packet is
    /// delayed by a time that is uniform from zero to this value; the order of packets is kept.
    pub jitter: Span,
    /// Maximum offset of a host's or NIC's clock. Each clock draws its own, uniformly from zero.
    pub clock_offset: Span,
    /// Maximum drift of a host's or NIC's clock in parts per billion, drawn uniformly with either sign.
    pub clock_drift_ppb: i32,
    /// Interval at which a stack reads both clocks to convert between them (Swift App. A).
    pub clock_reading_interval: Span,
    /// Times of operations of jobs in the LogGOPS model, in addition to those of their packets; other
    /// workloads have no such times. If set, sends of jobs are done by
    /// [`Done::LogGops`](apus_jobs::Done::LogGops), and the network has one part.
    pub loggops: Option<Parameters>,
}

/// Rule by which a host's data enters its NIC, and its treatment in the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nic {
    /// The NIC takes the next packet when it is ready to send, in turn from the flows (Swift §3.1).
    /// Packets wait in the stack.
    Pull,
    /// Each flow passes on all packets that its congestion window allows, at most at the rate of the link.
    /// All packets are queued in the NIC's port. Like a port of a switch, this port takes part in the
    /// algorithm, and it passes its feedback to the host at once (Bolt ns-3).
    Queue,
}

/// Costs of a host's engine. A thread repeats a loop: a batch of received packets, one
/// acknowledgement per flow of that batch, a batch of data packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineCosts {
    /// Time of one iteration of the loop.
    pub round: Span,
    /// Cost of receiving a data packet.
    pub receive_packet: Span,
    /// Cost of the end of an op at the receiver, in addition to the cost of its last packet.
    pub receive_op: Span,
    /// Cost of receiving an acknowledgement.
    pub receive_ack: Span,
    /// Cost of sending an acknowledgement.
    pub send_ack: Span,
    /// Cost of sending a data packet.
    pub send_packet: Span,
    /// Cost of the start of an op at the sender, in addition to the cost of its first packet.
    pub send_op: Span,
    /// Cost of copying 1 KiB of payload at the receiver.
    pub copy_kib: Span,
    /// Share of every cost that is random (exponential with this mean); the rest is fixed.
    pub noise: f64,
    /// Mean length of a stall (exponential), during which the thread is descheduled.
    pub stall: Span,
    /// Mean work between two stalls (exponential). Zero: no stalls.
    pub stall_every: Span,
    /// Maximum number of packets that one iteration takes from the receive queue, and that it sends: 1 to
    /// [`EngineCosts::MAX_BATCH`].
    pub batch: u32,
    /// Whether one thread serves both directions (Swift App. C); otherwise each direction has its own thread.
    pub shared: bool,
}

impl EngineCosts {
    /// Maximum length of a batch. One acknowledgement per flow follows a batch and reports on the
    /// newest 128 packets (`apus_wire`, the body of an ACK); all other packets of a longer batch
    /// would be declared lost.
    pub const MAX_BATCH: u32 = u128::BITS;

    /// The engine of testbed T1. deviation: the paper gives no costs. These were fitted to Swift Table 4:
    /// first with a separate model of one switch and serial engines (whose mean costs at the receiver were
    /// about a tenth higher than it stated), then in this simulator with seeds other than those of the
    /// experiment. With them the receiver of Table 4 is saturated in every row.
    pub const T1: Self = Self {
        round: Span::from_ns(770),
        receive_packet: Span::from_ns(270),
        receive_op: Span::from_ns(220),
        receive_ack: Span::from_ns(70),
        send_ack: Span::from_ns(280),
        send_packet: Span::from_ns(450),
        send_op: Span::from_ns(300),
        copy_kib: Span::from_ns(9),
        noise: 0.1,
        stall: Span::from_us(15),
        stall_every: Span::from_us(850),
        batch: 32,
        shared: true,
    };

    /// The engine of the prototype of Swift App. D, "that reduces host CPU interference", at 100 Gb/s:
    /// [`EngineCosts::T1`] without stalls and twice as fast, because the link is. deviation: the paper gives
    /// no costs; T1's own costs would limit the engine to about 70 Gb/s.
    pub const T1_QUIET: Self = Self {
        round: Span::from_ns(385),
        receive_packet: Span::from_ns(135),
        receive_op: Span::from_ns(110),
        receive_ack: Span::from_ns(35),
        send_ack: Span::from_ns(140),
        send_packet: Span::from_ns(225),
        send_op: Span::from_ns(150),
        copy_kib: Span::from_ps(4_500),
        stall: Span::ZERO,
        stall_every: Span::ZERO,
        ..Self::T1
    };
}

impl HostModel {
    /// A host without costs: only the fabric determines the results.
    pub const IDEAL: Self = Self {
        engine: None,
        receive_queue: Bytes::MAX,
        nic: Nic::Pull,
        nic_backlog: Span::from_ps(1),
        jitter: Span::ZERO,
        clock_offset: Span::ZERO,
        clock_drift_ppb: 0,
        clock_reading_interval: Span::from_ms(1),
        loggops: None,
    };

    /// Returns a preset by name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        // deviation: the paper does not give the NIC's receive queue; 2 MiB holds 500 packets.
        let engine = Self {
            engine: Some(EngineCosts::T1),
            receive_queue: Bytes::new(2 << 20),
            nic_backlog: Span::from_ns(1332), // 2 packets of 4160 B at 50 Gb/s
            ..Self::IDEAL
        };
        match name {
            "ideal" => Some(Self::IDEAL),
            "t1" => Some(Self { jitter: Span::from_us(6), ..engine }),
            // deviation: the paper gives no costs of T2's hosts. Its RTTs are "with NIC timestamps" (Swift
            // §5.2), and each machine reaches its line rate both ways, so several engines must share the
            // work. Therefore no engine is modelled.
            "t2" => Some(Self { nic_backlog: Span::from_ns(666), ..Self::IDEAL }), // 2 packets
            "t1-quiet" => Some(Self {
                engine: Some(EngineCosts::T1_QUIET),
                nic_backlog: Span::from_ns(666), // 2 packets at 100 Gb/s
                ..engine
            }),
            "loggops" => Some(Self { loggops: Some(Parameters::default()), ..Self::IDEAL }),
            _ => None,
        }
    }

    /// Returns the names that [`HostModel::preset`] knows.
    pub const PRESETS: &[&str] = &["ideal", "t1", "t1-quiet", "t2", "loggops"];
}
