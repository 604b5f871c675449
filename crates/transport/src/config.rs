//! Settings of a transport endpoint.

use apus_units::{Rate, Span};

/// Settings of an endpoint; all flows of it share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Payload bytes of a full packet. deviation: Swift says
    /// "MTU-sized" (§3.4); 4096 B is the MTU of Falcon, Swift's successor (isekai v1.1).
    pub max_payload: u32,
    /// Bytes of a data packet on the wire beside its payload: a pace that is given as a rate counts
    /// them. deviation: as the simulator's default.
    pub header_bytes: u32,
    /// A packet is lost once a packet sent this many numbers later is acknowledged
    /// (RFC 9002 §6.1.1: 3). Packet numbers are never reused, so this counts transmissions.
    pub reorder_threshold: u64,
    /// What becomes of packets that arrive out of order.
    pub recovery: Recovery,
    /// Op numbers that a flow's ops under way may span, from the oldest that is not complete; as
    /// many answers to reads may wait. Bounds the memory that a peer can cost.
    /// deviation: the papers give none; 1024 is far above what any experiment submits.
    pub max_ops: u32,
    /// Slot of the pacing and timeout wheel, as log2 of picoseconds: a timer fires at most this
    /// much late. deviation: the paper gives none; 2^17 ps = 131 ns is far below a packet's RTT.
    pub timer_granularity_log2_ps: u32,
    /// Abort a flow whose packets have gone unacknowledged for this long. `None`: never, as in the
    /// paper, which has no such rule; the reset after `RETX_RESET_THRESHOLD` timeouts only slows.
    pub give_up_after: Option<Span>,
    /// What the local NIC receive delay t6 - t5 counts as.
    pub local_rx_delay: LocalRx,
    /// Whether the caller answers the peers' reads, by [`answer_read`](crate::Endpoint::answer_read),
    /// when what they ask for is at hand. `false`: each is answered as soon as its request is here, as
    /// one-sided ops on memory are.
    pub reads_wait: bool,
    /// Data packets of one flow leave no faster than this, whatever its window: for a NIC that queues
    /// what it is given, as the flows of one host then queue in it beside one another. `None`: as fast
    /// as the caller polls, for a NIC that pulls.
    pub flow_rate: Option<Rate>,
}

/// What becomes of packets that arrive out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// They are kept, and only what is missing is sent again (Swift §3.6).
    #[default]
    Selective,
    /// The receiver drops them, says once per gap that one is there, and the sender sends all that is
    /// in flight again from the gap on: what RDMA hardware did for which DCQCN and HPCC were defined
    /// (DCQCN §2; InfiniBand's NAK of a sequence error). Bytes of a flow then arrive in order.
    GoBackN,
}

/// What the local NIC receive delay t6 - t5 counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalRx {
    /// Endpoint delay (Swift §3.3, App. C).
    Endpoint,
    /// Fabric delay, as for a stack whose NIC does not stamp what it receives.
    Fabric,
    /// Neither: nothing reacts to it.
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
            local_rx_delay: LocalRx::Endpoint,
            reads_wait: false,
            flow_rate: None,
        }
    }
}
