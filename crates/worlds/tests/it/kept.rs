//! Seeds whose worlds have found a bug, of the transport or of the worlds themselves.

use apus_worlds::{Plan, run};

/// Seeds, with what they found.
const KEPT: &[(u64, &str)] = &[
    (4, "waiting ops of a flow whose last op was cancelled never started"),
    (6, "the same"),
    (14, "the same"),
    (27, "the same"),
    (132, "the check of nonces took an unsealed packet for a sealed one"),
];

#[test]
fn kept_seeds_violate_no_guarantee() {
    for &(seed, found) in KEPT {
        let outcome = run(&Plan::draw(seed), false);
        assert_eq!(outcome.violation, None, "seed {seed}, which found: {found}");
    }
}
