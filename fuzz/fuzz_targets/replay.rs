//! Arbitrary bytes as a log. It is either replayed, or refused with a position; every window stays a number above 0.
#![no_main]

use apus_algorithms::registry::build;
use apus_cc::{AlgorithmFactory, FlowInfo};
use apus_scenario::replay::{ReplayError, replay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for (algorithm, profile) in
        [("swift", "paper"), ("swift", "falcon"), ("dctcp", "rfc8257"), ("constant", "constant")]
    {
        let sender = build(algorithm, Some(profile), &[]).expect("defaults");
        let sender = sender.sender(&FlowInfo::default());
        let result = replay("fuzz.csv", bytes, sender, |row| {
            assert!(row.cwnd > 0.0 && row.cwnd.is_finite(), "{row}");
            Ok::<(), ()>(())
        });
        if let Err(ReplayError::Trace(error)) = result {
            assert!(error.to_string().starts_with("fuzz.csv:"), "{error}");
        }
    }
});
