//! Flows that live on credits: the classes of their ports, and what is said of a run with them.

mod bound;

use apus_cc::CreditLimit;
use apus_cc::SwitchHalf;
use apus_fabric::{ClassConfig, RateLimit, Topology};
use apus_units::{Bytes, ClassId, Rate};
use apus_wire::{Body, Control};
use serde::Serialize;

use crate::metrics::CreditCounts;
use crate::packets::PacketSizes;

pub(crate) use bound::{BoundError, DataBounds};

/// The class of credits, served first and limited in rate.
pub(crate) const CREDIT_CLASS: ClassId = ClassId::new(0);
/// The class of data.
pub(crate) const DATA_CLASS: ClassId = ClassId::new(1);
/// Requests, stops and acknowledgements: ports have no such class, so they join the data, but are
/// not counted as what credits called for.
const UNSCHEDULED: ClassId = ClassId::new(2);

/// The class in which a packet travels where there are credits.
#[inline]
pub(crate) fn class_of(body: &Body) -> ClassId {
    match body {
        Body::Control(Control::Credit(_)) => CREDIT_CLASS,
        Body::Data(segment) if segment.length > 0 => DATA_CLASS,
        _ => UNSCHEDULED,
    }
}

/// The rate of wire bytes that credits get of a link: with the data they call for in the other
/// direction they fill it, 84 / (84 + 1538) = 5.18 % with full Ethernet frames.
pub(crate) fn credit_rate(link: Rate, sizes: &PacketSizes) -> Rate {
    let (credit, data) = (u128::from(sizes.control), u128::from(sizes.payload + sizes.header));
    let share = u128::from(link.as_bps()) * credit / (credit + data);
    // A share of a u64, and above 0 as a link's rate is at least 1 kb/s.
    Rate::from_bps(share as u64)
}

/// Gives every port, of switches and of NICs, a class of credits before its data.
pub fn divide_ports<W: SwitchHalf + Default>(
    topology: &mut Topology<W>,
    limit: CreditLimit,
    sizes: &PacketSizes,
) {
    let burst = Bytes::new(u64::from(limit.burst) * u64::from(sizes.control));
    for link in &mut topology.links {
        for port in [&mut link.ab, &mut link.ba] {
            let rate = credit_rate(port.rate, sizes);
            let credits = ClassConfig {
                priority: 0,
                limit_packets: limit.queue,
                rate_limit: Some(RateLimit { rate, burst }),
                ..ClassConfig::default()
            };
            let data = ClassConfig { priority: 1, ..port.classes.remove(0) };
            port.classes = vec![credits, data];
        }
    }
}

/// What became of credits, and how the data they called for queued. All 0 or `null` in a run without.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CreditSummary {
    /// Credits that receivers sent.
    pub sent: u64,
    /// Credits that reached a sender.
    pub received: u64,
    /// Of these, credits that found nothing to send.
    pub wasted: u64,
    /// Wasted credits over those that reached a sender.
    pub waste_rate: f64,
    /// Packets dropped in the class of data, over the whole run, all ports together.
    pub data_drops: u64,
    /// The most bytes of data that credits called for at a switch port, over the whole run.
    pub max_data_queue_bytes: u64,
    /// The bound on them by network calculus, at that port, if nothing but data of credits came;
    /// `null` if there is none.
    pub bound_bytes: Option<u64>,
    /// The most bytes of requests, stops and acknowledgements that came to that port while it was
    /// never without data or them: no credit calls for these, so they add to the bound.
    pub unscheduled_bytes: u64,
    /// The largest fraction that any port's data queue reached of its bound with what was
    /// unscheduled there and before; beyond 1 the run fails.
    pub bound_used: Option<f64>,
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
