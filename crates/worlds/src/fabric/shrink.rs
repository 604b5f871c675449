//! Search for a smaller case with the same violation, without the faults and workloads that it does not need.

use super::{Case, Violation, run_text};

/// Returns the smallest case found, and its violation.
#[must_use]
pub fn shrink_case(case: &Case, violation: &Violation) -> (Case, Violation) {
    let mut best = (case.clone(), violation.clone());
    loop {
        let size = best.0.faults.len() + best.0.workloads.len();
        for place in (0..best.0.faults.len()).rev() {
            attempt(&mut best, |case| drop(case.faults.remove(place)));
        }
        for place in (0..best.0.workloads.len()).rev() {
            if best.0.workloads.len() > 1 {
                attempt(&mut best, |case| drop(case.workloads.remove(place)));
            }
        }
        if best.0.faults.len() + best.0.workloads.len() == size {
            return best;
        }
    }
}

fn attempt(best: &mut (Case, Violation), change: impl FnOnce(&mut Case)) {
    let mut smaller = best.0.clone();
    change(&mut smaller);
    if let Err(violation) = run_text(smaller.seed, &smaller.text())
        && violation.check == best.1.check
    {
        *best = (smaller, violation);
    }
}
