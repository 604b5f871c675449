//! Settings of a transport endpoint.

use apus_units::{Rate, Span};

/// Settings of an endpoint, shared by all its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Payload bytes of a full packet. deviation: Swift says
    /// "MTU-sized" (§3.4); 4096 B is the MTU of Falcon, Swift's successor (isekai v1.1).
    pub max_payload: u32,
    /// Bytes of a data packet on the wire in addition to its payload; they count in a pace that is
    /// given as a rate. deviation: the simulator's default.
    pub header_bytes: u32,
    /// A packet is lost once a packet sent this many numbers later is acknowledged (RFC 9002
    /// §6.1.1: 3). Packet numbers are never reused, so the distance counts transmissions.
    pub reorder_threshold: u64,
    /// Treatment of packets that arrive out of order.
    pub recovery: Recovery,
    /// Maximum range of op numbers between a flow's oldest incomplete op and its newest; also the
    /// maximum number of queued answers to reads and atomic ops. Bounds the memory that a peer can use. deviation:
    /// the papers give none; 1024 is far above what any experiment submits.
    pub max_ops: u32,
    /// Slot width of the pacing and timeout wheel, as log2 of picoseconds: a timer fires late by at
    /// most this width. deviation: the paper gives none; 2^17 ps = 131 ns is far below a packet's
    /// RTT.
    pub timer_granularity_log2_ps: u32,
    /// Time without an acknowledgement after which a flow is aborted. `None`: never, as in the
    /// paper, which has no such rule; its reset after `RETX_RESET_THRESHOLD` timeouts only slows
    /// the flow.
    pub give_up_after: Option<Span>,
    /// Upper limit of the doubled retransmission timeout. From the [`Self::backs_off_after`]-th
    /// timeout of equal length in a row on, each one doubles the timeout up to this limit.
    /// Exception: an algorithm that paces with a window below one packet, whose pacing delay is its
    /// back-off (Swift §3.4).
    ///
    /// The doubling is for algorithms whose timeout does not grow. Without doubling, they
    /// retransmit at every timeout to a peer that accepts none of the packets, for example because
    /// it has no room for a message; or they keep links so busy that acknowledgements of a lower
    /// priority never pass. `None`: as in the papers. Source: RFC 6298 §5.5. deviation: it doubles
    /// from the first timeout on; here the first ones stay those of the algorithm's paper. 20 ms:
    /// no source; 50 probes per second and flow cost little, and soon find a peer that is ready
    /// again.
    pub max_backed_off: Option<Span>,
    /// Number of timeouts of equal length in a row from which the timeout doubles. Also the number
    /// of round trips in a row, in which packets arrive trimmed and none with payload arrives
    /// whole, after which the flow waits for its timeout: with an algorithm that does not slow
    /// down, headers alone may fill a link, so that no payload passes. deviation: no source; 256 is
    /// more than any flow that ends in the papers' experiments has, so that these flows keep the
    /// behaviour of their papers.
    pub backs_off_after: u32,
    /// Whether the first packet after every second timeout in a row is new, so that a peer that has
    /// room only for a newer message receives it.
    pub new_after_timeouts: bool,
    /// Kind of delay that the local NIC receive delay t6 - t5 counts as.
    pub local_rx_delay: LocalRx,
    /// Whether the caller answers the peers' reads, by
    /// [`answer_read`](crate::Endpoint::answer_read), when the requested bytes are available.
    /// `false`: each read is answered on arrival of its request, as one-sided ops on memory are.
    pub reads_wait: bool,
    /// Maximum rate of a flow's data packets, independent of the window: for a NIC that queues
    /// packets, whose queue the flows of one host share. `None`: as fast as the caller polls, for a
    /// NIC that pulls packets.
    pub flow_rate: Option<Rate>,
}

/// Treatment of packets that arrive out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// The receiver keeps them, and only missing ranges are retransmitted (Swift §3.6).
    #[default]
    Selective,
    /// The receiver drops them and reports each gap once; the sender retransmits everything in
    /// flight from the gap on. This is the behaviour of the RDMA hardware for which DCQCN and HPCC
    /// were defined (DCQCN §2; InfiniBand's NAK of a sequence error). Bytes of a flow then arrive
    /// in order.
    GoBackN,
}

/// Kind of delay that the local NIC receive delay t6 - t5 counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalRx {
    /// Endpoint delay (Swift §3.3, App. C).
    Endpoint,
    /// Fabric delay, as for a stack whose NIC does not timestamp received packets.
    Fabric,
    /// Neither: no algorithm reacts to it.
    Ignored,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            max_payload: 4096,
            header_bytes: 64,
            reorder_threshold: 3,
            recovery: Recovery::Selective,
            max_ops: 1024,
            timer_granularity_log2_ps: 17,
            give_up_after: None,
            max_backed_off: Some(Span::from_ms(20)),
            backs_off_after: 256,
            new_after_timeouts: false,
            local_rx_delay: LocalRx::Endpoint,
            reads_wait: false,
            flow_rate: None,
        }
    }
}
