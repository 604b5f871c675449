//! Swift compares the delay of each acknowledgement with its target.

use apus_algorithms::build;
use apus_cc::{AckEvent, AlgorithmFactory, FlowInfo, Sender};
use apus_units::{Span, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let swift = build("swift", None, &[("base_target", "25us")])?;
    let mut flow = swift.sender(&FlowInfo::default());
    let initial = flow.allowance().window;
    // An RTT below the target increases the window, an RTT far above the target decreases it.
    let ack = |at, rtt| AckEvent::new(Time::ZERO + Span::from_us(at), Span::from_us(rtt));
    flow.on_ack(&ack(100, 20));
    let increased = flow.allowance().window;
    assert!(increased > initial);
    flow.on_ack(&ack(500, 300));
    assert!(flow.allowance().window < increased);
    // A parameter that is unknown, impossible or without effect is an error.
    let error = build("swift", None, &[("base_traget", "25us")]).expect_err("a typo").to_string();
    assert!(error.contains("base_target"), "{error}");
    Ok(())
}
