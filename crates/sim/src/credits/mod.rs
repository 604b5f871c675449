//! Credit-based flows: the classes of their ports, and the results of a run with credits.

mod bound;

use apus_cc::CreditLimit;
use apus_cc::SwitchHalf;
use apus_fabric::{ClassConfig, Network, PortCounters, RateLimit, Topology};
use apus_units::planted::{Bug, is_planted};
use apus_units::{Bytes, ClassId, PortId, Rate, Time};
use apus_wire::{Body, Control, Header};
use serde::Serialize;

use crate::columns::summary;
use crate::measure::minus;
use crate::metrics::CreditCounts;
use crate::packets::PacketSizes;

pub(crate) use bound::{BoundError, DataBounds};

/// Class of credits, served first and limited in rate.
pub(crate) const CREDIT_CLASS: ClassId = ClassId::new(0);
/// Class of data.
pub(crate) const DATA_CLASS: ClassId = ClassId::new(1);
/// Traffic class of requests, stops and acknowledgements. Ports do not have this class: the packets join the
/// data, but do not count as scheduled by credits.
const UNSCHEDULED: ClassId = ClassId::new(2);

/// Returns the class of a packet in a run with credits.
#[inline]
pub(crate) fn class_of(body: &Body) -> ClassId {
    match body {
        Body::Control(Control::Credit(_)) => CREDIT_CLASS,
        Body::Data(segment) if segment.length > 0 => DATA_CLASS,
        _ => UNSCHEDULED,
    }
}

/// Returns the counters of a port up to `now`. In a run with credits, the packets offered and dropped do not
/// include credits, because dropping credits is how credits share a link.
pub(crate) fn data_counters<W: SwitchHalf>(
    network: &Network<Header, W>,
    has_credits: bool,
    port: PortId,
    now: Time,
) -> PortCounters {
    let mut counters = network.port_counters(port, now);
    if has_credits {
        let class = network.class_counters(port, CREDIT_CLASS, now);
        counters.offered = minus(counters.offered, class.offered);
        counters.dropped = minus(counters.dropped, class.dropped);
    }
    counters
}

/// Returns the rate of credits on a link, in wire bytes. Credits, and the data in the other direction that
/// they schedule, fill the link: 84 / (84 + 1538) = 5.18 % with full Ethernet frames.
pub(crate) fn credit_rate(link: Rate, sizes: &PacketSizes) -> Rate {
    let (credit, data) = (u128::from(sizes.control), u128::from(sizes.payload + sizes.header));
    let share = u128::from(link.as_bps()) * credit / (credit + data);
    // The share is a part of a u64, and above 0 because the rate of a link is at least 1 kb/s.
    Rate::from_bps(share as u64)
}

/// Adds a class of credits before the data class of every port of switches and NICs.
pub fn divide_ports<W: SwitchHalf + Default>(
    topology: &mut Topology<W>,
    limit: CreditLimit,
    sizes: &PacketSizes,
) {
    let burst = Bytes::new(u64::from(limit.burst) * u64::from(sizes.control));
    let (queue, queue_packets) = if limit.queue_in_bytes {
        (Bytes::new(u64::from(limit.queue) * u64::from(sizes.control)), u32::MAX)
    } else {
        (Bytes::MAX, limit.queue)
    };
    for link in &mut topology.links {
        for port in [&mut link.ab, &mut link.ba] {
            let unlimited = is_planted(Bug::CreditsUnlimited);
            let rate = if unlimited { port.rate } else { credit_rate(port.rate, sizes) };
            let credits = ClassConfig {
                priority: 0,
                limit: queue,
                limit_packets: queue_packets,
                rate_limit: Some(RateLimit { rate, burst }),
                ..ClassConfig::default()
            };
            let data = ClassConfig { priority: 1, ..port.classes.remove(0) };
            port.classes = vec![credits, data];
        }
    }
}

const MEASURED: &str = "sum over the measured phase";

summary! {
    /// Use of credits, and queues of the data that they scheduled. All 0 or `null` in a run without credits.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct CreditSummary {
        /// credits that receivers sent
        pub sent: u64 = number(MEASURED),
        /// credits that reached a sender
        pub received: u64 = number(MEASURED),
        /// credits that reached a sender without data to send
        pub wasted: u64 = number(MEASURED),
        /// `credits.wasted` / `credits.received`
        pub waste_rate: f64 = fraction("over the measured phase"),
        /// packets dropped in the traffic class of data; 0 in a run without credits
        pub data_drops: u64 = number("sum over the warm-up and the measured phase, all ports"),
        /// wire bytes of credit-scheduled data in a switch port; requests and ACKs do not count
        pub max_data_queue_bytes: u64 = number("maximum over the warm-up, the measured phase and all switch ports"),
        /// network-calculus bound of `credits.max_data_queue_bytes` at the same port, if no unscheduled packet
        /// arrives; null if there is no bound
        pub bound_bytes: Option<u64> = number("-"),
        /// wire bytes of requests, stops and ACKs that arrived at the same port while its data queue was never empty
        pub unscheduled_bytes: u64 = number("maximum over the warm-up and the measured phase"),
        /// credit-scheduled data in a port / its bound by network calculus, which includes the unscheduled bytes. The
        /// run fails above 1; null if there is no bound
        pub bound_used: Option<f64> = fraction("maximum over the warm-up, the measured phase and all ports"),
    }
}

impl CreditSummary {
    pub(crate) fn new(counts: &CreditCounts) -> Self {
        let share = counts.wasted as f64 / counts.received.max(1) as f64;
        Self {
            sent: counts.sent,
            received: counts.received,
            wasted: counts.wasted,
            waste_rate: share,
            ..Self::default()
        }
    }
}
