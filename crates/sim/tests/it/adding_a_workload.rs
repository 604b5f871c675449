//! The example of `docs/adding-a-workload.md`: a ring exchange, as connections of a plan.

use crate::support::{ConnectionPlan, Topology};
use crate::support::{connection, plan, run, tier};
use apus_units::{Rate, Span};

/// Every host keeps a write under way to the next one.
fn ring_exchange(hosts: u32, size: u64) -> Vec<ConnectionPlan> {
    let to_next = |from| connection(("swift", &[]), from, (from + 1) % hosts, size);
    (0..hosts).map(to_next).collect()
}

#[test]
fn a_ring_exchange_fills_every_link() {
    let star = Topology::star(8, &tier(Rate::from_gbps(100), Span::from_us(1)));
    let summary = run(&plan(star, ring_exchange(8, 1_000_000), Span::from_ms(5)));
    // No two hosts share a link: 8 times 100 Gb/s, of which each 1000 bytes take 1064 and an ACK of 84;
    // growing from one packet takes its part of the 5 ms.
    let ceiling = 800.0 * 1000.0 / 1148.0;
    assert!((0.9 * ceiling..=ceiling).contains(&summary.goodput_gbps), "{}", summary.goodput_gbps);
    assert!(summary.jain > 0.999, "{}", summary.jain);
    assert_eq!(summary.packets.dropped, 0);
}
