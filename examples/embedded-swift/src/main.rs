//! Swift in the acknowledgement loop of another transport. It prints:
//!
//! ```text
//! at 100 us, RTT 20 us: window 2.000 packets, gap 0.0 us
//! at 120 us, RTT 20 us: window 2.500 packets, gap 0.0 us
//! at 200 us, RTT 80 us: window 1.284 packets, gap 0.0 us
//! at 240 us, RTT 80 us: window 1.284 packets, gap 0.0 us
//! at 280 us, RTT 80 us: window 0.692 packets, gap 115.5 us
//! ```
#![allow(clippy::print_stdout, reason = "the output is the example's purpose")]

use std::error::Error;
use std::sync::Arc;

use apus_algorithms::swift::{Config, Params, Swift};
use apus_cc::{AckEvent, Algorithm, FlowInfo, Pacing, Sender};
use apus_units::{Span, Time};

fn main() -> Result<(), Box<dyn Error>> {
    let params = Arc::new(Params::new(Config::paper())?); // shared by all flows
    let mut flow = Swift::new(params, &FlowInfo::default());
    // Arrival time and RTT of each acknowledgement, in microseconds. Losses and timeouts go to
    // `on_loss` and `on_timeout`; `rto` is the timeout to arm.
    for (at, rtt) in [(100, 20), (120, 20), (200, 80), (240, 80), (280, 80)] {
        let mut ack = AckEvent::new(Time::ZERO + Span::from_us(at), Span::from_us(rtt));
        ack.hops = 1;
        flow.on_ack(&ack);
        let allowance = flow.allowance();
        let gap = match allowance.pacing {
            Pacing::Delay(gap) => gap.as_us_f64(),
            _ => 0.0,
        };
        let window = allowance.window;
        println!("at {at} us, RTT {rtt} us: window {window:.3} packets, gap {gap:.1} us");
    }
    Ok(())
}
