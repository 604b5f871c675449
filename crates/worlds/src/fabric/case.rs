//! The scenario that a seed draws for the simulator, as the text of its file.

use std::fmt::Write;

use super::network::{self, Fabric};
use super::parts::{self, Pair};
use crate::draw::Draw;

/// Time in microseconds at which workloads stop submitting ops, and by which all faults have ended.
/// deviation: no source; about 50 RTTs, so that a scenario takes milliseconds.
const STOP_US: u64 = 600;
/// Time by which every op must have ended, in seconds. deviation: no source; timeouts of the transport double
/// up to seconds.
const END_S: u64 = 20;

/// A drawn scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Seed from which the scenario was drawn, and seed of its run.
    pub seed: u64,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Name of the path policy.
    pub balancer: &'static str,
    fabric: Fabric,
    routing: String,
    /// The `[algorithm]` table of the scenario.
    settings: String,
    /// One table per workload.
    pub(super) workloads: Vec<String>,
    /// One table per fault.
    pub(super) faults: Vec<String>,
}

impl Case {
    /// Draws the scenario of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        Self::of(seed, Draw::new(seed, 2), None)
    }

    /// Draws a scenario with faults, whose algorithm and path policy are the pair with the number of the
    /// seed. The seeds below [`pairs`](super::pairs) cover all pairs.
    #[must_use]
    pub fn draw_pair(seed: u64) -> Self {
        Self::of(seed, Draw::new(seed, 3), Some(Pair::of(seed)))
    }

    fn of(seed: u64, mut draw: Draw, pair: Option<Pair>) -> Self {
        let (draw, later) = (&mut draw, &mut Draw::new(seed, 4));
        let thresholds = &mut Draw::new(seed, 5);
        let placement = &mut Draw::new(seed, 6);
        let algorithm = parts::algorithm(draw, pair);
        let mut fabric = Fabric::draw([draw, later, thresholds], &algorithm);
        while pair.is_some_and(|pair| !pair.fits(&fabric)) {
            fabric = Fabric::draw([draw, later, thresholds], &algorithm);
        }
        let (balancer, mut routing) = parts::routing(draw, &algorithm, &fabric, pair);
        let workloads: Vec<String> = (0..draw.pick(&[1, 1, 2, 3]))
            .map(|number| parts::workload([draw, later, placement], number, &fabric, STOP_US))
            .collect();
        // Faults do not overlap in time, because faults of the same property of a link must not overlap.
        let faults =
            draw.pick(if pair.is_some() { &[1, 2, 3, 4] } else { &[0, 1, 1, 2, 2, 3, 4][..] });
        let time = |number| STOP_US * number / faults.max(1);
        let faults: Vec<String> = (0..faults)
            .map(|number| network::fault(draw, &fabric, time(number)..time(number + 1)))
            .collect();
        // Detours around a link may close a cycle of links that wait for each other's memory. With pauses
        // this is a deadlock of the network design, not a bug.
        let fails = faults.iter().any(|fault| fault.contains("\"down\""));
        if fails && !fabric.pauses && draw.chance(500) {
            if routing.is_empty() {
                routing += "[routing]\n";
            }
            routing += &parts::rerouting(draw);
        }
        Self {
            seed,
            algorithm: algorithm.name,
            balancer,
            settings: algorithm.settings,
            fabric,
            routing,
            workloads,
            faults,
        }
    }

    /// Returns the number of hosts.
    #[must_use]
    pub fn hosts(&self) -> u64 {
        self.fabric.hosts
    }

    /// Returns the number of faults, of one or several links each.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.faults.len()
    }

    /// Returns the scenario as the text of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("duration = \"{END_S}s\"\nseed = {}\n\n", self.seed);
        let tables = [&self.fabric.table, &self.routing, &self.settings];
        let tables = tables.into_iter().chain(&self.workloads).chain(&self.faults);
        for table in tables.filter(|table| !table.is_empty()) {
            let _ = writeln!(text, "{table}");
        }
        text
    }
}
