//! Arbitrary text as traffic, topology or size distribution. It is either accepted, or refused with a line number.
//! Accepted content is within its limits, and writing and reading it again gives the same.
#![no_main]

use apus_scenario::import::{End, Graph, Traffic, csv};
use apus_sim::sizes::Sizes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Traffic::parse(text) {
        Err(error) => assert!(error.line > 0 && !error.message.is_empty()),
        Ok(traffic) => {
            assert!(!traffic.messages.is_empty());
            let again =
                csv::parse_traffic(&csv::render(traffic.messages.iter())).expect("reads back");
            for (a, b) in traffic.messages.iter().zip(&again.messages) {
                assert_eq!((a.start, a.from, a.to, a.bytes), (b.start, b.from, b.to, b.bytes));
            }
        }
    }
    match Graph::parse(text) {
        Err(error) => assert!(error.line > 0 && !error.message.is_empty()),
        Ok(graph) => {
            for link in &graph.links {
                for end in [link.a, link.b] {
                    match end {
                        End::Host(host) => assert!((host as usize) < graph.hosts.len()),
                        End::Switch(switch) => assert!((switch as usize) < graph.switches.len()),
                    }
                }
            }
        }
    }
    if let Ok(sizes) = Sizes::parse(text) {
        assert_eq!(Sizes::parse(&sizes.to_text()).as_ref(), Ok(&sizes));
        assert!(sizes.mean() >= 1.0 && sizes.quantile(0.5) >= 1);
    }
});
